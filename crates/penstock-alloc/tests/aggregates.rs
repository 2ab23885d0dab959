// SPDX-License-Identifier: MIT OR Apache-2.0
//! Aggregates: what their members get together, which limits they have where their paths begin, and what these fall back to.
#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use std::collections::BTreeMap;

use common::exact::{Rate, exact, whole};
use common::random::{ANY, GBPS, Shape, networks};
use common::{class, limited, network, rates};
use num_traits::{Signed, Zero};
use penstock_alloc::allocation::{Allocation, Bottleneck};
use penstock_alloc::allocator::{Allocator, Change};
use penstock_alloc::model::{Aggregate, ClassId, LimitKind, LocalPolicy, Network, PortId};
use penstock_alloc::{allocate, problems};
use proptest::prelude::*;

fn aggregate(name: &str, gbps: u64, classes: &[ClassId]) -> Aggregate {
    Aggregate { name: name.to_owned(), rate_bps: gbps * GBPS, classes: classes.to_vec() }
}

/// Three gateways of 100 Gbit/s with a member each, of one aggregate of 90; and who else is there.
fn gateways(weights: [u32; 3]) -> Network {
    let ports = [("gw1", 100 * GBPS), ("gw2", 100 * GBPS), ("gw3", 100 * GBPS)];
    let member = |at: u32| class(["a", "b", "c"][at as usize], 0, weights[at as usize], &[&[at]]);
    let mut network = network(&ports, &[member(0), member(1), member(2), class("other", 0, 1, &[&[0]])]);
    network.aggregates = vec![aggregate("t7", 90, &[0, 1, 2])];
    network
}

fn placed(allocation: &Allocation) -> Vec<(ClassId, PortId, u64)> {
    allocation.limits.iter().map(|limit| (limit.class, limit.port, limit.rate_bps / GBPS)).collect()
}

#[test]
fn members_share_their_aggregate_by_weight_and_others_have_the_rest_of_a_port() {
    let allocation = allocate(&gateways([1, 1, 1]));
    assert_eq!(rates(&allocation), [[30], [30], [30], [70]].map(|rates| rates.map(|gbps| gbps * GBPS)));
    assert_eq!(placed(&allocation), [(0, 0, 30), (1, 1, 30), (2, 2, 30), (3, 0, 70)]);
    let bottlenecks: Vec<_> = allocation.paths.iter().map(|paths| paths[0].bottleneck).collect();
    let t7 = Bottleneck::Aggregate(0);
    assert_eq!(bottlenecks, [t7, t7, t7, Bottleneck::Port(0)]);
    assert_eq!(allocation.aggregates_used_bps, [90 * GBPS]);
    assert_eq!(
        rates(&allocate(&gateways([3, 2, 1])))[..3],
        [[45], [30], [15]].map(|rates| rates.map(|gbps| gbps * GBPS))
    );
}

#[test]
fn earlier_priorities_have_an_aggregate_first_as_they_have_a_port() {
    let mut network = gateways([1, 1, 1]);
    network.classes[1].priority = 1;
    network.classes[2].priority = 1;
    network.classes[0].limit = limited(50 * GBPS, LimitKind::Soft);
    assert_eq!(rates(&allocate(&network))[..3], [[50], [20], [20]].map(|rates| rates.map(|gbps| gbps * GBPS)));
    // A local priority holds at its port only: a has its turn with the others, and comes first in the aggregate.
    network.classes[3].demand_bps = Some(10 * GBPS);
    network.local = vec![LocalPolicy { port: 0, class: 0, priority: Some(1), weight: None, limit: None }];
    network.classes[0].limit = None;
    assert_eq!(rates(&allocate(&network))[..3], [[90], [0], [0]].map(|rates| rates.map(|gbps| gbps * GBPS)));
}

/// What is spare goes to those who have all that they asked for, by weight, as far as their limits and ports go.
#[test]
fn what_is_spare_is_added_where_it_may_be_asked_for() {
    let mut network = gateways([1, 2, 3]);
    for (class, gbps) in network.classes[..3].iter_mut().zip([10, 0, 20]) {
        class.demand_bps = Some(gbps * GBPS);
    }
    // 60 are spare, of which 10, 20 and 30.
    assert_eq!(placed(&allocate(&network))[..3], [(0, 0, 20), (1, 1, 20), (2, 2, 50)]);
    // c may have 25 of its limit, 5 more than it asks for: the others have the rest.
    network.classes[2].limit = limited(25 * GBPS, LimitKind::Soft);
    let allocation = allocate(&network);
    assert_eq!(allocation.limits[2].rate_bps, 25 * GBPS);
    let sum_bps: u64 = allocation.limits[..3].iter().map(|limit| limit.rate_bps).sum();
    assert_eq!((allocation.limits[0].rate_bps / 1000, sum_bps), (28_333_333, 90 * GBPS));
    // b asks for more than its port has: it is held there, and nothing is added.
    network.ports[1].rate_bps = 5 * GBPS;
    network.classes[1].demand_bps = None;
    assert_eq!(placed(&allocate(&network))[..3], [(0, 0, 60), (1, 1, 5), (2, 2, 25)]);
}

