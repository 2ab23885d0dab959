// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a leader knows and does, without clocks, streams or stores: what happens goes in, orders come out.
//!
//! Targets   what each limit should have: the allocation, with demands as nodes report them ([`allocate`]).
//! Offers    what it can have of that now: an aggregate's member is raised only by what the others have verifiably given up ([`settle`]).
//! Orders    what a node is told: the offers that differ from what it was told before ([`orders`]).
//!
//! Bound     while nodes are heard, the sum of an aggregate's members is at most its rate, whatever orders and reports are lost, doubled or late.
//!           Nodes that are cut off fall back to their safe rates, each within a lease: all members together then send at most
//!           (sum of their safe rates) * lease above the aggregate's rate, and nothing above it from then on.

mod allocate;
mod demands;
mod held;
mod lines;
mod network;
mod node;
mod orders;
mod reading;
mod reports;
mod settle;
mod standing;

pub use node::Session;
pub use reading::{AggregateReading, Reading};

use lines::{LineId, Lines, NodeId};
use node::{Node, Standing, with_drift};
use penstock_alloc::allocator::Allocator;
use penstock_alloc::model::ClassId;
use penstock_api::v1;
use std::collections::HashMap;

/// How a leader lends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How long a limit is lent for, ns.
    pub lease_ns: u64,
    /// How long leaders before this one may have lent limits for, ns.
    pub lease_before_ns: u64,
    /// A node that was not heard of for so long may be cut off, ns.
    pub silent_ns: u64,
    /// Between a node's reports, ns; longer where there are many nodes, or limits.
    pub report_every_ns: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease_ns: 5_000_000_000,
            lease_before_ns: 5_000_000_000,
            silent_ns: 1_000_000_000,
            report_every_ns: 20_000_000,
        }
    }
}

impl Settings {
    /// How long limits may be lent for by this leader or one before it, once it has led for `led_ns`: what the next one has to reckon with.
    #[must_use]
    pub fn lease_noted_ns(&self, led_ns: u64) -> u64 {
        match led_ns > with_drift(self.lease_before_ns) {
            true => self.lease_ns,
            false => self.lease_ns.max(self.lease_before_ns),
        }
    }
}

/// Between allocations at least, ns, and what is added for each class.
const ALLOCATE_EVERY_NS: (u64, u64) = (20_000_000, 1_000);
/// A new leader changes nothing until all nodes have come and reported for the first time, ns, or at most for the second, ns.
const STILL_NS: (u64, u64) = (250_000_000, 1_250_000_000);

/// A leader.
pub struct Core {
    settings: Settings,
    term: u64,
    started_ns: u64,
    /// Of the newest epoch.
    number: u64,
    nodes: Vec<Node>,
    by_name: HashMap<String, NodeId>,
    by_session: HashMap<Session, NodeId>,
    /// When the last node came that this leader did not know.
    learned_ns: u64,
    network: Option<Current>,
    /// Numbers of nodes that are no more.
    free: Vec<NodeId>,
    /// Sessions that have ended here.
    over: Vec<(Session, Over)>,
}

/// Why a session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Over {
    /// Another machine has the limits of the node of this name, or may have them.
    Taken(String),
    /// The node attends on another stream.
    Replaced,
    /// Its limits get other numbers: it is to come again.
    Renumbered,
}

/// The network that is kept.
struct Current {
    revision: u64,
    allocator: Allocator,
    lines: Lines,
    /// Classes whose demand moved since the last allocation.
    moved: Vec<ClassId>,
    is_moved: Vec<bool>,
    /// There was no allocation of this network yet.
    is_new: bool,
    allocated_ns: u64,
    /// Aggregates whose members may be raised or lowered.
    unsettled: Vec<bool>,
    /// What members of before may have still.
    ghosts: Vec<Ghost>,
    /// What of it cannot be, for people: who put it may have had another version of this program.
    problems: Vec<String>,
}

/// A member that another network does not have: its node may have its rate until its lease is over.
struct Ghost {
    aggregate: u32,
    bps: u64,
    until_ns: u64,
}

