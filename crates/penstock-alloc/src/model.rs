// SPDX-License-Identifier: MIT OR Apache-2.0
//! A network and its policy: ports, classes with their paths, what holds at one port only.

/// Index of a port in [`Network::ports`].
pub type PortId = u32;
/// Index of a class in [`Network::classes`].
pub type ClassId = u32;

/// A network and its policy. Whoever makes one has checked it: indices are in range, weights are above zero, no path is empty or meets a port twice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// Output ports, in file order.
    pub ports: Vec<Port>,
    /// Classes, in file order.
    pub classes: Vec<Class>,
    /// What replaces a class's policy at one port; at most one for each class and port.
    pub local: Vec<LocalPolicy>,
}

/// An output port of a switch or node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Port {
    /// Its name, unique in the network.
    pub name: String,
    /// Whose port it is.
    pub switch: String,
    /// What it can send, bits/s.
    pub rate_bps: u64,
    /// What may wait in it, bytes: shared among its classes by weight, as their red thresholds.
    pub buffer_bytes: u64,
}

/// Packets that the policy names together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Class {
    /// Its name, unique in the network.
    pub name: String,
    /// Smaller numbers are served first.
    pub priority: u32,
    /// Its part beside others of its priority; 1 at least.
    pub weight: u32,
    /// What it may have at most, at each of its ports.
    pub limit: Option<Limit>,
    /// What it asks for, bits/s, at each of its ports, if that is known.
    pub demand_bps: Option<u64>,
    /// The ports that its packets leave by, from the first to the last; one list for each way that they may go.
    pub paths: Vec<Vec<PortId>>,
}

/// What a class may have at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// bits/s.
    pub rate_bps: u64,
    /// Whether it may get less.
    pub kind: LimitKind,
}

/// Whether a class may get less than its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// It may.
    Soft,
    /// The limit is installed as it is, and reserved before anything is shared.
    Hard,
}

/// What replaces a class's policy at one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalPolicy {
    /// Where.
    pub port: PortId,
    /// For whom.
    pub class: ClassId,
    /// In the place of the class's, where it is something.
    pub priority: Option<u32>,
    /// The same.
    pub weight: Option<u32>,
    /// The same.
    pub limit: Option<Limit>,
}
