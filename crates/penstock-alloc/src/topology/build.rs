// SPDX-License-Identifier: MIT OR Apache-2.0
//! The topologies.

use super::{Generator, NodeId, Shape, Topology};
use crate::file::PORTS_MAX;
use penstock_policy::diagnostics::Problem;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What members of an IXP have, when nothing is said.
const MEMBER_RATES_BPS: [u64; 3] = [1_000_000_000, 10_000_000_000, 100_000_000_000];

/// Hosts, switches and links.
pub fn topology(generator: &Generator) -> Result<Topology, Problem> {
    let (rate, uplink) = (generator.rate_bps, generator.uplink_bps);
    let links = links(&generator.shape);
    if links > PORTS_MAX as u64 / 2 {
        return Err(Problem::new(
            format!("this network has {} ports", links.saturating_mul(2)),
            format!("{PORTS_MAX} are the most"),
        ));
    }
    Ok(match generator.shape {
        Shape::LeafSpine { leaves, spines, hosts } => leaf_spine(leaves, spines, hosts, rate, uplink),
        Shape::FatTree { k } => fat_tree(k, rate, uplink),
        Shape::Dumbbell { hosts } => dumbbell(hosts, rate, uplink),
        Shape::Ixp { members, edges, cores } => {
            let drawn = generator.rate_is_default.then_some(generator.traffic.seed);
            ixp(members, edges, cores, (rate, uplink), drawn)
        }
    })
}

fn links(shape: &Shape) -> u64 {
    let of = |number: u32| u64::from(number);
    match *shape {
        Shape::LeafSpine { leaves, spines, hosts } => of(leaves).saturating_mul(of(spines).saturating_add(of(hosts))),
        // Three layers of k^3 / 4 links each.
        Shape::FatTree { k } => of(k).saturating_pow(3).saturating_mul(3) / 4,
        Shape::Dumbbell { hosts } => of(hosts) * 2 + 1,
        Shape::Ixp { members, edges, cores } => of(members).saturating_add(of(edges).saturating_mul(of(cores))),
    }
}

fn nodes(topology: &mut Topology, prefix: &str, count: u32) -> Vec<NodeId> {
    (1..=count).map(|number| topology.node(format!("{prefix}{number}"))).collect()
}

fn everybody(topology: &mut Topology, hosts: Vec<NodeId>) {
    topology.senders.clone_from(&hosts);
    topology.receivers = hosts;
}

/// Hosts at leaves, each leaf joined to each spine.
fn leaf_spine(leaves: u32, spines: u32, hosts: u32, rate_bps: u64, uplink_bps: u64) -> Topology {
    let mut topology = Topology::default();
    let spine_ids = nodes(&mut topology, "s", spines);
    let leaf_ids = nodes(&mut topology, "l", leaves);
    let host_ids = nodes(&mut topology, "h", leaves * hosts);
    for (&leaf, of_leaf) in leaf_ids.iter().zip(host_ids.chunks(hosts as usize)) {
        of_leaf.iter().for_each(|&host| topology.join(host, leaf, rate_bps));
    }
    for &leaf in &leaf_ids {
        spine_ids.iter().for_each(|&spine| topology.join(leaf, spine, uplink_bps));
    }
    everybody(&mut topology, host_ids);
    topology
}

/// k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores, k^3/4 hosts.
fn fat_tree(k: u32, rate_bps: u64, uplink_bps: u64) -> Topology {
    let mut topology = Topology::default();
    let half = (k / 2) as usize;
    let cores = nodes(&mut topology, "c", k * k / 4);
    let aggregations = nodes(&mut topology, "a", k * k / 2);
    let edges = nodes(&mut topology, "e", k * k / 2);
    let hosts = nodes(&mut topology, "h", k * k * k / 4);
    for (&edge, of_edge) in edges.iter().zip(hosts.chunks(half)) {
        of_edge.iter().for_each(|&host| topology.join(host, edge, rate_bps));
    }
    for (edges, aggregations) in edges.chunks(half).zip(aggregations.chunks(half)) {
        for &edge in edges {
            aggregations.iter().for_each(|&aggregation| topology.join(edge, aggregation, uplink_bps));
        }
    }
    for (index, &aggregation) in aggregations.iter().enumerate() {
        // The first aggregation switch of each pod has the first k/2 cores, and so on.
        cores
            .iter()
            .skip(index % half * half)
            .take(half)
            .for_each(|&core| topology.join(aggregation, core, uplink_bps));
    }
    everybody(&mut topology, hosts);
    topology
}

/// So many hosts on the left send to as many on the right through one link.
fn dumbbell(hosts: u32, rate_bps: u64, uplink_bps: u64) -> Topology {
    let mut topology = Topology::default();
    let left = topology.node("left".to_owned());
    let right = topology.node("right".to_owned());
    let host_ids = nodes(&mut topology, "h", hosts * 2);
    let (senders, receivers) = host_ids.split_at(hosts as usize);
    senders.iter().for_each(|&host| topology.join(host, left, rate_bps));
    topology.join(left, right, uplink_bps);
    receivers.iter().for_each(|&host| topology.join(host, right, rate_bps));
    topology.senders = senders.to_vec();
    topology.receivers = receivers.to_vec();
    topology
}

/// Members at edge switches, each edge joined to each core. Members' ports are of different rates unless a rate is given.
fn ixp(members: u32, edges: u32, cores: u32, rates: (u64, u64), drawn: Option<u64>) -> Topology {
    let mut topology = Topology::default();
    let core_ids = nodes(&mut topology, "c", cores);
    let edge_ids = nodes(&mut topology, "e", edges);
    let member_ids = nodes(&mut topology, "m", members);
    let mut random = drawn.map(Xoshiro256PlusPlus::seed_from_u64);
    for (&member, &edge) in member_ids.iter().zip(edge_ids.iter().cycle()) {
        let rate_bps = match &mut random {
            Some(random) => MEMBER_RATES_BPS[random.random_range(0..MEMBER_RATES_BPS.len())],
            None => rates.0,
        };
        topology.join(member, edge, rate_bps);
    }
    for &edge in &edge_ids {
        core_ids.iter().for_each(|&core| topology.join(edge, core, rates.1));
    }
    everybody(&mut topology, member_ids);
    topology
}
