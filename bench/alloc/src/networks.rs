// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks to share out: all links of one rate, a class for each of many random pairs of hosts.

use penstock_alloc::model::{Class, Limit, LimitKind, Network, Port};

use crate::random::Random;

const RATE_BPS: u64 = 100_000_000_000;
const BUFFER_BYTES: u64 = 400_000;

/// A topology: its ports, and the ways from one host to another.
pub struct Fabric {
    pub name: String,
    pub ports: Vec<Port>,
    pub hosts: u32,
    shape: Shape,
}

enum Shape {
    FatTree { k: u32 },
    LeafSpine { hosts_of_leaf: u32, spines: u32 },
}

impl Fabric {
    /// Three tiers of k-port switches, k^3 / 4 hosts. The ports of hosts; up from edges and from aggregations; down from cores, aggregations and edges.
    pub fn fat_tree(k: u32) -> Self {
        let hosts = k * k * k / 4;
        let ports = (0..6 * hosts).map(|id| {
            port(["host", "edge-up", "agg-up", "core", "agg-down", "edge"][(id / hosts) as usize], id % hosts)
        });
        Self { name: format!("fat tree k={k}"), ports: ports.collect(), hosts, shape: Shape::FatTree { k } }
    }

    /// Leaves of hosts, each with a link to each spine.
    pub fn leaf_spine(leaves: u32, hosts_of_leaf: u32, spines: u32) -> Self {
        let hosts = leaves * hosts_of_leaf;
        let links = leaves * spines;
        let mut ports: Vec<Port> = (0..hosts).map(|id| port("host", id)).collect();
        ports.extend((0..links).map(|id| port("leaf-up", id)));
        ports.extend((0..links).map(|id| port("spine", id)));
        ports.extend((0..hosts).map(|id| port("leaf", id)));
        Self {
            name: format!("leaf-spine {leaves}x{spines}"),
            ports,
            hosts,
            shape: Shape::LeafSpine { hosts_of_leaf, spines },
        }
    }

    /// `count` ways from one host to another, of those that there are, each another.
    fn paths(&self, from: u32, to: u32, count: u32, random: &mut Random) -> Vec<Vec<u32>> {
        match self.shape {
            Shape::FatTree { k } => self.fat_tree_paths(k, from, to, count, random),
            Shape::LeafSpine { hosts_of_leaf, spines } => {
                let links = self.hosts / hosts_of_leaf * spines;
                let (up, down) = (from / hosts_of_leaf * spines, to / hosts_of_leaf * spines);
                let last = self.hosts + 2 * links + to;
                if up == down {
                    return vec![vec![from, last]];
                }
                let first = random.below(spines);
                let spine = |n: u32| (first + n) % spines;
                (0..count.min(spines))
                    .map(|n| vec![from, self.hosts + up + spine(n), self.hosts + links + down + spine(n), last])
                    .collect()
            }
        }
    }

    fn fat_tree_paths(&self, k: u32, from: u32, to: u32, count: u32, random: &mut Random) -> Vec<Vec<u32>> {
        let half = k / 2;
        let (edge, last) = (from / half, 5 * self.hosts + to);
        let (to_edge, pod, to_pod) = (to / half, from / (half * half), to / (half * half));
        if edge == to_edge {
            return vec![vec![from, last]];
        }
        // Up: the edge's port to aggregation a. Core c of a: agg-up (pod, a, c); down: core (a, c) to pod, aggregation a to edge.
        let first = random.below(half * half);
        let ways = if pod == to_pod { half } else { half * half };
        (0..count.min(ways))
            .map(|n| {
                let (a, c) = ((first + n) % half, (first + n) / half % half);
                let up = self.hosts + edge * half + a;
                let down = 4 * self.hosts + to_edge * half + a;
                if pod == to_pod {
                    return vec![from, up, down, last];
                }
                let agg_up = 2 * self.hosts + (pod * half + a) * half + c;
                let core = 3 * self.hosts + (to_pod * half + a) * half + c;
                vec![from, up, agg_up, core, down, last]
            })
            .collect()
    }

    /// `classes` random pairs of hosts, with weights 1 to 5, and what `mix` adds.
    pub fn network(&self, classes: u32, paths: u32, mix: Mix, random: &mut Random) -> Network {
        let classes = (0..classes).map(|id| self.class(id, paths, mix, random)).collect();
        Network { ports: self.ports.clone(), classes, ..Network::default() }
    }

    pub fn class(&self, id: u32, paths: u32, mix: Mix, random: &mut Random) -> Class {
        let from = random.below(self.hosts);
        let to = (from + 1 + random.below(self.hosts - 1)) % self.hosts;
        let rate_bps = 1_000_000 * u64::from(1 + random.below(400));
        let (draw, priority) = (random.below(10), random.below(3));
        let is_mixed = mix == Mix::All;
        Class {
            name: format!("c{id}"),
            priority: if is_mixed { priority } else { 0 },
            weight: 1 + if mix == Mix::Equal { 0 } else { random.below(5) },
            limit: (is_mixed && draw < 3).then_some(Limit { rate_bps, kind: LimitKind::Soft }),
            demand_bps: (is_mixed && draw >= 7).then_some(rate_bps),
            safe_bps: None,
            paths: self.paths(from, to, paths, random),
        }
    }
}

/// What classes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// Nothing: all weigh the same.
    Equal,
    /// Weights 1 to 5.
    Weights,
    /// Three priorities besides, and limits and demands for 3 of 10 each.
    All,
}

impl Mix {
    pub fn what(self) -> &'static str {
        match self {
            Self::Equal => "nothing",
            Self::Weights => "weights",
            Self::All => "weights, priorities, limits, demands",
        }
    }
}

fn port(tier: &str, id: u32) -> Port {
    Port {
        name: format!("{tier}-{id}"),
        switch: format!("{tier}-{}", id / 4),
        rate_bps: RATE_BPS,
        buffer_bytes: BUFFER_BYTES,
    }
}
