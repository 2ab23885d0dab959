// SPDX-License-Identifier: MIT OR Apache-2.0
//! One system under one traffic.

use super::measure::{Bin, Measure, Passage};
use super::system::{Fate, System, Terms};
use super::traffic::Arrivals;
use super::{Candidate, Owners, Shaping};
use crate::quantity::Time;
use crate::results::{Metrics, Results, Row, Sample, Subject};
use crate::stats::real;
use crate::template::Values;
use penstock_algo::circulation::Params;

/// The first part of the time, which does not count: limits are all idle then, and windows those of the start.
const WARMUP_SHARE: u64 = 5;

/// When each limit's next packet should leave, were all shaped: what a deviation is measured from.
struct Schedule {
    cost_ns: f64,
    next_ns: Vec<f64>,
}

impl Schedule {
    fn due_ns(&self, limit: usize, now_ns: u64) -> f64 {
        self.next_ns[limit].max(real(now_ns))
    }
}

/// Packets that wait, by tag.
#[derive(Default)]
struct Passages {
    list: Vec<Passage>,
    free: Vec<u32>,
}

impl Passages {
    fn put(&mut self, passage: Passage) -> u32 {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.list.push(passage);
            u32::try_from(self.list.len() - 1).unwrap_or(u32::MAX)
        });
        self.list[tag as usize] = passage;
        tag
    }

    fn take(&mut self, tag: u32) -> Passage {
        self.free.push(tag);
        self.list[tag as usize]
    }
}

/// What came of a run.
pub struct Done {
    metrics: Metrics,
    bins: Vec<Bin>,
}

fn tune(candidate: &Candidate, params: &mut Params) {
    params.monitor_ns = candidate.monitor.map_or(params.monitor_ns, |time| time.0);
    params.h_ns = candidate.h.map_or(params.h_ns, |time| time.0);
    let alpha_ns = candidate.alpha.and_then(|time| u32::try_from(time.0).ok());
    params.alpha_ns = alpha_ns.unwrap_or(params.alpha_ns);
    #[allow(clippy::cast_possible_truncation)] // a small number in 2^-16
    if let Some(delta) = candidate.delta {
        params.delta_q16 = (delta * 65536.0).round() as i32;
    }
}

/// A system with the candidate's parameters.
pub fn system(candidate: &Candidate, terms: &Terms) -> System {
    System::new(candidate.system, terms, |params| tune(candidate, params))
}

/// Runs a system for a time.
pub fn run(shaping: &Shaping, candidate: &Candidate, terms: &Terms, time: Time) -> Done {
    let flows = shaping.flows();
    let flow_bps = shaping.flow_rate.bps();
    let mean_bps = flow_bps * f64::from(flows) * f64::from(shaping.load_percent) / 100.0;
    let mut arrivals = Arrivals::new(mean_bps, terms.bytes, shaping.bursts);
    let mut system = system(candidate, terms);
    let mut measure = Measure::new(flows as usize, terms.limiters, terms.bytes, time.0 / WARMUP_SHARE, time.0);
    let cost_ns = f64::from(terms.bytes) * 1e9 / real(terms.rate);
    let mut schedule = Schedule { cost_ns, next_ns: vec![0.0; terms.limiters] };
    let (mut passages, mut flow, mut look_ns) = (Passages::default(), 0, Measure::bin_ns());
    loop {
        let now_ns = arrivals.next_ns().min(time.0);
        while look_ns <= now_ns {
            drain(&mut system, &mut measure, &mut passages, look_ns);
            measure.look(look_ns - 1, &system);
            look_ns += Measure::bin_ns();
        }
        drain(&mut system, &mut measure, &mut passages, now_ns);
        if now_ns == time.0 {
            break;
        }
        let limit = if shaping.limits == Owners::Each { flow } else { 0 };
        measure.came(now_ns);
        let due_ns = schedule.due_ns(limit as usize, now_ns);
        let passage = Passage { flow, limit, came_ns: now_ns, due_ns: super::traffic::whole(due_ns) };
        let tag = passages.put(passage);
        let fate = system.offer(now_ns, limit as usize, tag);
        if fate != Fate::Dropped {
            schedule.next_ns[limit as usize] = due_ns + schedule.cost_ns;
        }
        if fate != Fate::Waits {
            measure.done(&passages.take(tag), fate);
        }
        flow = (flow + 1) % flows;
    }
    let metrics = measure.metrics(flow_bps, system.token_share() * 8.0 * real(terms.link));
    Done { metrics, bins: measure.bins().to_vec() }
}

fn drain(system: &mut System, measure: &mut Measure, passages: &mut Passages, until_ns: u64) {
    while let Some(done) = system.run(until_ns) {
        measure.done(&passages.take(done.tag), done.fate);
    }
}

impl Done {
    /// Adds a row, and where it is asked for the bins over time.
    pub fn report(self, series: &str, point: &Values, has_samples: bool, results: &mut Results) {
        let of = |tenant: &str| Subject { series: series.to_owned(), point: point.clone(), tenant: tenant.to_owned() };
        if has_samples {
            let (names, bin_ns) = (["received", "forwarded", "pipe0", "pipe1", "pipe2", "pipe3"], Measure::bin_ns());
            for (name, part) in names.into_iter().zip(0..) {
                for (bin, at) in self.bins.iter().zip(0_u64..) {
                    let bytes = [bin.came, bin.left, bin.passed[0], bin.passed[1], bin.passed[2], bin.passed[3]][part];
                    let value = real(bytes) * 8e3 / real(bin_ns);
                    let time_s = real(at * bin_ns) / 1e9;
                    results.samples.push(Sample { of: of(name), name: "passed", time_s, value });
                }
            }
        }
        results.rows.push(Row { of: of(""), run: 1, metrics: self.metrics });
    }
}
