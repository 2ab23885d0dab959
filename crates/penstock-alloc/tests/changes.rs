// SPDX-License-Identifier: MIT OR Apache-2.0
//! One class at a time is all at once; and what is said to have changed is what changed.
#![allow(clippy::unwrap_used)]

mod common;

use common::random::{ANY, GBPS, Shape, networks};
use penstock_alloc::allocate;
use penstock_alloc::allocator::{Allocator, Change};
use penstock_alloc::delta::Delta;
use penstock_alloc::model::{Class, ClassId, Network};
use proptest::prelude::*;
use proptest::sample::Index;

/// A change to be: of which class, to what, and how.
type Step = (Index, Index, u8);

/// Classes to come are taken from a second network, whose paths are led over the ports of the first.
fn change(step: &Step, network: &Network, others: &[Class], count: usize) -> Change {
    let (at, other, kind) = step;
    let mut class = other.get(others).clone();
    let ports = u32::try_from(network.ports.len()).unwrap();
    for path in &mut class.paths {
        path.iter_mut().for_each(|port| *port %= ports);
        path.sort_unstable();
        path.dedup();
    }
    if network.classes.is_empty() || kind % 4 == 0 {
        class.name = format!("new{count}");
        return Change::Add(class);
    }
    let at = at.index(network.classes.len());
    let old = &network.classes[at];
    class.name.clone_from(&old.name);
    let id = ClassId::try_from(at).unwrap();
    match kind % 4 {
        1 => Change::Remove(id),
        2 => Change::Replace(id, Class { demand_bps: class.demand_bps, weight: class.weight, ..old.clone() }),
        _ => Change::Replace(id, class),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn changes_one_by_one_are_the_whole_at_once(
        network in networks(ANY),
        others in networks(ANY),
        steps in prop::collection::vec(any::<Step>(), 1..12),
    ) {
        let mut allocator = Allocator::new(network.clone());
        prop_assert_eq!(allocator.allocation(), allocate(&network));
        for (count, step) in steps.iter().enumerate() {
            let (before, was) = (allocator.network().clone(), allocator.allocation());
            allocator.change(change(step, &before, &others.classes, count));
            let now = allocator.allocation();
            prop_assert_eq!(&now, &allocate(allocator.network()));
            let delta = allocator.delta();
            prop_assert_eq!(&delta, &Delta::between((&before, &was), (allocator.network(), &now)));
            prop_assert_eq!(delta.added.len() + delta.changed.len() + delta.unchanged, now.limits.len());
        }
    }

    /// Many demands in one filling, with other changes between them; and limits are read one by one as all at once.
    #[test]
    fn demands_at_once_are_the_whole_at_once(
        network in networks(ANY),
        others in networks(ANY),
        rounds in prop::collection::vec((prop::collection::vec((any::<Index>(), prop::option::of(0..70u64)), 0..9), any::<Step>()), 1..6),
    ) {
        let mut allocator = Allocator::new(network);
        for (count, (demands, step)) in rounds.iter().enumerate() {
            if count % 2 == 1 {
                let change = change(step, allocator.network(), &others.classes, count);
                allocator.change(change);
            }
            let (before, was) = (allocator.network().clone(), allocator.allocation());
            if before.classes.is_empty() {
                continue;
            }
            let id = |at: &Index| ClassId::try_from(at.index(before.classes.len())).unwrap();
            let demands: Vec<_> = demands.iter().map(|(at, gbps)| (id(at), gbps.map(|gbps| gbps * GBPS))).collect();
            allocator.set_demands(&demands);
            let mut after = before.clone();
            demands.iter().for_each(|(class, demand_bps)| after.classes[*class as usize].demand_bps = *demand_bps);
            prop_assert_eq!(allocator.network(), &after);
            let now = allocator.allocation();
            prop_assert_eq!(&now, &allocate(&after));
            prop_assert_eq!(&allocator.delta(), &Delta::between((&before, &was), (&after, &now)));
            prop_assert_eq!(allocator.limits().collect::<Vec<_>>(), now.limits.clone());
            let last = ClassId::try_from(after.classes.len() - 1).unwrap();
            let of_last: Vec<_> = now.limits.iter().filter(|limit| limit.class == last).copied().collect();
            prop_assert_eq!(allocator.limits_of(last).collect::<Vec<_>>(), of_last);
        }
    }

    #[test]
    fn removing_and_adding_a_class_restores_what_was(network in networks(Shape { aggregates_max: 0, ..ANY }), class in any::<Index>()) {
        // It comes back as the last, so it is the last that goes, or else ties may fall another way.
        let mut network = network;
        let at = class.index(network.classes.len());
        let last = network.classes.remove(at);
        network.local.retain(|policy| policy.class as usize != at);
        network.local.iter_mut().filter(|policy| policy.class as usize > at).for_each(|policy| policy.class -= 1);
        network.classes.push(last.clone());
        let before = allocate(&network);
        let mut allocator = Allocator::new(network.clone());
        allocator.change(Change::Remove(ClassId::try_from(network.classes.len() - 1).unwrap()));
        allocator.change(Change::Add(last));
        prop_assert_eq!(allocator.allocation(), before);
        prop_assert_eq!(allocator.network(), &network);
    }
}

/// Classes that were replaced leave holes; when there are more of these than of what is in use, all is laid out anew.
#[test]
fn holes_are_closed() {
    let ports = [("p", 90_000), ("q", 50_000)];
    let classes = [common::class("a", 0, 1, &[&[0]]), common::class("b", 0, 2, &[&[0, 1], &[0]])];
    let mut allocator = Allocator::new(common::network(&ports, &classes));
    for round in 0..3000 {
        let class = Class { weight: 1 + round % 7, ..allocator.network().classes[1].clone() };
        allocator.change(if round % 50 == 0 { Change::Remove(0) } else { Change::Replace(1, class) });
        if round % 50 == 0 {
            let class = allocator.network().classes[0].clone();
            allocator.change(Change::Add(Class { name: format!("new{round}"), ..class }));
        }
        assert_eq!(allocator.allocation(), allocate(allocator.network()), "round {round}");
    }
}
