// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of those who hold packets until their turn.

use penstock_dataplane::{ShapingReading, Times};
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use std::fmt;

/// A time as Prometheus has it.
#[allow(clippy::cast_precision_loss)] // for people: 53 bits are enough
fn seconds(time_ns: u64) -> f64 {
    time_ns as f64 / 1e9
}

/// What a data plane whose packets wait tells of it.
pub(super) fn encode(shaping: &ShapingReading, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Packets that left after they had waited";
    let mut sent = encoder.encode_descriptor("penstock_shaper_sent_packets", help, None, MetricType::Counter)?;
    sent.encode_counter::<NoLabelSet, u64, u64>(&shaping.sent_packets, None)?;
    let help = "Packets that were to wait and were lost on their way there";
    let mut lost = encoder.encode_descriptor("penstock_shaper_lost_packets", help, None, MetricType::Counter)?;
    lost.encode_counter::<NoLabelSet, u64, u64>(&shaping.lost_packets, None)?;
    let help = "Packets that wait";
    let mut waiting = encoder.encode_descriptor("penstock_shaper_waiting_packets", help, None, MetricType::Gauge)?;
    waiting.encode_gauge(&shaping.waiting_packets)?;
    let help = "Memory that packets take that wait";
    let mut taken = encoder.encode_descriptor("penstock_shaper_taken_bytes", help, None, MetricType::Gauge)?;
    taken.encode_gauge(&shaping.taken_bytes)?;
    histogram("penstock_shaper_delay_seconds", "How long packets waited", &shaping.delay, encoder)?;
    let help = "How long after their turn packets left";
    histogram("penstock_shaper_lateness_seconds", help, &shaping.lateness, encoder)
}

/// Times in buckets that double.
pub(super) fn histogram(name: &str, help: &str, times: &Times, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let last = times.counts.len() - 1;
    let bound = |index: usize| if index == last { f64::INFINITY } else { seconds(1000 << index) };
    let buckets: Vec<(f64, u64)> =
        times.counts.iter().enumerate().map(|(index, &count)| (bound(index), count)).collect();
    let mut encoder = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    encoder.encode_histogram::<NoLabelSet>(seconds(times.sum_ns), times.counts.iter().sum(), &buckets, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::collector::Collector;
    use prometheus_client::registry::Registry;

    #[derive(Debug)]
    struct Told(ShapingReading);

    impl Collector for Told {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            encode(&self.0, &mut encoder)
        }
    }

    #[test]
    fn times_are_told_in_buckets_that_end_without_a_bound() {
        let mut reading = ShapingReading { sent_packets: 5, waiting_packets: 2, ..ShapingReading::default() };
        reading.lateness.counts[3] = 4;
        reading.lateness.sum_ns = 1_500_000_000;
        if let Some(last) = reading.lateness.counts.last_mut() {
            *last = 1;
        }
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Told(reading)));
        let mut text = String::new();
        assert!(prometheus_client::encoding::text::encode(&mut text, &registry).is_ok());
        let lines = [
            "penstock_shaper_sent_packets_total 5",
            "penstock_shaper_waiting_packets 2",
            "penstock_shaper_lateness_seconds_sum 1.5",
            "penstock_shaper_lateness_seconds_count 5",
            "penstock_shaper_lateness_seconds_bucket{le=\"0.000004\"} 0",
            "penstock_shaper_lateness_seconds_bucket{le=\"0.000008\"} 4",
            "penstock_shaper_lateness_seconds_bucket{le=\"67.108864\"} 4",
            "penstock_shaper_lateness_seconds_bucket{le=\"+Inf\"} 5",
        ];
        for line in lines {
            assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
        }
    }
}
