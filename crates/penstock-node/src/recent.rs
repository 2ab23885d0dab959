// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was counted and sampled lately, in bounded memory.

use crate::tending::Tended;
use penstock_algo::wire;
use penstock_api::v1;
use std::collections::VecDeque;

/// Samples that are kept; the oldest goes when there are more.
pub const SAMPLES_MAX: usize = 16_384;
/// Readings that are kept.
const READINGS_MAX: usize = 3;

/// Of the generation in force.
#[derive(Debug, Default)]
pub struct Recent {
    samples: VecDeque<wire::pst_sample>,
    readings: VecDeque<v1::Readings>,
    /// How shares were tended.
    pub tended: Tended,
}

impl Recent {
    /// Takes samples, oldest first.
    pub fn sampled(&mut self, samples: Vec<wire::pst_sample>) {
        let more = (self.samples.len() + samples.len()).saturating_sub(SAMPLES_MAX);
        self.samples.drain(..more.min(self.samples.len()));
        let skipped = samples.len().saturating_sub(SAMPLES_MAX);
        self.samples.extend(samples.into_iter().skip(skipped));
    }

    /// Takes a reading.
    pub fn counted(&mut self, readings: v1::Readings) {
        if self.readings.len() == READINGS_MAX {
            self.readings.pop_front();
        }
        self.readings.push_back(readings);
    }

    /// Samples, newest first.
    pub fn samples(&self) -> impl Iterator<Item = &wire::pst_sample> {
        self.samples.iter().rev()
    }

    /// The newest reading that is at least so old; else the oldest there is.
    #[must_use]
    pub fn before(&self, now_ns: u64, age_ns: u64) -> Option<&v1::Readings> {
        let old_enough = self.readings.iter().rev().find(|one| now_ns.saturating_sub(one.now_ns) >= age_ns);
        old_enough.or_else(|| self.readings.front())
    }

    /// Another policy: indices of classes mean something else now.
    pub fn forget(&mut self) {
        self.samples.clear();
        self.readings.clear();
        self.tended = Tended::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_an_end_and_the_newest_stay() {
        let at = |time_ns: u64| wire::pst_sample { time_ns, ..wire::pst_sample::default() };
        let mut recent = Recent::default();
        let most = SAMPLES_MAX as u64;
        recent.sampled((0..10).map(at).collect());
        recent.sampled((10..most + 5).map(at).collect());
        assert_eq!(recent.samples().count(), SAMPLES_MAX);
        assert_eq!(recent.samples().next().map(|sample| sample.time_ns), Some(most + 4));
        recent.sampled((0..2 * most).map(at).collect());
        assert_eq!(recent.samples().count(), SAMPLES_MAX);
        assert_eq!(recent.samples().last().map(|sample| sample.time_ns), Some(most));
    }

    #[test]
    fn a_reading_of_the_right_age_is_found() {
        let at = |now_ns: u64| v1::Readings { now_ns, ..v1::Readings::default() };
        let mut recent = Recent::default();
        assert!(recent.before(10, 5).is_none());
        [1, 5, 8, 9].into_iter().for_each(|time| recent.counted(at(time)));
        assert_eq!(recent.before(10, 2).map(|one| one.now_ns), Some(8));
        assert_eq!(recent.before(10, 9).map(|one| one.now_ns), Some(5), "the first one was forgotten");
    }
}
