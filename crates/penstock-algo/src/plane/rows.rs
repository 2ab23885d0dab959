// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limiters of a plane that come, change, go and move on, while packets are charged: by this process or by a kernel program.

use super::{BuildError, Entry, Parts, Plane, Slot, is_window};
use crate::cells::Cells;
use crate::meter::Terms;
use crate::table::Table;
use crate::wire;
use std::ptr::NonNull;

// SAFETY: total functions of their arguments; `safe` ones keep no reference.
unsafe extern "C" {
    fn pst_host_limit_change(
        limit: *mut wire::Limit,
        profile: *const wire::Profile,
        rate: u32,
        meter: *mut wire::MeterState,
        now_ns: u64,
    );
    safe fn pst_host_limiter_queue_ns(profile: &wire::Profile, rate: u32, vft_ticks: u64, now_ns: u64) -> u64;
    safe fn pst_host_limiter_window_ns(profile: &wire::Profile, rate: u32) -> u64;
    safe fn pst_host_limiter_move(
        before: &wire::Profile,
        before_rate: u32,
        after: &wire::Profile,
        after_rate: u32,
        vft_ticks: u64,
        now_ns: u64,
    ) -> u64;
    fn pst_host_limiter_catch_up(
        before: *const wire::Profile,
        before_rate: u32,
        after: *const wire::Profile,
        after_rate: u32,
        copy: *const wire::pst_limiter_copy,
        vft_ticks: *mut u64,
        now_ns: u64,
    );
    fn pst_host_meter_catch_up(
        before: *const wire::Profile,
        before_rate: u32,
        after: *const wire::Profile,
        after_rate: u32,
        copies: *const wire::pst_limiter_copy,
        state: *mut wire::MeterState,
        now_ns: u64,
    );
}

/// Where a limiter lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// A slot of the limiter table.
    Slot(u32),
    /// The limit of a class.
    Limit(u32),
}

/// Memory for [`Plane::lend`]: where it begins, and how many elements it holds. Buckets begin at a multiple of 64.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the fields of struct pst_plane, under their names
pub struct Lent {
    pub limiter_buckets: (NonNull<wire::Bucket>, usize),
    pub limits: (NonNull<wire::Limit>, usize),
    pub meters: (NonNull<wire::MeterState>, usize),
}

impl Plane {
    /// Adds a limiter, idle at `now_ns`. `owner` is what [`Plane::owner`] will tell. Returns its slot, and which entries moved to
    /// make room for it.
    ///
    /// # Errors
    /// There is no room, an entry has its key, or it names no tuple.
    pub fn insert_row(
        &mut self,
        entry: &Entry<'_>,
        owner: u32,
        now_ns: u64,
    ) -> Result<wire::pst_table_insertion, BuildError> {
        let state = self.idle_state(entry.target, now_ns).ok_or(BuildError::Full(owner as usize))?;
        let inserted = self.limiters.insert(&self.parts.tuples, &self.secret, entry, state, owner);
        if inserted.is_err() {
            self.free_meter(entry.target, state);
        }
        inserted
    }

    fn free_meter(&mut self, profile: u16, state: u64) {
        if self.parts.profiles.get(usize::from(profile)).is_some_and(|profile| !is_window(profile)) {
            self.free_meters.extend(u32::try_from(state));
        }
    }

    /// Takes the limiter in a slot away.
    ///
    /// # Panics
    /// When there is no such slot.
    pub fn remove_row(&mut self, slot: u32) {
        let row = self.limiters.slot(slot);
        self.limiters.remove(slot);
        if let Some(row) = row {
            self.free_meter(row.target, row.state);
        }
    }

    /// The slot of a limiter by its key.
    #[must_use]
    pub fn find_row(&self, tuple: u32, value: &wire::Key) -> Option<u32> {
        self.limiters.find(&self.secret, self.parts.tuples.get(tuple as usize)?, value)
    }

    /// By owner, below `owners`: the slot that it has, or `PST_NONE`.
    #[must_use]
    pub fn slots(&self, owners: usize) -> Vec<u32> {
        let mut slots = vec![wire::PST_NONE; owners];
        for (slot, &owner) in (0_u32..).zip(&self.limiters.owners) {
            if let Some(of_owner) = slots.get_mut(owner as usize) {
                *of_owner = slot;
            }
        }
        slots
    }

