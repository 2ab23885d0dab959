// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each limit should have: the allocation of the network, with what nodes report that classes ask for.

use super::lines::Line;
use super::node::{Node, Standing};
use super::{ALLOCATE_EVERY_NS, Core, Current, worst_bps};

impl Core {
    /// Shares out the network again, if there is something new, it is time, and nodes are known. Whether it did.
    pub(super) fn allocate(&mut self, now_ns: u64) -> bool {
        let is_still = self.is_still(now_ns);
        let Some(current) = &mut self.network else { return false };
        let classes = current.is_moved.len() as u64;
        let every_ns = ALLOCATE_EVERY_NS.0 + ALLOCATE_EVERY_NS.1 * classes;
        let is_due = current.is_new || !current.moved.is_empty() && now_ns >= current.allocated_ns + every_ns;
        if is_still || !is_due {
            return false;
        }
        let demands: Vec<_> = current.moved.drain(..).map(|class| (class, current.lines.of_class(class))).collect();
        let demands: Vec<_> =
            demands.into_iter().map(|(class, lines)| (class, demand_bps(lines, &self.nodes))).collect();
        demands.iter().for_each(|(class, _)| current.is_moved[*class as usize] = false);
        current.allocator.set_demands(&demands);
        (current.is_new, current.allocated_ns) = (false, now_ns);
        current.aim();
        self.offer();
        true
    }

    /// Whoever is in no aggregate can have at once what it should have.
    fn offer(&mut self) {
        let Some(current) = &mut self.network else { return };
        for (line, id) in current.lines.all.iter_mut().zip(0..) {
            if !line.is_member() {
                line.offer_bps = line.target_bps;
            }
            line.mark(id, &mut self.nodes);
        }
        current.unsettled.fill(true);
    }
}

impl Current {
    /// Sets all targets.
    fn aim(&mut self) {
        self.lines.all.iter_mut().for_each(|line| line.target_bps = None);
        for limit in self.allocator.limits() {
            let Some(id) = self.lines.at(limit.class, limit.port) else { continue };
            let line = &mut self.lines.all[id as usize];
            let class = &self.allocator.network().classes[limit.class as usize];
            // Who has all that it asks for needs no limit: it would only keep it from asking for more. Members of aggregates do: nothing
            // else keeps their sum.
            let is_satisfied = class.demand_bps.is_some_and(|demand_bps| limit.rate_bps >= demand_bps);
            if line.is_member() || !is_satisfied {
                line.target_bps = Some(limit.rate_bps);
            }
        }
    }
}

/// What a class asks for: where its packets come in, bits/s; none for more than it gets, or where that is not known.
fn demand_bps(lines: &[Line], nodes: &[Node]) -> Option<u64> {
    let firsts = lines.iter().filter(|line| line.is_first);
    firsts
        .map(|line| line_demand_bps(line, &nodes[line.node as usize]))
        .try_fold(0, |sum, one| Some(one?.saturating_add(sum)))
}

fn line_demand_bps(line: &Line, node: &Node) -> Option<u64> {
    match node.standing {
        Standing::Heard | Standing::Coming => line.demand.asks_bps(),
        // Nothing can be taken from it, and it will have its safe rate.
        _ if line.is_member() => worst_bps(line, node),
        _ => None,
    }
}
