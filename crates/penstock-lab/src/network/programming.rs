// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long it takes until all limits have other rates (section 6.3.3, Figure 15).
//!
//! A device changes its limits one after the other, in an order by chance, each in a time of its own; devices do so at the same time. At the edge the
//! devices are hosts, with a limit for each receiver and class; in the network they are switches, with a limit for each class at each port that holds it
//! back, and hosts where that is their own port. Each path flows at its rate of the allocation, times the part that its limit has by now. A new order replaces what is left of the one before.

use super::draws::generated;
use super::limits::of_switches;
use super::random::Random;
use super::{gbps, seconds};
use crate::LabError;
use crate::quantity::{Percent, Time};
use crate::results::{Metrics, Results, Row, Sample, Subject};
use crate::stats::{mean, real};
use crate::template::Values;
use penstock_alloc::allocate;
use penstock_alloc::allocation::Allocation;
use penstock_alloc::model::{Network, PortId};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// So near to what is asked for counts as there, in percent of what flowed before.
const NEAR_PERCENT: f64 = 2.0;

/// Limits that are changed, and how long one takes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programming {
    /// As for `penstock plan --generate`, without its traffic.
    pub topology: String,
    /// So many pairs a host, drawn from all, are looked at over time: a line of the results each. Where all limits are changed once, everybody sends
    /// to everybody.
    pub pairs_each: Vec<u32>,
    /// Mean of the time that a limit takes.
    pub mean: Time,
    /// Its standard deviation; it is normal, and no time is below 0.
    pub deviation: Time,
    /// All limits are reduced,
    pub down: Time,
    /// to this part of what they were,
    pub to: Percent,
    /// and restored.
    pub up: Time,
    /// When that ends.
    pub end: Time,
    /// Width of the samples.
    pub bin: Time,
    /// Of all that is drawn.
    #[serde(default)]
    pub seed: u64,
}

/// A device's limits: what flows under each, bits/s.
type Devices = BTreeMap<String, Vec<u64>>;

/// Throughput over time, and how long all limits take where everybody sends to everybody.
///
/// # Errors
/// The topology is none.
pub fn compute(run: &Programming, point: &Values) -> Result<Results, LabError> {
    let (edge_most, switches_most) = worst(&generated(&format!("{},traffic=all-to-all,paths=1", run.topology))?);
    let hosts = edge_most.len() as u64;
    let mut results = Results::default();
    for each in &run.pairs_each {
        let pairs = hosts * u64::from(*each);
        let network = generated(&format!("{},traffic=random,pairs={pairs}", run.topology))?;
        let allocation = allocate(&network);
        for (series, devices) in [("edge", edge(&network, &allocation)), ("switches", switches(&network, &allocation))]
        {
            let tenant = format!("{each} pairs");
            let of = Subject { series: series.to_owned(), point: point.clone(), tenant };
            let flow = flow(run, &devices, &mut Random::new(run.seed));
            results.rows.push(Row { of: of.clone(), run: 1, metrics: followed(run, &flow, &devices) });
            let sample = |(time_ns, value)| Sample { of: of.clone(), name: "gets", time_s: seconds(time_ns), value };
            results.samples.extend(flow.into_iter().map(sample));
        }
    }
    for (series, devices) in [("edge", edge_most), ("switches", switches_most)] {
        let mut random = Random::new(run.seed);
        let times = devices.iter().map(|limits| (0..*limits).map(|_| duration_ns(run, &mut random)).sum::<u64>());
        let metrics = Metrics::from([
            ("done".to_owned(), real(times.max().unwrap_or(0)) / 1e6),
            ("limits".to_owned(), real(devices.iter().sum())),
            ("limits_most".to_owned(), real(devices.iter().copied().max().unwrap_or(0))),
        ]);
        let of = Subject { series: series.to_owned(), point: point.clone(), tenant: "worst".to_owned() };
        results.rows.push(Row { of, run: 1, metrics });
    }
    Ok(results)
}

/// Each host's limits: a class and a receiver.
fn edge(network: &Network, allocation: &Allocation) -> Devices {
    let mut devices = Devices::new();
    for limit in penstock_alloc::baselines::edge(network, allocation) {
        let host = network.ports[limit.first as usize].switch.clone();
        devices.entry(host).or_default().push(limit.rate_bps);
    }
    devices
}

/// Each switch's limits, and what is held back there.
fn switches(network: &Network, allocation: &Allocation) -> Devices {
    let mut flows: BTreeMap<(usize, PortId), u64> = BTreeMap::new();
    for (class, rates) in allocation.paths.iter().enumerate() {
        for rate in rates {
            let port = rate.bottleneck.port().unwrap_or(PortId::MAX);
            *flows.entry((class, port)).or_default() += rate.rate_bps;
        }
    }
    let mut devices = Devices::new();
    for ((_, port), rate_bps) in flows {
        let switch = network.ports.get(port as usize).map(|port| port.switch.clone()).unwrap_or_default();
        devices.entry(switch).or_default().push(rate_bps);
    }
    devices
}

