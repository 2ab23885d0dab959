// SPDX-License-Identifier: MIT OR Apache-2.0
//! A data plane in memory, without packets: what a daemon and its tests need when there is no kernel to speak to.
//!
//! Its limiters are those of `algo/`. A [`Tap`] is the other side: it offers bytes to limits, moves the clock, and survives the data
//! plane as the kernel survives a daemon.

use crate::dataplane::{
    Applied, Dataplane, DataplaneError, Edit, LimitId, LimitReading, Readings, ShareReading, UserReading,
};
use crate::edits::{check_edits, edit_plan, is_live};
use crate::same::{Same, class_of};
use crate::samples::Samples;
use penstock_algo::limiter::Limiter;
use penstock_algo::meter::Meter;
use penstock_algo::{rate, wire};
use penstock_policy::Plan;
use penstock_policy::terms::rate_code;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// The clock starts here, far from 0, so that no state lies before the beginning of time.
const START_NS: u64 = 1 << 53;

/// The data plane. Every one that comes from the same [`Tap`] speaks to the same memory.
#[derive(Debug)]
pub struct Stub {
    plan: Option<Plan>,
    tap: Tap,
}

/// What stays when the [`Stub`] goes.
#[derive(Debug, Clone)]
pub struct Tap(Arc<Mutex<Held>>);

#[derive(Debug)]
struct Held {
    /// Of the last policy.
    generation: u64,
    in_force: Option<InForce>,
    /// Rows that may be added to a generation.
    spare_rows: usize,
    /// The port whose interface is not there.
    unplugged: Option<String>,
    manual_ns: u64,
    /// Counts on by itself from here.
    ticking: Option<Instant>,
    told: Told,
}

/// What the tap says of shares, which nobody computes here.
#[derive(Debug, Default)]
struct Told {
    /// By place.
    shares: HashMap<u32, ShareReading>,
    /// By class and key.
    users: Vec<(u32, wire::Key, UserReading)>,
    /// How often somebody tended them.
    tends: u64,
}

#[derive(Debug)]
struct InForce {
    plan: Plan,
    /// Rows that its tables have room for.
    rows_max: usize,
    classes: Vec<wire::pst_counters>,
    reasons: Vec<u64>,
    /// Limits that were touched; all others are idle.
    limits: HashMap<LimitId, State>,
    samples: Samples,
}

#[derive(Debug)]
struct State {
    profile: wire::Profile,
    limiter: Limiter,
    counters: wire::pst_counters,
}

impl Stub {
    /// Nothing is in force, and the clock stands still until the tap moves it.
    #[must_use]
    pub fn new() -> Self {
        let held = Held {
            generation: 0,
            in_force: None,
            spare_rows: usize::MAX,
            unplugged: None,
            manual_ns: START_NS,
            ticking: None,
            told: Told::default(),
        };
        Tap(Arc::new(Mutex::new(held))).open()
    }

    /// Like [`Stub::new`], with a clock that runs.
    #[must_use]
    pub fn ticking() -> Self {
        let stub = Self::new();
        stub.tap.held().ticking = Some(Instant::now());
        stub
    }

    /// The other side.
    #[must_use]
    pub fn tap(&self) -> Tap {
        self.tap.clone()
    }

    fn adopted(&self) -> Result<&Plan, DataplaneError> {
        self.plan.as_ref().ok_or(DataplaneError::Idle)
    }
}

impl Default for Stub {
    fn default() -> Self {
        Self::new()
    }
}

impl Tap {
    /// Another data plane over the same memory, as a new daemon finds it.
    #[must_use]
    pub fn open(&self) -> Stub {
        Stub { plan: None, tap: self.clone() }
    }

    /// Forgets everything, as a machine that starts anew.
    pub fn reboot(&self) {
        let mut held = self.held();
        (held.generation, held.in_force) = (0, None);
    }

    /// From the next policy on so many rows may be added to it. What finds no room takes a new generation, as full tables of the
    /// kernel do. Without this there is always room.
    pub fn set_spare_rows(&self, rows: usize) {
        self.held().spare_rows = rows;
    }

    /// Takes the interface of a port away. [`Tap::plug`] puts another one in its place, for which the policy takes a new generation.
    pub fn unplug(&self, port: &str) {
        self.held().unplugged = Some(port.to_owned());
    }

