// SPDX-License-Identifier: MIT OR Apache-2.0
//! A policy in force, whoever judges packets by it: its tables, how they are edited, and how the next one takes over.

use crate::edits::{check_edits, edit_plan};
use crate::load::entry_of;
use crate::same::Same;
use crate::shares::{self, Fairness};
use crate::succession::places;
use crate::{DataplaneError, Edit, LimitId, LimitReading, ShareReading, UserReading};
use penstock_algo::plane::{BuildError, Carry, Place, Plane};
use penstock_algo::wire;
use penstock_policy::Plan;
use penstock_policy::plan::PlanEntry;
use penstock_policy::terms::rate_code;

/// Who runs packets through a plane, and counts them.
pub(crate) trait Host {
    /// What was counted at a limiter. None where limiters are not counted each by itself.
    fn counters(&self, place: Place) -> Option<wire::pst_counters>;

    /// A row was moved to another slot, to make room.
    fn move_counters(&mut self, from_slot: u32, to_slot: u32);

    /// The row in a slot is taken away. What it counted stays with its class, which the profile names.
    fn close_counters(&mut self, slot: u32, profile: &wire::Profile);
}

/// A policy in force. Where the plane's memory is its host's, the plane goes first.
#[derive(Debug)]
pub(crate) struct InForce<H> {
    pub plane: Plane,
    pub plan: Plan,
    /// By row: its slot in the limiter table.
    pub slots: Vec<u32>,
    pub fairness: Fairness,
    pub host: H,
}

impl<H: Host> InForce<H> {
    /// A plane that was just built from a plan.
    pub fn new(plane: Plane, plan: Plan, host: H) -> Self {
        let slots = plane.slots(plan.entries.len());
        Self { plane, plan, slots, fairness: Fairness::default(), host }
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

    /// Makes all edits, or none when one of them cannot be made. Where a row finds no room it makes none, and returns the plan with all
    /// of them: it takes larger tables.
    pub fn edit(&mut self, edits: &[Edit], now_ns: u64) -> Result<Option<Plan>, DataplaneError> {
        check_edits(&self.plan, edits)?;
        let done = if self.insert_rows(edits, now_ns)? { self.edit_each(edits, now_ns)? } else { 0 };
        if done == edits.len() {
            return Ok(None);
        }
        let mut plan = self.plan.clone();
        edit_plan(&mut plan, &edits[done..]);
        Ok(Some(plan))
    }

    /// Nothing but a row without room can fail: rows come first. One whose key another edit frees comes when that one has gone, to its
    /// place. When one finds no room nothing was changed, and false is returned.
    fn insert_rows(&mut self, edits: &[Edit], now_ns: u64) -> Result<bool, DataplaneError> {
        let rows = self.slots.len();
        for edit in edits {
            let Edit::Add { name, entry } = edit else { continue };
            let owner = self.slots.len();
            self.slots.push(wire::PST_NONE);
            let is_taken = self.plane.find_row(entry.tuple, &entry.value).is_some();
            let inserted = if is_taken { Ok(true) } else { self.insert(name, entry, owner, now_ns) };
            if !matches!(inserted, Ok(true)) {
                (rows..self.slots.len()).for_each(|row| self.remove(row));
                self.slots.truncate(rows);
                return inserted;
            }
        }
        Ok(true)
    }

    /// Makes edits in the tables and in the plan, when their rows have come. Returns how many.
    fn edit_each(&mut self, edits: &[Edit], now_ns: u64) -> Result<usize, DataplaneError> {
        for (done, edit) in edits.iter().enumerate() {
            match edit {
                Edit::SetRate { limit, rate_bps } => {
                    self.plane.set_rate(self.place(*limit)?, rate_code(*rate_bps), now_ns);
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

    /// Puts a row into the tables. False when there is no room.
    pub fn insert(&mut self, name: &str, entry: &PlanEntry, row: usize, now_ns: u64) -> Result<bool, DataplaneError> {
        let owner = u32::try_from(row).unwrap_or(wire::PST_NONE);
        let insertion = match self.plane.insert_row(&entry_of(entry), owner, now_ns) {
            Ok(insertion) => insertion,
            Err(BuildError::Full(_)) => return Ok(false),
            Err(_) => return Err(DataplaneError::Taken { name: name.to_owned() }),
        };
        for one in insertion.moves.iter().take(insertion.move_count as usize) {
            self.host.move_counters(one.from_slot, one.to_slot);
            let owner = self.plane.owner(one.to_slot as usize);
            if let Some(slot) = owner.and_then(|owner| self.slots.get_mut(owner)) {
                *slot = one.to_slot;
            }
        }
        self.slots[row] = insertion.slot;
        Ok(true)
    }

    /// Takes a row away, if it is there.
    fn remove(&mut self, row: usize) {
        let slot = std::mem::replace(&mut self.slots[row], wire::PST_NONE);
        if slot != wire::PST_NONE {
            let profile = self.profile(Place::Slot(slot)).copied().unwrap_or_default();
            self.plane.remove_row(slot);
            self.host.close_counters(slot, &profile);
        }
    }

    /// The terms of a limiter.
    pub fn profile(&self, place: Place) -> Option<&wire::Profile> {
        self.plane.profiles().get(usize::from(self.plane.limiter(place)?.target))
    }

    /// One limit as it is.
    pub fn reading(&self, limit: LimitId, now_ns: u64) -> Result<LimitReading, DataplaneError> {
        let place = self.place(limit)?;
        let (queue_ns, window_ns) = self.plane.queue_ns(place, now_ns).unwrap_or_default();
        Ok(LimitReading { rate_bps: self.rate_bps(limit), queue_ns, window_ns, counters: self.host.counters(place) })
    }

    /// Trees of shares as they are, by place.
    pub fn shares(&self, now_ns: u64) -> Vec<Option<ShareReading>> {
        shares::readings(&self.plane, &self.fairness, now_ns)
    }

    /// The user of a class whose packets have this key.
    pub fn user(&mut self, class: u32, key: &wire::Key, now_ns: u64) -> Option<UserReading> {
        shares::user(&mut self.plane, class, key, now_ns)
    }

    fn rate_bps(&self, limit: LimitId) -> u64 {
        match limit {
            LimitId::Row(row) => self.plan.entries.get(row as usize).map_or(0, |entry| entry.rate_bps),
            LimitId::Class(index) => {
                let of_limit = self.plan.classes.iter().find(|class| class.wire.limit_index == index);
                of_limit.and_then(|class| class.limit_bps).unwrap_or(0)
            }
        }
    }
}

/// What goes on from one policy to the next: which parts are the same, and the states of their limiters. Its host sees to what was
/// counted.
pub(crate) struct Handover {
    pub same: Same,
    pub carry: Carry,
}

impl Handover {
    /// Copies states into the plane of the next policy, while packets go on being judged by the one before.
    pub fn start<H>(before: &InForce<H>, plane: &mut Plane, plan: &Plan, clock: impl Fn() -> u64) -> Self {
        let same = Same::new(&before.plan, plan);
        let slots = plane.slots(plan.entries.len());
        plane.follow_shares(&before.plane, &same.classes, clock());
        let carry = Carry::start(&before.plane, plane, places(&same, &before.slots, &slots), clock);
        Self { same, carry }
    }
}
