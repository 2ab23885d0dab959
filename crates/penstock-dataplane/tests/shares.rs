// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares, from a policy's text to what passes, against exact water-filling.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss)] // a test may panic, and count in floating point

#[allow(dead_code)] // what other tests share
mod common;
#[path = "common/forest.rs"]
mod forest;

use common::{Patient, plan_of};
use forest::{Flood, Node, PACKET_BYTES};
use penstock_algo::plane::Rng;
use penstock_dataplane::report::Report;
use penstock_dataplane::{Outcome, Replay, Sinks, VerdictWriter};
use penstock_packet::{Batch, FrameSource};

const SETTLE_NS: u64 = 500_000_000;
/// Until the rates are known of those who send 12 packets a second.
const SETTLE_USERS_NS: u64 = 4_000_000_000;
const MEASURE_NS: u64 = 1_000_000_000;

fn go_on(replay: &mut Replay, flood: &mut Flood, until_ns: u64) -> Report {
    flood.until_ns = until_ns;
    let outcome = replay.run(flood, &mut Sinks::<Vec<u8>>::default(), &mut Patient);
    assert!(matches!(outcome, Outcome::Whole), "{outcome:?}");
    replay.report()
}

/// What passes of each leaf in a second, bit/s, when all has settled.
fn measure(link: &Node, rate_bps: f64, seed: u64) -> Vec<f64> {
    let plan = plan_of(&link.policy(rate_bps));
    let parents: Vec<u32> = plan.classes.iter().filter_map(|class| class.parent).collect();
    let leaves = (0..plan.classes.len()).filter(|&class| !parents.contains(&u32::try_from(class).unwrap()));
    let demands: Vec<f64> = link.leaves().iter().map(|leaf| leaf.demand).collect();
    let mut flood = Flood::new(&demands, seed);
    let mut replay = Replay::new(plan.clone(), None, seed).unwrap();
    let before = go_on(&mut replay, &mut flood, SETTLE_NS);
    let after = go_on(&mut replay, &mut flood, SETTLE_NS + MEASURE_NS);
    let passed = |class: usize| after.classes[class].passed_bytes - before.classes[class].passed_bytes;
    leaves.map(|class| passed(class) as f64 * 8e9 / MEASURE_NS as f64).collect()
}

/// Every leaf within 3 % of its share or 1 % of the link; of what can be used 98 % is.
fn assert_filled(mut link: Node, rate_bps: f64, seed: u64) -> f64 {
    link.fill(rate_bps);
    let passed = measure(&link, rate_bps, seed);
    let leaves = link.leaves();
    assert_eq!(passed.len(), leaves.len());
    for (index, (got, leaf)) in passed.iter().zip(&leaves).enumerate() {
        let off = (got - leaf.share).abs();
        assert!(
            off <= (0.03 * leaf.share).max(0.01 * rate_bps),
            "seed {seed}, leaf {index}: {got:.0} of {:.0}",
            leaf.share
        );
    }
    let usable: f64 = leaves.iter().map(|leaf| leaf.share).sum();
    let used = passed.iter().sum::<f64>() / usable;
    assert!(used >= 0.98, "seed {seed}: {used}");
    used
}

/// Depth 1 to 8, 2 to 200 leaves, random demands, weights, guarantees and ceilings.
#[test]
fn random_trees_are_filled_as_by_water() {
    let (mut depths, mut leaves, mut overloaded) = ([0; 9], Vec::new(), 0);
    for seed in 1..=60 {
        let mut rng = Rng::new(seed);
        let depth = 1 + u32::try_from(seed).unwrap() % 8;
        let rate_bps = 100e6 * f64::from(1 + rng.next_u32() % 10);
        let mut left = if seed % 4 == 0 { 200 } else { 2 + rng.next_u32() % 40 };
        let count = if depth == 1 { left.min(64) } else { 2 + rng.next_u32() % 4 };
        let mut link = Node::inner(1.0, Vec::new());
        link.children =
            (0..count).map(|_| Node::grow(&mut rng, depth - 1, &mut left, rate_bps / f64::from(count) * 2.0)).collect();
        let mut guaranteed = 0.0;
        for child in &mut link.children {
            if rng.next_u32().is_multiple_of(4) && guaranteed < 0.6 {
                child.guarantee = rate_bps / 5.0;
                child.ceiling = f64::INFINITY;
                guaranteed += 0.2;
            }
        }
        depths[depth_of(&link)] += 1;
        leaves.push(link.leaves().len());
        overloaded += u32::from(link.leaves().iter().map(|leaf| leaf.demand).sum::<f64>() > rate_bps);
        assert_filled(link, rate_bps, seed);
    }
    assert!(overloaded > 30, "{overloaded}");
    assert!(depths[8] > 0 && depths[1] > 0 && leaves.iter().max() > Some(&100), "{depths:?} {leaves:?}");
}

fn depth_of(node: &Node) -> usize {
    node.children.iter().map(|child| 1 + depth_of(child)).max().unwrap_or(0)
}

/// A link of 100 Mbit/s with one class, whose users are told apart by where their packets go.
fn users_policy(users: &str) -> String {
    format!(
        "penstock: 1\nname: users\nports: {{ p: {{ rate: 1Gbit/s }} }}\nlinks:\n  - {{ name: l, port: p, rate: 100Mbit/s, classes: [ {{ name: all, match: [ {{}} ], users: {{ key: dst, {users} }} }} ] }}\n"
    )
}