/// How many limits each host has, and each switch.
fn worst(network: &Network) -> (Vec<u64>, Vec<u64>) {
    let of_switches = of_switches(network);
    let mut hosts: BTreeMap<&str, BTreeSet<(usize, PortId)>> = BTreeMap::new();
    let mut switches: BTreeMap<&str, BTreeSet<(usize, PortId)>> = BTreeMap::new();
    for (class, paths) in network.classes.iter().map(|class| &class.paths).enumerate() {
        for path in paths {
            if let (Some(&first), Some(&last)) = (path.first(), path.last()) {
                hosts.entry(&network.ports[first as usize].switch).or_default().insert((class, last));
            }
            for &port in path.iter().filter(|port| of_switches[**port as usize]) {
                switches.entry(&network.ports[port as usize].switch).or_default().insert((class, port));
            }
        }
    }
    let sizes = |of: BTreeMap<&str, BTreeSet<(usize, PortId)>>| of.values().map(|limits| limits.len() as u64).collect();
    (sizes(hosts), sizes(switches))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a time of some milliseconds, not below 0
fn duration_ns(run: &Programming, random: &mut Random) -> u64 {
    random.normal(real(run.mean.0), real(run.deviation.0)).max(0.0) as u64
}

/// When each limit has the rate of an order that is given at a time; those that are not done when it ends never have.
fn order(run: &Programming, start_ns: u64, limits: &mut [usize], random: &mut Random) -> Vec<(usize, u64)> {
    for index in (1..limits.len()).rev() {
        limits.swap(index, random.below(index + 1));
    }
    let mut at_ns = start_ns;
    let mut done = |limit: &usize| {
        at_ns += duration_ns(run, random);
        (*limit, at_ns)
    };
    limits.iter().map(&mut done).collect()
}

/// What flows in all, by bins, Gbit/s.
fn flow(run: &Programming, devices: &Devices, random: &mut Random) -> Vec<(u64, f64)> {
    // Of each limit: when it was reduced and restored, and what flows under it.
    let mut spans = Vec::new();
    for rates_bps in devices.values() {
        let mut all: Vec<usize> = (0..rates_bps.len()).collect();
        let mut down = order(run, run.down.0, &mut all, random);
        down.retain(|(_, at_ns)| *at_ns < run.up.0);
        let mut reduced: Vec<usize> = down.iter().map(|(limit, _)| *limit).collect();
        let up: BTreeMap<usize, u64> = order(run, run.up.0, &mut reduced, random).into_iter().collect();
        spans.extend(down.iter().map(|(limit, down_ns)| (*down_ns, up[limit], rates_bps[*limit])));
    }
    let whole_bps: u64 = devices.values().flatten().sum();
    let lost = 1.0 - f64::from(run.to.0) / 2_f64.powi(32);
    let at = |time_ns: u64| {
        let reduced = spans.iter().filter(|(down_ns, up_ns, _)| (*down_ns..*up_ns).contains(&time_ns));
        let reduced_bps: u64 = reduced.map(|(_, _, rate_bps)| rate_bps).sum();
        gbps(whole_bps) - lost * gbps(reduced_bps)
    };
    (0..=run.end.0 / run.bin.0.max(1)).map(|bin| bin * run.bin.0).map(|time_ns| (time_ns, at(time_ns))).collect()
}

/// How far throughput was from what it should be, in the mean, in percent of what it was before; and when it was there first, where it ever was.
fn followed(run: &Programming, flow: &[(u64, f64)], devices: &Devices) -> Metrics {
    let whole = flow.first().map_or(0.0, |(_, value)| *value);
    let low = whole * f64::from(run.to.0) / 2_f64.powi(32);
    let limits: usize = devices.values().map(Vec::len).sum();
    let mut metrics = Metrics::from([
        ("limits".to_owned(), real(limits as u64)),
        ("limits_most".to_owned(), real(devices.values().map(Vec::len).max().unwrap_or(0) as u64)),
    ]);
    let mut all = Vec::new();
    for (way, from_ns, to_ns, target) in [("down", run.down.0, run.up.0, low), ("up", run.up.0, u64::MAX, whole)] {
        let here = flow.iter().filter(|(time_ns, _)| (from_ns..to_ns).contains(time_ns));
        let off: Vec<(u64, f64)> =
            here.map(|(time_ns, value)| (time_ns - from_ns, 100.0 * (value - target).abs() / whole)).collect();
        let distances: Vec<f64> = off.iter().map(|(_, off)| *off).collect();
        metrics.insert(format!("off_{way}"), mean(&distances));
        all.extend(distances);
        let there = off.iter().find(|(_, off)| *off <= NEAR_PERCENT);
        metrics.extend(there.map(|(time_ns, _)| (format!("settled_{way}"), real(*time_ns) / 1e6)));
    }
    metrics.insert("off".to_owned(), mean(&all));
    metrics
}