    /// A limiter as it is now.
    #[must_use]
    pub fn limiter(&self, place: Place) -> Option<Slot> {
        match place {
            Place::Slot(slot) => self.limiters.slot(slot),
            Place::Limit(limit) => {
                let limit = self.limits.get(limit as usize)?;
                Some(Slot { target: limit.profile, rate: limit.rate, state: limit.state })
            }
        }
    }

    /// Gives a limiter another rate. A window meter's virtual queue keeps its bytes; an RFC meter's buckets keep theirs.
    pub fn set_rate(&mut self, place: Place, rate: u32, now_ns: u64) {
        let Some(before) = self.limiter(place) else { return };
        let Some(profile) = self.parts.profiles.get(usize::from(before.target)).copied() else { return };
        let meter = if is_window(&profile) { None } else { usize::try_from(before.state).ok() };
        let meter = meter.and_then(|meter| self.meters.at_mut(meter)).unwrap_or(std::ptr::null_mut());
        match place {
            // SAFETY: `meter` is null or inside of the cells.
            Place::Slot(slot) => unsafe { self.limiters.set_rate(slot, &profile, rate, meter, now_ns) },
            Place::Limit(limit) => {
                if let Some(limit) = self.limits.at_mut(limit as usize) {
                    // SAFETY: inside of the cells, both; others charge them by compare-and-swap meanwhile.
                    unsafe { pst_host_limit_change(limit, &profile, rate, meter, now_ns) };
                }
            }
        }
    }

    /// How deep a limiter's virtual queue is, and how deep it may get, ns. Of an RFC meter: how much of its committed bucket is
    /// used, and how much there is.
    #[must_use]
    pub fn queue_ns(&self, place: Place, now_ns: u64) -> Option<(u64, u64)> {
        let limiter = self.limiter(place)?;
        let profile = self.parts.profiles.get(usize::from(limiter.target))?;
        if !is_window(profile) {
            let state = self.meters.get(usize::try_from(limiter.state).ok()?)?;
            return Some(crate::meter::used_ns(Terms { profile, rate_code: limiter.rate }, &state, now_ns));
        }
        Some((
            pst_host_limiter_queue_ns(profile, limiter.rate, limiter.state, now_ns),
            pst_host_limiter_window_ns(profile, limiter.rate),
        ))
    }

    /// Goes on with limiters, limits and meters in memory that is lent, to which [`Plane::image`] was copied.
    ///
    /// # Safety
    /// Each slice is memory that outlives this plane, holds what the image does, and is changed by others by whole words only.
    pub unsafe fn lend(&mut self, memory: Lent) {
        // SAFETY: this function's contract.
        unsafe {
            self.limiters.buckets.lend(memory.limiter_buckets.0.cast(), memory.limiter_buckets.1);
            self.limits.lend(memory.limits.0, memory.limits.1);
            self.meters.lend(memory.meters.0, memory.meters.1);
        }
    }

