// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which packets are in which series of a timeline: named once, found anew in every policy.

use penstock_algo::wire;
use penstock_policy::Plan;
use std::collections::HashMap;

#[derive(Debug, Default)]
pub(super) struct Series {
    generation: Option<u64>,
    /// By class.
    classes: Vec<Option<usize>>,
    /// By row, of those that have one.
    rows: HashMap<usize, usize>,
}

impl Series {
    /// Looks for the named classes and rows in the policy of a generation.
    pub fn follow(&mut self, generation: u64, plan: &Plan, names: &[String]) {
        if self.generation.replace(generation) == Some(generation) {
            return;
        }
        let series: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
        self.classes = plan.classes.iter().map(|class| series.get(class.path.as_str()).copied()).collect();
        let classes: Vec<usize> = self.classes.iter().flatten().copied().collect();
        let of_row = |row: usize| series.get(plan.names.get(row)).filter(|series| !classes.contains(series));
        self.rows = (0..plan.names.len()).filter_map(|row| Some((row, *of_row(row)?))).collect();
    }

    /// Those that a packet belongs to.
    pub fn of(&self, class_index: u32, row: Option<usize>) -> impl Iterator<Item = usize> {
        let class = self.classes.get(class_index as usize).copied().flatten();
        let row = row.and_then(|row| self.rows.get(&row)).copied();
        debug_assert!(class.is_none() || class_index != wire::PST_NONE);
        class.into_iter().chain(row)
    }
}
