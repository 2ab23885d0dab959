// SPDX-License-Identifier: MIT OR Apache-2.0
//! A leader and its nodes in virtual time, with a network between them that loses, doubles and delays. The leader is the real one, and so are the nodes'
//! leases; clocks are set differently and run differently fast.

use penstock_alloc::model::{Aggregate, Class, Network, Port};
use penstock_api::v1;
use penstock_controller::Settings;
use penstock_controller::core::{Core, Session};
use penstock_node::leases::{Leases, Taken};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;
/// Of virtual time.
pub const STEP: u64 = 10 * MS;

/// What the network does to a message.
#[derive(Debug, Clone, Copy)]
pub struct Weather {
    /// Of 1000 messages, how many are lost, and how many come twice.
    pub lost: u32,
    pub doubled: u32,
    /// Longest delay, ns; one of `rarely_one_of` may take up to `rarely_ns`.
    pub delay_ns: u64,
    pub rarely_ns: u64,
    pub rarely_one_of: u32,
}

pub const FAIR: Weather = Weather { lost: 0, doubled: 0, delay_ns: 2 * MS, rarely_ns: 0, rarely_one_of: 0 };

/// A node: real leases, and what its traffic wants.
pub struct Node {
    pub name: String,
    pub leases: Leases,
    pub session: Session,
    pub safe_bps: u64,
    pub demand_bps: u64,
    pub is_cut: bool,
    sequence: u64,
    heard_ns: u64,
    reported_ns: u64,
    is_new: bool,
    /// What is added to the time, and 1/1024 of it that the clock runs faster or slower.
    offset_ns: u64,
    drift: i64,
}

impl Node {
    fn clock_ns(&self, now_ns: u64) -> u64 {
        let fast = i64::try_from(now_ns / 1024).unwrap() * self.drift;
        self.offset_ns + now_ns.checked_add_signed(fast).unwrap()
    }

    /// What it lets through at most.
    pub fn has_bps(&self) -> u64 {
        match self.leases.holding() {
            Some(holding) if !holding.lapsed => {
                holding.limits.values().filter_map(|lent| lent.rate_bps).next().unwrap_or(self.safe_bps)
            }
            _ => self.safe_bps,
        }
    }

    pub fn is_lapsed(&self) -> bool {
        self.leases.holding().is_none_or(|holding| holding.lapsed)
    }
}

enum Letter {
    Report(Session, v1::Report),
    Order(Session, v1::Order),
}

pub struct World {
    pub now_ns: u64,
    pub nodes: Vec<Node>,
    pub leader: Option<Core>,
    pub network: Network,
    /// Of the leader, or the last one.
    pub settings: Settings,
    /// Leases that leaders may lend for: each has one of these.
    pub leases_ns: Vec<u64>,
    pub weather: Weather,
    pub rng: Xoshiro256PlusPlus,
    term: u64,
    elected_ns: u64,
    /// What the store says of leases.
    noted_ns: u64,
    sessions: Session,
    letters: BTreeMap<(u64, u64), Letter>,
    sent: u64,
}

/// `nodes` gateways with a port each, and a tenant that may have `rate_bps` at all of them.
pub fn tenant(nodes: usize, rate_bps: u64) -> Network {
    let names = (0..nodes).map(|node| format!("gw{node}"));
    let port =
        |name: String| Port { name: format!("{name}-up"), switch: name, rate_bps: 10 * rate_bps, buffer_bytes: 0 };
    let class = |node: usize| Class {
        name: format!("t-gw{node}"),
        weight: 1,
        paths: vec![vec![u32::try_from(node).unwrap()]],
        ..Class::default()
    };
    let classes = (0..nodes).map(|node| u32::try_from(node).unwrap()).collect();
    Network {
        ports: names.map(port).collect(),
        classes: (0..nodes).map(class).collect(),
        aggregates: vec![Aggregate { name: "t".to_owned(), rate_bps, classes }],
        local: Vec::new(),
    }
}

impl World {
    pub fn new(network: Network, settings: Settings, weather: Weather, mut rng: Xoshiro256PlusPlus) -> Self {
        let safe = network.all_safe_bps();
        let nodes = (0..network.ports.len()).map(|node| Node {
            name: network.ports[node].switch.clone(),
            leases: Leases::default(),
            session: 0,
            safe_bps: safe[node].unwrap(),
            demand_bps: 0,
            is_cut: false,
            sequence: 0,
            heard_ns: 0,
            reported_ns: 0,
            is_new: true,
            offset_ns: rng.random_range(0..1000 * SECOND),
            drift: rng.random_range(-4..=4),
        });
        let nodes = nodes.collect();
        let mut world = Self {
            now_ns: SECOND,
            nodes,
            leader: None,
            network,
            settings,
            leases_ns: vec![settings.lease_ns],
            weather,
            rng,
            term: 0,
            elected_ns: SECOND,
            noted_ns: settings.lease_ns,
            sessions: 0,
            letters: BTreeMap::new(),
            sent: 0,
        };
        world.elect();
        world
    }

    /// Another leader, who knows nothing. Orders of the one before may still be on their way.
    pub fn elect(&mut self) {
        self.term += 1;
        self.elected_ns = self.now_ns;
        self.settings.lease_ns = self.leases_ns[self.rng.random_range(0..self.leases_ns.len())];
        self.settings.lease_before_ns = self.noted_ns;
        let mut core = Core::new(self.term, self.settings, self.now_ns);
        core.set_network(1, self.network.clone());
        self.leader = Some(core);
        // Streams to the one before break.
        self.nodes.iter_mut().for_each(|node| node.heard_ns = 0);
    }

