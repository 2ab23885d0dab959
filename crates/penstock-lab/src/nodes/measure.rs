// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is made of what arrived, a millisecond exactly.

use super::spec::{Fault, Network};
use crate::results::Metrics;
use crate::stats::mean;
use std::time::Duration;

/// Limits are judged by windows of a second,
const SECOND: usize = 1000;
/// that begin so often, ms;
const STEP: usize = 100;
/// rates that grow by windows of so much, ms;
const SERVED: usize = 100;
/// and a rate that has come back by this, ms.
const STEADY: usize = 500;
/// The part of a rate that is all of it.
const ENOUGH: f64 = 0.95;
/// What a flow has at its end: the mean of so much, ms.
const FINAL: usize = 2000;
/// How long after a fault's end everything must be whole again.
const WHOLE_MS: usize = 5000;

/// Bytes by millisecond, of which sums are cheap.
#[derive(Debug, Clone)]
pub struct Arrived(Vec<f64>);

impl Arrived {
    /// What arrived of several together.
    #[must_use]
    pub fn sum(of: &[&Vec<f64>], length: usize) -> Self {
        let mut sums = vec![0.0; length + 1];
        for at in 0..length {
            sums[at + 1] = sums[at] + of.iter().filter_map(|bytes| bytes.get(at)).sum::<f64>();
        }
        Self(sums)
    }

    fn length(&self) -> usize {
        self.0.len() - 1
    }

    /// Mbit/s between two moments, ms.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // a run is far shorter than 2^53 ms
    pub fn rate(&self, from: usize, to: usize) -> f64 {
        let (from, to) = (from.min(self.length()), to.min(self.length()));
        if to <= from { 0.0 } else { (self.0[to] - self.0[from]) * 8.0 / 1e3 / (to - from) as f64 }
    }

    /// The first moment from `from` on at which a window of `width` begins that has `least` Mbit/s; its end.
    fn reaches(&self, from: usize, width: usize, least: f64) -> Option<usize> {
        (from..=self.length().saturating_sub(width)).find(|at| self.rate(*at, at + width) >= least).map(|at| at + width)
    }
}

/// As an index of milliseconds.
#[must_use]
pub fn milliseconds(time: Duration) -> usize {
    usize::try_from(time.as_millis()).unwrap_or(usize::MAX)
}

#[allow(clippy::cast_precision_loss)] // as above
fn real(milliseconds: usize) -> f64 {
    milliseconds as f64
}

/// A move of demand: when, how long it lasts, and how long it took until it was served; none if it never was.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Move {
    at: usize,
    served: Option<usize>,
}

/// Moves, in the order of time: flows that begin after the first ones. What a flow has at its end it has before a fault that begins meanwhile.
fn moves(network: &Network, faults: &[Fault], arrived: &[Vec<f64>], length: usize) -> Vec<Move> {
    let of_flow = network.flows.iter().zip(arrived).map(|(flow, bytes)| {
        let (at, end) = (milliseconds(flow.start.duration()), milliseconds(flow.stop.duration()).min(length));
        let begins =
            faults.iter().map(|fault| milliseconds(fault.at.duration())).filter(|begin| (at..end).contains(begin));
        let end = begins.min().unwrap_or(end);
        let arrived = Arrived::sum(&[bytes], end);
        let settled = arrived.rate(end.saturating_sub(FINAL).max(at), end);
        let served = arrived.reaches(at, SERVED, ENOUGH * settled).filter(|_| settled > 0.0);
        Move { at, served: served.map(|served| served - at) }
    });
    let mut moves: Vec<Move> = of_flow.filter(|one| (1..length).contains(&one.at)).collect();
    moves.sort_by_key(|one| one.at);
    moves
}

