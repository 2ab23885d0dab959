// SPDX-License-Identifier: MIT OR Apache-2.0
//! Penstock's kernel program on the middle's devices.

use super::{Counters, Enforcement, ifindex};
use crate::LabError;
use crate::netns::Namespace;
use crate::topology::Topology;
use libbpf_rs::Link;
use nix::time::{ClockId, clock_gettime};
use penstock_dataplane::xdp::{Generation, Port};
use penstock_policy::plan::{Plan, PlanPort};
use penstock_policy::{Policy, compile};

/// The hash's seed: runs differ in their traffic, not in their tables.
const SEED: u64 = 1;

/// A policy in force.
pub struct Live {
    links: Vec<Link>,
    generation: Generation,
    plan: Plan,
    /// What generations before this one counted.
    before: Counters,
    /// A handle on the namespace's name; the namespace itself is the topology's.
    middle: String,
}

impl Live {
    /// Loads a policy and attaches it to the devices that its ports name.
    ///
    /// # Errors
    /// The policy is wrong, names a device that the middle does not have, or the kernel refuses.
    pub fn start(policy: &str, topology: &Topology) -> Result<Self, LabError> {
        topology.middle.enter(|| {
            let plan = plan_of(policy)?;
            let mut generation = load(&plan)?;
            let mut links = Vec::new();
            for port in &plan.ports {
                links.push(generation.attach(ifindex_of(port)?)?);
            }
            Ok(Self { links, generation, plan, before: Counters::new(), middle: topology.middle.name().to_owned() })
        })
    }
}

impl Enforcement for Live {
    fn counters(&self) -> Result<Counters, LabError> {
        let of_class = self.generation.class_counters()?;
        let mut all = self.before.clone();
        for (class, counted) in self.plan.classes.iter().zip(of_class) {
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
        let (plan, mut generation) = Namespace::enter_named(&self.middle, || {
            let plan = plan_of(policy)?;
            let generation = load(&plan)?;
            Ok((plan, generation))
        })?;
        for link in &mut self.links {
            let program = generation.program()?;
            link.update_prog(&program).map_err(LabError::bpf("changing the policy"))?;
        }
        self.before = self.counters()?;
        (self.plan, self.generation) = (plan, generation);
        Ok(())
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

fn ifindex_of(port: &PlanPort) -> Result<u32, LabError> {
    ifindex(port.device.as_deref().unwrap_or(&port.name))
}

fn load(plan: &Plan) -> Result<Generation, LabError> {
    let plane = penstock_dataplane::load(plan, SEED, now_ns()?)?;
    let indices = plan.ports.iter().map(ifindex_of).collect::<Result<Vec<_>, _>>()?;
    let port = |(port, &ifindex): (&PlanPort, &u32)| Port {
        ifindex,
        links: port.links.clone(),
        forward: port.forward.and_then(|other| indices.get(other as usize).copied()),
    };
    let ports: Vec<Port> = plan.ports.iter().zip(&indices).map(port).collect();
    Ok(Generation::load(&plane, &ports)?)
}
