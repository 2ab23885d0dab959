// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that a data plane in this process tells of: the last ones, until somebody takes them.

use penstock_algo::wire;
use std::collections::VecDeque;

/// Samples that are kept; the oldest goes when there are more.
const SAMPLES_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Samples(VecDeque<wire::pst_sample>);

impl Samples {
    pub fn push(&mut self, sample: wire::pst_sample) {
        if self.0.len() == SAMPLES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(sample);
    }

    /// Takes them all, oldest first.
    pub fn take(&mut self) -> Vec<wire::pst_sample> {
        self.0.drain(..).collect()
    }
}
