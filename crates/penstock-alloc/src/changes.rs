// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many limits a change touches, those of the baselines as well.

use crate::baselines::{EdgeLimit, Local};
use crate::delta::Delta;
use crate::model::{Network, PortId};
use std::collections::HashMap;
use std::hash::Hash;

/// How many limits differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Were not there.
    pub added: usize,
    /// Are not there any more.
    pub removed: usize,
    /// Are others now.
    pub changed: usize,
    /// Are as they were.
    pub unchanged: usize,
}

impl Changes {
    /// From some limits to others, each under a key that only it has.
    pub fn between<K: Hash + Eq, V: PartialEq>(
        before: impl IntoIterator<Item = (K, V)>,
        now: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let mut before: HashMap<K, V> = before.into_iter().collect();
        let mut changes = Self::default();
        for (key, value) in now {
            match before.remove(&key) {
                None => changes.added += 1,
                Some(old) if old == value => changes.unchanged += 1,
                Some(_) => changes.changed += 1,
            }
        }
        changes.removed = before.len();
        changes
    }

    /// How many limits of an allocation differ.
    #[must_use]
    pub fn of(delta: &Delta<'_>) -> Self {
        let Delta { added, removed, changed, unchanged } = delta;
        Self { added: added.len(), removed: removed.len(), changed: changed.len(), unchanged: *unchanged }
    }

    /// Limits that somebody must touch.
    #[must_use]
    pub fn updates(&self) -> usize {
        self.added + self.removed + self.changed
    }
}

/// The limits of switches that look at themselves only.
pub fn local<'a>(network: &'a Network, local: &'a Local) -> impl Iterator<Item = ((&'a str, &'a str), u64)> {
    local.limits.iter().map(|limit| {
        let class = network.classes[limit.class as usize].name.as_str();
        ((class, port(network, limit.port)), limit.rate_bps)
    })
}

/// The limits at the edge.
pub fn edge<'a>(
    network: &'a Network,
    limits: &'a [EdgeLimit],
) -> impl Iterator<Item = ((&'a str, &'a str, &'a str), u64)> {
    limits.iter().map(|limit| {
        let class = network.classes[limit.class as usize].name.as_str();
        ((class, port(network, limit.first), port(network, limit.last)), limit.rate_bps)
    })
}

fn port(network: &Network, port: PortId) -> &str {
    &network.ports[port as usize].name
}
