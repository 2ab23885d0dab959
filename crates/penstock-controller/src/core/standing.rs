// SPDX-License-Identifier: MIT OR Apache-2.0
//! What people are told.

use super::lines::Line;
use super::node::{Node, Standing};
use super::{Core, Current, worst_bps};
use penstock_api::v1;

/// Problems of nodes among the warnings.
const PROBLEMS_MAX: usize = 20;

impl Core {
    /// How things stand, as far as the leader alone knows it.
    #[must_use]
    pub fn standing(&self, request: &v1::GetStandingRequest, now_ns: u64) -> v1::StandingReply {
        let mut nodes = self.told_nodes();
        nodes.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let attending = |node: &&&Node| node.listens();
        let heard = nodes.iter().filter(attending);
        let count = if request.count == 0 { u64::MAX } else { request.count };
        let [offset, count] = [request.offset, count].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let (limits, limits_without_rate) = self.lent_to(heard.clone().copied());
        v1::StandingReply {
            is_leader: true,
            revision: self.network.as_ref().map_or(0, |current| current.revision),
            epoch: Some(v1::Epoch { term: self.term, number: self.number }),
            lease_ns: self.settings.lease_ns,
            limits,
            limits_without_rate,
            nodes_total: nodes.len() as u64,
            nodes_attending: heard.count() as u64,
            nodes: nodes.iter().skip(offset).take(count).map(|node| self.node_standing(node, now_ns)).collect(),
            aggregates: if request.with_rates { self.aggregates() } else { Vec::new() },
            warnings: self.warnings(&nodes),
            learning_ns: self.learning_ns(&nodes, now_ns),
            ..v1::StandingReply::default()
        }
    }

    /// Nodes of the network, and others that attend.
    pub(super) fn told_nodes(&self) -> Vec<&Node> {
        self.nodes.iter().filter(|node| node.session.is_some() || node.has_lines()).collect()
    }

    /// Until it knows what all nodes have, ns at most; 0: it does.
    pub(super) fn learning_ns(&self, nodes: &[&Node], now_ns: u64) -> u64 {
        match self.is_still(now_ns)
            || nodes.iter().any(|node| matches!(node.standing, Standing::Unknown | Standing::Coming))
        {
            true => self.nodes.iter().map(|node| node.until_ns).max().unwrap_or(now_ns).saturating_sub(now_ns),
            false => 0,
        }
    }

    /// How many limits are lent to these nodes with a rate, and without.
    pub(super) fn lent_to<'a>(&self, nodes: impl Iterator<Item = &'a Node>) -> (u64, u64) {
        nodes.map(|node| self.lent(node)).fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
    }

    /// How many limits are lent to a node with a rate, and without.
    fn lent(&self, node: &Node) -> (u64, u64) {
        let Some(current) = &self.network else { return (0, 0) };
        let lines = node.lines.iter().flatten().map(|id| &current.lines.all[*id as usize]);
        lines.filter(|line| line.told.is_some()).fold((0, 0), |(with, without), line| match line.offer_bps {
            Some(_) => (with + 1, without),
            None => (with, without + 1),
        })
    }

    fn node_standing(&self, node: &Node, now_ns: u64) -> v1::NodeStanding {
        let (limits, limits_without_rate) = self.lent(node);
        v1::NodeStanding {
            node: node.name.clone(),
            state: node.state().into(),
            epoch: node.is_seen.then_some(v1::Epoch { term: self.term, number: node.applied }),
            version: node.version.clone(),
            limits,
            limits_without_rate,
            heard_ago_ns: if node.is_seen { now_ns.saturating_sub(node.heard_ns) } else { 0 },
            problems: node.problems.clone(),
        }
    }

    fn aggregates(&self) -> Vec<v1::AggregateStanding> {
        let Some(current) = &self.network else { return Vec::new() };
        let all = current.allocator.network().aggregates.iter().zip(&current.lines.of_aggregate);
        let standing = |(aggregate, lines): (&penstock_alloc::model::Aggregate, &Vec<u32>)| {
            let members: Vec<_> =
                lines.iter().map(|id| self.member(current, &current.lines.all[*id as usize])).collect();
            v1::AggregateStanding {
                name: aggregate.name.clone(),
                rate_bps: aggregate.rate_bps,
                held_bps: sum(&members, |member| member.held_bps),
                demand_bps: sum(&members, |member| member.offered_bps),
                members,
            }
        };
        all.map(standing).collect()
    }

    fn member(&self, current: &Current, line: &Line) -> v1::MemberStanding {
        let (network, node) = (current.allocator.network(), &self.nodes[line.node as usize]);
        v1::MemberStanding {
            class: network.classes[line.class as usize].name.clone(),
            port: network.ports[line.port as usize].name.clone(),
            node: node.name.clone(),
            rate_bps: line.target_bps.or(line.offer_bps).unwrap_or(0),
            held_bps: held_bps(line, node),
            offered_bps: line.offered_bps,
            passed_bps: line.passed_bps,
        }
    }

    fn warnings(&self, nodes: &[&Node]) -> Vec<String> {
        let mut warnings = Vec::new();
        for node in nodes {
            if !node.has_lines() {
                warnings.push(format!(
                    "node {} attends, and no port of the network has `switch: {}`",
                    node.name, node.name
                ));
            }
            warnings.extend(node.problems.iter().map(|problem| format!("node {}: {problem}", node.name)));
        }
        let more = warnings.len().saturating_sub(PROBLEMS_MAX);
        warnings.truncate(PROBLEMS_MAX);
        if more > 0 {
            warnings.push(format!("and {more} more"));
        }
        if let Some(current) = &self.network {
            warnings.extend(current.problems.iter().cloned());
        }
        warnings
    }
}

/// What a member may have at this moment, in the worst case, bits/s.
pub(super) fn held_bps(line: &Line, node: &Node) -> u64 {
    worst_bps(line, node).unwrap_or(line.member_safe_bps())
}

/// What nodes say may be anything.
fn sum(members: &[v1::MemberStanding], of: impl Fn(&v1::MemberStanding) -> u64) -> u64 {
    members.iter().map(of).fold(0, u64::saturating_add)
}

impl Node {
    fn has_lines(&self) -> bool {
        self.lines.iter().any(Option::is_some)
    }
}
