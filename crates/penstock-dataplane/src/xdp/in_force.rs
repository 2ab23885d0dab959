// SPDX-License-Identifier: MIT OR Apache-2.0
//! A policy in force in the kernel: what a [`Generation`] adds to tables that both sides see.

use super::generation::Generation;
use crate::edits::is_live;
use crate::in_force::{Handover, Host, InForce};
use crate::load::entry_of;
use crate::{DataplaneError, LimitId};
use nix::time::{ClockId, clock_gettime};
use penstock_algo::plane::{Place, Plane};
use penstock_algo::wire;
use penstock_policy::Plan;

pub(super) fn now_ns() -> u64 {
    // The clock of bpf_ktime_get_ns.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or_else(|_| nix::sys::time::TimeSpec::new(0, 0));
    u64::try_from(now.tv_sec()).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec()).unwrap_or(0)
}

impl Host for Generation {
    fn counters(&self, place: Place) -> Option<wire::pst_counters> {
        Generation::counters(self, place)
    }

    fn move_counters(&mut self, from_slot: u32, to_slot: u32) {
        Generation::move_counters(self, from_slot, to_slot);
    }

    /// The program counts each packet at its class, too.
    fn close_counters(&mut self, slot: u32, _: &wire::Profile) {
        self.reset_counters(slot);
    }
}

impl InForce<Generation> {
    /// A generation that was just loaded from a plane, which goes on in the generation's memory.
    pub fn loaded(plane: Plane, plan: Plan, generation: Generation) -> Self {
        let mut in_force = Self::new(plane, plan, generation);
        // SAFETY: the memory is the generation's maps, filled from this plane; the generation is dropped after the plane (fields
        // are dropped in order), and the kernel's program changes words only.
        unsafe { in_force.plane.lend(in_force.host.memory()) };
        in_force
    }

    /// Sets right what differs between the adopted tables and the plan: a process may have died between a change of one and of
    /// the other.
    pub fn settle(&mut self, missing: &[u32]) -> Result<(), DataplaneError> {
        let now_ns = now_ns();
        for slot in self.plane.strays() {
            self.remove_slot(slot);
        }
        for &row in missing {
            let entry = self.plan.entries[row as usize];
            let insertion = self.plane.insert_row(&entry_of(&entry), row, now_ns);
            insertion.map_err(|source| crate::LoadError { source })?;
        }
        if !missing.is_empty() {
            self.slots = self.plane.slots(self.plan.entries.len());
        }
        let rows = (0_u32..).zip(&self.plan.entries).filter(|(_, entry)| is_live(entry));
        let rows: Vec<(LimitId, u32)> = rows.map(|(row, entry)| (LimitId::Row(row), entry.rate)).collect();
        let limits = (0_u32..).zip(&self.plan.limits).map(|(index, limit)| (LimitId::Class(index), limit.rate));
        for (limit, rate) in rows.into_iter().chain(limits.collect::<Vec<_>>()) {
            let place = self.place(limit)?;
            if self.plane.limiter(place).is_some_and(|limiter| limiter.rate != rate) {
                self.plane.set_rate(place, rate, now_ns);
            }
        }
        Ok(())
    }
}

impl Handover {
    /// Nobody counts at the generation before any more, and the new one is in force already: what of the counters cannot be read is
    /// lost, and said. Returns how many limits went on.
    pub fn finish(
        self,
        before: &InForce<Generation>,
        after: &mut InForce<Generation>,
        warnings: &mut Vec<String>,
    ) -> u64 {
        let kept = self.carry.len() as u64;
        for (from, to) in self.carry.places() {
            after.host.add_counters(to, before.host.counters(from));
        }
        self.carry.finish(&before.plane, &mut after.plane, now_ns());
        match (before.host.class_counters(), before.host.reasons()) {
            (Ok(classes), Ok(reasons)) => {
                let was = |class: Option<u32>| class.and_then(|class| classes.get(class as usize)).copied();
                let classes: Vec<_> = self.same.classes.iter().map(|class| was(*class).unwrap_or_default()).collect();
                after.host.set_counted_before(&classes, &reasons);
            }
            (Err(error), _) | (_, Err(error)) => {
                warnings.push(format!("what was counted before this policy is lost: {error}"));
            }
        }
        kept
    }
}
