// SPDX-License-Identifier: MIT OR Apache-2.0
//! Well-known topologies: as many ports and shortest paths as they are known to have, and files that can be read.
#![allow(clippy::unwrap_used)] // a test may panic

use penstock_alloc::model::Network;
use penstock_alloc::topology::Generator;
use penstock_policy::diagnostics::Source;
use std::collections::{BTreeMap, HashSet};

fn made(words: &str) -> Network {
    let network = words.parse::<Generator>().unwrap().network().unwrap();
    let text = network.to_yaml();
    let read = Network::parse(&Source::new("n.yaml", text)).map_err(|errors| errors.to_string());
    assert_eq!(read.as_ref(), Ok(&network), "{words}");
    network
}

fn refused(words: &str) -> String {
    let made = words.parse::<Generator>().and_then(|generator| generator.network());
    let problem = made.err().unwrap_or_else(|| panic!("{words} passes"));
    format!("{}; {}", problem.message, problem.help)
}

/// How many pairs have how many paths of how many ports.
fn ways(network: &Network) -> BTreeMap<(usize, usize), usize> {
    let mut ways = BTreeMap::new();
    for class in &network.classes {
        assert!(class.paths.iter().all(|path| path.len() == class.paths[0].len()), "{} has longer ways", class.name);
        assert_eq!(
            class.paths.iter().collect::<HashSet<_>>().len(),
            class.paths.len(),
            "{} has a way twice",
            class.name
        );
        *ways.entry((class.paths.len(), class.paths[0].len())).or_default() += 1;
    }
    ways
}

/// Section 6.3.3: 10 leaves, 5 spines, 100 servers: 100 + 50 + 50 ports of switches, and those of the servers; 9900 pairs.
#[test]
fn leaf_spine_has_one_path_a_spine() {
    let network = made("leaf-spine:leaves=10,spines=5,hosts=10,traffic=all-to-all");
    assert_eq!(network.ports.len(), 300);
    assert_eq!(ways(&network), [((1, 2), 10 * 10 * 9), ((5, 4), 100 * 90)].into());
    let path: Vec<&str> =
        network.classes[98].paths[2].iter().map(|port| network.ports[*port as usize].name.as_str()).collect();
    assert_eq!((network.classes[98].name.as_str(), path), ("h1-h100", vec!["h1-l1", "l1-s3", "s3-l10", "l10-h100"]));
    let switches: Vec<&str> =
        network.classes[98].paths[2].iter().map(|port| network.ports[*port as usize].switch.as_str()).collect();
    assert_eq!(switches, ["h1", "l1", "s3", "l10"]);
}

/// Section 6.3.1's network: 128 hosts in a fat tree; k = 8.
#[test]
fn fat_tree_has_k_squared_quarters_of_paths_between_pods() {
    let network = made("fat-tree:k=8,traffic=all-to-all");
    assert_eq!(network.ports.len(), 3 * 128 * 2);
    assert_eq!(ways(&network), [((1, 2), 128 * 3), ((4, 4), 128 * 12), ((16, 6), 128 * 112)].into());
}

#[test]
fn dumbbell_has_one_link_for_all() {
    let network = made("dumbbell:hosts=3,rate=10Gbit/s,uplink=1Gbit/s");
    let middle = network.ports.iter().position(|port| port.name == "left-right").unwrap();
    assert_eq!((network.ports.len(), network.ports[middle].rate_bps), (14, 1_000_000_000));
    assert_eq!(ways(&network), [((1, 3), 3)].into());
    assert!(network.classes.iter().all(|class| class.paths[0][1] as usize == middle));
    assert_eq!(network.ports.iter().filter(|port| port.rate_bps == 10_000_000_000).count(), 12);
}

#[test]
fn ixp_has_members_of_different_rates() {
    let network = made("ixp:members=40,edges=4,cores=2,traffic=gravity,load=50");
    let rates: HashSet<u64> =
        network.ports.iter().filter(|port| port.name.starts_with('m')).map(|port| port.rate_bps).collect();
    assert_eq!(rates, [1, 10, 100].map(|gbps| gbps * 1_000_000_000).into());
    let carried: u64 = network.ports.iter().filter(|port| port.name.starts_with('m')).map(|port| port.rate_bps).sum();
    let asked: u64 = network.classes.iter().map(|class| class.demand_bps.unwrap()).sum();
    assert!(asked.abs_diff(carried / 2) < carried / 1_000, "{asked} of {carried}");
    assert_eq!(ways(&network), [((1, 2), 40 * 9), ((2, 4), 40 * 30)].into());
}

