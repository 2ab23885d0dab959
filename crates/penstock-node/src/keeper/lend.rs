// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lent limits: orders into rates, lapses, and what is told of both.
//!
//! Order    data plane: edited, in one call; then the store, where a rate went down; then the report that acknowledges. A controller gives
//!          to others what was given up only after that, so a daemon that dies at any point comes back with no more than is counted for it.
//! Failure  of the data plane: nothing of the order was applied, and nothing is acknowledged. All limits are asked for.

use super::Keeper;
use crate::clock::{boot_id, boottime_ns};
use crate::error::NodeError;
use crate::leases::{Holding, Leases, Taken};
use crate::lending::{Limits, Places};
use crate::readings::{counters, of_limit};
use crate::store::LeaseRecord;
use penstock_algo::wire;
use penstock_api::v1;
use penstock_dataplane::{DataplaneError, Edit, LimitId};
use penstock_policy::Plan;
use std::collections::HashMap;
use tracing::{info, warn};

/// Problems of one report.
pub const PROBLEMS_MAX: usize = 20;
/// Between writes of a lease that only got longer.
const SAVED_EVERY_NS: u64 = 1_000_000_000;

/// What a keeper knows of leases.
#[derive(Debug, Default)]
pub(super) struct Lending {
    leases: Leases,
    places: Places,
    boot: String,
    machine: String,
    /// The store has something else.
    unsaved: bool,
    saved_ns: u64,
    /// Rows came or went, and rates could not follow yet.
    unsettled: bool,
    counted: Counted,
    attending: Option<Attending>,
}

/// What lent limits had counted when that was told last.
#[derive(Debug, Default)]
struct Counted {
    now_ns: u64,
    /// By number: bytes offered and passed.
    bytes: HashMap<u32, (u64, u64)>,
    /// By number: traffic was told of. Of others it is told once that they are idle.
    moving: HashMap<u32, bool>,
}

/// Whom this node attends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attending {
    /// As the network file calls this node.
    pub node: String,
    /// Of the controller: the one attended, or tried last.
    pub address: String,
    /// Whether it is attended.
    pub attends: bool,
    /// Why not.
    pub trouble: String,
}

impl Lending {
    /// What the daemon before this one left.
    pub fn resume(record: Option<LeaseRecord>, machine: String) -> Self {
        let boot = boot_id();
        let is_of_this_boot = record.as_ref().is_some_and(|record| record.boot == boot && !boot.is_empty());
        let leases = Leases::resume(record.map(|record| record.holding), is_of_this_boot, boottime_ns());
        Self { leases, boot, machine, ..Self::default() }
    }

    fn limits(&self) -> Option<(&Limits, bool)> {
        self.leases.holding().map(|held| (&held.limits, held.lapsed))
    }

    /// Gives a plan that is on its way into force the rates lent.
    pub fn lay_over(&self, plan: &mut Plan) -> Places {
        self.limits().map_or_else(Places::default, |(limits, lapsed)| Places::lay_over(plan, limits, lapsed))
    }

    /// The plan with these places is in force.
    pub fn put(&mut self, places: Places) {
        if !places.has_numbers_of(&self.places) {
            self.counted = Counted::default();
        }
        (self.places, self.unsettled) = (places, false);
    }

    /// The operator's edits were made.
    pub fn edited(&mut self, places: Places) {
        self.places = places;
    }

    /// The operator's edits as the data plane should make them.
    pub fn translate(&self, edits: &[Edit]) -> (Places, Vec<Edit>) {
        let nothing = Limits::new();
        let (limits, lapsed) = self.limits().unwrap_or((&nothing, false));
        self.places.translate(edits, limits, lapsed)
    }
}

