// SPDX-License-Identifier: MIT OR Apache-2.0
//! What there is to be lent: a class at a port of a node, for each class the first port of its paths, where its traffic is measured, and every port
//! where it may need a limit.

use super::held::Held;
use penstock_alloc::demand::Demand;
use penstock_alloc::model::{ClassId, Network, PortId};
use std::collections::HashMap;
use std::ops::Range;

/// Index of a line.
pub(crate) type LineId = u32;
/// Index of a node.
pub(crate) type NodeId = u32;

/// A limit that a node may be lent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    pub(crate) node: NodeId,
    /// The node's reports name it so.
    pub(crate) number: u32,
    pub(crate) class: ClassId,
    pub(crate) port: PortId,
    /// A path of the class begins here.
    pub(crate) is_first: bool,
    /// Aggregates that the class is in, if it begins here: they bound it.
    pub(crate) aggregates: Box<[u32]>,
    /// What holds when the lease is over, bits/s; none for what the node's own policy says.
    pub(crate) safe_bps: Option<u64>,
    /// What it should have, bits/s; none where it needs no limit.
    pub(crate) target_bps: Option<u64>,
    /// What it can have of that now.
    pub(crate) offer_bps: Option<u64>,
    /// What was sent last on this stream: the offer of then, and the safe rate.
    pub(crate) told: Option<(Option<u64>, Option<u64>)>,
    /// Whether something of it is on its way.
    pub(crate) is_unsettled: bool,
    /// Whether it waits to be told.
    pub(crate) is_stale: bool,
    /// What its node has of it; none where it was told nothing.
    pub(crate) held: Option<Held>,
    /// The safe rate that its node has: another one may be on its way.
    pub(crate) held_safe: Option<Held>,
    /// What came and what passed as the node reported it last, bits/s.
    pub(crate) offered_bps: u64,
    pub(crate) passed_bps: u64,
    /// What it asks for, and when it was looked at last.
    pub(crate) demand: Demand,
    pub(crate) seen_ns: Option<u64>,
    /// Whether it is looked at with each report.
    pub(crate) is_restless: bool,
}

impl Line {
    /// Whether an aggregate bounds it.
    pub(crate) fn is_member(&self) -> bool {
        !self.aggregates.is_empty()
    }

    /// The safe rate of a member: it always has one.
    pub(crate) fn member_safe_bps(&self) -> u64 {
        self.safe_bps.unwrap_or(0)
    }

    /// The safe rate that a member may have at worst: one of before, as long as it has not acknowledged another.
    pub(crate) fn safe_worst_bps(&self) -> u64 {
        self.held_safe.as_ref().map_or(0, Held::worst_bps).max(self.member_safe_bps())
    }
}

/// The lines of a network.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// By class, then port.
    pub(crate) all: Vec<Line>,
    /// By class: its lines.
    of_class: Vec<Range<usize>>,
    /// By aggregate: the lines that it bounds.
    pub(crate) of_aggregate: Vec<Vec<LineId>>,
}

impl Lines {
    /// Lists what there is to be lent. `node_of` numbers switches.
    pub(crate) fn new(network: &Network, mut node_of: impl FnMut(&str) -> NodeId) -> Self {
        let nodes: Vec<NodeId> = network.ports.iter().map(|port| node_of(&port.switch)).collect();
        let mut aggregates_of: HashMap<ClassId, Vec<u32>> = HashMap::new();
        for (aggregate, number) in network.aggregates.iter().zip(0..) {
            aggregate.classes.iter().for_each(|class| aggregates_of.entry(*class).or_default().push(number));
        }
        let mut lines = Self { of_aggregate: vec![Vec::new(); network.aggregates.len()], ..Self::default() };
        for ((class, safe_bps), id) in network.classes.iter().zip(network.all_safe_bps()).zip(0..) {
            let from = lines.all.len();
            let mut ports: Vec<(PortId, bool)> = Vec::new();
            for path in &class.paths {
                ports.extend(path.iter().zip(0..).map(|(port, at)| (*port, at == 0)));
            }
            // The first of a port is the one that begins a path, if any does.
            ports.sort_unstable_by_key(|(port, is_first)| (*port, !is_first));
            ports.dedup_by_key(|(port, _)| *port);
            let bounds = aggregates_of.remove(&id).unwrap_or_default();
            for (port, is_first) in ports {
                let aggregates: Box<[u32]> = if is_first { bounds.clone().into() } else { Box::default() };
                let line = u32::try_from(lines.all.len()).unwrap_or(u32::MAX);
                aggregates.iter().for_each(|aggregate| lines.of_aggregate[*aggregate as usize].push(line));
                let node = nodes[port as usize];
                lines.all.push(Line { node, class: id, port, is_first, aggregates, safe_bps, ..Line::default() });
            }
            lines.of_class.push(from..lines.all.len());
        }
        lines
    }

    /// The lines of a class.
    pub(crate) fn of_class(&self, class: ClassId) -> &[Line] {
        &self.all[self.of_class[class as usize].clone()]
    }

    /// The line of a class at a port.
    pub(crate) fn at(&self, class: ClassId, port: PortId) -> Option<LineId> {
        let range = self.of_class.get(class as usize)?.clone();
        let found = self.all[range.clone()].binary_search_by_key(&port, |line| line.port).ok()?;
        u32::try_from(range.start + found).ok()
    }
}
