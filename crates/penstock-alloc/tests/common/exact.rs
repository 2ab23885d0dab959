// SPDX-License-Identifier: MIT OR Apache-2.0
//! The definition of an allocation, in rationals, by scanning everything each time: slow, and as it is written. It shares no line with what it tests.
//! Aggregates are ports behind the others that are on no list.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};

use num_rational::BigRational;
use num_traits::{Signed, Zero};
use penstock_alloc::model::{LimitKind, Network};

pub type Rate = BigRational;

pub fn whole(number: u64) -> Rate {
    Rate::from_integer(number.into())
}

/// A path: its class, and which of the class's.
pub type Path = (usize, usize);

/// In which order events are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The smallest `grow` first: as it is defined.
    Grow,
    /// The smallest `grow / weight` first: not what is built, to compare.
    GrowByWeight,
}

/// What holds for a class at a port.
#[derive(Clone, Debug)]
pub struct Policy {
    pub weight: Rate,
    pub priority: u32,
    pub cap: Option<Rate>,
    pub hard: Option<Rate>,
}

pub struct Exact<'a> {
    pub network: &'a Network,
    /// The ports of each path, aggregates first.
    pub ways: BTreeMap<Path, Vec<u32>>,
    pub rate: BTreeMap<Path, Rate>,
    /// Where each path was frozen last.
    pub frozen_at: BTreeMap<Path, u32>,
    /// (turn, pass, port, class) of each event, with its grow.
    pub events: Vec<(u32, u32, u32, usize, Rate)>,
    live: BTreeSet<Path>,
    order: Order,
}

pub fn exact(network: &Network) -> Exact<'_> {
    exact_in(network, Order::Grow)
}

/// Nothing is shared out yet.
pub fn empty(network: &Network) -> Exact<'_> {
    Exact {
        network,
        ways: ways(network),
        rate: BTreeMap::new(),
        frozen_at: BTreeMap::new(),
        events: Vec::new(),
        live: BTreeSet::new(),
        order: Order::Grow,
    }
}

fn ways(network: &Network) -> BTreeMap<Path, Vec<u32>> {
    let mut ways = BTreeMap::new();
    for (id, class) in network.classes.iter().enumerate() {
        let is_member =
            |aggregate: &usize| network.aggregates[*aggregate].classes.iter().any(|member| *member as usize == id);
        let aggregates = (0..network.aggregates.len()).filter(is_member);
        let aggregates: Vec<u32> = aggregates.map(|at| u32::try_from(network.ports.len() + at).unwrap()).collect();
        for (path, ports) in class.paths.iter().enumerate() {
            ways.insert((id, path), [aggregates.as_slice(), ports.as_slice()].concat());
        }
    }
    ways
}

pub fn exact_in(network: &Network, order: Order) -> Exact<'_> {
    let mut this = Exact { order, ..empty(network) };
    let paths: Vec<Path> =
        network.classes.iter().enumerate().flat_map(|(c, class)| (0..class.paths.len()).map(move |w| (c, w))).collect();
    this.rate = paths.iter().map(|path| (*path, Rate::zero())).collect();
    let turns: BTreeSet<u32> = paths.iter().map(|path| this.turn(*path)).collect();
    for turn in turns {
        for pass in 0.. {
            this.live =
                paths.iter().copied().filter(|path| this.turn(*path) == turn && !this.is_stuck(*path)).collect();
            if this.live.is_empty() {
                break;
            }
            while let Some((port, class, grow)) = this.smallest() {
                this.freeze(port, class, &grow);
                this.events.push((turn, pass, port, class, grow));
            }
        }
    }
    this
}

