// SPDX-License-Identifier: MIT OR Apache-2.0
//! Penstock's kernel data plane on the devices of a namespace: the one that the daemon drives.

use super::{Counters, Enforcement};
use crate::LabError;
use crate::netns::{Namespace, pins_of};
use penstock_dataplane::Dataplane;
use penstock_dataplane::xdp::{LoadOptions, Xdp};
use penstock_policy::plan::Plan;
use penstock_policy::{Policy, compile};

/// A policy in force. Dropping it takes it out.
#[derive(Debug)]
pub struct Live {
    xdp: Xdp,
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
            let xdp = Xdp::open(&pins_of(name), LoadOptions::default())?;
            let mut live = Self { xdp, namespace: name.to_owned() };
            live.xdp.apply(plan)?;
            Ok(live)
        })
    }
}

impl Enforcement for Live {
    fn counters(&self) -> Result<Counters, LabError> {
        let of_class = self.xdp.readings()?.classes;
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let classes = self.xdp.plan().map(|plan| plan.classes.as_slice()).unwrap_or_default();
        Ok(classes.iter().zip(of_class).map(|(class, counters)| (name(&class.path), counters)).collect())
    }

    fn change(&mut self, policy: &str) -> Result<(), LabError> {
        let plan = plan_of(policy)?;
        let (xdp, namespace) = (&mut self.xdp, &self.namespace);
        Namespace::enter_named(namespace, || Ok(xdp.apply(plan).map(drop)?))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let (xdp, namespace) = (&mut self.xdp, &self.namespace);
        // What fails here goes with the namespace; its pins go with the next run.
        let _ = Namespace::enter_named(namespace, || Ok(xdp.down()?));
        let _ = std::fs::remove_dir_all(pins_of(namespace));
    }
}

fn plan_of(text: &str) -> Result<Plan, LabError> {
    let policy = Policy::parse("policy", text)?;
    let no_files = |name: &str| Err(std::io::Error::other(format!("{name}: a scenario's policy has no limits files")));
    Ok(compile::compile(&policy, no_files)?)
}
