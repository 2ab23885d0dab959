// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for a class at each of its ports, and which paths go there: a network as dense arrays, by class, so that what one class has lies together.
//!
//! An aggregate is a port that nobody sees: of its rate, behind all others in the order of ports, and before all others on the paths of its members.
//! There they have their own priorities and weights, no local ones. A limit or a demand is one of each port that is seen, so here a class has none; but
//! who has a hard limit wherever its paths begin, has their sum reserved here, too.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::arena::{Arena, Kind, sort_all};
use crate::model::{Class, LimitKind, LocalPolicy, Membership, Network};

/// Rates inside are counted in parts of a bit/s, so that sums are exact whatever their order: 2^16 to the bit/s.
pub(crate) const UNITS: i64 = 1 << 16;
/// No rate is above 2^44 bit/s (17 Tbit/s), or 2^60 parts: a weight times a rate fits 128 bits, and a few rates together 64. Sums of limits,
/// which no port's rate bounds, have 128.
const RATE_MAX_BPS: u64 = 1 << 44;
/// No cap.
pub(crate) const NO_CAP: i64 = i64::MAX;
/// No slot, no turn.
pub(crate) const NONE: u32 = u32::MAX;

/// A class at a port: what holds there, its local policy before its own (section 3.2).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    /// What it may use here: the least of its limit and its demand.
    pub cap: i64,
    pub port: u32,
    pub class: u32,
    pub weight: u32,
    /// Whom it shares with.
    pub arena: u32,
    /// How many of its paths leave by this port,
    pub paths: u32,
    /// and where their list begins; or which it is, if it is one.
    pub first: u32,
    pub is_hard: bool,
    /// What its limit is here; what is kept for it, used or not, if that is hard. NO_CAP if it has none.
    pub limit: i64,
}

/// A port: what it sends, and what of it hard limits have taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct PortTerms {
    pub rate: i64,
    pub reserved: i128,
    /// What all limits sum to, hard ones and soft ones.
    pub limits: i128,
    /// How many paths leave by it, and what its classes weigh in all.
    pub paths: u64,
    pub weights: u64,
    /// By priority; hard limits at last.
    pub arenas: Vec<u32>,
}

impl PortTerms {
    /// How close to full, or to a limit, is full: rounding leaves less than a part for each path.
    pub fn slack(&self) -> i64 {
        UNITS / 8 + i64::try_from(self.paths).unwrap_or(UNITS)
    }

    /// What there is to share; below zero where hard limits take more than there is.
    pub fn room(&self) -> i64 {
        i64::try_from(i128::from(self.rate) - self.reserved).unwrap_or(i64::MIN / 2)
    }

    fn count(&mut self, slot: &Slot, sign: i128) {
        let limit = if slot.limit == NO_CAP { 0 } else { sign * i128::from(slot.limit) };
        self.limits += limit;
        self.reserved += if slot.is_hard { limit } else { 0 };
    }
}

/// A path: where the list of its slots begins, how long it is, and when it has its turn: the largest number among their priorities.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathTerms {
    pub first: u32,
    pub len: u32,
    pub turn: u32,
    /// Whether its class has a cap somewhere on its way.
    pub has_cap: bool,
    /// Its first slot, if it has its class's slots all, as a class's only path has: they need no list.
    pub run: u32,
}

/// What others say of a class.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Said<'a> {
    /// At some of its ports.
    pub local: &'a [LocalPolicy],
    /// In order.
    pub memberships: &'a [Membership],
}

/// Where a class lies.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClassTerms {
    pub slots: Range<u32>,
    pub paths: Range<u32>,
}

/// A network's policy, compiled. Classes are numbered in file order, which is the order of ties; who leaves leaves its number empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Terms {
    pub ports: Vec<PortTerms>,
    /// From this port on they are aggregates.
    pub aggregates_from: u32,
    pub classes: Vec<ClassTerms>,
    pub slots: Vec<Slot>,
    pub slot_paths: Vec<u32>,
    pub paths: Vec<PathTerms>,
    pub path_slots: Vec<u32>,
    pub arenas: Vec<Arena>,
    /// The paths of each turn; some may have left.
    pub turns: BTreeMap<u32, Vec<u32>>,
}

impl Terms {
    pub fn new(network: &Network) -> Self {
        Self::in_order(network, 0..to_u32(network.classes.len()))
    }

