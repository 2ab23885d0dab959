// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux's own shapers, by `tc` on the devices towards the receivers.

use super::{Counters, Enforcement};
use crate::LabError;
use crate::netns::Namespace;
use crate::process::run;
use crate::results::ALL;
use crate::scenario::{Forward, Htb, Queue, Tenant};
use crate::template::addresses;
use crate::topology::{Topology, exit};
use penstock_algo::wire;
use serde::Deserialize;

/// Tokens that a shaper may save up: what it sends in a millisecond, and at least two frames.
fn burst_bytes(queue: &Queue) -> u64 {
    (queue.rate.0 / 8 / 1000).max(2 * 1514)
}

/// Puts a token bucket filter before a device. Used for links, too.
///
/// # Errors
/// `tc` says what.
pub fn tbf(middle: &Namespace, device: &str, queue: &Queue) -> Result<(), LabError> {
    let (rate, limit, burst) = (queue.rate.0, queue.queue.0, burst_bytes(queue));
    let name = middle.name();
    run(&format!("tc -n {name} qdisc replace dev {device} root tbf rate {rate}bit burst {burst} limit {limit}"))?;
    Ok(())
}

/// Has a device of a host send a packet at a time, evenly. What is faster waits, and holds its sender up.
///
/// # Errors
/// `tc` says what.
pub fn even(host: &str, device: &str, rate_bps: f64) -> Result<(), LabError> {
    // Room for what a socket's buffer holds, or packets would be lost; tokens for the longest packet, or that never goes.
    let terms = format!("rate {rate_bps:.0}bit burst 1514 limit 1mb");
    run(&format!("tc -n {host} qdisc replace dev {device} root tbf {terms}"))?;
    Ok(())
}

/// What `tc -s -j` prints of a queueing discipline.
#[derive(Debug, Deserialize)]
struct Told {
    #[serde(default)]
    handle: String,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    packets: u64,
    #[serde(default)]
    drops: u64,
    #[serde(default)]
    backlog: u64,
}

fn ask(middle: &str, device: &str) -> Result<Vec<Told>, LabError> {
    let text = run(&format!("tc -n {middle} -s -j qdisc show dev {device}"))?;
    serde_json::from_str(&text).map_err(|error| LabError::Output { tool: "tc", what: error.to_string() })
}

/// Bytes that wait before a device.
///
/// # Errors
/// `tc` says what.
pub fn backlog_bytes(middle: &str, device: &str) -> Result<u64, LabError> {
    // Leaves report what their root reports, too.
    Ok(ask(middle, device)?.iter().map(|told| told.backlog).max().unwrap_or(0))
}

impl Told {
    fn counters(&self) -> wire::pst_counters {
        // What is dropped was never counted as sent; its length is not told.
        wire::pst_counters {
            offered_packets: self.packets + self.drops,
            offered_bytes: self.bytes,
            dropped_packets: self.drops,
            ..wire::pst_counters::default()
        }
    }
}

fn need_routing(topology: &Topology) -> Result<(), LabError> {
    match topology.forward {
        Forward::Route => Ok(()),
        Forward::Redirect => {
            Err(LabError::Computation("a redirect passes by the kernel's queues: use `forward: route`".to_owned()))
        }
    }
}

fn change_nothing() -> Result<(), LabError> {
    Err(LabError::Computation("a queueing discipline has no policies to change".to_owned()))
}

/// A token bucket filter before each receiver.
pub struct Tbf {
    middle: String,
    /// The only tenant, or [`ALL`].
    tenant: String,
}

impl Tbf {
    /// Puts one before each receiver, in the place of its link.
    ///
    /// # Errors
    /// Packets are redirected, or `tc` says what.
    pub fn start(queue: &Queue, topology: &Topology, tenants: &[Tenant]) -> Result<Self, LabError> {
        need_routing(topology)?;
        for (_, receiver) in topology.receivers.iter().zip(0..) {
            tbf(&topology.middle, &exit(receiver), queue)?;
        }
        let tenant = match tenants {
            [only] => only.name.clone(),
            _ => ALL.to_owned(),
        };
        Ok(Self { middle: topology.middle.name().to_owned(), tenant })
    }
}

impl Enforcement for Tbf {
    fn counters(&self) -> Result<Counters, LabError> {
        let told = ask(&self.middle, &exit(0))?;
        Ok(told.first().map(|told| (self.tenant.clone(), told.counters())).into_iter().collect())
    }

    fn change(&mut self, _: &str) -> Result<(), LabError> {
        change_nothing()
    }
}

/// HTB before the first receiver, with a class a tenant.
pub struct HtbClasses {
    middle: String,
    /// By the minor number of their classes, from 1.
    tenants: Vec<String>,
}

impl HtbClasses {
    /// Makes the classes, and filters by destination. Who has no class passes freely.
    ///
    /// # Errors
    /// Packets are redirected, a class is of no tenant, or `tc` says what.
    pub fn start(htb: &Htb, topology: &Topology, tenants: &[Tenant]) -> Result<Self, LabError> {
        need_routing(topology)?;
        let (name, device) = (topology.middle.name(), exit(0));
        let tc = |words: String| run(&format!("tc -n {name} {words}")).map(|_| ());
        tc(format!("qdisc replace dev {device} root handle 1: htb"))?;
        let mut classes = Vec::new();
        for (tenant, queue) in &htb.tenants {
            let unknown = || LabError::Computation(format!("HTB names {tenant:?}, and no tenant is called so"));
            let index = tenants.iter().position(|it| it.name == *tenant).ok_or_else(unknown)?;
            classes.push(tenant.clone());
            let minor = classes.len();
            let (rate, burst, limit) = (queue.rate.0, burst_bytes(queue), queue.queue.0);
            let (_, destination) = addresses(index);
            let terms = format!("rate {rate}bit ceil {rate}bit burst {burst} cburst {burst}");
            tc(format!("class add dev {device} parent 1: classid 1:{minor} htb {terms}"))?;
            tc(format!("qdisc add dev {device} parent 1:{minor} handle 1{minor}: bfifo limit {limit}"))?;
            let matched = format!("u32 match ip dst {destination}/32 flowid 1:{minor}");
            tc(format!("filter add dev {device} parent 1: protocol ip prio 1 {matched}"))?;
        }
        Ok(Self { middle: name.to_owned(), tenants: classes })
    }
}

impl Enforcement for HtbClasses {
    fn counters(&self) -> Result<Counters, LabError> {
        // tc has no JSON for classes; the queue of each knows the same.
        let told = ask(&self.middle, &exit(0))?;
        let of = |(tenant, minor): (&String, usize)| {
            let queue = told.iter().find(|told| told.handle == format!("1{minor}:"))?;
            Some((tenant.clone(), queue.counters()))
        };
        Ok(self.tenants.iter().zip(1..).filter_map(of).collect())
    }

    fn change(&mut self, _: &str) -> Result<(), LabError> {
        change_nothing()
    }
}
