// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of those who hold packets until their turn.

use penstock_api::metrics::{Value, Writer};
use penstock_dataplane::ShapingReading;
use std::fmt;

/// What a data plane whose packets wait tells of it.
pub(super) fn encode(shaping: &ShapingReading, writer: &mut Writer<'_>) -> fmt::Result {
    let help = "Packets that left after they had waited";
    writer.counter("penstock_shaper_sent_packets", help, shaping.sent_packets)?;
    let help = "Packets that were to wait and were lost on their way there";
    writer.counter("penstock_shaper_lost_packets", help, shaping.lost_packets)?;
    writer.gauge("penstock_shaper_waiting_packets", "Packets that wait", Value::Count(shaping.waiting_packets))?;
    let help = "Memory that packets take that wait";
    writer.gauge("penstock_shaper_taken_bytes", help, Value::Count(shaping.taken_bytes))?;
    let (delay, lateness) = (&shaping.delay, &shaping.lateness);
    writer.histogram("penstock_shaper_delay_seconds", "How long packets waited", &delay.counts, delay.sum_ns)?;
    let help = "How long after their turn packets left";
    writer.histogram("penstock_shaper_lateness_seconds", help, &lateness.counts, lateness.sum_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_api::metrics::{Tell, text};

    #[derive(Debug)]
    struct Told(ShapingReading);

    impl Tell for Told {
        fn tell(&self, writer: &mut Writer<'_>) -> fmt::Result {
            encode(&self.0, writer)
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
        let text = text(vec![Box::new(Told(reading))]).unwrap();
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
