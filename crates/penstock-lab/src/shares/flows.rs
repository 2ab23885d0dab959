// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flows of a workload, and the parts of its time between two changes of who sends.

use super::Shares;
use crate::LabError;
use crate::stats::real;
use penstock_packet::workload::Workload;
use penstock_policy::diagnostics::Source;
use std::collections::HashMap;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

/// Where a frame without tags has its IPv4 destination.
const DESTINATION: std::ops::Range<usize> = 30..34;

/// A flow: what it sends is told apart by its destination.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Index of its group, by which results name it.
    pub group: usize,
    /// What it sends, bit/s.
    pub rate_bps: f64,
    /// First moment.
    pub start_ns: u64,
    /// Behind the last moment.
    pub stop_ns: u64,
    /// As a user.
    pub weight: u32,
    /// Where its packets go.
    pub destination: Ipv4Addr,
}

/// All flows.
#[derive(Debug)]
pub struct Flows {
    /// What they come of.
    pub workload: Workload,
    /// In the groups' order.
    pub flows: Vec<Flow>,
    /// Names of groups.
    pub groups: Vec<String>,
    /// Parts of the time in which the same flows send.
    pub parts: Vec<Part>,
    by_destination: HashMap<[u8; 4], usize>,
}

/// A part of the time in which the same flows send.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// When it begins.
    pub from_ns: u64,
    /// When it ends.
    pub to_ns: u64,
    /// Who sends.
    pub active: Vec<usize>,
}

impl Flows {
    /// Reads the workload.
    pub fn of(shares: &Shares) -> Result<Self, LabError> {
        let wrong = |what: &str| LabError::Computation(what.to_owned());
        let workload = Workload::parse(&Source::new("workload", shares.workload.clone()))?;
        let mut flows = Vec::new();
        let mut by_destination = HashMap::new();
        for (group, it) in workload.groups.iter().enumerate() {
            for index in 0..it.count {
                let IpAddr::V4(destination) = it.destination.at(index) else {
                    return Err(wrong("`shares` tells flows apart by IPv4 destinations"));
                };
                if it.vlan.is_some() || by_destination.insert(destination.octets(), flows.len()).is_some() {
                    return Err(wrong("`shares` needs a destination of its own for each flow, and no VLAN"));
                }
                flows.push(Flow {
                    group,
                    rate_bps: real(it.rate_bps),
                    start_ns: it.start_ns,
                    stop_ns: it.stop_ns,
                    weight: shares.weights.get(&it.name).copied().unwrap_or(1),
                    destination,
                });
            }
        }
        let groups: Vec<String> = workload.groups.iter().map(|group| group.name.clone()).collect();
        if let Some(name) = shares.weights.keys().find(|name| !groups.contains(name)) {
            return Err(LabError::Computation(format!("`weights` names {name:?}, which no flow is called")));
        }
        let parts = parts(&flows, workload.duration_ns);
        Ok(Self { workload, flows, groups, parts, by_destination })
    }

    /// Whose a frame is.
    pub fn of_frame(&self, frame: &[u8]) -> Option<usize> {
        let destination: [u8; 4] = frame.get(DESTINATION)?.try_into().ok()?;
        self.by_destination.get(&destination).copied()
    }

    /// The users of policies that have some with a weight.
    pub fn users_csv(&self) -> String {
        let mut text = "name,dst,weight\n".to_owned();
        for (index, flow) in self.flows.iter().enumerate().filter(|(_, flow)| flow.weight != 1) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "u{index},{},{}", flow.destination, flow.weight);
        }
        text
    }
}

fn parts(flows: &[Flow], end_ns: u64) -> Vec<Part> {
    let mut moments: Vec<u64> =
        flows.iter().flat_map(|flow| [flow.start_ns, flow.stop_ns]).chain([0, end_ns]).collect();
    moments.sort_unstable();
    moments.dedup();
    let part = |pair: &[u64]| {
        let sends = |flow: &Flow| flow.start_ns <= pair[0] && pair[1] <= flow.stop_ns;
        let active = flows.iter().enumerate().filter(|(_, flow)| sends(flow)).map(|(index, _)| index).collect();
        Part { from_ns: pair[0], to_ns: pair[1], active }
    };
    moments.windows(2).map(part).collect()
}