impl Core {
    /// A leader of a term that nobody had before, from `now_ns` on. Times are of its own clock.
    #[must_use]
    pub fn new(term: u64, settings: Settings, now_ns: u64) -> Self {
        Self {
            settings,
            term,
            started_ns: now_ns,
            number: 0,
            nodes: Vec::new(),
            by_name: HashMap::new(),
            by_session: HashMap::new(),
            learned_ns: now_ns,
            network: None,
            free: Vec::new(),
            over: Vec::new(),
        }
    }

    /// Sessions that have ended here since this was asked last, and why: their streams are to be closed.
    pub fn take_over(&mut self) -> Vec<(Session, Over)> {
        std::mem::take(&mut self.over)
    }

    /// What is to be sent at this moment. To be called whenever something happened, and every 20 ms or so.
    pub fn turn(&mut self, now_ns: u64) -> Vec<(Session, v1::Order)> {
        self.share_out(now_ns);
        self.tell(now_ns)
    }

    /// The first half of a turn, which may take long: sees who is there, and shares out the network again if that is due. Whether it was.
    pub fn share_out(&mut self, now_ns: u64) -> bool {
        self.look(now_ns);
        self.allocate(now_ns)
    }

    /// The second half of a turn: what is to be sent.
    pub fn tell(&mut self, now_ns: u64) -> Vec<(Session, v1::Order)> {
        self.settle();
        self.orders(now_ns)
    }

    /// Sees who fell silent, and whose lease is over.
    fn look(&mut self, now_ns: u64) {
        if let Some(current) = &mut self.network {
            let over = current.ghosts.extract_if(.., |ghost| now_ns > ghost.until_ns);
            over.for_each(|ghost| current.unsettled[ghost.aggregate as usize] = true);
        }
        for node in 0..self.nodes.len() {
            let standing = self.nodes[node].standing_at(now_ns, &self.settings);
            if standing != self.nodes[node].standing {
                self.nodes[node].standing = standing;
                self.stands_otherwise(node);
            }
        }
    }

    /// What a node has at worst is counted otherwise from now on.
    fn stands_otherwise(&mut self, node: usize) {
        let Some(current) = &mut self.network else { return };
        for line in self.nodes[node].lines.iter().flatten() {
            current.class_moved(current.lines.all[*line as usize].class);
            current.line_unsettled(*line);
        }
    }

    /// A new leader learns what nodes have before it changes anything.
    fn is_still(&self, now_ns: u64) -> bool {
        let is_known = |node: &Node| node.is_known || node.lines.is_empty();
        let until_ns = match self.nodes.iter().all(is_known) {
            true => self.learned_ns.max(self.started_ns) + STILL_NS.0,
            false => self.started_ns + STILL_NS.1,
        };
        now_ns < until_ns.min(self.started_ns + STILL_NS.1)
    }

    /// The number of a node; it is made known if it is new. A leader before this one may have lent it something.
    fn node(&mut self, name: &str) -> NodeId {
        if let Some(node) = self.by_name.get(name) {
            return *node;
        }
        let new = Node::new(name, self.started_ns.saturating_add(with_drift(self.settings.lease_before_ns)));
        let node = match self.free.pop() {
            Some(node) => {
                self.nodes[node as usize] = new;
                node
            }
            None => {
                self.nodes.push(new);
                u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.by_name.insert(name.to_owned(), node);
        node
    }
}

impl Current {
    /// A class asks for more or less than before.
    fn class_moved(&mut self, class: ClassId) {
        if !std::mem::replace(&mut self.is_moved[class as usize], true) {
            self.moved.push(class);
        }
    }

    /// What bounds a line is to be looked at again.
    fn line_unsettled(&mut self, line: LineId) {
        for aggregate in &self.lines.all[line as usize].aggregates {
            self.unsettled[*aggregate as usize] = true;
        }
    }
}

/// What a line may have at worst, bits/s; none while that is unknown.
fn worst_bps(line: &lines::Line, node: &Node) -> Option<u64> {
    let safe_bps = line.safe_worst_bps();
    // A node that was never told of a limit has the rate of its own policy, which should be no more than the safe one.
    let has_bps = line.held.as_ref().map_or(safe_bps, held::Held::worst_bps);
    match node.standing {
        Standing::Unknown | Standing::Coming => None,
        Standing::Heard if node.is_known => Some(has_bps),
        // Its lease may be over since it said so.
        Standing::Heard | Standing::Silent => Some(has_bps.max(safe_bps)),
        Standing::Lapsed => Some(safe_bps),
    }
}