    /// See [`Tap::unplug`].
    pub fn plug(&self) {
        let mut held = self.held();
        if held.unplugged.take().is_some() {
            held.generation += 1;
        }
    }

    /// Moves the clock on.
    pub fn advance(&self, time_ns: u64) {
        self.held().manual_ns += time_ns;
    }

    /// Offers a packet to a limit: it is judged, charged and counted. Returns its colour; none when there is no such limit.
    /// Limits of RFC meters count it and let it pass.
    pub fn offer(&self, limit: LimitId, key: &wire::Key, bytes: u32) -> Option<wire::pst_color> {
        let mut held = self.held();
        let now_ns = held.now_ns();
        let in_force = held.in_force.as_mut()?;
        let (class_index, profile, rate) = in_force.limit(limit)?;
        let state = in_force.limits.entry(limit).or_insert_with(|| State::idle(&profile, rate, now_ns));
        let is_window = u32::from(profile.meter) == wire::PST_METER_WINDOW;
        let color = if is_window { state.limiter.take(now_ns, bytes).color } else { wire::PST_COLOR_GREEN };
        count(&mut state.counters, color, bytes);
        if let Some(class) = in_force.classes.get_mut(class_index as usize) {
            count(class, color, bytes);
        }
        let reason = if color == wire::PST_COLOR_RED { wire::PST_REASON_OVER_RATE } else { wire::PST_REASON_NONE };
        if let Some(packets) = in_force.reasons.get_mut(reason as usize) {
            *packets += 1;
        }
        if color == wire::PST_COLOR_RED {
            let decision = wire::Decision {
                length: bytes,
                class_index,
                slot: wire::PST_NONE,
                limit_index: if let LimitId::Class(index) = limit { index } else { wire::PST_NONE },
                verdict: byte(wire::PST_VERDICT_DROP),
                color: byte(color),
                reason: byte(reason),
                ..wire::Decision::default()
            };
            let sample = wire::pst_sample { time_ns: now_ns, key: *key, decision, ..wire::pst_sample::default() };
            in_force.samples.push(sample);
        }
        Some(color)
    }

    /// Counts a packet of a class that no limit judges.
    pub fn count(&self, class: u32, bytes: u32, color: wire::pst_color) {
        if let Some(counters) =
            self.held().in_force.as_mut().and_then(|in_force| in_force.classes.get_mut(class as usize))
        {
            count(counters, color, bytes);
        }
    }

    /// What is told of a place from now on.
    pub fn set_share(&self, place: u32, reading: ShareReading) {
        self.held().told.shares.insert(place, reading);
    }

    /// What is told from now on of the user of a class whose packets have this key.
    pub fn set_user(&self, class: u32, key: wire::Key, reading: UserReading) {
        self.held().told.users.push((class, key, reading));
    }

    /// How often [`Dataplane::tend`] was called.
    #[must_use]
    pub fn tends(&self) -> u64 {
        self.held().told.tends
    }

