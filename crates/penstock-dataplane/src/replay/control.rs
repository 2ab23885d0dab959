// SPDX-License-Identifier: MIT OR Apache-2.0
//! The replay engine as a data plane: policies come, change and go at the present virtual time.

use super::{Counted, Replay, START_NS};
use crate::in_force::{Handover, InForce};
use crate::load::load;
use crate::report::ReloadReport;
use crate::{Applied, Dataplane, DataplaneError, Edit, LimitId, LimitReading, Readings, UserReading};
use penstock_algo::wire;
use penstock_policy::Plan;

impl Replay {
    /// The link that the replay is restricted to, in a plan.
    pub(super) fn link_of(&self, plan: &Plan) -> Result<Option<u32>, DataplaneError> {
        let Some(name) = &self.link else { return Ok(None) };
        let found = (0..).zip(&plan.links).find(|(_, link)| link.name == *name);
        let known = || plan.links.iter().map(|link| link.name.clone()).collect();
        found
            .map(|(index, _)| Some(index))
            .ok_or_else(|| DataplaneError::UnknownLink { name: name.clone(), known: known() })
    }

    fn in_force(&self) -> Result<&InForce<Counted>, DataplaneError> {
        self.in_force.as_ref().ok_or(DataplaneError::Idle)
    }

    /// Puts a plan in the place of what is in force. Returns the limits that went on.
    fn put(&mut self, plan: Plan) -> Result<u64, DataplaneError> {
        let (link, now_ns) = (self.link_of(&plan)?, self.now_ns());
        let mut plane = load(&plan, self.seed, now_ns)?;
        self.room.resize(if plan.holds_packets() { plan.hold_chunks } else { 0 });
        if let Some(link) = link {
            plane.select_link(link);
        }
        let handover = self.in_force.as_ref().map(|before| Handover::start(before, &mut plane, &plan, || now_ns));
        let host = Counted::new(&plane);
        let mut after = InForce::new(plane, plan, host);
        let mut kept = 0;
        if let (Some(handover), Some(before)) = (handover, self.in_force.take()) {
            self.totals.gone.add_classes(&before, |class| !handover.same.classes.contains(&Some(class)));
            kept = after.take_over(before, handover, now_ns);
        }
        self.totals.follow_links(&after.plan);
        self.generation += 1;
        self.in_force = Some(after);
        Ok(kept)
    }
}

impl Dataplane for Replay {
    /// Between two packets, at the time of the one before or that of [`Replay::advance_to`].
    fn apply(&mut self, plan: Plan) -> Result<Applied, DataplaneError> {
        let policy = plan.policy.clone();
        let is_reload = self.in_force.is_some();
        let limits_kept = self.put(plan)?;
        if is_reload {
            self.totals.reloads.push(ReloadReport { time_ns: self.now_ns() - START_NS, policy, limits_kept });
        }
        Ok(Applied { generation: self.generation, limits_kept, warnings: Vec::new() })
    }

    /// Nothing outlives the process, so there is never anything to take over.
    fn adopt(&mut self, _: Plan) -> Result<Applied, DataplaneError> {
        Err(DataplaneError::Idle)
    }

    fn generation(&self) -> Option<u64> {
        self.in_force.as_ref().map(|_| self.generation)
    }

    fn edit(&mut self, edits: &[Edit]) -> Result<(), DataplaneError> {
        let now_ns = self.now_ns();
        let in_force = self.in_force.as_mut().ok_or(DataplaneError::Idle)?;
        match in_force.edit(edits, now_ns)? {
            Some(larger) => self.put(larger).map(drop),
            None => Ok(()),
        }
    }

    fn down(&mut self) -> Result<(), DataplaneError> {
        if let Some(before) = self.in_force.take() {
            self.totals.gone.add_classes(&before, |_| true);
            self.totals.gone.add_reasons(&before);
        }
        Ok(())
    }

    fn plan(&self) -> Option<&Plan> {
        self.in_force.as_ref().map(|in_force| &in_force.plan)
    }

    fn readings(&self) -> Result<Readings, DataplaneError> {
        let in_force = self.in_force()?;
        let classes: Vec<wire::pst_counters> =
            in_force.classes(|_, _, _| {}).into_iter().map(|class| class.sum()).collect();
        let (now_ns, reasons) = (self.now_ns(), in_force.host.tally.reasons.clone());
        Ok(Readings { now_ns, classes, reasons, shares: in_force.shares(now_ns) })
    }

    fn limit(&self, limit: LimitId) -> Result<LimitReading, DataplaneError> {
        self.in_force()?.reading(limit, self.now_ns())
    }

    fn tend(&mut self) -> u64 {
        let now_ns = self.now_ns();
        self.in_force.as_mut().map_or(0, |in_force| in_force.plane.tend(now_ns))
    }

    fn user(&mut self, class: u32, key: &wire::Key) -> Result<Option<UserReading>, DataplaneError> {
        let now_ns = self.now_ns();
        Ok(self.in_force.as_mut().ok_or(DataplaneError::Idle)?.user(class, key, now_ns))
    }

    fn samples(&mut self) -> Result<Vec<wire::pst_sample>, DataplaneError> {
        let in_force = self.in_force.as_mut().ok_or(DataplaneError::Idle)?;
        Ok(in_force.host.samples.take())
    }
}
