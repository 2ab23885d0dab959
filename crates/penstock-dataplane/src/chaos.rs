// SPDX-License-Identifier: MIT OR Apache-2.0
//! A data plane that fails on purpose: what a control loop must survive.

use crate::dataplane::{
    Applied, Dataplane, DataplaneError, Edit, LimitId, LimitReading, Readings, ShapingReading, UserReading,
};
use penstock_algo::plane::Rng;
use penstock_algo::wire;
use penstock_policy::Plan;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What becomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is made.
    Made,
    /// It fails, and nothing happened.
    Lost,
    /// It fails, and happened all the same: what the caller is told is not what is.
    MadeButFailed,
}

/// Wraps a data plane. Writes (apply, adopt, repair, edit, down) fail with a given probability; reads do not.
#[derive(Debug)]
pub struct Chaos<D> {
    inner: D,
    seed: u64,
    rng: Rng,
    dial: Dial,
    writes: u64,
}

/// How likely a write is to fail, 1/2^32: it can be turned while another one has the data plane.
#[derive(Debug, Clone)]
pub struct Dial(Arc<AtomicU32>);

impl Dial {
    /// Fails from now on with another probability; `u32::MAX` fails always.
    pub fn set_failing(&self, failing_q32: u32) {
        self.0.store(failing_q32, Ordering::Relaxed);
    }
}

impl<D: Dataplane> Chaos<D> {
    /// `failing_q32` is the probability of a failure in 1/2^32; `u32::MAX` fails always. The same seed fails the same writes.
    #[must_use]
    pub fn new(inner: D, seed: u64, failing_q32: u32) -> Self {
        Self { inner, seed, rng: Rng::new(seed), dial: Dial(Arc::new(AtomicU32::new(failing_q32))), writes: 0 }
    }

    /// The data plane inside.
    pub fn inner(&mut self) -> &mut D {
        &mut self.inner
    }

    /// Sets how likely a write is to fail.
    #[must_use]
    pub fn dial(&self) -> Dial {
        self.dial.clone()
    }

    fn fate(&mut self) -> Fate {
        let (chance, kind) = (self.rng.next_u32(), self.rng.next_u32());
        let failing_q32 = self.dial.0.load(Ordering::Relaxed);
        let fails = chance < failing_q32 || failing_q32 == u32::MAX;
        match (fails, kind & 1) {
            (false, _) => Fate::Made,
            (true, 0) => Fate::Lost,
            (true, _) => Fate::MadeButFailed,
        }
    }

    fn write<T>(&mut self, make: impl FnOnce(&mut D) -> Result<T, DataplaneError>) -> Result<T, DataplaneError> {
        let fate = self.fate();
        let failed = DataplaneError::Chaos { seed: self.seed, write: self.writes };
        self.writes += 1;
        match fate {
            Fate::Made => make(&mut self.inner),
            Fate::Lost => Err(failed),
            Fate::MadeButFailed => {
                make(&mut self.inner)?;
                Err(failed)
            }
        }
    }
}

impl<D: Dataplane> Dataplane for Chaos<D> {
    fn apply(&mut self, plan: Plan) -> Result<Applied, DataplaneError> {
        self.write(|inner| inner.apply(plan))
    }

    fn adopt(&mut self, plan: Plan) -> Result<Applied, DataplaneError> {
        self.write(|inner| inner.adopt(plan))
    }

    fn repair(&mut self) -> Result<Vec<String>, DataplaneError> {
        self.write(Dataplane::repair)
    }

    fn generation(&self) -> Option<u64> {
        self.inner.generation()
    }

    fn edit(&mut self, edits: &[Edit]) -> Result<(), DataplaneError> {
        self.write(|inner| inner.edit(edits))
    }

    fn down(&mut self) -> Result<(), DataplaneError> {
        self.write(Dataplane::down)
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

    fn shaping(&self) -> Option<ShapingReading> {
        self.inner.shaping()
    }

    fn tend(&mut self) -> u64 {
        self.inner.tend()
    }

    fn user(&mut self, class: u32, key: &wire::Key) -> Result<Option<UserReading>, DataplaneError> {
        self.inner.user(class, key)
    }

    fn samples(&mut self) -> Result<Vec<wire::pst_sample>, DataplaneError> {
        self.inner.samples()
    }
}