    /// What is held cannot be half changed: no code that holds it panics.
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn byte(enumerator: u32) -> u8 {
    u8::try_from(enumerator).unwrap_or(u8::MAX)
}

fn count(counters: &mut wire::pst_counters, color: wire::pst_color, bytes: u32) {
    counters.offered_packets += 1;
    counters.offered_bytes += u64::from(bytes);
    counters.green_packets += u64::from(color == wire::PST_COLOR_GREEN);
    counters.yellow_packets += u64::from(color == wire::PST_COLOR_YELLOW);
    if color == wire::PST_COLOR_RED {
        counters.dropped_packets += 1;
        counters.dropped_bytes += u64::from(bytes);
    }
}

impl State {
    fn idle(profile: &wire::Profile, rate: u32, now_ns: u64) -> Self {
        let limiter = Limiter::new(profile, rate, now_ns);
        Self { profile: *profile, limiter, counters: wire::pst_counters::default() }
    }
}

impl State {
    /// A packet of no bytes changes nothing and sees the queue as it is.
    fn queue_ns(&self, now_ns: u64) -> u64 {
        self.limiter.clone().take(now_ns, 0).depth_ticks / rate::TICKS_PER_NSEC
    }
}

impl Held {
    fn now_ns(&self) -> u64 {
        let since = self.ticking.map_or(0, |start| u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        self.manual_ns.saturating_add(since)
    }

    /// Puts a plan in the place of what is in force. Returns the limits that kept their state.
    fn replace(&mut self, plan: Plan) -> u64 {
        let now_ns = self.now_ns();
        let mut next = InForce {
            classes: vec![wire::pst_counters::default(); plan.classes.len()],
            reasons: vec![0; wire::PST_REASON_COUNT as usize],
            limits: HashMap::new(),
            samples: Samples::default(),
            rows_max: plan.entries.len().saturating_add(self.spare_rows),
            plan,
        };
        let kept = self.in_force.take().map_or(0, |before| next.take_over(before, now_ns));
        self.in_force = Some(next);
        kept
    }
}

impl InForce {
    /// What stays goes on: with a new rate its virtual queue keeps its bytes, with new terms it starts anew.
    fn take_over(&mut self, mut before: InForce, now_ns: u64) -> u64 {
        let same = Same::new(&before.plan, &self.plan);
        for (counters, was) in self.classes.iter_mut().zip(&same.classes) {
            *counters = was.and_then(|was| before.classes.get(was as usize)).copied().unwrap_or_default();
        }
        self.reasons = before.reasons;
        let of_classes = (0..).zip(&same.limits).map(|(index, was)| (LimitId::Class(index), was.map(LimitId::Class)));
        let of_rows = (0..).zip(&same.rows).map(|(index, was)| (LimitId::Row(index), was.map(LimitId::Row)));
        for (limit, was) in of_classes.chain(of_rows) {
            if let Some(mut state) = was.and_then(|was| before.limits.remove(&was))
                && let Some((_, profile, rate)) = self.limit(limit)
            {
                let same_terms = wire::Profile { class_index: profile.class_index, ..state.profile } == profile;
                match same_terms {
                    true => state.limiter.change_rate(now_ns, rate),
                    false => state.limiter = Limiter::new(&profile, rate, now_ns),
                }
                state.profile = profile;
                self.limits.insert(limit, state);
            }
        }
        same.limits_kept()
    }

    /// Class, profile and rate code of a limit.
    fn limit(&self, limit: LimitId) -> Option<(u32, wire::Profile, u32)> {
        let plan = &self.plan;
        match limit {
            LimitId::Row(row) => {
                let entry = plan.entries.get(row as usize).filter(|entry| is_live(entry))?;
                Some((class_of(plan, entry)?, *plan.profiles.get(usize::from(entry.profile))?, entry.rate))
            }
            LimitId::Class(index) => {
                let limit = plan.limits.get(index as usize)?;
                let profile = *plan.profiles.get(usize::from(limit.profile))?;
                Some((profile.class_index, profile, limit.rate))
            }
        }
    }
}

/// Whether what was left may be what a plan says: all but its limits is the same.
fn is_of(left: &Plan, plan: &Plan) -> bool {
    let paths = |plan: &Plan| plan.classes.iter().map(|class| class.path.clone()).collect::<Vec<_>>();
    let keys = |plan: &Plan| {
        let mask = |tuple: u32| plan.tuples.get(tuple as usize).map(|tuple| tuple.mask);
        plan.rule_keys.iter().map(|key| (key.rule, key.value, mask(key.tuple))).collect::<Vec<_>>()
    };
    paths(left) == paths(plan) && keys(left) == keys(plan)
}

impl Dataplane for Stub {
    fn apply(&mut self, plan: Plan) -> Result<Applied, DataplaneError> {
        let mut held = self.tap.held();
        if self.plan.is_none() {
            // What was not adopted has states that nobody can read.
            held.in_force = None;
        }
        let limits_kept = held.replace(plan.clone());
        held.generation += 1;
        self.plan = Some(plan);
        Ok(Applied { generation: held.generation, limits_kept, warnings: Vec::new() })
    }

    fn adopt(&mut self, plan: Plan) -> Result<Applied, DataplaneError> {
        let mut held = self.tap.held();
        let left = held.in_force.as_ref().ok_or(DataplaneError::Idle)?;
        if !is_of(&left.plan, &plan) {
            return Err(DataplaneError::OtherPolicy);
        }
        let limits_kept = held.replace(plan.clone());
        self.plan = Some(plan);
        Ok(Applied { generation: held.generation, limits_kept, warnings: Vec::new() })
    }

    fn repair(&mut self) -> Result<Vec<String>, DataplaneError> {
        self.adopted()?;
        Ok(self.tap.held().unplugged.iter().map(|port| format!("port {port}: there is no interface")).collect())
    }

