// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many limits change as flows come and go (section 6.3.3): at switches and at the edge.
//!
//! Flows come as a Poisson process, each from a host to another one over one of the shortest paths, of a tenant by chance, short or long. The network
//! serves them as an ideal transport would: long ones share the ports max-min, a millisecond at a time, whatever the limits are; short ones are gone
//! at once, as what they send is little. So all systems are asked about the same paths. After each interval the controller looks at the paths that
//! any flow took in it, and shares the network out among tenants: equal weights, one class each.
//!
//! An update is a limit that is there now and was not, was there and is not, or has another rate.

use super::draws::generated;
use super::limits::of_switches;
use super::random::Random;
use crate::LabError;
use crate::quantity::{Percent, Size, Time};
use crate::results::{ALL, Metrics, Results, Row, Subject};
use crate::stats::{mean, real};
use crate::template::Values;
use penstock_alloc::allocate;
use penstock_alloc::baselines;
use penstock_alloc::changes::Changes;
use penstock_alloc::model::{Class, Network, PortId};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// How long flows share the ports before they are looked at again.
const STEP_S: f64 = 1e-3;
/// Intervals at the start that do not count: nobody has a limit, and the network is empty.
const WARMUP: usize = 10;

/// Flows, and who limits tenants.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Churn {
    /// As for `penstock plan --generate`: the paths of all of its pairs.
    pub topology: String,
    /// How many.
    pub tenants: u32,
    /// How full the fullest port would be if every pair sent the same: leaves may have less to their spines than to their hosts.
    pub load: Percent,
    /// How many flows are long, of all.
    pub long: Percent,
    /// What a short flow sends.
    pub short_size: Size,
    /// What a long flow sends.
    pub long_size: Size,
    /// How often the controller looks.
    pub interval: Time,
    /// Of all that is drawn.
    #[serde(default)]
    pub seed: u64,
}

/// A path of the topology: its pair, and which of the pair's.
type Way = (usize, usize);

struct Flow {
    tenant: usize,
    way: Way,
    left_bits: f64,
}

/// Numbers of one system's limits, of all intervals.
#[derive(Default)]
struct Counts {
    installed: Vec<f64>,
    updated: Vec<f64>,
}

/// Limits by what they are of: class, first port, last port.
type Installed = BTreeMap<(u32, PortId, PortId), u64>;

/// A row a system, and one for the most limits that it can have.
///
/// # Errors
/// The topology is none, or the time is too short.
pub fn compute(run: &Churn, point: &Values, time: Time) -> Result<Results, LabError> {
    let all = generated(&run.topology)?;
    let of_switches = of_switches(&all);
    let intervals = usize::try_from(time.0 / run.interval.0.max(1)).unwrap_or(0);
    if intervals <= WARMUP || run.tenants == 0 {
        return Err(LabError::Computation(format!("more than {WARMUP} intervals and a tenant are needed")));
    }
    let mut traffic = Traffic::new(run, &all);
    let names = ["edge", "switches", "switches_and_hosts"];
    let mut counts = names.map(|_| Counts::default());
    let (mut before, mut active) = (names.map(|_| Installed::new()), Vec::new());
    for interval in 0..intervals {
        let ways = traffic.pass(real(run.interval.0) / 1e9);
        active.push(real(ways.iter().map(|ways| ways.len() as u64).sum()));
        let now = limits(&network(&all, &ways), &of_switches);
        for ((count, before), now) in counts.iter_mut().zip(&mut before).zip(now) {
            if interval >= WARMUP {
                let changes = Changes::between(before.iter(), now.iter());
                count.updated.push(real(changes.updates() as u64));
                count.installed.push(real(now.len() as u64));
            }
            *before = now;
        }
    }
    let worst = worst(&all, run.tenants, &of_switches);
    let mut results = Results::default();
    for (name, (count, worst)) in names.into_iter().zip(counts.iter().zip(worst)) {
        let of = |tenant: &str| Subject { series: name.to_owned(), point: point.clone(), tenant: tenant.to_owned() };
        results.rows.push(Row { of: of(ALL), run: 1, metrics: count.metrics(mean(&active[WARMUP..])) });
        results.rows.push(Row { of: of("worst"), run: 1, metrics: [("limits".to_owned(), worst)].into() });
    }
    Ok(results)
}

impl Counts {
    fn metrics(&self, paths: f64) -> Metrics {
        Metrics::from([
            ("limits".to_owned(), mean(&self.installed)),
            ("limits_updated".to_owned(), mean(&self.updated)),
            ("limits_updated_most".to_owned(), self.updated.iter().copied().fold(0.0, f64::max)),
            ("paths".to_owned(), paths),
        ])
    }
}

