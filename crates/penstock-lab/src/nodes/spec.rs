// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a scenario says of a network of nodes that have one policy.

use crate::quantity::{Rate, Time};
use crate::scenario::Phase;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Most flows: their addresses have one octet each.
pub const FLOWS_MAX: usize = 32;

/// Nodes, and what passes them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct Network {
    /// How many: gw1, gw2 and so on. Each has the links gw1-up, to the core, and gw1-down, to its host.
    pub nodes: u32,
    /// The rate of links, and of limits that nothing else is said of.
    pub link: Rate,
    /// The rate of links that have another one.
    #[serde(default)]
    pub links: BTreeMap<String, Rate>,
    /// The other terms of all limits, as a policy has them: `burst: 10ms, excess: 0ms, on_excess: drop`.
    pub terms: String,
    /// What all classes may have together.
    pub together: Option<Rate>,
    /// Congestion control of all hosts.
    #[serde(default = "cubic")]
    pub tcp: String,
    /// Whether their connections use ECN.
    #[serde(default)]
    pub ecn: bool,
    /// Members of etcd.
    #[serde(default = "one")]
    pub etcd: usize,
    /// Replicas of the controller.
    #[serde(default = "two")]
    pub controllers: usize,
    /// How long limits are lent for.
    #[serde(default = "five_seconds")]
    pub lease: Time,
    /// Width of the samples.
    #[serde(default = "tenth")]
    pub bin: Time,
    /// What is left out of all numbers at the start.
    #[serde(default)]
    pub warmup: Time,
    /// Who sends. A flow that starts later than the first ones is demand that moved.
    pub flows: Vec<Flow>,
    /// Parts of the time that get lines of their own in the results.
    #[serde(default)]
    pub phases: Vec<Phase>,
}

fn cubic() -> String {
    "cubic".to_owned()
}

fn one() -> usize {
    1
}

fn two() -> usize {
    2
}

fn five_seconds() -> Time {
    Time(5_000_000_000)
}

fn tenth() -> Time {
    Time(100_000_000)
}

/// Something that a class sends, by iperf3.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct Flow {
    /// The class, on all links that the flow passes.
    pub class: String,
    /// The node whose host sends.
    pub from: String,
    /// The node whose host receives; without it the core does.
    pub to: Option<String>,
    /// When it starts, in whole seconds.
    pub start: Time,
    /// When it ends.
    pub stop: Time,
    /// Of which protocol.
    pub load: Protocol,
    /// How fast at most, all connections together. UDP needs one.
    pub rate: Option<Rate>,
    /// How many.
    #[serde(default = "one_connection")]
    pub connections: u32,
}

fn one_connection() -> u32 {
    1
}

/// UDP does not care what becomes of its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// As iperf3 sends it.
    Udp,
    /// The kernel's.
    Tcp,
}

/// Controllers lend the limits.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lent {
    /// The network file.
    pub network: String,
    /// Others that take its place while traffic flows.
    #[serde(default)]
    pub changes: Vec<Put>,
    /// Rates of the nodes' own policies, by link and class: `gw1-up/a`.
    #[serde(default)]
    pub own: BTreeMap<String, Rate>,
    /// What goes wrong.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

/// A network file that takes the place of another.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Put {
    /// Since the traffic's start.
    pub at: Time,
    /// The file.
    pub network: String,
}

/// The nodes' own policies hold, and there is no controller.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Own {
    /// Rates by link and class.
    #[serde(default)]
    pub own: BTreeMap<String, Rate>,
    /// Others, while traffic flows.
    #[serde(default)]
    pub changes: Vec<Set>,
}

/// Other rates.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// Since the traffic's start.
    pub at: Time,
    /// Rates by link and class; others stay.
    pub own: BTreeMap<String, Rate>,
}

/// Something that goes wrong.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Since the traffic's start.
    pub at: Time,
    /// When it ends; at once without it.
    pub until: Option<Time>,
    /// What it is.
    pub what: What,
    /// Of which node, where it is a node's.
    pub node: Option<String>,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// The controller that leads is killed (SIGKILL) and started again when the fault ends, if it does.
    LeaderKilled,
    /// The controller that leads is paused (SIGSTOP), and goes on when the fault ends.
    LeaderPaused,
    /// The member of etcd that controllers ask first is killed, and started again with its data when the fault ends.
    EtcdMemberStopped,
    /// The cable between a node and the controllers is cut.
    ControlCut,
    /// A node loses its power: daemon, programs and what was in memory are gone; nothing passes until it is there again.
    NodeRebooted,
}