#[test]
fn a_member_of_several_aggregates_has_the_least_of_what_they_add() {
    let mut network = gateways([1, 1, 1]);
    network.classes[..3].iter_mut().for_each(|class| class.demand_bps = Some(0));
    network.aggregates.push(aggregate("t8", 40, &[1, 2]));
    // t7 adds 30 to each, t8 20: what t8 keeps from b and c is nobody's.
    assert_eq!(placed(&allocate(&network))[..3], [(0, 0, 30), (1, 1, 20), (2, 2, 20)]);
}

/// A limit is one for each port; what a class may have of an aggregate is one for all of its paths.
#[test]
fn a_member_that_begins_at_several_ports_has_a_limit_at_each() {
    let ports = [("gw1", 100 * GBPS), ("gw2", 100 * GBPS), ("far", 100 * GBPS)];
    let mut network = network(&ports, &[class("a", 0, 1, &[&[0, 2], &[1, 2], &[1]]), class("b", 0, 1, &[&[2]])]);
    network.aggregates = vec![aggregate("t7", 90, &[0])];
    let allocation = allocate(&network);
    assert_eq!(rates(&allocation), [vec![25 * GBPS, 25 * GBPS, 40 * GBPS], vec![50 * GBPS]]);
    // The port behind holds a back as it would any class.
    assert_eq!(placed(&allocation), [(0, 0, 25), (0, 1, 65), (0, 2, 50), (1, 2, 50)]);
    network.classes[0].demand_bps = Some(10 * GBPS);
    let limits = placed(&allocate(&network));
    // 5 + 10 are asked for, as it may have 10 at each port and 10 at the far one; the rest is halved.
    assert_eq!(limits[..2], [(0, 0, 42), (0, 1, 47)], "{limits:?}");
}

/// Reserved as at a port, if it is hard wherever its paths begin.
#[test]
fn a_hard_limit_is_reserved_in_the_aggregate() {
    let mut network = gateways([1, 1, 1]);
    network.classes[0].limit = limited(60 * GBPS, LimitKind::Hard);
    network.classes[0].demand_bps = Some(10 * GBPS);
    let allocation = allocate(&network);
    assert_eq!(rates(&allocation)[..3], [[10], [15], [15]].map(|rates| rates.map(|gbps| gbps * GBPS)));
    assert_eq!(placed(&allocation)[..3], [(0, 0, 60), (1, 1, 15), (2, 2, 15)]);
    assert!(allocation.warnings.is_empty());
    network.classes[1].limit = limited(40 * GBPS, LimitKind::Hard);
    let said = "aggregate `t7`: hard limits of 100Gbit/s in all, above its rate of 90Gbit/s";
    assert_eq!((allocate(&network).warnings, problems(&network)), (vec![said.to_owned()], vec![said.to_owned()]));
    // Hard at one of two ports is reserved at that port, and shares the aggregate.
    network.classes[1] = class("b", 0, 1, &[&[1], &[2]]);
    network.local = vec![LocalPolicy {
        port: 1,
        class: 1,
        priority: None,
        weight: None,
        limit: limited(40 * GBPS, LimitKind::Hard),
    }];
    let allocation = allocate(&network);
    assert_eq!(rates(&allocation)[1..3], [vec![15 * GBPS / 2; 2], vec![15 * GBPS]]);
    assert_eq!(allocation.limits[1].rate_bps, 15 * GBPS / 2);
}

