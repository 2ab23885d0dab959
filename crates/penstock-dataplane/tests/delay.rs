// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delay lines in a replay: behind limits, of links and of classes.

#![allow(clippy::unwrap_used, clippy::duplicate_mod)] // a test may panic

#[path = "common/traffic.rs"]
mod traffic;

use penstock_dataplane::Replay;
use penstock_policy::{Plan, Policy};
use traffic::{Packet, run};

const MS: u64 = 1_000_000;

fn plan(link: &str, class: &str) -> Plan {
    let text = format!(
        "penstock: 1\nname: delay\nports: {{ lan: {{ rate: 10Gbit/s }} }}\nlinks:\n  - name: down\n    port: lan\n    \
         {link}\n    classes:\n      - {{ name: a, match: [ {{ dst: 10.0.0.1 }} ], {class} }}\n      \
         - {{ name: b, match: [ {{ dst: 10.0.0.2 }} ] }}\n"
    );
    let policy = Policy::parse("test.yaml", &text).unwrap_or_else(|errors| panic!("{errors}"));
    penstock_policy::compile::compile(&policy, |path| panic!("no file {path}")).unwrap()
}

/// To a, to b, and to nobody's address.
fn packets(times_ns: impl IntoIterator<Item = u64>, last: u8) -> Vec<Packet> {
    times_ns.into_iter().map(|time_ns| Packet { time_ns, to: [10, 0, 0, last], bytes: 1000, ecn: 1 }).collect()
}

/// Verdict, reason and departure, ns.
fn told(plan: Plan, packets: &[Packet]) -> Vec<(String, String, u64)> {
    let lines = run(&mut Replay::new(plan, None, 1).unwrap(), packets);
    let fields = lines.iter().map(|line| line.split(',').collect::<Vec<_>>());
    fields.map(|field| (field[6].to_owned(), field[7].to_owned(), field[8].parse().unwrap_or(0))).collect()
}

fn words(told: &[(String, String, u64)]) -> Vec<(&str, &str, u64)> {
    told.iter().map(|(verdict, reason, departure)| (verdict.as_str(), reason.as_str(), *departure)).collect()
}

#[test]
fn a_class_has_its_own_line_or_its_links() {
    let of = |link: &str, class: &str, last: u8| told(plan(link, class), &packets([0], last));
    let delayed = |ms: u64| [("hold", "delayed", ms * MS)];
    assert_eq!(words(&of("delay: 2ms", "delay: 5ms", 1)), delayed(5));
    assert_eq!(words(&of("delay: 2ms", "delay: 5ms", 2)), delayed(2));
    assert_eq!(words(&of("delay: 2ms", "delay: 5ms", 3)), delayed(2));
    assert_eq!(words(&of("delay: 2ms", "delay: 0ms", 1)), [("pass", "", 0)]);
    assert_eq!(words(&of("unmatched: pass", "delay: 5ms", 2)), [("pass", "", 0)]);
}

/// 1000 bytes take a millisecond; then they are on their way for three.
#[test]
fn a_limit_shapes_first() {
    let shaped = "limit: { rate: 8Mbit/s, burst: 0s, excess: 0s, on_excess: shape }";
    let said = told(plan("delay: 3ms", shaped), &packets([0, 0, 0, 10 * MS], 1));
    let expected =
        [("hold", "delayed", 3 * MS), ("hold", "held", 4 * MS), ("hold", "held", 5 * MS), ("hold", "delayed", 13 * MS)];
    assert_eq!(words(&said), expected);
    let marks = "limit: { rate: 8Mbit/s, burst: 1ms, excess: 10ms, on_excess: mark }";
    let mut replay = Replay::new(plan("delay: 3ms", marks), None, 1).unwrap();
    run(&mut replay, &packets([0, 0, 0, 0], 1));
    let class = &replay.report().classes[0];
    assert!(class.marked_packets > 0 && class.held_packets == 4, "marked, and on their way: {class:?}");
}

/// The same packets are lost in each run; another seed loses others. Those that arrive are in order.
#[test]
fn losses_and_delays_follow_the_seed() {
    let of = |seed: u32| {
        let line = format!("delay: {{ time: 2ms, jitter: 2ms, loss: 20%, seed: {seed} }}");
        told(plan(&line, "mode: enforce"), &packets((0..5000).map(|index| index * 50_000), 1))
    };
    let (one, other) = (of(1), of(2));
    assert_eq!(one, of(1));
    assert_ne!(one, other);
    let lost = one.iter().filter(|(verdict, reason, _)| verdict == "drop" && reason == "lost").count();
    assert!((850..1150).contains(&lost), "{lost}");
    let arrived: Vec<(u64, u64)> = (0_u64..)
        .zip(&one)
        .filter(|(_, (verdict, ..))| verdict == "hold")
        .map(|(index, (.., departure))| (index * 50_000, *departure))
        .collect();
    assert!(arrived.windows(2).all(|pair| pair[0].1 <= pair[1].1), "in order");
    assert!(arrived.iter().all(|(came, left)| (0..=4 * MS).contains(&(left - came))));
    let longest = arrived.iter().map(|(came, left)| left - came).max().unwrap();
    assert!(longest > 3 * MS, "{longest}");
}
