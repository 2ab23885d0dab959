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

/// Whether a class has a cap at a port, and whether that is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cap {
    None,
    Soft,
    Hard,
}

/// A class at a port, in a filling, with all that taking it has to know. These are met in no order, and most of a filling's time is waiting for
/// them, so they are short: 32 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Use {
    pub used: i64,
    /// How many of its paths here are live.
    pub live: u32,
    arena: u32,
    weight: u32,
    pub class: u32,
    first_path: u32,
    /// 0 if there are more than fit.
    paths: u16,
    pub phase: Phase,
    cap: Cap,
}

impl Use {
    fn new(slot: &Slot) -> Self {
        let cap = if slot.is_hard { Cap::Hard } else { Cap::Soft };
        Self {
            used: 0,
            live: 0,
            arena: slot.arena,
            weight: slot.weight,
            class: slot.class,
            first_path: slot.first,
            paths: u16::try_from(slot.paths).unwrap_or(0),
            phase: Phase::Grows,
            cap: if slot.cap == NO_CAP { Cap::None } else { cap },
        }
    }

    /// Whether all of its paths are live and have got nothing yet: then its place in its arena's orders is right.
    pub fn is_whole(&self) -> bool {
        self.used == 0 && self.live == u32::from(self.paths)
    }

    /// Its paths here: the only one, or a list.
    pub fn paths<'a>(&self, terms: &'a Terms) -> impl Iterator<Item = u32> + use<'a> {
        let first = self.first_path;
        let list = match self.paths {
            1 => &[][..],
            0 => &terms.slot_paths[first as usize..], // Longer than it is; who is not live is passed over.
            count => &terms.slot_paths[first as usize..][..usize::from(count)],
        };
        (self.paths == 1).then_some(first).into_iter().chain(list.iter().copied())
    }
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
    caps: i128,
    uncapped: u32,
    pub open: u32,
    port: u32,
    next_bend: u32,
    /// How far the arena's orders are done.
    pub next_slope: u32,
    pub next_cap: u32,
    /// Whether some used something when the pass began: then their bends are not the arena's, but of this pass.
    pub has_waited: bool,
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
    rooms: Vec<Room>,
    /// Of each arena where some waited.
    bends: Vec<Vec<Bend>>,
    /// Of each arena, whether its port is full.
    is_full: Vec<bool>,
    pub some_are_full: bool,
    /// A bit for each slot: whether it has live paths.
    live: Vec<u64>,
}

impl Levels {
    pub fn reset(&mut self, terms: &Terms) {
        // Slots are never written over.
        self.uses.iter_mut().for_each(|here| (here.used, here.live, here.phase) = (0, 0, Phase::Grows));
        self.uses.extend(terms.slots[self.uses.len()..].iter().map(Use::new));
        self.levels.clear();
        self.levels.extend(terms.arenas.iter().map(|arena| Level { port: arena.port, ..Level::default() }));
        self.bends.resize_with(terms.arenas.len(), Vec::new);
        self.rooms.clear();
        self.rooms.extend(terms.ports.iter().map(|port| Room { left: port.room(), open: 0 }));
        self.live.clear();
        self.live.resize(terms.slots.len().div_ceil(64), 0);
        self.find_full(terms);
    }

    /// The cap of a class at a port is another than it was.
    pub fn renew(&mut self, terms: &Terms, id: u32) {
        self.uses[id as usize] = Use::new(&terms.slots[id as usize]);
    }

    /// Finds what ports are full, for `is_stuck`.
    pub fn find_full(&mut self, terms: &Terms) {
        let is_full = |port: u32| self.rooms[port as usize].left <= terms.ports[port as usize].slack();
        self.is_full.clear();
        // What is reserved for a class is there, however full the port is.
        self.is_full.extend(terms.arenas.iter().map(|arena| !arena.kind.is_hard() && is_full(arena.port)));
        self.some_are_full = self.is_full.contains(&true);
    }

    /// Whether a class can get no more at a port: the port is full, or it is at its cap.
    pub fn is_stuck(&self, terms: &Terms, id: u32) -> bool {
        let here = &self.uses[id as usize];
        self.is_full[here.arena as usize] || (here.cap != Cap::None && self.is_at_cap(terms, id))
    }

    pub fn is_at_cap(&self, terms: &Terms, id: u32) -> bool {
        let slot = &terms.slots[id as usize];
        self.uses[id as usize].used >= slot.cap - terms.ports[slot.port as usize].slack()
    }

    pub fn is_live(&self, id: u32) -> bool {
        self.live[id as usize / 64] >> (id % 64) & 1 == 1
    }

