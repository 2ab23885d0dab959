// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a network does without a global view, and with limiters at its edge (sections 6.3.2 and 6.3.3).
//!
//! Switch-local   each port shares itself among the classes that have a path there, by priority, weight and limit, and knows of no other port.
//!                What flows then: each class shares what it has at each port max-min among its paths, which is the best that its senders
//!                can find; where hard limits sum to more than a port has, what meets there loses in proportion.
//! Edge           a limiter for each class and pair of sender and receiver, at the sender, with the rates of the global allocation; it
//!                knows the pair by a path's first and last port.
//!
//! Both need no filling of their own: a port by itself is a network in which each class has one path of that port, and what a class has at
//! a port is a port of its own.

use crate::allocate;
use crate::allocation::Allocation;
use crate::model::{Class, ClassId, LimitKind, Network, Port, PortId};
use std::collections::{BTreeMap, HashMap};

/// What the ports give when each looks at itself only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Local {
    /// What each class may have at each of its ports, by class and then by port.
    pub limits: Vec<LocalLimit>,
    /// What flows on each path of each class, bits/s, in the order of the network.
    pub paths_bps: Vec<Vec<u64>>,
    /// What comes to each port, bits/s, before it loses what it cannot send.
    pub offered_bps: Vec<u64>,
}

/// A limit of a class at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalLimit {
    /// Whose.
    pub class: ClassId,
    /// Where.
    pub port: PortId,
    /// bits/s.
    pub rate_bps: u64,
}

/// A limit of a class for one pair of sender and receiver, at the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeLimit {
    /// Whose.
    pub class: ClassId,
    /// The sender, by the port that it sends by.
    pub first: PortId,
    /// The receiver, by the port that leads to it.
    pub last: PortId,
    /// bits/s, of all paths between the two.
    pub rate_bps: u64,
}

/// The edge's limits for an allocation of the network, by class and then by pair.
#[must_use]
pub fn edge(network: &Network, allocation: &Allocation) -> Vec<EdgeLimit> {
    let mut limits = Vec::new();
    for ((class, id), rates) in network.classes.iter().zip(0..).zip(&allocation.paths) {
        let mut pairs: BTreeMap<(PortId, PortId), u64> = BTreeMap::new();
        for (path, rate) in class.paths.iter().zip(rates) {
            if let (Some(&first), Some(&last)) = (path.first(), path.last()) {
                *pairs.entry((first, last)).or_default() += rate.rate_bps;
            }
        }
        let limit = |((first, last), rate_bps)| EdgeLimit { class: id, first, last, rate_bps };
        limits.extend(pairs.into_iter().map(limit));
    }
    limits
}

/// What the ports give when each looks at itself only, and what then flows.
#[must_use]
pub fn local(network: &Network) -> Local {
    let of = |(class, id): (&Class, ClassId)| {
        met(class).into_iter().map(move |port| LocalLimit { class: id, port, rate_bps: 0 })
    };
    let mut limits: Vec<LocalLimit> = network.classes.iter().zip(0..).flat_map(of).collect();
    let mut by_port: Vec<(PortId, usize)> = limits.iter().map(|limit| limit.port).zip(0..).collect();
    by_port.sort_unstable();
    let local = network.local.iter().enumerate().map(|(index, policy)| ((policy.class, policy.port), index)).collect();
    for here in by_port.chunk_by(|one, other| one.0 == other.0) {
        let alone = alone(network, &local, here.iter().map(|&(_, limit)| limits[limit]));
        let given = allocate(&alone).paths;
        for ((&(_, limit), class), paths) in here.iter().zip(&alone.classes).zip(&given) {
            // A hard limit is installed as it is.
            let hard = class.limit.filter(|limit| limit.kind == LimitKind::Hard);
            let given_bps = paths.first().map_or(0, |path| path.rate_bps);
            limits[limit].rate_bps = hard.map_or(given_bps, |limit| limit.rate_bps);
        }
    }
    let mut paths_bps = within(network, &limits);
    let offered_bps = sums(network, &paths_bps);
    lose(network, &mut paths_bps, &offered_bps);
    Local { limits, paths_bps, offered_bps }
}

/// One port, and its classes as if they had no other.
fn alone(
    network: &Network,
    local: &HashMap<(ClassId, PortId), usize>,
    here: impl Iterator<Item = LocalLimit>,
) -> Network {
    let mut alone = Network::default();
    for LocalLimit { class, port, .. } in here {
        if alone.ports.is_empty() {
            alone.ports.push(network.ports[port as usize].clone());
        }
        let policy = local.get(&(class, port)).map(|&index| network.local[index]);
        let class = &network.classes[class as usize];
        alone.classes.push(Class {
            name: String::new(),
            priority: policy.and_then(|policy| policy.priority).unwrap_or(class.priority),
            weight: policy.and_then(|policy| policy.weight).unwrap_or(class.weight),
            limit: policy.and_then(|policy| policy.limit).or(class.limit),
            demand_bps: class.demand_bps,
            safe_bps: None,
            paths: vec![vec![0]],
        });
    }
    alone
}

/// The ports of a class, each once, in order.
fn met(class: &Class) -> Vec<PortId> {
    let mut ports: Vec<PortId> = class.paths.iter().flatten().copied().collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// What flows when each class may have so much at each of its ports, whatever the others do.
fn within(network: &Network, limits: &[LocalLimit]) -> Vec<Vec<u64>> {
    let mut rest = limits;
    let of_class = |(class, id): (&Class, ClassId)| {
        let (own, others) = rest.split_at(rest.partition_point(|limit| limit.class == id));
        rest = others;
        let port = |limit: &LocalLimit| Port { rate_bps: limit.rate_bps, ..Port::default() };
        let at =
            |port: &PortId| PortId::try_from(own.partition_point(|limit| limit.port < *port)).unwrap_or(PortId::MAX);
        let paths = class.paths.iter().map(|path| path.iter().map(at).collect()).collect();
        let class = Class { paths, weight: 1, ..Class::default() };
        let alone = Network { ports: own.iter().map(port).collect(), classes: vec![class], ..Network::default() };
        let rates = allocate(&alone).paths.pop().unwrap_or_default();
        rates.into_iter().map(|path| path.rate_bps).collect()
    };
    network.classes.iter().zip(0..).map(of_class).collect()
}

/// What comes to each port, bits/s.
fn sums(network: &Network, paths_bps: &[Vec<u64>]) -> Vec<u64> {
    let mut sums = vec![0_u64; network.ports.len()];
    for (class, rates) in network.classes.iter().zip(paths_bps) {
        for (path, rate_bps) in class.paths.iter().zip(rates) {
            for &port in path {
                sums[port as usize] = sums[port as usize].saturating_add(*rate_bps);
            }
        }
    }
    sums
}

/// Each path keeps the part that the worst of its ports lets through.
pub(crate) fn lose(network: &Network, paths_bps: &mut [Vec<u64>], offered_bps: &[u64]) {
    let kept = |port: PortId, rate_bps: u64| {
        let (offered, rate) = (offered_bps[port as usize], network.ports[port as usize].rate_bps);
        let part = u128::from(rate_bps) * u128::from(rate) / u128::from(offered.max(1));
        if offered > rate { u64::try_from(part).unwrap_or(rate_bps) } else { rate_bps }
    };
    for (class, rates) in network.classes.iter().zip(paths_bps) {
        for (path, rate_bps) in class.paths.iter().zip(rates) {
            *rate_bps = path.iter().map(|&port| kept(port, *rate_bps)).min().unwrap_or(0);
        }
    }
}
