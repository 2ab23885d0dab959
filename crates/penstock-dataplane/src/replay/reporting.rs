// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report of a replay, over all of its policies.

use super::{Counted, Replay, Totals, last_name};
use crate::counters::ByMode;
use crate::in_force::InForce;
use crate::names::reason_name;
use crate::report::{ClassReport, LISTED_LIMITS_MAX, LimitReport, LinkReport, Report, UsersReport};
use crate::{Jain, LimitId, ShareReading, Standing, UsersReading};
use penstock_algo::wire;
use penstock_policy::Plan;
use std::mem::take;

/// What was counted where nothing is in force any more.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// Classes by their paths.
    classes: Vec<(String, ByMode)>,
    /// By reason, of policies that were taken out of force.
    reasons: Vec<u64>,
}

impl Gone {
    /// Remembers classes of a policy that goes.
    pub fn add_classes(&mut self, before: &InForce<Counted>, is_gone: impl Fn(u32) -> bool) {
        let classes = (0..).zip(&before.plan.classes).zip(before.classes(|_, _, _| {}));
        for ((_, class), counted) in classes.filter(|((index, _), _)| is_gone(*index)) {
            match self.classes.iter_mut().find(|(path, _)| *path == class.path) {
                Some((_, earlier)) => earlier.add(&counted),
                None => self.classes.push((class.path.clone(), counted)),
            }
        }
    }

    /// Remembers the reasons that a policy had which goes without another one in its place.
    pub fn add_reasons(&mut self, before: &InForce<Counted>) {
        self.reasons.resize(before.host.tally.reasons.len(), 0);
        for (sum, packets) in self.reasons.iter_mut().zip(&before.host.tally.reasons) {
            *sum += packets;
        }
    }
}

impl Totals {
    /// Links in the order of another plan; those that it has not got go behind.
    pub fn follow_links(&mut self, plan: &Plan) {
        let mut before = take(&mut self.links);
        for link in &plan.links {
            let was = before.iter().position(|one| one.name == link.name).map(|index| before.remove(index));
            let counted = was.unwrap_or_else(|| LinkReport { name: link.name.clone(), ..LinkReport::default() });
            self.links.push(LinkReport { rate_bps: link.rate_bps, ..counted });
        }
        self.links.append(&mut before);
    }
}

impl Replay {
    /// The report of what was judged so far.
    #[must_use]
    pub fn report(&self) -> Report {
        let totals = &self.totals;
        let mut report = Report {
            packets: totals.packets,
            bytes: totals.bytes,
            duration_ns: self.clock.latest_ns,
            reloads: totals.reloads.clone(),
            links: totals.links.clone(),
            unmatched_packets: totals.unmatched,
            cut_packets: totals.cut,
            clamped_timestamps: self.clock.clamped,
            seed: self.seed,
            ..Default::default()
        };
        let mut classes: Vec<(&str, u64, ByMode)> = Vec::new();
        if let Some(in_force) = &self.in_force {
            report.policy.clone_from(&in_force.plan.policy);
            let counted = report_limits(in_force, &mut report);
            let of_plan = in_force.plan.classes.iter().zip(counted);
            classes.extend(of_plan.map(|(class, all)| (class.path.as_str(), class.limit_bps.unwrap_or(0), all)));
        }
        for (path, earlier) in &totals.gone.classes {
            match classes.iter_mut().find(|(other, ..)| other == path) {
                Some((_, _, counted)) => counted.add(earlier),
                None => classes.push((path, 0, *earlier)),
            }
        }
        report.classes = classes.iter().map(|(path, limit, all)| ClassReport::new(path, *limit, all)).collect();
        self.report_shares(&mut report);
        self.report_reasons(&mut report);
        report
    }