#[test]
fn safe_rates_are_even_parts_unless_they_are_said() {
    let mut network = gateways([1, 5, 1]);
    assert_eq!(
        network.all_safe_bps(),
        [Some(30), Some(30), Some(30), None].map(|safe| safe.map(|gbps: u64| gbps * GBPS))
    );
    network.aggregates.push(aggregate("t8", 20, &[1]));
    network.classes[2].limit = limited(7 * GBPS, LimitKind::Soft);
    network.classes[3].safe_bps = Some(GBPS);
    let safe = [Some(30), Some(20), Some(7), Some(1)].map(|safe| safe.map(|gbps: u64| gbps * GBPS));
    assert_eq!(network.all_safe_bps(), safe);
    assert_eq!((0..4).map(|class| network.safe_bps(class)).collect::<Vec<_>>(), safe);
    assert_eq!(allocate(&network).warnings, Vec::<String>::new());
    network.classes[0].safe_bps = Some(64 * GBPS);
    let said = "aggregate `t7`: safe rates of 91Gbit/s in all, above its rate of 90Gbit/s";
    assert_eq!(allocate(&network).warnings, [said]);
    assert_eq!(problems(&network), Vec::<String>::new());
    // One limit for each port that paths begin at, and a safe rate for each limit.
    let mut network = gateways([1, 1, 1]);
    network.classes[0].paths = vec![vec![0], vec![1], vec![1, 2]];
    assert_eq!(network.safe_bps(0), Some(90 * GBPS / 4));
    let passes = "class `a`: paths of it begin at the port `gw2` and others pass it; as a member of an aggregate it has there what begins there";
    network.classes[0].paths = vec![vec![0, 1], vec![1]];
    assert_eq!(allocate(&network).warnings, [passes]);
}

#[test]
fn who_goes_goes_from_its_aggregates_and_who_comes_is_in_none() {
    let mut allocator = Allocator::new(gateways([1, 1, 1]));
    allocator.change(Change::Remove(0));
    assert_eq!(allocator.network().aggregates[0].classes, [0, 1]);
    assert_eq!(rates(&allocator.allocation())[..2], [[45 * GBPS], [45 * GBPS]]);
    allocator.change(Change::Add(class("new", 0, 1, &[&[0]])));
    allocator.change(Change::Replace(1, class("c", 0, 2, &[&[2]])));
    assert_eq!(rates(&allocator.allocation()), [[30], [60], [50], [50]].map(|rates| rates.map(|gbps| gbps * GBPS)));
    for _ in 0..2 {
        allocator.change(Change::Remove(0));
    }
    assert_eq!(allocator.network().aggregates[0].classes, []);
    assert_eq!(allocator.allocation(), allocate(allocator.network()));
}

