// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a replay counts, and what of it goes on when another policy comes.
//!
//! A packet is counted once: at its row, else at its class's limit, else at its class ([`Tally`]). What a class counted is therefore the sum
//! over its limits, and when one of them goes, its counters move to the class.

use crate::counters::{ByMode, is_shadow, sum};
use crate::in_force::{Handover, Host, InForce};
use crate::samples::Samples;
use crate::{LimitId, Same};
use penstock_algo::plane::{Place, Plane, Tally};
use penstock_algo::wire;
use std::collections::HashMap;
use std::mem::take;

/// Counters of a policy in force, in virtual time.
#[derive(Debug)]
pub(super) struct Counted {
    pub tally: Tally,
    /// By class: what limits of it counted that are gone.
    gone: Vec<ByMode>,
    /// What limits counted while they were in the other mode (enforced, shadow): of a few, if of any.
    other: HashMap<Place, wire::pst_counters>,
    pub samples: Samples,
    sampled_ns: u64,
}

impl Counted {
    pub fn new(plane: &Plane) -> Self {
        let tally = plane.tally();
        let gone = vec![ByMode::default(); tally.classes.len()];
        Self { tally, gone, other: HashMap::new(), samples: Samples::default(), sampled_ns: 0 }
    }

    fn at_mut(&mut self, place: Place) -> Option<&mut wire::pst_counters> {
        match place {
            Place::Slot(slot) => self.tally.slots.get_mut(slot as usize),
            Place::Limit(limit) => self.tally.limits.get_mut(limit as usize),
        }
    }

    fn by_mode(&self, place: Place, is_shadow: bool) -> ByMode {
        let counters = match place {
            Place::Slot(slot) => self.tally.slots.get(slot as usize),
            Place::Limit(limit) => self.tally.limits.get(limit as usize),
        };
        let other = if self.other.is_empty() { None } else { self.other.get(&place) };
        ByMode::new(is_shadow, counters.copied().unwrap_or_default(), other.copied().unwrap_or_default())
    }

    /// Takes what was counted at a limiter.
    fn take(&mut self, place: Place, is_shadow: bool) -> ByMode {
        let counters = self.at_mut(place).map(take).unwrap_or_default();
        ByMode::new(is_shadow, counters, self.other.remove(&place).unwrap_or_default())
    }

    /// Gives a limiter what another one counted.
    fn put(&mut self, place: Place, is_shadow: bool, counted: &ByMode) {
        let (counters, other) =
            if is_shadow { (counted.shadow, counted.enforced) } else { (counted.enforced, counted.shadow) };
        if let Some(at) = self.at_mut(place) {
            *at = counters;
        }
        if other.offered_packets > 0 {
            self.other.insert(place, other);
        }
    }

    /// Whether to tell of a packet: it was dropped or marked, and the last one that was told of is long enough ago. As the kernel does.
    pub fn is_told(&self, now_ns: u64, decision: &wire::Decision) -> bool {
        let is_told = u32::from(decision.verdict) == wire::PST_VERDICT_DROP || wire::is_mark(decision.reason);
        is_told && now_ns - self.sampled_ns >= u64::from(wire::PST_SAMPLE_GAP_NSEC)
    }

    pub fn tell(&mut self, now_ns: u64, packet: &wire::Packet, decision: &wire::Decision) {
        self.sampled_ns = now_ns;
        let (key, decision) = (packet.key, *decision);
        self.samples.push(wire::pst_sample { time_ns: now_ns, key, decision, ..wire::pst_sample::default() });
    }
}

impl Host for Counted {
    fn counters(&self, place: Place) -> Option<wire::pst_counters> {
        Some(self.by_mode(place, false).sum())
    }

    fn move_counters(&mut self, from_slot: u32, to_slot: u32) {
        // Whatever their mode is: they keep it.
        let counted = self.take(Place::Slot(from_slot), false);
        self.put(Place::Slot(to_slot), false, &counted);
    }

    fn close_counters(&mut self, slot: u32, profile: &wire::Profile) {
        let counted = self.take(Place::Slot(slot), is_shadow(profile));
        if let Some(class) = self.gone.get_mut(profile.class_index as usize) {
            class.add(&counted);
        }
    }
}

impl InForce<Counted> {
    /// What was counted by class. Tells what was counted at each limit on the way: at those of classes, then at rows.
    pub fn classes(&self, mut limit: impl FnMut(LimitId, &wire::Profile, &ByMode)) -> Vec<ByMode> {
        let mut classes = self.host.gone.clone();
        for (index, (class, unlimited)) in classes.iter_mut().zip(&self.host.tally.classes).enumerate() {
            let share = self.plan.places.get(index).and_then(|place| self.plan.profiles.get(place.profile as usize));
            let counters = if share.is_some_and(is_shadow) { &mut class.shadow } else { &mut class.enforced };
            *counters = sum(*counters, *unlimited);
        }
        let mut tell = |id: LimitId, place: Place, profile: u16| {
            let Some(profile) = self.plan.profiles.get(usize::from(profile)) else { return };
            let counted = self.host.by_mode(place, is_shadow(profile));
            // Of millions of rows, most saw nothing.
            if counted.offered_packets() > 0
                && let Some(class) = classes.get_mut(profile.class_index as usize)
            {
                class.add(&counted);
            }
            limit(id, profile, &counted);
        };
        for (index, of_class) in (0..).zip(&self.plan.limits) {
            tell(LimitId::Class(index), Place::Limit(index), of_class.profile);
        }
        for ((row, entry), &slot) in (0..).zip(&self.plan.entries).zip(&self.slots) {
            if slot != wire::PST_NONE {
                tell(LimitId::Row(row), Place::Slot(slot), entry.profile);
            }
        }
        classes
    }

    /// Goes on from the policy before, with states and counters, at a time when nobody judges packets. Returns how many limits went on.
    pub fn take_over(&mut self, mut before: InForce<Counted>, handover: Handover, now_ns: u64) -> u64 {
        let Handover { same, mut carry } = handover;
        let kept = carry.len() as u64;
        for (from, to) in carry.places() {
            let mode = |in_force: &Self, place| in_force.profile(place).is_some_and(is_shadow);
            let (was_shadow, is_shadow) = (mode(&before, from), mode(self, to));
            let counted = before.host.take(from, was_shadow);
            self.host.put(to, is_shadow, &counted);
        }
        carry.catch_up(&before.plane, &mut self.plane, now_ns, now_ns);
        self.host.take_over_classes(&before, &same);
        kept
    }
}

impl Counted {
    /// What the policy before counted, and no limit of this one goes on with.
    fn take_over_classes(&mut self, before: &InForce<Counted>, same: &Same) {
        let left = before.classes(|_, _, _| {});
        for (class, was) in self.gone.iter_mut().zip(&same.classes) {
            *class = was.and_then(|was| left.get(was as usize)).copied().unwrap_or_default();
        }
        self.tally.reasons.clone_from(&before.host.tally.reasons);
    }
}
