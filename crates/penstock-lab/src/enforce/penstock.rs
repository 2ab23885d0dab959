// SPDX-License-Identifier: MIT OR Apache-2.0
//! Penstock's kernel data plane on the middle's devices: the one that the daemon drives.

use super::{Counters, Enforcement};
use crate::LabError;
use crate::netns::{Namespace, pins_of};
use crate::topology::Topology;
use penstock_dataplane::Dataplane;
use penstock_dataplane::xdp::{LoadOptions, Xdp};
use penstock_policy::plan::Plan;
use penstock_policy::{Policy, compile};

/// A policy in force. Dropping it takes it out.
pub struct Live {
    xdp: Xdp,
    /// The namespace's name; the namespace itself is the topology's.
    middle: String,
}

impl Live {
    /// Puts a policy into force on the devices that its ports name.
    ///
    /// # Errors
    /// The policy is wrong, names a device that the middle does not have, or the kernel refuses.
    pub fn start(policy: &str, topology: &Topology) -> Result<Self, LabError> {
        let plan = plan_of(policy)?;
        let middle = topology.middle.name();
        topology.middle.enter(|| {
            let xdp = Xdp::open(&pins_of(middle), LoadOptions::default())?;
            let mut live = Self { xdp, middle: middle.to_owned() };
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
        let (xdp, middle) = (&mut self.xdp, &self.middle);
        Namespace::enter_named(middle, || Ok(xdp.apply(plan).map(drop)?))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let (xdp, middle) = (&mut self.xdp, &self.middle);
        // What fails here goes with the namespace; its pins go with the next run.
        let _ = Namespace::enter_named(middle, || Ok(xdp.down()?));
        let _ = std::fs::remove_dir_all(pins_of(middle));
    }
}

fn plan_of(text: &str) -> Result<Plan, LabError> {
    let policy = Policy::parse("policy", text)?;
    let no_files = |name: &str| Err(std::io::Error::other(format!("{name}: a scenario's policy has no limits files")));
    Ok(compile::compile(&policy, no_files)?)
}
