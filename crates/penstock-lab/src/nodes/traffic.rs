// SPDX-License-Identifier: MIT OR Apache-2.0
//! iperf3 for each flow. What arrives is counted at the receivers' devices: iperf3 only sends.

use super::policy::addresses;
use super::rig::{Rig, place};
use super::spec::{Flow, Protocol};
use crate::LabError;
use crate::process::{Background, Stop, run};
use std::time::Duration;

const LISTEN: Duration = Duration::from_secs(10);
/// Payload of a datagram.
const DATAGRAM_BYTES: &str = "1400";

/// A flow's programs.
pub struct Sending {
    index: usize,
    _server: Background,
    client: Option<Background>,
}

fn port(index: usize) -> String {
    (5201 + index).to_string()
}

impl Sending {
    /// Starts the server; it listens when this returns.
    ///
    /// # Errors
    /// It does not start.
    pub fn prepare(rig: &Rig, flow: &Flow, index: usize, stop: &Stop) -> Result<Self, LabError> {
        let receiver = rig.receiver(flow).name();
        let (own, listening) = (addresses(index).1, format!("sport = :{}", port(index)));
        let server = Background::start(receiver, "iperf3", &["-s", "-p", &port(index), "-B", &own])?;
        let listens = || Ok(!run(&format!("ip netns exec {receiver} ss -Hltn {listening}"))?.trim().is_empty());
        stop.wait_for("waiting for iperf3 to listen", LISTEN, listens)?;
        Ok(Self { index, _server: server, client: None })
    }

    /// Begins to send.
    ///
    /// # Errors
    /// iperf3 cannot be started.
    pub fn go(&mut self, rig: &Rig, flow: &Flow) -> Result<(), LabError> {
        let (source, destination) = addresses(self.index);
        let seconds = flow.stop.duration().saturating_sub(flow.start.duration()).as_secs().max(1).to_string();
        let (port, connections) = (port(self.index), flow.connections.max(1));
        let each = flow.rate.map_or_else(|| "0".to_owned(), |rate| (rate.0 / u64::from(connections)).to_string());
        let connections = connections.to_string();
        let mut words = vec!["-c", &destination, "-B", &source, "-p", &port, "-t", &seconds, "-P", &connections];
        match (flow.load, flow.rate) {
            (Protocol::Udp, _) => words.extend(["-u", "-l", DATAGRAM_BYTES, "-b", &each]),
            // The kernel paces. iperf3 would send later what it could not send before, faster than it should.
            (Protocol::Tcp, Some(_)) => words.extend(["--fq-rate", &each]),
            (Protocol::Tcp, None) => {}
        }
        self.client = Some(Background::start(rig.hosts[place(&flow.from)].name(), "iperf3", &words)?);
        Ok(())
    }

    /// What the client said.
    #[must_use]
    pub fn said(&self) -> String {
        self.client.as_ref().and_then(|client| client.output().ok()).unwrap_or_default()
    }
}
