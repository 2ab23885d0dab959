// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limiters of a plane that come, change, go and move on, while packets are charged: by this process or by a kernel program.

use super::{BuildError, Entry, LentShares, Parts, Plane, Slot, is_window};
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
    pub shares: LentShares,
}

/// What [`Plane::take_over`] found to be otherwise than it should.
#[derive(Debug, Default)]
pub struct TakenOver {
    /// Limiters that are not there, by index.
    pub missing: Vec<u32>,
    /// Slots of limiters that were there and should not.
    pub removed: Vec<u32>,
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
            self.shares.lend(memory.shares);
        }
    }

    /// A plane whose limiters are in memory already: [`Plane::take_over`] takes them. Parts and seed are those that they were built with.
    ///
    /// # Errors
    /// When a rule finds no place.
    pub fn without_limiters<'a>(
        parts: Parts,
        rules: impl ExactSizeIterator<Item = Entry<'a>>,
        seed: u64,
    ) -> Result<Self, BuildError> {
        let mut plane = Self::empty(parts, seed);
        plane.rules = Table::for_keys(rules.len());
        for (owner, entry) in (0_u32..).zip(rules) {
            plane.rules.insert(&plane.parts.tuples, &plane.secret, &entry, 0, owner)?;
        }
        Ok(plane)
    }

    /// Takes over tables that a writer before this one left, perhaps in the middle of a change. Limiters that are not among `limiters`
    /// are removed; what of these is not there, or under other terms, is missing.
    ///
    /// # Safety
    /// As [`Plane::lend`]; nobody else writes, and what is in memory was built from this plane's parts and seed.
    pub unsafe fn take_over<'a>(
        &mut self,
        limiters: impl ExactSizeIterator<Item = Entry<'a>>,
        memory: Lent,
    ) -> TakenOver {
        let slots = memory.limiter_buckets.1 * wire::PST_BUCKET_SLOTS as usize;
        self.limiters.owners = vec![wire::PST_NONE; slots];
        self.limiters.buckets =
            Cells::Lent { start: memory.limiter_buckets.0.cast(), length: memory.limiter_buckets.1 };
        self.limits = Cells::Lent { start: memory.limits.0, length: self.parts.limits.len().min(memory.limits.1) };
        self.meters = Cells::Lent { start: memory.meters.0, length: memory.meters.1 };
        // SAFETY: this function's contract.
        unsafe { self.shares.lend(memory.shares) };
        self.limiters.heal();
        let mut taken = TakenOver::default();
        for (owner, entry) in (0_u32..).zip(limiters).filter(|(_, entry)| entry.rate != 0) {
            let slot = self.find_row(entry.tuple, entry.value);
            match slot.filter(|&slot| self.limiters.slot(slot).is_some_and(|row| row.target == entry.target)) {
                Some(slot) => self.limiters.owners[slot as usize] = owner,
                None => taken.missing.push(owner),
            }
        }
        for slot in self.strays() {
            self.limiters.remove(slot);
            taken.removed.push(slot);
        }
        self.find_free_meters();
        taken
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
        let free = (0_u32..).zip(is_used).skip(1).filter(|(_, is_used)| !is_used).map(|(meter, _)| meter);
        self.free_meters = free.collect();
    }

    /// Slots that hold limiters which nobody owns.
    fn strays(&self) -> Vec<u32> {
        let slots = (0_u32..).zip(&self.limiters.owners).filter(|(_, owner)| **owner == wire::PST_NONE);
        slots.map(|(slot, _)| slot).filter(|&slot| self.limiters.slot(slot).is_some_and(|row| row.rate != 0)).collect()
    }
}
