// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an allocation says.

use crate::model::{AggregateId, ClassId, Network, PortId};

/// Who gets what. Rates are whole bits/s, rounded down, so that the sum at a port is never above its rate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allocation {
    /// The limits to install, by class and then by port: only where a class is bottlenecked, and where paths of members of aggregates begin.
    pub limits: Vec<PlacedLimit>,
    /// What each path of each class gets, in the order of the network.
    pub paths: Vec<Vec<PathRate>>,
    /// What is used of each port, bits/s, in the order of the network.
    pub used_bps: Vec<u64>,
    /// What is used of each aggregate, bits/s, in the order of the network.
    pub aggregates_used_bps: Vec<u64>,
    /// What is over-allocated, each a sentence that names the port or aggregate and the sum.
    pub warnings: Vec<String>,
}

/// A limit of a class at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedLimit {
    /// Whose.
    pub class: ClassId,
    /// Where.
    pub port: PortId,
    /// bits/s.
    pub rate_bps: u64,
    /// What may be ahead of it before packets are yellow, bytes.
    pub yellow_bytes: u64,
    /// What may be ahead of it before packets are red, bytes: its part of the port's buffer.
    pub red_bytes: u64,
}

/// What a path gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathRate {
    /// bits/s.
    pub rate_bps: u64,
    /// Where it got no more.
    pub bottleneck: Bottleneck,
}

/// What holds a path back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bottleneck {
    /// A port is full, or its class is at its limit there.
    Port(PortId),
    /// An aggregate that its class is a member of has no more.
    Aggregate(AggregateId),
}

impl Bottleneck {
    /// The port, if it is one.
    #[must_use]
    pub fn port(self) -> Option<PortId> {
        match self {
            Self::Port(port) => Some(port),
            Self::Aggregate(_) => None,
        }
    }

    /// Its name: no aggregate has that of a port.
    #[must_use]
    pub fn name(self, network: &Network) -> &str {
        match self {
            Self::Port(port) => &network.ports[port as usize].name,
            Self::Aggregate(aggregate) => &network.aggregates[aggregate as usize].name,
        }
    }
}
