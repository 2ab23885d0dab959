// SPDX-License-Identifier: MIT OR Apache-2.0
//! Penstock's data plane on the middle's devices: what `penstock node` keeps in force, without the daemon.

use super::{Counters, Enforcement};
use crate::LabError;
use crate::netns::Namespace;
use crate::topology::Topology;
use nix::time::{ClockId, clock_gettime};
use penstock_dataplane::Dataplane;
use penstock_dataplane::xdp::{LoadOptions, Xdp};
use penstock_policy::plan::Plan;
use penstock_policy::{Policy, compile};
use std::path::PathBuf;

/// A policy in force.
pub struct Live {
    xdp: Xdp,
    pins: PathBuf,
    /// A handle on the namespace's name; the namespace itself is the topology's.
    middle: String,
}

impl Live {
    /// Puts a policy into force on the devices that its ports name.
    ///
    /// # Errors
    /// The policy is wrong, names a device that the middle does not have, or the kernel refuses.
    pub fn start(policy: &str, topology: &Topology) -> Result<Self, LabError> {
        let middle = topology.middle.name().to_owned();
        let pins = PathBuf::from(format!("/sys/fs/bpf/{middle}"));
        let xdp = topology.middle.enter(|| {
            let mut xdp = Xdp::open(&pins, LoadOptions::default())?;
            xdp.apply(plan_of(policy)?)?;
            Ok(xdp)
        })?;
        Ok(Self { xdp, pins, middle })
    }
}

impl Enforcement for Live {
    fn counters(&self) -> Result<Counters, LabError> {
        let mut all = Counters::new();
        let readings = self.xdp.readings()?;
        let classes = self.xdp.plan().map(|plan| plan.classes.as_slice()).unwrap_or_default();
        for (class, counted) in classes.iter().zip(readings.classes) {
            let name = class.path.rsplit('/').next().unwrap_or_default().to_owned();
            let sum = all.entry(name).or_default();
            sum.offered_packets += counted.offered_packets;
            sum.offered_bytes += counted.offered_bytes;
            sum.dropped_packets += counted.dropped_packets;
            sum.dropped_bytes += counted.dropped_bytes;
            sum.marked_packets += counted.marked_packets;
        }
        Ok(all)
    }

    fn change(&mut self, policy: &str) -> Result<(), LabError> {
        let xdp = &mut self.xdp;
        Namespace::enter_named(&self.middle, || {
            xdp.apply(plan_of(policy)?)?;
            Ok(())
        })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // The namespace goes at the end in any case, and with it what could not be taken out.
        let xdp = &mut self.xdp;
        let _ = Namespace::enter_named(&self.middle, || Ok(xdp.down()?));
        let _ = std::fs::remove_dir_all(&self.pins);
    }
}

/// Nanoseconds of a clock that packets are judged by.
pub fn now_ns() -> Result<u64, LabError> {
    let failed = |errno: nix::errno::Errno| LabError::io("the clock", errno.into());
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(failed)?;
    Ok(u64::try_from(std::time::Duration::from(now).as_nanos()).unwrap_or(u64::MAX))
}

fn plan_of(text: &str) -> Result<Plan, LabError> {
    let policy = Policy::parse("policy", text)?;
    let no_files = |name: &str| Err(std::io::Error::other(format!("{name}: a scenario's policy has no limits files")));
    Ok(compile::compile(&policy, no_files)?)
}
