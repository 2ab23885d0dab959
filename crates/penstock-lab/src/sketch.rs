// SPDX-License-Identifier: MIT OR Apache-2.0
//! What AHAB approximates: how well a sketch of a size knows its users, and how well a table divides.

use crate::LabError;
use crate::quantity::Rate;
use crate::results::Metrics;
use crate::stats::{mean, percentile, real};
use penstock_algo::ahab::{NOMINAL_BITS, Params, Slice, divide_entries, divide_q12, times};
use penstock_algo::plane::Rng;
use penstock_packet::workload::{Generator, Workload};
use penstock_packet::{Batch, FrameSource};
use penstock_policy::diagnostics::Source;
use serde::Deserialize;

/// log2 of columns that are as good as a filter for each user.
const EXACT_COLUMN_BITS: u32 = 20;
/// Rows of a sketch, and bytes of a cell.
const ROWS: u64 = 3;
const CELL_BYTES: u64 = 8;
/// A chance to be dropped that is off by so much is off.
const OFF: f64 = 0.01;
/// Where a frame without tags has its IPv4 addresses: they are a user.
const ADDRESSES: std::ops::Range<usize> = 26..34;

/// A sketch before many users, beside one that is so large that it is exact.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sketch {
    /// Who sends; addresses tell users apart.
    pub workload: String,
    /// C.
    pub rate: Rate,
    /// log2 of its columns; it has three rows.
    pub column_bits: u32,
}

/// A division by table, and a step that is cut by it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefixDivide {
    /// Bits that the table looks at.
    pub bits: u32,
    /// What is divided
    pub part: u32,
    /// by what,
    pub whole: u32,
    /// and multiplied with 2 to the power of this.
    pub step_shift: u32,
}

/// Chances to be dropped, by what the sketch reads of users and by what they send, at the limit that the exact one finds.
///
/// # Errors
/// The workload is wrong.
pub fn measure(run: &Sketch) -> Result<Metrics, LabError> {
    let failed = |what: String| LabError::Computation(what);
    let workload = Workload::parse(&Source::new("workload", run.workload.clone()))?;
    let params = |column_bits| Params {
        rate_bytes_per_second: run.rate.0 / 8,
        column_bits,
        tau_shift: 22,
        epoch_shift: 20,
        divide_bits: 0,
        seed: 1,
    };
    let mut sized = Slice::new(&params(run.column_bits), 0);
    let mut exact = Slice::new(&params(EXACT_COLUMN_BITS), 0);
    let (mut rng, mut batch, mut source) = (Rng::new(1), Batch::new(), Generator::new(&workload));
    let mut seen = Seen::default();
    let nominal = f64::from(1_u32 << NOMINAL_BITS);
    while source.next_batch(&mut batch).map_err(|error| failed(error.to_string()))? {
        for frame in batch.iter() {
            let addresses = frame.data.get(ADDRESSES).and_then(|it| it.try_into().ok());
            let user = u64::from_ne_bytes(addresses.ok_or_else(|| failed("a frame without addresses".to_owned()))?);
            let (now_ns, random_u32) = (frame.time_ns, rng.next_u32());
            let read = sized.take(user, 1, now_ns, frame.wire_bytes, random_u32);
            let sent = exact.take(user, 1, now_ns, frame.wire_bytes, random_u32).user_parts;
            let limit = real(exact.limit()) / (run.rate.bps() / 8.0) * nominal;
            let chance = |parts: u32| (1.0 - limit / f64::from(parts)).max(0.0);
            seen.add(chance(sent), chance(read.user_parts), read.passes);
        }
    }
    let mut metrics = seen.metrics();
    metrics.insert("sketch_memory".to_owned(), real((ROWS * CELL_BYTES) << run.column_bits) / 1024.0);
    Ok(metrics)
}

/// Chances of packets, by what was sent and by what was read.
#[derive(Default)]
struct Seen {
    errors: Vec<f64>,
    /// Packets of those who send less than the limit; of these, those that may be dropped.
    innocent: f64,
    punished: f64,
    /// Those that the sketch's slice did drop, at its own limit.
    lost: f64,
    dropped: f64,
}

impl Seen {
    fn add(&mut self, target: f64, got: f64, passes: bool) {
        self.errors.push((got - target).abs());
        self.dropped += target;
        if target == 0.0 {
            self.innocent += 1.0;
            self.punished += if got > OFF { 1.0 } else { 0.0 };
            self.lost += if passes { 0.0 } else { 1.0 };
        }
    }

    /// In percent: of chances, and of packets.
    fn metrics(&self) -> Metrics {
        let count = real(self.errors.len() as u64).max(1.0);
        let off = real(self.errors.iter().filter(|error| **error > OFF).count() as u64);
        [
            ("error".to_owned(), 100.0 * mean(&self.errors)),
            ("error_p99".to_owned(), 100.0 * percentile(&self.errors, 99.0)),
            ("off_share".to_owned(), 100.0 * off / count),
            ("punished_share".to_owned(), 100.0 * self.punished / self.innocent.max(1.0)),
            ("lost_share".to_owned(), 100.0 * self.lost / self.innocent.max(1.0)),
            ("target_share".to_owned(), 100.0 * self.dropped / count),
        ]
        .into()
    }
}

/// AHAB, section V-A: entries, the example, and the mean error, with and without the row of 0.
pub fn prefix_divide(run: PrefixDivide) -> Metrics {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for whole in (1..=100_001).step_by(10_000) {
        for part in 1..=whole {
            let exact = f64::from(part) / f64::from(whole);
            let error = (f64::from(divide_q12(part, whole, run.bits)) / 4096.0 / exact - 1.0).abs();
            let length = 32 - whole.leading_zeros();
            let is_in_row_0 = part >> length.saturating_sub(run.bits) == 0;
            with.push(100.0 * error);
            without.push(if is_in_row_0 { 100.0 } else { 100.0 * error });
        }
    }
    let quotient = divide_q12(run.part, run.whole, run.bits);
    [
        ("entries".to_owned(), f64::from(divide_entries(run.bits))),
        ("quotient".to_owned(), f64::from(quotient)),
        ("step".to_owned(), f64::from(times(quotient, run.step_shift))),
        ("error".to_owned(), mean(&with)),
        ("error_without_0".to_owned(), mean(&without)),
    ]
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_sketch_punishes_and_a_large_one_does_not() {
        let of = |column_bits| {
            let workload = "{ penstock-workload: 1, duration: 200ms, flows: [ { name: all, count: 100000, rate: 2kbit/s, size: 500B,
                arrival: poisson, popularity: { zipf: 1.1 }, src: 172.16.0.1, dst: 10.0.0.0/8 } ] }";
            let run = Sketch { workload: workload.to_owned(), rate: Rate(150_000_000), column_bits };
            measure(&run).unwrap()
        };
        let (small, large) = (of(5), of(14));
        assert!(small["punished_share"] > 10.0 && small["error"] > 5.0 && small["lost_share"] > 1.0, "{small:?}");
        assert!(large["punished_share"] < 1.0 && large["error"] < 0.5 && large["lost_share"] < 0.1, "{large:?}");
        assert!(large["target_share"] > 5.0 && large["sketch_memory"] == 384.0, "{large:?}");
    }

    #[test]
    fn the_divide_is_the_papers() {
        let metrics = prefix_divide(PrefixDivide { bits: 5, part: 1012, whole: 1690, step_shift: 14 });
        assert_eq!((metrics["entries"], metrics["quotient"], metrics["step"]), (392.0, 2396.0, 9584.0));
        assert!((metrics["error_without_0"] - 8.23).abs() < 0.05, "{metrics:?}");
    }
}
