// SPDX-License-Identifier: MIT OR Apache-2.0
//! When packets come: an aggregate that flows take turns in, steady or in bursts.

use crate::quantity::Time;
use crate::stats::real;
use penstock_algo::plane::Rng;
use serde::Deserialize;

/// Bursts of random length and rate, with gaps between them (`DragonKing`, section V, "Bursty Settings").
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// Shortest gap.
    pub gap_least: Time,
    /// Longest gap.
    pub gap_most: Time,
    /// Shortest burst.
    pub length_least: Time,
    /// Longest burst.
    pub length_most: Time,
    /// Least rate of a burst, in percent of the largest.
    pub low_percent: u32,
}

impl Bursts {
    /// Mean length of a burst over that of a burst and a gap.
    fn duty(&self) -> f64 {
        let mean = |least: Time, most: Time| f64::midpoint(real(least.0), real(most.0));
        let length = mean(self.length_least, self.length_most);
        length / (length + mean(self.gap_least, self.gap_most))
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a positive time of a short run
pub fn whole(time_ns: f64) -> u64 {
    time_ns as u64
}

/// Times at which an aggregate's packets come.
pub struct Arrivals {
    mean_bps: f64,
    bits: f64,
    bursts: Option<Bursts>,
    rng: Rng,
    at_ns: f64,
    until_ns: f64,
    gap_ns: f64,
}

impl Arrivals {
    /// Packets of `bytes`, `mean_bps` in the mean. Bursts have rates from `low_percent` to 100 % of one that makes that mean.
    pub fn new(mean_bps: f64, bytes: u32, bursts: Option<Bursts>) -> Self {
        let bits = f64::from(bytes) * 8.0;
        Self { mean_bps, bits, bursts, rng: Rng::new(1), at_ns: 0.0, until_ns: 0.0, gap_ns: 1e9 * bits / mean_bps }
    }

    /// When the next packet comes.
    pub fn next_ns(&mut self) -> u64 {
        if let Some(bursts) = self.bursts
            && self.at_ns >= self.until_ns
        {
            self.at_ns = self.until_ns + self.between(bursts.gap_least, bursts.gap_most);
            self.until_ns = self.at_ns + self.between(bursts.length_least, bursts.length_most);
            let low = f64::from(bursts.low_percent) / 100.0;
            let share = low + (1.0 - low) * self.uniform();
            let rate = self.mean_bps * share / (f64::midpoint(low, 1.0) * bursts.duty());
            self.gap_ns = 1e9 * self.bits / rate;
        }
        let now_ns = self.at_ns;
        self.at_ns += self.gap_ns;
        whole(now_ns)
    }

    fn uniform(&mut self) -> f64 {
        f64::from(self.rng.next_u32()) / 2_f64.powi(32)
    }

    fn between(&mut self, least: Time, most: Time) -> f64 {
        let (least, most) = (real(least.0), real(most.0));
        least + (most - least) * self.uniform()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_have_the_mean_that_is_asked_for_and_gaps() {
        let ms = |time: u64| Time(time * 1_000_000);
        let bursts = Bursts {
            gap_least: Time(50_000),
            gap_most: Time(500_000),
            length_least: ms(1),
            length_most: ms(20),
            low_percent: 50,
        };
        let mut arrivals = Arrivals::new(1e9, 1500, Some(bursts));
        let times: Vec<u64> = (0..1_000_000).map(|_| arrivals.next_ns()).collect();
        let rate = 1e6 * 12e12 / real(times[times.len() - 1]);
        assert!((rate / 1e9 - 1.0).abs() < 0.03, "{rate}");
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().any(|&gap| gap > 50_000) && gaps.iter().all(|&gap| gap <= 530_000));
        assert!(gaps.iter().any(|&gap| gap < 9_500), "the fastest is a third above the mean");
    }
}
