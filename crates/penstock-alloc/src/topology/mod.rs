// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks for experiments: well-known topologies, every shortest path between two hosts (ECMP), and traffic by a seed.
//!
//! A host `h1` sends by the port `h1-l1`, the leaf `l1` to it by `l1-h1`. The same [`Generator`] makes the same network on every
//! machine.

mod build;
mod spec;
mod traffic;

use crate::file::BUFFER_DEFAULT_BYTES;
use crate::model::{Network, Port, PortId};
use penstock_policy::diagnostics::Problem;
use std::collections::VecDeque;

pub use spec::{Generator, KINDS, Shape};
pub use traffic::{Pattern, Traffic};

/// Index of a host or switch.
type NodeId = usize;

/// Hosts and switches with the ports between them, and nobody who sends yet.
#[derive(Debug, Clone, Default)]
pub struct Topology {
    ports: Vec<Port>,
    names: Vec<String>,
    /// Of each node: where its ports lead to.
    next: Vec<Vec<(NodeId, PortId)>>,
    /// Who sends, in order.
    senders: Vec<NodeId>,
    /// Who receives, in order; often the same.
    receivers: Vec<NodeId>,
}

/// Steps to one node from every other one.
struct Distances(Vec<u32>);

impl Topology {
    /// Its ports.
    #[must_use]
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// Adds a host or switch.
    fn node(&mut self, name: String) -> NodeId {
        self.names.push(name);
        self.next.push(Vec::new());
        self.names.len() - 1
    }

    /// Joins two nodes by a port each.
    fn join(&mut self, one: NodeId, other: NodeId, rate_bps: u64) {
        for (from, to) in [(one, other), (other, one)] {
            let port = PortId::try_from(self.ports.len()).unwrap_or(PortId::MAX);
            let (switch, name) = (self.names[from].clone(), format!("{}-{}", self.names[from], self.names[to]));
            self.ports.push(Port { name, switch, rate_bps, buffer_bytes: BUFFER_DEFAULT_BYTES });
            self.next[from].push((to, port));
        }
    }

    fn distances(&self, to: NodeId) -> Distances {
        let mut distances = vec![u32::MAX; self.names.len()];
        distances[to] = 0;
        let mut open = VecDeque::from([to]);
        while let Some(node) = open.pop_front() {
            // Every link goes both ways.
            for &(neighbour, _) in &self.next[node] {
                if distances[neighbour] == u32::MAX {
                    distances[neighbour] = distances[node] + 1;
                    open.push_back(neighbour);
                }
            }
        }
        Distances(distances)
    }

    /// Every shortest path from a node to the one that the distances lead to, in the order of its ports.
    fn shortest(&self, from: NodeId, distances: &Distances) -> Vec<Vec<PortId>> {
        let mut paths = Vec::new();
        let mut path: Vec<PortId> = Vec::new();
        let mut open: Vec<(NodeId, usize)> = vec![(from, 0)];
        while let Some((node, tried)) = open.last_mut() {
            let here = distances.0[*node];
            let closer = self.next[*node].iter().enumerate().skip(*tried);
            let mut closer = closer.filter(|(_, (to, _))| here != u32::MAX && distances.0[*to] + 1 == here);
            if let Some((index, &(to, port))) = closer.next() {
                *tried = index + 1;
                path.push(port);
                open.push((to, 0));
                continue;
            }
            if here == 0 {
                paths.push(path.clone());
            }
            open.pop();
            path.pop();
        }
        paths
    }
}

impl Generator {
    /// The network.
    ///
    /// # Errors
    /// It is larger than a network file may be, or the traffic does not go with the topology.
    pub fn network(&self) -> Result<Network, Problem> {
        let topology = build::topology(self)?;
        traffic::network(topology, &self.traffic)
    }
}
