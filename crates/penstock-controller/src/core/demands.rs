// SPDX-License-Identifier: MIT OR Apache-2.0
//! What classes ask for, from what nodes report.

use super::lines::{Line, LineId, NodeId};
use super::{Core, Current};
use penstock_alloc::demand::{FALL_NS, Manner, Seen, floor_bps};
use penstock_api::v1;

/// Reports that a node sends with a limit in force until what it does not tell of is known to be idle: the first may have been on its way.
const REPORTS_UNTIL_IDLE: u32 = 2;

impl Core {
    /// Takes what a report says of traffic, and what it says by silence: what it does not tell of goes on as it was.
    pub(super) fn demands(&mut self, node: NodeId, report: &v1::Report, now_ns: u64) {
        let Some(current) = &mut self.network else { return };
        let of = &mut self.nodes[node as usize];
        for demand in &report.demands {
            let Some(id) = of.lines.get(demand.limit as usize).copied().flatten() else { continue };
            let line = &mut current.lines.all[id as usize];
            (line.offered_bps, line.passed_bps) = (demand.offered_bps, demand.passed_bps);
            if line.is_first && !std::mem::replace(&mut line.is_restless, true) {
                of.restless.push(id);
            }
        }
        if of.sent > 0 && of.applied == of.sent {
            of.reports_current = of.reports_current.saturating_add(1);
        }
        if of.reports_current == REPORTS_UNTIL_IDLE {
            let unseen = |id: &&LineId| {
                let line = &current.lines.all[**id as usize];
                line.is_first && line.seen_ns.is_none() && !line.is_restless
            };
            let idle: Vec<LineId> = of.lines.iter().flatten().filter(unseen).copied().collect();
            idle.iter().for_each(|id| current.lines.all[*id as usize].is_restless = true);
            of.restless.extend(idle);
        }
        let restless = std::mem::take(&mut of.restless);
        of.restless =
            restless.into_iter().filter(|id| current.see(*id, now_ns, self.settings.report_every_ns)).collect();
    }
}

impl Current {
    /// Looks at a line again. Whether that may come to something else next time.
    fn see(&mut self, id: LineId, now_ns: u64, report_every_ns: u64) -> bool {
        let floor = |aggregate: &u32| {
            let members = self.lines.of_aggregate[*aggregate as usize].len();
            floor_bps(self.allocator.network().aggregates[*aggregate as usize].rate_bps, members)
        };
        let floor_bps = self.lines.all[id as usize].aggregates.iter().map(floor).min().unwrap_or(0);
        let line = &mut self.lines.all[id as usize];
        let before = line.demand;
        let is_other = line.see(now_ns, report_every_ns, floor_bps);
        line.is_restless = line.demand != before || line.offered_bps > 0;
        let (class, is_restless) = (line.class, line.is_restless);
        if is_other {
            self.class_moved(class);
        }
        is_restless
    }
}

impl Line {
    /// Whether it asks for something else.
    fn see(&mut self, now_ns: u64, report_every_ns: u64, floor_bps: u64) -> bool {
        let elapsed_ns = self.seen_ns.map_or(report_every_ns, |seen_ns| now_ns.saturating_sub(seen_ns));
        self.seen_ns = Some(now_ns);
        let limit_bps = self.told.and_then(|told| told.0);
        let seen = Seen { offered_bps: self.offered_bps, passed_bps: self.passed_bps, limit_bps, elapsed_ns };
        self.demand.see(seen, Manner { fall_ns: FALL_NS, floor_bps })
    }
}
