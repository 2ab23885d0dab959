// SPDX-License-Identifier: MIT OR Apache-2.0
//! Redis: the server is the sender, the benchmark asks it from the receiver.

use super::{Measured, Running, Site};
use crate::LabError;
use crate::process::Background;
use crate::results::Metrics;
use crate::scenario::RedisLoad;
use std::time::Duration;

/// How long the benchmark may take beside a flood.
const PATIENCE: Duration = Duration::from_secs(120);

/// Server and benchmark.
pub struct Redis {
    _server: Background,
    client: Option<Background>,
    load: RedisLoad,
}

impl Redis {
    /// Starts the server, without its files.
    pub fn prepare(site: &Site<'_>, load: RedisLoad) -> Result<Self, LabError> {
        let (port, folder) = (site.port().to_string(), site.folder.display().to_string());
        let words =
            ["--port", &port, "--bind", &site.source(), "--save", "", "--dir", &folder, "--protected-mode", "no"];
        let server = Background::start(site.sender(), "redis-server", &words)?;
        site.wait_for_server(site.sender(), &server)?;
        Ok(Self { _server: server, client: None, load })
    }
}

impl Running for Redis {
    fn go(&mut self, site: &Site<'_>) -> Result<(), LabError> {
        let port = site.port().to_string();
        let [clients, requests, size] =
            [u64::from(self.load.clients), u64::from(self.load.requests), self.load.size.0].map(|it| it.to_string());
        let source = site.source();
        let words = ["-h", &source, "-p", &port, "-c", &clients, "-n", &requests, "-d", &size, "-t", "get", "--csv"];
        // A value to get, of the size asked for.
        let set = ["-h", &source, "-p", &port, "-c", "1", "-n", "1", "-d", &size, "-t", "set", "-q"];
        Background::start(site.receiver(), "redis-benchmark", &set)?.finish(PATIENCE, site.stop)?;
        self.client = Some(Background::start(site.receiver(), "redis-benchmark", &words)?);
        Ok(())
    }

    fn finish(self: Box<Self>, site: &Site<'_>) -> Result<Measured, LabError> {
        let Some(client) = self.client else { return Ok(Measured::default()) };
        let metrics = read(&client.finish(PATIENCE, site.stop)?)?;
        Ok(Measured { bins: Vec::new(), metrics })
    }
}

/// The last line of the CSV, under the names of its header.
fn read(text: &str) -> Result<Metrics, LabError> {
    let wrong = || LabError::Output { tool: "redis-benchmark", what: text.trim().to_owned() };
    let fields = |line: &str| -> Vec<String> { line.split(',').map(|it| it.trim_matches('"').to_owned()).collect() };
    let header = text.lines().find(|line| line.contains("p50_latency_ms")).map(fields).ok_or_else(wrong)?;
    let values = text.lines().rev().find(|line| line.starts_with("\"GET\"")).map(fields).ok_or_else(wrong)?;
    let names = [("rps", "requests_per_s"), ("p50_latency_ms", "p50"), ("p99_latency_ms", "p99")];
    let metric = |(theirs, ours): (&str, &str)| {
        let at = header.iter().position(|name| name == theirs)?;
        Some((ours.to_owned(), values.get(at)?.parse().ok()?))
    };
    names.into_iter().map(|name| metric(name).ok_or_else(wrong)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_percentiles_by_name() {
        let header = r#""test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms""#;
        let text = format!("{header}\n\"GET\",\"100000.00\",\"0.4\",\"0.2\",\"0.431\",\"0.6\",\"0.903\",\"1.1\"\n");
        let metrics = read(&text).unwrap();
        assert_eq!((metrics["requests_per_s"], metrics["p50"], metrics["p99"]), (100000.0, 0.431, 0.903));
        assert!(read("nothing").is_err());
    }
}
