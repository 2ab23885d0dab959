// SPDX-License-Identifier: MIT OR Apache-2.0
//! From counters to what the API tells: names, passed and red packets, rates.

use crate::shares;
use penstock_algo::wire;
use penstock_api::v1;
use penstock_dataplane::{LimitReading, Readings, class_of, is_live, reason_name};
use penstock_policy::Plan;

/// What follows from a plan for the counters of a class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassFacts {
    /// Its limits let everything pass.
    pub shadow: bool,
    /// Every packet of it is judged by a limit.
    pub judged: bool,
    /// Rows of its limits file.
    pub rows: u64,
}

/// The facts of all classes of a plan.
#[must_use]
pub fn facts(plan: &Plan) -> Vec<ClassFacts> {
    let mut facts = vec![ClassFacts { judged: true, ..ClassFacts::default() }; plan.classes.len()];
    for rule in &plan.rules {
        if let Some(class) = facts.get_mut(rule.class_index as usize) {
            class.judged = false;
        }
    }
    for link in &plan.links {
        if let Some(class) = facts.get_mut(link.wire.unmatched_class as usize) {
            class.judged = false;
        }
    }
    for (class, planned) in facts.iter_mut().zip(&plan.classes) {
        class.judged |= planned.wire.limit_index != wire::PST_NONE;
    }
    for profile in &plan.profiles {
        if let Some(class) = facts.get_mut(profile.class_index as usize) {
            class.shadow |= u32::from(profile.flags) & wire::PST_PROFILE_SHADOW != 0;
        }
    }
    for entry in plan.entries.iter().filter(|entry| is_live(entry)) {
        if let Some(class) = class_of(plan, entry).and_then(|class| facts.get_mut(class as usize)) {
            class.rows += 1;
        }
    }
    facts
}

/// Counters as the API has them.
#[must_use]
pub fn counters(counters: &wire::pst_counters, facts: ClassFacts) -> v1::Counters {
    let dropped_packets = if facts.shadow { 0 } else { counters.dropped_packets };
    let dropped_bytes = if facts.shadow { 0 } else { counters.dropped_bytes };
    let colored = counters.green_packets + counters.yellow_packets;
    v1::Counters {
        offered_packets: counters.offered_packets,
        offered_bytes: counters.offered_bytes,
        // Counters are read while packets are counted: one may be ahead of the other.
        passed_packets: counters.offered_packets.saturating_sub(dropped_packets),
        passed_bytes: counters.offered_bytes.saturating_sub(dropped_bytes),
        dropped_packets: counters.dropped_packets,
        dropped_bytes: counters.dropped_bytes,
        marked_packets: counters.marked_packets,
        held_packets: counters.held_packets,
        green_packets: counters.green_packets,
        yellow_packets: counters.yellow_packets,
        red_packets: facts.judged.then(|| counters.offered_packets.saturating_sub(colored)),
    }
}

/// Rates between two counts; none for no time.
#[must_use]
pub fn rates(before: &v1::Counters, after: &v1::Counters, interval_ns: u64) -> Option<v1::Rates> {
    (interval_ns > 0).then(|| {
        let rate = |before: u64, after: u64| per_second(after.saturating_sub(before), interval_ns);
        v1::Rates {
            offered_bps: 8.0 * rate(before.offered_bytes, after.offered_bytes),
            passed_bps: 8.0 * rate(before.passed_bytes, after.passed_bytes),
            offered_packets_per_second: rate(before.offered_packets, after.offered_packets),
            dropped_packets_per_second: rate(before.dropped_packets, after.dropped_packets),
            marked_packets_per_second: rate(before.marked_packets, after.marked_packets),
        }
    })
}

#[allow(clippy::cast_precision_loss)] // for people: 53 bits are enough
fn per_second(count: u64, interval_ns: u64) -> f64 {
    count as f64 * 1e9 / interval_ns as f64
}

/// All that was counted, with rates since `before` if that was of the same generation.
#[must_use]
pub fn message(
    plan: &Plan,
    facts: &[ClassFacts],
    generation: u64,
    readings: &Readings,
    before: Option<&v1::Readings>,
) -> v1::Readings {
    let before = before.filter(|before| before.generation == generation);
    let interval_ns = before.map_or(0, |before| readings.now_ns.saturating_sub(before.now_ns));
    let mut message = v1::Readings {
        now_ns: readings.now_ns,
        interval_ns,
        generation,
        policy: plan.policy.clone(),
        ..Default::default()
    };
    for (index, (class, of_class)) in plan.classes.iter().zip(&readings.classes).enumerate() {
        let facts = facts.get(index).copied().unwrap_or_default();
        let parent = class.parent.and_then(|parent| plan.classes.get(parent as usize));
        message.classes.push(v1::ClassReading {
            path: class.path.clone(),
            limit_bps: class.limit_bps,
            rows: facts.rows,
            rates: None,
            counters: Some(counters(of_class, facts)),
            shadow: facts.shadow,
            parent: parent.map_or(String::new(), |parent| parent.path.clone()),
            share: None,
        });
    }
    shares::add_up(plan, &mut message.classes);
    for (index, class) in message.classes.iter_mut().enumerate() {
        let was = before.and_then(|before| before.classes.get(index)).and_then(|class| class.counters.as_ref());
        class.rates = was.zip(class.counters.as_ref()).and_then(|(was, now)| rates(was, now, interval_ns));
    }
    for (link_index, link) in (0..).zip(&plan.links) {
        let of_link = plan
            .classes
            .iter()
            .zip(&message.classes)
            .filter(|(class, _)| u32::from(class.wire.link_index) == link_index && class.parent.is_none());
        let counters = sum(of_link.filter_map(|(_, class)| class.counters.as_ref()));
        let was = before.and_then(|before| before.links.get(link_index as usize));
        let was = was.and_then(|link| link.counters.as_ref());
        message.links.push(v1::LinkReading {
            name: link.name.clone(),
            rate_bps: link.rate_bps,
            rates: was.and_then(|was| rates(was, &counters, interval_ns)),
            counters: Some(counters),
            share: None,
        });
    }
    if !plan.places.is_empty() {
        shares::add(plan, &readings.shares, &mut message);
        if let Some(before) = before {
            shares::add_fairness(plan, before, &mut message);
        }
    }
    message.reasons = reasons(readings, before, interval_ns);
    message
}

