// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who got what: the result of a replay, as numbers and as JSON (`replay --json`).

use penstock_algo::wire;
use serde::Serialize;
use std::collections::BTreeMap;

/// Above this many limits, only those that saw a packet are listed.
pub const LISTED_LIMITS_MAX: usize = 100_000;

/// The result of a replay. Counts are packets or bytes, rates bits/s, times nanoseconds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// `name` of the policy.
    pub policy: String,
    /// Packets read.
    pub packets: u64,
    /// Their bytes: IP packet plus the link's overhead.
    pub bytes: u64,
    /// From the first packet to the last.
    pub duration_ns: u64,
    /// Links, in the policy's order.
    pub links: Vec<LinkReport>,
    /// Classes, in the policy's order.
    pub classes: Vec<ClassReport>,
    /// Limits: those of classes, then the rows of limits files.
    pub limits: Vec<LimitReport>,
    /// Limits left out of `limits` because they saw no packet and there are more than [`LISTED_LIMITS_MAX`].
    pub limits_not_listed: u64,
    /// Packets by reason; `over_rate` is always there, others when they happened.
    pub reasons: BTreeMap<&'static str, u64>,
    /// Packets that no class took.
    pub unmatched_packets: u64,
    /// Packets that the parser refused.
    pub malformed_packets: u64,
    /// Packets whose headers the capture's snap length cut.
    pub cut_packets: u64,
    /// Time stamps that went backwards and were clamped to the latest one seen.
    pub clamped_timestamps: u64,
    /// Why the input ended early, if it did.
    pub ended_early: Option<String>,
    /// Seed of every random draw.
    pub seed: u64,
}

/// What went over one link.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LinkReport {
    /// Its name.
    pub name: String,
    /// Its rate.
    pub rate_bps: u64,
    /// Packets that it took.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that passed.
    pub passed_packets: u64,
    /// Their bytes.
    pub passed_bytes: u64,
}

/// What a class got.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ClassReport {
    /// Link and class.
    pub path: String,
    /// Packets that matched.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that passed, marked ones included.
    pub passed_packets: u64,
    /// Their bytes.
    pub passed_bytes: u64,
    /// Packets that passed with CE or another DSCP.
    pub marked_packets: u64,
    /// Packets dropped; with `mode: shadow`, those that would have been.
    pub dropped_packets: u64,
    /// Packets that waited.
    pub held_packets: u64,
    /// The class's fair share; 0 while shares are not computed.
    pub share_bps: u64,
    /// Its own limit, or 0.
    pub limit_bps: u64,
}

/// What a limit did.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LimitReport {
    /// Name of the row, or of the class that has the limit.
    pub name: String,
    /// Path of its class.
    pub class: String,
    /// Its rate.
    pub rate_bps: u64,
    /// Packets that it judged.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that passed, marked ones included.
    pub passed_packets: u64,
    /// Their bytes.
    pub passed_bytes: u64,
    /// Within the committed depth.
    pub green_packets: u64,
    /// Within the excess depth.
    pub yellow_packets: u64,
    /// Above both.
    pub red_packets: u64,
    /// Passed with CE or another DSCP.
    pub marked_packets: u64,
    /// Dropped; with `mode: shadow`, those that would have been.
    pub dropped_packets: u64,
    /// Waited.
    pub held_packets: u64,
}

/// Passed packets and bytes of a counter: in shadow mode all of them.
#[must_use]
pub fn passed(counters: &wire::pst_counters, shadow: bool) -> (u64, u64) {
    if shadow {
        (counters.offered_packets, counters.offered_bytes)
    } else {
        (counters.offered_packets - counters.dropped_packets, counters.offered_bytes - counters.dropped_bytes)
    }
}

impl ClassReport {
    /// Adds packets that were counted at the class, at its limit, or at one of its rows.
    pub fn add(&mut self, counters: &wire::pst_counters, shadow: bool) {
        let (passed_packets, passed_bytes) = passed(counters, shadow);
        self.offered_packets += counters.offered_packets;
        self.offered_bytes += counters.offered_bytes;
        self.passed_packets += passed_packets;
        self.passed_bytes += passed_bytes;
        self.marked_packets += counters.marked_packets;
        self.dropped_packets += counters.dropped_packets;
        self.held_packets += counters.held_packets;
    }
}

impl LimitReport {
    /// A row from its counters.
    #[must_use]
    pub fn new(name: &str, class: &str, rate_bps: u64, counters: &wire::pst_counters, shadow: bool) -> Self {
        let (passed_packets, passed_bytes) = passed(counters, shadow);
        Self {
            name: name.to_owned(),
            class: class.to_owned(),
            rate_bps,
            offered_packets: counters.offered_packets,
            offered_bytes: counters.offered_bytes,
            passed_packets,
            passed_bytes,
            green_packets: counters.green_packets,
            yellow_packets: counters.yellow_packets,
            red_packets: counters.offered_packets - counters.green_packets - counters.yellow_packets,
            marked_packets: counters.marked_packets,
            dropped_packets: counters.dropped_packets,
            held_packets: counters.held_packets,
        }
    }
}
