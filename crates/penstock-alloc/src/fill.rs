// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progressive filling (section 4.2), without the paper's rescans.
//!
//! Turn by turn, and in passes: who was frozen early may find later that others were bound elsewhere. In a pass, the key of a class at a port is
//! what each of its live paths may grow there,
//!
//! ```text
//! grow(p, c) = (share(p, c) - used(p, c)) / live(p, c)
//! ```
//!
//! and the smallest is taken: its paths grow by that and are frozen, everywhere.
//!
//! Keys never decrease within a pass. Let (q, c) be taken, with grow g, and m of c's n live paths at p be among those frozen. g is the smallest,
//! so g <= (S - u) / n, where S and u are c's share and use at p.
//!
//! - c has live paths at p still: it uses u + m g <= S there, so the same alpha solves p's equation, and S and all others' keys stay. c's own is
//!   (S - u - m g) / (n - m) >= (S - u) / n, since n m g <= m (S - u).
//! - It has none: it leaves with u + m g <= S, so what is left for the others is no less than their shares were; alpha does not fall.
//! - Of several priorities at p (local ones): when c leaves or grows, what its and earlier priorities take together does not rise above
//!   what their shares were, so what later ones find does not fall.
//!
//! So a key that was right once is a lower bound for good: heaps hold old keys, and a key is found again only when it comes up. While a class uses
//! nothing at a port, its order there is fixed: by weight / paths, or cap / paths. Freezing some of its paths only raises its key, and that key's
//! slope, so these orders hold lower bounds as well; only who comes up in them with some paths frozen needs an entry of its own.
//!
//! Each pass ends with a port full or a class at its cap that was not (the last to be taken has its arena to itself), so passes end.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::level::Levels;
use crate::terms::{ClassTerms, NONE, PathTerms, Terms, UNITS, to_u32};

/// Keys that differ by no more are equal but for rounding: 1/64 bit/s.
const TIE: i64 = UNITS / 64;

/// What a path got, and the slot that it got no more at, once its turn is over. With what freezing it has to know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathUse {
    pub rate: i64,
    pub frozen_at: u32,
    /// Its slots: a list, or all from the first.
    first: u32,
    len: u32,
    is_run: bool,
    has_cap: bool,
    is_live: bool,
}

impl PathUse {
    fn new(path: &PathTerms) -> Self {
        let is_run = path.run != NONE;
        let first = if is_run { path.run } else { path.first };
        Self { rate: 0, frozen_at: NONE, first, len: path.len, is_run, has_cap: path.has_cap, is_live: false }
    }

    /// Its slots, in any order.
    fn slots<'a>(&self, terms: &'a Terms) -> impl Iterator<Item = u32> + use<'a> {
        let (first, len) = (self.first, self.len);
        let run = if self.is_run { first..first + len } else { 0..0 };
        let list = if self.is_run { &[][..] } else { &terms.path_slots[first as usize..][..len as usize] };
        run.chain(list.iter().copied())
    }
}

/// Where a next key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The first of an arena by slope, or by cap.
    Slope(u32),
    Cap(u32),
    /// A slot by itself.
    Slot(u32),
}

/// A key, or a lower bound of it, and whose it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    key: i64,
    port: u32,
    class: u32,
    source: Source,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An entry among those whose keys are the same: by port and class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tied(Entry);

impl Ord for Tied {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0.port, self.0.class).cmp(&(other.0.port, other.0.class))
    }
}

impl PartialOrd for Tied {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A filling; used again, it does not allocate again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filling {
    pub paths: Vec<PathUse>,
    pub levels: Levels,
    /// The class of each key taken.
    pub order: Vec<u32>,
    entries: BinaryHeap<Reverse<Entry>>,
    tied: BinaryHeap<Reverse<Tied>>,
    /// The largest key that is tied with the smallest.
    tied_key: i64,
    /// The arenas where some had live paths when the pass began.
    arenas: Vec<u32>,
}

impl Filling {
    pub fn run(&mut self, terms: &Terms) {
        // Paths are never written over.
        self.paths.iter_mut().for_each(|path| (path.rate, path.frozen_at) = (0, NONE));
        self.paths.extend(terms.paths[self.paths.len()..].iter().map(PathUse::new));
        self.levels.reset(terms);
        self.order.clear();
        for (turn, paths) in &terms.turns {
            let mut live: Vec<u32> =
                paths.iter().copied().filter(|path| terms.paths[*path as usize].turn == *turn).collect();
            while self.begin_pass(terms, &mut live) {
                while self.find_tied(terms) {
                    self.take_tied(terms);
                }
                self.arenas.iter().for_each(|arena| self.levels.end(*arena));
            }
        }
    }

