// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan while it is being put together: tuples, profiles and rows, found again when they come a second time.

use crate::diagnostics::Place;
use crate::limits_file::LimitsText;
use crate::matching::MaskedKey;
use crate::plan::{Plan, PlanEntry};
use crate::terms::narrow;
use hashbrown::HashTable;
use penstock_algo::wire;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;

/// Profiles that two bytes can number, one less than all so that 65,535 stays free.
pub const PROFILES_MAX: usize = 65_535;
/// Tuples of one link, or of one class's limits file (`classify.h`: `PST_TUPLES_MAX`).
pub const TUPLES_MAX: usize = 256;

/// What packets are looked up in: a link, or the rows of a class that has a match as well. Links come first.
pub type Scope = u32;

/// Rows of one limits file.
pub struct Rows {
    pub text: LimitsText,
    /// Index of its first row in the plan's entries.
    pub first: usize,
    /// The class whose file it was added to, when its rows may be left out.
    pub added_to: Option<String>,
}

/// Added rows that the plan cannot have, by class and name, and why.
#[derive(Default)]
pub struct LeftOut(BTreeMap<String, BTreeMap<String, String>>);

impl LeftOut {
    pub fn insert(&mut self, class: &str, row: &str, why: impl FnOnce() -> String) {
        let rows = self.0.entry(class.to_owned()).or_default();
        rows.entry(row.to_owned()).or_insert_with(why);
    }

    pub fn contains(&self, class: &str, row: &str) -> bool {
        self.0.get(class).is_some_and(|rows| rows.contains_key(row))
    }

    pub fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    /// Class, row, why.
    pub fn into_rows(self) -> impl Iterator<Item = (String, String, String)> {
        self.0.into_iter().flat_map(|(class, rows)| rows.into_iter().map(move |(row, why)| (class.clone(), row, why)))
    }
}

/// A plan in the making.
#[derive(Default)]
pub struct Tables {
    pub plan: Plan,
    /// Of each tuple.
    pub scopes: Vec<Scope>,
    tuple_ids: HashMap<(Scope, u8, wire::Key), u32, foldhash::fast::FixedState>,
    profile_ids: HashMap<wire::Profile, u16, foldhash::fast::FixedState>,
    /// Entries by tuple and value.
    row_ids: HashTable<u32>,
    hasher: foldhash::fast::FixedState,
    /// Line of each entry in its file.
    pub lines: Vec<u32>,
    pub files: Vec<Rows>,
    pub left_out: LeftOut,
}

impl Tables {
    /// The tuple of a mask in a scope; `specificity_q8` is that of a match that uses it.
    pub fn tuple(&mut self, scope: Scope, kind: wire::pst_tuple_kind, mask: &wire::Key, specificity_q8: u32) -> u32 {
        let kind = narrow(kind);
        let next = u32::try_from(self.scopes.len()).unwrap_or(u32::MAX);
        let id = *self.tuple_ids.entry((scope, kind, *mask)).or_insert(next);
        if id == next {
            let words = words_of(mask);
            self.plan.tuples.push(wire::Tuple { mask: *mask, kind, words, ..wire::Tuple::default() });
            self.scopes.push(scope);
        }
        let tuple = &mut self.plan.tuples[id as usize];
        tuple.specificity_q8 = tuple.specificity_q8.max(specificity_q8);
        id
    }

    /// The number of a profile; none when there are too many different ones.
    pub fn profile(&mut self, profile: &wire::Profile) -> Option<u16> {
        if let Some(&id) = self.profile_ids.get(profile) {
            return Some(id);
        }
        let id = u16::try_from(self.plan.profiles.len()).ok().filter(|&id| usize::from(id) < PROFILES_MAX)?;
        self.plan.profiles.push(*profile);
        self.profile_ids.insert(*profile, id);
        Some(id)
    }

    /// Makes room for `count` more rows.
    pub fn reserve(&mut self, count: usize) {
        let (entries, hasher) = (&self.plan.entries, &self.hasher);
        self.row_ids.reserve(count, |&id| hash(hasher, &entries[id as usize]));
        self.plan.entries.reserve(count);
        self.lines.reserve(count);
    }

    /// Adds a row; if there is one with the same key, that one's index comes back and nothing is added.
    pub fn push_row(&mut self, entry: PlanEntry, line: u32) -> Result<(), usize> {
        let (entries, hasher) = (&mut self.plan.entries, &self.hasher);
        let is_same = |&id: &u32| {
            let other = &entries[id as usize];
            other.tuple == entry.tuple && other.value == entry.value
        };
        let rehash = |&id: &u32| hash(hasher, &entries[id as usize]);
        match self.row_ids.entry(hash(hasher, &entry), is_same, rehash) {
            hashbrown::hash_table::Entry::Occupied(found) => Err(*found.get() as usize),
            hashbrown::hash_table::Entry::Vacant(vacant) => {
                vacant.insert(u32::try_from(entries.len()).unwrap_or(u32::MAX));
                entries.push(entry);
                self.lines.push(line);
                Ok(())
            }
        }
    }

    /// The file that a row stands in.
    pub fn file(&self, entry: usize) -> &Rows {
        &self.files[self.files.partition_point(|rows| rows.first <= entry).saturating_sub(1)]
    }

    /// Where a row stands.
    pub fn row_place(&self, entry: usize) -> Place {
        let line = self.lines.get(entry).copied().unwrap_or(1) as usize;
        self.file(entry).text.line_place(line)
    }
}

/// Which words of a mask are not 0.
pub fn words_of(mask: &wire::Key) -> u8 {
    let words = mask.words.iter().enumerate().filter(|&(_, &word)| word != 0);
    words.fold(0, |bits, (index, _)| bits | (1 << index))
}

/// Only words under the mask differ between rows of a tuple; the others are 0 and cost little.
fn hash(hasher: &foldhash::fast::FixedState, entry: &PlanEntry) -> u64 {
    hasher.hash_one((entry.tuple, entry.value.words))
}

/// A key of the rule table before it is known which rule keeps it.
#[derive(Clone, Copy)]
pub struct RuleKey {
    pub tuple: u32,
    pub rule: u32,
    pub value: wire::Key,
}

impl RuleKey {
    pub fn new(tuple: u32, rule: u32, key: &MaskedKey) -> Self {
        Self { tuple, rule, value: key.value }
    }
}
