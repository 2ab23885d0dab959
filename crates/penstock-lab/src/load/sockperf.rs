// SPDX-License-Identifier: MIT OR Apache-2.0
//! sockperf: UDP messages to the receiver and back, one after the other.

use super::{Measured, Running, Site};
use crate::LabError;
use crate::process::Background;
use crate::results::Metrics;
use std::time::Duration;

/// How long sockperf may take beyond the time that it measures.
const PATIENCE: Duration = Duration::from_secs(20);

/// Server and client.
pub struct Sockperf {
    server: Background,
    client: Option<Background>,
}

impl Sockperf {
    /// Starts the server.
    pub fn prepare(site: &Site<'_>) -> Result<Self, LabError> {
        let (port, destination) = (site.port().to_string(), site.destination());
        let server = Background::start(site.receiver(), "sockperf", &["server", "-i", &destination, "-p", &port])?;
        site.wait_for_udp_server(site.receiver(), &server)?;
        Ok(Self { server, client: None })
    }
}

impl Running for Sockperf {
    fn go(&mut self, site: &Site<'_>) -> Result<(), LabError> {
        let (port, destination) = (site.port().to_string(), site.destination());
        let seconds = site.time.saturating_sub(site.tenant.start.duration()).as_secs().max(1).to_string();
        let words = ["ping-pong", "-i", &destination, "-p", &port, "-t", &seconds, "--full-rtt"];
        self.client = Some(Background::start(site.sender(), "sockperf", &words)?);
        Ok(())
    }

    fn finish(self: Box<Self>, site: &Site<'_>) -> Result<Measured, LabError> {
        let Some(client) = self.client else { return Ok(Measured::default()) };
        let metrics = read(&client.finish(site.time + PATIENCE, site.stop)?)?;
        drop(self.server);
        Ok(Measured { bins: Vec::new(), metrics })
    }
}

/// The table of percentiles: `---> percentile 50.000 =   38.211`, microseconds.
fn read(text: &str) -> Result<Metrics, LabError> {
    let wrong = || LabError::Output { tool: "sockperf", what: text.trim().to_owned() };
    let metric = |(percentile, ours): (&str, &str)| {
        let line = text.lines().find(|line| line.contains(&format!("percentile {percentile} =")))?;
        let microseconds: f64 = line.rsplit('=').next()?.trim().parse().ok()?;
        Some((ours.to_owned(), microseconds / 1000.0))
    };
    let percentiles = [("25.000", "p25"), ("50.000", "p50"), ("75.000", "p75"), ("99.000", "p99")];
    percentiles.into_iter().map(|percentile| metric(percentile).ok_or_else(wrong)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_percentiles() {
        let text = "sockperf: ---> percentile 99.000 =  101.500\nsockperf: ---> percentile 75.000 =   40.000\n\
                    sockperf: ---> percentile 50.000 =   38.000\nsockperf: ---> percentile 25.000 =   36.250\n";
        let metrics = read(text).unwrap();
        assert_eq!((metrics["p25"], metrics["p50"], metrics["p99"]), (0.03625, 0.038, 0.1015));
        assert!(read("sockperf: ERROR").is_err());
    }
}
