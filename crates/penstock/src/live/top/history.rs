// SPDX-License-Identifier: MIT OR Apache-2.0
//! The passed rate of the last minute or so.

use ratatui::symbols::bar::NINE_LEVELS as LEVELS;
use std::collections::VecDeque;

/// Time that a history spans where intervals allow it.
const SPAN_NS: u64 = 60_000_000_000;

/// Readings that a history keeps: a minute of them, but not so few that there is no curve and not so many that none sees them.
pub fn samples_max(interval_ns: u64) -> usize {
    usize::try_from(SPAN_NS / interval_ns.max(1)).unwrap_or(usize::MAX).clamp(12, 600)
}

/// Rates, bit/s, the newest last.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    samples: VecDeque<f64>,
    /// Of all samples that ever were: buckets begin at its multiples, so that bars move and do not flicker.
    seen: usize,
}

impl History {
    /// Adds a reading and forgets the oldest.
    pub fn push(&mut self, rate_bps: f64, samples_max: usize) {
        self.samples.push_back(rate_bps);
        self.seen += 1;
        while self.samples.len() > samples_max {
            self.samples.pop_front();
        }
    }

    /// The mean, bit/s; 0 without a reading.
    pub fn mean_bps(&self) -> f64 {
        mean(self.samples.iter())
    }

    /// The highest reading, bit/s.
    pub fn highest_bps(&self) -> f64 {
        self.samples.iter().copied().fold(0.0, f64::max)
    }

    /// `width` bars at most, the newest last; a full bar is `full_bps`. Each is the mean of as many readings as it takes for
    /// all of `samples_max` to find a place.
    pub fn bars(&self, width: usize, samples_max: usize, full_bps: f64) -> String {
        let per_bar = samples_max.div_ceil(width.max(1)).max(1);
        let first = self.seen - self.samples.len();
        let mut bars: Vec<Vec<f64>> = Vec::new();
        for (index, &sample) in (first..).zip(&self.samples) {
            match bars.last_mut() {
                Some(bar) if index % per_bar != 0 => bar.push(sample),
                _ => bars.push(vec![sample]),
            }
        }
        let surplus = bars.len().saturating_sub(width);
        bars.iter().skip(surplus).map(|bar| level(mean(bar.iter()), full_bps)).collect()
    }
}

#[allow(clippy::cast_precision_loss)] // a few hundred
fn mean<'a>(samples: impl ExactSizeIterator<Item = &'a f64>) -> f64 {
    let count = samples.len().max(1) as f64;
    samples.sum::<f64>() / count
}

/// Something is more than nothing: the lowest bar is for any rate above 0.
fn level(rate_bps: f64, full_bps: f64) -> &'static str {
    let steps = [LEVELS.one_eighth, LEVELS.one_quarter, LEVELS.three_eighths, LEVELS.half, LEVELS.five_eighths]
        .into_iter()
        .chain([LEVELS.three_quarters, LEVELS.seven_eighths, LEVELS.full]);
    if rate_bps <= 0.0 {
        return LEVELS.empty;
    }
    let reached = (1..=8_u32).zip(steps).find(|&(eighths, _)| rate_bps * 8.0 <= full_bps * f64::from(eighths) + 1e-6);
    reached.map_or(LEVELS.full, |(_, step)| step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(samples: &[f64], samples_max: usize) -> History {
        let mut history = History::default();
        samples.iter().for_each(|&sample| history.push(sample, samples_max));
        history
    }

    #[test]
    fn a_minute_at_any_interval() {
        assert_eq!(samples_max(1_000_000_000), 60);
        assert_eq!(samples_max(100_000_000), 600);
        assert_eq!(samples_max(3_600_000_000_000), 12);
    }

    #[test]
    fn bars_are_eighths_of_what_is_full() {
        let eighths: Vec<f64> = (0..=9).map(f64::from).collect();
        assert_eq!(history(&eighths, 10).bars(10, 10, 8.0), " ▁▂▃▄▅▆▇██");
        assert_eq!(history(&[0.001], 10).bars(10, 10, 8.0), "▁");
        assert_eq!(history(&[0.0], 10).bars(10, 10, 0.0), " ");
    }

    #[test]
    fn narrow_bars_are_means_that_stay_the_same_while_they_move() {
        let mut history = history(&[0.0, 8.0, 4.0, 4.0, 8.0, 8.0], 6);
        assert_eq!(history.bars(3, 6, 8.0), "▄▄█");
        // The oldest bar has lost a reading, the newest has one only: the others are as they were.
        history.push(0.0, 6);
        assert_eq!(history.bars(4, 6, 8.0), "█▄█ ");
        assert_eq!(history.bars(3, 6, 8.0), "▄█ ");
    }

    #[test]
    fn old_readings_are_forgotten() {
        let history = history(&[100.0, 1.0, 2.0, 3.0], 3);
        assert!((history.mean_bps() - 2.0).abs() < 1e-9 && (history.highest_bps() - 3.0).abs() < 1e-9);
        assert!(History::default().mean_bps().abs() < 1e-9);
    }
}
