// SPDX-License-Identifier: MIT OR Apache-2.0
//! What nodes say.

use super::held::Held;
use super::lines::NodeId;
use super::{Core, Over, Session};
use penstock_api::v1;
use std::collections::HashMap;

impl Core {
    /// A node said something. The first report of a session has a registration; reports of sessions that are over are nothing.
    pub fn report(&mut self, session: Session, report: &v1::Report, now_ns: u64) {
        if let Some(registration) = report.registration.as_ref().filter(|_| !self.by_session.contains_key(&session)) {
            let known = self.by_name.get(&registration.node).map(|node| &mut self.nodes[*node as usize]);
            if let Some(of) = known.filter(|of| of.is_of_another(&registration.machine, now_ns)) {
                of.rival_ns = Some(now_ns);
                self.over.push((session, Over::Taken(registration.node.clone())));
                return;
            }
            self.register(session, registration, now_ns);
        }
        let Some(&node) = self.by_session.get(&session) else { return };
        let of = &mut self.nodes[node as usize];
        if report.sequence <= of.sequence {
            return;
        }
        of.heard(report, now_ns);
        of.wants_all |= report.wants_all || report.lapsed;
        if let Some(applied) = report.applied.filter(|applied| applied.term == self.term) {
            self.acknowledged(node, applied.number, now_ns);
        }
        if report.lapsed {
            self.lapsed(node);
        }
        self.demands(node, report, now_ns);
    }

    /// A stream is over.
    pub fn leave(&mut self, session: Session) {
        let Some(node) = self.by_session.remove(&session) else { return };
        let of = &mut self.nodes[node as usize];
        of.session = None;
        // Whoever is in no network is not remembered: names are for the asking.
        if of.lines.is_empty() {
            self.by_name.remove(&of.name);
            *of = super::node::Node::default();
            self.free.push(node);
        }
    }

    /// A node comes, or comes again: what it says it has is what it has, for it hears nothing any more on streams of before.
    fn register(&mut self, session: Session, registration: &v1::Registration, now_ns: u64) {
        let node = self.node(&registration.node);
        let of = &mut self.nodes[node as usize];
        if let Some(before) = of.session.replace(session) {
            self.by_session.remove(&before);
            self.over.push((before, Over::Replaced));
        }
        self.by_session.insert(session, node);
        of.version.clone_from(&registration.version);
        if of.machine != registration.machine {
            (of.machine, of.rival_ns) = (registration.machine.clone(), None);
        }
        (of.first_sent, of.sent, of.applied, of.sequence) = (0, 0, 0, 0);
        (of.wants_all, of.all_sent_ns, of.reports_current) = (true, None, 0);
        of.returned.clear();
        for id in std::mem::take(&mut of.unsettled) {
            if let Some(current) = &mut self.network {
                current.lines.all[id as usize].is_unsettled = false;
            }
        }
        self.learn(node, &registration.holds, now_ns);
    }

    fn learn(&mut self, node: NodeId, holds: &[v1::Lent], now_ns: u64) {
        let is_still = self.is_still(now_ns);
        let holds: HashMap<(&str, &str), &v1::Lent> =
            holds.iter().map(|lent| ((lent.port.as_str(), lent.class.as_str()), lent)).collect();
        let Some(current) = &mut self.network else { return };
        let network = current.allocator.network();
        for id in self.nodes[node as usize].lines.iter().flatten() {
            let line = &mut current.lines.all[*id as usize];
            let name =
                (network.ports[line.port as usize].name.as_str(), network.classes[line.class as usize].name.as_str());
            let port_bps = network.ports[line.port as usize].rate_bps;
            // No node has more than its port.
            let has_bps = holds.get(&name).map(|lent| lent.rate_bps.map(|rate_bps| rate_bps.min(port_bps)));
            if let Some(safe_bps) = holds.get(&name).and_then(|lent| lent.safe_bps) {
                match &mut line.held_safe {
                    Some(held) => held.said_again(safe_bps.min(port_bps)),
                    none => *none = Some(Held::said(safe_bps.min(port_bps))),
                }
            }
            line.told = None;
            if line.is_member() {
                let has_bps = has_bps.flatten().unwrap_or(line.safe_worst_bps());
                match &mut line.held {
                    Some(held) => held.said_again(has_bps),
                    none => *none = Some(Held::said(has_bps)),
                }
                line.offer_bps = Some(line.target_bps.unwrap_or(has_bps).min(has_bps));
            }
            if let (true, None, Some(has_bps)) = (is_still, line.target_bps, has_bps) {
                line.target_bps = has_bps;
                line.offer_bps = has_bps;
            }
        }
        self.stands_otherwise(node as usize);
    }

    fn acknowledged(&mut self, node: NodeId, number: u64, now_ns: u64) {
        let of = &mut self.nodes[node as usize];
        // What was sent on streams before this one says nothing of this one: it may be a stream that the node has left.
        if of.first_sent == 0 || number < of.first_sent {
            return;
        }
        of.applied = of.applied.max(number.min(of.sent));
        let number = of.applied;
        if !std::mem::replace(&mut of.is_known, true) {
            self.learned_ns = now_ns;
        }
        let Some(current) = &mut self.network else { return };
        let waiting = std::mem::take(&mut of.unsettled);
        for id in waiting {
            let line = &mut current.lines.all[id as usize];
            line.is_unsettled = false;
            let held = line.held.iter_mut().chain(&mut line.held_safe);
            let is_settled = held.fold(true, |is_settled, held| {
                held.acknowledged(number);
                is_settled && held.is_settled()
            });
            if !is_settled {
                line.is_unsettled = true;
                self.nodes[node as usize].unsettled.push(id);
            }
            current.line_unsettled(id);
        }
    }

    /// The node has its safe rates.
    fn lapsed(&mut self, node: NodeId) {
        let Some(current) = &mut self.network else { return };
        let of = &self.nodes[node as usize];
        let is_certain = of.applied > 0;
        for id in of.lines.iter().flatten() {
            let line = &mut current.lines.all[*id as usize];
            let safe_bps = line.safe_worst_bps();
            if let Some(held) = line.held.as_mut().filter(|_| !line.aggregates.is_empty()) {
                held.lapsed(safe_bps, is_certain);
                line.offer_bps = Some(held.least_bps().min(line.safe_bps.unwrap_or(u64::MAX)));
                current.line_unsettled(*id);
            }
        }
    }
}
