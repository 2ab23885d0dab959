// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who shares with whom: the classes of one priority at one port, in the orders in which a filling meets them.

use std::cmp::Ordering;

use crate::terms::{NO_CAP, Slot};

/// Which classes of a port. Those with a hard limit there share with nobody, as what is theirs is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Soft(u32),
    Hard(u32),
}

impl Kind {
    pub fn priority(self) -> u32 {
        match self {
            Self::Soft(priority) | Self::Hard(priority) => priority,
        }
    }

    pub fn is_hard(self) -> bool {
        matches!(self, Self::Hard(_))
    }
}

/// The classes of one priority at a port. While a class uses nothing there, its order is the same whatever alpha is.
#[derive(Debug, Clone)]
pub(crate) struct Arena {
    pub port: u32,
    pub kind: Kind,
    /// By weight / paths, and then by class: how fast one path grows with alpha.
    pub by_slope: Vec<u32>,
    /// Those with a cap, by cap / paths, and then by class: where one path ends.
    pub by_cap: Vec<u32>,
    /// Those with a cap, by cap / weight: the alpha at which they end.
    pub by_bend: Vec<u32>,
}

impl Arena {
    pub fn new(port: u32, kind: Kind) -> Self {
        Self { port, kind, by_slope: Vec::new(), by_cap: Vec::new(), by_bend: Vec::new() }
    }

    pub fn insert(&mut self, id: u32, slots: &[Slot]) {
        if !self.kind.is_hard() {
            insert(&mut self.by_slope, id, slots, slope);
        }
        if slots[id as usize].cap != NO_CAP {
            insert(&mut self.by_cap, id, slots, cap);
            if !self.kind.is_hard() {
                insert(&mut self.by_bend, id, slots, bend);
            }
        }
    }

    /// Puts caps that are others than they were in order.
    pub fn sort_caps(&mut self, slots: &[Slot]) {
        if !self.kind.is_hard() {
            self.by_cap = self.by_slope.iter().copied().filter(|slot| slots[*slot as usize].cap != NO_CAP).collect();
            self.by_bend.clone_from(&self.by_cap);
            sort(&mut self.by_bend, slots, bend);
        }
        sort(&mut self.by_cap, slots, cap);
    }

    pub fn remove(&mut self, id: u32) {
        for list in [&mut self.by_slope, &mut self.by_cap, &mut self.by_bend] {
            if let Some(at) = list.iter().position(|slot| *slot == id) {
                list.remove(at);
            }
        }
    }
}

// Quotients that are equal are equal as rounded, too: ties stay ties.

fn slope(slot: &Slot) -> f64 {
    f64::from(slot.weight) / f64::from(slot.paths)
}

#[allow(clippy::cast_precision_loss)] // Whole bits/s below 2^44, times 2^16: exact.
fn cap(slot: &Slot) -> f64 {
    slot.cap as f64 / f64::from(slot.paths)
}

#[allow(clippy::cast_precision_loss)] // The same.
pub(crate) fn bend(slot: &Slot) -> f64 {
    slot.cap as f64 / f64::from(slot.weight)
}

type Key = fn(&Slot) -> f64;

/// Puts all slots into their arenas.
pub(crate) fn sort_all(arenas: &mut [Arena], slots: &[Slot]) {
    let is_soft = |slot: &Slot| !slot.is_hard;
    let lists = sorted(arenas.len(), slots, slope, is_soft);
    arenas.iter_mut().zip(lists).for_each(|(arena, list)| arena.by_slope = list);
    let lists = sorted(arenas.len(), slots, cap, |slot| slot.cap != NO_CAP);
    arenas.iter_mut().zip(lists).for_each(|(arena, list)| arena.by_cap = list);
    let lists = sorted(arenas.len(), slots, bend, |slot| slot.cap != NO_CAP && is_soft(slot));
    arenas.iter_mut().zip(lists).for_each(|(arena, list)| arena.by_bend = list);
}

fn sorted(arenas: usize, slots: &[Slot], key: Key, is_in: impl Fn(&Slot) -> bool) -> impl Iterator<Item = Vec<u32>> {
    let mut counts = vec![0; arenas];
    slots.iter().filter(|slot| is_in(slot)).for_each(|slot| counts[slot.arena as usize] += 1);
    let mut lists: Vec<Vec<(u64, u32, u32)>> = counts.into_iter().map(Vec::with_capacity).collect();
    for (slot, id) in slots.iter().zip(0u32..).filter(|(slot, _)| is_in(slot)) {
        // Of numbers above zero, the order of their bits is theirs.
        lists[slot.arena as usize].push((key(slot).to_bits(), slot.class, id));
    }
    lists.into_iter().map(|mut list| {
        list.sort();
        list.into_iter().map(|(_, _, id)| id).collect()
    })
}

fn insert(list: &mut Vec<u32>, id: u32, slots: &[Slot], key: Key) {
    let of = |id: u32| (key(&slots[id as usize]), slots[id as usize].class);
    let at = list.partition_point(|before| order(of(*before), of(id)) == Ordering::Less);
    list.insert(at, id);
}

fn sort(list: &mut [u32], slots: &[Slot], key: Key) {
    let of = |id: &u32| (key(&slots[*id as usize]), slots[*id as usize].class);
    list.sort_by(|a, b| order(of(a), of(b)));
}

fn order(a: (f64, u32), b: (f64, u32)) -> Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
}
