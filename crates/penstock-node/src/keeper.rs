// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps the store and the data plane in step: what is in force is what the store says, or what it says is about to be.
//!
//! Order    store: prepared; data plane: applied; store: committed. Edits of limits: store, then data plane.
//! Crash    at any point: [`Keeper::start`] asks the data plane which generation it has, and finishes or forgets what was prepared.
//! Failure  of the store before the data plane was asked: nothing changed. Of the data plane: asked again what it has, because a write
//!          may fail and have happened. Of the store after that: the change is in force, and is committed later.

mod edit;
mod lend;
mod start;
mod tend;

pub use lend::{Attending, PROBLEMS_MAX};

use crate::changes::{Change, Changes, LimitName};
use crate::compiled::{Compiled, Headers};
use crate::difference::difference;
use crate::error::NodeError;
use crate::lending::Places;
use crate::readings::{ClassFacts, facts};
use crate::recent::Recent;
use crate::store::{Packed, Pending, Record, Source, Store};
use lend::Lending;
use penstock_api::v1;
use penstock_dataplane::{Applied, Dataplane, DataplaneError};
use penstock_policy::{Plan, Policy};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::{info, warn};

/// Rates are over at least so long, if there is a reading as old.
const RATE_OVER_NS: u64 = 900_000_000;

/// The state of a node.
pub struct Keeper {
    store: Store,
    dataplane: Box<dyn Dataplane>,
    held: Option<Held>,
    changes: Changes,
    /// What was counted and sampled lately.
    pub recent: Recent,
    /// What the store could not be told yet, in order.
    owed: Vec<Owed>,
    /// A generation that this store knows nothing of.
    foreign: Option<u64>,
    /// What is wrong with interfaces at the moment.
    troubles: Vec<String>,
    /// What a controller has lent.
    lending: Lending,
}

/// What the store is to be told before it is told anything else.
#[derive(Debug)]
enum Owed {
    /// The prepared policy is in force: its generation, and since when.
    Commit(u64, u64),
    /// The prepared policy did not come into force.
    Abandon,
    /// The policy that the store has is in force under this generation, and since when.
    Number(u64, u64),
    /// These changes are the ones that hold.
    Changes(Vec<(LimitName, Change)>),
    /// No policy is in force.
    Clear,
}

/// The policy of the store.
#[derive(Debug)]
pub struct Held {
    /// In the store.
    pub record: Record,
    /// As it was written; none when it does not compile any more.
    pub policy: Option<Policy>,
    /// First lines of its limits files.
    pub headers: Headers,
    /// Of its classes.
    pub facts: Vec<ClassFacts>,
    /// What the operator should know.
    pub warnings: Vec<String>,
    /// Why it is not in force, if it is not.
    pub stalled: Option<String>,
}

impl Held {
    fn new(record: Record) -> Self {
        Self { record, policy: None, headers: Headers::new(), facts: Vec::new(), warnings: Vec::new(), stalled: None }
    }
}

