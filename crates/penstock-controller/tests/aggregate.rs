// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tenant with one rate over many nodes: its sum never is above its rate but for safe rates of nodes that are cut off, whatever becomes of messages; and
//! its rate goes where its demand is.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use penstock_controller::Settings;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use support::world::{FAIR, MS, SECOND, STEP, Weather, World, tenant};

const RATE_BPS: u64 = 300_000_000;

fn fair_world(nodes: usize) -> World {
    World::new(tenant(nodes, RATE_BPS), Settings::default(), FAIR, Xoshiro256PlusPlus::seed_from_u64(1))
}

/// What a run came to.
#[derive(Debug, Default)]
struct Run {
    /// Longest time without a break above the rate, ns.
    longest_ns: u64,
    /// bits above the rate, in the longest.
    worst_bits: u64,
}

/// Demands move, leaders die, nodes are cut off; messages fare as the weather is.
fn storm(seed: u64, nodes: usize, weather: Weather, has_faults: bool) -> Run {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut world = World::new(tenant(nodes, RATE_BPS), Settings::default(), weather, rng.clone());
    if has_faults {
        world.leases_ns = vec![SECOND, 2 * SECOND, Settings::default().lease_ns];
    }
    let (mut run, mut above_ns, mut above_bits) = (Run::default(), 0, 0);
    let safe: u64 = world.nodes.iter().map(|node| node.safe_bps).sum();
    assert!(safe <= RATE_BPS);
    let mut elected_ns = u64::MAX;
    // Nodes that have fallen back to their safe rates, now or since the sum is above the rate.
    let mut lapsed = vec![false; nodes];
    world.run(60 * SECOND, |world| {
        if rng.random_range(0..100) == 0 {
            let at = rng.random_range(0..nodes);
            world.nodes[at].demand_bps = if rng.random() { rng.random_range(0..2 * RATE_BPS) } else { 0 };
        }
        if has_faults && rng.random_range(0..500) == 0 {
            let at = rng.random_range(0..nodes);
            world.nodes[at].is_cut = !world.nodes[at].is_cut;
        }
        if has_faults && rng.random_range(0..800) == 0 && world.leader.is_some() {
            world.leader = None;
            elected_ns = world.now_ns + rng.random_range(0..7 * SECOND);
        }
        if world.now_ns >= elected_ns {
            elected_ns = u64::MAX;
            world.elect();
        }
        let excess_bps = world.sum_bps().saturating_sub(RATE_BPS);
        for (node, has_lapsed) in world.nodes.iter().zip(&mut lapsed) {
            *has_lapsed = node.is_lapsed() || (*has_lapsed && above_ns > 0);
        }
        let safe_bps: u64 =
            world.nodes.iter().zip(&lapsed).filter_map(|(node, has)| has.then_some(node.safe_bps)).sum();
        assert!(excess_bps <= safe_bps, "{excess_bps} bit/s above, with safe rates of {safe_bps}");
        if excess_bps == 0 {
            (above_ns, above_bits) = (0, 0);
            return;
        }
        above_ns += STEP;
        above_bits += excess_bps * STEP / SECOND;
        run.longest_ns = run.longest_ns.max(above_ns);
        run.worst_bits = run.worst_bits.max(above_bits);
    });
    run
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn lost_doubled_and_late_messages_do_not_raise_the_sum(seed: u64, nodes in 2_usize..6) {
        let weather = Weather { lost: 50, doubled: 50, delay_ns: 50 * MS, rarely_ns: 3 * SECOND, rarely_one_of: 50 };
        let run = storm(seed, nodes, weather, false);
        prop_assert!(run.longest_ns <= Settings::default().lease_ns, "{:?}", run);
    }

    #[test]
    fn the_sum_is_above_the_rate_by_the_safe_rates_of_a_lease_at_most(seed: u64, nodes in 2_usize..6) {
        let weather = Weather { lost: 100, doubled: 100, delay_ns: 200 * MS, rarely_ns: 6 * SECOND, rarely_one_of: 20 };
        let run = storm(seed, nodes, weather, true);
        prop_assert!(run.worst_bits <= RATE_BPS * Settings::default().lease_ns / SECOND, "{:?}", run);
    }
}

