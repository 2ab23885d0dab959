// SPDX-License-Identifier: MIT OR Apache-2.0
//! What people are told of a leader and its nodes.

#![allow(clippy::unwrap_used)] // a test may panic

mod support;

use penstock_alloc::model::{Class, Limit, LimitKind};
use penstock_api::v1;
use penstock_controller::Settings;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use support::world::{FAIR, SECOND, World, tenant};

const RATE_BPS: u64 = 300_000_000;

fn standing(world: &World) -> v1::StandingReply {
    world.leader.as_ref().unwrap().standing(&v1::GetStandingRequest::default(), world.now_ns)
}

/// A member of an aggregate always has a rate; a class that gets all it asks for needs none.
#[test]
fn limits_are_counted_with_a_rate_and_without() {
    let mut network = tenant(3, RATE_BPS);
    let free = Class { name: "free".to_owned(), weight: 1, paths: vec![vec![1]], ..Class::default() };
    network.classes.push(free);
    let mut world = World::new(network, Settings::default(), FAIR, Xoshiro256PlusPlus::seed_from_u64(1));
    world.run(4 * SECOND, |_| {});
    let standing = standing(&world);
    assert_eq!((standing.limits, standing.limits_without_rate), (3, 1));
    let of_nodes: Vec<_> = standing.nodes.iter().map(|node| (node.limits, node.limits_without_rate)).collect();
    assert_eq!(of_nodes, [(1, 0), (1, 1), (1, 0)]);
}

/// Another version of this program may have stored what this one refuses.
#[test]
fn hard_limits_that_do_not_fit_are_told_as_long_as_they_are_kept() {
    let mut network = tenant(2, RATE_BPS);
    for class in &mut network.classes {
        class.limit = Some(Limit { rate_bps: RATE_BPS, kind: LimitKind::Hard });
    }
    let mut world = World::new(network, Settings::default(), FAIR, Xoshiro256PlusPlus::seed_from_u64(1));
    let told = "aggregate `t`: hard limits of 600Mbit/s in all, above its rate of 300Mbit/s";
    assert_eq!(standing(&world).warnings, [told]);
    world.put(tenant(2, RATE_BPS));
    assert_eq!(standing(&world).warnings, Vec::<String>::new());
}
