// SPDX-License-Identifier: MIT OR Apache-2.0
//! What limits traffic in the middle: Penstock, or something to compare it with.

mod meterrl;
mod penstock;
mod qdisc;

use crate::LabError;
use crate::scenario::{Enforce, Tenant};
use crate::topology::Topology;
use penstock_algo::wire;
use std::collections::BTreeMap;

pub use meterrl::{MeterRl, TestMeter};
pub use penstock::now_ns;
pub use qdisc::{backlog_bytes, tbf};

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
}

/// Puts a limit into force.
///
/// # Errors
/// The kernel refuses, or the policy is wrong.
pub fn start(enforce: &Enforce, topology: &Topology, tenants: &[Tenant]) -> Result<Box<dyn Enforcement>, LabError> {
    Ok(match enforce {
        Enforce::Nothing => Box::new(MeterRl::start(&[], topology, tenants)?),
        Enforce::Meterrl(meter) => Box::new(MeterRl::start(std::slice::from_ref(meter), topology, tenants)?),
        Enforce::Penstock(it) => Box::new(penstock::Live::start(&it.policy, topology)?),
        Enforce::Tbf(queue) => Box::new(qdisc::Tbf::start(queue, topology, tenants)?),
        Enforce::Htb(htb) => Box::new(qdisc::HtbClasses::start(htb, topology, tenants)?),
    })
}

/// The index of a device in the namespace that this thread stands in.
fn ifindex(device: &str) -> Result<u32, LabError> {
    nix::net::if_::if_nametoindex(device)
        .map_err(|errno| LabError::io(format!("there is no device {device}"), errno.into()))
}