    /// One more live path at a port. Returns its arena, if it is the first of it.
    pub fn add_live(&mut self, id: u32, terms: &Terms) -> Option<u32> {
        let here = &mut self.uses[id as usize];
        here.live += 1;
        if here.live > 1 {
            return None;
        }
        self.live[id as usize / 64] |= 1 << (id % 64);
        let level = &mut self.levels[here.arena as usize];
        let first = (level.open == 0).then_some(here.arena);
        level.open += 1;
        level.has_waited |= here.used > 0;
        let room = &mut self.rooms[level.port as usize];
        match here.cap {
            Cap::Hard => return first,
            Cap::Soft => level.caps += i128::from(terms.slots[id as usize].cap),
            Cap::None => level.uncapped += 1,
        }
        room.open += u32::from(first.is_some());
        if here.used == 0 {
            here.phase = Phase::Grows;
            level.weight += u64::from(here.weight);
        } else {
            here.phase = Phase::Waits;
            level.fixed += here.used;
            level.used += here.used;
            room.left += here.used;
        }
        first
    }

    /// Of a class in an arena where some have used something: where it begins and ends.
    pub fn add_bends(&mut self, id: u32, slot: &Slot) {
        let here = &self.uses[id as usize];
        let bends = &mut self.bends[slot.arena as usize];
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
        (level.next_bend, level.next_slope, level.next_cap) = (0, 0, 0);
        let order = |a: &Bend, b: &Bend| {
            a.alpha.total_cmp(&b.alpha).then(b.is_begin.cmp(&a.is_begin)).then(a.slot.cmp(&b.slot))
        };
        self.bends[arena as usize].sort_by(order);
    }

    /// The pass is over.
    pub fn end(&mut self, arena: u32) {
        let level = &mut self.levels[arena as usize];
        debug_assert_eq!(
            (level.weight, level.fixed, level.used, level.caps, level.uncapped, level.open),
            (0, 0, 0, 0, 0, 0)
        );
        level.has_waited = false;
        self.bends[arena as usize].clear();
    }

    /// One live path less at a port, for it got `grow` more and is frozen.
    pub fn freeze(&mut self, id: u32, terms: &Terms, grow: i64) {
        let here = &mut self.uses[id as usize];
        here.used += grow;
        here.live -= 1;
        let is_out = here.live == 0;
        if is_out {
            self.live[id as usize / 64] &= !(1 << (id % 64));
        }
        let level = &mut self.levels[here.arena as usize];
        level.open -= u32::from(is_out);
        if here.cap == Cap::Hard {
            return;
        }
        level.used += grow;
        if here.phase == Phase::Waits {
            level.fixed += grow;
        }
        if is_out {
            self.leave(id, terms);
        }
    }

    fn leave(&mut self, id: u32, terms: &Terms) {
        let here = &self.uses[id as usize];
        let level = &mut self.levels[here.arena as usize];
        match here.phase {
            Phase::Waits => level.fixed -= here.used,
            Phase::Grows => level.weight -= u64::from(here.weight),
            Phase::Ended => level.fixed -= terms.slots[id as usize].cap,
        }
        level.used -= here.used;
        if here.cap == Cap::Soft {
            level.caps -= i128::from(terms.slots[id as usize].cap);
        } else {
            level.uncapped -= 1;
        }
        let room = &mut self.rooms[level.port as usize];
        room.left -= here.used;
        room.open -= u32::from(level.open == 0);
    }

    /// What a class may have at a port in all.
    pub fn share(&mut self, terms: &Terms, id: u32) -> i64 {
        let here = self.uses[id as usize];
        let cap = if here.cap == Cap::None { NO_CAP } else { terms.slots[id as usize].cap };
        if here.cap == Cap::Hard {
            return cap;
        }
        let left = self.settle(terms, here.arena);
        let weight = self.levels[here.arena as usize].weight;
        let by_weight = if weight == 0 { cap } else { part(here.weight, left, weight) };
        by_weight.max(here.used).min(cap)
    }

    pub fn port_of(&self, id: u32) -> u32 {
        self.levels[self.uses[id as usize].arena as usize].port
    }

    /// Moves to where alpha is now; returns what is left for those that grow.
    fn settle(&mut self, terms: &Terms, arena: u32) -> i64 {
        let mut left = self.left(terms, arena);
        let level = &mut self.levels[arena as usize];
        let by_bend = &terms.arenas[arena as usize].by_bend;
        let bends = &self.bends[arena as usize];
        loop {
            let bend = if level.has_waited {
                bends.get(level.next_bend as usize).copied()
            } else {
                let end = by_bend.get(level.next_bend as usize);
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
        let room = &self.rooms[level.port as usize];
        if room.open <= 1 {
            return room.left - level.fixed;
        }
        let arenas = terms.ports[level.port as usize]
            .arenas
            .iter()
            .filter(|arena| !terms.arenas[**arena as usize].kind.is_hard());
        let mut free = room.left - arenas.clone().map(|arena| self.levels[*arena as usize].used).sum::<i64>();
        for before in arenas.take_while(|other| **other != arena).map(|other| &self.levels[*other as usize]) {
            let more = i64::try_from(before.caps - i128::from(before.used)).unwrap_or(i64::MAX);
            free = if before.uncapped > 0 { 0 } else { free.saturating_sub(more).max(0) };
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