    /// The same terms, whatever the order; but who comes after whom in it lies after them.
    pub fn in_order(network: &Network, order: impl Iterator<Item = u32>) -> Self {
        let mut local = network.local.clone();
        local.sort_by_key(|policy| (policy.class, policy.port));
        let memberships = network.memberships();
        let port = |rate_bps| PortTerms { rate: units(rate_bps), ..PortTerms::default() };
        let rates_bps = network.ports.iter().map(|at| at.rate_bps);
        let rates_bps = rates_bps.chain(network.aggregates.iter().map(|aggregate| aggregate.rate_bps));
        let mut terms = Self {
            ports: rates_bps.map(port).collect(),
            aggregates_from: to_u32(network.ports.len()),
            classes: vec![ClassTerms::default(); network.classes.len()],
            ..Self::default()
        };
        for id in order {
            let said = Said {
                local: run_of(&local, id, |policy| policy.class),
                memberships: run_of(&memberships, id, |(class, _)| *class),
            };
            terms.place(id, &network.classes[id as usize], said);
        }
        sort_all(&mut terms.arenas, &terms.slots);
        terms
    }

    /// Puts a class, whose number is there and has nothing, at its ports.
    pub fn insert(&mut self, id: u32, class: &Class, said: Said<'_>) {
        self.place(id, class, said);
        for slot in self.classes[id as usize].slots.clone() {
            let arena = self.slots[slot as usize].arena;
            self.arenas[arena as usize].insert(slot, &self.slots);
        }
    }

    /// Takes a class from its ports. Its slots and paths stay where they were, and are nobody's.
    pub fn remove(&mut self, id: u32) {
        let class = std::mem::take(&mut self.classes[id as usize]);
        for slot in class.slots {
            let at = self.slots[slot as usize];
            self.arenas[at.arena as usize].remove(slot);
            let port = &mut self.ports[at.port as usize];
            port.count(&at, -1);
            port.weights -= u64::from(at.weight);
            port.paths -= u64::from(at.paths);
        }
        class.paths.for_each(|path| self.paths[path as usize].turn = NONE);
    }

    /// A class asks for something else, at each of its ports. These arenas' orders of caps are wrong until they are sorted.
    pub fn set_demand(&mut self, id: u32, demand_bps: Option<u64>, arenas: &mut Vec<u32>) {
        let demand = demand_bps.map_or(NO_CAP, units);
        let ClassTerms { slots, paths } = self.classes[id as usize].clone();
        for slot in &mut self.slots[slots.start as usize..slots.end as usize] {
            if slot.port < self.aggregates_from {
                slot.cap = slot.limit.min(demand);
                arenas.push(slot.arena);
            }
        }
        for path in paths {
            let has_cap = self.slots_of(path).iter().any(|slot| self.slots[*slot as usize].cap != NO_CAP);
            self.paths[path as usize].has_cap = has_cap;
        }
    }

    fn place(&mut self, id: u32, class: &Class, said: Said<'_>) {
        let (slots, paths) = (to_u32(self.slots.len()), to_u32(self.paths.len()));
        let mut ports: Vec<u32> = class.paths.iter().flatten().copied().collect();
        ports.sort_unstable();
        for here in ports.chunk_by(|a, b| a == b) {
            let policy = said.local.iter().find(|policy| policy.port == here[0]);
            self.place_at(id, here[0], class, policy, to_u32(here.len()));
        }
        let aggregates: Vec<u32> = said.memberships.iter().map(|(_, at)| self.aggregates_from + at).collect();
        if !class.paths.is_empty() {
            aggregates.iter().for_each(|aggregate| self.place_in(id, *aggregate, class, slots));
        }
        for path in &class.paths {
            self.place_path(&aggregates, path, slots);
        }
        let end = to_u32(self.slots.len());
        self.classes[id as usize] = ClassTerms { slots: slots..end, paths: paths..to_u32(self.paths.len()) };
    }

    /// A demand is a cap as a soft limit is.
    fn place_at(&mut self, id: u32, port: u32, class: &Class, local: Option<&LocalPolicy>, paths: u32) {
        let limit = local.and_then(|policy| policy.limit).or(class.limit);
        let caps = [limit.map(|limit| limit.rate_bps), class.demand_bps];
        let is_hard = limit.is_some_and(|limit| limit.kind == LimitKind::Hard);
        let priority = local.and_then(|policy| policy.priority).unwrap_or(class.priority);
        let slot = Slot {
            cap: caps.into_iter().flatten().map(units).min().unwrap_or(NO_CAP),
            port,
            class: id,
            weight: local.and_then(|policy| policy.weight).unwrap_or(class.weight),
            arena: self.arena(port, if is_hard { Kind::Hard(priority) } else { Kind::Soft(priority) }),
            paths,
            first: NONE,
            is_hard,
            limit: limit.map_or(NO_CAP, |limit| units(limit.rate_bps)),
        };
        self.push(slot);
    }