impl Keeper {
    /// Takes an order of a controller.
    ///
    /// # Errors
    /// The data plane refuses: nothing was changed, and the order was not taken.
    pub fn take_order(&mut self, order: &v1::Order, now_ns: u64) -> Result<Taken, NodeError> {
        self.lapse(now_ns);
        let mut next = self.lending.leases.clone();
        let taken = next.take(order, now_ns);
        let mut lowers = false;
        if taken == Taken::Changed
            && let Some(after) = next.holding()
        {
            let was_lapsed = self.lending.leases.holding().is_some_and(|held| held.lapsed);
            match self.make_lent(after) {
                Ok(does_lower) => lowers = does_lower,
                Err(error) => {
                    self.lending.leases.want_all();
                    return Err(error.into());
                }
            }
            if was_lapsed {
                info!(term = after.epoch.term, number = after.epoch.number, "limits are lent again");
            }
        }
        self.lending.leases = next;
        self.lending.unsaved |= matches!(taken, Taken::Changed | Taken::Renewed);
        self.save_lease(now_ns, lowers);
        Ok(taken)
    }

    /// Gives limits the rates that are lent, or the safe ones, all or none. Whether a rate went down.
    fn make_lent(&mut self, after: &Holding) -> Result<bool, DataplaneError> {
        let Some(plan) = self.dataplane.plan() else { return Ok(false) };
        let before = self.lending.leases.holding().map(|held| &held.limits).filter(|_| !self.lending.unsettled);
        let (places, edits) = self.lending.places.follow(plan, before, &after.limits, after.lapsed);
        let lowers = self.edit_lent(&edits)?;
        self.lending.put(places);
        Ok(lowers)
    }

    /// Edits rates; whether one went down.
    fn edit_lent(&mut self, edits: &[Edit]) -> Result<bool, DataplaneError> {
        if edits.is_empty() {
            return Ok(false);
        }
        let Some(plan) = self.dataplane.plan() else { return Ok(false) };
        let rows = plan.entries.len();
        let is_lower = |edit: &Edit| match edit {
            Edit::SetRate { limit, rate_bps } => crate::difference::rate_and_profile(plan, *limit).0 > *rate_bps,
            _ => false,
        };
        // Lower ones come first.
        let lowers = edits.first().is_some_and(is_lower);
        if let Err(error) = self.dataplane.edit(edits)
            && !self.dataplane.plan().is_some_and(|plan| super::edit::has_taken(plan, rows, edits))
        {
            return Err(error);
        }
        Ok(lowers)
    }

    /// Goes to safe rates if the lease is over, and tries again what could not be done before. What is left of the lease.
    pub fn lapse(&mut self, now_ns: u64) -> Option<u64> {
        if self.lending.unsettled {
            self.settle_lent();
        }
        if self.lending.leases.is_over(now_ns)
            && let Some(held) = self.lending.leases.holding().cloned()
        {
            let after = Holding { lapsed: true, ..held };
            match self.make_lent(&after) {
                Ok(_) => {
                    self.lending.leases.lapse();
                    self.lending.unsaved = true;
                    warn!(limits = after.limits.len(), "the lease is over: limits have their safe rates");
                }
                Err(error) => warn!("the lease is over, but safe rates could not be set: {error}; trying again"),
            }
        }
        self.save_lease(now_ns, false);
        self.lending.leases.left_ns(now_ns)
    }

    /// Rows came or went under lent limits.
    pub(super) fn settle_lent(&mut self) {
        let Some(held) = self.lending.leases.holding().cloned() else { return };
        self.lending.unsettled = true;
        if let Err(error) = self.make_lent(&held) {
            warn!("lent rates could not be set: {error}; trying again");
        }
    }

    /// Writes the lease down, now or when the last time is long enough ago.
    pub fn save_lease(&mut self, now_ns: u64, must: bool) {
        let is_due = must || now_ns >= self.lending.saved_ns.saturating_add(SAVED_EVERY_NS);
        if !self.lending.unsaved || !is_due {
            return;
        }
        let Some(holding) = self.lending.leases.holding().cloned() else { return };
        // Tried again in a second, if it fails.
        self.lending.saved_ns = now_ns;
        let record = LeaseRecord { boot: self.lending.boot.clone(), holding };
        match self.store.lend(Some(&record)) {
            Ok(()) => self.lending.unsaved = false,
            Err(error) => warn!("the lease could not be written: {error}; trying again"),
        }
    }

