// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of each limit, in memory that the kernel and this process share: no system call to read one.

use super::memory::SharedArray;
use penstock_algo::plane::{Place, buckets_for};
use penstock_algo::wire;
use std::sync::atomic::Ordering;

/// Rows of limits files up to which each limit is counted unless [`super::LoadOptions`] says otherwise: 10 MB of counters. Beyond,
/// a packet would pay for one more cache miss.
pub const COUNTED_ROWS_MAX: u32 = 131_072;

/// Whether a table of so many buckets is for no more than [`COUNTED_ROWS_MAX`] rows.
pub(super) fn counts_by_default(limiter_buckets: usize) -> bool {
    limiter_buckets <= buckets_for(COUNTED_ROWS_MAX) as usize
}

/// By slot of the limiter table, and by limit of a class.
#[derive(Debug)]
pub(super) struct LimitCounters {
    pub slots: SharedArray<wire::pst_counters>,
    pub limits: SharedArray<wire::pst_counters>,
}

impl LimitCounters {
    /// Adds what was counted at one slot to another's, and leaves the first empty. Each number moves in one step.
    pub fn shift(&self, from_slot: usize, to_slot: usize) {
        for (from, to) in self.slots.words(from_slot).iter().zip(self.slots.words(to_slot)) {
            to.fetch_add(from.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Adds to what was counted at a limiter.
    pub fn add(&self, place: Place, more: &wire::pst_counters) {
        let words = match place {
            Place::Slot(slot) => self.slots.words(slot as usize),
            Place::Limit(limit) => self.limits.words(limit as usize),
        };
        let more = [
            more.offered_packets,
            more.offered_bytes,
            more.dropped_packets,
            more.dropped_bytes,
            more.green_packets,
            more.yellow_packets,
            more.marked_packets,
            more.held_packets,
        ];
        for (word, more) in words.iter().zip(more) {
            word.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Forgets what was counted at a slot.
    pub fn clear(&self, slot: usize) {
        self.slots.words(slot).iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }
}