fn reasons(readings: &Readings, before: Option<&v1::Readings>, interval_ns: u64) -> Vec<v1::ReasonReading> {
    let counted = (0_u8..).zip(&readings.reasons);
    let happened = counted.filter(|&(reason, &packets)| packets > 0 && u32::from(reason) != wire::PST_REASON_NONE);
    let reading = |(reason, &packets): (u8, &u64)| {
        let name = reason_name(reason);
        let was = before.and_then(|before| before.reasons.iter().find(|one| one.reason == name));
        let new = packets.saturating_sub(was.map_or(0, |one| one.packets));
        let packets_per_second = if interval_ns > 0 { per_second(new, interval_ns) } else { 0.0 };
        v1::ReasonReading { reason: name.to_owned(), packets, packets_per_second }
    };
    happened.map(reading).collect()
}

/// Counters of several together.
pub(crate) fn sum<'a>(parts: impl Iterator<Item = &'a v1::Counters>) -> v1::Counters {
    let zero = v1::Counters { red_packets: Some(0), ..Default::default() };
    parts.fold(zero, |sum, part| v1::Counters {
        offered_packets: sum.offered_packets + part.offered_packets,
        offered_bytes: sum.offered_bytes + part.offered_bytes,
        passed_packets: sum.passed_packets + part.passed_packets,
        passed_bytes: sum.passed_bytes + part.passed_bytes,
        dropped_packets: sum.dropped_packets + part.dropped_packets,
        dropped_bytes: sum.dropped_bytes + part.dropped_bytes,
        marked_packets: sum.marked_packets + part.marked_packets,
        held_packets: sum.held_packets + part.held_packets,
        green_packets: sum.green_packets + part.green_packets,
        yellow_packets: sum.yellow_packets + part.yellow_packets,
        red_packets: sum.red_packets.zip(part.red_packets).map(|(sum, part)| sum + part),
    })
}

/// The queue and the counters of one limit.
#[must_use]
pub fn of_limit(reading: &LimitReading, shadow: bool) -> (v1::Queue, Option<v1::Counters>) {
    let facts = ClassFacts { shadow, judged: true, rows: 0 };
    let queue = v1::Queue { queue_ns: reading.queue_ns, window_ns: reading.window_ns };
    (queue, reading.counters.map(|of_limit| counters(&of_limit, facts)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTED: wire::pst_counters = wire::pst_counters {
        offered_packets: 100,
        offered_bytes: 100_000,
        dropped_packets: 30,
        dropped_bytes: 30_000,
        green_packets: 50,
        yellow_packets: 20,
        marked_packets: 5,
        held_packets: 0,
    };

    #[test]
    fn shadow_passes_everything_and_red_is_the_rest() {
        let facts = ClassFacts { shadow: false, judged: true, rows: 0 };
        let plain = counters(&COUNTED, facts);
        assert_eq!((plain.passed_packets, plain.passed_bytes, plain.red_packets), (70, 70_000, Some(30)));
        let shadow = counters(&COUNTED, ClassFacts { shadow: true, ..facts });
        assert_eq!((shadow.passed_packets, shadow.dropped_packets), (100, 30));
        let mixed = counters(&COUNTED, ClassFacts { judged: false, ..facts });
        assert_eq!(mixed.red_packets, None);
    }

    #[test]
    fn rates_are_per_second_of_the_interval() {
        let facts = ClassFacts { shadow: false, judged: true, rows: 0 };
        let (before, after) = (counters(&wire::pst_counters::default(), facts), counters(&COUNTED, facts));
        let found = rates(&before, &after, 500_000_000).unwrap();
        assert!((found.offered_bps - 1_600_000.0).abs() < 1e-6 && (found.passed_bps - 1_120_000.0).abs() < 1e-6);
        assert!((found.dropped_packets_per_second - 60.0).abs() < 1e-9);
        assert!(rates(&before, &after, 0).is_none());
    }
}