/// Metrics of all classes together, where they have a limit.
#[must_use]
pub fn of_limit(network: &Network, faults: &[Fault], arrived: &[Vec<f64>], length: usize) -> Metrics {
    let Some(limit) = network.together else { return Metrics::new() };
    let limit = limit.bps() / 1e6;
    let all = Arrived::sum(&arrived.iter().collect::<Vec<_>>(), length);
    let warm = milliseconds(network.warmup.duration());
    let moves = moves(network, faults, arrived, length);
    let shadows: Vec<(usize, usize)> = faults.iter().map(shadow).collect();
    let is_quiet = |from: usize, to: usize| {
        let of_moves = moves.iter().map(|one| (one.at, one.at + SECOND));
        of_moves.chain(shadows.iter().copied()).all(|(begin, end)| to <= begin || from >= end)
    };
    let starts = (warm..=length.saturating_sub(SECOND)).step_by(STEP);
    let share = |at: usize| 100.0 * all.rate(at, at + SECOND) / limit;
    let quiet: Vec<f64> = starts.clone().filter(|at| is_quiet(*at, at + SECOND)).map(share).collect();
    let mut metrics = Metrics::from([
        ("limit_mean".to_owned(), 100.0 * all.rate(warm, length) / limit),
        ("limit_most".to_owned(), starts.map(share).fold(0.0, f64::max)),
    ]);
    if !quiet.is_empty() {
        metrics.insert("limit_quiet_least".to_owned(), quiet.iter().copied().fold(f64::INFINITY, f64::min));
        metrics.insert("limit_quiet_most".to_owned(), quiet.iter().copied().fold(0.0, f64::max));
    }
    let is_shadowed = |one: &&Move| shadows.iter().any(|(begin, end)| (*begin..*end).contains(&one.at));
    let served: Vec<f64> =
        moves.iter().filter(|one| !is_shadowed(one)).map(|one| real(one.served.unwrap_or(length))).collect();
    if !served.is_empty() {
        metrics.insert("served_mean".to_owned(), mean(&served));
        metrics.insert("served_most".to_owned(), served.iter().copied().fold(0.0, f64::max));
    }
    for fault in faults {
        let end = milliseconds(fault.until.unwrap_or(fault.at).duration());
        let back = all.reaches(end, STEADY, ENOUGH * limit).map_or(length, |at| at - STEADY - end);
        let (from, to) = shadow(fault);
        let late = moves.iter().filter(|one| (from..to).contains(&one.at));
        // Demand that moved while the fault lasted has waited since its end, new demand since it came.
        let late =
            late.map(|one| one.served.map_or(length, |served| (one.at + served).saturating_sub(end.max(one.at))));
        let during = (from..to.min(length).saturating_sub(SECOND)).step_by(STEP).map(share);
        metrics.insert("whole".to_owned(), real(late.fold(back, usize::max)));
        metrics.insert("during_most".to_owned(), during.fold(0.0, f64::max));
    }
    metrics
}

/// From the beginning of a fault until everything must be whole again.
fn shadow(fault: &Fault) -> (usize, usize) {
    let end = fault.until.unwrap_or(fault.at);
    (milliseconds(fault.at.duration()), milliseconds(end.duration()) + WHOLE_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::spec::{Flow, Protocol, What};
    use crate::quantity::{Rate, Time};
    use std::collections::BTreeMap;

    fn second(seconds: u64) -> Time {
        Time(seconds * 1_000_000_000)
    }

    fn network() -> Network {
        let flow = |start, stop| Flow {
            class: "a".to_owned(),
            from: "gw1".to_owned(),
            to: None,
            start: second(start),
            stop: second(stop),
            load: Protocol::Tcp,
            rate: None,
            connections: 1,
        };
        Network {
            nodes: 1,
            link: Rate(1_000_000_000),
            links: BTreeMap::new(),
            terms: String::new(),
            together: Some(Rate(8_000_000)),
            tcp: "cubic".to_owned(),
            ecn: false,
            etcd: 1,
            controllers: 1,
            lease: second(5),
            bin: Time(100_000_000),
            warmup: second(0),
            flows: vec![flow(0, 5), flow(5, 20)],
            phases: Vec::new(),
        }
    }

    /// 8 Mbit/s are 1000 bytes a millisecond: all of it, but for what is said.
    fn arrived(second_is_served_from: usize) -> Vec<Vec<f64>> {
        let bytes =
            |from: usize, to: usize| (0..20_000).map(move |at| if (from..to).contains(&at) { 1000.0 } else { 0.0 });
        vec![bytes(0, 5000).collect(), bytes(second_is_served_from, 20_000).collect()]
    }

    #[test]
    fn a_move_is_served_when_it_has_what_it_has_at_its_end() {
        let metrics = of_limit(&network(), &[], &arrived(5600), 20_000);
        assert_eq!((metrics["served_most"], metrics["limit_most"]), (695.0, 100.0), "{metrics:?}");
        assert_eq!(
            (metrics["limit_quiet_least"], metrics["limit_mean"]),
            (100.0, 97.0),
            "the second after a move is none"
        );
        let late = of_limit(&network(), &[], &arrived(6500), 20_000);
        assert!(late["limit_quiet_least"] < 60.0 && late["served_most"] > 1500.0, "{late:?}");
        let mut above = arrived(5000);
        above[0].iter_mut().take(1000).for_each(|bytes| *bytes = 1050.0);
        assert_eq!(of_limit(&network(), &[], &above, 20_000)["limit_most"], 105.0);
    }

    #[test]
    fn after_a_fault_all_is_whole_when_the_sum_is_back_and_demand_is_followed() {
        let fault = |at: u64, until| Fault { at: second(at), until, what: What::LeaderKilled, node: None };
        let killed = of_limit(&network(), &[fault(4, None)], &arrived(8000), 20_000);
        assert_eq!(killed["whole"], 3095.0, "demand moved a second after the fault");
        assert!(!killed.contains_key("served_most"), "it moved in the fault's shadow: {killed:?}");
        let cut = of_limit(&network(), &[fault(4, Some(second(7)))], &arrived(8000), 20_000);
        assert_eq!(cut["whole"], 1095.0, "demand that moved meanwhile waits from the fault's end");
        assert_eq!(cut["during_most"], 100.0);
    }
}
