// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts in network namespaces, and the middle that limits what passes between them.
//!
//! ```text
//! sender 0 -- port0 --+--------+-- exit0 -- receiver 0
//! sender 1 -- port1 --+ middle +-- exit1 -- receiver 1
//! ```
//! With a `round_trip` there is a wire between each exit and its receiver, which takes that long there and back.
//!
//! Tenant i sends from 10.88.1.(10 + i) to 10.88.2.(10 + i), whatever hosts it is on. With `forward: redirect` the middle is a wire
//! between port i and exit i; with `forward: route` the kernel routes there.

use crate::LabError;
use crate::netns::Namespace;
use crate::process::find;
use crate::scenario::{Forward, Queue, Tenant, Traffic};
use crate::template::addresses;
use crate::wire::Wire;

/// The end host's only device.
pub const HOST_DEVICE: &str = "uplink";
/// What the middle asks for hosts' MAC addresses with.
const MIDDLE_ADDRESS: &str = "10.88.0.1";

/// All namespaces of a run.
#[derive(Debug)]
pub struct Topology {
    /// Between exits and receivers.
    wires: Vec<Wire>,
    /// Where limits are enforced.
    pub middle: Namespace,
    /// Hosts that send.
    pub senders: Vec<Namespace>,
    /// Hosts that receive.
    pub receivers: Vec<Namespace>,
    /// How the middle forwards.
    pub forward: Forward,
}

/// The middle's device towards a sender.
#[must_use]
pub fn port(sender: u32) -> String {
    format!("port{sender}")
}

/// The middle's device towards a receiver.
#[must_use]
pub fn exit(receiver: u32) -> String {
    format!("exit{receiver}")
}

/// What `ss` and `setsockopt` call a congestion control.
#[must_use]
pub fn kernel_name(tcp: &str) -> &str {
    if tcp == "dctcp" { crate::dctcp::NAME } else { tcp }
}

