// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an allocation says.

use crate::model::{ClassId, PortId};

/// Who gets what. Rates are whole bits/s, rounded down, so that the sum at a port is never above its rate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allocation {
    /// The limits to install, by class and then by port: only where a class is bottlenecked.
    pub limits: Vec<PlacedLimit>,
    /// What each path of each class gets, in the order of the network.
    pub paths: Vec<Vec<PathRate>>,
    /// What is used of each port, bits/s, in the order of the network.
    pub used_bps: Vec<u64>,
    /// What is over-allocated, each a sentence that names the port and the sum.
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
    /// The port that it got no more at.
    pub bottleneck: PortId,
}
