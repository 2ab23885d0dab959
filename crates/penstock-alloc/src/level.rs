// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the classes of an arena are filled: alpha, and each one's share.
//!
//! ```text
//! sum of share(c) = room,  share(c) = min(cap(c), max(used(c), weight(c) * alpha))
//! ```
//!
//! A class waits while alpha is below used / weight, grows with it, and ends at its cap. Of those that grow, alpha = left / weight: what is left
//! of the room when all others have theirs, for the weight of those that grow. Within a pass alpha only rises (see `fill`), so where classes begin
//! and end is met in one order, once.

use crate::arena::bend;
use crate::terms::{NO_CAP, Slot, Terms};

/// What a class does at a port as alpha rises.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its share is what it uses,
    Waits,
    /// its weight times alpha,
    #[default]
    Grows,
    /// or its cap.
    Ended,
}

/// A class at a port, in a filling.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Use {
    pub used: i64,
    /// How many of its paths here are live.
    pub live: u32,
    pub phase: Phase,
}

/// Those of an arena that have live paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct Level {
    /// What those weigh that grow.
    pub weight: u64,
    /// The shares of those that wait or have ended.
    fixed: i64,
    /// What all use; the sum of caps of those that have one; how many have none; how many there are.
    used: i64,
    caps: i64,
    uncapped: u32,
    pub open: u32,
    /// Whether some used something when the pass began: then their bends are `bends`, and not the arena's.
    pub has_waited: bool,
    bends: Vec<Bend>,
    next_bend: usize,
    /// How far the arena's orders are done.
    pub next_slope: usize,
    pub next_cap: usize,
}

#[derive(Debug, Clone, Copy)]
struct Bend {
    alpha: f64,
    rate: i64,
    slot: u32,
    is_begin: bool,
}

/// What is left of a port when those have theirs who have no live paths there; and how many of its arenas have some who do.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Room {
    pub left: i64,
    open: u32,
}

/// All arenas of a network.
#[derive(Debug, Clone, Default)]
pub(crate) struct Levels {
    pub uses: Vec<Use>,
    pub levels: Vec<Level>,
    pub rooms: Vec<Room>,
}

impl Levels {
    pub fn reset(&mut self, terms: &Terms) {
        self.uses.clear();
        self.uses.resize(terms.slots.len(), Use::default());
        self.levels.resize_with(terms.arenas.len(), Level::default);
        self.rooms.clear();
        self.rooms.extend(terms.ports.iter().map(|port| Room { left: port.rate - port.reserved, open: 0 }));
    }

    /// Whether a class can get no more at a port: the port is full, or it is at its cap. What is reserved for it is there, however full the port is.
    pub fn is_stuck(&self, terms: &Terms, id: u32) -> bool {
        let slot = &terms.slots[id as usize];
        let slack = terms.ports[slot.port as usize].slack();
        (slot.reserved.is_none() && self.rooms[slot.port as usize].left <= slack)
            || self.uses[id as usize].used >= slot.cap.saturating_sub(slack)
    }

    /// A class has live paths at a port from now on. Returns whether it is the first of its arena.
    pub fn enter(&mut self, id: u32, slot: &Slot) -> bool {
        let here = &mut self.uses[id as usize];
        let level = &mut self.levels[slot.arena as usize];
        let room = &mut self.rooms[slot.port as usize];
        let is_first = level.open == 0;
        level.open += 1;
        if slot.reserved.is_some() {
            level.has_waited |= here.used > 0;
            return is_first;
        }
        room.open += u32::from(is_first);
        room.left += here.used;
        level.used += here.used;
        if slot.cap == NO_CAP {
            level.uncapped += 1;
        } else {
            level.caps += slot.cap;
        }
        if here.used == 0 {
            here.phase = Phase::Grows;
            level.weight += u64::from(slot.weight);
        } else {
            here.phase = Phase::Waits;
            level.fixed += here.used;
            level.has_waited = true;
        }
        is_first
    }

    /// Of a class in an arena where some have used something: where it begins and ends.
    pub fn add_bends(&mut self, id: u32, slot: &Slot) {
        let here = &self.uses[id as usize];
        let bends = &mut self.levels[slot.arena as usize].bends;
        if here.phase == Phase::Waits {
            #[allow(clippy::cast_precision_loss)] // A bend too early by rounding moves alpha by as little.
            let alpha = here.used.min(slot.cap) as f64 / f64::from(slot.weight);
            bends.push(Bend { alpha, rate: here.used.min(slot.cap), slot: id, is_begin: true });
        }
        if slot.cap != NO_CAP {
            bends.push(Bend { alpha: bend(slot), rate: slot.cap, slot: id, is_begin: false });
        }
    }

    /// All who will have entered: a pass begins.
    pub fn begin(&mut self, arena: u32) {
        let level = &mut self.levels[arena as usize];
        level
            .bends
            .sort_by(|a, b| a.alpha.total_cmp(&b.alpha).then(b.is_begin.cmp(&a.is_begin)).then(a.slot.cmp(&b.slot)));
        (level.next_bend, level.next_slope, level.next_cap) = (0, 0, 0);
    }

