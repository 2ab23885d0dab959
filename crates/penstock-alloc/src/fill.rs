// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progressive filling (section 4.2): turn by turn, and in passes, since who was frozen early may find later that others are bound elsewhere.

use crate::terms::{NO_CAP, NONE, Slot, Terms, UNITS};

/// What each path got, and where.
#[derive(Debug, Clone)]
pub(crate) struct Filling {
    /// Of each path.
    pub rates: Vec<i64>,
    /// Of each slot: the sum of its paths.
    pub used: Vec<i64>,
    /// The slot that each path got no more at; NONE if it never was live.
    pub frozen_at: Vec<u32>,
}

/// Keys that differ by less are the same but for rounding: 1/64 bit/s.
const TIE: i64 = UNITS / 64;

pub(crate) fn fill(terms: &Terms) -> Filling {
    let paths = terms.path_turn.len();
    let filling = Filling { rates: vec![0; paths], used: vec![0; terms.slots.len()], frozen_at: vec![NONE; paths] };
    let mut run = Run {
        terms,
        filling,
        live: vec![0; terms.slots.len()],
        path_live: vec![false; paths],
        smallest: vec![None; terms.ports.len()],
        stale: vec![true; terms.ports.len()],
    };
    let mut turns = terms.path_turn.clone();
    turns.sort_unstable();
    turns.dedup();
    for turn in turns {
        while run.begin_pass(turn) {
            while let Some((slot, grow)) = run.smallest() {
                run.freeze(slot, grow);
            }
        }
    }
    run.filling
}

struct Run<'a> {
    terms: &'a Terms,
    filling: Filling,
    /// Live paths of each slot.
    live: Vec<u32>,
    path_live: Vec<bool>,
    /// Of each port, while it is not stale.
    smallest: Vec<Option<(u32, i64)>>,
    stale: Vec<bool>,
}