    /// The caps of a class are others than they were.
    pub fn renew(&mut self, terms: &Terms, class: &ClassTerms) {
        for path in class.paths.clone() {
            self.paths[path as usize] = PathUse::new(&terms.paths[path as usize]);
        }
        for slot in class.slots.clone() {
            self.levels.renew(terms, slot);
        }
    }

    pub fn reserve(&mut self, slots: usize) {
        self.paths.reserve(slots);
        self.levels.uses.reserve(slots);
    }

    /// Finds which of these paths can get more. False if none can.
    fn begin_pass(&mut self, terms: &Terms, live: &mut Vec<u32>) -> bool {
        self.levels.find_full(terms);
        self.arenas.clear();
        let Self { paths, levels, arenas, .. } = self;
        live.retain(|id| {
            let path = &mut paths[*id as usize];
            let is_stuck = |slot: u32| levels.is_stuck(terms, slot);
            if path.frozen_at != NONE && is_stuck(path.frozen_at) {
                return false;
            }
            if (path.has_cap || levels.some_are_full) && path.slots(terms).any(is_stuck) {
                // It was frozen where others then left room, if at all; and meanwhile another port on its way was filled.
                path.frozen_at = terms.slots_of(*id).iter().copied().find(|slot| is_stuck(*slot)).unwrap_or(NONE);
                return false;
            }
            path.is_live = true;
            path.slots(terms).for_each(|slot| arenas.extend(levels.add_live(slot, terms)));
            true
        });
        self.begin_keys(terms);
        !live.is_empty()
    }

    fn begin_keys(&mut self, terms: &Terms) {
        self.tied_key = i64::MIN;
        let mut entries = std::mem::take(&mut self.entries).into_vec();
        for arena in self.arenas.clone() {
            let own = &terms.arenas[arena as usize];
            if !self.levels.levels[arena as usize].has_waited {
                self.levels.begin(arena);
                for source in [Source::Slope(arena), Source::Cap(arena)] {
                    entries.push(Reverse(Entry { key: 0, port: own.port, class: 0, source }));
                }
                continue;
            }
            // Who uses something has no place in an order that is right for nothing.
            let list = if own.kind.is_hard() { &own.by_cap } else { &own.by_slope };
            let live: Vec<u32> = list.iter().copied().filter(|slot| self.levels.is_live(*slot)).collect();
            live.iter().for_each(|slot| self.levels.add_bends(*slot, &terms.slots[*slot as usize]));
            self.levels.begin(arena);
            for slot in live {
                let (port, class) = (own.port, self.levels.uses[slot as usize].class);
                entries.push(Reverse(Entry { key: 0, port, class, source: Source::Slot(slot) }));
            }
        }
        self.entries = BinaryHeap::from(entries);
    }

    /// Finds the smallest key, and puts those that are tied with it aside. False if there is none.
    fn find_tied(&mut self, terms: &Terms) -> bool {
        self.tied_key = i64::MIN;
        while let Some(Reverse(old)) = self.entries.pop() {
            let Some((_, entry)) = self.refresh(terms, old.source) else { continue };
            if self.entries.peek().is_some_and(|Reverse(next)| next.key < entry.key) {
                self.entries.push(Reverse(entry));
                continue;
            }
            self.tied_key = entry.key + TIE;
            self.tied.push(Reverse(Tied(entry)));
            while let Some(Reverse(next)) =
                self.entries.peek().filter(|Reverse(next)| next.key <= self.tied_key).copied()
            {
                self.entries.pop();
                if let Some((_, entry)) = self.refresh(terms, next.source) {
                    self.put(entry);
                }
            }
            return true;
        }
        false
    }

