// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limiters that go on from one generation's tables to the next one's.

use crate::same::Same;
use penstock_algo::plane::Place;
use penstock_algo::wire;

/// Where each limiter that goes on lies, in the old tables and in the new ones. `old_slots` and `new_slots` are by row.
pub(crate) fn places(same: &Same, old_slots: &[u32], new_slots: &[u32]) -> Vec<(Place, Place)> {
    let slot = |slots: &[u32], row: usize| slots.get(row).copied().filter(|&slot| slot != wire::PST_NONE);
    let rows = same.rows.iter().enumerate().filter_map(|(row, was)| {
        let from = slot(old_slots, (*was)? as usize)?;
        Some((Place::Slot(from), Place::Slot(slot(new_slots, row)?)))
    });
    let limits = (0_u32..).zip(&same.limits);
    let limits = limits.filter_map(|(limit, was)| Some((Place::Limit((*was)?), Place::Limit(limit))));
    rows.chain(limits).collect()
}
