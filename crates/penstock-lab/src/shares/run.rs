// SPDX-License-Identifier: MIT OR Apache-2.0
//! One system over a workload: what each flow got in each part of the time, and when limits were right.

use super::changes::{Change, fair_bps, is_right};
use super::fill::Node;
use super::flows::{Flows, Part};
use super::system::{Packet, System, make};
use super::{Candidate, Shares};
use crate::LabError;
use crate::stats::real;
use penstock_packet::workload::Generator;
use penstock_packet::{Batch, FrameSource};

/// What a run gave.
pub struct Done {
    /// For each part of the time.
    pub parts: Vec<PartDone>,
    /// Width of bins, ns, and what passed in each: by group, bytes.
    pub bins: Option<(u64, Vec<Vec<u64>>)>,
    /// The longest that a packet that passed would have waited for the link, ns.
    pub wait_most_ns: f64,
}

/// What a part of the time gave.
#[derive(Debug, Clone, Default)]
pub struct PartDone {
    /// Exact shares of all flows, bit/s; 0 of those that do not send.
    pub fair_bps: Vec<f64>,
    /// What passed of each flow, behind the time to settle.
    pub passed_bytes: Vec<u64>,
    /// How long that was.
    pub seconds: f64,
    /// When limits were right, where that was looked at.
    pub change: Option<Change>,
}

/// Runs a system over the workload.
pub fn run(shares: &Shares, candidate: &Candidate, flows: &Flows) -> Result<Done, LabError> {
    let mut system = make(&candidate.system, flows)?;
    let tree = system.tree();
    let parts: Vec<PartDone> = flows.parts.iter().map(|part| start_of(part, &tree, flows, shares)).collect();
    let bins = shares.bin.map(|bin| (bin.0, vec![Vec::new(); flows.groups.len()]));
    let mut course = Course {
        flows,
        shares,
        at: 0,
        done: Done { parts, bins, wait_most_ns: 0.0 },
        seen: vec![0; flows.flows.len()],
        link: Link {
            bps: tree.0.iter().filter(|node| node.parent.is_none()).map(|root| root.ceiling).sum(),
            free_ns: 0.0,
        },
    };
    let mut source = Generator::new(&flows.workload);
    let mut batch = Batch::new();
    while source.next_batch(&mut batch).map_err(|error| LabError::Computation(error.to_string()))? {
        if !shares.watch {
            course.feed(&mut *system, std::mem::take(&mut batch))?;
            continue;
        }
        for frame in batch.iter() {
            let mut one = Batch::new();
            one.push(&frame);
            course.feed(&mut *system, one)?;
            course.look(&mut *system, frame.time_ns);
        }
    }
    Ok(course.done)
}

/// What is known of a part before it begins.
fn start_of(part: &Part, tree: &(Vec<Node>, Vec<usize>), flows: &Flows, shares: &Shares) -> PartDone {
    let fair_bps = fair_bps(tree, part.active.iter().map(|&flow| (flow, flows.flows[flow].rate_bps)));
    let seconds = real(part.to_ns.saturating_sub(part.from_ns + shares.settle.0)) / 1e9;
    PartDone { fair_bps, passed_bytes: vec![0; flows.flows.len()], seconds, change: None }
}

struct Course<'a> {
    flows: &'a Flows,
    shares: &'a Shares,
    /// The part that it is in.
    at: usize,
    done: Done,
    /// Packets of each flow in this part.
    seen: Vec<u64>,
    link: Link,
}

/// The link behind: what passed has to leave by it.
struct Link {
    bps: f64,
    /// When it will have sent all that passed.
    free_ns: f64,
}

impl Link {
    /// How long a packet that passed would have to wait.
    fn wait_ns(&mut self, packet: &Packet) -> f64 {
        let now_ns = real(packet.time_ns);
        let wait_ns = (self.free_ns - now_ns).max(0.0);
        self.free_ns = now_ns + wait_ns + f64::from(packet.bytes) * 8e9 / self.bps;
        wait_ns
    }
}

impl Course<'_> {
    fn feed(&mut self, system: &mut dyn System, batch: Batch) -> Result<(), LabError> {
        let packet = |frame: penstock_packet::Frame<'_>| {
            let flow = self.flows.of_frame(frame.data)?;
            Some(Packet { flow, time_ns: frame.time_ns, bytes: frame.wire_bytes })
        };
        let packets: Option<Vec<Packet>> = batch.iter().map(packet).collect();
        let packets = packets.ok_or_else(|| LabError::Computation("a packet is of no flow".to_owned()))?;
        if self.shares.watch {
            // One packet at a time: whoever is gone is gone before it.
            packets.iter().for_each(|packet| self.go_to(packet.time_ns, system));
        }
        let mut passes = Vec::with_capacity(packets.len());
        system.judge(batch, &packets, &mut passes)?;
        for (packet, passes) in packets.iter().zip(passes) {
            self.go_to(packet.time_ns, system);
            self.count(packet, passes);
        }
        Ok(())
    }

    /// Goes on to the part that a time is in.
    fn go_to(&mut self, time_ns: u64, system: &mut dyn System) {
        let parts = &self.flows.parts;
        while self.at + 1 < parts.len() && time_ns >= parts[self.at].to_ns {
            let (before, after) = (&parts[self.at].active, &parts[self.at + 1].active);
            before.iter().filter(|flow| !after.contains(flow)).for_each(|&flow| system.leave(flow));
            self.at += 1;
            self.seen.fill(0);
            if self.shares.watch {
                self.done.parts[self.at].change = Change::between(before, after, u64::MAX);
            }
        }
    }

    fn count(&mut self, packet: &Packet, passes: bool) {
        self.seen[packet.flow] += 1;
        if !passes {
            return;
        }
        self.done.wait_most_ns = self.done.wait_most_ns.max(self.link.wait_ns(packet));
        let part = &self.flows.parts[self.at];
        if packet.time_ns >= part.from_ns + self.shares.settle.0 {
            self.done.parts[self.at].passed_bytes[packet.flow] += u64::from(packet.bytes);
        }
        if let Some((width_ns, bins)) = &mut self.done.bins {
            let bins = &mut bins[self.flows.flows[packet.flow].group];
            let index = usize::try_from(packet.time_ns / (*width_ns).max(1)).unwrap_or(usize::MAX);
            if bins.len() <= index {
                bins.resize(index + 1, 0);
            }
            bins[index] += u64::from(packet.bytes);
        }
    }

    /// Whether all limits are right now.
    fn look(&mut self, system: &mut dyn System, time_ns: u64) {
        let part = &self.flows.parts[self.at];
        let before = self.at.checked_sub(1).map(|before| &self.flows.parts[before].active);
        let done = &mut self.done.parts[self.at];
        let Some(change) = &mut done.change else { return };
        let are_right = part.active.iter().all(|&flow| {
            let (fair, asked) = (done.fair_bps[flow], self.flows.flows[flow].rate_bps);
            system.limit_bps(flow).is_some_and(|limit| is_right(limit, fair, asked))
        });
        let came = |flow: &&usize| before.is_none_or(|before| !before.contains(flow));
        change.look(are_right, time_ns - part.from_ns, || {
            part.active.iter().filter(came).map(|&flow| self.seen[flow]).sum()
        });
    }
}
