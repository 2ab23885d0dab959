// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is to be installed to come from one allocation to the next: only what changed (section 4.2, incremental updates).

use std::collections::HashMap;

use crate::allocation::{Allocation, PlacedLimit};
use crate::model::Network;

/// Limits that differ between two allocations, by the names of class and port, since the networks may differ. Those that are there now come in
/// the order of the network that is now, those that are not in the order of the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta<'a> {
    /// There now, and not before.
    pub added: Vec<LimitAt<'a>>,
    /// There before, and not now.
    pub removed: Vec<LimitAt<'a>>,
    /// There before and now, but with another rate or another threshold.
    pub changed: Vec<ChangedLimit<'a>>,
    /// How many are what they were.
    pub unchanged: usize,
}

/// A limit, and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitAt<'a> {
    /// Whose.
    pub class: &'a str,
    /// Where.
    pub port: &'a str,
    /// What.
    pub limit: Amount,
}

/// A limit that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedLimit<'a> {
    /// Whose.
    pub class: &'a str,
    /// Where.
    pub port: &'a str,
    /// What it was.
    pub before: Amount,
    /// What it is.
    pub after: Amount,
}

/// What a limit says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    /// bits/s.
    pub rate_bps: u64,
    /// What may be ahead of a packet before it is yellow, bytes.
    pub yellow_bytes: u64,
    /// What may be ahead of it before it is red, bytes.
    pub red_bytes: u64,
}

impl From<&PlacedLimit> for Amount {
    fn from(limit: &PlacedLimit) -> Self {
        Self { rate_bps: limit.rate_bps, yellow_bytes: limit.yellow_bytes, red_bytes: limit.red_bytes }
    }
}

impl<'a> Delta<'a> {
    /// From one allocation, of its network, to another.
    pub fn between(before: (&'a Network, &Allocation), after: (&'a Network, &Allocation)) -> Self {
        let mut old: HashMap<(&str, &str), Amount> = named(before).map(|at| ((at.class, at.port), at.limit)).collect();
        let mut delta = Self::default();
        for at in named(after) {
            match old.remove(&(at.class, at.port)) {
                None => delta.added.push(at),
                Some(limit) if limit == at.limit => delta.unchanged += 1,
                Some(limit) => {
                    delta.changed.push(ChangedLimit { class: at.class, port: at.port, before: limit, after: at.limit });
                }
            }
        }
        delta.removed.extend(named(before).filter(|at| old.contains_key(&(at.class, at.port))));
        delta
    }

    /// Whether nothing is to be installed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

fn named<'a, 'b>(
    (network, allocation): (&'a Network, &'b Allocation),
) -> impl Iterator<Item = LimitAt<'a>> + use<'a, 'b> {
    allocation.limits.iter().map(|limit| LimitAt {
        class: &network.classes[limit.class as usize].name,
        port: &network.ports[limit.port as usize].name,
        limit: limit.into(),
    })
}
