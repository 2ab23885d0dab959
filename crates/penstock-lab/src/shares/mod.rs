// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows that come and go share a link, in virtual time: what HSDBA's and AHAB's evaluations compare, beside the exact shares.

pub mod changes;
pub mod fill;
mod flows;
mod measure;
mod run;
mod system;
#[cfg(test)]
mod tests;

pub use system::tree_of;

use crate::LabError;
use crate::quantity::{Rate, Size, Time};
use crate::results::Results;
use crate::template::Values;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A workload, and who shares out the link that it goes over.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct Shares {
    /// The workload. Flows are told apart by their IPv4 destinations; each group is a tenant of the results.
    pub workload: String,
    /// Weights of groups' flows as users; 1 without it. Policies find them in `users.csv`.
    #[serde(default)]
    pub weights: BTreeMap<String, u32>,
    /// What does not count, from each change of who sends.
    pub settle: Time,
    /// Width of the samples over time; none without it.
    pub bin: Option<Time>,
    /// Whether limits are looked at with each packet: how long after a change they are right.
    #[serde(default)]
    pub watch: bool,
    /// What is compared.
    pub systems: Vec<Candidate>,
}

/// A system.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Its series.
    pub name: String,
    /// What it is.
    pub system: Kind,
}

/// Who shares out a link.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Penstock, by a policy.
    Policy(String),
    /// Nobody: a queue that drops what it cannot hold.
    Fifo(Fifo),
    /// HSDBA as published, one level.
    Hsdba(Hsdba),
    /// AHAB, one slice: by default as Penstock has it.
    Ahab(Ahab),
    /// HCSFQ, one node.
    Hcsfq(Hcsfq),
}

/// A queue.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fifo {
    /// Of the link.
    pub rate: Rate,
    /// What it holds.
    pub queue: Size,
}

/// HSDBA's Algorithm 1.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hsdba {
    /// Of the link.
    pub rate: Rate,
    /// log2 of tau, ns.
    pub tau_shift: u32,
}

/// A slice of AHAB.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ahab {
    /// C.
    pub rate: Rate,
    /// log2 of tau, ns.
    pub tau_shift: u32,
    /// log2 of an epoch, ns.
    pub epoch_shift: u32,
    /// log2 of the sketch's columns.
    pub column_bits: u32,
    /// Bits of the published divide, and with it the published filters; 0 for Penstock's.
    pub divide_bits: u32,
}

/// A node of HCSFQ.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hcsfq {
    /// Of the link.
    pub rate: Rate,
    /// Length of all packets.
    pub packet: Size,
    /// A window.
    pub window: Time,
    /// 3: (7 R + bytes) / 8; 1: (R + bytes) / 2.
    pub smooth_shift: u32,
    /// alpha goes down by alpha / 2^this
    pub decrease_shift: u32,
    /// and up by alpha / 2^this.
    pub increase_shift: u32,
}

/// Lets each system share out the link for the same packets.
///
/// # Errors
/// A policy or the workload is wrong, or a flow is in no class.
pub fn compute(shares: &Shares, point: &Values) -> Result<Results, LabError> {
    let flows = flows::Flows::of(shares)?;
    let mut results = Results::default();
    for candidate in &shares.systems {
        let done = run::run(shares, candidate, &flows)?;
        measure::report(&done, &flows, &candidate.name, point, &mut results);
    }
    Ok(results)
}