    /// Shares as they are at the end; a class with children has what these have counted.
    fn report_shares(&self, report: &mut Report) {
        let Some(in_force) = &self.in_force else { return };
        let (plan, shares) = (&in_force.plan, in_force.shares(self.now_ns()));
        for ((class, planned), share) in report.classes.iter_mut().zip(&plan.classes).zip(&shares) {
            let parent = planned.parent.and_then(|parent| plan.classes.get(parent as usize));
            class.parent = parent.map(|parent| parent.path.clone());
            let Some(share) = share else { continue };
            (class.share_bps, class.demand_bps) = (share.share_bps, share.demand_bps);
            class.fairness = share.users.and_then(|users| users.fairness);
            class.users = share.users.map(|users| {
                let UsersReading { active, entries, limit_bps, .. } = users;
                UsersReport { active, entries, limit_bps }
            });
        }
        // Children lie behind their parents.
        for index in (0..plan.classes.len()).rev() {
            let parent = plan.classes[index].parent.map(|parent| parent as usize).filter(|&parent| parent < index);
            let Some(parent) = parent else { continue };
            let (before, behind) = report.classes.split_at_mut(index);
            before[parent].add(&behind[0]);
        }
        report_fairness(plan, &shares, report);
    }

    fn report_reasons(&self, report: &mut Report) {
        let in_force = self.in_force.as_ref().map(|in_force| &in_force.host.tally.reasons);
        report.reasons.insert(reason_name(over_rate()), 0);
        for reason in 0..u8::try_from(wire::PST_REASON_COUNT).unwrap_or(u8::MAX) {
            let of_reason = |reasons: &Vec<u64>| reasons.get(usize::from(reason)).copied();
            let packets = in_force.and_then(of_reason).unwrap_or(0) + of_reason(&self.totals.gone.reasons).unwrap_or(0);
            if wire::is_malformed(reason) {
                report.malformed_packets += packets;
            }
            if packets > 0 && u32::from(reason) != wire::PST_REASON_NONE {
                report.reasons.insert(reason_name(reason), packets);
            }
        }
    }
}

/// Lists limits. Returns what was counted by class.
fn report_limits(in_force: &InForce<Counted>, report: &mut Report) -> Vec<ByMode> {
    let plan = &in_force.plan;
    let lists_all = plan.entries.len() <= LISTED_LIMITS_MAX;
    in_force.classes(|limit, profile, counted| {
        let class = plan.classes.get(profile.class_index as usize);
        let path = class.map_or("", |class| class.path.as_str());
        let (name, rate_bps) = match limit {
            LimitId::Class(_) => (last_name(path), class.and_then(|class| class.limit_bps).unwrap_or(0)),
            LimitId::Row(_) if !lists_all && counted.offered_packets() == 0 => {
                report.limits_not_listed += 1;
                return;
            }
            LimitId::Row(row) => {
                let row = row as usize;
                (plan.names.get(row), plan.entries.get(row).map_or(0, |entry| entry.rate_bps))
            }
        };
        report.limits.push(LimitReport::new(name, path, rate_bps, counted));
    })
}

/// Of children of classes and of links.
fn report_fairness(plan: &Plan, shares: &[Option<ShareReading>], report: &mut Report) {
    let mut of_places = vec![Jain::default(); plan.places.len()];
    for (index, (class, place)) in plan.classes.iter().zip(&plan.places).enumerate() {
        let asks = shares.get(index).copied().flatten().is_some_and(|share| share.standing == Standing::Unsatisfied);
        let above =
            class.parent.map_or(plan.classes.len() + usize::from(class.wire.link_index), |parent| parent as usize);
        if let (true, Some(of_place), Some(counted)) = (asks, of_places.get_mut(above), report.classes.get(index)) {
            of_place.add(counted.passed_bytes, place.terms.weight);
        }
    }
    let (of_classes, of_links) = of_places.split_at(plan.classes.len().min(of_places.len()));
    for (class, of_place) in report.classes.iter_mut().zip(of_classes) {
        class.fairness = of_place.value().or(class.fairness);
    }
    let shares = shares.iter().skip(plan.classes.len());
    for ((link, of_place), share) in report.links.iter_mut().zip(of_links).zip(shares) {
        link.shares = share.is_some();
        link.demand_bps = share.map_or(0, |share| share.demand_bps);
        link.fairness = of_place.value();
    }
}

fn over_rate() -> u8 {
    u8::try_from(wire::PST_REASON_OVER_RATE).unwrap_or(0)
}
