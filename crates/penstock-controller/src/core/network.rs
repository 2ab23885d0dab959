// SPDX-License-Identifier: MIT OR Apache-2.0
//! Another network takes the place of the one there is. What nodes were lent goes on under its number.

use super::held::Held;
use super::lines::{Line, LineId, Lines};
use super::{Core, Current, Ghost, Over, worst_bps};
use penstock_alloc::allocator::Allocator;
use penstock_alloc::model::Network;
use std::collections::HashMap;

/// Numbers of limits that are no more, beside as many as are in use, before they are used again.
const NUMBERS_UNUSED_MAX: usize = 1_000;

impl Core {
    /// Keeps a network from now on, which has been checked.
    pub fn set_network(&mut self, revision: u64, network: Network) {
        let before = self.network.take();
        let mut lines = Lines::new(&network, |switch| self.node(switch));
        let old = before.as_ref().map(|before| by_name(before)).unwrap_or_default();
        for node in &mut self.nodes {
            node.stale.clear();
            node.unsettled.clear();
            node.restless.clear();
        }
        let mut is_kept = vec![false; before.as_ref().map_or(0, |before| before.lines.all.len())];
        for (line, id) in lines.all.iter_mut().zip(0..) {
            let name =
                (network.ports[line.port as usize].name.as_str(), network.classes[line.class as usize].name.as_str());
            let was = old.get(&name).map(|was| (*was, before.as_ref()));
            match was {
                Some((was, Some(before))) if before.lines.all[was as usize].node == line.node => {
                    is_kept[was as usize] = true;
                    self.go_on(line, id, &before.lines.all[was as usize]);
                }
                _ => self.begin(line, id),
            }
        }
        let ghosts = before.as_ref().map(|before| self.take_back(before, &is_kept, &network)).unwrap_or_default();
        self.network = Some(Current {
            revision,
            // What is known of demands is not known to this allocator.
            moved: (0..).take(network.classes.len()).collect(),
            is_moved: vec![true; network.classes.len()],
            is_new: true,
            allocated_ns: 0,
            unsettled: vec![true; network.aggregates.len()],
            ghosts,
            problems: penstock_alloc::problems(&network),
            allocator: Allocator::new(network),
            lines,
        });
        (0..self.nodes.len()).for_each(|node| self.renumber(node));
    }

    /// Numbers of limits that are no more are used again once they are many. The node comes anew, for it knows limits by their numbers.
    fn renumber(&mut self, node: usize) {
        let (Some(current), of) = (&mut self.network, &mut self.nodes[node]) else { return };
        if of.lines.len() <= NUMBERS_UNUSED_MAX + 2 * of.lines.iter().flatten().count() {
            return;
        }
        of.lines.retain(Option::is_some);
        of.returned.clear();
        for (number, id) in (0..).zip(of.lines.iter().flatten()) {
            current.lines.all[*id as usize].number = number;
        }
        if let Some(session) = of.session.take() {
            self.by_session.remove(&session);
            self.over.push((session, Over::Renumbered));
        }
    }

    fn go_on(&mut self, line: &mut Line, id: LineId, was: &Line) {
        let (number, is_first, safe_bps) = (was.number, line.is_first, line.safe_bps);
        let aggregates = std::mem::take(&mut line.aggregates);
        let (class, port) = (line.class, line.port);
        *line = Line { class, port, is_first, aggregates, safe_bps, is_stale: false, ..was.clone() };
        if line.is_member() {
            let held = line.held.get_or_insert_with(|| Held::said(safe_bps.unwrap_or(0)));
            line.offer_bps = Some(line.offer_bps.unwrap_or(held.least_bps()).min(held.worst_bps()));
        }
        let node = &mut self.nodes[line.node as usize];
        node.lines[number as usize] = Some(id);
        if line.is_restless {
            node.restless.push(id);
        }
        if line.is_unsettled {
            node.unsettled.push(id);
        }
    }

    fn begin(&mut self, line: &mut Line, id: LineId) {
        if line.is_member() {
            line.offer_bps = Some(line.member_safe_bps());
        }
        let node = &mut self.nodes[line.node as usize];
        line.number = u32::try_from(node.lines.len()).unwrap_or(u32::MAX);
        node.lines.push(Some(id));
    }

    /// Lines that are no more are returned. What they may have of aggregates that are there still counts until their leases are over.
    fn take_back(&mut self, before: &Current, is_kept: &[bool], network: &Network) -> Vec<Ghost> {
        let number =
            |name: &str| (0..).zip(&network.aggregates).find(|(_, one)| one.name == name).map(|(number, _)| number);
        let names = before.allocator.network().aggregates.iter().map(|one| number(&one.name));
        let aggregates: Vec<Option<u32>> = names.collect();
        let mut ghosts: Vec<Ghost> = Vec::new();
        for ghost in &before.ghosts {
            let aggregate = aggregates[ghost.aggregate as usize];
            ghosts.extend(aggregate.map(|aggregate| Ghost { aggregate, ..*ghost }));
        }
        for (line, _) in before.lines.all.iter().zip(is_kept).filter(|(_, is_kept)| !**is_kept) {
            let node = &mut self.nodes[line.node as usize];
            let bps = worst_bps(line, node).unwrap_or_else(|| line.safe_worst_bps());
            let of = line.aggregates.iter().filter_map(|aggregate| aggregates[*aggregate as usize]);
            ghosts.extend(of.map(|aggregate| Ghost { aggregate, bps, until_ns: node.until_ns }));
            node.lines[line.number as usize] = None;
            if line.told.is_some() {
                node.returned.push(line.number);
            }
        }
        ghosts
    }
}

fn by_name(current: &Current) -> HashMap<(&str, &str), LineId> {
    let network = current.allocator.network();
    let name = |line: &Line| {
        (network.ports[line.port as usize].name.as_str(), network.classes[line.class as usize].name.as_str())
    };
    current.lines.all.iter().zip(0..).map(|(line, id)| (name(line), id)).collect()
}
