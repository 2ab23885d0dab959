// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks in few words.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

pub mod exact;
pub mod random;

use penstock_alloc::allocation::Allocation;
use penstock_alloc::model::{Class, Limit, LimitKind, Network, Port};

pub fn network(ports: &[(&str, u64)], classes: &[Class]) -> Network {
    let ports = ports.iter().map(|(name, rate_bps)| port(name, *rate_bps)).collect();
    Network { ports, classes: classes.to_vec(), ..Network::default() }
}

pub fn port(name: &str, rate_bps: u64) -> Port {
    Port { name: name.to_owned(), switch: "s".to_owned(), rate_bps, buffer_bytes: 400_000 }
}

pub fn class(name: &str, priority: u32, weight: u32, paths: &[&[u32]]) -> Class {
    let paths = paths.iter().map(|path| path.to_vec()).collect();
    Class { name: name.to_owned(), priority, weight, limit: None, demand_bps: None, safe_bps: None, paths }
}

#[allow(clippy::unnecessary_wraps)] // As a class wants it.
pub fn limited(rate_bps: u64, kind: LimitKind) -> Option<Limit> {
    Some(Limit { rate_bps, kind })
}

pub fn rates(allocation: &Allocation) -> Vec<Vec<u64>> {
    allocation.paths.iter().map(|paths| paths.iter().map(|path| path.rate_bps).collect()).collect()
}

pub fn used(allocation: &Allocation) -> Vec<u64> {
    allocation.used_bps.clone()
}
