// SPDX-License-Identifier: MIT OR Apache-2.0
//! Means, deviations and percentiles of measurements.

/// A count, a size or a time as a real number.
#[must_use]
#[allow(clippy::cast_precision_loss)] // what is counted in experiments is far below 2^53
pub fn real(number: u64) -> f64 {
    number as f64
}

/// The mean; 0 of nothing.
#[must_use]
#[allow(clippy::cast_precision_loss)] // experiments have far fewer samples than 2^53
pub fn mean(samples: &[f64]) -> f64 {
    if samples.is_empty() { 0.0 } else { samples.iter().sum::<f64>() / samples.len() as f64 }
}

/// The standard deviation of a sample (n - 1); 0 of fewer than two.
#[must_use]
#[allow(clippy::cast_precision_loss)] // as above
pub fn deviation(samples: &[f64]) -> f64 {
    if samples.len() < 2 {
        return 0.0;
    }
    let mean = mean(samples);
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    (squares / (samples.len() - 1) as f64).sqrt()
}

/// Standard deviation in percent of the mean: what SwitchRL calls oscillation. 0 where the mean is.
#[must_use]
pub fn oscillation(samples: &[f64]) -> f64 {
    let mean = mean(samples);
    if mean == 0.0 { 0.0 } else { 100.0 * deviation(samples) / mean }
}

/// The smallest sample that `percent` of them do not exceed (nearest rank); 0 of nothing.
#[must_use]
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a rank is an index
pub fn percentile(samples: &[f64], percent: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_nothing_all_are_zero() {
        assert_eq!(
            (mean(&[]), deviation(&[1.0]), oscillation(&[0.0, 0.0]), percentile(&[], 50.0)),
            (0.0, 0.0, 0.0, 0.0)
        );
    }

    #[test]
    fn of_a_known_sample() {
        let samples = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&samples), 5.0);
        assert!((deviation(&samples) - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert!((oscillation(&samples) - 20.0 * (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn percentiles_are_samples() {
        let samples: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(percentile(&samples, 50.0), 100.0);
        assert_eq!(percentile(&samples, 99.0), 198.0);
        assert_eq!(percentile(&samples, 100.0), 200.0);
        assert_eq!(percentile(&samples, 0.0), 1.0);
    }
}
