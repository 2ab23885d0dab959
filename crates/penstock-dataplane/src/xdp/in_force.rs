// SPDX-License-Identifier: MIT OR Apache-2.0
//! A policy in force: its generation, the tables that both sides see, and how the next one takes over.

use super::counters::since;
use super::generation::{Generation, KernelError};
use crate::edits::{edit_plan, is_live};
use crate::load::entry_of;
use crate::same::Same;
use crate::succession::places;
use crate::{DataplaneError, Edit, LimitId};
use nix::time::{ClockId, clock_gettime};
use penstock_algo::plane::{BuildError, Carry, Place, Plane, TakenOver};
use penstock_algo::wire;
use penstock_policy::Plan;
use penstock_policy::plan::PlanEntry;

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

    /// Makes edits that were checked, in the tables and in the plan. Returns how many: none when a row finds no room.
    pub fn edit(&mut self, edits: &[Edit], now_ns: u64) -> Result<usize, DataplaneError> {
        // Nothing but a row without room can fail: rows come first. One whose key another edit frees comes when that one has gone, to
        // its place.
        let rows = self.slots.len();
        let mut owner = rows;
        for edit in edits {
            let Edit::Add { name, entry } = edit else { continue };
            self.slots.push(wire::PST_NONE);
            if self.plane.find_row(entry.tuple, &entry.value).is_none() && !self.insert(name, entry, owner, now_ns)? {
                (rows..self.slots.len()).for_each(|row| self.remove(row));
                self.slots.truncate(rows);
                return Ok(0);
            }
            owner += 1;
        }
        for (done, edit) in edits.iter().enumerate() {
            match edit {
                Edit::SetRate { limit, rate_bps } => {
                    let rate = penstock_policy::terms::rate_code(*rate_bps);
                    self.plane.set_rate(self.place(*limit)?, rate, now_ns);
                }
                Edit::Remove { row } => self.remove(*row as usize),
                Edit::Add { name, entry } => {
                    let owner = self.plan.entries.len();
                    if self.slots[owner] == wire::PST_NONE && !self.insert(name, entry, owner, now_ns)? {
                        return Ok(done);
                    }
                }
            }
            edit_plan(&mut self.plan, std::slice::from_ref(edit));
        }
        Ok(edits.len())
    }

    /// False when there is no room.
    fn insert(&mut self, name: &str, entry: &PlanEntry, owner: usize, now_ns: u64) -> Result<bool, DataplaneError> {
        let owner = u32::try_from(owner).unwrap_or(wire::PST_NONE);
        let insertion = match self.plane.insert_row(&entry_of(entry), owner, now_ns) {
            Ok(insertion) => insertion,
            Err(BuildError::Full(_)) => return Ok(false),
            Err(_) => return Err(DataplaneError::Taken { name: name.to_owned() }),
        };
        for one in insertion.moves.iter().take(insertion.move_count as usize) {
            self.generation.move_counters(one.from_slot, one.to_slot);
            let owner = self.plane.owner(one.to_slot as usize);
            if let Some(slot) = owner.and_then(|owner| self.slots.get_mut(owner)) {
                *slot = one.to_slot;
            }
        }
        self.slots[owner as usize] = insertion.slot;
        Ok(true)
    }

    fn remove(&mut self, row: usize) {
        let slot = std::mem::replace(&mut self.slots[row], wire::PST_NONE);
        if slot != wire::PST_NONE {
            self.plane.remove_row(slot);
            self.generation.reset_counters(slot);
        }
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

/// What goes on from the generation before: states of limiters, and what was counted.
pub(super) struct Handover {
    same: Same,
    carry: Carry,
    /// By limiter of `carry`: what of its counters the new generation has.
    counted: Vec<wire::pst_counters>,
}

impl Handover {
    pub fn start(before: &InForce, plane: &mut Plane, plan: &Plan) -> Self {
        let same = Same::new(&before.plan, plan);
        let slots = plane.slots(plan.entries.len());
        let carry = Carry::start(&before.plane, plane, places(&same, &before.slots, &slots), now_ns);
        let counted = vec![wire::pst_counters::default(); carry.len()];
        Self { same, carry, counted }
    }

    /// Copies anew what has changed: a process that dies while interfaces change over leaves this to the next one.
    pub fn refresh(&mut self, before: &InForce, after: &mut InForce) {
        let _ = self.count(before, after);
        self.carry.refresh(&before.plane, &mut after.plane, now_ns);
    }

    /// The new generation is in force already: what of the counters cannot be read is lost, and said. Returns how many limits go on.
    pub fn finish(
        mut self,
        before: &InForce,
        after: &mut InForce,
        switched_ns: u64,
        warnings: &mut Vec<String>,
    ) -> u64 {
        let kept = self.carry.len() as u64;
        if let Err(error) = self.count(before, after) {
            warnings.push(format!("what was counted before this policy is lost: {error}"));
        }
        self.carry.finish(&before.plane, &mut after.plane, switched_ns, now_ns());
        kept
    }

    fn count(&mut self, before: &InForce, after: &mut InForce) -> Result<(), KernelError> {
        for ((from, to), counted) in self.carry.places().zip(&mut self.counted) {
            let Some(now) = before.generation.counters(from) else { break };
            after.generation.add_counters(to, &since(&now, counted));
            *counted = now;
        }
        let (classes, reasons) = (before.generation.class_counters()?, before.generation.reasons()?);
        let was = |class: Option<u32>| class.and_then(|class| classes.get(class as usize)).copied();
        let classes: Vec<_> = self.same.classes.iter().map(|class| was(*class).unwrap_or_default()).collect();
        after.generation.set_counted_before(&classes, &reasons);
        Ok(())
    }
}

impl InForce {
    /// Sets right what differs between the tables that were taken over and the plan: a process may have died between a change of one
    /// and of the other. False when a row finds no room.
    pub fn settle(&mut self, found: &TakenOver) -> Result<bool, DataplaneError> {
        let now_ns = now_ns();
        found.removed.iter().for_each(|&slot| self.generation.reset_counters(slot));
        let mut is_whole = true;
        for &row in &found.missing {
            let entry = self.plan.entries[row as usize];
            is_whole &=
                self.insert(self.plan.names.get(row as usize).to_owned().as_str(), &entry, row as usize, now_ns)?;
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