#[test]
fn what_a_tenant_may_have_goes_where_its_demand_is_within_a_second() {
    let mut world = fair_world(3);
    world.run(3 * SECOND, |_| {});
    for turn in 0..6 {
        (0..3).for_each(|node| world.nodes[node].demand_bps = if node == turn % 3 { 2 * RATE_BPS } else { 0 });
        let from_ns = world.now_ns;
        let mut served_ns = None;
        world.run(5 * SECOND, |world| {
            assert!(world.sum_bps() <= RATE_BPS);
            if served_ns.is_none() && world.passes_bps() * 100 >= RATE_BPS * 98 {
                served_ns = Some(world.now_ns - from_ns);
            }
        });
        let served_ns = served_ns.expect("the demand is served");
        assert!(served_ns < SECOND, "{} ms", served_ns / MS);
        assert!(world.passes_bps() * 100 >= RATE_BPS * 98, "{}", world.passes_bps());
    }
}

#[test]
fn a_leader_with_a_shorter_lease_waits_for_the_longer_ones_of_before() {
    let mut world = fair_world(3);
    world.nodes[0].demand_bps = 2 * RATE_BPS;
    world.run(3 * SECOND, |_| {});
    assert!(world.nodes[0].has_bps() * 100 >= RATE_BPS * 98);
    world.nodes[0].is_cut = true;
    world.nodes[1].demand_bps = 2 * RATE_BPS;
    world.leases_ns = vec![SECOND];
    // The second one knows of the first one's lease from the store alone, too.
    for _ in 0..2 {
        world.elect();
        world.run(SECOND, |world| assert!(world.sum_bps() <= RATE_BPS, "{}", world.sum_bps()));
    }
    let safe_bps = world.nodes[0].safe_bps;
    world.run(5 * SECOND, |world| assert!(world.sum_bps() <= RATE_BPS + safe_bps, "{}", world.sum_bps()));
    assert!(world.nodes[0].is_lapsed() && world.nodes[1].has_bps() * 100 >= (RATE_BPS - safe_bps) * 98);
}

#[test]
fn three_that_all_want_more_have_equal_parts() {
    let mut world = fair_world(3);
    world.nodes.iter_mut().for_each(|node| node.demand_bps = RATE_BPS);
    world.run(5 * SECOND, |world| assert!(world.sum_bps() <= RATE_BPS));
    for node in &world.nodes {
        assert!(node.has_bps().abs_diff(RATE_BPS / 3) < RATE_BPS / 100, "{}", node.has_bps());
    }
}

#[test]
fn a_node_that_is_cut_off_has_its_safe_rate_after_its_lease_and_others_the_rest() {
    let mut world = fair_world(3);
    world.nodes.iter_mut().for_each(|node| node.demand_bps = RATE_BPS);
    world.nodes[0].demand_bps = 0;
    world.run(4 * SECOND, |_| {});
    let had_bps = world.nodes[0].has_bps();
    assert!(had_bps < RATE_BPS / 100);
    world.nodes[0].is_cut = true;
    let from_ns = world.now_ns;
    world.run(8 * SECOND, |world| {
        assert!(world.sum_bps() <= RATE_BPS, "one node alone does not break the sum");
        let lease_ns = Settings::default().lease_ns;
        let cut_ns = world.now_ns - from_ns;
        if cut_ns < lease_ns - 200 * MS {
            assert_eq!(world.nodes[0].has_bps(), had_bps, "what was lent holds for the lease");
        }
        assert!(cut_ns < lease_ns + 100 * MS || world.nodes[0].has_bps() == world.nodes[0].safe_bps);
    });
    world.nodes[0].is_cut = false;
    world.nodes[0].demand_bps = RATE_BPS;
    world.run(3 * SECOND, |world| assert!(world.sum_bps() <= RATE_BPS));
    assert!(world.nodes.iter().all(|node| node.has_bps().abs_diff(RATE_BPS / 3) < RATE_BPS / 100));
}

