// SPDX-License-Identifier: MIT OR Apache-2.0
//! What limits traffic in the middle: Penstock, or something to compare it with.

mod meterrl;
mod penstock;
mod qdisc;
mod watched;

use crate::LabError;
use crate::scenario::{Enforce, Tenant};
use crate::topology::Topology;
use nix::time::{ClockId, clock_gettime};
use penstock_algo::wire;
use std::collections::BTreeMap;

pub use meterrl::{MeterRl, TestMeter};
pub use penstock::Live;
pub use qdisc::{backlog_bytes, even, tbf};
pub use watched::Watched;

/// What was counted, by tenant.
pub type Counters = BTreeMap<String, wire::pst_counters>;

/// A limit in force. Dropping it takes it out.
pub trait Enforcement: Send {
    /// What was counted since it came into force. Empty where nothing counts.
    ///
    /// # Errors
    /// The kernel does not tell.
    fn counters(&self) -> Result<Counters, LabError>;

    /// Puts another policy into force while traffic flows.
    ///
    /// # Errors
    /// It is refused, or this kind of limit has no policies.
    fn change(&mut self, policy: &str) -> Result<(), LabError>;

    /// Its limits, to be looked at while it is in force. None where there are no shares.
    ///
    /// # Errors
    /// A tenant has no limit of its own.
    fn watched(&self, _tenants: &[&str]) -> Result<Option<Watched>, LabError> {
        Ok(None)
    }
}

/// Puts a limit into force.
///
/// # Errors
/// The kernel refuses, or the policy is wrong.
pub fn start(enforce: &Enforce, topology: &Topology, tenants: &[Tenant]) -> Result<Box<dyn Enforcement>, LabError> {
    Ok(match enforce {
        Enforce::Nothing => Box::new(MeterRl::start(&[], topology, tenants)?),
        Enforce::Meterrl(meter) => Box::new(MeterRl::start(std::slice::from_ref(meter), topology, tenants)?),
        Enforce::Penstock(it) => Box::new(penstock::Live::start(&it.policy, &topology.middle)?),
        Enforce::Tbf(queue) => Box::new(qdisc::Tbf::start(queue, topology, tenants)?),
        Enforce::Lent(_) | Enforce::Own(_) => {
            return Err(LabError::Computation("`lent` and `own` are of a network".to_owned()));
        }
        Enforce::Htb(htb) => Box::new(qdisc::HtbClasses::start(htb, topology, tenants)?),
    })
}

/// Nanoseconds of the clock that packets are judged by.
pub fn now_ns() -> Result<u64, LabError> {
    let failed = |errno: nix::errno::Errno| LabError::io("the clock", errno.into());
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(failed)?;
    Ok(u64::try_from(std::time::Duration::from(now).as_nanos()).unwrap_or(u64::MAX))
}

/// The index of a device in the namespace that this thread stands in.
fn ifindex(device: &str) -> Result<u32, LabError> {
    nix::net::if_::if_nametoindex(device)
        .map_err(|errno| LabError::io(format!("there is no device {device}"), errno.into()))
}
