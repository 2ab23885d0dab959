// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who sends to whom.

use super::{Distances, NodeId, Topology};
use crate::file::{CLASSES_MAX, STEPS_MAX};
use crate::model::{Class, Network, PortId};
use penstock_policy::diagnostics::Problem;
use penstock_policy::units::{RATE_MAX_BPS, RATE_MIN_BPS};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::HashMap;

/// Which pairs send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Everybody to everybody else.
    AllToAll,
    /// So many pairs, each drawn by itself: the same one may come again.
    Random {
        /// How many.
        pairs: Option<u32>,
    },
    /// Each sends to one other, and each receives from one.
    Permutation,
    /// So many send to the first receiver.
    Incast {
        /// How many; all that can when it is not said.
        senders: Option<u32>,
    },
    /// Everybody to everybody else, with demands: hosts have masses 1, 1/2, 1/3 .., dealt at random, and a pair's demand is in proportion to
    /// the product of its two.
    Gravity {
        /// All demands together, in percent of what all senders' first links carry.
        load_percent: u32,
    },
}

/// Who sends, in which classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// Which pairs.
    pub pattern: Pattern,
    /// Pairs are dealt to so many classes; each is a class of its own otherwise.
    pub tenants: Option<u32>,
    /// Paths of a pair at most, drawn from all shortest ones.
    pub paths: Option<u32>,
    /// Weights are drawn from these.
    pub weights: (u32, u32),
    /// Priorities are drawn from so many.
    pub priorities: u32,
    /// Of all that is drawn.
    pub seed: u64,
}

/// One host that sends to another one.
struct Pair {
    from: NodeId,
    to: NodeId,
    demand_bps: Option<u64>,
}

/// The network with its classes.
pub fn network(topology: Topology, traffic: &Traffic) -> Result<Network, Problem> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(traffic.seed);
    let pairs = pairs(&topology, traffic, &mut random)?;
    if pairs.is_empty() {
        return Err(Problem::new("nobody sends in this network", "it takes two hosts at least"));
    }
    let mut classes: Vec<Class> = Vec::new();
    let mut of_tenants: HashMap<u32, usize> = HashMap::new();
    let mut times: HashMap<(NodeId, NodeId), u32> = HashMap::new();
    let mut routes = Routes { topology: &topology, distances: HashMap::new(), most: traffic.paths, steps: 0 };
    for pair in pairs {
        let paths = routes.of(&pair, &mut random)?;
        let index = match traffic.tenants {
            None => {
                let again = times.entry((pair.from, pair.to)).or_default();
                *again += 1;
                let mut name = format!("{}-{}", topology.names[pair.from], topology.names[pair.to]);
                if *again > 1 {
                    name += &format!(".{again}");
                }
                classes.push(class(name));
                classes.len() - 1
            }
            Some(tenants) => {
                let tenant = random.random_range(0..tenants);
                *of_tenants.entry(tenant).or_insert_with(|| {
                    classes.push(class(format!("t{}", tenant + 1)));
                    classes.len() - 1
                })
            }
        };
        let class = &mut classes[index];
        class.paths.extend(paths);
        class.demand_bps =
            pair.demand_bps.map(|demand_bps| (class.demand_bps.unwrap_or(0) + demand_bps).min(RATE_MAX_BPS));
    }
    if traffic.tenants.is_some() {
        classes.sort_by_key(|class| class.name[1..].parse::<u32>().unwrap_or(0));
    }
    for class in &mut classes {
        class.weight = random.random_range(traffic.weights.0..=traffic.weights.1);
        class.priority = random.random_range(0..traffic.priorities);
    }
    Ok(Network { ports: topology.ports, classes, ..Network::default() })
}

fn class(name: String) -> Class {
    Class { name, priority: 0, weight: 1, limit: None, demand_bps: None, safe_bps: None, paths: Vec::new() }
}

/// The ways of pairs, with the distances that were looked for already.
struct Routes<'a> {
    topology: &'a Topology,
    distances: HashMap<NodeId, Distances>,
    most: Option<u32>,
    steps: usize,
}

impl Routes<'_> {
    fn of(&mut self, pair: &Pair, random: &mut Xoshiro256PlusPlus) -> Result<Vec<Vec<PortId>>, Problem> {
        let distances = self.distances.entry(pair.to).or_insert_with(|| self.topology.distances(pair.to));
        let mut paths = self.topology.shortest(pair.from, distances);
        let most = self.most.map_or(paths.len(), |most| most as usize);
        // The first ones of a shuffle, which need not be shuffled to its end.
        for index in 0..most.min(paths.len().saturating_sub(1)) {
            let other = random.random_range(index..paths.len());
            if most < paths.len() {
                paths.swap(index, other);
            }
        }
        paths.truncate(most);
        self.steps += paths.iter().map(Vec::len).sum::<usize>();
        if self.steps > STEPS_MAX {
            let help = "give fewer `pairs`, or let each have fewer `paths`";
            return Err(Problem::new(format!("the paths have more than {STEPS_MAX} ports in all"), help));
        }
        Ok(paths)
    }
}

