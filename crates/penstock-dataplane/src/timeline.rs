// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes over time, in a bounded number of bins that grow wider as a replay grows longer.

use penstock_algo::wire;

/// Most bins that a timeline keeps; when time passes the last one, pairs of bins are merged.
pub const BINS_MAX: usize = 512;
const FIRST_WIDTH_NS: u64 = 1_000_000;

/// Bytes of one bin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bin {
    /// Offered.
    pub offered: u64,
    /// Passed, marked ones included.
    pub passed: u64,
    /// Passed with CE or another DSCP.
    pub marked: u64,
    /// Dropped (in shadow mode: would have been).
    pub dropped: u64,
}

impl Bin {
    fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.passed += other.passed;
        self.marked += other.marked;
        self.dropped += other.dropped;
    }
}

/// Bins of several series over the same time axis. Times count from the first packet.
#[derive(Debug, Clone)]
pub struct Timeline {
    width_ns: u64,
    series: Vec<Vec<Bin>>,
}

impl Timeline {
    /// A timeline of `series` empty series.
    #[must_use]
    pub fn new(series: usize) -> Self {
        Self { width_ns: FIRST_WIDTH_NS, series: vec![Vec::new(); series] }
    }

    /// Adds one decided packet to a series: what passes or is marked, when it departs, and everything else when it comes.
    pub fn add(&mut self, series: usize, time_ns: u64, departure_ns: u64, decision: &wire::Decision) {
        let bytes = u64::from(decision.length);
        let dropped = u32::from(decision.verdict) == wire::PST_VERDICT_DROP;
        let marked = wire::is_mark(decision.reason);
        let waits = u32::from(decision.verdict) == wire::PST_VERDICT_HOLD && decision.shadow == 0;
        let passed = !dropped || decision.shadow != 0;
        let pick = |condition: bool| if condition { bytes } else { 0 };
        let come = Bin {
            offered: bytes,
            passed: pick(passed && !waits),
            marked: pick(marked && !waits),
            dropped: pick(dropped),
        };
        self.add_bin(series, time_ns, &come);
        if waits {
            self.add_bin(series, departure_ns, &Bin { passed: bytes, marked: pick(marked), ..Bin::default() });
        }
    }

    fn add_bin(&mut self, series: usize, time_ns: u64, bin: &Bin) {
        let mut index = time_ns / self.width_ns;
        while index >= BINS_MAX as u64 {
            self.halve();
            index = time_ns / self.width_ns;
        }
        // index < BINS_MAX, so it fits any usize.
        let index = usize::try_from(index).unwrap_or(BINS_MAX - 1);
        let Some(bins) = self.series.get_mut(series) else { return };
        if bins.len() <= index {
            bins.resize(index + 1, Bin::default());
        }
        bins[index].add(bin);
    }

    fn halve(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        for bins in &mut self.series {
            *bins = bins
                .chunks(2)
                .map(|pair| {
                    pair.iter().fold(Bin::default(), |mut sum, bin| {
                        sum.add(bin);
                        sum
                    })
                })
                .collect();
        }
    }

    /// Merges bins until no series has more than `bins` of them.
    pub fn coarsen(&mut self, bins: usize) {
        while self.len() > bins.max(1) {
            self.halve();
        }
    }

    /// Width of a bin in nanoseconds.
    #[must_use]
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Bins of a series, as far as it had packets.
    #[must_use]
    pub fn bins(&self, series: usize) -> &[Bin] {
        self.series.get(series).map_or(&[], Vec::as_slice)
    }

    /// Bins that the longest series has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.series.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Whether no packet was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(length: u32, verdict: u32) -> wire::Decision {
        let reason = if verdict == wire::PST_VERDICT_MARK { wire::PST_REASON_CE_MARK } else { wire::PST_REASON_NONE };
        let [verdict, reason] = [verdict, reason].map(|number| u8::try_from(number).unwrap());
        wire::Decision { length, verdict, reason, ..Default::default() }
    }

    #[test]
    fn bins_merge_and_no_byte_is_lost() {
        let mut timeline = Timeline::new(1);
        for millisecond in 0..5000_u64 {
            let verdict = if millisecond % 3 == 0 { wire::PST_VERDICT_DROP } else { wire::PST_VERDICT_MARK };
            timeline.add(0, millisecond * 1_000_000, millisecond * 1_000_000, &decision(100, verdict));
        }
        assert!(timeline.len() <= BINS_MAX);
        assert_eq!(timeline.width_ns(), 16_000_000);
        let sum = timeline.bins(0).iter().fold(Bin::default(), |mut sum, bin| {
            sum.add(bin);
            sum
        });
        assert_eq!(sum, Bin { offered: 500_000, passed: 333_300, marked: 333_300, dropped: 166_700 });
    }

    #[test]
    fn coarsening_keeps_sums() {
        let mut timeline = Timeline::new(1);
        for millisecond in 0..100_u64 {
            timeline.add(0, millisecond * 1_000_000, millisecond * 1_000_000, &decision(10, wire::PST_VERDICT_PASS));
        }
        timeline.coarsen(30);
        assert_eq!((timeline.len(), timeline.width_ns()), (25, 4_000_000));
        assert_eq!(timeline.bins(0).iter().map(|bin| bin.passed).sum::<u64>(), 1000);
    }

    #[test]
    fn a_far_time_stamp_ends() {
        let mut timeline = Timeline::new(1);
        timeline.add(0, 0, 0, &decision(1, wire::PST_VERDICT_PASS));
        timeline.add(0, u64::MAX, u64::MAX, &decision(1, wire::PST_VERDICT_PASS));
        assert!(timeline.len() <= BINS_MAX);
    }
}
