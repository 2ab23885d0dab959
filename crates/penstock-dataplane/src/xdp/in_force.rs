// SPDX-License-Identifier: MIT OR Apache-2.0
//! A policy in force in the kernel: what a [`Generation`] adds to tables that both sides see.

use super::generation::{Generation, KernelError};
use crate::counters::since;
use crate::edits::is_live;
use crate::in_force::{Handover, Host, InForce};
use crate::{DataplaneError, LimitId};
use nix::time::{ClockId, clock_gettime};
use penstock_algo::plane::{Place, Plane, TakenOver};
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

    /// Sets right what differs between the tables that were taken over and the plan: a process may have died between a change of one
    /// and of the other. False when a row finds no room.
    pub fn settle(&mut self, found: &TakenOver) -> Result<bool, DataplaneError> {
        let now_ns = now_ns();
        found.removed.iter().for_each(|&slot| self.host.reset_counters(slot));
        let mut is_whole = true;
        for &row in &found.missing {
            let (name, entry) = (self.plan.names.get(row as usize).to_owned(), self.plan.entries[row as usize]);
            is_whole &= self.insert(&name, &entry, row as usize, now_ns)?;
        }
        let rows = (0_u32..).zip(&self.plan.entries).filter(|(_, entry)| is_live(entry));
        let rows = rows.map(|(row, entry)| (LimitId::Row(row), entry.rate));
        let limits = (0_u32..).zip(&self.plan.limits).map(|(index, limit)| (LimitId::Class(index), limit.rate));
        for (limit, rate) in rows.chain(limits) {
            // A row without room has no place.
            let Ok(place) = self.place(limit) else { continue };
            if self.plane.limiter(place).is_some_and(|limiter| limiter.rate != rate) {
                self.plane.set_rate(place, rate, now_ns);
            }
        }
        Ok(is_whole)
    }
}

/// What goes on from the generation before: states of limiters, and what was counted.
pub(super) struct LiveHandover {
    parts: Handover,
    /// By limiter that goes on: what of its counters the new generation has.
    counted: Vec<wire::pst_counters>,
}

impl LiveHandover {
    pub fn start(before: &InForce<Generation>, plane: &mut Plane, plan: &Plan) -> Self {
        let parts = Handover::start(before, plane, plan, now_ns);
        let counted = vec![wire::pst_counters::default(); parts.carry.len()];
        Self { parts, counted }
    }

    /// Copies anew what has changed.
    pub fn refresh(&mut self, before: &InForce<Generation>, after: &mut InForce<Generation>) {
        let _ = self.count(before, after);
        self.parts.carry.refresh(&before.plane, &mut after.plane, now_ns);
        after.plane.follow_shares(&before.plane, &self.parts.same.classes, now_ns());
    }

    /// Adds what was charged since, after each interface that changes over: a process that dies then leaves little out.
    pub fn catch_up(&mut self, before: &InForce<Generation>, after: &mut InForce<Generation>, switched_ns: u64) {
        self.parts.carry.catch_up(&before.plane, &mut after.plane, switched_ns, now_ns());
    }

    /// The new generation is in force already: what of the counters cannot be read is lost, and said. Returns how many limits go on.
    pub fn finish(
        mut self,
        before: &InForce<Generation>,
        after: &mut InForce<Generation>,
        switched_ns: u64,
        warnings: &mut Vec<String>,
    ) -> u64 {
        let kept = self.parts.carry.len() as u64;
        if let Err(error) = self.count(before, after) {
            warnings.push(format!("what was counted before this policy is lost: {error}"));
        }
        self.catch_up(before, after, switched_ns);
        kept
    }

    fn count(&mut self, before: &InForce<Generation>, after: &mut InForce<Generation>) -> Result<(), KernelError> {
        for ((from, to), counted) in self.parts.carry.places().zip(&mut self.counted) {
            let Some(now) = before.host.counters(from) else { break };
            after.host.add_counters(to, &since(&now, counted));
            *counted = now;
        }
        let (classes, reasons) = (before.host.class_counters()?, before.host.reasons()?);
        let was = |class: Option<u32>| class.and_then(|class| classes.get(class as usize)).copied();
        let classes: Vec<_> = self.parts.same.classes.iter().map(|class| was(*class).unwrap_or_default()).collect();
        after.host.set_counted_before(&classes, &reasons);
        Ok(())
    }
}