    fn generation(&self) -> Option<u64> {
        let held = self.tap.held();
        held.in_force.as_ref().map(|_| held.generation)
    }

    fn edit(&mut self, edits: &[Edit]) -> Result<(), DataplaneError> {
        let plan = self.plan.as_mut().ok_or(DataplaneError::Idle)?;
        check_edits(plan, edits)?;
        edit_plan(plan, edits);
        let mut held = self.tap.held();
        let now_ns = held.now_ns();
        let Some(in_force) = held.in_force.as_mut() else { return Err(DataplaneError::Idle) };
        if plan.entries.len() > in_force.rows_max {
            held.replace(plan.clone());
            held.generation += 1;
            return Ok(());
        }
        edit_plan(&mut in_force.plan, edits);
        for edit in edits {
            match edit {
                Edit::SetRate { limit, rate_bps } => {
                    if let Some(state) = in_force.limits.get_mut(limit) {
                        state.limiter.change_rate(now_ns, rate_code(*rate_bps));
                    }
                }
                Edit::Remove { row } => drop(in_force.limits.remove(&LimitId::Row(*row))),
                Edit::Add { .. } => {}
            }
        }
        Ok(())
    }

    fn down(&mut self) -> Result<(), DataplaneError> {
        self.tap.held().in_force = None;
        self.plan = None;
        Ok(())
    }

    fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    fn readings(&self) -> Result<Readings, DataplaneError> {
        self.adopted()?;
        let held = self.tap.held();
        let in_force = held.in_force.as_ref().ok_or(DataplaneError::Idle)?;
        let (classes, reasons) = (in_force.classes.clone(), in_force.reasons.clone());
        let told = |(index, place): (u32, &wire::TreePlace)| {
            let has_place = place.link != wire::PST_NONE;
            has_place.then(|| held.told.shares.get(&index).copied().unwrap_or_default())
        };
        let shares = (0..).zip(&in_force.plan.places).map(told).collect();
        Ok(Readings { now_ns: held.now_ns(), classes, reasons, shares })
    }

    fn limit(&self, limit: LimitId) -> Result<LimitReading, DataplaneError> {
        let plan = self.adopted()?;
        let held = self.tap.held();
        let in_force = held.in_force.as_ref().ok_or(DataplaneError::Idle)?;
        let (_, profile, code) = in_force.limit(limit).ok_or(DataplaneError::UnknownLimit(limit))?;
        let now_ns = held.now_ns();
        let state = in_force.limits.get(&limit);
        let window_ticks = match Meter::new(&profile, code, now_ns) {
            Some(meter) => meter.depths_ticks().0,
            None => Limiter::new(&profile, code, now_ns).depths_ticks().1,
        };
        let rate_bps = match limit {
            LimitId::Row(row) => plan.entries.get(row as usize).map_or(0, |entry| entry.rate_bps),
            LimitId::Class(index) => {
                let of_limit = plan.classes.iter().find(|class| class.wire.limit_index == index);
                of_limit.and_then(|class| class.limit_bps).unwrap_or(0)
            }
        };
        Ok(LimitReading {
            rate_bps,
            queue_ns: state.map_or(0, |state| state.queue_ns(now_ns)),
            window_ns: window_ticks / rate::TICKS_PER_NSEC,
            counters: Some(state.map_or_else(wire::pst_counters::default, |state| state.counters)),
        })
    }

    fn tend(&mut self) -> u64 {
        let nodes = self.plan.as_ref().map_or(0, |plan| plan.places.len() as u64 + u64::from(plan.user_count));
        self.tap.held().told.tends += 1;
        nodes
    }

    fn user(&mut self, class: u32, key: &wire::Key) -> Result<Option<UserReading>, DataplaneError> {
        self.adopted()?;
        let held = self.tap.held();
        let told = held.told.users.iter().rev().find(|(of, its, _)| *of == class && its.words == key.words);
        Ok(told.map(|(_, _, reading)| *reading))
    }

    fn samples(&mut self) -> Result<Vec<wire::pst_sample>, DataplaneError> {
        self.adopted()?;
        let mut held = self.tap.held();
        Ok(held.in_force.as_mut().map(|in_force| in_force.samples.take()).unwrap_or_default())
    }
}
