// SPDX-License-Identifier: MIT OR Apache-2.0
//! Edits of a plan: what every data plane checks before it changes anything, and does to its plan after.

use crate::dataplane::{DataplaneError, Edit, LimitId};
use penstock_algo::wire;
use penstock_policy::plan::{Plan, PlanEntry};
use penstock_policy::terms::rate_code;
use std::collections::HashSet;

/// Whether a row is there: one that was taken away keeps its index, with a rate code of 0.
#[must_use]
pub fn is_live(entry: &PlanEntry) -> bool {
    entry.rate != 0
}

/// Whether all of the edits can be made, one after the other.
///
/// # Errors
/// An edit names what is not there (any more), or adds a second row with a key.
pub fn check_edits(plan: &Plan, edits: &[Edit]) -> Result<(), DataplaneError> {
    let mut keys = keys_taken(plan, edits);
    let mut removed = HashSet::new();
    let mut rows = plan.entries.len();
    for edit in edits {
        match edit {
            Edit::SetRate { limit: limit @ LimitId::Class(index), .. } => {
                plan.limits.get(*index as usize).ok_or(DataplaneError::UnknownLimit(*limit))?;
            }
            Edit::SetRate { limit: LimitId::Row(row), .. } => check_row(plan, rows, &removed, *row)?,
            Edit::Remove { row } => {
                check_row(plan, rows, &removed, *row)?;
                removed.insert(*row);
                if let Some(entry) = plan.entries.get(*row as usize) {
                    keys.remove(&key_of(entry));
                }
            }
            Edit::Add { name, entry } => {
                let tuple = plan.tuples.get(entry.tuple as usize);
                let has_tuple = tuple.is_some_and(|tuple| u32::from(tuple.kind) == wire::PST_TUPLE_LIMITS);
                if !has_tuple || plan.profiles.get(usize::from(entry.profile)).is_none() || entry.rate == 0 {
                    return Err(DataplaneError::UnknownTerms { name: name.clone() });
                }
                if !keys.insert(key_of(entry)) {
                    return Err(DataplaneError::Taken { name: name.clone() });
                }
                rows += 1;
            }
        }
    }
    Ok(())
}

/// Makes edits that were checked, in the plan.
pub fn edit_plan(plan: &mut Plan, edits: &[Edit]) {
    for edit in edits {
        match edit {
            Edit::SetRate { limit: LimitId::Row(row), rate_bps } => {
                if let Some(entry) = plan.entries.get_mut(*row as usize) {
                    (entry.rate, entry.rate_bps) = (rate_code(*rate_bps), *rate_bps);
                }
            }
            Edit::SetRate { limit: LimitId::Class(index), rate_bps } => {
                if let Some(limit) = plan.limits.get_mut(*index as usize) {
                    limit.rate = rate_code(*rate_bps);
                }
                let classes = plan.classes.iter_mut();
                classes.filter(|class| class.wire.limit_index == *index).for_each(|class| {
                    class.limit_bps = Some(*rate_bps);
                });
            }
            Edit::Remove { row } => {
                if let Some(entry) = plan.entries.get_mut(*row as usize) {
                    (entry.rate, entry.rate_bps) = (0, 0);
                }
            }
            Edit::Add { name, entry } => {
                // 4 GiB of names: the row is enforced all the same, under no name.
                let _ = plan.names.push(name).or_else(|_| plan.names.push(""));
                plan.entries.push(*entry);
            }
        }
    }
}

type RowKey = (u32, wire::Key);

fn key_of(entry: &PlanEntry) -> RowKey {
    (entry.tuple, entry.value)
}

/// Of the keys that edits add, those that a row has already: one walk, however many edits there are.
fn keys_taken(plan: &Plan, edits: &[Edit]) -> HashSet<RowKey> {
    let added = edits.iter().filter_map(|edit| match edit {
        Edit::Add { entry, .. } => Some(key_of(entry)),
        _ => None,
    });
    let added: HashSet<RowKey> = added.collect();
    if added.is_empty() {
        return added;
    }
    let live = plan.entries.iter().filter(|entry| is_live(entry));
    live.map(key_of).filter(|key| added.contains(key)).collect()
}

/// A row of the plan that was not removed, or one that an edit before this one added.
fn check_row(plan: &Plan, rows: usize, removed: &HashSet<u32>, row: u32) -> Result<(), DataplaneError> {
    let is_there = match plan.entries.get(row as usize) {
        Some(entry) => is_live(entry),
        None => (row as usize) < rows,
    };
    if is_there && !removed.contains(&row) { Ok(()) } else { Err(DataplaneError::UnknownLimit(LimitId::Row(row))) }
}