    /// A plane over tables that are in memory already: built by [`Plane::new`] of the same parts and seed, by limiters of which
    /// some may have come or gone since. Returns it with those that are not in the table.
    ///
    /// # Errors
    /// When a rule finds no place.
    ///
    /// # Safety
    /// As [`Plane::lend`].
    pub unsafe fn adopt<'a>(
        parts: Parts,
        rules: impl ExactSizeIterator<Item = Entry<'a>>,
        limiters: impl ExactSizeIterator<Item = Entry<'a>>,
        seed: u64,
        memory: Lent,
    ) -> Result<(Self, Vec<u32>), BuildError> {
        let mut plane = Self::empty(parts, seed);
        plane.rules = Table::for_keys(rules.len());
        for (owner, entry) in (0_u32..).zip(rules) {
            plane.rules.insert(&plane.parts.tuples, &plane.secret, &entry, 0, owner)?;
        }
        let slots = memory.limiter_buckets.1 * wire::PST_BUCKET_SLOTS as usize;
        plane.limiters.owners = vec![wire::PST_NONE; slots];
        plane.limiters.buckets =
            Cells::Lent { start: memory.limiter_buckets.0.cast(), length: memory.limiter_buckets.1 };
        plane.limits = Cells::Lent { start: memory.limits.0, length: plane.parts.limits.len() };
        plane.meters = Cells::Lent { start: memory.meters.0, length: memory.meters.1 };
        let mut missing = Vec::new();
        for (owner, entry) in (0_u32..).zip(limiters).filter(|(_, entry)| entry.rate != 0) {
            match plane.find_row(entry.tuple, entry.value) {
                Some(slot) => plane.limiters.owners[slot as usize] = owner,
                None => missing.push(owner),
            }
        }
        plane.find_free_meters();
        Ok((plane, missing))
    }

    /// Meters that no limiter has.
    fn find_free_meters(&mut self) {
        let mut is_used = vec![false; self.meters.len()];
        let slots = (0..u32::try_from(self.limiters.owners.len()).unwrap_or(0)).map(Place::Slot);
        let limits = (0..u32::try_from(self.limits.len()).unwrap_or(0)).map(Place::Limit);
        for limiter in slots.chain(limits).filter_map(|place| self.limiter(place)).filter(|limiter| limiter.rate != 0) {
            let is_metered = self.parts.profiles.get(usize::from(limiter.target)).is_some_and(|one| !is_window(one));
            if let (true, Some(used)) =
                (is_metered, usize::try_from(limiter.state).ok().and_then(|at| is_used.get_mut(at)))
            {
                *used = true;
            }
        }
        let free = (0_u32..).zip(is_used).filter(|(_, is_used)| !is_used).map(|(meter, _)| meter);
        self.free_meters = free.collect();
    }

    /// Slots that hold limiters which nobody owns: what was removed from the policy while nobody looked.
    #[must_use]
    pub fn strays(&self) -> Vec<u32> {
        let slots = (0_u32..).zip(&self.limiters.owners).filter(|(_, owner)| **owner == wire::PST_NONE);
        slots.map(|(slot, _)| slot).filter(|&slot| self.limiters.slot(slot).is_some_and(|row| row.rate != 0)).collect()
    }
}

/// Limiters that go on at another place: in the plane of the next generation.
///
/// Packets are judged by the old plane until the new one is in its place, so the work is in three steps: [`Carry::start`] copies
/// all states, [`Carry::refresh`] copies again those that changed since, and [`Carry::finish`], when nobody charges the old plane
/// any more, adds what was charged to it after the last copy (`limiter.h` I7).
#[derive(Debug)]
pub struct Carry {
    pairs: Vec<Pair>,
    copied_ns: u64,
}

#[derive(Debug)]
struct Pair {
    from: Place,
    to: Place,
    /// What the states were when they were copied: the virtual finish time, or both of an RFC meter.
    copied: [u64; 2],
}

/// A limiter with its profile, and the words that are its state.
struct Stand {
    profile: wire::Profile,
    rate: u32,
    words: [u64; 2],
}

impl Plane {
    fn stand(&self, place: Place) -> Option<Stand> {
        let limiter = self.limiter(place)?;
        let profile = *self.parts.profiles.get(usize::from(limiter.target))?;
        let words = if is_window(&profile) {
            [limiter.state, 0]
        } else {
            let state = self.meters.get(usize::try_from(limiter.state).ok()?)?;
            [state.committed_ticks, state.excess_ticks]
        };
        Some(Stand { profile, rate: limiter.rate, words })
    }

    /// The words that are a limiter's state.
    fn state_mut(&mut self, place: Place) -> Option<*mut u64> {
        let limiter = self.limiter(place)?;
        if !is_window(self.parts.profiles.get(usize::from(limiter.target))?) {
            return Some(self.meters.at_mut(usize::try_from(limiter.state).ok()?)?.cast());
        }
        match place {
            Place::Slot(slot) => self.limiters.state_mut(slot),
            // SAFETY: inside of the cells.
            Place::Limit(limit) => self.limits.at_mut(limit as usize).map(|limit| unsafe { &raw mut (*limit).state }),
        }
    }
}