impl Exact<'_> {
    pub fn ports_of(&self, path: Path) -> &[u32] {
        &self.ways[&path]
    }

    /// Ports, and then aggregates.
    pub fn ports(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.network.ports.len() + self.network.aggregates.len()).unwrap()
    }

    pub fn rate_of(&self, port: u32) -> Rate {
        let rates = self.network.ports.iter().map(|port| port.rate_bps);
        let mut rates = rates.chain(self.network.aggregates.iter().map(|aggregate| aggregate.rate_bps));
        whole(rates.nth(port as usize).unwrap())
    }

    pub fn turn(&self, path: Path) -> u32 {
        self.ports_of(path).iter().map(|port| self.policy(*port, path.0).priority).max().unwrap()
    }

    pub fn policy(&self, port: u32, class: usize) -> Policy {
        let own = &self.network.classes[class];
        if port as usize >= self.network.ports.len() {
            let firsts: BTreeSet<u32> = own.paths.iter().map(|path| path[0]).collect();
            let hard: Option<Vec<Rate>> = firsts.iter().map(|first| self.policy(*first, class).hard).collect();
            let hard: Option<Rate> = hard.map(|limits| limits.into_iter().sum());
            return Policy { weight: whole(own.weight.into()), priority: own.priority, cap: hard.clone(), hard };
        }
        let local = self.network.local.iter().find(|local| local.port == port && local.class as usize == class);
        let limit = local.and_then(|local| local.limit).or(own.limit);
        let caps = [limit.map(|limit| whole(limit.rate_bps)), own.demand_bps.map(whole)];
        Policy {
            weight: whole(local.and_then(|local| local.weight).unwrap_or(own.weight).into()),
            priority: local.and_then(|local| local.priority).unwrap_or(own.priority),
            cap: caps.into_iter().flatten().min(),
            hard: limit.filter(|limit| limit.kind == LimitKind::Hard).map(|limit| whole(limit.rate_bps)),
        }
    }

    /// Paths of a class at a port.
    pub fn paths_at(&self, port: u32, class: usize) -> Vec<Path> {
        let paths = self.ways.range((class, 0)..(class + 1, 0));
        paths.filter(|(_, ports)| ports.contains(&port)).map(|(path, _)| *path).collect()
    }

    pub fn classes_at(&self, port: u32) -> Vec<usize> {
        (0..self.network.classes.len()).filter(|class| !self.paths_at(port, *class).is_empty()).collect()
    }

    pub fn used(&self, port: u32, class: usize) -> Rate {
        self.paths_at(port, class).iter().map(|path| &self.rate[path]).sum()
    }

    /// What is taken of a port: what is reserved, and what those use for whom nothing is.
    pub fn taken(&self, port: u32) -> Rate {
        let of = |class: usize| self.policy(port, class).hard.unwrap_or_else(|| self.used(port, class));
        self.classes_at(port).into_iter().map(of).sum()
    }

    pub fn is_at_cap(&self, port: u32, class: usize) -> bool {
        self.policy(port, class).cap.is_some_and(|cap| self.used(port, class) >= cap)
    }

    pub fn is_stuck_at(&self, port: u32, class: usize) -> bool {
        let full = self.taken(port) >= self.rate_of(port);
        self.is_at_cap(port, class) || (full && self.policy(port, class).hard.is_none())
    }

    pub fn is_stuck(&self, path: Path) -> bool {
        self.ports_of(path).iter().any(|port| self.is_stuck_at(*port, path.0))
    }

    fn live_at(&self, port: u32, class: usize) -> Vec<Path> {
        self.paths_at(port, class).into_iter().filter(|path| self.live.contains(path)).collect()
    }

    fn smallest(&self) -> Option<(u32, usize, Rate)> {
        let mut best: Option<(u32, usize, Rate, Rate)> = None;
        for port in self.ports() {
            for (class, share) in self.shares(port) {
                let live = whole(self.live_at(port, class).len() as u64);
                let grow = (share - self.used(port, class)) / live;
                let key = match self.order {
                    Order::Grow => grow.clone(),
                    Order::GrowByWeight => &grow / whole(self.network.classes[class].weight.into()),
                };
                if best.as_ref().is_none_or(|(_, _, _, least)| key < *least) {
                    best = Some((port, class, grow, key));
                }
            }
        }
        best.map(|(port, class, grow, _)| (port, class, grow))
    }

    /// Of the classes with live paths at a port, by class.
    fn shares(&self, port: u32) -> BTreeMap<usize, Rate> {
        let live: Vec<usize> =
            self.classes_at(port).into_iter().filter(|class| !self.live_at(port, *class).is_empty()).collect();
        let (hard, soft): (Vec<usize>, Vec<usize>) =
            live.iter().partition(|class| self.policy(port, **class).hard.is_some());
        let mut shares: BTreeMap<usize, Rate> =
            hard.into_iter().map(|class| (class, self.policy(port, class).cap.unwrap())).collect();
        let used_by_live: Rate = soft.iter().map(|class| self.used(port, *class)).sum();
        let rate = self.rate_of(port);
        let mut room = (rate - self.taken(port)).max(Rate::zero()) + used_by_live;
        let priorities: BTreeSet<u32> = soft.iter().map(|class| self.policy(port, *class).priority).collect();
        for priority in priorities {
            let at = |class: &&usize| self.policy(port, **class).priority;
            let group: Vec<usize> = soft.iter().filter(|class| at(class) == priority).copied().collect();
            let later: Rate =
                soft.iter().filter(|class| at(class) > priority).map(|class| self.used(port, *class)).sum();
            for (class, share) in self.shares_of(port, &group, &(&room - later)) {
                room -= &share;
                shares.insert(class, share);
            }
        }
        shares
    }

    fn shares_of(&self, port: u32, group: &[usize], room: &Rate) -> Vec<(usize, Rate)> {
        let share = |class: usize, alpha: &Rate| {
            let policy = self.policy(port, class);
            let share = self.used(port, class).max(policy.weight * alpha);
            policy.cap.map_or(share.clone(), |cap| cap.min(share))
        };
        let sum = |alpha: &Rate| -> Rate { group.iter().map(|class| share(*class, alpha)).sum() };
        // The sum is made of lines between these.
        let mut bends: BTreeSet<Rate> = BTreeSet::from([Rate::zero()]);
        for class in group {
            let policy = self.policy(port, *class);
            bends.insert(self.used(port, *class) / &policy.weight);
            bends.extend(policy.cap.map(|cap| cap / &policy.weight));
        }
        let last = bends.last().unwrap().clone();
        let below = bends
            .iter()
            .rev()
            .find(|bend| sum(bend) <= *room)
            .expect("a port has no less than what its classes use")
            .clone();
        // No bend is between it and the next, or after the last.
        let above = bends.range(&below..).nth(1).cloned().unwrap_or(&last + whole(1));
        let slope = (sum(&above) - sum(&below)) / (&above - &below);
        let alpha = if slope.is_positive() { &below + (room - sum(&below)) / slope } else { below };
        group.iter().map(|class| (*class, share(*class, &alpha))).collect()
    }

    fn freeze(&mut self, port: u32, class: usize, grow: &Rate) {
        for path in self.live_at(port, class) {
            *self.rate.get_mut(&path).unwrap() += grow;
            self.live.remove(&path);
            self.frozen_at.insert(path, port);
        }
    }
}