    /// A member in its aggregate, once it is at its ports: these are its slots from `slots` on.
    fn place_in(&mut self, id: u32, aggregate: u32, class: &Class, slots: u32) {
        let reserved = self.reserved_of(class, slots);
        let kind = if reserved.is_some() { Kind::Hard(class.priority) } else { Kind::Soft(class.priority) };
        let slot = Slot {
            cap: reserved.unwrap_or(NO_CAP),
            port: aggregate,
            class: id,
            weight: class.weight,
            arena: self.arena(aggregate, kind),
            paths: to_u32(class.paths.len()),
            first: NONE,
            is_hard: reserved.is_some(),
            limit: reserved.unwrap_or(NO_CAP),
        };
        self.push(slot);
    }

    /// The sum of a class's hard limits where its paths begin, if it has one at each of these ports.
    fn reserved_of(&self, class: &Class, slots: u32) -> Option<i64> {
        let own = &self.slots[slots as usize..];
        let limit = |port: u32| {
            let slot = &own[own.partition_point(|slot| slot.port < port)];
            slot.is_hard.then_some(i128::from(slot.limit))
        };
        let sum = class.first_ports().into_iter().map(limit).sum::<Option<i128>>();
        sum.map(|sum| i64::try_from(sum).unwrap_or(i64::MAX).min(units(RATE_MAX_BPS)))
    }

    fn push(&mut self, slot: Slot) {
        let at = &mut self.ports[slot.port as usize];
        at.count(&slot, 1);
        at.weights += u64::from(slot.weight);
        at.paths += u64::from(slot.paths);
        let first = if slot.paths == 1 { NONE } else { to_u32(self.slot_paths.len()) };
        self.slots.push(Slot { first, ..slot });
        if slot.paths > 1 {
            self.slot_paths.resize(self.slot_paths.len() + slot.paths as usize, NONE);
        }
    }

    fn place_path(&mut self, aggregates: &[u32], ports: &[u32], slots: u32) {
        let path = to_u32(self.paths.len());
        let first = to_u32(self.path_slots.len());
        let own = &mut self.slots[slots as usize..];
        let (mut turn, mut has_cap) = (0, false);
        let len = aggregates.len() + ports.len();
        for port in aggregates.iter().chain(ports) {
            let at = own.partition_point(|slot| slot.port < *port);
            self.path_slots.push(slots + to_u32(at));
            if own[at].paths == 1 {
                own[at].first = path;
            } else {
                let list = &mut self.slot_paths[own[at].first as usize..][..own[at].paths as usize];
                let free = list.partition_point(|path| *path != NONE);
                list[free] = path;
            }
            has_cap |= own[at].cap != NO_CAP;
            turn = turn.max(self.arenas[own[at].arena as usize].kind.priority());
        }
        let run = if own.len() == len { slots } else { NONE };
        self.paths.push(PathTerms { first, len: to_u32(len), turn, has_cap, run });
        self.turns.entry(turn).or_default().push(path);
    }

    /// The arena of a kind at a port, made if there is none.
    fn arena(&mut self, port: u32, kind: Kind) -> u32 {
        let own = &mut self.ports[port as usize].arenas;
        let at = own.partition_point(|arena| self.arenas[*arena as usize].kind < kind);
        if let Some(arena) = own.get(at).filter(|arena| self.arenas[**arena as usize].kind == kind) {
            return *arena;
        }
        let id = to_u32(self.arenas.len());
        own.insert(at, id);
        self.arenas.push(Arena::new(port, kind));
        id
    }

    pub fn reserve(&mut self, slots: usize) {
        self.slots.reserve(slots);
        self.slot_paths.reserve(slots);
        self.paths.reserve(slots);
        self.path_slots.reserve(slots);
    }

    /// The slots of a path, from the first to the last.
    pub fn slots_of(&self, path: u32) -> &[u32] {
        let path = &self.paths[path as usize];
        &self.path_slots[path.first as usize..][..path.len as usize]
    }
}

/// Those of a class, of many in the order of classes.
fn run_of<T>(all: &[T], class: u32, of: impl Fn(&T) -> u32) -> &[T] {
    &all[all.partition_point(|one| of(one) < class)..all.partition_point(|one| of(one) <= class)]
}

/// bits/s, as they are counted here.
#[allow(clippy::cast_possible_wrap)] // Below 2^60.
fn units(rate_bps: u64) -> i64 {
    rate_bps.min(RATE_MAX_BPS) as i64 * UNITS
}

/// Whole bits/s, rounded down.
pub(crate) fn whole_bps(units: i64) -> u64 {
    u64::try_from(units / UNITS).unwrap_or(0)
}

/// Paths and slots are counted in 32 bits: what has more does not fit a controller.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn to_u32(count: usize) -> u32 {
    debug_assert!(u32::try_from(count).is_ok());
    count as u32
}
