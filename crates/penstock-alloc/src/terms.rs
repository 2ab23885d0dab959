// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for a class at each of its ports, and which paths go there: a network as dense arrays.

use std::ops::Range;

use crate::model::{Class, LimitKind, LocalPolicy, Network};

/// Rates inside are counted in parts of a bit/s, so that sums are exact whatever their order: 2^16 to the bit/s.
pub(crate) const UNITS: i64 = 1 << 16;
/// No rate is above 2^44 bit/s (17 Tbit/s): weight * rate stays below 2^92, and sums of a port's rates below 2^63.
const RATE_MAX_BPS: u64 = 1 << 44;
/// No cap.
pub(crate) const NO_CAP: i64 = i64::MAX;
/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

/// A class at a port: what holds there, its local policy before its own (section 3.2).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub port: u32,
    pub class: u32,
    pub weight: u32,
    pub priority: u32,
    /// What it may use here: the least of its limit and its demand.
    pub cap: i64,
    /// What is kept for it here, used or not, if its limit is hard.
    pub reserved: Option<i64>,
    /// How many of its paths leave by this port.
    pub paths: u32,
}

/// A port: what it sends, and what of it hard limits have taken.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PortTerms {
    pub rate: i64,
    pub reserved: i64,
    /// How many paths leave by it, all classes together.
    pub paths: u32,
}

/// Lists of numbers, one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lists {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    pub fn get(&self, list: u32) -> &[u32] {
        &self.items[self.range(list)]
    }

    pub fn len(&self) -> u32 {
        to_u32(self.starts.len().saturating_sub(1))
    }

    fn range(&self, list: u32) -> Range<usize> {
        self.starts[list as usize] as usize..self.starts[list as usize + 1] as usize
    }

    /// Lists of what `pairs` put under each number below `count`, in the order of the pairs.
    fn of(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0u32; count + 1];
        for (list, _) in pairs.clone() {
            starts[list as usize + 1] += 1;
        }
        for list in 0..count {
            starts[list + 1] += starts[list];
        }
        let mut next = starts.clone();
        let mut items = vec![0; starts[count] as usize];
        for (list, item) in pairs {
            items[next[list as usize] as usize] = item;
            next[list as usize] += 1;
        }
        Self { starts, items }
    }

    fn open() -> Self {
        Self { starts: vec![0], items: Vec::new() }
    }

    fn close_list(&mut self) {
        self.starts.push(to_u32(self.items.len()));
    }
}

/// A network's policy, compiled.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub ports: Vec<PortTerms>,
    /// By class, and then by port.
    pub slots: Vec<Slot>,
    /// The first path of each class, and one more.
    pub class_paths: Vec<u32>,
    /// The slots of each path, in its order.
    pub path_slots: Lists,
    /// When each path has its turn: the largest number among the priorities of its slots.
    pub path_turn: Vec<u32>,
    /// The paths of each slot.
    pub slot_paths: Lists,
    /// The slots of each port, by class.
    pub port_slots: Lists,
}

impl Terms {
    pub fn new(network: &Network) -> Self {
        let mut local = network.local.clone();
        local.sort_by_key(|policy| (policy.class, policy.port));
        let mut terms = Self {
            ports: network
                .ports
                .iter()
                .map(|port| PortTerms { rate: units(port.rate_bps), reserved: 0, paths: 0 })
                .collect(),
            slots: Vec::new(),
            class_paths: vec![0],
            path_slots: Lists::open(),
            path_turn: Vec::new(),
            slot_paths: Lists::default(),
            port_slots: Lists::default(),
        };
        let mut rest = local.as_slice();
        for (class, id) in network.classes.iter().zip(0u32..) {
            let own = rest.partition_point(|policy| policy.class == id);
            terms.push_class(id, class, &rest[..own]);
            rest = &rest[own..];
        }
        terms.index();
        terms
    }

    fn push_class(&mut self, id: u32, class: &Class, local: &[LocalPolicy]) {
        let first = self.slots.len();
        let mut ports: Vec<u32> = class.paths.iter().flatten().copied().collect();
        ports.sort_unstable();
        for here in ports.chunk_by(|a, b| a == b) {
            let policy = local.iter().find(|policy| policy.port == here[0]);
            self.slots.push(slot(id, here[0], class, policy, to_u32(here.len())));
        }
        for path in &class.paths {
            let mut turn = 0;
            for port in path {
                let at = first + self.slots[first..].partition_point(|slot| slot.port < *port);
                turn = turn.max(self.slots[at].priority);
                self.path_slots.items.push(to_u32(at));
            }
            self.path_slots.close_list();
            self.path_turn.push(turn);
        }
        self.class_paths.push(self.path_slots.len());
        for slot in &self.slots[first..] {
            let port = &mut self.ports[slot.port as usize];
            port.reserved = port.reserved.saturating_add(slot.reserved.unwrap_or(0));
            port.paths += slot.paths;
        }
    }

    fn index(&mut self) {
        let by_port = self.slots.iter().zip(0..).map(|(slot, id)| (slot.port, id));
        self.port_slots = Lists::of(self.ports.len(), by_port);
        let paths = &self.path_slots;
        let by_slot = (0..paths.len()).flat_map(|path| paths.get(path).iter().map(move |slot| (*slot, path)));
        self.slot_paths = Lists::of(self.slots.len(), by_slot);
    }

    /// How close to full, or to its limit, is full: rounding leaves less than a part for each path, and a few for each class.
    pub fn slack(&self, port: u32) -> i64 {
        UNITS / 8 + i64::from(self.ports[port as usize].paths)
    }
}

/// What holds for a class at a port. A demand is a cap as a soft limit is.
fn slot(id: u32, port: u32, class: &Class, local: Option<&LocalPolicy>, paths: u32) -> Slot {
    let limit = local.and_then(|policy| policy.limit).or(class.limit);
    let caps = [limit.map(|limit| limit.rate_bps), class.demand_bps];
    Slot {
        port,
        class: id,
        weight: local.and_then(|policy| policy.weight).unwrap_or(class.weight),
        priority: local.and_then(|policy| policy.priority).unwrap_or(class.priority),
        cap: caps.into_iter().flatten().map(units).min().unwrap_or(NO_CAP),
        reserved: limit.filter(|limit| limit.kind == LimitKind::Hard).map(|limit| units(limit.rate_bps)),
        paths,
    }
}

/// bits/s, as they are counted here.
#[allow(clippy::cast_possible_wrap)] // Below 2^60.
fn units(rate_bps: u64) -> i64 {
    rate_bps.min(RATE_MAX_BPS) as i64 * UNITS
}

/// Whole bits/s.
pub(crate) fn whole_bps(units: i64) -> u64 {
    u64::try_from(units / UNITS).unwrap_or(0)
}

/// Paths and slots are counted in 32 bits: what has more does not fit a controller.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn to_u32(count: usize) -> u32 {
    debug_assert!(u32::try_from(count).is_ok());
    count as u32
}