    /// Takes those that are tied, by port and class, as long as their keys are what they were.
    fn take_tied(&mut self, terms: &Terms) {
        while let Some(Reverse(Tied(old))) = self.tied.pop() {
            let mut known = (old.port, old.class);
            while let Some((slot, entry)) = self.refresh(terms, old.source) {
                let whose = (entry.port, entry.class);
                let is_next = self.tied.peek().is_none_or(|Reverse(Tied(next))| whose <= (next.port, next.class));
                if entry.key > self.tied_key || (whose > known && !is_next) {
                    self.put(entry);
                    break;
                }
                known = whose;
                let is_key = !matches!(old.source, Source::Cap(_));
                self.freeze(terms, slot, is_key.then_some(entry.key));
            }
        }
    }

    fn put(&mut self, entry: Entry) {
        if entry.key <= self.tied_key {
            self.tied.push(Reverse(Tied(entry)));
        } else {
            self.entries.push(Reverse(entry));
        }
    }

    /// A source's next, with its key as it is now. None if it has no more.
    fn refresh(&mut self, terms: &Terms, source: Source) -> Option<(u32, Entry)> {
        while let Some(slot) = self.first(terms, source) {
            let is_whole = self.levels.uses[slot as usize].is_whole();
            match source {
                Source::Slot(_) => return Some((slot, self.entry(terms, slot))),
                Source::Slope(_) if is_whole => return Some((slot, Entry { source, ..self.entry(terms, slot) })),
                Source::Cap(_) if is_whole => {
                    let at = &terms.slots[slot as usize];
                    let key = at.cap / i64::from(at.paths);
                    return Some((slot, Entry { key, port: at.port, class: at.class, source }));
                }
                Source::Slope(arena) => self.levels.levels[arena as usize].next_slope += 1,
                Source::Cap(arena) => self.levels.levels[arena as usize].next_cap += 1,
            }
            let entry = self.entry(terms, slot);
            self.put(entry);
        }
        None
    }

    /// A source's next that has live paths.
    fn first(&mut self, terms: &Terms, source: Source) -> Option<u32> {
        let (arena, is_cap) = match source {
            Source::Slot(slot) => return Some(slot).filter(|slot| self.levels.is_live(*slot)),
            Source::Slope(arena) => (arena, false),
            Source::Cap(arena) => (arena, true),
        };
        let (own, level) = (&terms.arenas[arena as usize], &self.levels.levels[arena as usize]);
        if level.open == 0 {
            return None;
        }
        let (list, next) = if is_cap { (&own.by_cap, level.next_cap) } else { (&own.by_slope, level.next_slope) };
        let skipped = list[next as usize..].iter().take_while(|slot| !self.levels.is_live(**slot)).count();
        let next = next + to_u32(skipped);
        let level = &mut self.levels.levels[arena as usize];
        *(if is_cap { &mut level.next_cap } else { &mut level.next_slope }) = next;
        list.get(next as usize).copied()
    }

    /// The key of a class at a port.
    fn entry(&mut self, terms: &Terms, slot: u32) -> Entry {
        let share = self.levels.share(terms, slot);
        let here = &self.levels.uses[slot as usize];
        let all = (share - here.used).max(0);
        let key = if here.live == 1 { all } else { all / i64::from(here.live) };
        Entry { key, port: self.levels.port_of(slot), class: here.class, source: Source::Slot(slot) }
    }

    /// Gives the live paths of a class at a port what they may grow; they are live no more.
    fn freeze(&mut self, terms: &Terms, slot: u32, key: Option<i64>) {
        let live = self.levels.uses[slot as usize].live;
        let (grow, mut more) = match key {
            Some(key) if live == 1 => (key, 0),
            _ => {
                // The first few get one part more, so that together they get all.
                let all = (self.levels.share(terms, slot) - self.levels.uses[slot as usize].used).max(0);
                (all / i64::from(live), all % i64::from(live))
            }
        };
        let here = self.levels.uses[slot as usize];
        self.order.push(here.class);
        let mut left = here.live;
        for path in here.paths(terms) {
            let own = &mut self.paths[path as usize];
            if !own.is_live {
                continue;
            }
            let grow = grow + i64::from(more > 0);
            more -= i64::from(more > 0);
            *own = PathUse { rate: own.rate + grow, frozen_at: slot, is_live: false, ..*own };
            for on in own.slots(terms) {
                self.levels.freeze(on, terms, grow);
            }
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
}
