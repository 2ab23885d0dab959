// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random small networks, in which ties are common.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;

use penstock_alloc::model::{Aggregate, Class, Limit, LimitKind, LocalPolicy, Network};
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

/// So that a bit/s of rounding is nothing beside what rates differ by.
pub const GBPS: u64 = 1_000_000_000;

/// What a random network may have.
#[derive(Clone, Copy)]
pub struct Shape {
    pub ports_max: usize,
    pub classes_max: usize,
    pub paths_max: usize,
    pub weight_max: u32,
    pub priority_max: u32,
    pub has_limits: bool,
    pub has_hard: bool,
    pub has_local: bool,
    pub aggregates_max: usize,
}

/// All that there is.
pub const ANY: Shape = Shape {
    ports_max: 12,
    classes_max: 12,
    paths_max: 5,
    weight_max: 5,
    priority_max: 2,
    has_limits: true,
    has_hard: true,
    has_local: true,
    aggregates_max: 3,
};

pub fn networks(shape: Shape) -> impl Strategy<Value = Network> {
    (1..=shape.ports_max, 1..=shape.classes_max).prop_flat_map(move |(ports, classes)| {
        let rates =
            prop_oneof![Just(vec![60; ports]), prop::collection::vec(select(vec![30u64, 60, 60, 84, 100, 120]), ports)];
        let classes = prop::collection::vec(class(shape, ports), classes);
        let local = prop::collection::vec(local(shape), if shape.has_local { 0..6 } else { 0..1 });
        let aggregates = prop::collection::vec(aggregate(), 0..=shape.aggregates_max);
        (rates, classes, local, aggregates).prop_map(build)
    })
}

fn class(shape: Shape, ports: usize) -> impl Strategy<Value = Class> {
    let ids: Vec<u32> = (0..u32::try_from(ports).unwrap()).collect();
    let path = subsequence(ids, 1..=ports.min(4)).prop_shuffle();
    let demand = if shape.has_limits { prop::option::weighted(0.2, 0..70u64).boxed() } else { Just(None).boxed() };
    let paths = prop_oneof![
        2 => prop::collection::vec(path.clone(), 1),
        3 => prop::collection::vec(path, 1..=shape.paths_max),
    ];
    (0..=shape.priority_max, 1..=shape.weight_max, limit(shape), demand, paths).prop_map(
        |(priority, weight, limit, demand, paths)| Class {
            name: String::new(),
            priority,
            weight,
            limit,
            demand_bps: demand.map(|gbps| gbps * GBPS),
            safe_bps: None,
            paths,
        },
    )
}

fn limit(shape: Shape) -> impl Strategy<Value = Option<Limit>> {
    if !shape.has_limits {
        return Just(None).boxed();
    }
    let kinds =
        if shape.has_hard { vec![LimitKind::Soft, LimitKind::Soft, LimitKind::Hard] } else { vec![LimitKind::Soft] };
    prop::option::weighted(
        0.3,
        (1..40u64, select(kinds)).prop_map(|(gbps, kind)| Limit { rate_bps: gbps * GBPS, kind }),
    )
    .boxed()
}

type Local = (Index, Index, Option<u32>, Option<u32>, Option<Limit>);

fn local(shape: Shape) -> impl Strategy<Value = Local> {
    let priority = prop::option::of(0..=shape.priority_max);
    (any::<Index>(), any::<Index>(), priority, prop::option::of(1..=shape.weight_max), limit(shape))
}

/// Its rate, and a few classes, some of them perhaps the same.
fn aggregate() -> impl Strategy<Value = (u64, Vec<Index>)> {
    (select(vec![20u64, 30, 60, 60, 90, 200]), prop::collection::vec(any::<Index>(), 1..5))
}

type Parts = (Vec<u64>, Vec<Class>, Vec<Local>, Vec<(u64, Vec<Index>)>);

fn build((rates, mut classes, local, aggregates): Parts) -> Network {
    for (id, class) in classes.iter_mut().enumerate() {
        class.name = format!("c{id}");
    }
    let mut taken = BTreeSet::new();
    let mut policies = Vec::new();
    for (class, port, priority, weight, limit) in local {
        let class = class.index(classes.len());
        let port = *port.get(&classes[class].paths.concat());
        if taken.insert((class, port)) {
            policies.push(LocalPolicy { port, class: u32::try_from(class).unwrap(), priority, weight, limit });
        }
    }
    let ports = rates.iter().enumerate().map(|(id, gbps)| super::port(&format!("p{id}"), gbps * GBPS)).collect();
    let members = |members: Vec<Index>| {
        let members: BTreeSet<usize> = members.iter().map(|member| member.index(classes.len())).collect();
        members.into_iter().map(|member| u32::try_from(member).unwrap()).collect()
    };
    let aggregates = aggregates.into_iter().enumerate().map(|(id, (gbps, classes))| Aggregate {
        name: format!("t{id}"),
        rate_bps: gbps * GBPS,
        classes: members(classes),
    });
    let aggregates = aggregates.collect();
    Network { ports, classes, local: policies, aggregates }
}