/// What members may have at the ports that their paths begin at, from the definition in rationals: what these paths get, and what is spare.
fn first_limits(network: &Network) -> BTreeMap<(usize, PortId), Rate> {
    let exact = exact(network);
    let ports = u32::try_from(network.ports.len()).unwrap();
    let mut got: BTreeMap<(usize, PortId), Rate> = BTreeMap::new();
    let mut room: BTreeMap<(usize, PortId), Rate> = BTreeMap::new();
    let mut is_content: BTreeMap<(usize, PortId), bool> = BTreeMap::new();
    let is_member =
        |class: usize| network.aggregates.iter().any(|one| one.classes.iter().any(|member| *member as usize == class));
    for (path, rate) in exact.rate.iter().filter(|(path, _)| is_member(path.0)) {
        let (own, port) = (&network.classes[path.0], network.classes[path.0].paths[path.1][0]);
        *got.entry((path.0, port)).or_insert_with(Rate::zero) += rate;
        let limit = |port: PortId| {
            let local = network.local.iter().find(|local| local.port == port && local.class as usize == path.0);
            local.and_then(|local| local.limit).or(own.limit).map(|limit| limit.rate_bps)
        };
        let has_all = |port: &PortId| {
            own.demand_bps.is_some_and(|demand| {
                limit(*port).is_none_or(|limit| demand < limit) && exact.used(*port, path.0) >= whole(demand)
            })
        };
        *is_content.entry((path.0, port)).or_insert(true) &= own.paths[path.1].iter().any(has_all);
        let most = limit(port).unwrap_or(u64::MAX).min(network.ports[port as usize].rate_bps);
        room.insert((path.0, port), whole(most));
    }
    let mut added: BTreeMap<(usize, PortId), Rate> = BTreeMap::new();
    for (id, aggregate) in (ports..).zip(&network.aggregates) {
        let soft = |class: usize| exact.policy(id, class).hard.is_none();
        let members: Vec<(usize, PortId)> = got
            .keys()
            .filter(|at| aggregate.classes.iter().any(|class| *class as usize == at.0) && soft(at.0))
            .copied()
            .collect();
        let reserved: Rate = aggregate.classes.iter().filter_map(|class| exact.policy(id, *class as usize).hard).sum();
        let taken: Rate = members.iter().map(|at| &got[at]).sum();
        let mut spare = (whole(aggregate.rate_bps) - reserved - taken).max(Rate::zero());
        let weight = |at: &(usize, PortId)| {
            let parts = is_content.iter().filter(|(other, is)| other.0 == at.0 && **is).count() as u64;
            whole(network.classes[at.0].weight.into()) / whole(parts)
        };
        let mut open: Vec<_> = members.iter().filter(|at| is_content[at]).copied().collect();
        let mut adds: BTreeMap<(usize, PortId), Rate> = members.iter().map(|at| (*at, Rate::zero())).collect();
        // Whoever cannot take its part has what it can; then the others are asked again.
        loop {
            let weights: Rate = open.iter().map(weight).sum();
            let part = |at: &(usize, PortId)| &spare * weight(at) / &weights;
            let left = |at: &(usize, PortId)| (&room[at] - &got[at]).max(Rate::zero());
            let Some(full) = open.iter().position(|at| left(at) < part(at)) else {
                open.iter().for_each(|at| drop(adds.insert(*at, part(at))));
                break;
            };
            let at = open.remove(full);
            spare -= left(&at);
            adds.insert(at, left(&at));
        }
        for (at, add) in adds {
            let least = added.get(&at).map_or(add.clone(), |before| before.clone().min(add));
            added.insert(at, least);
        }
    }
    let sum = |(at, add): ((usize, PortId), Rate)| {
        let sum = &got[&at] + add;
        (at, sum)
    };
    added.into_iter().map(sum).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn members_have_what_the_definition_and_the_spare_give_them(network in networks(ANY)) {
        let allocation = allocate(&network);
        let limit = |at: (usize, PortId)| allocation.limits.iter().find(|limit| (limit.class as usize, limit.port) == at);
        for (at, rate) in first_limits(&network) {
            let got_bps = limit(at).unwrap().rate_bps;
            // Weights are divided in parts of 2^16 of one.
            let slack = whole(2 + 12) + &rate / whole(1 << 12);
            prop_assert!((&rate - whole(got_bps)).abs() <= slack, "class {} at port {}: {got_bps} bit/s, not {rate}", at.0, at.1);
        }
    }

    /// What enters the network of an aggregate is never above its rate, whatever its members come to ask for. A member's paths have all a limit where
    /// they begin.
    #[test]
    fn the_first_limits_of_members_are_the_aggregates_rate_at_most(network in networks(ANY)) {
        let allocation = allocate(&network);
        let problems = problems(&network);
        for aggregate in &network.aggregates {
            let mut sum_bps = 0;
            for class in &aggregate.classes {
                for port in network.classes[*class as usize].first_ports() {
                    let limit = allocation.limits.iter().find(|limit| (limit.class, limit.port) == (*class, port));
                    sum_bps += limit.unwrap().rate_bps;
                }
            }
            let is_problem = problems.iter().any(|problem| problem.contains(&format!("aggregate `{}`", aggregate.name)));
            prop_assert!(is_problem || sum_bps <= aggregate.rate_bps, "{}: {sum_bps}", aggregate.name);
        }
    }

    /// With demand that knows no end: what is left of an aggregate could pass no port, or no other aggregate, of any of its members; and no limit is
    /// above what its class got.
    #[test]
    fn members_fill_an_aggregate_as_far_as_ports_allow(network in networks(Shape { has_limits: false, has_local: false, ..ANY })) {
        let allocation = allocate(&network);
        for (aggregate, used_bps) in network.aggregates.iter().zip(&allocation.aggregates_used_bps) {
            let paths = |class: &ClassId| &network.classes[*class as usize].paths;
            let slack_bps = aggregate.classes.iter().map(|class| 2 + paths(class).len() as u64).sum::<u64>();
            let is_full = used_bps + slack_bps >= aggregate.rate_bps;
            let is_port = |port: PortId| allocation.used_bps[port as usize] + 100 >= network.ports[port as usize].rate_bps;
            let other = |class: ClassId| {
                let others = network.aggregates.iter().zip(&allocation.aggregates_used_bps);
                others.into_iter().any(|(other, used)| other.classes.contains(&class) && used + 100 >= other.rate_bps)
            };
            for class in &aggregate.classes {
                let is_held = |path: &Vec<PortId>| path.iter().any(|port| is_port(*port)) || other(*class);
                prop_assert!(is_full || paths(class).iter().all(is_held), "class {class}");
            }
        }
        for limit in &allocation.limits {
            let class = &network.classes[limit.class as usize];
            let paths = class.paths.iter().zip(&allocation.paths[limit.class as usize]);
            let there = paths.filter(|(path, _)| path.contains(&limit.port)).map(|(_, path)| path.rate_bps + 1).sum::<u64>();
            prop_assert!(limit.rate_bps <= there);
        }
    }
}
