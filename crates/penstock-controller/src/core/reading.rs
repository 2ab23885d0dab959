// SPDX-License-Identifier: MIT OR Apache-2.0
//! What metrics tell of a leader: numbers alone, so that they are had in one walk over what there is.

use super::Core;
use super::standing::held_bps;
use penstock_api::v1::node_standing::State;

/// How things stand, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// Of the network that is kept; 0 for none.
    pub revision: u64,
    /// Of the newest epoch.
    pub term: u64,
    /// Of the newest epoch.
    pub number: u64,
    /// Until it knows what all nodes have, ns at most; 0: it does.
    pub learning_ns: u64,
    /// Nodes of the network, and others that attend.
    pub nodes: u64,
    /// Those that are heard.
    pub attending: u64,
    /// By state.
    pub states: [(State, u64); 5],
    /// Limits lent to nodes that are heard, with a rate and without.
    pub limits: u64,
    /// Without: they need none.
    pub limits_without_rate: u64,
    /// Aggregates of the network.
    pub aggregates_total: u64,
    /// The first of them.
    pub aggregates: Vec<AggregateReading>,
}

/// An aggregate, in numbers: sums of its members.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AggregateReading {
    /// Its name.
    pub name: String,
    /// Its rate, bits/s.
    pub rate_bps: u64,
    /// What members may have at this moment, in the worst case, bits/s.
    pub held_bps: u64,
    /// What came, and what passed of that, over the last reports, bits/s.
    pub demand_bps: u64,
    /// What passed, bits/s.
    pub passed_bps: u64,
}

impl Core {
    /// How things stand. Of aggregates at most `aggregates_max`, the first ones of the network.
    #[must_use]
    pub fn reading(&self, aggregates_max: usize, now_ns: u64) -> Reading {
        let nodes = self.told_nodes();
        let all = [State::Absent, State::Current, State::Behind, State::Silent, State::Lapsed];
        let mut states = all.map(|state| (state, 0));
        for node in &nodes {
            let is_same = |(state, _): &&mut (State, u64)| *state == node.state();
            states.iter_mut().find(is_same).into_iter().for_each(|(_, count)| *count += 1);
        }
        let heard = nodes.iter().copied().filter(|node| node.listens());
        let (limits, limits_without_rate) = self.lent_to(heard.clone());
        Reading {
            revision: self.network.as_ref().map_or(0, |current| current.revision),
            term: self.term,
            number: self.number,
            learning_ns: self.learning_ns(&nodes, now_ns),
            nodes: nodes.len() as u64,
            attending: heard.count() as u64,
            states,
            limits,
            limits_without_rate,
            aggregates_total: self.network.as_ref().map_or(0, |current| current.lines.of_aggregate.len() as u64),
            aggregates: self.aggregate_readings(aggregates_max),
        }
    }

    fn aggregate_readings(&self, aggregates_max: usize) -> Vec<AggregateReading> {
        let Some(current) = &self.network else { return Vec::new() };
        let all = current.allocator.network().aggregates.iter().zip(&current.lines.of_aggregate);
        let reading = |(aggregate, lines): (&penstock_alloc::model::Aggregate, &Vec<u32>)| {
            let (name, rate_bps) = (aggregate.name.clone(), aggregate.rate_bps);
            let mut sums = AggregateReading { name, rate_bps, ..AggregateReading::default() };
            for line in lines.iter().map(|id| &current.lines.all[*id as usize]) {
                // What nodes say may be anything.
                let add = |sum: &mut u64, more_bps| *sum = sum.saturating_add(more_bps);
                add(&mut sums.held_bps, held_bps(line, &self.nodes[line.node as usize]));
                add(&mut sums.demand_bps, line.offered_bps);
                add(&mut sums.passed_bps, line.passed_bps);
            }
            sums
        };
        all.take(aggregates_max).map(reading).collect()
    }
}
