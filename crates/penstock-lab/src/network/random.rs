// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is drawn: by a seed, the same on every machine.

use penstock_algo::plane::Rng;

/// Draws numbers.
pub struct Random(Rng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }

    /// An index of so many.
    pub fn below(&mut self, bound: usize) -> usize {
        let product = u128::from(self.0.next_u64()) * bound as u128;
        usize::try_from(product >> 64).unwrap_or(0)
    }

    /// Above 0, and 1 at most.
    pub fn unit(&mut self) -> f64 {
        (f64::from(self.0.next_u32()) + 1.0) / 2_f64.powi(32)
    }

    /// What comes between two of a Poisson process with so many in the unit of time.
    pub fn gap(&mut self, rate: f64) -> f64 {
        -self.unit().ln() / rate
    }

    /// Normal (Box and Muller).
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        mean + deviation * radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}
