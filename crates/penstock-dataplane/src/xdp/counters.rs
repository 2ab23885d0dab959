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

/// What was counted after `before`.
pub(super) fn since(now: &wire::pst_counters, before: &wire::pst_counters) -> wire::pst_counters {
    wire::pst_counters {
        offered_packets: now.offered_packets.wrapping_sub(before.offered_packets),
        offered_bytes: now.offered_bytes.wrapping_sub(before.offered_bytes),
        dropped_packets: now.dropped_packets.wrapping_sub(before.dropped_packets),
        dropped_bytes: now.dropped_bytes.wrapping_sub(before.dropped_bytes),
        green_packets: now.green_packets.wrapping_sub(before.green_packets),
        yellow_packets: now.yellow_packets.wrapping_sub(before.yellow_packets),
        marked_packets: now.marked_packets.wrapping_sub(before.marked_packets),
        held_packets: now.held_packets.wrapping_sub(before.held_packets),
    }
}

/// What several CPUs counted, together.
pub(super) fn sum(a: wire::pst_counters, b: wire::pst_counters) -> wire::pst_counters {
    wire::pst_counters {
        offered_packets: a.offered_packets + b.offered_packets,
        offered_bytes: a.offered_bytes + b.offered_bytes,
        dropped_packets: a.dropped_packets + b.dropped_packets,
        dropped_bytes: a.dropped_bytes + b.dropped_bytes,
        green_packets: a.green_packets + b.green_packets,
        yellow_packets: a.yellow_packets + b.yellow_packets,
        marked_packets: a.marked_packets + b.marked_packets,
        held_packets: a.held_packets + b.held_packets,
    }
}
