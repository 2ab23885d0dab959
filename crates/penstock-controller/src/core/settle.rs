// SPDX-License-Identifier: MIT OR Apache-2.0
//! What members of aggregates can have at this moment: less at once, more only from what is verifiably free.

use super::lines::{Line, LineId};
use super::node::{Node, Standing};
use super::{Core, Current, worst_bps};
use std::collections::HashMap;

impl Core {
    /// Lowers and raises the members of aggregates where something has changed.
    pub(super) fn settle(&mut self) {
        let Some(current) = &mut self.network else { return };
        let unsettled: Vec<u32> = (0..).zip(&current.unsettled).filter_map(|(id, is)| is.then_some(id)).collect();
        let mut free_bps = HashMap::new();
        for aggregate in unsettled {
            current.unsettled[aggregate as usize] = false;
            for at in 0..current.lines.of_aggregate[aggregate as usize].len() {
                current.offer(current.lines.of_aggregate[aggregate as usize][at], &mut self.nodes, &mut free_bps);
            }
        }
    }
}

/// What nobody can have of each aggregate, bits/s, as far as it was looked at.
type Free = HashMap<u32, u64>;

impl Current {
    /// What a member can have now.
    fn offer(&mut self, id: LineId, nodes: &mut [Node], free_bps: &mut Free) {
        let line = &self.lines.all[id as usize];
        let node = &nodes[line.node as usize];
        let Some(target_bps) = line.target_bps.filter(|_| node.standing == Standing::Heard) else { return };
        let has_bps = committed_bps(line, node).unwrap_or(0);
        let wanted_bps = target_bps.saturating_sub(has_bps);
        let raise_bps = if wanted_bps > 0 { self.raise_bps(id, wanted_bps, nodes, free_bps) } else { 0 };
        let line = &mut self.lines.all[id as usize];
        line.offer_bps = Some(target_bps.min(has_bps.saturating_add(raise_bps)));
        line.mark(id, nodes);
    }

    /// What a member can have in addition, at most what it wants: it is free in all of its aggregates, and taken now.
    fn raise_bps(&self, id: LineId, wanted_bps: u64, nodes: &[Node], free_bps: &mut Free) -> u64 {
        let aggregates = &self.lines.all[id as usize].aggregates;
        let mut raise_bps = wanted_bps;
        for aggregate in aggregates {
            let free_bps = free_bps.entry(*aggregate).or_insert_with(|| self.free_bps(*aggregate, nodes));
            raise_bps = raise_bps.min(*free_bps);
        }
        for aggregate in aggregates {
            if let Some(free_bps) = free_bps.get_mut(aggregate) {
                *free_bps -= raise_bps;
            }
        }
        raise_bps
    }

    /// What nobody can have of an aggregate, bits/s: nothing while a member is unknown.
    fn free_bps(&self, aggregate: u32, nodes: &[Node]) -> u64 {
        let rate_bps = self.allocator.network().aggregates[aggregate as usize].rate_bps;
        let mut free_bps = rate_bps;
        for id in &self.lines.of_aggregate[aggregate as usize] {
            let line = &self.lines.all[*id as usize];
            let Some(held_bps) = committed_bps(line, &nodes[line.node as usize]) else { return 0 };
            free_bps = free_bps.saturating_sub(held_bps);
        }
        free_bps
    }
}

/// What a line may have at worst, an offer that goes out now counted in.
fn committed_bps(line: &Line, node: &Node) -> Option<u64> {
    let offer_bps = line.offer_bps.filter(|_| node.standing == Standing::Heard).unwrap_or(0);
    Some(worst_bps(line, node)?.max(offer_bps))
}

impl Line {
    /// Has the node told, if it does not know.
    pub(super) fn mark(&mut self, id: LineId, nodes: &mut [Node]) {
        if !self.is_stale && self.is_to_be_told() {
            self.is_stale = true;
            nodes[self.node as usize].stale.push(id);
        }
    }

    /// Whether what the node knows of it is something else.
    pub(super) fn is_to_be_told(&self) -> bool {
        match self.told {
            Some(told) => told != (self.offer_bps, self.safe_bps),
            None => self.is_lent(),
        }
    }

    /// Whether there is anything to say of it.
    pub(super) fn is_lent(&self) -> bool {
        self.is_first || self.offer_bps.is_some() || self.safe_bps.is_some()
    }
}
