// SPDX-License-Identifier: MIT OR Apache-2.0
//! How limits follow a change of who sends: the same for virtual time and for polls of a kernel.

use super::fill::{Node, fill};
use crate::results::{ALL, Metrics};
use crate::stats::{mean, real};

/// How far a limit or a share may be off and still is right.
const NEAR: f64 = 0.1;

/// How limits followed a change of who sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Whether somebody came.
    pub is_join: bool,
    /// Until all of them were right for the first time.
    pub first_ns: Option<u64>,
    /// Until they were for good.
    pub stays_ns: Option<u64>,
    /// Packets that those who came had sent by then, that one included.
    pub newcomers_packets: u64,
    /// How long all limits have to be right to have been right for good.
    held_ns: u64,
}

impl Change {
    /// One after which nobody has looked yet. None where nobody sent before, or nobody does after it.
    pub fn between(before: &[usize], after: &[usize], held_ns: u64) -> Option<Self> {
        let is_join = after.iter().any(|flow| !before.contains(flow));
        let change = Self { is_join, first_ns: None, stays_ns: None, newcomers_packets: 0, held_ns };
        (!before.is_empty() && !after.is_empty()).then_some(change)
    }

    /// Takes in whether all limits were right, so long after the change.
    pub fn look(&mut self, are_right: bool, since_ns: u64, newcomers_packets: impl FnOnce() -> u64) {
        if self.is_over(since_ns) {
            return;
        }
        if !are_right {
            (self.stays_ns, self.newcomers_packets) = (None, 0);
            return;
        }
        self.first_ns.get_or_insert(since_ns);
        if self.stays_ns.is_none() {
            (self.stays_ns, self.newcomers_packets) = (Some(since_ns), newcomers_packets());
        }
    }

    /// Whether limits have been right for long enough, so long after the change.
    pub fn is_over(&self, since_ns: u64) -> bool {
        self.stays_ns.is_some_and(|stays_ns| since_ns - stays_ns >= self.held_ns)
    }
}

/// Whether a limit is right for whom asks for so much.
pub fn is_right(limit_bps: f64, fair_bps: f64, asked_bps: f64) -> bool {
    // Whoever has all it asks for may be allowed more.
    limit_bps >= (1.0 - NEAR) * fair_bps && (fair_bps >= 0.9999 * asked_bps || limit_bps <= (1.0 + NEAR) * fair_bps)
}

/// Exact shares of all flows when those that send ask for so much: `places` are theirs in the tree.
pub fn fair_bps((nodes, places): &(Vec<Node>, Vec<usize>), asked: impl Iterator<Item = (usize, f64)>) -> Vec<f64> {
    let mut nodes = nodes.clone();
    for (flow, asked_bps) in asked {
        nodes[places[flow]].demand = asked_bps;
    }
    let got = fill(&nodes);
    places.iter().map(|&place| got[place]).collect()
}

/// Numbers of all changes, and of joins and of leaves where there are some.
pub fn metrics_by_kind(changes: &[Change]) -> Vec<(&'static str, Metrics)> {
    let (joins, leaves): (Vec<Change>, Vec<Change>) = changes.iter().partition(|change| change.is_join);
    let kinds = [(ALL, metrics(changes)), ("joins", metrics(&joins)), ("leaves", metrics(&leaves))];
    kinds.into_iter().filter(|(_, metrics)| !metrics.is_empty()).collect()
}

/// Times until limits were right; of changes after which they never were, the end counts nowhere but in `unsettled`.
fn metrics(changes: &[Change]) -> Metrics {
    if changes.is_empty() {
        return Metrics::new();
    }
    let milliseconds = |of: fn(&Change) -> Option<u64>| {
        changes.iter().filter_map(of).map(|time_ns| real(time_ns) / 1e6).collect::<Vec<f64>>()
    };
    let (first, stays) = (milliseconds(|it| it.first_ns), milliseconds(|it| it.stays_ns));
    let most = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
    let unsettled = changes.iter().filter(|change| change.stays_ns.is_none()).count();
    let mut metrics = Metrics::from([("unsettled".to_owned(), real(unsettled as u64))]);
    for (name, times) in [("first", first), ("stays", stays)].into_iter().filter(|(_, times)| !times.is_empty()) {
        metrics.insert(format!("{name}_mean"), mean(&times));
        metrics.insert(format!("{name}_most"), most(&times));
    }
    let joined = changes.iter().filter(|change| change.is_join && change.stays_ns.is_some());
    let packets: Vec<f64> = joined.map(|change| real(change.newcomers_packets)).collect();
    if !packets.is_empty() {
        metrics.insert("newcomers_packets_mean".to_owned(), mean(&packets));
        metrics.insert("newcomers_packets_most".to_owned(), most(&packets));
    }
    metrics
}