/// What of each sender passes, bit/s, and what part of it is lost, when all has settled.
fn measure_users(users: &str, demands_bps: &[f64]) -> Vec<(f64, f64)> {
    let mut replay = Replay::new(plan_of(&users_policy(users)), None, 1).unwrap();
    let mut flood = Flood::new(demands_bps, 1);
    go_on(&mut replay, &mut flood, SETTLE_USERS_NS);
    flood.sent.clear();
    flood.until_ns = SETTLE_USERS_NS + MEASURE_NS;
    let mut sinks = Sinks { verdicts: Some(VerdictWriter::new(Vec::new()).unwrap()), ..Sinks::default() };
    assert!(matches!(replay.run(&mut flood, &mut sinks, &mut Patient), Outcome::Whole));
    let verdicts = String::from_utf8(sinks.verdicts.unwrap().finish().unwrap()).unwrap();
    let mut counts = vec![(0.0, 0.0); demands_bps.len()];
    for (line, sender) in verdicts.lines().skip(1).zip(&flood.sent) {
        counts[*sender].0 += 1.0;
        counts[*sender].1 += if line.contains(",drop,") { 1.0 } else { 0.0 };
    }
    let bits = f64::from(PACKET_BYTES) * 8e9 / MEASURE_NS as f64;
    counts.into_iter().map(|(sent, lost)| ((sent - lost) * bits, lost / sent)).collect()
}

/// Who sends less than its share loses nothing, and the others share the rest evenly, to within 3 %.
fn assert_users(users: &str, small: usize, large: usize, lost_max: f64) {
    let demands: Vec<f64> = [vec![100e3; small], vec![40e6; large]].concat();
    let measured = measure_users(users, &demands);
    let (of_small, of_large) = measured.split_at(small);
    let lost = of_small.iter().map(|(_, lost)| lost).sum::<f64>() / small as f64;
    assert!(lost <= lost_max, "{users}: {lost}");
    let share = (100e6 - 100e3 * small as f64) / large as f64;
    let off = of_large.iter().map(|(passed, _)| (passed - share).abs() / share);
    assert!(
        off.clone().all(|off| off < 0.08) && off.clone().sum::<f64>() / (large as f64) < 0.03,
        "{users}: {share}: {of_large:?}"
    );
}

#[test]
fn users_share_evenly_and_small_ones_lose_nothing() {
    assert_users("fair: tree", 300, 10, 0.0);
    assert_users("fair: sketch", 300, 10, 0.001);
}

/// Users who meet in one filter are taken for one: then the class has what is its, but they do not share it fairly.
#[test]
fn a_sketch_without_room_is_unfair() {
    let policy = users_policy("fair: sketch") + "sketch: { rows: 1, columns: 64 }\n";
    let plan = plan_of(&policy);
    assert_eq!((plan.sketch.rows, plan.sketch.column_bits), (1, 6));
    let demands: Vec<f64> = [vec![100e3; 300], vec![40e6; 10]].concat();
    let mut replay = Replay::new(plan, None, 1).unwrap();
    let report = go_on(&mut replay, &mut Flood::new(&demands, 1), MEASURE_NS);
    assert!(report.classes[0].passed_bytes * 8 < 120_000_000 && report.reasons["over_share"] > 1000);
}

/// What is above its share waits: nothing is lost below the horizon, and what leaves is the share.
#[test]
fn a_share_may_shape() {
    let shaped = |name: &str, dst: u8, weight: u32| {
        format!(
            "{{ name: {name}, weight: {weight}, match: [ {{ dst: 10.0.0.{dst} }} ], on_excess: shape, burst: 0s, excess: 0s, horizon: 5s }}"
        )
    };
    let text = format!(
        "penstock: 1\nname: shaped\nports: {{ p: {{ rate: 1Gbit/s }} }}\nlinks:\n  - {{ name: l, port: p, rate: 30Mbit/s, classes: [ {}, {} ] }}\n",
        shaped("one", 0, 1),
        shaped("two", 1, 2)
    );
    let mut replay = Replay::new(plan_of(&text), None, 1).unwrap();
    let report = go_on(&mut replay, &mut Flood::new(&[20e6, 40e6], 1), MEASURE_NS);
    for (class, share_bps) in report.classes.iter().zip([10e6, 20e6]) {
        assert!(class.dropped_packets == 0 && class.held_packets * 10 > class.offered_packets * 9, "{class:?}");
        assert!((class.share_bps as f64 - share_bps).abs() < 0.02 * share_bps, "{class:?}");
    }
}

/// Shares that nobody uses any more are the others', and come back at once.
#[test]
fn who_stops_leaves_its_share() {
    let link = Node::inner(1.0, vec![Node::leaf(1.0, 80e6), Node::leaf(1.0, 80e6)]);
    let mut replay = Replay::new(plan_of(&link.policy(100e6)), None, 1).unwrap();
    let (mut both, mut one) = (Flood::new(&[80e6, 80e6], 1), Flood::new(&[80e6], 2));
    let report = go_on(&mut replay, &mut both, 300_000_000);
    assert!((49_000_000..51_000_000).contains(&report.classes[0].share_bps), "{report:?}");
    one.until_ns = 300_000_000;
    let mut skipped = Batch::new();
    while one.next_batch(&mut skipped).unwrap() {}
    let alone = go_on(&mut replay, &mut one, 320_000_000);
    assert_eq!(alone.classes[0].share_bps, 100_000_000, "{alone:?}");
    assert!(alone.classes[1].demand_bps < 100_000, "{alone:?}");
}
