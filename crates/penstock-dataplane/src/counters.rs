// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums of counters, apart by mode: what a limit in shadow mode drops passes all the same.

use penstock_algo::wire;

/// Whether a limit only tells what it would do.
pub(crate) fn is_shadow(profile: &wire::Profile) -> bool {
    u32::from(profile.flags) & wire::PST_PROFILE_SHADOW != 0
}

/// Two counters, together.
pub(crate) fn sum(a: wire::pst_counters, b: wire::pst_counters) -> wire::pst_counters {
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

/// What was counted after `before`.
pub(crate) fn since(now: &wire::pst_counters, before: &wire::pst_counters) -> wire::pst_counters {
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

/// What was counted while limits were enforced, and while they were in shadow mode.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ByMode {
    pub enforced: wire::pst_counters,
    pub shadow: wire::pst_counters,
}

impl ByMode {
    pub fn new(shadow: bool, counters: wire::pst_counters, other: wire::pst_counters) -> Self {
        match shadow {
            false => Self { enforced: counters, shadow: other },
            true => Self { enforced: other, shadow: counters },
        }
    }

    pub fn add(&mut self, more: &Self) {
        self.enforced = sum(self.enforced, more.enforced);
        self.shadow = sum(self.shadow, more.shadow);
    }

    /// All that was counted.
    pub fn sum(&self) -> wire::pst_counters {
        sum(self.enforced, self.shadow)
    }

    pub fn offered_packets(&self) -> u64 {
        self.enforced.offered_packets + self.shadow.offered_packets
    }

    /// Packets and bytes that passed.
    pub fn passed(&self) -> (u64, u64) {
        let all = self.sum();
        (all.offered_packets - self.enforced.dropped_packets, all.offered_bytes - self.enforced.dropped_bytes)
    }
}
