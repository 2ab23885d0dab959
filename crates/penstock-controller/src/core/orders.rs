// SPDX-License-Identifier: MIT OR Apache-2.0
//! What nodes are told.

use super::held::Held;
use super::lines::{Line, LineId};
use super::node::Node;
use super::{Core, Current, Session};
use penstock_api::v1;

/// A node that asks for all of its limits gets them again after so long, ns: until then they are on their way.
const ALL_AGAIN_NS: u64 = 1_000_000_000;
/// What a node waits between reports at least for each node that attends, which the leader has to hear, and for each limit of its own, which it has
/// to look at, ns.
const REPORT_EVERY_NS: (u64, u64) = (500_000, 5_000);

impl Core {
    /// Orders for who is to be answered, and who is to be told something new: one epoch for all of them.
    pub(super) fn orders(&mut self, now_ns: u64) -> Vec<(Session, v1::Order)> {
        let all_heard_ns = self.by_session.len() as u64 * REPORT_EVERY_NS.0;
        let number = self.number + 1;
        let mut orders = Vec::new();
        for node in &mut self.nodes {
            let Some(session) = node.session.filter(|_| node.listens()) else { continue };
            let report_every_ns =
                self.settings.report_every_ns.max(all_heard_ns).max(node.lines.len() as u64 * REPORT_EVERY_NS.1);
            let Some(current) = self.network.as_mut() else {
                // Its reports are answered, so that it knows that it is heard.
                if std::mem::take(&mut node.owes_answer) {
                    let epoch = v1::Epoch { term: self.term, number: node.sent };
                    let order = v1::Order {
                        epoch: Some(epoch),
                        base: Some(epoch),
                        answers: node.sequence,
                        ..v1::Order::default()
                    };
                    orders.push((session, v1::Order { lease_ns: self.settings.lease_ns, report_every_ns, ..order }));
                }
                continue;
            };
            let mut order = current.order(node, number, now_ns);
            // A node that is in the network no more returns what it has.
            let is_new = order.is_all || !order.limits.is_empty() || !order.returned.is_empty();
            if !is_new && !node.owes_answer {
                continue;
            }
            order.base = Some(v1::Epoch { term: self.term, number: node.sent });
            if is_new {
                (node.sent, self.number) = (number, number);
                node.first_sent = if node.first_sent == 0 { number } else { node.first_sent };
            }
            order.epoch = Some(v1::Epoch { term: self.term, number: node.sent });
            (order.answers, order.lease_ns, order.report_every_ns) =
                (node.sequence, self.settings.lease_ns, report_every_ns);
            node.owes_answer = false;
            node.lend(self.settings.lease_ns);
            orders.push((session, order));
        }
        orders
    }
}

impl Current {
    /// What is new to a node.
    fn order(&mut self, node: &mut Node, number: u64, now_ns: u64) -> v1::Order {
        let is_again = node.all_sent_ns.is_none_or(|sent_ns| now_ns >= sent_ns + ALL_AGAIN_NS);
        let mut order = v1::Order { is_all: node.wants_all && is_again, ..v1::Order::default() };
        let stale = std::mem::take(&mut node.stale);
        if order.is_all {
            (node.wants_all, node.all_sent_ns, node.reports_current) = (false, Some(now_ns), 0);
            node.returned.clear();
            stale.iter().for_each(|id| self.lines.all[*id as usize].is_stale = false);
            for id in node.lines.clone().into_iter().flatten() {
                if self.lines.all[id as usize].is_lent() {
                    order.limits.push(self.lend(id, node, number, true));
                }
            }
            return order;
        }
        if node.all_sent_ns.is_none() {
            // Nothing follows on nothing.
            node.stale = stale;
            return order;
        }
        order.returned = std::mem::take(&mut node.returned);
        for id in stale {
            self.lines.all[id as usize].is_stale = false;
            if self.lines.all[id as usize].is_to_be_told() {
                let limit = self.lend(id, node, number, false);
                order.limits.push(limit);
            }
        }
        order
    }

    /// Tells a node what it can have of a limit.
    fn lend(&mut self, id: LineId, node: &mut Node, number: u64, is_all: bool) -> v1::Lent {
        let network = self.allocator.network();
        let line = &mut self.lines.all[id as usize];
        let is_named = is_all || line.told.is_none();
        line.told = Some((line.offer_bps, line.safe_bps));
        let (safe_bps, port_bps) = (line.member_safe_bps(), network.ports[line.port as usize].rate_bps);
        // Who is told that it needs no limit has what its own policy says, which is no more than its port has.
        let rate_bps = line.offer_bps.unwrap_or(port_bps);
        let begins_bps = if line.is_member() { safe_bps } else { port_bps };
        line.held.get_or_insert_with(|| Held::said(begins_bps)).sent(number, rate_bps);
        line.held_safe.get_or_insert_with(|| Held::said(safe_bps)).sent(number, safe_bps);
        if !std::mem::replace(&mut line.is_unsettled, true) {
            node.unsettled.push(id);
        }
        let Line { port, class, .. } = *line;
        let name = |name: &String| if is_named { name.clone() } else { String::new() };
        v1::Lent {
            limit: line.number,
            port: name(&network.ports[port as usize].name),
            class: name(&network.classes[class as usize].name),
            rate_bps: line.offer_bps,
            safe_bps: line.safe_bps,
        }
    }
}
