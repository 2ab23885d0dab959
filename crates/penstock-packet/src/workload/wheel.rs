// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event queue: a timing wheel whose open slot is put in order.
//!
//! A binary heap of a million flows misses the cache at every level; here an event is written once to the end of its slot's
//! list, and a slot of a few hundred events is sorted when its time comes. What lies beyond the wheel's turn waits in a
//! list that is dealt out to slots once a turn. Slots are chains of chunks from one pool, so the queue has hardly more
//! memory than its events of 16 bytes. Order is total (time, then group, then source): a run is the same every time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events that a slot is meant to hold.
const SLOT_EVENTS: u64 = 256;
const SLOTS_MIN: usize = 256;
const SLOTS_MAX: usize = 1 << 16;
/// Events of a chunk: with its link, four cache lines.
const CHUNK_EVENTS: usize = 15;
/// The end of a chain.
const NONE: u32 = u32::MAX;

/// A source's next packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Event {
    pub time_ticks: u64,
    pub group: u32,
    pub source: u32,
}

#[derive(Clone, Copy)]
struct Chunk {
    events: [Event; CHUNK_EVENTS],
    count: u32,
    next: u32,
}

pub(super) struct Wheel {
    /// Events of the open slot, the last one first.
    open: Vec<Event>,
    /// Events that were added to it, or before it, since it was opened.
    late: BinaryHeap<Reverse<Event>>,
    /// The first chunk of each of the slots `opened..opened + slots.len()`, at `slot % slots.len()`, a power of two.
    slots: Vec<u32>,
    chunks: Vec<Chunk>,
    free: u32,
    /// How many events `slots` hold.
    waiting: usize,
    /// Events behind all slots.
    far: Vec<Event>,
    /// The first slot that was not opened yet.
    opened: u64,
    slot_shift: u32,
}

impl Wheel {
    /// For so many sources whose events are `gap_ticks` apart on average, all together.
    pub fn new(sources: u64, gap_ticks: u64) -> Self {
        let slots = usize::try_from(4 * sources / SLOT_EVENTS).unwrap_or(SLOTS_MAX);
        let slots = slots.clamp(SLOTS_MIN, SLOTS_MAX).next_power_of_two();
        // Full chunks for all, and one in each slot that is not.
        let chunks = usize::try_from(sources).unwrap_or(usize::MAX) / CHUNK_EVENTS + slots;
        Self {
            open: Vec::new(),
            late: BinaryHeap::new(),
            slots: vec![NONE; slots],
            chunks: Vec::with_capacity(chunks),
            free: NONE,
            waiting: 0,
            far: Vec::new(),
            opened: 0,
            slot_shift: gap_ticks.saturating_mul(SLOT_EVENTS).max(1).ilog2(),
        }
    }

    /// Adds an event. It must not lie before the last one that was popped.
    pub fn push(&mut self, event: Event) {
        let slot = event.time_ticks >> self.slot_shift;
        if slot < self.opened {
            self.late.push(Reverse(event));
        } else if slot - self.opened < self.slots.len() as u64 {
            self.push_slot(self.place_of(slot), event);
        } else {
            self.far.push(event);
        }
    }

    /// Takes the first event.
    pub fn pop(&mut self) -> Option<Event> {
        while self.open.is_empty() && self.late.is_empty() {
            if self.waiting == 0 {
                self.opened = self.far.iter().min()?.time_ticks >> self.slot_shift;
                self.deal();
            } else if self.place_of(self.opened) == 0 {
                self.deal();
            }
            self.open_slot(self.place_of(self.opened));
            self.opened += 1;
        }
        match (self.open.last(), self.late.peek()) {
            (Some(open), Some(Reverse(late))) if late < open => self.late.pop().map(|Reverse(event)| event),
            (Some(_), _) => self.open.pop(),
            (None, _) => self.late.pop().map(|Reverse(event)| event),
        }
    }

    fn push_slot(&mut self, at: usize, event: Event) {
        self.waiting += 1;
        let head = self.slots[at];
        if let Some(chunk) = self.chunks.get_mut(head as usize)
            && let Some(place) = chunk.events.get_mut(chunk.count as usize)
        {
            *place = event;
            chunk.count += 1;
            return;
        }
        let mut chunk = Chunk { events: [Event::default(); CHUNK_EVENTS], count: 1, next: head };
        chunk.events[0] = event;
        self.slots[at] = match self.chunks.get_mut(self.free as usize) {
            Some(place) => {
                let taken = std::mem::replace(&mut self.free, place.next);
                *place = chunk;
                taken
            }
            None => {
                self.chunks.push(chunk);
                // At most one chunk a flow, and flows are fewer than 2^32.
                u32::try_from(self.chunks.len() - 1).unwrap_or(NONE)
            }
        };
    }

    fn open_slot(&mut self, at: usize) {
        let mut head = std::mem::replace(&mut self.slots[at], NONE);
        while let Some(chunk) = self.chunks.get_mut(head as usize) {
            self.open.extend_from_slice(&chunk.events[..chunk.count as usize]);
            let next = std::mem::replace(&mut chunk.next, self.free);
            self.free = std::mem::replace(&mut head, next);
        }
        self.waiting -= self.open.len();
        self.open.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Moves what has come within reach from `far` to the slots. Once a turn is enough: what was put into `far` was a whole
    /// turn ahead.
    fn deal(&mut self) {
        for event in std::mem::take(&mut self.far) {
            self.push(event);
        }
    }

    fn place_of(&self, slot: u64) -> usize {
        // Below the number of slots.
        usize::try_from(slot % self.slots.len() as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A slow queue and the wheel give the same order, whatever is pushed in between.
        #[test]
        fn pops_in_order(
            start in proptest::collection::vec((0u64..1 << 40, 0u32..3), 1..200),
            gaps in proptest::collection::vec(0u64..1 << 36, 1..400),
            gap_ticks in 1u64..1 << 30,
        ) {
            let mut wheel = Wheel::new(start.len() as u64, gap_ticks);
            let mut slow = std::collections::BTreeSet::new();
            for (source, &(time_ticks, group)) in start.iter().enumerate() {
                let event = Event { time_ticks, group, source: u32::try_from(source).unwrap() };
                wheel.push(event);
                slow.insert(event);
            }
            for gap in gaps {
                let event = wheel.pop();
                prop_assert_eq!(event, slow.pop_first());
                let Some(mut event) = event else { break };
                if gap & 3 != 0 {
                    event.time_ticks += gap;
                    wheel.push(event);
                    slow.insert(event);
                }
            }
            while let Some(event) = slow.pop_first() {
                prop_assert_eq!(wheel.pop(), Some(event));
            }
            prop_assert_eq!(wheel.pop(), None);
        }
    }
}