/// What is installed for a network: at the edge, at switches, and also at hosts' own ports.
fn limits(network: &Network, of_switches: &[bool]) -> [Installed; 3] {
    let allocation = allocate(network);
    let edge = baselines::edge(network, &allocation).into_iter();
    let placed: Installed =
        allocation.limits.iter().map(|limit| ((limit.class, limit.port, limit.port), limit.rate_bps)).collect();
    let inside = placed.iter().filter(|((_, port, _), _)| of_switches[*port as usize]);
    let inside = inside.map(|(key, rate)| (*key, *rate)).collect();
    [edge.map(|limit| ((limit.class, limit.first, limit.last), limit.rate_bps)).collect(), inside, placed]
}

/// Tenants with these ways.
fn network(all: &Network, ways: &[BTreeSet<Way>]) -> Network {
    let class = |ways: &BTreeSet<Way>| {
        let paths = ways.iter().map(|(pair, path)| all.classes[*pair].paths[*path].clone()).collect();
        Class { weight: 1, paths, ..Class::default() }
    };
    Network { ports: all.ports.clone(), classes: ways.iter().map(class).collect(), ..Network::default() }
}

/// How many limits there can be when everybody sends to everybody, each pair in one tenant: for each pair at the edge, for each tenant at each port.
fn worst(all: &Network, tenants: u32, of_switches: &[bool]) -> [f64; 3] {
    let ports: BTreeSet<PortId> = all.classes.iter().flat_map(|pair| pair.paths.iter().flatten()).copied().collect();
    let inside = ports.iter().filter(|port| of_switches[**port as usize]).count();
    let tenants = u64::from(tenants);
    [real(all.classes.len() as u64), real(tenants * inside as u64), real(tenants * ports.len() as u64)]
}

/// What all pairs together send when all send the same and the fullest port is full, bits/s.
fn carried_bps(all: &Network) -> f64 {
    let mut passing = vec![0.0; all.ports.len()];
    for pair in &all.classes {
        let part = 1.0 / real(pair.paths.len() as u64) / real(all.classes.len() as u64);
        pair.paths.iter().flatten().for_each(|port| passing[*port as usize] += part);
    }
    let most = all.ports.iter().zip(passing).filter(|(_, part)| *part > 0.0);
    most.map(|(port, part)| real(port.rate_bps) / part).fold(f64::INFINITY, f64::min)
}

/// Flows that come, share the network, and go.
struct Traffic<'a> {
    run: &'a Churn,
    all: &'a Network,
    random: Random,
    /// Flows a second.
    rate: f64,
    next_s: f64,
    long: Vec<Flow>,
}

impl<'a> Traffic<'a> {
    fn new(run: &'a Churn, all: &'a Network) -> Self {
        let long = part(run.long);
        let mean_bits = 8.0 * (long * real(run.long_size.0) + (1.0 - long) * real(run.short_size.0));
        let rate = part(run.load) * carried_bps(all) / mean_bits;
        let mut random = Random::new(run.seed);
        let next_s = random.gap(rate);
        Self { run, all, random, rate, next_s, long: Vec::new() }
    }

    /// The ways that each tenant's flows took in an interval.
    fn pass(&mut self, interval_s: f64) -> Vec<BTreeSet<Way>> {
        let mut ways = vec![BTreeSet::new(); self.run.tenants as usize];
        for flow in &self.long {
            ways[flow.tenant].insert(flow.way);
        }
        let mut at_s = 0.0;
        while at_s < interval_s - STEP_S / 2.0 {
            at_s += STEP_S;
            while self.next_s < at_s {
                self.next_s += self.random.gap(self.rate);
                let flow = self.arrival();
                ways[flow.tenant].insert(flow.way);
                if flow.left_bits > 8.0 * real(self.run.short_size.0) {
                    self.long.push(flow);
                }
            }
            self.serve();
        }
        self.next_s -= at_s;
        ways
    }

    fn arrival(&mut self) -> Flow {
        let pair = self.random.below(self.all.classes.len());
        let path = self.random.below(self.all.classes[pair].paths.len());
        let is_long = self.random.unit() <= part(self.run.long);
        let size = if is_long { self.run.long_size } else { self.run.short_size };
        let tenant = self.random.below(self.run.tenants as usize);
        Flow { tenant, way: (pair, path), left_bits: 8.0 * real(size.0) }
    }

    /// Long flows share the ports for a step.
    fn serve(&mut self) {
        let class = |flow: &Flow| {
            let path = self.all.classes[flow.way.0].paths[flow.way.1].clone();
            Class { weight: 1, paths: vec![path], ..Class::default() }
        };
        let classes = self.long.iter().map(class).collect();
        let shared = allocate(&Network { ports: self.all.ports.clone(), classes, ..Network::default() });
        for (flow, paths) in self.long.iter_mut().zip(&shared.paths) {
            flow.left_bits -= STEP_S * real(paths.first().map_or(0, |path| path.rate_bps));
        }
        self.long.retain(|flow| flow.left_bits > 0.0);
    }
}

fn part(percent: Percent) -> f64 {
    f64::from(percent.0) / 2_f64.powi(32)
}
