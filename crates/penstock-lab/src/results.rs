// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was measured, and the files it goes to.

use crate::LabError;
use crate::stats;
use crate::template::Values;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Numbers by what they measure.
pub type Metrics = BTreeMap<String, f64>;

/// The tenant that stands for all of them together.
pub const ALL: &str = "all";

/// What a number belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// What limited it.
    pub series: String,
    /// The sweep's variables.
    pub point: Values,
    /// Whose it is.
    pub tenant: String,
}

impl Subject {
    /// Whether it is of a series and a tenant, where they are given, and at these values of variables.
    #[must_use]
    pub fn is(&self, series: Option<&str>, tenant: Option<&str>, at: &Values) -> bool {
        series.is_none_or(|series| series == self.series)
            && tenant.is_none_or(|tenant| tenant == self.tenant)
            && at.iter().all(|(name, value)| self.point.get(name) == Some(value))
    }
}

/// One tenant in one run at one point.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Whose.
    pub of: Subject,
    /// Counted from 1.
    pub run: u32,
    /// Its numbers.
    pub metrics: Metrics,
}

/// A value at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Whose.
    pub of: Subject,
    /// What it is: goodput, window or queue.
    pub name: &'static str,
    /// Since the traffic's start.
    pub time_s: f64,
    /// In the unit of [`unit`].
    pub value: f64,
}

/// Everything that a scenario measured.
#[derive(Debug, Clone, Default)]
pub struct Results {
    /// A line a tenant, run and point.
    pub rows: Vec<Row>,
    /// Series over time, of the first run of each point.
    pub samples: Vec<Sample>,
    /// What went wrong without ending the run.
    pub remarks: Vec<String>,
}

/// A subject's means over its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Mean {
    /// Whose.
    pub of: Subject,
    /// How many runs.
    pub runs: usize,
    /// Means over the runs.
    pub metrics: Metrics,
}

impl Results {
    /// Means over runs, in the order in which subjects came first.
    #[must_use]
    pub fn means(&self) -> Vec<Mean> {
        let mut subjects: Vec<&Subject> = Vec::new();
        for row in &self.rows {
            if !subjects.contains(&&row.of) {
                subjects.push(&row.of);
            }
        }
        subjects.into_iter().map(|subject| self.mean_of(subject)).collect()
    }

    fn mean_of(&self, subject: &Subject) -> Mean {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.of == *subject).collect();
        let names: BTreeSet<&String> = rows.iter().flat_map(|row| row.metrics.keys()).collect();
        let mean = |name: &String| {
            let values: Vec<f64> = rows.iter().filter_map(|row| row.metrics.get(name).copied()).collect();
            (name.clone(), stats::mean(&values))
        };
        Mean { of: subject.clone(), runs: rows.len(), metrics: names.into_iter().map(mean).collect() }
    }

    /// Names of all metrics.
    #[must_use]
    pub fn metric_names(&self) -> Vec<String> {
        let names: BTreeSet<&String> = self.rows.iter().flat_map(|row| row.metrics.keys()).collect();
        names.into_iter().cloned().collect()
    }

    /// Writes `results.csv`, and `samples.csv` where there are samples, into a folder.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn write(&self, folder: &Path) -> Result<(), LabError> {
        let write = |name: &str, text: Result<Vec<u8>, csv::Error>| {
            let path = folder.join(name);
            let failed = |source| LabError::io(format!("cannot write {}", path.display()), source);
            text.map_err(|error| failed(std::io::Error::other(error)))
                .and_then(|text| std::fs::write(&path, text).map_err(failed))
        };
        write("results.csv", self.rows_as_csv())?;
        if self.samples.is_empty() { Ok(()) } else { write("samples.csv", self.samples_as_csv()) }
    }

    /// The rows of a `results.csv`, of which these columns are the sweep's variables.
    ///
    /// # Errors
    /// It is not what [`Results::write`] writes.
    pub fn read(csv: &str, variables: &[&str]) -> Result<Self, LabError> {
        let failed = |error: csv::Error| LabError::io("results.csv", std::io::Error::other(error));
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let names = reader.headers().map_err(failed)?.clone();
        let mut results = Self::default();
        for record in reader.records() {
            let mut row = Row { of: Subject::default(), run: 0, metrics: Metrics::new() };
            for (name, value) in names.iter().zip(&record.map_err(failed)?).filter(|(_, value)| !value.is_empty()) {
                let wrong = || LabError::io("results.csv", std::io::Error::other(format!("{name} is {value:?}")));
                match name {
                    "series" => value.clone_into(&mut row.of.series),
                    "tenant" => value.clone_into(&mut row.of.tenant),
                    "run" => row.run = value.parse().map_err(|_| wrong())?,
                    name if variables.contains(&name) => drop(row.of.point.insert(name.to_owned(), value.to_owned())),
                    name => drop(row.metrics.insert(name.to_owned(), value.parse().map_err(|_| wrong())?)),
                }
            }
            results.rows.push(row);
        }
        Ok(results)
    }

    fn rows_as_csv(&self) -> Result<Vec<u8>, csv::Error> {
        let (variables, metrics) = (self.variables(), self.metric_names());
        let mut writer = csv::Writer::from_writer(Vec::new());
        let header = ["series", "tenant", "run"].map(str::to_owned).into_iter();
        writer.write_record(header.chain(variables.iter().cloned()).chain(metrics.iter().cloned()))?;
        for row in &self.rows {
            let mut record = vec![row.of.series.clone(), row.of.tenant.clone(), row.run.to_string()];
            record.extend(variables.iter().map(|name| row.of.point.get(name).cloned().unwrap_or_default()));
            let number = |name: &String| row.metrics.get(name).map(|value| format!("{value:.4}")).unwrap_or_default();
            record.extend(metrics.iter().map(number));
            writer.write_record(record)?;
        }
        writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))
    }

    fn samples_as_csv(&self) -> Result<Vec<u8>, csv::Error> {
        let variables = self.variables();
        let mut writer = csv::Writer::from_writer(Vec::new());
        let header = ["series", "tenant", "sample", "time_s", "value"].map(str::to_owned).into_iter();
        writer.write_record(header.chain(variables.iter().cloned()))?;
        for sample in &self.samples {
            let Sample { of, name, time_s, value } = sample;
            let mut record = vec![of.series.clone(), of.tenant.clone(), (*name).to_owned()];
            record.extend([format!("{time_s:.4}"), format!("{value:.4}")]);
            record.extend(variables.iter().map(|name| of.point.get(name).cloned().unwrap_or_default()));
            writer.write_record(record)?;
        }
        writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))
    }

    fn variables(&self) -> Vec<String> {
        let names: BTreeSet<&String> = self.rows.iter().flat_map(|row| row.of.point.keys()).collect();
        names.into_iter().cloned().collect()
    }
}