fn pairs(topology: &Topology, traffic: &Traffic, random: &mut Xoshiro256PlusPlus) -> Result<Vec<Pair>, Problem> {
    let (senders, receivers) = (&topology.senders, &topology.receivers);
    let pair = |from: NodeId, to: NodeId| Pair { from, to, demand_bps: None };
    let all =
        || senders.iter().flat_map(|&from| receivers.iter().map(move |&to| (from, to))).filter(|(from, to)| from != to);
    let is_alone = senders.len() < 2 && senders == receivers;
    let too_many = |count: usize| {
        let message = format!("{count} pairs are more than {CLASSES_MAX}, the most");
        Problem::new(message, "take `traffic=random` with fewer `pairs`")
    };
    Ok(match traffic.pattern {
        _ if is_alone => Vec::new(),
        Pattern::AllToAll | Pattern::Gravity { .. } if senders.len() * receivers.len() > CLASSES_MAX => {
            return Err(too_many(senders.len() * receivers.len()));
        }
        Pattern::AllToAll => all().map(|(from, to)| pair(from, to)).collect(),
        Pattern::Random { pairs } => {
            let count = pairs.map_or(senders.len(), |pairs| pairs as usize);
            if count > CLASSES_MAX {
                return Err(too_many(count));
            }
            (0..count).map(|_| drawn(senders, receivers, random)).map(|(from, to)| pair(from, to)).collect()
        }
        Pattern::Permutation => {
            let to = permuted(receivers, senders == receivers, random);
            senders.iter().zip(to).map(|(&from, to)| pair(from, to)).collect()
        }
        Pattern::Incast { senders: count } => {
            let to = receivers[0];
            let others = senders.iter().filter(|&&from| from != to);
            others.take(count.map_or(usize::MAX, |count| count as usize)).map(|&from| pair(from, to)).collect()
        }
        Pattern::Gravity { load_percent } => {
            let masses = masses(topology, random);
            let pull = |from: NodeId, to: NodeId| masses[&from] * masses[&to];
            let sum: f64 = all().map(|(from, to)| pull(from, to)).sum();
            let total_bps = carried(topology) * f64::from(load_percent) / 100.0;
            let demand = |from, to| Some(whole(total_bps * pull(from, to) / sum));
            all().map(|(from, to)| Pair { from, to, demand_bps: demand(from, to) }).collect()
        }
    })
}

/// Two that differ.
fn drawn(senders: &[NodeId], receivers: &[NodeId], random: &mut Xoshiro256PlusPlus) -> (NodeId, NodeId) {
    let from = senders[random.random_range(0..senders.len())];
    loop {
        let to = receivers[random.random_range(0..receivers.len())];
        if to != from {
            return (from, to);
        }
    }
}

/// The receivers in another order; nobody is at his own place when they send as well (one cycle: Sattolo).
fn permuted(receivers: &[NodeId], send_as_well: bool, random: &mut Xoshiro256PlusPlus) -> Vec<NodeId> {
    let mut order = receivers.to_vec();
    for index in (1..order.len()).rev() {
        let below = if send_as_well { index } else { index + 1 };
        let other = random.random_range(0..below);
        order.swap(index, other);
    }
    order
}

#[allow(clippy::cast_precision_loss)] // a network has few hosts
fn masses(topology: &Topology, random: &mut Xoshiro256PlusPlus) -> HashMap<NodeId, f64> {
    let mut hosts = topology.senders.clone();
    if topology.receivers != topology.senders {
        hosts.extend(&topology.receivers);
    }
    let order = permuted(&hosts, false, random);
    order.into_iter().enumerate().map(|(rank, host)| (host, 1.0 / (rank + 1) as f64)).collect()
}

/// What the first links of all senders carry, bits/s.
#[allow(clippy::cast_precision_loss)] // demands are drawn, not accounted
fn carried(topology: &Topology) -> f64 {
    let ports = topology.senders.iter().flat_map(|&host| &topology.next[host]);
    ports.map(|&(_, port)| topology.ports[port as usize].rate_bps as f64).sum()
}

/// Whole bits/s, and at least what a rate can be.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a cast from float saturates
fn whole(rate_bps: f64) -> u64 {
    (rate_bps as u64).clamp(RATE_MIN_BPS, RATE_MAX_BPS)
}
