// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics as a scraper reads them.

use std::collections::{BTreeMap, BTreeSet};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Series by name and labels.
#[derive(Debug)]
pub struct Series {
    values: BTreeMap<String, f64>,
    /// Names as series have them, without what a histogram adds.
    pub names: BTreeSet<String>,
}

impl Series {
    pub async fn scrape(address: &str) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        assert!(text.contains("content-type: application/openmetrics-text"), "{text}");
        Self::parse(text.split_once("\r\n\r\n").unwrap().1)
    }

    /// Checks on the way that each series is declared, and none comes twice.
    fn parse(text: &str) -> Self {
        let (mut values, mut names, mut helped) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        assert!(text.ends_with("# EOF\n"));
        for line in text.lines() {
            if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
                assert!(!help.is_empty() && helped.insert(name.to_owned()), "{line}");
            } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
                assert!(helped.contains(name) && ["counter", "gauge", "histogram"].contains(&kind), "{line}");
                names.insert(if kind == "counter" { format!("{name}_total") } else { name.to_owned() });
            } else if !line.starts_with('#') {
                let (name, value) = line.rsplit_once(' ').unwrap();
                assert!(values.insert(name.to_owned(), value.parse().unwrap()).is_none(), "twice: {line}");
                let metric = name.split('{').next().unwrap();
                let of_histogram = ["_sum", "_count", "_bucket"].iter().find_map(|end| metric.strip_suffix(end));
                let is_declared = names.contains(metric) || of_histogram.is_some_and(|name| names.contains(name));
                assert!(is_declared && metric.starts_with("penstock_controller_"), "{line}");
            }
        }
        Self { values, names }
    }

    /// Of `penstock_controller_..`; none where there is no such series.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.get(&format!("penstock_controller_{name}")).copied()
    }

    /// How many series a metric has.
    pub fn count(&self, name: &str) -> usize {
        let begin = format!("penstock_controller_{name}{{");
        self.values.keys().filter(|name| name.starts_with(&begin)).count()
    }
}
