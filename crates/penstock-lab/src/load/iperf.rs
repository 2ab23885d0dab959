// SPDX-License-Identifier: MIT OR Apache-2.0
//! iperf3: what arrives is what the server counts, not what the client hands to its socket.

use super::{Measured, Running, Site};
use crate::LabError;
use crate::enforce::even;
use crate::process::Background;
use crate::quantity::Time;
use crate::results::Metrics;
use crate::scenario::{TcpLoad, Tenant, UdpLoad};
use crate::topology::HOST_DEVICE;
use serde::Deserialize;
use std::time::Duration;

/// How much longer than its time a client may take: it waits for its server's numbers at the end.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server at the receiver, and a client at the sender.
pub struct Iperf {
    server: Background,
    client: Option<Background>,
    options: Vec<String>,
}

/// The part of iperf3's JSON that the lab reads.
#[derive(Debug, Default, Deserialize)]
struct Report {
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    intervals: Vec<Interval>,
    #[serde(default)]
    end: End,
}

#[derive(Debug, Deserialize)]
struct Interval {
    sum: Sum,
}

#[derive(Debug, Deserialize)]
struct Sum {
    start: f64,
    seconds: f64,
    bits_per_second: f64,
}

#[derive(Debug, Default, Deserialize)]
struct End {
    #[serde(default)]
    sum_sent: Sent,
}

#[derive(Debug, Default, Deserialize)]
struct Sent {
    #[serde(default)]
    retransmits: Option<f64>,
}

impl Iperf {
    /// Connections that send as much as they may.
    pub fn tcp(site: &Site<'_>, load: TcpLoad) -> Result<Self, LabError> {
        let window = load.window.map(|window| ["-w".to_owned(), window.0.to_string()]);
        let words = ["-P".to_owned(), load.flows.to_string()];
        Self::prepare(site, words.into_iter().chain(window.into_iter().flatten()).collect())
    }

    /// Packets at a rate, whatever becomes of them.
    pub fn udp(site: &Site<'_>, load: UdpLoad) -> Result<Self, LabError> {
        // iperf3 sends what a millisecond has at once; where packets are to come evenly, it fills its socket and a device empties that.
        let each = if load.even { 0 } else { load.offered_bps() / u64::from(load.flows.max(1)) };
        if load.even {
            even(site.sender(), HOST_DEVICE, load.wire_bps())?;
        }
        let words = [
            "-u".to_owned(),
            "-P".to_owned(),
            load.flows.to_string(),
            "-b".to_owned(),
            each.to_string(),
            "-l".to_owned(),
            load.size.0.to_string(),
        ];
        Self::prepare(site, words.into())
    }

    fn prepare(site: &Site<'_>, options: Vec<String>) -> Result<Self, LabError> {
        let (port, bin) = (site.port().to_string(), site.bin.as_secs_f64().to_string());
        let words = ["-s", "-1", "-J", "-p", &port, "-i", &bin, "-B", &site.destination()];
        let server = Background::start(site.receiver(), "iperf3", &words)?;
        site.wait_for_server(site.receiver(), &server)?;
        Ok(Self { server, client: None, options })
    }
}

impl Running for Iperf {
    fn go(&mut self, site: &Site<'_>) -> Result<(), LabError> {
        let time = seconds(site.time, site.tenant).to_string();
        let (port, source, destination) = (site.port().to_string(), site.source(), site.destination());
        let mut words = vec!["-c", &destination, "-B", &source, "-p", &port, "-t", &time, "-J", "-i", "1"];
        words.extend(self.options.iter().map(String::as_str));
        self.client = Some(Background::start(site.sender(), "iperf3", &words)?);
        Ok(())
    }

    fn finish(self: Box<Self>, site: &Site<'_>) -> Result<Measured, LabError> {
        let Some(client) = self.client else { return Ok(Measured::default()) };
        let sent = report(&client.finish(site.time + PATIENCE, site.stop)?)?;
        let received = report(&self.server.finish(PATIENCE, site.stop)?)?;
        let mut metrics = Metrics::new();
        if let Some(retransmits) = sent.end.sum_sent.retransmits {
            metrics.insert("retransmits".to_owned(), retransmits);
        }
        Ok(Measured { bins: bins(&received, site), metrics })
    }
}

/// How long a tenant sends: iperf3 knows whole seconds.
fn seconds(time: Duration, tenant: &Tenant) -> f64 {
    let end = tenant.stop.map_or(time, Time::duration).min(time);
    end.saturating_sub(tenant.start.duration()).as_secs_f64().ceil()
}

/// Bins of full width; iperf3 adds what is left at the end as one of its own.
fn bins(report: &Report, site: &Site<'_>) -> Vec<(f64, f64)> {
    let (least, start) = (0.5 * site.bin.as_secs_f64(), site.tenant.start.duration().as_secs_f64());
    let whole = report.intervals.iter().map(|interval| &interval.sum).filter(|sum| sum.seconds >= least);
    whole.map(|sum| (start + sum.start, sum.bits_per_second / 1e6)).collect()
}

fn report(text: &str) -> Result<Report, LabError> {
    let wrong = |what: String| LabError::Output { tool: "iperf3", what };
    // A warning may stand before the JSON.
    let json = text.find('{').map_or("", |start| &text[start..]);
    let report: Report = serde_json::from_str(json).map_err(|error| wrong(format!("{error}: {}", text.trim())))?;
    match report.error {
        Some(error) => Err(wrong(error)),
        None => Ok(report),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Load;

    #[test]
    fn reads_what_the_server_counts() {
        let text = r#"iperf3: a warning
            {"intervals": [
                {"streams": [], "sum": {"start": 0, "end": 1.0, "seconds": 1.0, "bytes": 1, "bits_per_second": 9.5e7}},
                {"streams": [], "sum": {"start": 1, "end": 1.01, "seconds": 0.01, "bytes": 1, "bits_per_second": 1}}],
             "end": {"sum_sent": {"retransmits": 7, "bytes": 2}}}"#;
        let report = report(text).unwrap();
        assert_eq!(report.end.sum_sent.retransmits, Some(7.0));
        assert_eq!(report.intervals.len(), 2);
        assert_eq!(report.intervals[0].sum.bits_per_second, 9.5e7);
    }

    #[test]
    fn a_tenant_sends_until_it_stops_or_all_do() {
        let of = |start: u64, stop: Option<u64>| {
            let second = |seconds: u64| Time(seconds * 1_000_000_000);
            let load = Load::Tcp(TcpLoad { flows: 1, window: None });
            let (name, tcp, ecn, rto_min, limit) = (String::new(), String::new(), false, None, None);
            let (start, stop) = (second(start), stop.map(second));
            let tenant = Tenant { name, sender: 0, receiver: 0, tcp, ecn, rto_min, limit, start, stop, load };
            seconds(Duration::from_secs(10), &tenant)
        };
        assert_eq!([of(0, None), of(3, None), of(3, Some(5)), of(3, Some(20))], [10.0, 7.0, 2.0, 7.0]);
    }

    #[test]
    fn says_what_iperf_says() {
        let error = report(r#"{"error": "the server is busy"}"#).unwrap_err().to_string();
        assert!(error.contains("the server is busy"), "{error}");
        assert!(report("no JSON").is_err());
    }
}