    /// Another network, of the same nodes.
    pub fn put(&mut self, network: Network) {
        self.network = network;
        if let Some(leader) = &mut self.leader {
            leader.set_network(2, self.network.clone());
        }
    }

    pub fn sum_bps(&self) -> u64 {
        self.nodes.iter().map(Node::has_bps).sum()
    }

    /// What passes: nobody sends more than it wants.
    pub fn passes_bps(&self) -> u64 {
        self.nodes.iter().map(|node| node.has_bps().min(node.demand_bps)).sum()
    }

    pub fn run(&mut self, time_ns: u64, mut each: impl FnMut(&mut Self)) {
        let end_ns = self.now_ns + time_ns;
        while self.now_ns < end_ns {
            self.step();
            each(self);
        }
    }

    pub fn step(&mut self) {
        self.now_ns += STEP;
        for at in 0..self.nodes.len() {
            self.node(at);
        }
        let later = self.letters.split_off(&(self.now_ns + 1, 0));
        for (_, letter) in std::mem::replace(&mut self.letters, later) {
            self.deliver(letter);
        }
        if let Some(leader) = &mut self.leader {
            self.noted_ns = self.settings.lease_noted_ns(self.now_ns - self.elected_ns);
            for (session, order) in leader.turn(self.now_ns) {
                self.post(session, Letter::Order(session, order));
            }
        }
    }

    fn node(&mut self, at: usize) {
        let now_ns = self.now_ns;
        let node = &mut self.nodes[at];
        let clock_ns = node.clock_ns(now_ns);
        if node.leases.is_over(clock_ns) {
            node.leases.lapse();
        }
        if node.is_new || now_ns > node.heard_ns + SECOND {
            self.sessions += 1;
            (node.session, node.sequence, node.is_new, node.heard_ns) = (self.sessions, 0, false, now_ns);
            node.leases.attend();
        } else if now_ns < node.reported_ns + 100 * MS {
            return;
        }
        let report = report(node, clock_ns);
        node.reported_ns = now_ns;
        let session = node.session;
        self.post(session, Letter::Report(session, report));
    }

    fn post(&mut self, session: Session, letter: Letter) {
        let is_cut = self.nodes.iter().any(|node| node.session == session && node.is_cut);
        let Weather { lost, doubled, delay_ns, rarely_ns, rarely_one_of } = self.weather;
        if is_cut || self.rng.random_range(0..1000) < lost {
            return;
        }
        // The first message of a stream comes once: it makes the stream.
        let is_first = matches!(&letter, Letter::Report(_, report) if report.registration.is_some());
        let times = 1 + u32::from(self.rng.random_range(0..1000) < doubled && !is_first);
        for _ in 0..times {
            let rarely = rarely_one_of > 0 && self.rng.random_range(0..rarely_one_of) == 0;
            let most_ns = if rarely { rarely_ns } else { delay_ns };
            let at_ns = self.now_ns + self.rng.random_range(0..=most_ns);
            self.sent += 1;
            let letter = match &letter {
                Letter::Report(session, report) => Letter::Report(*session, report.clone()),
                Letter::Order(session, order) => Letter::Order(*session, order.clone()),
            };
            self.letters.insert((at_ns, self.sent), letter);
        }
    }

    fn deliver(&mut self, letter: Letter) {
        match letter {
            Letter::Report(session, report) => {
                if let Some(leader) = &mut self.leader {
                    leader.report(session, &report, self.now_ns);
                }
            }
            Letter::Order(session, order) => {
                let now_ns = self.now_ns;
                // A node that has opened another stream hears nothing on this one any more.
                let Some(node) = self.nodes.iter_mut().find(|node| node.session == session && !node.is_cut) else {
                    return;
                };
                node.heard_ns = now_ns;
                let clock_ns = node.clock_ns(now_ns);
                if node.leases.is_over(clock_ns) {
                    node.leases.lapse();
                }
                if node.leases.take(&order, clock_ns) == Taken::Changed {
                    let report = report(node, clock_ns);
                    node.reported_ns = now_ns;
                    self.post(session, Letter::Report(session, report));
                }
            }
        }
    }
}

fn report(node: &mut Node, clock_ns: u64) -> v1::Report {
    node.sequence += 1;
    node.leases.sent(node.sequence, clock_ns);
    let has_bps = node.has_bps();
    let holding = node.leases.holding();
    let holds = |holding: &penstock_node::leases::Holding| {
        let lent = |(number, lent): (&u32, &penstock_node::leases::Lent)| v1::Lent {
            limit: *number,
            port: lent.port.clone(),
            class: lent.class.clone(),
            rate_bps: Some(has_bps),
            safe_bps: lent.safe_bps,
        };
        holding.limits.iter().map(lent).collect()
    };
    let registration = || v1::Registration {
        node: node.name.clone(),
        version: "test".to_owned(),
        ports: Vec::new(),
        holds: holding.map(holds).unwrap_or_default(),
        machine: node.name.clone(),
    };
    let demand = |number: &u32| v1::Demand {
        limit: *number,
        offered_bps: node.demand_bps,
        passed_bps: node.demand_bps.min(has_bps),
    };
    v1::Report {
        sequence: node.sequence,
        registration: (node.sequence == 1).then(registration),
        applied: holding.map(|holding| holding.epoch.into()),
        lapsed: holding.is_some_and(|holding| holding.lapsed),
        demands: holding.map(|holding| holding.limits.keys().map(demand).collect()).unwrap_or_default(),
        wants_all: node.leases.wants_all(),
        ..v1::Report::default()
    }
}