impl Topology {
    /// Makes all hosts, their devices, addresses and routes.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn build(traffic: &Traffic) -> Result<Self, LabError> {
        let hosts = |count: u32, role: &str| {
            (0..count).map(|index| Namespace::create(&format!("{role}{index}"))).collect::<Result<Vec<_>, _>>()
        };
        let mut topology = Self {
            wires: Vec::new(),
            middle: Namespace::create("middle")?,
            senders: hosts(traffic.senders, "sender")?,
            receivers: hosts(traffic.receivers, "receiver")?,
            forward: traffic.forward,
        };
        for (host, index) in topology.senders.iter().zip(0..) {
            topology.join(host, &port(index))?;
        }
        for (host, index) in topology.receivers.iter().zip(0..) {
            if let Some(round_trip) = traffic.round_trip.filter(|time| time.0 > 0) {
                let device = exit(index);
                let wire = Wire::between((&topology.middle, &device), (host, HOST_DEVICE), round_trip)?;
                topology.wires.push(wire);
                topology.set_up(host, &exit(index))?;
            } else {
                topology.join(host, &exit(index))?;
            }
        }
        if let Some(time) = traffic.coalesce {
            topology.receivers.iter().try_for_each(|host| coalesce(host, time.0))?;
        }
        if traffic.forward == Forward::Route {
            topology.middle.exec("sysctl -qw net.ipv4.ip_forward=1")?;
        }
        for (tenant, index) in traffic.tenants.iter().zip(0..) {
            topology.add_tenant(tenant, index)?;
        }
        if let Some(link) = &traffic.link {
            topology.limit_exits(link)?;
        }
        Ok(topology)
    }

    /// A cable between the middle and a host.
    fn join(&self, host: &Namespace, device: &str) -> Result<(), LabError> {
        self.middle.ip(&format!("link add {device} type veth peer name {HOST_DEVICE} netns {}", host.name()))?;
        self.set_up(host, device)
    }

    fn set_up(&self, host: &Namespace, device: &str) -> Result<(), LabError> {
        let middle = self.middle.name();
        // A redirect loses partial checksums, so hosts finish them; with GRO a device has the NAPI that redirects need. In the middle
        // frames are as on a wire: none is longer than an MTU.
        host.exec(&format!("ethtool -K {HOST_DEVICE} tx off gro on"))?;
        crate::process::run(&format!("ip netns exec {middle} ethtool -K {device} tx off tso off gso off gro off"))?;
        host.exec("sysctl -qw net.ipv4.tcp_ecn=2 net.ipv4.tcp_no_metrics_save=1")?;
        host.ip(&format!("link set {HOST_DEVICE} up"))?;
        self.middle.ip(&format!("link set {device} up"))?;
        self.middle.ip(&format!("address add {MIDDLE_ADDRESS}/32 dev {device}"))?;
        Ok(())
    }

    /// Addresses and routes of a tenant. Its routes carry its congestion control and whether it uses ECN, on both ends.
    fn add_tenant(&self, tenant: &Tenant, index: usize) -> Result<(), LabError> {
        let (source, destination) = addresses(index);
        let (sender, receiver) = (&self.senders[tenant.sender as usize], &self.receivers[tenant.receiver as usize]);
        let congestion = kernel_name(&tenant.tcp);
        let ecn = if tenant.ecn { "features ecn" } else { "" };
        let rto_min = tenant.rto_min.map(|time| format!("rto_min {}ms", time.0 / 1_000_000)).unwrap_or_default();
        let ends = [(sender, &source, &destination), (receiver, &destination, &source)];
        for (host, own, other) in ends {
            host.ip(&format!("address add {own}/32 dev {HOST_DEVICE}"))?;
            let route = format!("dev {HOST_DEVICE} scope link src {own} congctl {congestion} {ecn} {rto_min}");
            host.ip(&format!("route add {other}/32 {route}"))?;
        }
        if self.forward == Forward::Route {
            // The middle answers for whoever it routes to.
            for (address, device) in [(&source, port(tenant.sender)), (&destination, exit(tenant.receiver))] {
                self.middle.ip(&format!("route add {address}/32 dev {device} scope link"))?;
                let at_once = format!("net.ipv4.neigh.{device}.proxy_delay=0");
                self.middle.exec(&format!("sysctl -qw net.ipv4.conf.{device}.proxy_arp=1 {at_once}"))?;
            }
        }
        Ok(())
    }

    /// The link to each receiver: a rate, and a queue before it that drops what it cannot hold.
    fn limit_exits(&self, link: &Queue) -> Result<(), LabError> {
        for (_, index) in self.receivers.iter().zip(0..) {
            crate::enforce::tbf(&self.middle, &exit(index), link)?;
        }
        Ok(())
    }

    /// Devices that packets come in by, each with the one that a redirect leads to.
    #[must_use]
    pub fn ways(&self) -> Vec<(String, Option<String>)> {
        let count = |hosts: &Vec<Namespace>| u32::try_from(hosts.len()).unwrap_or(0);
        let to = |device: String| (self.forward == Forward::Redirect).then_some(device);
        let ports = (0..count(&self.senders)).map(|index| (port(index), to(exit(index))));
        let exits = (0..count(&self.receivers)).map(|index| (exit(index), to(port(index))));
        ports.chain(exits).collect()
    }
}

/// Lets a host look at its packets when a timer says so, not when one comes.
fn coalesce(host: &Namespace, time_ns: u64) -> Result<(), LabError> {
    let device = format!("/sys/class/net/{HOST_DEVICE}");
    // `ip netns exec` mounts the namespace's own /sys, so these files are written by a program that it runs.
    for (file, value) in [("gro_flush_timeout", time_ns), ("napi_defer_hard_irqs", 1)] {
        host.write(&format!("{device}/{file}"), value)?;
    }
    Ok(())
}

/// Programs that every run needs, with Debian's names for their packages.
const TOOLS: [(&str, &str); 6] = [
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("ss", "iproute2"),
    ("ethtool", "ethtool"),
    ("sysctl", "procps"),
    ("iperf3", "iperf3"),
];

/// Checks that a scenario can run here: root, and its tools.
///
/// # Errors
/// Says what is missing, and where it comes from.
pub fn check_machine(tools: &[(&'static str, &'static str)]) -> Result<(), LabError> {
    if !nix::unistd::geteuid().is_root() {
        return Err(LabError::NotRoot);
    }
    match TOOLS.iter().chain(tools).find(|(tool, _)| find(tool).is_none()) {
        Some(&(tool, package)) => Err(LabError::Missing { tool, package }),
        None => Ok(()),
    }
}
