// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limits that a system has in force, by names, since networks change under them; and what flows within them.

use penstock_alloc::allocate;
use penstock_alloc::baselines;
use penstock_alloc::changes::Changes;
use penstock_alloc::model::{Class, ClassId, Limit, LimitKind, LocalPolicy, Network, PortId};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What a system knows, and where its limits are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// The whole network; at the ports that hold classes back.
    Global,
    /// Each port itself; at all ports.
    Local,
    /// The whole network; at senders, for each class and receiver.
    Edge,
}

/// Whose limit, where, and of an edge's limit for which receiver, by the last port.
type Key = (String, String, Option<String>);

/// Limits by what they are of.
#[derive(Debug)]
pub struct Limits {
    scheme: Scheme,
    rates_bps: BTreeMap<Key, u64>,
    /// Those that are not at a sender's own port; of an edge, all.
    counted_bps: BTreeMap<Key, u64>,
}

impl Limits {
    /// What a scheme computes for a network.
    pub fn of(scheme: Scheme, network: &Network) -> Self {
        let name = |class: ClassId| network.classes[class as usize].name.clone();
        let port = |port: PortId| network.ports[port as usize].name.clone();
        let rates_bps: BTreeMap<Key, u64> = match scheme {
            Scheme::Global => {
                let limits = allocate(network).limits.into_iter();
                limits.map(|limit| ((name(limit.class), port(limit.port), None), limit.rate_bps)).collect()
            }
            Scheme::Local => {
                let limits = baselines::local(network).limits.into_iter();
                limits.map(|limit| ((name(limit.class), port(limit.port), None), limit.rate_bps)).collect()
            }
            Scheme::Edge => {
                let limits = baselines::edge(network, &allocate(network)).into_iter();
                let key = |limit: baselines::EdgeLimit| (name(limit.class), port(limit.first), Some(port(limit.last)));
                limits.map(|limit| (key(limit), limit.rate_bps)).collect()
            }
        };
        let of_switches: Vec<String> =
            of_switches(network).into_iter().zip(0..).filter(|(is, _)| *is).map(|(_, id)| port(id)).collect();
        let is_counted = |key: &Key| scheme == Scheme::Edge || of_switches.contains(&key.1);
        let counted = rates_bps.iter().filter(|(key, _)| is_counted(key));
        let counted_bps = counted.map(|(key, rate)| (key.clone(), *rate)).collect();
        Self { scheme, rates_bps, counted_bps }
    }

    /// How many there are, without those at senders' own ports.
    pub fn installed(&self) -> usize {
        self.counted_bps.len()
    }

    /// What is to be done to come here from others, without what is done at senders' own ports.
    pub fn changes_from(&self, before: &Self) -> Changes {
        Changes::between(before.counted_bps.iter(), self.counted_bps.iter())
    }

    /// What flows on each path of each class within these limits: classes share ports max-min, whatever the policy is.
    pub fn flows(&self, network: &Network) -> Vec<Vec<u64>> {
        if self.scheme == Scheme::Edge { self.flows_from_edge(network) } else { self.flows_through_ports(network) }
    }

    fn flows_through_ports(&self, network: &Network) -> Vec<Vec<u64>> {
        let mut free = Network { ports: network.ports.clone(), ..Network::default() };
        for (class, id) in network.classes.iter().zip(0..) {
            free.classes.push(equal(class.paths.clone()));
            let here = network.ports.iter().zip(0..).filter_map(|(port, at)| {
                let rate_bps = *self.rates_bps.get(&(class.name.clone(), port.name.clone(), None))?;
                Some(at_port(at, id, rate_bps))
            });
            free.local.extend(here.filter(|policy| class.paths.iter().flatten().any(|port| *port == policy.port)));
        }
        rates(&free)
    }

    fn flows_from_edge(&self, network: &Network) -> Vec<Vec<u64>> {
        let mut free = Network { ports: network.ports.clone(), ..Network::default() };
        let mut places = Vec::new();
        for class in &network.classes {
            let mut pairs: BTreeMap<(PortId, PortId), ClassId> = BTreeMap::new();
            for path in &class.paths {
                let (Some(&first), Some(&last)) = (path.first(), path.last()) else { continue };
                let id = *pairs.entry((first, last)).or_insert_with(|| {
                    let id = ClassId::try_from(free.classes.len()).unwrap_or(ClassId::MAX);
                    free.classes.push(equal(Vec::new()));
                    let name = |port: PortId| network.ports[port as usize].name.clone();
                    if let Some(rate_bps) = self.rates_bps.get(&(class.name.clone(), name(first), Some(name(last)))) {
                        free.local.push(at_port(first, id, *rate_bps));
                    }
                    id
                });
                free.classes[id as usize].paths.push(path.clone());
                places.push((id as usize, free.classes[id as usize].paths.len() - 1));
            }
        }
        let rates = rates(&free);
        let mut places = places.into_iter();
        let of =
            |class: &Class| class.paths.iter().filter_map(|_| places.next()).map(|(id, at)| rates[id][at]).collect();
        network.classes.iter().map(of).collect()
    }
}

/// Whether a port is one of those that paths come to from another one: not their sender's own.
pub fn of_switches(network: &Network) -> Vec<bool> {
    let mut is_reached = vec![false; network.ports.len()];
    for path in network.classes.iter().flat_map(|class| &class.paths) {
        path.iter().skip(1).for_each(|&port| is_reached[port as usize] = true);
    }
    is_reached
}

fn equal(paths: Vec<Vec<PortId>>) -> Class {
    Class { weight: 1, paths, ..Class::default() }
}

fn at_port(port: PortId, class: ClassId, rate_bps: u64) -> LocalPolicy {
    let limit = Some(Limit { rate_bps, kind: LimitKind::Soft });
    LocalPolicy { port, class, priority: None, weight: None, limit }
}

fn rates(network: &Network) -> Vec<Vec<u64>> {
    let rate = |paths: Vec<penstock_alloc::allocation::PathRate>| paths.iter().map(|path| path.rate_bps).collect();
    allocate(network).paths.into_iter().map(rate).collect()
}
