// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of real traffic at one point of a scenario.

use crate::LabError;
use crate::arrivals::{self, Arrivals};
use crate::enforce::{self, Counters, Enforcement};
use crate::load::{self, Measured, Running, Site};
use crate::process::Stop;
use crate::results::{ALL, Metrics, Row, Sample, Subject};
use crate::samples::Samplers;
use crate::scenario::{Enforce, Phase, Series, Traffic};
use crate::stats;
use crate::template::Values;
use crate::topology::Topology;
use crate::watch::Watcher;
use penstock_algo::wire;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What one run gave.
pub struct Run {
    /// A line a tenant, and one for all of them where there are several.
    pub rows: Vec<Row>,
    /// Values over time.
    pub samples: Vec<Sample>,
}

/// Runs a series of a scenario at a point, for `time`.
///
/// # Errors
/// The machine refuses, a tool fails, or Ctrl-C was pressed. Everything is taken down again.
pub fn run(
    traffic: &Traffic,
    series: &Series,
    of: (&Values, u32),
    time: Duration,
    stop: &Stop,
) -> Result<Run, LabError> {
    stop.check()?;
    let folder = tempfile::tempdir().map_err(|source| LabError::io("a folder for the run", source))?;
    let topology = Topology::build(traffic)?;
    let mut enforcement = enforce::start(&series.enforce, &topology, &traffic.tenants)?;
    let site = |index: usize| Site {
        tenant: &traffic.tenants[index],
        index,
        topology: &topology,
        folder: folder.path(),
        time,
        bin: traffic.bin.duration(),
        warmup: traffic.warmup.duration(),
        stop,
    };
    let sites: Vec<Site<'_>> = (0..traffic.tenants.len()).map(site).collect();
    let mut running = sites.iter().map(load::prepare).collect::<Result<Vec<_>, _>>()?;
    let clock = Clock { start: Instant::now(), time };
    let mut arrivals = Arrivals::start(traffic, &topology, time)?;
    let samplers = Samplers::start(traffic, &sites, clock.start, clock.end())?;
    let watcher = if traffic.watch_shares { watch(&*enforcement, traffic)? } else { None };
    let counted = play(series, traffic, &mut *enforcement, &sites, &mut running, &clock)?;
    let measured =
        sites.iter().zip(running).map(|(site, running)| running.finish(site)).collect::<Result<Vec<_>, _>>()?;
    let taken = samplers.finish()?;
    let followed = watcher.map(|watcher| watcher.finish(&traffic.tenants)).transpose()?.unwrap_or_default();
    let subject =
        |tenant: &str| Subject { series: series.name.clone(), point: of.0.clone(), tenant: tenant.to_owned() };
    let mut samples: Vec<Sample> = Vec::new();
    for (tenant, name, values) in taken.iter().map(|it| (&it.tenant, it.name, &it.values)) {
        samples.extend(values.iter().map(|&(time_s, value)| Sample { of: subject(tenant), name, time_s, value }));
    }
    for (site, measured) in sites.iter().zip(&measured) {
        let of = subject(&site.tenant.name);
        samples.extend(measured.bins.iter().map(|&(time_s, value)| Sample {
            of: of.clone(),
            name: "goodput",
            time_s,
            value,
        }));
    }
    let mut rows = Vec::new();
    for (name, mut metrics) in tenants_metrics(traffic, &sites, &measured, &counted) {
        for sampled in taken.iter().filter(|it| it.tenant == name) {
            metrics.extend(sampled.metrics(traffic.warmup.duration()));
        }
        if let (Some(arrivals), Some(site)) = (&mut arrivals, sites.iter().find(|site| site.tenant.name == name)) {
            let bytes = arrivals.bytes(site.tenant.receiver, site.index)?;
            metrics.extend(arrivals::metrics(&bytes, site.warmup, site.tenant.limit.map(|limit| limit.bps())));
        }
        rows.push(Row { of: subject(&name), run: of.1, metrics });
    }
    for (name, metrics) in followed {
        match rows.iter_mut().find(|row| row.of.tenant == name) {
            Some(row) => row.metrics.extend(metrics),
            None => rows.push(Row { of: subject(name), run: of.1, metrics }),
        }
    }
    Ok(Run { rows, samples })
}

