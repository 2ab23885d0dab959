// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks to share out: all links of one rate, a class for each of many random pairs of hosts.

use penstock_alloc::model::{Class, Limit, LimitKind, Network};
use penstock_alloc::topology::Generator;
use penstock_policy::diagnostics::Problem;

use crate::random::Random;

/// A topology, in the words of `penstock plan --generate`.
pub struct Fabric {
    pub name: &'static str,
    pub words: &'static str,
}

impl Fabric {
    /// `classes` random pairs of hosts, with `paths` ways each of those that there are, and what `mix` says.
    pub fn network(&self, classes: u32, paths: u32, mix: Mix, seed: u32) -> Result<Network, Problem> {
        let weights = if mix == Mix::Equal { "1" } else { "1-5" };
        let priorities = if mix == Mix::All { 3 } else { 1 };
        let words = format!(
            "{},traffic=random,pairs={classes},paths={paths},weights={weights},priorities={priorities},seed={seed}",
            self.words
        );
        let mut network = words.parse::<Generator>()?.network()?;
        let mut random = Random(u64::from(seed));
        let mixed = network.classes.iter_mut().filter(|_| mix == Mix::All);
        mixed.for_each(|class| bound(class, &mut random));
        Ok(network)
    }
}

/// Limits for 3 of 10, and demands for 3 of 10.
fn bound(class: &mut Class, random: &mut Random) {
    let rate_bps = 1_000_000 * u64::from(1 + random.below(400));
    let draw = random.below(10);
    class.limit = (draw < 3).then_some(Limit { rate_bps, kind: LimitKind::Soft });
    class.demand_bps = (draw >= 7).then_some(rate_bps);
}

/// What classes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// Nothing: all weigh the same.
    Equal,
    /// Weights 1 to 5.
    Weights,
    /// Three priorities besides, and limits and demands for 3 of 10 each.
    All,
}

impl Mix {
    pub fn what(self) -> &'static str {
        match self {
            Self::Equal => "nothing",
            Self::Weights => "weights",
            Self::All => "weights, priorities, limits, demands",
        }
    }
}
