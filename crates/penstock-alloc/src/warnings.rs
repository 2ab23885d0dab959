// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits that ask for more than a port has (section 3.2: a warning if they do).

use penstock_policy::units::format_rate;

use crate::model::Network;
use crate::terms::{Terms, UNITS};

/// What must not be applied: hard limits are installed as they are, so their sum at a port cannot be above its rate. One sentence for each
/// such port, which names it and the sum.
pub fn problems(network: &Network) -> Vec<String> {
    over(network, &Terms::new(network)).filter(|over| over.is_hard).map(|over| over.sentence).collect()
}

/// What does not do what it says: the problems, and limits of all kinds whose sum is above a port's rate.
pub(crate) fn warnings(network: &Network, terms: &Terms) -> Vec<String> {
    over(network, terms).map(|over| over.sentence).collect()
}

struct Over {
    is_hard: bool,
    sentence: String,
}

fn over(network: &Network, terms: &Terms) -> impl Iterator<Item = Over> {
    network.ports.iter().zip(&terms.ports).filter_map(|(port, at)| {
        let is_hard = at.reserved > i128::from(at.rate);
        let (what, sum) = if is_hard { ("hard limits", at.reserved) } else { ("limits", at.limits) };
        let sum_bps = u64::try_from(sum / i128::from(UNITS)).unwrap_or(u64::MAX);
        let (sum_rate, rate) = (format_rate(sum_bps), format_rate(port.rate_bps));
        let sentence = || format!("port `{}`: {what} of {sum_rate} in all, above its rate of {rate}", port.name);
        (sum > i128::from(at.rate)).then(|| Over { is_hard, sentence: sentence() })
    })
}