fn watch(enforcement: &dyn Enforcement, traffic: &Traffic) -> Result<Option<Watcher>, LabError> {
    let names: Vec<&str> = traffic.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    Ok(enforcement.watched(&names)?.map(Watcher::start))
}

struct Clock {
    start: Instant,
    time: Duration,
}

impl Clock {
    fn end(&self) -> Instant {
        self.start + self.time
    }
}

/// Counters when the warm-up was over and at the end, and the time between, s.
struct Counted {
    before: Counters,
    after: Counters,
    seconds: f64,
}

enum Event {
    Start(usize),
    Change(String),
    WarmedUp,
}

/// Does everything at its time: tenants start, policies change, counters are read.
fn play(
    series: &Series,
    traffic: &Traffic,
    enforcement: &mut dyn Enforcement,
    sites: &[Site<'_>],
    running: &mut [Box<dyn Running>],
    clock: &Clock,
) -> Result<Counted, LabError> {
    let mut events: Vec<(Duration, Event)> = Vec::new();
    for (index, tenant) in traffic.tenants.iter().enumerate() {
        events.push((tenant.start.duration(), Event::Start(index)));
    }
    if let Enforce::Penstock(penstock) = &series.enforce {
        let changes = penstock.changes.iter();
        events.extend(changes.map(|change| (change.at.duration(), Event::Change(change.policy.clone()))));
    }
    events.push((traffic.warmup.duration(), Event::WarmedUp));
    events.sort_by_key(|(at, _)| *at);
    let stop = sites[0].stop;
    let (mut before, mut since) = (Counters::new(), clock.start);
    for (at, event) in events {
        stop.sleep_until(clock.start + at)?;
        match event {
            Event::Start(index) => running[index].go(&sites[index])?,
            Event::Change(policy) => enforcement.change(&policy)?,
            Event::WarmedUp => (before, since) = (enforcement.counters()?, Instant::now()),
        }
    }
    stop.sleep_until(clock.end())?;
    let after = enforcement.counters()?;
    Ok(Counted { before, after, seconds: since.elapsed().as_secs_f64() })
}

/// Numbers of each tenant, and of all of them where there are several.
fn tenants_metrics(
    traffic: &Traffic,
    sites: &[Site<'_>],
    measured: &[Measured],
    counted: &Counted,
) -> Vec<(String, Metrics)> {
    let mut all = Vec::new();
    for (site, measured) in sites.iter().zip(measured) {
        let bins = steady_bins(&measured.bins, site);
        let mut metrics = measured.metrics.clone();
        metrics.extend(goodput_metrics(&bins));
        metrics.extend(counted_metrics(&site.tenant.name, counted));
        let goodput = metrics.get("goodput").copied();
        if let (Some(limit), Some(goodput)) = (site.tenant.limit, goodput) {
            metrics.insert("saturation".to_owned(), 100.0 * goodput * 1e6 / limit.bps());
        }
        if let (Some(limit), false) = (site.tenant.limit, bins.is_empty()) {
            metrics.insert("share_error".to_owned(), share_error(&bins, limit.bps()));
        }
        if let (Some(limit), Some(passed)) = (site.tenant.limit, metrics.get("passed").copied()) {
            metrics.insert("passed_share".to_owned(), 100.0 * passed * 1e6 / limit.bps());
        }
        all.push((site.tenant.name.clone(), metrics));
        let in_phase = |phase: &Phase| (format!("{} {}", site.tenant.name, phase.name), phase_metrics(phase, measured));
        all.extend(traffic.phases.iter().map(in_phase));
    }
    if traffic.tenants.len() > 1 {
        let sum = sum_of_bins(sites, measured);
        let mut metrics = goodput_metrics(&sum);
        metrics.extend(counted_metrics(ALL, counted));
        let errors: Vec<f64> =
            all.iter().filter_map(|(_, of): &(String, Metrics)| of.get("share_error")).copied().collect();
        if !errors.is_empty() {
            metrics.insert("share_error".to_owned(), stats::mean(&errors));
        }
        all.push((ALL.to_owned(), metrics));
    }
    all
}

/// How far bins lie from a limit in the mean, in percent of it: where flows share fairly, it is each one's part.
fn share_error(bins: &[f64], limit_bps: f64) -> f64 {
    let errors: Vec<f64> = bins.iter().map(|goodput| 100.0 * (goodput * 1e6 / limit_bps - 1.0).abs()).collect();
    stats::mean(&errors)
}

/// What a tenant got while a phase lasted, by bins that begin in it.
fn phase_metrics(phase: &Phase, measured: &Measured) -> Metrics {
    let (from, to) = (phase.from.duration().as_secs_f64(), phase.to.duration().as_secs_f64());
    let bins = measured.bins.iter().filter(|(start, _)| (from..to).contains(start));
    let bins: Vec<f64> = bins.map(|(_, goodput)| *goodput).collect();
    let mut metrics = goodput_metrics(&bins);
    if let (Some(limit), Some(goodput)) = (phase.limit, metrics.get("goodput").copied()) {
        metrics.insert("saturation".to_owned(), 100.0 * goodput * 1e6 / limit.bps());
    }
    metrics
}

/// Goodput of the bins that start after the warm-up.
fn steady_bins(bins: &[(f64, f64)], site: &Site<'_>) -> Vec<f64> {
    let from = site.warmup.as_secs_f64() - 0.25 * site.bin.as_secs_f64();
    bins.iter().filter(|(start, _)| *start >= from).map(|(_, goodput)| *goodput).collect()
}

/// Bins of all tenants together, matched by their number.
fn sum_of_bins(sites: &[Site<'_>], measured: &[Measured]) -> Vec<f64> {
    let columns: Vec<Vec<f64>> =
        sites.iter().zip(measured).map(|(site, measured)| steady_bins(&measured.bins, site)).collect();
    let columns: Vec<&Vec<f64>> = columns.iter().filter(|bins| !bins.is_empty()).collect();
    let length = columns.iter().map(|bins| bins.len()).min().unwrap_or(0);
    (0..length).map(|at| columns.iter().map(|bins| bins[at]).sum()).collect()
}

fn goodput_metrics(bins: &[f64]) -> Metrics {
    if bins.is_empty() {
        return Metrics::new();
    }
    let settled = &bins[(bins.len() / 5).min(bins.len() - 1)..];
    [
        ("goodput".to_owned(), stats::mean(bins)),
        ("oscillation".to_owned(), stats::oscillation(bins)),
        // Without the first fifth: what is left when the burst at the start is over.
        ("settled_oscillation".to_owned(), stats::oscillation(settled)),
    ]
    .into()
}

#[allow(clippy::cast_precision_loss)] // counts of an experiment are far below 2^53
fn counted_metrics(tenant: &str, counted: &Counted) -> Metrics {
    let Some(after) = counted.after.get(tenant) else { return Metrics::new() };
    let zero = wire::pst_counters::default();
    let before = counted.before.get(tenant).unwrap_or(&zero);
    let since = |of: fn(&wire::pst_counters) -> u64| of(after).saturating_sub(of(before)) as f64;
    let offered = since(|it| it.offered_packets).max(1.0);
    let passed_bytes = since(|it| it.offered_bytes) - since(|it| it.dropped_bytes);
    let (dropped, marked) = (since(|it| it.dropped_packets), since(|it| it.marked_packets));
    BTreeMap::from([
        ("passed".to_owned(), passed_bytes * 8.0 / counted.seconds / 1e6),
        ("dropped".to_owned(), dropped),
        ("dropped_share".to_owned(), 100.0 * dropped / offered),
        ("marked_share".to_owned(), 100.0 * marked / offered),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_above_and_below_a_share_are_errors() {
        assert!((share_error(&[90.0, 120.0], 100e6) - 15.0).abs() < 1e-9);
    }

    #[test]
    fn counts_from_the_end_of_the_warm_up() {
        let counters = |offered: u64, dropped: u64| wire::pst_counters {
            offered_packets: offered,
            offered_bytes: offered * 1000,
            dropped_packets: dropped,
            dropped_bytes: dropped * 1000,
            ..wire::pst_counters::default()
        };
        let of = |counters| Counters::from([("t".to_owned(), counters)]);
        let counted = Counted { before: of(counters(100, 50)), after: of(counters(300, 60)), seconds: 2.0 };
        let metrics = counted_metrics("t", &counted);
        assert_eq!((metrics["dropped"], metrics["dropped_share"]), (10.0, 5.0));
        assert!((metrics["passed"] - 190_000.0 * 8.0 / 2.0 / 1e6).abs() < 1e-9);
        assert!(counted_metrics("other", &counted).is_empty());
    }
}
