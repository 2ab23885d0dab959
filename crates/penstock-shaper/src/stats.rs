// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an engine did, for whoever asks meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bounds of the histograms' buckets: 2^n us, the last one without a bound.
pub const BUCKETS: usize = 28;

/// A histogram of times: how often each power of two was not exceeded.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

impl Histogram {
    /// Counts a time.
    pub fn add(&self, time_ns: u64) {
        let bits = u64::BITS - time_ns.div_ceil(1000).saturating_sub(1).leading_zeros();
        self.buckets[(bits as usize).min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(time_ns, Ordering::Relaxed);
    }

    /// Counts by bucket: times of at most 2^index us, and of more than half of that.
    #[must_use]
    pub fn counts(&self) -> [u64; BUCKETS] {
        std::array::from_fn(|index| self.buckets[index].load(Ordering::Relaxed))
    }

    /// The sum of all times, ns.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns.load(Ordering::Relaxed)
    }
}

/// Counters of one worker.
#[derive(Debug, Default)]
pub struct Stats {
    /// Packets that left.
    pub sent: AtomicU64,
    /// Packets that wait.
    pub waiting: AtomicU64,
    /// Packets that the kernel could not hand over, or that were not what they should be.
    pub lost: AtomicU64,
    /// How long packets waited.
    pub delay: Histogram,
    /// How long after their turn packets left.
    pub lateness: Histogram,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_the_bucket_that_bounds_them() {
        let histogram = Histogram::default();
        for (time_ns, bucket) in
            [(0, 0), (1, 0), (1000, 0), (1001, 1), (2000, 1), (2001, 2), (4000, 2), (u64::MAX / 4, 27)]
        {
            let before = histogram.counts()[bucket];
            histogram.add(time_ns);
            assert_eq!(histogram.counts()[bucket], before + 1, "{time_ns}");
        }
    }
}
