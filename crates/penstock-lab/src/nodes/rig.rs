// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nodes between their hosts and a core, and a control network beside them.
//!
//! ```text
//! host 1 -- lan gw1 wan --+
//! host 2 -- lan gw2 wan --+-- core      control: etcd and controllers, with a cable to each gw
//! host 3 -- lan gw3 wan --+
//! ```
//! Flow i goes from 10.88.1.(10 + i) to 10.88.2.(10 + i). The core receives, or routes to the host of another node. A node is a wire that
//! limits: without a policy in force nothing passes it.

use super::policy::{addresses, node_name};
use super::spec::{Flow, Network};
use crate::LabError;
use crate::netns::Namespace;
use crate::topology::{HOST_DEVICE, kernel_name};

/// Where controllers listen: the first one here, the second one behind it.
pub const CONTROL_PREFIX: &str = "10.99.0.";
const BRIDGE: &str = "bridge";
const CORE_ADDRESS: &str = "10.88.0.1";
/// A round trip takes microseconds here: TCP that waits 200 ms for a lost tail would mostly wait.
const RTO_MIN: &str = "rto_min 10ms";

/// All namespaces.
#[derive(Debug)]
pub struct Rig {
    /// etcd and controllers.
    pub control: Namespace,
    /// What all nodes lead to.
    pub core: Namespace,
    /// In the order of nodes.
    pub hosts: Vec<Namespace>,
    /// The nodes.
    pub gateways: Vec<Namespace>,
}

impl Rig {
    /// Makes them, with all cables, addresses and routes.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn build(network: &Network) -> Result<Self, LabError> {
        let many = |role: &str| {
            (0..network.nodes).map(|index| Namespace::create(&format!("{role}{index}"))).collect::<Result<Vec<_>, _>>()
        };
        let (control, core) = (Namespace::create("control")?, Namespace::create("core")?);
        let rig = Self { control, core, hosts: many("host")?, gateways: many("gw")? };
        rig.control.ip(&format!("link add {BRIDGE} type bridge"))?;
        rig.control.ip(&format!("link set {BRIDGE} up"))?;
        for index in 0..network.controllers {
            rig.control.ip(&format!("address add {CONTROL_PREFIX}{}/24 dev {BRIDGE}", index + 1))?;
        }
        rig.core.exec("sysctl -qw net.ipv4.ip_forward=1")?;
        for node in 0..rig.gateways.len() {
            rig.join(node)?;
        }
        for (flow, index) in network.flows.iter().zip(0..) {
            rig.add_flow(network, flow, index)?;
        }
        Ok(rig)
    }

    /// The cables of a node.
    fn join(&self, node: usize) -> Result<(), LabError> {
        let (name, gateway, host) = (node_name(node), &self.gateways[node], &self.hosts[node]);
        gateway.ip(&format!("link add lan type veth peer name {HOST_DEVICE} netns {}", host.name()))?;
        gateway.ip(&format!("link add wan type veth peer name {name} netns {}", self.core.name()))?;
        gateway.ip(&format!("link add ctl type veth peer name {name} netns {}", self.control.name()))?;
        // As in the lab's other networks: whole checksums, and frames of the wire's length in the middle.
        host.exec(&format!("ethtool -K {HOST_DEVICE} tx off gro on"))?;
        self.core.exec(&format!("ethtool -K {name} tx off tso off gso off gro on"))?;
        for device in ["lan", "wan"] {
            gateway.exec(&format!("ethtool -K {device} tx off tso off gso off gro off"))?;
        }
        host.ip(&format!("link set {HOST_DEVICE} up"))?;
        for device in ["lan", "wan", "ctl"] {
            gateway.ip(&format!("link set {device} up"))?;
        }
        gateway.ip(&format!("address add {CONTROL_PREFIX}{}/24 dev ctl", node + 10))?;
        self.core.ip(&format!("link set {name} up"))?;
        self.core.ip(&format!("address add {CORE_ADDRESS}/32 dev {name}"))?;
        let at_once = format!("net.ipv4.neigh.{name}.proxy_delay=0");
        self.core.exec(&format!("sysctl -qw net.ipv4.conf.{name}.proxy_arp=1 {at_once}"))?;
        self.control.ip(&format!("link set {name} master {BRIDGE}"))?;
        self.control.ip(&format!("link set {name} up")).map(drop)
    }

    fn add_flow(&self, network: &Network, flow: &Flow, index: usize) -> Result<(), LabError> {
        let (source, destination) = addresses(index);
        let ecn = if network.ecn { "features ecn" } else { "" };
        let terms = format!("congctl {} {ecn} {RTO_MIN}", kernel_name(&network.tcp));
        let host = |host: &Namespace, own: &str, other: &str| {
            host.ip(&format!("address add {own}/32 dev {HOST_DEVICE}"))?;
            host.ip(&format!("route add {other}/32 dev {HOST_DEVICE} scope link src {own} {terms}"))
        };
        host(&self.hosts[place(&flow.from)], &source, &destination)?;
        match &flow.to {
            Some(to) => {
                host(&self.hosts[place(to)], &destination, &source)?;
                self.core.ip(&format!("route add {destination}/32 dev {to} scope link"))?;
                self.core.ip(&format!("route add {source}/32 dev {} scope link", flow.from))?;
            }
            None => {
                self.core.ip(&format!("address add {destination}/32 dev lo"))?;
                self.core
                    .ip(&format!("route add {source}/32 dev {} scope link src {destination} {terms}", flow.from))?;
            }
        }
        Ok(())
    }

    /// Where a flow goes.
    #[must_use]
    pub fn receiver(&self, flow: &Flow) -> &Namespace {
        flow.to.as_deref().map_or(&self.core, |to| &self.hosts[place(to)])
    }

    /// Cuts the cable between a node and the controllers, or mends it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_control(&self, node: usize, is_up: bool) -> Result<(), LabError> {
        let state = if is_up { "up" } else { "down" };
        self.control.ip(&format!("link set {} {state}", node_name(node))).map(drop)
    }
}

/// The index of a node by its name; the template has seen to it that there is one.
#[must_use]
pub fn place(node: &str) -> usize {
    node.strip_prefix("gw").and_then(|number| number.parse::<usize>().ok()).map_or(0, |number| number.saturating_sub(1))
}