/// What a metric counts in.
#[must_use]
pub fn unit(metric: &str) -> &'static str {
    match metric {
        "goodput" | "goodput_least" | "goodput_most" | "fair" | "goodput_p10" | "goodput_p50" | "goodput_p90"
        | "passed" | "arrived" => "Mbit/s",
        "saturation"
        | "passed_share"
        | "arrived_share"
        | "variation_1ms"
        | "variation_10ms"
        | "variation_100ms"
        | "updates_share"
        | "update_cpu"
        | "oscillation"
        | "settled_oscillation"
        | "dropped_share"
        | "marked_share"
        | "shared_share"
        | "share_error"
        | "share_error_most"
        | "used_least"
        | "used_most"
        | "share_least"
        | "share_p1"
        | "share_p50"
        | "share_p99"
        | "share_most"
        | "window_swing"
        | "error"
        | "error_p99"
        | "error_without_0"
        | "off_share"
        | "punished_share"
        | "lost_share"
        | "target_share"
        | "goodput_share"
        | "accuracy"
        | "accuracy_each"
        | "overtaken_share"
        | "gap_share"
        | "limit_mean"
        | "limit_most"
        | "limit_quiet_least"
        | "limit_quiet_most"
        | "during_most"
        | "forwarded_most"
        | "ports_used"
        | "gain"
        | "ports_used_gain"
        | "gaining_share"
        | "off"
        | "off_down"
        | "off_up" => "%",
        "gets" | "gets_of_all" | "path_least" | "path_most" => "Gbit/s",
        "p50" | "p99" | "wait_most" | "first_mean" | "first_most" | "stays_mean" | "stays_most" | "done"
        | "settled_down" | "settled_up" | "served_mean" | "served_most" | "whole" => "ms",
        "delay" | "deviation" | "deviation_p99" | "message_mean" | "message_p50" | "message_p99" => "us",
        "latency_p50" | "latency_p99" | "judged_ns" => "ns",
        "queue" | "queue_mean" | "queue_max" | "sketch_memory" => "KB",
        "memory" | "state_memory" | "unshared_memory" => "MB",
        "bytes_each" | "entry_bytes" => "B",
        "updates" | "judged" => "M/s",
        "window" | "window_mean" | "window_max" | "newcomers_packets_mean" | "newcomers_packets_most" => "packets",
        _ => "",
    }
}
