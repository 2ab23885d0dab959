// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of fair shares in a plane: nodes of trees, slices, the sketch of users without entries.

use super::{Parts, Rng};
use crate::cells::Cells;
use crate::wire;

/// Countdowns of TCP flows that are above their share (`fairdrop.h`): flows that share one share its drops.
const COUNTDOWNS: usize = 1 << 16;

/// What changes with packets.
#[derive(Debug)]
pub(crate) struct Shares {
    pub nodes: Cells<wire::TreeNode>,
    pub slices: Cells<wire::Slice>,
    pub filters: Cells<u64>,
    pub countdowns: Cells<u64>,
    pub sketch: wire::Sketch,
}

impl Shares {
    /// Nobody has sent anything. Draws the sketch's seeds, where there is one.
    pub fn new(parts: &Parts, rng: &mut Rng) -> Self {
        let places = parts.places.len();
        let nodes = if places == 0 { 0 } else { places + parts.user_count as usize };
        let mut sketch = parts.sketch;
        let filters = if parts.slices.is_empty() { 0 } else { (sketch.rows as usize) << sketch.column_bits };
        if filters > 0 {
            sketch.seeds.fill_with(|| rng.next_u64());
        }
        let is_periodic = |slice: &wire::Slice| slice.flags & wire::PST_SLICE_PERIODIC != 0;
        let countdowns = if parts.slices.iter().any(is_periodic) { COUNTDOWNS } else { 0 };
        Self {
            nodes: Cells::new(nodes),
            slices: Cells::Owned(parts.slices.clone()),
            filters: Cells::new(filters),
            countdowns: Cells::new(countdowns),
            sketch,
        }
    }
}