    /// A new stream to a controller begins. What the first report says.
    #[must_use]
    pub fn register(&mut self, node: &str) -> v1::Registration {
        self.lending.leases.attend();
        self.lending.counted.moving.clear();
        v1::Registration {
            node: node.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ports: self.node_ports(),
            holds: self.holds(),
            machine: self.lending.machine.clone(),
        }
    }

    /// What is lent, with the rates in force. Of a limit that has no place: with the rate lent.
    fn holds(&self) -> Vec<v1::Lent> {
        let limits = self.lending.leases.holding().into_iter().flat_map(|held| &held.limits);
        let lent = limits.map(|(&limit, lent)| v1::Lent {
            limit,
            port: lent.port.clone(),
            class: lent.class.clone(),
            rate_bps: self.lending.places.now_bps(limit).or(lent.rate_bps),
            safe_bps: lent.safe_bps,
        });
        lent.collect()
    }

    /// The links of the policy in force.
    #[must_use]
    pub fn node_ports(&self) -> Vec<v1::NodePort> {
        let links = self.dataplane.plan().into_iter().flat_map(|plan| &plan.links);
        links.map(|link| v1::NodePort { name: link.name.clone(), rate_bps: link.rate_bps }).collect()
    }

    /// What is reported now; `sequence` is its number. Demands are those since they were reported last.
    #[must_use]
    pub fn report(&mut self, sequence: u64, with_demands: bool, now_ns: u64) -> v1::Report {
        self.lapse(now_ns);
        self.lending.leases.sent(sequence, now_ns);
        let holding = self.lending.leases.holding();
        let (problems, problems_total) = self.lent_problems();
        v1::Report {
            sequence,
            registration: None,
            applied: holding.map(|held| held.epoch.into()),
            lapsed: holding.is_some_and(|held| held.lapsed),
            wants_all: self.lending.leases.wants_all(),
            problems,
            problems_total,
            demands: if with_demands { self.demands() } else { Vec::new() },
        }
    }

    fn lent_problems(&self) -> (Vec<String>, u64) {
        let lent = self.lending.leases.holding().map_or(0, |held| held.limits.len());
        if self.dataplane.plan().is_none() && lent > 0 {
            return (vec![format!("no policy is in force: there is no place for {lent} limits")], 1);
        }
        self.lending.places.problems(PROBLEMS_MAX)
    }

    /// What moved since this was asked last.
    fn demands(&mut self) -> Vec<v1::Demand> {
        let (Some(held), Ok(readings)) = (&self.held, self.dataplane.readings()) else { return Vec::new() };
        let bytes_of = |limit: LimitId, classes: &[u32]| match limit {
            LimitId::Row(row) => {
                let profile = self.dataplane.plan().map(|plan| crate::difference::rate_and_profile(plan, limit).1);
                let shadow = u32::from(profile?.flags) & wire::PST_PROFILE_SHADOW != 0;
                let reading = self.dataplane.limit(LimitId::Row(row)).ok()?;
                of_limit(&reading, shadow).1.map(|counted| (counted.offered_bytes, counted.passed_bytes))
            }
            LimitId::Class(_) => Some(classes.iter().fold((0, 0), |(offered, passed), &class| {
                let facts = held.facts.get(class as usize).copied().unwrap_or_default();
                let counted = readings.classes.get(class as usize).map(|of_class| counters(of_class, facts));
                let counted = counted.unwrap_or_default();
                (offered + counted.offered_bytes, passed + counted.passed_bytes)
            })),
        };
        let placed = self.lending.places.iter();
        let bytes: HashMap<u32, (u64, u64)> =
            placed.filter_map(|(number, one)| Some((number, bytes_of(one.limit, &one.classes)?))).collect();
        self.lending.counted.demands(readings.now_ns, bytes)
    }

