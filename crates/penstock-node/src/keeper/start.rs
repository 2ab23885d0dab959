// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a daemon does first: finish what the one before it began, and take over what is in force.

use super::lend::Lending;
use super::{Held, Keeper, Owed, unix_ns};
use crate::changes::Changes;
use crate::compiled::{Compiled, compile};
use crate::error::NodeError;
use crate::readings::facts;
use crate::recent::Recent;
use crate::store::{Packed, Pending, Prepared, Record, Store};
use penstock_dataplane::{Applied, Dataplane, DataplaneError, LimitId, is_live};
use penstock_policy::{Errors, Plan};
use tracing::{info, warn};

impl Keeper {
    /// Takes up where the daemon before this one stopped.
    ///
    /// # Errors
    /// The store cannot be read, or a policy that was on its way out cannot be taken out. That a policy of the store
    /// cannot be put into force is no error: [`Held::stalled`] says why.
    pub fn start(mut store: Store, dataplane: Box<dyn Dataplane>) -> Result<Self, NodeError> {
        let lending = Lending::resume(store.lent()?, store.machine()?);
        let mut keeper = Self {
            store,
            dataplane,
            held: None,
            changes: Changes::new(),
            recent: Recent::default(),
            owed: Vec::new(),
            foreign: None,
            troubles: Vec::new(),
            lending,
        };
        keeper.finish_pending()?;
        keeper.changes = keeper.store.changes()?;
        match keeper.store.current()? {
            Some(record) => {
                let source = keeper.store.source(&record)?;
                keeper.resume(record, compile(&source, &keeper.changes))?;
            }
            None => keeper.foreign = keeper.dataplane.generation(),
        }
        if let Some(generation) = keeper.foreign {
            warn!(generation, "a policy is in force that this store does not know");
        }
        if keeper.dataplane.plan().is_some() {
            keeper.repair();
        }
        Ok(keeper)
    }

    /// Finishes what was begun, or forgets it.
    fn finish_pending(&mut self) -> Result<(), NodeError> {
        let Some(pending) = self.store.pending()? else { return Ok(()) };
        let generation = self.dataplane.generation();
        match pending {
            Pending::Down => {
                info!("the daemon before this one was taking the policy out of force: going on");
                self.dataplane.down()?;
                self.store.clear()?;
            }
            Pending::Policy(Prepared { generation_before, .. }) => match generation {
                Some(generation) if generation_before != Some(generation) => {
                    info!(generation, "the policy of an unfinished change is in force: kept");
                    self.store.commit(generation, unix_ns())?;
                }
                _ => {
                    info!("an unfinished change did not come into force: forgotten");
                    self.store.abandon()?;
                }
            },
        }
        Ok(())
    }

    /// Adopts the policy of the store, or puts it into force.
    fn resume(&mut self, record: Record, compiled: Result<Compiled, Errors>) -> Result<(), NodeError> {
        let mut held = Held::new(record);
        match compiled {
            Err(errors) => held.stalled = Some(format!("the policy of the store is not in force: {errors}")),
            Ok(compiled) => match self.take_up(&mut held, compiled) {
                Ok(()) => {}
                Err(NodeError::Dataplane(error)) => {
                    held.stalled = Some(format!("the policy of the store is not in force: {error}"));
                }
                Err(error) => return Err(error),
            },
        }
        if let Some(why) = &held.stalled {
            warn!("{why}");
        }
        self.held = Some(held);
        Ok(())
    }

    fn take_up(&mut self, held: &mut Held, compiled: Compiled) -> Result<(), NodeError> {
        let (reasons, reasons_total) = compiled.reasons();
        let Compiled { policy, mut plan, headers, .. } = compiled;
        let places = self.lending.lay_over(&mut plan);
        let (of_classes, mut warnings) = (facts(&plan), plan.warnings.clone());
        let since_unix_ns = held.record.since_unix_ns;
        let (applied, since_unix_ns) = match self.adopt_left(&plan, &mut warnings) {
            Some(adopted) => (adopted, since_unix_ns),
            None => (self.put(plan)?, unix_ns()),
        };
        self.lending.put(places);
        info!(policy = policy.name, generation = applied.generation, kept = applied.limits_kept, "in force");
        // A machine that starts anew counts generations from 1 again: the number may be the same.
        if (applied.generation, since_unix_ns) != (held.record.generation, held.record.since_unix_ns) {
            (held.record.generation, held.record.since_unix_ns) = (applied.generation, since_unix_ns);
            self.owe(Owed::Number(applied.generation, since_unix_ns));
        }
        warnings.extend(applied.warnings);
        let unlisted = reasons_total - reasons.len() as u64;
        warnings.extend(reasons);
        if unlisted > 0 {
            warnings.push(format!("{unlisted} more limits that were changed at run time are not as they were changed"));
        }
        let record = std::mem::take(&mut held.record);
        *held = Held { record, policy: Some(policy), headers, facts: of_classes, warnings, stalled: None };
        Ok(())
    }

    /// Takes over what a process before this one left, if that is this plan: the data plane knows. Its generation may be another
    /// than the store's when rows found no room and that process did not live to write it down.
    fn adopt_left(&mut self, plan: &Plan, warnings: &mut Vec<String>) -> Option<Applied> {
        let generation = self.dataplane.generation()?;
        match self.dataplane.adopt(plan.clone()) {
            Ok(applied) => return Some(applied),
            Err(error) if self.dataplane.plan().is_some() => {
                let generation = self.dataplane.generation().unwrap_or(generation);
                let warning = format!("the data plane reported an error, but took the policy: {error}");
                return Some(Applied { generation, limits_kept: 0, warnings: vec![warning] });
            }
            Err(DataplaneError::OtherPolicy) => warnings.push(format!(
                "generation {generation} was in force, which is not of the store's policy; it was replaced"
            )),
            Err(error) => {
                warnings.push(format!("what was in force could not be taken over, and was replaced: {error}"));
            }
        }
        None
    }

    /// What is to be compiled to try again to put a policy into force that is not.
    pub fn stalled(&mut self) -> Option<(Packed, Changes)> {
        let record = self.held.as_ref().filter(|held| held.stalled.is_some())?.record.clone();
        let read = self.settle().and_then(|()| Ok(self.store.packed(&record)?));
        read.map(|source| (source, self.changes.clone())).inspect_err(|error| warn!("{error}")).ok()
    }

    /// Tries again to put a policy into force that is not: what [`Keeper::stalled`] came to.
    pub fn retry(&mut self, compiled: Result<Compiled, Errors>) {
        let Some(held) = self.held.take_if(|held| held.stalled.is_some()) else { return };
        let record = held.record.clone();
        if let Err(error) = self.resume(record, compiled) {
            warn!("{error}");
            self.held = Some(held);
        }
    }

    /// Says so when what was adopted counts single limits, or does not, against what the operator asked for.
    pub fn check_counting(&mut self, asked: Option<bool>) {
        let (Some(asked), Some(plan), Some(held)) = (asked, self.dataplane.plan(), &mut self.held) else { return };
        let row = || (0..).zip(&plan.entries).find(|(_, entry)| is_live(entry)).map(|(row, _)| LimitId::Row(row));
        let limit = if plan.limits.is_empty() { row() } else { Some(LimitId::Class(0)) };
        let Some(Ok(reading)) = limit.map(|limit| self.dataplane.limit(limit)) else { return };
        if reading.counters.is_some() != asked {
            let does = if asked { "does not count" } else { "counts" };
            held.warnings.push(format!(
                "what was in force was taken over, and {does} single limits: `penstock reload POLICY` makes it as `--count-limits` says"
            ));
        }
    }
}
