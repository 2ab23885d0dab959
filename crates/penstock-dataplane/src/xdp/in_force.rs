// SPDX-License-Identifier: MIT OR Apache-2.0
//! A policy in force: its generation, the tables that both sides see, and how the next one takes over.

use super::generation::Generation;
use crate::edits::{edit_plan, is_live};
use crate::load::entry_of;
use crate::same::Same;
use crate::succession::places;
use crate::{DataplaneError, Edit, LimitId};
use nix::time::{ClockId, clock_gettime};
use penstock_algo::plane::{BuildError, Carry, Place, Plane};
use penstock_algo::wire;
use penstock_policy::Plan;

pub(super) fn now_ns() -> u64 {
    // The clock of bpf_ktime_get_ns.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or_else(|_| nix::sys::time::TimeSpec::new(0, 0));
    u64::try_from(now.tv_sec()).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec()).unwrap_or(0)
}

/// A policy in force. The plane's memory is the generation's: it goes first.
#[derive(Debug)]
pub(super) struct InForce {
    pub plane: Plane,
    pub plan: Plan,
    /// By row: its slot in the limiter table.
    pub slots: Vec<u32>,
    pub generation: Generation,
}

impl InForce {
    /// A generation that was just loaded from a plane, which goes on in the generation's memory.
    pub fn new(mut plane: Plane, plan: Plan, generation: Generation) -> Self {
        let slots = plane.slots(plan.entries.len());
        // SAFETY: the memory is the generation's maps, filled from this plane; the generation is dropped after the plane (fields
        // are dropped in order), and the kernel's program changes words only.
        unsafe { plane.lend(generation.memory()) };
        Self { plane, plan, slots, generation }
    }

    pub fn place(&self, limit: LimitId) -> Result<Place, DataplaneError> {
        let place = match limit {
            LimitId::Row(row) => {
                self.slots.get(row as usize).filter(|&&slot| slot != wire::PST_NONE).map(|&slot| Place::Slot(slot))
            }
            LimitId::Class(index) => ((index as usize) < self.plan.limits.len()).then_some(Place::Limit(index)),
        };
        place.ok_or(DataplaneError::UnknownLimit(limit))
    }

    /// Makes one edit in the tables; the plan follows. False when a row finds no room.
    pub fn edit(&mut self, edit: &Edit, now_ns: u64) -> Result<bool, DataplaneError> {
        match edit {
            Edit::SetRate { limit, rate_bps } => {
                let rate = penstock_policy::terms::rate_code(*rate_bps);
                self.plane.set_rate(self.place(*limit)?, rate, now_ns);
            }
            Edit::Remove { row } => {
                if let Place::Slot(slot) = self.place(LimitId::Row(*row))? {
                    self.plane.remove_row(slot);
                    self.generation.reset_counters(slot);
                    self.slots[*row as usize] = wire::PST_NONE;
                }
            }
            Edit::Add { name, entry } => {
                let owner = u32::try_from(self.plan.entries.len()).unwrap_or(wire::PST_NONE);
                let insertion = match self.plane.insert_row(&entry_of(entry), owner, now_ns) {
                    Ok(insertion) => insertion,
                    Err(BuildError::Full(_)) => return Ok(false),
                    Err(_) => return Err(DataplaneError::Taken { name: name.clone() }),
                };
                for one in insertion.moves.iter().take(insertion.move_count as usize) {
                    self.generation.move_counters(one.from_slot, one.to_slot);
                    let owner = self.plane.owner(one.to_slot as usize);
                    if let Some(slot) = owner.and_then(|owner| self.slots.get_mut(owner)) {
                        *slot = one.to_slot;
                    }
                }
                self.slots.push(insertion.slot);
            }
        }
        edit_plan(&mut self.plan, std::slice::from_ref(edit));
        Ok(true)
    }

    pub fn rate_bps(&self, limit: LimitId) -> u64 {
        match limit {
            LimitId::Row(row) => self.plan.entries.get(row as usize).map_or(0, |entry| entry.rate_bps),
            LimitId::Class(index) => {
                let of_limit = self.plan.classes.iter().find(|class| class.wire.limit_index == index);
                of_limit.and_then(|class| class.limit_bps).unwrap_or(0)
            }
        }
    }
}

/// What goes on from the generation before: states of limiters first, and what was counted when nobody counts there any more.
pub(super) struct Handover {
    same: Same,
    pub carry: Carry,
}

impl Handover {
    pub fn start(before: &InForce, plane: &mut Plane, plan: &Plan) -> Self {
        let same = Same::new(&before.plan, plan);
        let slots = plane.slots(plan.entries.len());
        let carry = Carry::start(&before.plane, plane, places(&same, &before.slots, &slots), now_ns());
        Self { same, carry }
    }

    /// The new generation is in force already: what of the counters cannot be read is lost, and said.
    pub fn finish(self, before: &InForce, after: &mut InForce, warnings: &mut Vec<String>) -> u64 {
        let kept = self.carry.len() as u64;
        for (from, to) in self.carry.places() {
            after.generation.add_counters(to, before.generation.counters(from));
        }
        self.carry.finish(&before.plane, &mut after.plane, now_ns());
        match (before.generation.class_counters(), before.generation.reasons()) {
            (Ok(classes), Ok(reasons)) => {
                let was = |class: Option<u32>| class.and_then(|class| classes.get(class as usize)).copied();
                let classes: Vec<_> = self.same.classes.iter().map(|class| was(*class).unwrap_or_default()).collect();
                after.generation.set_counted_before(&classes, &reasons);
            }
            (Err(error), _) | (_, Err(error)) => {
                warnings.push(format!("what was counted before this policy is lost: {error}"));
            }
        }
        kept
    }
}

impl InForce {
    /// Sets right what differs between the adopted tables and the plan: a process may have died between a change of one and of
    /// the other.
    pub fn settle(&mut self, missing: &[u32]) -> Result<(), DataplaneError> {
        let now_ns = now_ns();
        for slot in self.plane.strays() {
            self.plane.remove_row(slot);
            self.generation.reset_counters(slot);
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