    /// What is said of a limit that is lent.
    #[must_use]
    pub fn lease_of(&self, limit: LimitId) -> Option<v1::Lease> {
        let (number, held) = (self.lending.places.number_of(limit)?, self.lending.leases.holding()?);
        let (placed, lent) = (self.lending.places.of(limit)?, held.limits.get(&number)?);
        Some(v1::Lease {
            term: held.epoch.term,
            number: held.epoch.number,
            left_ns: self.lending.leases.left_ns(boottime_ns()).unwrap_or(0),
            lapsed: held.lapsed,
            lent_bps: lent.rate_bps,
            safe_bps: lent.safe_bps,
            policy_rate_bps: placed.base_bps,
        })
    }

    /// What a limit has, or would have if it were not lent, bit/s.
    #[must_use]
    pub fn base_bps(&self, plan: &Plan, limit: LimitId) -> u64 {
        let placed = self.lending.places.of(limit);
        placed.map_or_else(|| crate::difference::rate_and_profile(plan, limit).0, |placed| placed.base_bps)
    }

    /// The plan in force as it would be if nothing were lent.
    #[must_use]
    pub fn plan_unlent(&self) -> Option<Plan> {
        let mut plan = self.dataplane.plan()?.clone();
        self.lending.places.take_off(&mut plan);
        Some(plan)
    }

    /// Whom this node attends.
    pub fn set_attending(&mut self, attending: Attending) {
        self.lending.attending = Some(attending);
    }

    /// How this node stands with its controller; none if it has none.
    #[must_use]
    pub fn controller_status(&self) -> Option<v1::ControllerStatus> {
        let attending = self.lending.attending.clone()?;
        let holding = self.lending.leases.holding();
        let (problems, problems_total) = self.lent_problems();
        let state = match attending.attends {
            true => v1::controller_status::State::Attending,
            false => v1::controller_status::State::Searching,
        };
        Some(v1::ControllerStatus {
            node: attending.node,
            address: attending.address,
            state: state.into(),
            trouble: attending.trouble,
            term: holding.map_or(0, |held| held.epoch.term),
            number: holding.map_or(0, |held| held.epoch.number),
            lapsed: holding.is_some_and(|held| held.lapsed),
            lease_left_ns: self.lending.leases.left_ns(boottime_ns()).unwrap_or(0),
            limits: holding.map_or(0, |held| held.limits.len() as u64),
            problems,
            problems_total,
        })
    }
}

impl Counted {
    /// Rates since the last time, of what moved or has stopped.
    fn demands(&mut self, now_ns: u64, bytes: HashMap<u32, (u64, u64)>) -> Vec<v1::Demand> {
        let interval_ns = now_ns.saturating_sub(self.now_ns);
        if interval_ns == 0 {
            return Vec::new();
        }
        let mut demands = Vec::new();
        let mut moving = HashMap::new();
        for (&limit, &(offered, passed)) in &bytes {
            let Some(&(offered_before, passed_before)) = self.bytes.get(&limit) else { continue };
            // Counters that started anew tell nothing yet.
            let (offered, passed) = (offered.checked_sub(offered_before), passed.checked_sub(passed_before));
            let offered_bps = bits_per_second(offered.unwrap_or(0), interval_ns);
            let passed_bps = bits_per_second(passed.unwrap_or(0), interval_ns);
            moving.insert(limit, offered_bps > 0);
            if offered_bps > 0 || self.moving.get(&limit).copied().unwrap_or(true) {
                demands.push(v1::Demand { limit, offered_bps, passed_bps });
            }
        }
        demands.sort_by_key(|demand| demand.limit);
        *self = Self { now_ns, bytes, moving };
        demands
    }
}

fn bits_per_second(bytes: u64, interval_ns: u64) -> u64 {
    let bits = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(interval_ns.max(1));
    u64::try_from(bits).unwrap_or(u64::MAX)
}
