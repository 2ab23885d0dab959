// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is counted of one system's run.

use super::system::{Fate, System};
use crate::results::Metrics;
use crate::stats::{mean, percentile, real};

/// Of the deviations, one in so many is kept for the percentile.
const KEPT_ONE_IN: u64 = 8;
/// How often the pipelines' bytes are looked at.
const BIN_NS: u64 = 1_000_000;

/// A packet on its way.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passage {
    /// Whose.
    pub flow: u32,
    /// Under which limit.
    pub limit: u32,
    /// When it came.
    pub came_ns: u64,
    /// When it should leave: its virtual start time.
    pub due_ns: u64,
}

/// A bin of time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bin {
    /// Bytes that came.
    pub came: u64,
    /// Bytes that left.
    pub left: u64,
    /// Bytes that passed each pipeline.
    pub passed: [u64; 4],
}

/// Everything that is counted. What comes or leaves before the warm-up is over does not count.
pub struct Measure {
    bytes: u64,
    from_ns: u64,
    until_ns: u64,
    offered: u64,
    dropped: u64,
    left: u64,
    left_by_flow: Vec<u32>,
    last_due_ns: Vec<u64>,
    overtaken: u64,
    delay_ns: f64,
    deviation_ns: f64,
    deviations_ns: Vec<f64>,
    seen_bytes: [u64; 4],
    bins: Vec<Bin>,
}

impl Measure {
    /// Of this many flows under so many limits, from the end of the warm-up to the end.
    pub fn new(flows: usize, limits: usize, bytes: u32, from_ns: u64, until_ns: u64) -> Self {
        let bins = usize::try_from(until_ns / BIN_NS).unwrap_or(0) + 1;
        Self {
            bytes: u64::from(bytes),
            from_ns,
            until_ns,
            offered: 0,
            dropped: 0,
            left: 0,
            left_by_flow: vec![0; flows],
            last_due_ns: vec![0; limits],
            overtaken: 0,
            delay_ns: 0.0,
            deviation_ns: 0.0,
            deviations_ns: Vec::new(),
            seen_bytes: [0; 4],
            bins: vec![Bin::default(); bins],
        }
    }

    fn counts(&self, now_ns: u64) -> bool {
        (self.from_ns..self.until_ns).contains(&now_ns)
    }

    fn bin(&mut self, now_ns: u64) -> &mut Bin {
        let last = self.bins.len() - 1;
        &mut self.bins[usize::try_from(now_ns / BIN_NS).unwrap_or(last).min(last)]
    }

    /// A packet came.
    pub fn came(&mut self, now_ns: u64) {
        self.offered += u64::from(self.counts(now_ns));
        self.bin(now_ns).came += self.bytes;
    }

    /// What became of it.
    pub fn done(&mut self, passage: &Passage, fate: Fate) {
        let left_ns = match fate {
            Fate::Leaves(left_ns) => left_ns,
            Fate::Dropped => {
                self.dropped += u64::from(self.counts(passage.came_ns));
                return;
            }
            Fate::Waits => return,
        };
        let last_due_ns = &mut self.last_due_ns[passage.limit as usize];
        let is_overtaken = passage.due_ns < *last_due_ns;
        *last_due_ns = passage.due_ns.max(*last_due_ns);
        if left_ns >= self.until_ns {
            return;
        }
        let deviation_ns = real(left_ns.abs_diff(passage.due_ns));
        let bytes = self.bytes;
        self.bin(left_ns).left += bytes;
        if left_ns < self.from_ns {
            return;
        }
        self.left += 1;
        self.left_by_flow[passage.flow as usize] += 1;
        self.overtaken += u64::from(is_overtaken);
        self.delay_ns += real(left_ns - passage.came_ns);
        self.deviation_ns += deviation_ns;
        if self.left.is_multiple_of(KEPT_ONE_IN) {
            self.deviations_ns.push(deviation_ns);
        }
    }

    /// Looks at the pipelines at the end of a bin.
    pub fn look(&mut self, now_ns: u64, system: &System) {
        let Some(passed) = system.passed_bytes() else { return };
        let seen = std::mem::replace(&mut self.seen_bytes, passed);
        self.bin(now_ns).passed = std::array::from_fn(|pipe| passed[pipe] - seen[pipe]);
    }

    /// Width of a bin.
    pub fn bin_ns() -> u64 {
        BIN_NS
    }

    /// All bins, of which the last may be short.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// The numbers, of flows with limits of `flow_bps` each; token packets take `token_bps`.
    pub fn metrics(&self, flow_bps: f64, token_bps: f64) -> Metrics {
        let seconds = real(self.until_ns - self.from_ns) / 1e9;
        let bits = |packets: f64| packets * 8.0 * real(self.bytes);
        let (offered, left) = (bits(real(self.offered)), bits(real(self.left)));
        let limit = flow_bps * real(self.left_by_flow.len() as u64) * seconds;
        let accuracy = |got: f64, limit: f64| 100.0 * (1.0 - (got - limit).abs() / limit).max(0.0);
        let each = self.left_by_flow.iter().map(|&packets| accuracy(bits(f64::from(packets)), flow_bps * seconds));
        let each = each.sum::<f64>() / real(self.left_by_flow.len() as u64);
        let per_left = |sum: f64| if self.left == 0 { 0.0 } else { sum / real(self.left) / 1000.0 };
        let mut metrics = Metrics::from([
            ("goodput".to_owned(), left / seconds / 1e6),
            ("goodput_share".to_owned(), 100.0 * left / (offered + token_bps * seconds)),
            ("accuracy".to_owned(), accuracy(left, limit)),
            ("accuracy_each".to_owned(), each),
            ("dropped_share".to_owned(), 100.0 * real(self.dropped) / real(self.offered.max(1))),
            ("overtaken_share".to_owned(), 100.0 * real(self.overtaken) / real(self.left.max(1))),
            ("delay".to_owned(), per_left(self.delay_ns)),
            ("deviation".to_owned(), per_left(self.deviation_ns)),
            ("deviation_p99".to_owned(), percentile(&self.deviations_ns, 99.0) / 1000.0),
            ("forwarded_most".to_owned(), 100.0 * self.most_forwarded() / (limit / seconds)),
        ]);
        metrics.extend(self.variation().map(|variation| ("variation".to_owned(), variation)));
        metrics
    }

    fn counted_bins(&self) -> impl Iterator<Item = &Bin> {
        let index = |time_ns: u64| usize::try_from(time_ns / BIN_NS).unwrap_or(0);
        self.bins.iter().take(index(self.until_ns)).skip(index(self.from_ns))
    }

    /// The most that left in a bin, in bit/s.
    fn most_forwarded(&self) -> f64 {
        self.counted_bins().map(|bin| real(bin.left) * 8e9 / real(BIN_NS)).fold(0.0, f64::max)
    }

    /// "CV is calculated by dividing the variance of the bandwidth fractions by their mean": of each bin, and of these the mean.
    fn variation(&self) -> Option<f64> {
        let bins: Vec<f64> = self.counted_bins().filter_map(bin_variation).collect();
        (!bins.is_empty()).then(|| mean(&bins))
    }
}

fn bin_variation(bin: &Bin) -> Option<f64> {
    let sum: u64 = bin.passed.iter().sum();
    let fractions = bin.passed.map(|bytes| real(bytes) / real(sum));
    let average = mean(&fractions);
    let variance = mean(&fractions.map(|fraction| (fraction - average).powi(2)));
    (sum > 0).then(|| variance / average)
}
