// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics as text. Names end in their unit, and those of counters get `_total` here.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;

/// What is told in one answer.
pub trait Tell: fmt::Debug + Send + Sync {
    /// Tells it.
    ///
    /// # Errors
    /// The text cannot be written.
    fn tell(&self, writer: &mut Writer<'_>) -> fmt::Result;
}

/// An answer.
///
/// # Errors
/// It cannot be written.
pub fn text(all: Vec<Box<dyn Tell>>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(All(all)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).map(|()| text)
}

#[derive(Debug)]
struct All(Vec<Box<dyn Tell>>);

impl Collector for All {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut writer = Writer(encoder);
        self.0.iter().try_for_each(|one| one.tell(&mut writer))
    }
}

/// Label sets: none, or a few names with their values.
pub type Labels<'a> = [(&'static str, &'a str)];

/// A count, or a measure.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    /// Of whole things.
    Count(u64),
    /// In the unit of the name.
    Measure(f64),
}

/// Bits/s as bytes per second. 8 bits are a byte: exact in a float up to 2^53.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn bytes_per_second(rate_bps: u64) -> Value {
    Value::Measure(rate_bps as f64 / 8.0)
}

/// ns as seconds.
#[must_use]
pub fn seconds(time_ns: u64) -> Value {
    Value::Measure(to_seconds(time_ns))
}

#[allow(clippy::cast_precision_loss)] // for people: 53 bits are enough
fn to_seconds(time_ns: u64) -> f64 {
    time_ns as f64 / 1e9
}

/// Writes metrics, one after the other.
pub struct Writer<'a>(DescriptorEncoder<'a>);

impl Writer<'_> {
    /// A metric with as many series as `series` writes.
    ///
    /// # Errors
    /// The text cannot be written.
    pub fn metric(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        series: impl FnOnce(&mut Metric<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, kind)?;
        series(&mut Metric { encoder, kind })
    }

    /// A gauge without labels.
    ///
    /// # Errors
    /// The text cannot be written.
    pub fn gauge(&mut self, name: &str, help: &str, value: Value) -> fmt::Result {
        self.metric(name, help, MetricType::Gauge, |metric| metric.write(&[], value))
    }

    /// A counter without labels.
    ///
    /// # Errors
    /// The text cannot be written.
    pub fn counter(&mut self, name: &str, help: &str, count: u64) -> fmt::Result {
        self.metric(name, help, MetricType::Counter, |metric| metric.write(&[], Value::Count(count)))
    }

    /// Times in buckets that double: `counts[i]` are of at most 2^i us and more than half of that; the last ones have no bound.
    ///
    /// # Errors
    /// The text cannot be written.
    pub fn histogram(&mut self, name: &str, help: &str, counts: &[u64], sum_ns: u64) -> fmt::Result {
        let last = counts.len().saturating_sub(1);
        let bound = |index: usize| if index == last { f64::INFINITY } else { to_seconds(1000 << index) };
        let buckets: Vec<(f64, u64)> = counts.iter().enumerate().map(|(index, &count)| (bound(index), count)).collect();
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        encoder.encode_histogram::<NoLabelSet>(to_seconds(sum_ns), counts.iter().sum(), &buckets, None)
    }
}

/// One metric with its series.
pub struct Metric<'a> {
    encoder: MetricEncoder<'a>,
    kind: MetricType,
}

impl Metric<'_> {
    /// A series.
    ///
    /// # Errors
    /// The text cannot be written.
    pub fn write(&mut self, labels: &Labels<'_>, value: Value) -> fmt::Result {
        let labels: Vec<(&str, &str)> = labels.to_vec();
        match labels.is_empty() {
            true => write_value(self.kind, &mut self.encoder, value),
            false => {
                let mut family = self.encoder.encode_family(&labels)?;
                write_value(self.kind, &mut family, value)
            }
        }
    }
}

fn write_value(kind: MetricType, encoder: &mut MetricEncoder<'_>, value: Value) -> fmt::Result {
    match (kind, value) {
        (MetricType::Counter, Value::Count(count)) => {
            encoder.encode_counter::<[(&str, &str); 0], u64, u64>(&count, None)
        }
        (_, Value::Count(count)) => encoder.encode_gauge(&count),
        (_, Value::Measure(measure)) => encoder.encode_gauge(&measure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct One(&'static str);

    impl Tell for One {
        fn tell(&self, writer: &mut Writer<'_>) -> fmt::Result {
            let rate = bytes_per_second(20);
            writer.metric(&format!("{}_rate", self.0), "Of a name", MetricType::Gauge, |metric| {
                metric.write(&[("name", "a \"b\"")], rate)?;
                metric.write(&[("name", "c"), ("part", "d")], Value::Count(7))
            })?;
            writer.counter(&format!("{}_things", self.0), "Seen", 3)?;
            writer.histogram(&format!("{}_wait_seconds", self.0), "Waited", &[1, 4, 2], 9_000)
        }
    }

    #[test]
    fn sources_are_told_one_after_the_other_and_the_text_ends_once() {
        let text = text(vec![Box::new(One("x")), Box::new(One("y"))]).unwrap();
        let of_one = "# HELP x_rate Of a name\n# TYPE x_rate gauge\nx_rate{name=\"a \\\"b\\\"\"} 2.5\nx_rate{name=\"c\",part=\"d\"} 7\n\
                      # HELP x_things Seen\n# TYPE x_things counter\nx_things_total 3\n\
                      # HELP x_wait_seconds Waited\n# TYPE x_wait_seconds histogram\n\
                      x_wait_seconds_sum 0.000009\nx_wait_seconds_count 7\n\
                      x_wait_seconds_bucket{le=\"0.000001\"} 1\nx_wait_seconds_bucket{le=\"0.000002\"} 5\nx_wait_seconds_bucket{le=\"+Inf\"} 7\n";
        assert_eq!(text, format!("{of_one}{}# EOF\n", of_one.replace("x_", "y_")));
    }
}