impl Run<'_> {
    fn begin_pass(&mut self, turn: u32) -> bool {
        let mut any = false;
        self.stale.fill(true);
        let stuck: Vec<bool> = stuck(self.terms, &self.filling.used);
        for path in (0..self.terms.path_slots.len()).filter(|path| self.terms.path_turn[*path as usize] == turn) {
            let slots = self.terms.path_slots.get(path);
            if slots.is_empty() || slots.iter().any(|slot| stuck[*slot as usize]) {
                continue;
            }
            any = true;
            self.path_live[path as usize] = true;
            slots.iter().for_each(|slot| self.live[*slot as usize] += 1);
        }
        any
    }

    fn smallest(&mut self) -> Option<(u32, i64)> {
        let mut best: Option<(u32, i64)> = None;
        for port in 0..self.terms.ports.len() {
            if std::mem::take(&mut self.stale[port]) {
                self.smallest[port] = self.smallest_at(crate::terms::to_u32(port));
            }
            if let Some((slot, grow)) = self.smallest[port]
                && best.is_none_or(|(_, least)| grow + TIE < least)
            {
                best = Some((slot, grow));
            }
        }
        best
    }

    fn smallest_at(&self, port: u32) -> Option<(u32, i64)> {
        let mut best: Option<(u32, i64)> = None;
        for (slot, share) in self.shares(port) {
            let at = slot as usize;
            let grow = (share - self.filling.used[at]) / i64::from(self.live[at]);
            if best.is_none_or(|(least, key)| grow + TIE < key || (grow <= key + TIE && slot < least)) {
                best = Some((slot, grow));
            }
        }
        best
    }

    /// The share of each class that has live paths at a port.
    fn shares(&self, port: u32) -> Vec<(u32, i64)> {
        let terms = self.terms.ports[port as usize];
        let used = |slot: u32| self.filling.used[slot as usize];
        let mut room = terms.rate - terms.reserved;
        let mut shares = Vec::new();
        let mut waiting = Vec::new();
        for id in self.terms.port_slots.get(port) {
            let slot = &self.terms.slots[*id as usize];
            let is_live = self.live[*id as usize] > 0;
            match slot.reserved {
                Some(_) if is_live => shares.push((*id, slot.cap)),
                Some(_) => {}
                None => room -= used(*id),
            }
            if is_live && slot.reserved.is_none() {
                waiting.push(*id);
            }
        }
        waiting.sort_by_key(|id| (self.terms.slots[*id as usize].priority, *id));
        for group in
            waiting.chunk_by(|a, b| self.terms.slots[*a as usize].priority == self.terms.slots[*b as usize].priority)
        {
            room += group.iter().map(|id| used(*id)).sum::<i64>();
            let (room_here, weight) = self.level(group, room);
            for id in group {
                let slot = &self.terms.slots[*id as usize];
                let part = if weight == 0 { NO_CAP } else { part(slot.weight, room_here, weight) };
                let share = slot.cap.min(part.max(used(*id)));
                room -= share;
                shares.push((*id, share));
            }
        }
        shares
    }

    /// alpha, as what is left for how much weight: no weight if all have all that they may.
    fn level(&self, group: &[u32], room: i64) -> (i64, u64) {
        let used = |id: &u32| self.filling.used[*id as usize].min(self.terms.slots[*id as usize].cap);
        let mut left = room - group.iter().map(used).sum::<i64>();
        // Each begins to grow where its share by weight passes what it uses, and ends at its cap.
        let mut bends: Vec<(i64, u32, bool)> = Vec::new();
        for id in group {
            let slot = &self.terms.slots[*id as usize];
            bends.push((used(id), *id, true));
            if slot.cap != NO_CAP {
                bends.push((slot.cap, *id, false));
            }
        }
        let weight_of = |id: u32| i128::from(self.terms.slots[id as usize].weight);
        bends.sort_by(|a, b| {
            (i128::from(a.0) * weight_of(b.1)).cmp(&(i128::from(b.0) * weight_of(a.1))).then(b.2.cmp(&a.2))
        });
        let mut weight = 0u64;
        for (rate, id, begins) in bends {
            let own = u64::from(self.terms.slots[id as usize].weight);
            if weight > 0 && i128::from(left) * weight_of(id) <= i128::from(rate) * i128::from(weight) {
                break;
            }
            if begins {
                weight += own;
                left += rate;
            } else {
                weight -= own;
                left -= rate;
            }
        }
        (left, weight)
    }

    /// Gives the live paths of a class at a port what they may grow; they are live no more.
    fn freeze(&mut self, slot: u32, grow: i64) {
        for path in self.terms.slot_paths.get(slot) {
            if !std::mem::take(&mut self.path_live[*path as usize]) {
                continue;
            }
            self.filling.rates[*path as usize] += grow;
            self.filling.frozen_at[*path as usize] = slot;
            for on in self.terms.path_slots.get(*path) {
                self.filling.used[*on as usize] += grow;
                self.live[*on as usize] -= 1;
                self.stale[self.terms.slots[*on as usize].port as usize] = true;
            }
        }
    }
}

/// Whether each class can get no more at each of its ports: the port is full, or it is at its limit. What is reserved for it is there,
/// however full the port is.
pub(crate) fn stuck(terms: &Terms, used: &[i64]) -> Vec<bool> {
    let room = room(terms, used);
    let of = |(slot, used): (&Slot, &i64)| {
        let slack = terms.slack(slot.port);
        *used >= slot.cap.saturating_sub(slack) || slot.reserved.is_none() && room[slot.port as usize] <= slack
    };
    terms.slots.iter().zip(used).map(of).collect()
}

/// What is left of each port, what is reserved there set aside.
fn room(terms: &Terms, used: &[i64]) -> Vec<i64> {
    let mut room: Vec<i64> = terms.ports.iter().map(|port| port.rate - port.reserved).collect();
    for (slot, used) in terms.slots.iter().zip(used).filter(|(slot, _)| slot.reserved.is_none()) {
        room[slot.port as usize] -= used;
    }
    room
}

/// weight * room / sum of weights, rounded down.
#[allow(clippy::cast_possible_truncation)] // At most the room.
fn part(weight: u32, room: i64, weights: u64) -> i64 {
    (i128::from(weight) * i128::from(room.max(0)) / i128::from(weights)) as i64
}
