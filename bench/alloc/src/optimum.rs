// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sharing of small networks beside an LP solver (HiGHS): weighted max-min fairness, level by level, as a sequence of linear programs.
//!
//! A level is the largest t such that each class that is not bound yet can have weight * t; who can have no more than that, whatever the others
//! do, is bound. One path for each class: what is fair among paths of a class is not a question for max-min.
#![allow(clippy::print_stdout)] // It prints a table.

mod random;

use highs::{Col, RowProblem, Sense};
use penstock_alloc::allocate;
use penstock_alloc::model::{Class, Limit, LimitKind, Network, Port};
use random::Random;

const GBPS: u64 = 1_000_000_000;
const NETWORKS: u32 = 1000;
/// The solver's own tolerance is 1e-7.
const SAME: f64 = 1e-6;

fn main() {
    println!(
        "| classes weigh | networks | rates as the solver's | worst rate / the solver's | sum of rates / the solver's, least and most |"
    );
    println!("|---|---|---|---|---|");
    for (what, weight_max) in [("the same", 1), ("1 to 5", 5)] {
        let mut random = Random(7);
        let (mut same, mut worst, mut least, mut most) = (0, 1.0f64, f64::INFINITY, 0.0f64);
        for _ in 0..NETWORKS {
            let network = network(weight_max, &mut random);
            let best = max_min(&network);
            let own: Vec<f64> = allocate(&network).paths.iter().map(|paths| gbps(paths[0].rate_bps)).collect();
            let ratio = own.iter().zip(&best).filter(|(_, best)| **best > SAME).map(|(own, best)| own / best);
            worst = ratio.fold(worst, f64::min);
            same += u32::from(own.iter().zip(&best).all(|(own, best)| (own - best).abs() <= SAME * best.max(1.0)));
            let sum = own.iter().sum::<f64>() / best.iter().sum::<f64>();
            (least, most) = (least.min(sum), most.max(sum));
        }
        println!("| {what} | {NETWORKS} | {same} | {worst:.6} | {least:.6} {most:.6} |");
    }
}

/// Up to 12 ports and 12 classes of up to 4 ports, three priorities, a limit for a third.
fn network(weight_max: u32, random: &mut Random) -> Network {
    let count = 1 + random.below(12);
    let mut port = |id: u32| Port {
        name: format!("p{id}"),
        switch: "s".to_owned(),
        rate_bps: u64::from(30 + 10 * random.below(8)) * GBPS,
        buffer_bytes: 400_000,
    };
    let ports: Vec<Port> = (0..count).map(&mut port).collect();
    let classes = (0..1 + random.below(12)).map(|id| class(id, count, weight_max, random)).collect();
    Network { ports, classes, ..Network::default() }
}

fn class(id: u32, ports: u32, weight_max: u32, random: &mut Random) -> Class {
    let mut path: Vec<u32> = (0..1 + random.below(4)).map(|_| random.below(ports)).collect();
    path.sort_unstable();
    path.dedup();
    let limit = Limit { rate_bps: u64::from(1 + random.below(40)) * GBPS, kind: LimitKind::Soft };
    Class {
        name: format!("c{id}"),
        priority: random.below(3),
        weight: 1 + random.below(weight_max),
        limit: (random.below(3) == 0).then_some(limit),
        demand_bps: None,
        safe_bps: None,
        paths: vec![path],
    }
}

#[allow(clippy::cast_precision_loss)] // Below 2^53.
fn gbps(rate_bps: u64) -> f64 {
    rate_bps as f64 / 1e9
}

/// What each class has, Gbit/s.
fn max_min(network: &Network) -> Vec<f64> {
    let mut bound: Vec<Option<f64>> = vec![None; network.classes.len()];
    for priority in 0..3 {
        let mut free: Vec<usize> =
            (0..bound.len()).filter(|class| network.classes[*class].priority == priority).collect();
        while !free.is_empty() {
            let level = solve(network, &bound, &free, None);
            let more: Vec<f64> =
                free.iter().map(|class| solve(network, &bound, &free, Some((*class, level)))).collect();
            let least = more.iter().copied().fold(f64::INFINITY, f64::min);
            for (class, more) in free.iter().zip(&more) {
                let weight = f64::from(network.classes[*class].weight);
                bound[*class] = (*more <= least.max(0.0) + SAME * 1e-1).then_some(weight * level);
            }
            free.retain(|class| bound[*class].is_none());
        }
    }
    bound.into_iter().map(Option::unwrap_or_default).collect()
}

/// The largest level of the free ones; or, all having a level, how much more than that one of them can have.
fn solve(network: &Network, bound: &[Option<f64>], free: &[usize], beyond: Option<(usize, f64)>) -> f64 {
    let mut problem = RowProblem::default();
    let level = problem.add_column(if beyond.is_none() { 1.0 } else { 0.0 }, 0.0..);
    let rates: Vec<Col> = network
        .classes
        .iter()
        .zip(bound)
        .enumerate()
        .map(|(id, (class, bound))| {
            let limit = class.limit.map_or(f64::INFINITY, |limit| gbps(limit.rate_bps));
            let range = match bound {
                Some(rate) => *rate..=*rate,
                None if free.contains(&id) => 0.0..=limit,
                None => 0.0..=0.0,
            };
            problem.add_column(if beyond.is_some_and(|(only, _)| only == id) { 1.0 } else { 0.0 }, range)
        })
        .collect();
    for (id, port) in network.ports.iter().enumerate() {
        let here = network.classes.iter().zip(&rates);
        let here = here.filter(|(class, _)| class.paths[0].iter().any(|port| *port as usize == id));
        let row: Vec<(Col, f64)> = here.map(|(_, rate)| (*rate, 1.0)).collect();
        problem.add_row(..=gbps(port.rate_bps) * (1.0 + 1e-12), row);
    }
    for class in free {
        let weight = f64::from(network.classes[*class].weight);
        match beyond {
            None => problem.add_row(0.0.., [(rates[*class], 1.0), (level, -weight)]),
            Some((_, level)) => problem.add_row(weight * level * (1.0 - 1e-12).., [(rates[*class], 1.0)]),
        }
    }
    let mut model = problem.optimise(Sense::Maximise);
    model.make_quiet();
    let columns = model.solve().get_solution().columns().to_vec();
    match beyond {
        None => columns[0],
        Some((class, level)) => columns[1 + class] - f64::from(network.classes[class].weight) * level,
    }
}
