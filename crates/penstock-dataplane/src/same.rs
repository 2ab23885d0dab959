// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of one plan is still there in another: a class by its path, a class's own limit by its class, a row of a limits file by class
//! and key. State and counters go on where this says so.

use crate::edits::is_live;
use hashbrown::HashTable;
use penstock_algo::wire;
use penstock_policy::plan::{Plan, PlanEntry};
use std::collections::HashMap;
use std::hash::BuildHasher;

/// For each part of the plan after: where it was in the plan before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Same {
    /// By class.
    pub classes: Vec<Option<u32>>,
    /// By limit of a class.
    pub limits: Vec<Option<u32>>,
    /// By row.
    pub rows: Vec<Option<u32>>,
}

impl Same {
    /// Compares two plans. Rows that were taken away are nowhere.
    #[must_use]
    pub fn new(before: &Plan, after: &Plan) -> Self {
        let paths: HashMap<&str, u32> = before.classes.iter().map(|class| class.path.as_str()).zip(0..).collect();
        let classes: Vec<Option<u32>> =
            after.classes.iter().map(|class| paths.get(class.path.as_str()).copied()).collect();
        let mut limits = vec![None; after.limits.len()];
        for (class, found) in after.classes.iter().zip(&classes) {
            let was = found.and_then(|index| before.classes.get(index as usize)).map(|class| class.wire.limit_index);
            if let Some(limit) = limits.get_mut(class.wire.limit_index as usize) {
                *limit = was.filter(|&index| (index as usize) < before.limits.len());
            }
        }
        let rows = rows(before, after, &classes);
        Self { classes, limits, rows }
    }

    /// Limits of both kinds that were there before.
    #[must_use]
    pub fn limits_kept(&self) -> u64 {
        self.limits.iter().chain(&self.rows).flatten().count() as u64
    }
}

/// The class that a row belongs to, if its profile is sound.
#[must_use]
pub fn class_of(plan: &Plan, entry: &PlanEntry) -> Option<u32> {
    plan.profiles.get(usize::from(entry.profile)).map(|profile| profile.class_index)
}

/// Masks under one number in both plans.
#[derive(Default)]
struct Masks(HashMap<wire::Key, u32, foldhash::fast::FixedState>);

impl Masks {
    fn of(&mut self, plan: &Plan) -> Vec<u32> {
        let number = |tuple: &wire::Tuple| {
            let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
            *self.0.entry(tuple.mask).or_insert(next)
        };
        plan.tuples.iter().map(number).collect()
    }
}

/// Class (of the plan before), mask and value.
type Identity<'a> = (u32, u32, &'a wire::Key);

fn identity<'a>(masks: &[u32], class: u32, entry: &'a PlanEntry) -> Option<Identity<'a>> {
    Some((class, *masks.get(entry.tuple as usize)?, &entry.value))
}

fn rows(before: &Plan, after: &Plan, classes: &[Option<u32>]) -> Vec<Option<u32>> {
    let mut masks = Masks::default();
    let (masks_before, masks_after) = (masks.of(before), masks.of(after));
    let hasher = foldhash::fast::FixedState::default();
    let was = |row: u32| {
        let entry = before.entries.get(row as usize).filter(|entry| is_live(entry))?;
        identity(&masks_before, class_of(before, entry)?, entry)
    };
    // Four bytes a row: plans have millions.
    let mut table: HashTable<u32> = HashTable::with_capacity(before.entries.len());
    for (row, _) in (0..).zip(&before.entries) {
        if let Some(identity) = was(row) {
            table.insert_unique(hasher.hash_one(identity), row, |&row| was(row).map_or(0, |key| hasher.hash_one(key)));
        }
    }
    let find = |entry: &PlanEntry| {
        let class = (*classes.get(class_of(after, entry)? as usize)?)?;
        let identity = identity(&masks_after, class, entry)?;
        table.find(hasher.hash_one(identity), |&row| was(row) == Some(identity)).copied()
    };
    after.entries.iter().map(|entry| find(entry).filter(|_| is_live(entry))).collect()
}
