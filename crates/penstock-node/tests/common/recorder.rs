// SPDX-License-Identifier: MIT OR Apache-2.0
//! A data plane that remembers every set of rates which was ever in force.

use super::rates;
use penstock_algo::wire;
use penstock_dataplane::{
    Applied, Dataplane, DataplaneError, Edit, LimitId, LimitReading, Readings, Stub, Tap, edit_plan,
};
use penstock_policy::Plan;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Rates, after each step of each edit.
pub type Moments = Arc<Mutex<Vec<BTreeMap<String, u64>>>>;

pub struct Recorder {
    inner: Stub,
    pub moments: Moments,
}

impl Recorder {
    pub fn new(tap: &Tap) -> Self {
        Self { inner: tap.open(), moments: Moments::default() }
    }

    fn note(&self, plan: &Plan) {
        self.moments.lock().unwrap().push(rates(plan));
    }
}

impl Dataplane for Recorder {
    fn apply(&mut self, plan: Plan) -> Result<Applied, DataplaneError> {
        self.note(&plan);
        self.inner.apply(plan)
    }

    fn adopt(&mut self, plan: Plan) -> Result<Applied, DataplaneError> {
        self.note(&plan);
        self.inner.adopt(plan)
    }

    fn generation(&self) -> Option<u64> {
        self.inner.generation()
    }

    fn edit(&mut self, edits: &[Edit]) -> Result<(), DataplaneError> {
        let mut plan = self.inner.plan().cloned().unwrap_or_default();
        for edit in edits {
            edit_plan(&mut plan, std::slice::from_ref(edit));
            self.note(&plan);
        }
        self.inner.edit(edits)
    }

    fn down(&mut self) -> Result<(), DataplaneError> {
        self.inner.down()
    }

    fn plan(&self) -> Option<&Plan> {
        self.inner.plan()
    }

    fn readings(&self) -> Result<Readings, DataplaneError> {
        self.inner.readings()
    }

    fn limit(&self, limit: LimitId) -> Result<LimitReading, DataplaneError> {
        self.inner.limit(limit)
    }

    fn samples(&mut self) -> Result<Vec<wire::pst_sample>, DataplaneError> {
        self.inner.samples()
    }
}
