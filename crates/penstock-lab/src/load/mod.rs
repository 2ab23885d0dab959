// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tenants send, and what the tools say about it.

mod apache;
mod iperf;
mod redis;
mod sockperf;

use crate::LabError;
use crate::process::{Background, Stop};
use crate::results::Metrics;
use crate::scenario::{Load, Tenant};
use crate::template::addresses;
use crate::topology::Topology;
use std::path::Path;
use std::time::Duration;

/// How long a server may take to listen.
const LISTEN: Duration = Duration::from_secs(5);

/// A tenant in a run.
pub struct Site<'a> {
    /// The tenant.
    pub tenant: &'a Tenant,
    /// Its place in the scenario: addresses and ports follow from it.
    pub index: usize,
    /// Its hosts.
    pub topology: &'a Topology,
    /// For configuration files; it goes away with the run.
    pub folder: &'a Path,
    /// How long it sends.
    pub time: Duration,
    /// Width of bins.
    pub bin: Duration,
    /// What is left out at the start.
    pub warmup: Duration,
    /// Whether to stop.
    pub stop: &'a Stop,
}

/// What a tenant got.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Start of each bin since the traffic's start, s, and goodput in it, Mbit/s. Empty where the tool does not tell.
    pub bins: Vec<(f64, f64)>,
    /// Numbers that the tool gives.
    pub metrics: Metrics,
}

/// A tenant's programs while they run.
pub trait Running {
    /// Starts what sends.
    ///
    /// # Errors
    /// It cannot be started.
    fn go(&mut self, site: &Site<'_>) -> Result<(), LabError>;

    /// Waits for the end and collects.
    ///
    /// # Errors
    /// A program failed, or what it printed cannot be read.
    fn finish(self: Box<Self>, site: &Site<'_>) -> Result<Measured, LabError>;
}

/// Starts a tenant's servers; they listen when this returns.
///
/// # Errors
/// One does not start.
pub fn prepare(site: &Site<'_>) -> Result<Box<dyn Running>, LabError> {
    Ok(match site.tenant.load {
        Load::Tcp(load) => Box::new(iperf::Iperf::tcp(site, load)?),
        Load::Udp(load) => Box::new(iperf::Iperf::udp(site, load)?),
        Load::Redis(load) => Box::new(redis::Redis::prepare(site, load)?),
        Load::Apache(load) => Box::new(apache::Apache::prepare(site, load)?),
        Load::Sockperf(_) => Box::new(sockperf::Sockperf::prepare(site)?),
    })
}

/// Programs that a load needs, with Debian's names for their packages.
#[must_use]
pub fn tools(load: &Load) -> &'static [(&'static str, &'static str)] {
    match load {
        Load::Tcp(_) | Load::Udp(_) => &[("iperf3", "iperf3")],
        Load::Redis(_) => &[("redis-server", "redis-server"), ("redis-benchmark", "redis-tools")],
        Load::Sockperf(_) => &[("sockperf", "sockperf")],
        Load::Apache(_) => &[("apache2", "apache2-bin"), ("ab", "apache2-utils")],
    }
}

impl Site<'_> {
    fn source(&self) -> String {
        addresses(self.index).0
    }

    fn destination(&self) -> String {
        addresses(self.index).1
    }

    /// The sender's namespace.
    #[must_use]
    pub fn sender(&self) -> &str {
        self.topology.senders[self.tenant.sender as usize].name()
    }

    /// The receiver's namespace.
    #[must_use]
    pub fn receiver(&self) -> &str {
        self.topology.receivers[self.tenant.receiver as usize].name()
    }

    /// The port that a tenant's server listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        5201 + u16::try_from(self.index).unwrap_or(0)
    }

    /// Waits until something listens on the tenant's port in a namespace.
    fn wait_for_server(&self, namespace: &str, server: &Background) -> Result<(), LabError> {
        self.wait_for(namespace, server, "-Hltn")
    }

    /// The same for UDP.
    fn wait_for_udp_server(&self, namespace: &str, server: &Background) -> Result<(), LabError> {
        self.wait_for(namespace, server, "-Hlun")
    }

    fn wait_for(&self, namespace: &str, server: &Background, of: &str) -> Result<(), LabError> {
        let (port, what) = (format!(":{}", self.port()), "waiting for a server to listen");
        let listens = || {
            let sockets = crate::process::run(&format!("ip netns exec {namespace} ss {of}"))?;
            Ok(sockets.lines().any(|line| line.split_whitespace().nth(3).is_some_and(|own| own.ends_with(&port))))
        };
        self.stop.wait_for(what, LISTEN, listens).map_err(|error| match (error, server.output()) {
            (LabError::Command { command, output }, Ok(said)) if !said.trim().is_empty() => {
                LabError::Command { command, output: format!("{output}; the server said: {}", said.trim()) }
            }
            (error, _) => error,
        })
    }
}
