// SPDX-License-Identifier: MIT OR Apache-2.0
//! The upper loop of shares: every 16 ms it is looked for who sends nothing any more (HSDBA, section 4.5). How well the daemon keeps that up
//! is measured here.

use penstock_api::v1;
use penstock_dataplane::Times;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Between one time and the next: the data plane asks for 10 to 20 ms.
pub const PERIOD: Duration = Duration::from_millis(16);
/// How often it is looked whether there is anything to tend, while there is not.
pub const IDLE_PERIOD: Duration = Duration::from_millis(250);
/// Times that are remembered: a minute of them.
const KEPT_MAX: usize = 3_750;

/// What came of the loop, since a policy that shares is in force.
#[derive(Debug, Default)]
pub struct Tended {
    last: Option<Instant>,
    times: u64,
    nodes: u64,
    /// Lately, ns: the oldest first.
    periods: VecDeque<u64>,
    costs: VecDeque<u64>,
    all: Histograms,
}

/// Of all times.
#[derive(Debug, Clone, Default)]
pub struct Histograms {
    /// From one time to the next.
    pub periods: Times,
    /// How long it took.
    pub costs: Times,
}

impl Tended {
    /// It was done, from one moment to another, and so many nodes were looked at.
    pub fn add(&mut self, from: Instant, to: Instant, nodes: u64) {
        if let Some(last) = self.last.replace(from) {
            note(&mut self.periods, &mut self.all.periods, from.saturating_duration_since(last));
        }
        note(&mut self.costs, &mut self.all.costs, to.saturating_duration_since(from));
        self.times += 1;
        self.nodes = nodes;
    }

    /// As the API tells it; none while nothing was tended.
    #[must_use]
    pub fn message(&self) -> Option<v1::Tending> {
        (self.times > 0).then(|| v1::Tending {
            times: self.times,
            period_mean_ns: mean(&self.periods),
            period_p99_ns: p99(&self.periods),
            cost_mean_ns: mean(&self.costs),
            cost_max_ns: self.costs.iter().copied().max().unwrap_or(0),
            nodes: self.nodes,
        })
    }

    /// Histograms of all times.
    #[must_use]
    pub fn histograms(&self) -> &Histograms {
        &self.all
    }
}

fn note(lately: &mut VecDeque<u64>, all: &mut Times, time: Duration) {
    let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    if lately.len() == KEPT_MAX {
        lately.pop_front();
    }
    lately.push_back(time_ns);
    all.sum_ns = all.sum_ns.saturating_add(time_ns);
    let last = all.counts.len() - 1;
    let bucket = (0..last).find(|&index| time_ns <= 1000 << index).unwrap_or(last);
    all.counts[bucket] += 1;
}

fn mean(times: &VecDeque<u64>) -> u64 {
    times.iter().sum::<u64>() / (times.len() as u64).max(1)
}

/// The least time that 99 of 100 do not pass; 0 without any.
fn p99(times: &VecDeque<u64>) -> u64 {
    let mut sorted: Vec<u64> = times.iter().copied().collect();
    sorted.sort_unstable();
    let rank = (sorted.len() * 99).div_ceil(100);
    rank.checked_sub(1).and_then(|at| sorted.get(at)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_from_start_to_start_and_the_oldest_are_forgotten() {
        let start = Instant::now();
        let mut tended = Tended::default();
        assert_eq!(tended.message(), None);
        // 100 periods: 98 of 16 ms, two of 20 ms. Each takes 10 us, and one 90 us.
        let mut at = start;
        for index in 0..=100_u64 {
            let cost = Duration::from_micros(if index == 7 { 90 } else { 10 });
            tended.add(at, at + cost, 71);
            at += Duration::from_millis(if index >= 98 { 20 } else { 16 });
        }
        let told = tended.message().unwrap_or_default();
        assert_eq!((told.times, told.nodes), (101, 71));
        assert_eq!((told.period_mean_ns, told.period_p99_ns), (16_080_000, 20_000_000));
        assert_eq!((told.cost_mean_ns, told.cost_max_ns), ((100 * 10_000 + 90_000) / 101, 90_000));
        let all = tended.histograms();
        assert_eq!((all.periods.counts[14], all.periods.counts[15]), (98, 2), "16.384 ms is a bound");
        assert_eq!((all.costs.counts[4], all.costs.counts[7], all.costs.sum_ns), (100, 1, 1_090_000));
        for _ in 0..KEPT_MAX {
            at += Duration::from_millis(10);
            tended.add(at, at, 1);
        }
        let told = tended.message().unwrap_or_default();
        assert_eq!((told.period_p99_ns, told.cost_max_ns), (10_000_000, 0));
    }
}
