// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits that an operator changes while traffic flows.

use super::{Keeper, Owed};
use crate::changes::{Change, LimitName};
use crate::error::NodeError;
use crate::readings::facts;
use penstock_dataplane::Edit;
use penstock_policy::Plan;
use tracing::info;

impl Keeper {
    /// Edits limits, and keeps the changes that this is. Of a limit that is lent it is what holds without the lease.
    ///
    /// # Errors
    /// The store or the data plane refuses. Nothing was changed then.
    pub fn edit(&mut self, edits: &[Edit], changes: &[(LimitName, Change)]) -> Result<(), NodeError> {
        self.settle()?;
        let plan = self.dataplane.plan().ok_or(NodeError::Idle)?;
        let rows = plan.entries.len();
        penstock_dataplane::check_edits(plan, edits)?;
        let moves_rows = edits.iter().any(|edit| !matches!(edit, Edit::SetRate { .. }));
        let (places, edits) = self.lending.translate(edits);
        let edits = edits.as_slice();
        self.store.change(changes)?;
        if !edits.is_empty()
            && let Err(error) = self.dataplane.edit(edits)
            && !self.dataplane.plan().is_some_and(|plan| has_taken(plan, rows, edits))
        {
            let back: Vec<(LimitName, Change)> = changes
                .iter()
                .map(|(name, _)| (name.clone(), self.changes.get(name).cloned().unwrap_or_default()))
                .collect();
            self.owe(Owed::Changes(back));
            return Err(error.into());
        }
        self.note(changes);
        self.lending.edited(places);
        if moves_rows {
            self.settle_lent();
        }
        info!(limits = changes.len(), "limits changed");
        let facts = self.dataplane.plan().map(facts);
        if let (Some(held), Some(facts)) = (&mut self.held, facts) {
            held.facts = facts;
        }
        self.renumber();
        Ok(())
    }

    /// Rows that found no room were put into larger tables: a generation of its own.
    pub(super) fn renumber(&mut self) {
        let (Some(generation), Some(held)) = (self.dataplane.generation(), &mut self.held) else { return };
        if held.record.generation != generation {
            held.record.generation = generation;
            let since_unix_ns = held.record.since_unix_ns;
            self.owe(Owed::Number(generation, since_unix_ns));
        }
    }
}

/// Whether a plan that had so many rows has edits which were said to have failed. New rows are its last ones: it is not looked through.
pub(super) fn has_taken(plan: &Plan, rows: usize, edits: &[Edit]) -> bool {
    let mut new = plan.entries.iter().skip(rows);
    edits.iter().all(|edit| match edit {
        Edit::SetRate { limit, rate_bps } => crate::difference::rate_and_profile(plan, *limit).0 == *rate_bps,
        Edit::Remove { row } => plan.entries.get(*row as usize).is_none_or(|entry| entry.rate == 0),
        Edit::Add { entry, .. } => {
            new.next().is_some_and(|new| (new.tuple, new.value, new.rate) == (entry.tuple, entry.value, entry.rate))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_algo::wire;
    use penstock_policy::plan::PlanEntry;

    #[test]
    fn edits_that_happened_are_told_from_those_that_did_not_without_looking_through_all_rows() {
        const ROWS: usize = 1_000_000;
        let entry = |row: u64| {
            let mut entry =
                PlanEntry { tuple: 0, rate: 1, rate_bps: 1_000_000, profile: 0, value: wire::Key::default() };
            entry.value.words[0] = row;
            entry
        };
        let all = ROWS as u64 + 100_000;
        let adds = (ROWS as u64..all).map(|row| Edit::Add { name: String::new(), entry: entry(row) });
        let edits: Vec<Edit> = adds.chain([Edit::Remove { row: 7 }]).collect();
        let mut plan = Plan { entries: (0..all).map(entry).collect(), ..Plan::default() };
        let started = std::time::Instant::now();
        assert!(!has_taken(&plan, ROWS, &edits), "the row is still there");
        plan.entries[7].rate = 0;
        assert!(has_taken(&plan, ROWS, &edits));
        plan.entries.pop();
        assert!(!has_taken(&plan, ROWS, &edits));
        // Looking through all rows for each one takes minutes.
        assert!(started.elapsed().as_secs() < 10);
    }
}
