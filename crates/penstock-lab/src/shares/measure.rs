// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of a run: each group in each part of the time, all of it, and how limits followed.

use super::changes::{Change, metrics_by_kind};
use super::flows::{Flows, Part};
use super::run::{Done, PartDone};
use crate::results::{ALL, Metrics, Results, Row, Sample, Subject};
use crate::stats::{mean, real};
use crate::template::Values;

/// Adds a run's rows and samples.
pub fn report(done: &Done, flows: &Flows, series: &str, point: &Values, results: &mut Results) {
    let of = |tenant: &str| Subject { series: series.to_owned(), point: point.clone(), tenant: tenant.to_owned() };
    let mut add = |tenant: &str, metrics: Metrics| results.rows.push(Row { of: of(tenant), run: 1, metrics });
    let mut errors = Vec::new();
    for (part, got) in flows.parts.iter().zip(&done.parts).filter(|(_, got)| got.seconds > 0.0) {
        for (group, name) in flows.groups.iter().enumerate() {
            let members = || part.active.iter().copied().filter(|&flow| flows.flows[flow].group == group);
            if members().next().is_none() {
                continue;
            }
            let tenant = if flows.parts.len() > 1 { format!("{name} {}", span(part)) } else { name.clone() };
            add(&tenant, group_metrics(got, &members().collect::<Vec<_>>()));
        }
        let of_part: Vec<f64> = part.active.iter().map(|&flow| got.error(flow)).collect();
        if flows.parts.len() > 1 && !of_part.is_empty() {
            let share_error = ("share_error".to_owned(), mean(&of_part));
            add(
                &format!("{ALL} {}", span(part)),
                Metrics::from([share_error, ("used_least".to_owned(), got.used_share(part))]),
            );
        }
        errors.extend(of_part);
    }
    let parts =
        || flows.parts.iter().zip(&done.parts).filter(|(part, got)| got.seconds > 0.0 && !part.active.is_empty());
    let used: Vec<f64> = parts().map(|(part, got)| got.used_share(part)).collect();
    let mut metrics = Metrics::from([
        ("share_error".to_owned(), mean(&errors)),
        ("share_error_most".to_owned(), errors.iter().copied().fold(0.0, f64::max)),
        ("used_least".to_owned(), used.iter().copied().fold(f64::INFINITY, f64::min)),
        ("wait_most".to_owned(), done.wait_most_ns / 1e6),
        ("used_most".to_owned(), used.iter().copied().fold(0.0, f64::max)),
    ]);
    let changes: Vec<Change> = done.parts.iter().filter_map(|part| part.change).collect();
    let mut by_kind = metrics_by_kind(&changes).into_iter();
    metrics.extend(by_kind.next().map(|(_, of_all)| of_all).unwrap_or_default());
    add(ALL, metrics);
    by_kind.for_each(|(name, metrics)| add(name, metrics));
    let Some((width_ns, bins)) = &done.bins else { return };
    for (bins, name) in bins.iter().zip(&flows.groups) {
        let width_s = real(*width_ns) / 1e9;
        results.samples.extend(bins.iter().zip(0_u32..).map(|(&bytes, index)| Sample {
            of: of(name),
            name: "goodput",
            time_s: f64::from(index) * width_s,
            value: real(bytes) * 8.0 / width_s / 1e6,
        }));
    }
}

/// `1.5-2s`.
fn span(part: &Part) -> String {
    format!("{}-{}s", real(part.from_ns) / 1e9, real(part.to_ns) / 1e9)
}

impl PartDone {
    fn got_bps(&self, flow: usize) -> f64 {
        real(self.passed_bytes[flow]) * 8.0 / self.seconds
    }

    /// How far off its share a flow is, in percent of it.
    fn error(&self, flow: usize) -> f64 {
        100.0 * (self.got_bps(flow) / self.fair_bps[flow] - 1.0).abs()
    }

    /// What passed of all flows, of what should have.
    fn used_share(&self, part: &Part) -> f64 {
        let got: f64 = part.active.iter().map(|&flow| self.got_bps(flow)).sum();
        let fair: f64 = part.active.iter().map(|&flow| self.fair_bps[flow]).sum();
        100.0 * got / fair
    }
}

fn group_metrics(got: &PartDone, members: &[usize]) -> Metrics {
    let each = |of: &dyn Fn(usize) -> f64| members.iter().map(|&flow| of(flow)).collect::<Vec<f64>>();
    let errors = each(&|flow| got.error(flow));
    let mut metrics = Metrics::from([
        ("goodput".to_owned(), mean(&each(&|flow| got.got_bps(flow) / 1e6))),
        ("fair".to_owned(), mean(&each(&|flow| got.fair_bps[flow] / 1e6))),
        ("share_error".to_owned(), mean(&errors)),
    ]);
    if members.len() > 1 {
        let goodputs = each(&|flow| got.got_bps(flow) / 1e6);
        metrics.insert("goodput_least".to_owned(), goodputs.iter().copied().fold(f64::INFINITY, f64::min));
        metrics.insert("goodput_most".to_owned(), goodputs.iter().copied().fold(0.0, f64::max));
        metrics.insert("share_error_most".to_owned(), errors.iter().copied().fold(0.0, f64::max));
    }
    metrics
}
