// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limiters that go on in the plane of the next generation.

use super::{Place, Plane, is_window};
use crate::meter::Terms;
use crate::wire;

// SAFETY: total functions of their arguments; `safe` ones keep no reference.
unsafe extern "C" {
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

/// Limiters between two readings of the clock: a state that is read long after the clock was would be given the time in between.
const LIMITERS_PER_READING: usize = 256;

/// Limiters that go on at another place: in the plane of the next generation.
///
/// Packets are judged by the old plane until the new one is in its place, so the work is in three steps: [`Carry::start`] copies
/// all states, [`Carry::refresh`] copies again those that changed since, and [`Carry::catch_up`], from when packets charge the new plane
/// until nobody charges the old one any more, adds what was charged to that after the last copy (`limiter.h` I7). `clock` tells the
/// time now, in ns.
#[derive(Debug)]
pub struct Carry {
    pairs: Vec<Pair>,
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
    pub fn start(
        old: &Plane,
        new: &mut Plane,
        pairs: impl IntoIterator<Item = (Place, Place)>,
        clock: impl Fn() -> u64,
    ) -> Self {
        let mut carry = Self { pairs: Vec::new() };
        let mut now_ns = clock();
        for (index, (from, to)) in pairs.into_iter().enumerate() {
            if index % LIMITERS_PER_READING == 0 {
                now_ns = clock();
            }
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
    pub fn refresh(&mut self, old: &Plane, new: &mut Plane, clock: impl Fn() -> u64) {
        let mut now_ns = clock();
        for (index, pair) in self.pairs.iter_mut().enumerate() {
            if index % LIMITERS_PER_READING == 0 {
                now_ns = clock();
            }
            let Some(before) = old.stand(pair.from) else { continue };
            if before.words == pair.copied {
                continue;
            }
            if let Some(after) = new.stand(pair.to) {
                copy(&before, &after, new.state_mut(pair.to), now_ns);
                pair.copied = before.words;
            }
        }
    }

    /// Adds what was charged to the old plane since the last copy, or the last time. Packets charge the new one, since `switched_ns`.
    pub fn catch_up(&mut self, old: &Plane, new: &mut Plane, switched_ns: u64, now_ns: u64) {
        for pair in &mut self.pairs {
            let Some(before) = old.stand(pair.from).filter(|before| before.words != pair.copied) else { continue };
            let Some(after) = new.stand(pair.to) else { continue };
            let copies = [0, 1].map(|word| wire::pst_limiter_copy {
                copied_ticks: pair.copied[word],
                switched_ns,
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
            pair.copied = before.words;
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