/// Now, in ns of Unix time.
#[must_use]
pub fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Keeper {
    /// Applies a plan. A write that failed and happened all the same is no failure.
    fn put(&mut self, plan: Plan) -> Result<Applied, DataplaneError> {
        let before = self.dataplane.generation();
        match self.dataplane.apply(plan) {
            Ok(applied) => Ok(applied),
            Err(error) => match self.dataplane.generation() {
                Some(generation) if before != Some(generation) && self.dataplane.plan().is_some() => {
                    let warning = format!("the data plane reported an error, but took the policy: {error}");
                    Ok(Applied { generation, limits_kept: 0, warnings: vec![warning] })
                }
                _ => Err(error),
            },
        }
    }

    /// What the store could not be told before.
    fn settle(&mut self) -> Result<(), NodeError> {
        while let Some(owed) = self.owed.first() {
            match owed {
                Owed::Commit(generation, since_unix_ns) => drop(self.store.commit(*generation, *since_unix_ns)?),
                Owed::Abandon => self.store.abandon()?,
                Owed::Number(generation, since_unix_ns) => self.store.number(*generation, *since_unix_ns)?,
                Owed::Changes(changes) => self.store.change(changes)?,
                Owed::Clear => self.store.clear()?,
            }
            self.owed.remove(0);
        }
        Ok(())
    }

    /// Tells the store, now or later.
    fn owe(&mut self, owed: Owed) {
        self.owed.push(owed);
        if let Err(error) = self.settle() {
            warn!("{error}; trying again");
        }
    }

    /// What is to be done every second or so: readings, samples, and what could not be done before.
    pub fn tick(&mut self) {
        if let Err(error) = self.settle() {
            warn!("{error}");
        }
        if self.dataplane.plan().is_none() {
            return;
        }
        self.repair();
        match self.dataplane.samples() {
            Ok(samples) => self.recent.sampled(samples),
            Err(error) => warn!("{error}"),
        }
        if let Ok(readings) = self.readings(None) {
            self.recent.counted(readings);
        }
    }

    /// Interfaces come and go under a policy in force.
    fn repair(&mut self) {
        let troubles = self.dataplane.repair().unwrap_or_else(|error| vec![error.to_string()]);
        for trouble in troubles.iter().filter(|trouble| !self.troubles.contains(trouble)) {
            warn!("{trouble}");
        }
        for trouble in self.troubles.iter().filter(|trouble| !troubles.contains(trouble)) {
            info!("no longer: {trouble}");
        }
        self.troubles = troubles;
        self.renumber();
    }

    /// The policy of the store, in force or not.
    #[must_use]
    pub fn held(&self) -> Option<&Held> {
        self.held.as_ref()
    }

    /// A generation that is in force and not of this store.
    #[must_use]
    pub fn foreign(&self) -> Option<u64> {
        self.foreign
    }

    /// What the operator should know.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(generation) = self.foreign {
            let text = format!(
                "generation {generation} is in force, which this store does not know; `penstock down` takes it out"
            );
            warnings.push(text);
        }
        if !self.owed.is_empty() {
            warnings.push("the store could not be written after the last change; trying again".to_owned());
        }
        if let Some(held) = &self.held {
            warnings.extend(held.stalled.clone());
            warnings.extend(self.troubles.iter().cloned());
            warnings.extend(held.warnings.iter().cloned());
        }
        warnings
    }

    /// The plan in force, and what follows from it.
    ///
    /// # Errors
    /// There is none.
    pub fn in_force(&self) -> Result<(&Plan, &Held), NodeError> {
        match (self.dataplane.plan(), &self.held) {
            (_, Some(Held { stalled: Some(why), .. })) => Err(NodeError::Stalled(why.clone())),
            (Some(plan), Some(held)) => Ok((plan, held)),
            _ => Err(NodeError::Idle),
        }
    }

    /// All that was counted, with rates since `before`.
    ///
    /// # Errors
    /// No policy is in force, or the data plane does not tell.
    pub fn readings(&self, before: Option<&v1::Readings>) -> Result<v1::Readings, NodeError> {
        let (plan, held) = self.in_force()?;
        let readings = self.dataplane.readings()?;
        Ok(crate::readings::message(plan, &held.facts, held.record.generation, &readings, before))
    }

    /// All that was counted, with rates over the last second or so.
    ///
    /// # Errors
    /// See [`Keeper::readings`].
    pub fn readings_lately(&self) -> Result<v1::Readings, NodeError> {
        let now_ns = self.dataplane.readings()?.now_ns;
        self.readings(self.recent.before(now_ns, RATE_OVER_NS))
    }

    /// The data plane, to be asked.
    #[must_use]
    pub fn dataplane(&self) -> &dyn Dataplane {
        self.dataplane.as_ref()
    }

    /// Another one whenever a limit comes or goes: the generation, rows that there ever were in it, rows that there are.
    #[must_use]
    pub fn edition(&self) -> Option<(u64, usize, u64)> {
        let (plan, held) = self.in_force().ok()?;
        Some((held.record.generation, plan.entries.len(), held.facts.iter().map(|facts| facts.rows).sum()))
    }

    /// Limits that were changed at run time.
    #[must_use]
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The source of the policy in force.
    ///
    /// # Errors
    /// There is none, or the store cannot be read.
    pub fn source(&mut self) -> Result<Source, NodeError> {
        self.settle()?;
        let record = self.held.as_ref().ok_or(NodeError::Idle)?.record.clone();
        Ok(self.store.source(&record)?)
    }

    /// A limits file of the policy in force.
    ///
    /// # Errors
    /// There is none, or the store cannot be read.
    pub fn source_file(&mut self, path: &str) -> Result<Vec<u8>, NodeError> {
        self.settle()?;
        let record = self.held.as_ref().ok_or(NodeError::Idle)?.record.clone();
        Ok(self.store.source_file(&record, path)?)
    }

    /// Whether a policy may come (`up`), or one may take the place of another (`reload`).
    ///
    /// # Errors
    /// There is one; there is none.
    pub fn may(&self, is_reload: bool) -> Result<(), NodeError> {
        match (&self.held, is_reload) {
            (None, true) => Err(NodeError::Idle),
            (Some(Held { stalled: Some(why), .. }), false) => {
                let text = format!("{why}; `penstock reload POLICY` replaces it, `penstock down` forgets it");
                Err(NodeError::Stalled(text))
            }
            (Some(held), false) => {
                let name = held.policy.as_ref().map_or(&held.record.name, |policy| &policy.name);
                Err(NodeError::InForce(name.clone()))
            }
            _ if self.foreign.is_some() => Err(NodeError::Stalled(self.warnings().remove(0))),
            _ => Ok(()),
        }
    }

    /// What a compiled policy would change.
    #[must_use]
    pub fn preview(&self, compiled: &Compiled) -> v1::Change {
        preview(self.plan_unlent().as_ref(), self.changes.len(), compiled)
    }

    /// Puts a compiled policy into force, in the place of the one there is. `source` is none when it is the one in force with other
    /// limits: these are `changes`. `change` is what [`preview`] says.
    ///
    /// # Errors
    /// The store or the data plane refuses. What was in force stays in force.
    pub fn replace(
        &mut self,
        source: Option<&Packed>,
        compiled: Compiled,
        mut change: v1::Change,
        changes: &[(LimitName, Change)],
    ) -> Result<v1::Change, NodeError> {
        self.settle()?;
        let Compiled { policy, mut plan, dropped, headers } = compiled;
        let places = self.lending.lay_over(&mut plan);
        let mut of_limits = changes.to_vec();
        of_limits.extend(dropped.into_iter().map(|one| (one.name, one.rest)));
        let before = self.dataplane.generation();
        let of_classes = facts(&plan);
        self.store.prepare(source, before, of_limits.clone())?;
        let applied = match self.put(plan) {
            Ok(applied) => applied,
            Err(error) => {
                // A new daemon would take it for the one in force once the data plane has another generation.
                self.owe(Owed::Abandon);
                return Err(error.into());
            }
        };
        self.lending.put(places);
        change.generation = applied.generation;
        change.limits_kept = applied.limits_kept;
        change.warnings.extend(applied.warnings);
        let since_unix_ns = unix_ns();
        let record = match self.store.commit(applied.generation, since_unix_ns) {
            Ok(record) => record,
            Err(error) => {
                self.owed.push(Owed::Commit(applied.generation, since_unix_ns));
                change.warnings.push(format!("in force, but the store could not be completed yet: {error}"));
                None
            }
        };
        let fallback = Record { generation: applied.generation, since_unix_ns, ..self.record_of(source) };
        self.note(&of_limits);
        // Samples of before speak of other classes.
        let _ = self.dataplane.samples();
        self.recent.forget();
        self.held = Some(Held {
            record: record.unwrap_or(fallback),
            policy: Some(policy),
            headers,
            facts: of_classes,
            warnings: change.warnings.clone(),
            stalled: None,
        });
        info!(policy = change.policy, generation = change.generation, kept = change.limits_kept, "in force");
        Ok(change)
    }

    /// The record of a source that the store has as prepared.
    fn record_of(&mut self, source: Option<&Packed>) -> Record {
        let current = self.held.as_ref().map(|held| held.record.clone());
        match (self.store.pending(), source) {
            (Ok(Some(Pending::Policy(prepared))), _) => prepared.record,
            (_, None) => current.unwrap_or_default(),
            (_, Some(source)) => Record {
                revision: current.map_or(1, |record| record.revision + 1),
                name: source.name.clone(),
                files: source.files.clone(),
                ..Record::default()
            },
        }
    }

    fn note(&mut self, changes: &[(LimitName, Change)]) {
        for (name, change) in changes {
            match change.is_empty() {
                true => drop(self.changes.remove(name)),
                false => drop(self.changes.insert(name.clone(), change.clone())),
            }
        }
    }

    /// Takes the policy out of force and forgets it, with its changes. Returns its name.
    ///
    /// # Errors
    /// The store or the data plane refuses. Calling again goes on. [`NodeError::Remembered`]: it is out of force all the same.
    pub fn down(&mut self) -> Result<Option<String>, NodeError> {
        self.settle()?;
        if self.held.is_none() && self.dataplane.generation().is_none() {
            return Ok(None);
        }
        self.store.prepare_down()?;
        if let Err(error) = self.dataplane.down()
            && self.dataplane.generation().is_some()
        {
            return Err(error.into());
        }
        let name = self.held.take().map(|held| held.policy.map_or(held.record.name, |policy| policy.name));
        self.changes.clear();
        self.troubles.clear();
        self.recent.forget();
        self.foreign = None;
        self.lending.put(Places::default());
        info!(policy = name.as_deref().unwrap_or("unknown"), "taken out of force");
        // Nothing is put into force before the store has forgotten: it would bring back changes of this policy.
        self.owed.push(Owed::Clear);
        self.settle().map_err(|error| NodeError::Remembered(error.to_string()))?;
        Ok(Some(name.unwrap_or_default()))
    }
}

/// What a compiled policy would change of a plan, which may be a copy: it takes long for millions of rows. So many limits were
/// changed at run time.
#[must_use]
pub fn preview(before: Option<&Plan>, changes: usize, compiled: &Compiled) -> v1::Change {
    let nothing = Plan::default();
    let (classes, limits) = difference(before.unwrap_or(&nothing), &compiled.plan);
    let (reasons, reasons_total) = compiled.reasons();
    v1::Change {
        policy: compiled.policy.name.clone(),
        generation: 0,
        classes: Some(classes),
        limits: Some(limits),
        limits_kept: 0,
        runtime_changes_kept: changes.saturating_sub(compiled.dropped.len()) as u64,
        runtime_changes_dropped: reasons,
        runtime_changes_dropped_total: reasons_total,
        warnings: compiled.plan.warnings.clone(),
    }
}