#[test]
fn a_new_leader_learns_what_nodes_have_before_it_changes_anything() {
    let mut world = fair_world(3);
    world.nodes[1].demand_bps = 2 * RATE_BPS;
    world.run(4 * SECOND, |_| {});
    let before: Vec<u64> = world.nodes.iter().map(|node| node.has_bps()).collect();
    world.leader = None;
    world.run(2 * SECOND, |_| {});
    world.elect();
    world.run(10 * SECOND, |world| {
        let now: Vec<u64> = world.nodes.iter().map(|node| node.has_bps()).collect();
        assert_eq!(now, before);
    });
}

#[test]
fn another_network_knows_the_demands_of_the_one_before() {
    let mut world = fair_world(3);
    world.nodes[1].demand_bps = 2 * RATE_BPS;
    world.run(4 * SECOND, |_| {});
    world.put(tenant(3, RATE_BPS));
    world.run(SECOND, |world| assert!(world.sum_bps() <= RATE_BPS));
    assert!(world.nodes[1].has_bps() * 100 >= RATE_BPS * 98, "{}", world.nodes[1].has_bps());
    world.put(tenant(3, RATE_BPS / 2));
    world.run(SECOND, |world| assert!(world.sum_bps() <= RATE_BPS));
    assert!(world.sum_bps() <= RATE_BPS / 2);
    assert!(world.nodes[1].has_bps() * 100 >= RATE_BPS / 2 * 98, "{}", world.nodes[1].has_bps());
}

#[test]
fn a_lower_safe_rate_counts_when_the_node_has_heard_of_it() {
    let mut world = fair_world(3);
    (1..3).for_each(|node| world.nodes[node].demand_bps = RATE_BPS);
    world.run(4 * SECOND, |_| {});
    world.nodes[0].is_cut = true;
    world.run(8 * SECOND, |_| {});
    let mut network = tenant(3, RATE_BPS);
    network.classes[0].safe_bps = Some(RATE_BPS / 100);
    world.put(network);
    world.run(10 * SECOND, |world| assert!(world.sum_bps() <= RATE_BPS, "{}", world.sum_bps()));
    world.nodes[0].is_cut = false;
    world.nodes[0].safe_bps = RATE_BPS / 100;
    world.run(3 * SECOND, |world| assert!(world.sum_bps() <= RATE_BPS));
    assert!(world.passes_bps() * 100 >= RATE_BPS * 98, "{}", world.passes_bps());
}

#[test]
fn what_a_class_had_that_is_no_more_is_given_to_others_when_its_lease_is_over() {
    let mut world = fair_world(3);
    world.nodes[0].demand_bps = 2 * RATE_BPS;
    world.run(4 * SECOND, |_| {});
    world.nodes[0].is_cut = true;
    world.nodes[1].demand_bps = 2 * RATE_BPS;
    let mut network = tenant(3, RATE_BPS);
    network.classes.remove(0);
    network.aggregates[0].classes = vec![0, 1];
    world.put(network);
    world.run(12 * SECOND, |world| {
        assert!(world.nodes[0].is_lapsed() || world.sum_bps() <= RATE_BPS, "{}", world.sum_bps());
    });
    assert!(world.nodes[1].has_bps() * 100 >= RATE_BPS * 98);
}

#[test]
fn a_node_that_the_network_has_no_more_returns_what_it_has() {
    let mut world = fair_world(3);
    world.run(4 * SECOND, |_| {});
    world.nodes[0].is_cut = true;
    world.run(8 * SECOND, |_| {});
    assert!(world.nodes[0].is_lapsed());
    world.network.classes.remove(0);
    world.network.ports.remove(0);
    world.network.classes.iter_mut().zip(0..).for_each(|(class, port)| class.paths = vec![vec![port]]);
    world.network.aggregates[0].classes = vec![0, 1];
    world.elect();
    world.nodes[0].is_cut = false;
    world.run(4 * SECOND, |_| {});
    let holding = world.nodes[0].leases.holding().unwrap();
    assert!(!holding.lapsed && holding.limits.is_empty(), "{holding:?}");
}
