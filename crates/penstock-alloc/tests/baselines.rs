// SPDX-License-Identifier: MIT OR Apache-2.0
//! The baselines as the paper has them, and that nobody flows above what may flow.
#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use common::{class, limited, network};
use penstock_alloc::allocate;
use penstock_alloc::baselines::{edge, local};
use penstock_alloc::compare::{self, Planned};
use penstock_alloc::model::{LimitKind, LocalPolicy, Network};
use penstock_alloc::topology::Generator;
use proptest::prelude::*;

const GBPS: u64 = 1_000_000_000;

/// Figure 11b, without what is not contended: h1-l1, h3-l2, h4-l2, s1-l2 and s2-l3.
fn figure_11() -> Network {
    let ports = ["source", "of2", "of3", "shared", "free"].map(|name| (name, 100 * GBPS));
    network(
        &ports,
        &[class("t1", 0, 1, &[&[0, 3], &[0, 4]]), class("t2", 1, 2, &[&[1, 3]]), class("t3", 1, 3, &[&[2, 3]])],
    )
}

/// 6.3.2: the local assignment gives each of tenant 1's paths all of its port, and nothing to tenants 2 and 3.
#[test]
fn local_assignment_wastes_half_of_the_shared_port() {
    let network = figure_11();
    let local = local(&network);
    let limits: Vec<_> = local.limits.iter().map(|limit| (limit.class, limit.port, limit.rate_bps / GBPS)).collect();
    assert_eq!(limits, [(0, 0, 100), (0, 3, 100), (0, 4, 100), (1, 1, 100), (1, 3, 0), (2, 2, 100), (2, 3, 0)]);
    assert_eq!(local.paths_bps, [vec![50 * GBPS, 50 * GBPS], vec![0], vec![0]]);
    let allocation = allocate(&network);
    let plan = Planned { network: &network, allocation: &allocation };
    let (global, local) = (compare::global(plan, None), compare::local(plan, None));
    assert_eq!((global.flow_bps / 1_000_000_000, local.flow_bps / 1_000_000_000), (150, 100));
    let short: Vec<_> = local.short.iter().map(|short| (short.class, short.due_bps / GBPS, short.gets_bps)).collect();
    assert_eq!(short, [(2, 30, 0), (1, 20, 0)]);
    assert!(local.over.is_empty() && global.short.is_empty());
}

/// 6.3.3: on 10 leaves, 5 spines and 100 servers at worst 9900 limiters of the edge are updated, and 400 in the network: two tenants at
/// 100 + 50 + 50 ports of switches.
#[test]
fn the_papers_worst_case_has_9900_limiters_at_the_edge_and_400_at_switches() {
    let words = "leaf-spine:leaves=10,spines=5,hosts=10,traffic=all-to-all,tenants=2";
    let network = words.parse::<Generator>().unwrap().network().unwrap();
    let allocation = allocate(&network);
    assert_eq!(edge(&network, &allocation).len(), 9_900);
    let local = local(&network);
    let of_switches = local.limits.iter().filter(|limit| {
        let switch = &network.ports[limit.port as usize].switch;
        !switch.starts_with('h')
    });
    assert_eq!(of_switches.count(), 400);
}

#[test]
fn hard_limits_that_do_not_fit_lose_in_proportion() {
    let mut network = network(&[("p", 90 * GBPS)], &[class("a", 0, 1, &[&[0]]), class("b", 0, 1, &[&[0]])]);
    network.classes[0].limit = limited(40 * GBPS, LimitKind::Hard);
    network.classes[1].limit = limited(80 * GBPS, LimitKind::Hard);
    let local = local(&network);
    assert_eq!(local.offered_bps, [120 * GBPS]);
    assert_eq!(local.paths_bps, [vec![30 * GBPS], vec![60 * GBPS]]);
}

#[test]
fn a_local_policy_holds_where_it_is() {
    let mut network = figure_11();
    network.local = vec![LocalPolicy { port: 3, class: 0, priority: Some(1), weight: Some(5), limit: None }];
    let limits = local(&network).limits;
    let at = |class, port| limits.iter().find(|limit| (limit.class, limit.port) == (class, port)).unwrap().rate_bps;
    assert_eq!([at(0, 3), at(1, 3), at(2, 3)].map(|rate_bps| rate_bps / GBPS), [50, 20, 30]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Local limits fit each port and fill it when somebody wants it; what flows fits, and never more than the class may have anywhere.
    #[test]
    fn what_flows_locally_fits(pairs in 1_u32..60, seed in any::<u64>()) {
        let words = format!("leaf-spine:leaves=3,spines=2,hosts=2,traffic=random,pairs={pairs},weights=1-5,priorities=3,seed={seed}");
        let network = words.parse::<Generator>().unwrap().network().unwrap();
        let local = local(&network);
        let mut sums = vec![0; network.ports.len()];
        for limit in &local.limits {
            sums[limit.port as usize] += limit.rate_bps;
        }
        for (port, sum) in network.ports.iter().zip(&sums) {
            prop_assert!(*sum == 0 || (port.rate_bps - sum) < 1_000, "{} has {sum}", port.name);
        }
        let mut flows = vec![0; network.ports.len()];
        for (class, rates) in network.classes.iter().zip(&local.paths_bps) {
            for (path, rate_bps) in class.paths.iter().zip(rates) {
                path.iter().for_each(|port| flows[*port as usize] += rate_bps);
            }
        }
        prop_assert_eq!(&flows, &local.offered_bps);
        prop_assert!(flows.iter().zip(&network.ports).all(|(flow, port)| *flow <= port.rate_bps));
        let plan = allocate(&network);
        let edge: u64 = edge(&network, &plan).iter().map(|limit| limit.rate_bps).sum();
        prop_assert_eq!(edge, plan.paths.iter().flatten().map(|path| path.rate_bps).sum::<u64>());
    }
}