impl Carry {
    /// Copies limiters from places of `old` to places of `new`, whose state nobody charges yet. Where the meter is another one, or
    /// a place is empty, the new one stays idle.
    #[must_use]
    pub fn start(old: &Plane, new: &mut Plane, pairs: impl IntoIterator<Item = (Place, Place)>, now_ns: u64) -> Self {
        let mut carry = Self { pairs: Vec::new(), copied_ns: now_ns };
        for (from, to) in pairs {
            let (Some(before), Some(after)) = (old.stand(from), new.stand(to)) else { continue };
            if before.profile.meter == after.profile.meter {
                copy(&before, &after, new.state_mut(to), now_ns);
                carry.pairs.push(Pair { from, to, copied: before.words });
            }
        }
        carry
    }

    /// How many limiters go on.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether none does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Places in the old plane and in the new one.
    pub fn places(&self) -> impl Iterator<Item = (Place, Place)> {
        self.pairs.iter().map(|pair| (pair.from, pair.to))
    }

    /// Copies anew what was charged since. Nobody charges the new plane yet.
    pub fn refresh(&mut self, old: &Plane, new: &mut Plane, now_ns: u64) {
        for pair in &mut self.pairs {
            let Some(before) = old.stand(pair.from) else { continue };
            if before.words == pair.copied {
                continue;
            }
            if let Some(after) = new.stand(pair.to) {
                copy(&before, &after, new.state_mut(pair.to), now_ns);
                pair.copied = before.words;
            }
        }
        // Those that were not copied anew have not been charged: any moment up to now is the one of their copy.
        self.copied_ns = now_ns;
    }

    /// Adds what was charged since the last copy. Nobody charges the old plane any more; packets charge the new one.
    pub fn finish(self, old: &Plane, new: &mut Plane, now_ns: u64) {
        for pair in self.pairs {
            let Some(before) = old.stand(pair.from).filter(|before| before.words != pair.copied) else { continue };
            let Some(after) = new.stand(pair.to) else { continue };
            let copies = [0, 1].map(|word| wire::pst_limiter_copy {
                copied_ticks: pair.copied[word],
                copied_ns: self.copied_ns,
                last_ticks: before.words[word],
            });
            let (old_terms, new_terms) = ((&before.profile, before.rate), (&after.profile, after.rate));
            let Some(state) = new.state_mut(pair.to) else { continue };
            // SAFETY: `state` is one word, or both of an RFC meter, inside of the plane; C changes them by compare-and-swap.
            unsafe {
                if is_window(&after.profile) {
                    let copy = &raw const copies[0];
                    pst_host_limiter_catch_up(old_terms.0, old_terms.1, new_terms.0, new_terms.1, copy, state, now_ns);
                } else {
                    let (copies, state) = (copies.as_ptr(), state.cast());
                    pst_host_meter_catch_up(old_terms.0, old_terms.1, new_terms.0, new_terms.1, copies, state, now_ns);
                }
            }
        }
    }
}

/// Stores a limiter's state, under its new terms.
fn copy(before: &Stand, after: &Stand, state: Option<*mut u64>, now_ns: u64) {
    let Some(state) = state else { return };
    if is_window(&after.profile) {
        let (from, to) = ((&before.profile, before.rate), (&after.profile, after.rate));
        let vft = pst_host_limiter_move(from.0, from.1, to.0, to.1, before.words[0], now_ns);
        // SAFETY: a word of the plane (`Plane::state_mut`).
        unsafe { state.write_volatile(vft) };
        return;
    }
    let [committed_ticks, excess_ticks] = before.words;
    let words = wire::MeterState { committed_ticks, excess_ticks };
    let from = Terms { profile: &before.profile, rate_code: before.rate };
    let to = Terms { profile: &after.profile, rate_code: after.rate };
    let is_same = before.rate == after.rate && terms_of(&before.profile) == terms_of(&after.profile);
    let moved = if is_same { words } else { crate::meter::convert(from, to, &words, now_ns) };
    // SAFETY: both words of a meter (`Plane::state_mut`).
    unsafe { state.cast::<wire::MeterState>().write_volatile(moved) };
}

/// What an RFC meter's states depend on, besides its rate.
fn terms_of(profile: &wire::Profile) -> [u64; 6] {
    let (burst, excess) = (u64::from(profile.burst_bytes), u64::from(profile.excess_bytes));
    let (mtu, second) = (u64::from(profile.mtu_bytes), u64::from(profile.second_rate));
    [profile.burst_ticks, profile.excess_ticks, burst, excess, mtu, second]
}
