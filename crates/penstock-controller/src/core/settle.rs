// SPDX-License-Identifier: MIT OR Apache-2.0
//! What members of aggregates can have at this moment: less at once, more only from what is verifiably free.

use super::held::Held;
use super::lines::{Line, LineId};
use super::node::{Node, Standing};
use super::{Core, Current, worst_bps};
use std::collections::HashMap;

impl Core {
    /// Lowers and raises the members of aggregates where something has changed.
    pub(super) fn settle(&mut self) {
        let Some(current) = &mut self.network else { return };
        let unsettled: Vec<u32> = (0..).zip(&current.unsettled).filter_map(|(id, is)| is.then_some(id)).collect();
        let mut left = HashMap::new();
        for aggregate in unsettled {
            current.unsettled[aggregate as usize] = false;
            for at in 0..current.lines.of_aggregate[aggregate as usize].len() {
                current.offer(current.lines.of_aggregate[aggregate as usize][at], &mut self.nodes, &mut left);
            }
        }
    }
}

/// What is left of each aggregate when all members have the worst that they may have, bits/s, as far as it was looked at: below zero where safe
/// rates took more than there is, none while a member is unknown.
type Left = HashMap<u32, Option<i128>>;

impl Current {
    /// What a member can have now: what is left, and what it has in any case.
    fn offer(&mut self, id: LineId, nodes: &mut [Node], left: &mut Left) {
        let line = &self.lines.all[id as usize];
        let node = &nodes[line.node as usize];
        let Some(target_bps) = line.target_bps.filter(|_| node.listens()) else { return };
        let committed = i128::from(committed_bps(line, node).unwrap_or(0));
        let least_bps = line.held.as_ref().map_or(line.member_safe_bps(), Held::least_bps);
        let mut most = Some(i128::from(target_bps) - committed);
        for aggregate in &line.aggregates {
            let of_aggregate = *left.entry(*aggregate).or_insert_with(|| self.left(*aggregate, nodes));
            most = most.zip(of_aggregate).map(|(most, left)| most.min(left));
        }
        let possible_bps = most.map_or(0, |most| u64::try_from(committed + most).unwrap_or(0));
        let offer_bps = target_bps.min(possible_bps.max(least_bps));
        for aggregate in &line.aggregates {
            if let Some(Some(left)) = left.get_mut(aggregate) {
                *left -= (i128::from(offer_bps) - committed).max(0);
            }
        }
        let line = &mut self.lines.all[id as usize];
        line.offer_bps = Some(offer_bps);
        line.mark(id, nodes);
    }

    fn left(&self, aggregate: u32, nodes: &[Node]) -> Option<i128> {
        let mut left = i128::from(self.allocator.network().aggregates[aggregate as usize].rate_bps);
        for id in &self.lines.of_aggregate[aggregate as usize] {
            let line = &self.lines.all[*id as usize];
            left -= i128::from(committed_bps(line, &nodes[line.node as usize])?);
        }
        let ghosts = self.ghosts.iter().filter(|ghost| ghost.aggregate == aggregate);
        left -= ghosts.map(|ghost| i128::from(ghost.bps)).sum::<i128>();
        Some(left)
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
