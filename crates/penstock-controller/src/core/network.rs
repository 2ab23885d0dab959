// SPDX-License-Identifier: MIT OR Apache-2.0
//! Another network takes the place of the one there is. What nodes were lent goes on under its number.

use super::held::Held;
use super::lines::{Line, LineId, Lines};
use super::{Core, Current};
use penstock_alloc::allocator::Allocator;
use penstock_alloc::model::Network;
use std::collections::HashMap;

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
        if let Some(before) = &before {
            self.take_back(before, &is_kept);
        }
        self.network = Some(Current {
            revision,
            // What is known of demands is not known to this allocator.
            moved: (0..).take(network.classes.len()).collect(),
            is_moved: vec![true; network.classes.len()],
            is_new: true,
            allocated_ns: 0,
            unsettled: vec![true; network.aggregates.len()],
            allocator: Allocator::new(network),
            lines,
        });
    }

    fn go_on(&mut self, line: &mut Line, id: LineId, was: &Line) {
        let (number, is_first, safe_bps) = (was.number, line.is_first, line.safe_bps);
        let aggregates = std::mem::take(&mut line.aggregates);
        let (class, port) = (line.class, line.port);
        *line = Line { class, port, is_first, aggregates, safe_bps, is_stale: false, ..was.clone() };
        match (line.is_member(), &line.held) {
            // What it was told is what it has.
            (true, None) => {
                let has_bps = line.told.and_then(|told| told.0).unwrap_or(line.member_safe_bps());
                line.held = Some(Held::said(has_bps));
                line.offer_bps = Some(has_bps);
            }
            (true, Some(_)) => {}
            (false, _) => line.held = None,
        }
        let node = &mut self.nodes[line.node as usize];
        node.lines[number as usize] = Some(id);
        if line.is_restless {
            node.restless.push(id);
        }
        match &line.held {
            Some(held) if !held.is_settled() => node.unsettled.push(id),
            _ => {}
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

    /// Lines that are no more are returned.
    fn take_back(&mut self, before: &Current, is_kept: &[bool]) {
        for (line, _) in before.lines.all.iter().zip(is_kept).filter(|(_, is_kept)| !**is_kept) {
            let node = &mut self.nodes[line.node as usize];
            node.lines[line.number as usize] = None;
            if line.told.is_some() {
                node.returned.push(line.number);
            }
        }
    }
}

fn by_name(current: &Current) -> HashMap<(&str, &str), LineId> {
    let network = current.allocator.network();
    let name = |line: &Line| {
        (network.ports[line.port as usize].name.as_str(), network.classes[line.class as usize].name.as_str())
    };
    current.lines.all.iter().zip(0..).map(|(line, id)| (name(line), id)).collect()
}
