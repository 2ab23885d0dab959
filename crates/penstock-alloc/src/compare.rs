// SPDX-License-Identifier: MIT OR Apache-2.0
//! The global allocation beside the baselines: what flows, who gets less than the policy says, how many limits there are, and how many of them a
//! change touches.

use crate::allocation::{Allocation, PathRate};
use crate::baselines;
use crate::changes::{self, Changes};
use crate::delta::Delta;
use crate::model::{ClassId, Network, PortId};

/// Who gets less than policy by a thousandth or more is short: less is rounding.
const SHORT_PART: u64 = 1_000;

/// One way to limit a network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scheme {
    /// What flows on all paths together, bits/s.
    pub flow_bps: u128,
    /// What the ports carry, all together, bits/s.
    pub used_bps: u128,
    /// Who gets less than the policy says (the global allocation), the worst first.
    pub short: Vec<Short>,
    /// Ports to which more comes than they can send, the worst first.
    pub over: Vec<Over>,
    /// How many limits are installed.
    pub limits: usize,
    /// What a change does to them, if there is one.
    pub changes: Option<Changes>,
}

/// A class that gets less than the policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short {
    /// Who.
    pub class: ClassId,
    /// What it should get on all of its paths together, bits/s.
    pub due_bps: u64,
    /// What it gets, bits/s.
    pub gets_bps: u64,
}

/// A port to which more comes than it can send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// Which.
    pub port: PortId,
    /// What comes, bits/s.
    pub offered_bps: u64,
    /// What it can send, bits/s.
    pub rate_bps: u64,
}

/// A network with its allocation.
#[derive(Debug, Clone, Copy)]
pub struct Planned<'a> {
    /// The network.
    pub network: &'a Network,
    /// Who gets what.
    pub allocation: &'a Allocation,
}

/// The global allocation, and what changes from another one.
#[must_use]
pub fn global(now: Planned<'_>, before: Option<Planned<'_>>) -> Scheme {
    let limits = |plan: Planned<'_>| plan.allocation.limits.len();
    let delta = |before: Planned<'_>| {
        Changes::of(&Delta::between((before.network, before.allocation), (now.network, now.allocation)))
    };
    Scheme { limits: limits(now), changes: before.map(delta), ..as_planned(now) }
}

/// Limiters at the edge, with the same rates.
#[must_use]
pub fn edge(now: Planned<'_>, before: Option<Planned<'_>>) -> Scheme {
    let limits = baselines::edge(now.network, now.allocation);
    let delta = |before: Planned<'_>| {
        let old = baselines::edge(before.network, before.allocation);
        Changes::between(changes::edge(before.network, &old), changes::edge(now.network, &limits))
    };
    Scheme { limits: limits.len(), changes: before.map(delta), ..as_planned(now) }
}

/// Switches that look at themselves only.
#[must_use]
pub fn local(now: Planned<'_>, before: Option<Planned<'_>>) -> Scheme {
    let local = baselines::local(now.network);
    let delta = |before: Planned<'_>| {
        let old = baselines::local(before.network);
        Changes::between(changes::local(before.network, &old), changes::local(now.network, &local))
    };
    Scheme {
        flow_bps: sum(local.paths_bps.iter().flatten().copied()),
        used_bps: used(now.network, &local.paths_bps),
        short: short(now, &local.paths_bps),
        over: over(now.network, &local.offered_bps),
        limits: local.limits.len(),
        changes: before.map(delta),
    }
}

/// Flows as the allocation has them, less what is lost where hard limits ask for more than a port has.
fn as_planned(plan: Planned<'_>) -> Scheme {
    let Planned { network, allocation } = plan;
    let rates = |paths: &Vec<PathRate>| paths.iter().map(|path| path.rate_bps).collect();
    let mut paths_bps: Vec<Vec<u64>> = allocation.paths.iter().map(rates).collect();
    baselines::lose(network, &mut paths_bps, &allocation.used_bps);
    Scheme {
        flow_bps: sum(paths_bps.iter().flatten().copied()),
        used_bps: used(network, &paths_bps),
        short: short(plan, &paths_bps),
        over: over(network, &allocation.used_bps),
        ..Scheme::default()
    }
}

fn sum(rates_bps: impl Iterator<Item = u64>) -> u128 {
    rates_bps.map(u128::from).sum()
}

/// What the ports carry: as much on each port of a path as arrives at its end.
fn used(network: &Network, paths_bps: &[Vec<u64>]) -> u128 {
    let of_class = |(class, rates): (&crate::model::Class, &Vec<u64>)| -> u128 {
        class.paths.iter().zip(rates).map(|(path, rate_bps)| path.len() as u128 * u128::from(*rate_bps)).sum()
    };
    network.classes.iter().zip(paths_bps).map(of_class).sum()
}

fn short(plan: Planned<'_>, paths_bps: &[Vec<u64>]) -> Vec<Short> {
    let mut short = Vec::new();
    for ((due, gets), class) in plan.allocation.paths.iter().zip(paths_bps).zip(0..) {
        let due_bps: u64 = due.iter().map(|path| path.rate_bps).sum();
        let gets_bps: u64 = gets.iter().sum();
        if due_bps.saturating_sub(gets_bps) > due_bps / SHORT_PART {
            short.push(Short { class, due_bps, gets_bps });
        }
    }
    short.sort_by_key(|short| std::cmp::Reverse(short.due_bps - short.gets_bps));
    short
}

fn over(network: &Network, offered_bps: &[u64]) -> Vec<Over> {
    let ports = network.ports.iter().zip(offered_bps).zip(0..);
    let mut over: Vec<Over> = ports
        .filter(|((port, offered_bps), _)| **offered_bps > port.rate_bps)
        .map(|((port, &offered_bps), id)| Over { port: id, offered_bps, rate_bps: port.rate_bps })
        .collect();
    over.sort_by_key(|over| std::cmp::Reverse(over.offered_bps - over.rate_bps));
    over
}
