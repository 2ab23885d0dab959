// SPDX-License-Identifier: MIT OR Apache-2.0
//! Penstock's kernel data plane on the devices of a namespace: the one that the daemon drives.

use super::{Counters, Enforcement, Watched};
use crate::LabError;
use crate::netns::{Namespace, pins_of};
use penstock_dataplane::Dataplane;
use penstock_dataplane::xdp::{LoadOptions, Xdp};
use penstock_policy::plan::Plan;
use penstock_policy::{Policy, compile};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A policy in force. Dropping it takes it out.
#[derive(Debug)]
pub struct Live {
    xdp: Arc<Mutex<Xdp>>,
    /// The namespace's name; the namespace itself is somebody else's.
    namespace: String,
}

impl Live {
    /// Puts a policy into force on the devices that its ports name.
    ///
    /// # Errors
    /// The policy is wrong, names a device that is not there, or the kernel refuses.
    pub fn start(policy: &str, namespace: &Namespace) -> Result<Self, LabError> {
        let plan = plan_of(policy)?;
        let name = namespace.name();
        namespace.enter(|| {
            let xdp = Arc::new(Mutex::new(Xdp::open(&pins_of(name), LoadOptions::default())?));
            let live = Self { xdp, namespace: name.to_owned() };
            live.xdp().apply(plan)?;
            Ok(live)
        })
    }

    fn xdp(&self) -> MutexGuard<'_, Xdp> {
        self.xdp.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Enforcement for Live {
    fn counters(&self) -> Result<Counters, LabError> {
        let xdp = self.xdp();
        let of_class = xdp.readings()?.classes;
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let classes = xdp.plan().map(|plan| plan.classes.as_slice()).unwrap_or_default();
        Ok(classes.iter().zip(of_class).map(|(class, counters)| (name(&class.path), counters)).collect())
    }

    fn change(&mut self, policy: &str) -> Result<(), LabError> {
        let plan = plan_of(policy)?;
        Namespace::enter_named(&self.namespace, || Ok(self.xdp().apply(plan).map(drop)?))
    }

    fn watched(&self, tenants: &[&str]) -> Result<Option<Watched>, LabError> {
        Watched::new(Arc::clone(&self.xdp), tenants).map(Some)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // What fails here goes with the namespace; its pins go with the next run.
        let _ = Namespace::enter_named(&self.namespace, || Ok(self.xdp().down()?));
        let _ = std::fs::remove_dir_all(pins_of(&self.namespace));
    }
}

fn plan_of(text: &str) -> Result<Plan, LabError> {
    let policy = Policy::parse("policy", text)?;
    let no_files = |name: &str| Err(std::io::Error::other(format!("{name}: a scenario's policy has no limits files")));
    Ok(compile::compile(&policy, no_files)?)
}
