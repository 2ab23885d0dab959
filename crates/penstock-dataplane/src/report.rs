// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who got what: the result of a replay, as numbers and as JSON (`replay --json`).

use crate::counters::ByMode;
use serde::Serialize;
use std::collections::BTreeMap;

/// Above this many limits, only those that saw a packet are listed.
pub const LISTED_LIMITS_MAX: usize = 100_000;

/// The result of a replay. Counts are packets or bytes, rates bits/s, times nanoseconds.
///
/// It is about the whole replay, also when policies followed each other. Names, rates and the order of what is listed are those of
/// the policy in force at its end:
///
/// - A class or a link that stayed under its path counts from the beginning, a new one from when it came. One that is gone is
///   listed behind them, with what it counted and without a limit; when it comes back, it goes on. So the packets of all classes
///   and those that none took are always all packets.
/// - A limit that stayed (a class's own with its class, a row with its class and key) counts from the beginning, also over another
///   rate or mode; with another kind of meter it is a new one. One that is gone is not listed; what it counted is in its class.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// `name` of the policy: of the last one.
    pub policy: String,
    /// Packets read.
    pub packets: u64,
    /// Their bytes: IP packet plus the link's overhead.
    pub bytes: u64,
    /// From the first packet to the last.
    pub duration_ns: u64,
    /// Policies that took the place of another.
    pub reloads: Vec<ReloadReport>,
    /// Links, in the policy's order, and then those that are gone.
    pub links: Vec<LinkReport>,
    /// Classes, in the policy's order, and then those that are gone.
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

/// A policy that took the place of another.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ReloadReport {
    /// When, since the first packet.
    pub time_ns: u64,
    /// Its name.
    pub policy: String,
    /// Limits that kept their state.
    pub limits_kept: u64,
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
    /// Whether its classes share it.
    pub shares: bool,
    /// What they asked for at the end; 0 where they share nothing.
    pub demand_bps: u64,
    /// See [`ClassReport::fairness`].
    pub fairness: Option<f64>,
}

/// The users of a class, at the end.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct UsersReport {
    /// Those who sent, of users with entries.
    pub active: u64,
    /// Entries that there are; 0: users have none.
    pub entries: u64,
    /// Without entries: what each user might send, for a weight of 1.
    pub limit_bps: Option<u64>,
}

/// What a class got.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ClassReport {
    /// Link and class.
    pub path: String,
    /// The class that it is a child of.
    pub parent: Option<String>,
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
    /// What it may have of its link, as its last packet found it; 0 where its link shares nothing.
    pub share_bps: u64,
    /// What it asked for at the end; 0 where its link shares nothing.
    pub demand_bps: u64,
    /// Its own limit, or 0.
    pub limit_bps: u64,
    /// Jain's index of what passed, over the whole replay and by weight, of its children that ask for more than their fair share at the end; of a class
    /// whose users have entries, of these. None where there is none.
    pub fairness: Option<f64>,
    /// Of a class that has users.
    pub users: Option<UsersReport>,
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

impl ClassReport {
    /// A class from what was counted at it and at its limits.
    pub(crate) fn new(path: &str, limit_bps: u64, counters: &ByMode) -> Self {
        let (all, (passed_packets, passed_bytes)) = (counters.sum(), counters.passed());
        Self {
            path: path.to_owned(),
            parent: None,
            offered_packets: all.offered_packets,
            offered_bytes: all.offered_bytes,
            passed_packets,
            passed_bytes,
            marked_packets: all.marked_packets,
            dropped_packets: all.dropped_packets,
            held_packets: all.held_packets,
            share_bps: 0,
            demand_bps: 0,
            limit_bps,
            fairness: None,
            users: None,
        }
    }

    /// Adds what a child counted.
    pub(crate) fn add(&mut self, child: &Self) {
        self.offered_packets += child.offered_packets;
        self.offered_bytes += child.offered_bytes;
        self.passed_packets += child.passed_packets;
        self.passed_bytes += child.passed_bytes;
        self.marked_packets += child.marked_packets;
        self.dropped_packets += child.dropped_packets;
        self.held_packets += child.held_packets;
    }
}

impl LimitReport {
    /// A limit from its counters.
    pub(crate) fn new(name: &str, class: &str, rate_bps: u64, counters: &ByMode) -> Self {
        let (all, (passed_packets, passed_bytes)) = (counters.sum(), counters.passed());
        Self {
            name: name.to_owned(),
            class: class.to_owned(),
            rate_bps,
            offered_packets: all.offered_packets,
            offered_bytes: all.offered_bytes,
            passed_packets,
            passed_bytes,
            green_packets: all.green_packets,
            yellow_packets: all.yellow_packets,
            red_packets: all.offered_packets - all.green_packets - all.yellow_packets,
            marked_packets: all.marked_packets,
            dropped_packets: all.dropped_packets,
            held_packets: all.held_packets,
        }
    }
}