#[test]
fn traffic_is_what_it_is_called() {
    let ends = |network: &Network| -> Vec<(u32, u32)> {
        let ends = network.classes.iter().map(|class| (class.paths[0][0], *class.paths[0].last().unwrap()));
        ends.collect()
    };
    let permutation = ends(&made("leaf-spine:leaves=6,traffic=permutation,seed=3"));
    let (from, to): (HashSet<u32>, HashSet<u32>) = permutation.iter().copied().unzip();
    assert_eq!((permutation.len(), from.len(), to.len()), (24, 24, 24));
    let incast = ends(&made("leaf-spine:traffic=incast,senders=9"));
    let (from, to): (HashSet<u32>, HashSet<u32>) = incast.iter().copied().unzip();
    assert_eq!((incast.len(), from.len(), to.len()), (9, 9, 1));
    assert_eq!(made("leaf-spine:traffic=random,pairs=500").classes.len(), 500);
    let tenants = made("leaf-spine:traffic=all-to-all,tenants=3,weights=2-5,priorities=2");
    assert_eq!(tenants.classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>(), ["t1", "t2", "t3"]);
    assert_eq!(tenants.classes.iter().map(|class| class.paths.len()).sum::<usize>(), 16 * 3 + 16 * 12 * 2);
    assert!(tenants.classes.iter().all(|class| (2..=5).contains(&class.weight) && class.priority < 2));
}

#[test]
fn paths_are_drawn_from_all_shortest_ones() {
    let few = made("fat-tree:k=8,traffic=all-to-all,paths=3,seed=2");
    assert_eq!(ways(&few), [((1, 2), 128 * 3), ((3, 4), 128 * 12), ((3, 6), 128 * 112)].into());
    let by = |name: &str| {
        let port = u32::try_from(few.ports.iter().position(|port| port.name == name).unwrap()).unwrap();
        few.classes.iter().flat_map(|class| &class.paths).filter(|path| path.contains(&port)).count()
    };
    // Each edge's four ways up have a quarter of 4 x 124 x 3 paths.
    for name in ["e1-a1", "e1-a2", "e1-a3", "e1-a4"] {
        assert!(by(name).abs_diff(372) < 60, "{name} has {}", by(name));
    }
}

#[test]
fn a_seed_says_everything() {
    let words = "ixp:traffic=random,pairs=50,weights=1-9,seed=";
    assert_eq!(made(&format!("{words}7")), made(&format!("{words}7")));
    assert_ne!(made(&format!("{words}7")), made(&format!("{words}8")));
}

#[test]
fn what_cannot_be_made_is_refused() {
    for (words, what) in [
        ("leafspine", "did you mean `leaf-spine`?"),
        ("torus", "there are: leaf-spine, fat-tree, dumbbell, ixp"),
        ("fat-tree:k=5", "k is even"),
        ("fat-tree:k=66", "from 1 to 64"),
        ("leaf-spine:leafs=3", "did you mean `leaves`?"),
        ("leaf-spine:leaves", "has no value"),
        ("leaf-spine:leaves=0", "from 1 to 100000"),
        ("leaf-spine:leaves=3,leaves=4", "twice"),
        ("leaf-spine:leaves=100000,hosts=100000", "1048576 are the most"),
        ("leaf-spine:rate=1Gbps", "did you mean `1Gbit/s`?"),
        ("leaf-spine:traffic=al-to-all", "did you mean `all-to-all`?"),
        ("leaf-spine:pairs=4", "of `traffic=random` only"),
        ("leaf-spine:weights=3-1", "a range such as"),
        ("leaf-spine:seed=x", "is not a seed"),
        ("leaf-spine:leaves=1,hosts=1", "two hosts"),
        ("leaf-spine:leaves=100,hosts=100,traffic=all-to-all", "fewer `pairs`"),
        ("fat-tree:k=32,traffic=random,pairs=100000", "fewer `paths`"),
    ] {
        let said = refused(words);
        assert!(said.contains(what), "{words}: {said}");
    }
}