    /// The pass is over.
    pub fn end(&mut self, arena: u32) {
        let level = &mut self.levels[arena as usize];
        debug_assert_eq!(
            (level.weight, level.fixed, level.used, level.caps, level.uncapped, level.open),
            (0, 0, 0, 0, 0, 0)
        );
        level.bends.clear();
        level.has_waited = false;
    }

    /// One live path less at a port, for it got `grow` more and is frozen.
    pub fn freeze(&mut self, id: u32, slot: &Slot, grow: i64) {
        let here = &mut self.uses[id as usize];
        here.used += grow;
        here.live -= 1;
        let is_out = here.live == 0;
        let level = &mut self.levels[slot.arena as usize];
        level.open -= u32::from(is_out);
        if slot.reserved.is_some() {
            return;
        }
        level.used += grow;
        if here.phase == Phase::Waits {
            level.fixed += grow;
        }
        if is_out {
            self.leave(id, slot);
        }
    }

    fn leave(&mut self, id: u32, slot: &Slot) {
        let here = &self.uses[id as usize];
        let level = &mut self.levels[slot.arena as usize];
        let room = &mut self.rooms[slot.port as usize];
        match here.phase {
            Phase::Waits => level.fixed -= here.used,
            Phase::Grows => level.weight -= u64::from(slot.weight),
            Phase::Ended => level.fixed -= slot.cap,
        }
        level.used -= here.used;
        if slot.cap == NO_CAP {
            level.uncapped -= 1;
        } else {
            level.caps -= slot.cap;
        }
        room.left -= here.used;
        room.open -= u32::from(level.open == 0);
    }

    /// What a class may have at a port in all.
    pub fn share(&mut self, terms: &Terms, id: u32) -> i64 {
        let slot = &terms.slots[id as usize];
        if slot.reserved.is_some() {
            return slot.cap;
        }
        let left = self.settle(terms, slot.arena);
        let weight = self.levels[slot.arena as usize].weight;
        let by_weight = if weight == 0 { slot.cap } else { part(slot.weight, left, weight) };
        by_weight.max(self.uses[id as usize].used).min(slot.cap)
    }

    /// Moves to where alpha is now; returns what is left for those that grow.
    fn settle(&mut self, terms: &Terms, arena: u32) -> i64 {
        let mut left = self.left(terms, arena);
        let level = &mut self.levels[arena as usize];
        let by_bend = terms.arenas[arena as usize].by_bend.as_slice();
        loop {
            let bend = if level.has_waited {
                level.bends.get(level.next_bend).copied()
            } else {
                let end = by_bend.get(level.next_bend);
                end.map(|slot| Bend { alpha: 0.0, rate: terms.slots[*slot as usize].cap, slot: *slot, is_begin: false })
            };
            let Some(Bend { rate, slot: id, is_begin, .. }) = bend else { break };
            let slot = &terms.slots[id as usize];
            let here = &mut self.uses[id as usize];
            if here.live > 0 {
                let is_ahead =
                    i128::from(left) * i128::from(slot.weight) <= i128::from(rate) * i128::from(level.weight);
                if level.weight > 0 && is_ahead {
                    break;
                }
                let (phase, fixed) = if is_begin { (Phase::Grows, -here.used) } else { (Phase::Ended, slot.cap) };
                here.phase = phase;
                level.fixed += fixed;
                left -= fixed;
                level.weight = if is_begin {
                    level.weight + u64::from(slot.weight)
                } else {
                    level.weight - u64::from(slot.weight)
                };
            }
            level.next_bend += 1;
        }
        left
    }

    /// What is left for those of an arena that grow. Where local priorities meet others at a port, the smaller numbers take what they may first;
    /// nobody loses what it uses already.
    fn left(&self, terms: &Terms, arena: u32) -> i64 {
        let level = &self.levels[arena as usize];
        let port = terms.arenas[arena as usize].port as usize;
        let room = &self.rooms[port];
        if room.open <= 1 {
            return room.left - level.fixed;
        }
        let arenas = terms.ports[port].arenas.iter().filter(|arena| !terms.arenas[**arena as usize].kind.is_hard());
        let mut free = room.left - arenas.clone().map(|arena| self.levels[*arena as usize].used).sum::<i64>();
        for before in arenas.take_while(|other| **other != arena).map(|other| &self.levels[*other as usize]) {
            free = if before.uncapped > 0 { 0 } else { (free - (before.caps - before.used)).max(0) };
        }
        free + level.used - level.fixed
    }
}

/// weight * left / weights, rounded down.
fn part(weight: u32, left: i64, weights: u64) -> i64 {
    let left = u64::try_from(left).unwrap_or(0);
    let part = match left.checked_mul(u64::from(weight)) {
        Some(product) => product / weights,
        None => u64::try_from(u128::from(left) * u128::from(weight) / u128::from(weights)).unwrap_or(0),
    };
    i64::try_from(part).unwrap_or(i64::MAX)
}
