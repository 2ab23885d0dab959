// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits that ask for more than a port has (section 3.2: a warning if they do).

use penstock_policy::units::format_rate;

use crate::model::{Limit, LimitKind, Network};

/// What must not be applied: hard limits are installed as they are, so their sum at a port cannot be above its rate. One sentence for each
/// such port, which names it and the sum.
pub fn problems(network: &Network) -> Vec<String> {
    let sums = sums(network);
    let over = network.ports.iter().zip(&sums).filter(|(port, sum)| sum.hard_bps > u128::from(port.rate_bps));
    over.map(|(port, sum)| sentence("hard limits", &port.name, sum.hard_bps, port.rate_bps)).collect()
}

/// What may be applied, and does not do what it says: limits of all kinds whose sum is above a port's rate. And the problems.
pub(crate) fn warnings(network: &Network) -> Vec<String> {
    let mut warnings = Vec::new();
    for (port, sum) in network.ports.iter().zip(sums(network)) {
        if sum.hard_bps > u128::from(port.rate_bps) {
            warnings.push(sentence("hard limits", &port.name, sum.hard_bps, port.rate_bps));
        } else if sum.all_bps > u128::from(port.rate_bps) {
            warnings.push(sentence("limits", &port.name, sum.all_bps, port.rate_bps));
        }
    }
    warnings
}

fn sentence(what: &str, port: &str, sum_bps: u128, rate_bps: u64) -> String {
    let sum = format_rate(u64::try_from(sum_bps).unwrap_or(u64::MAX));
    format!("port `{port}`: {what} of {sum} in all, above its rate of {}", format_rate(rate_bps))
}

/// Limits at a port, bits/s.
#[derive(Clone, Copy, Default)]
struct Sum {
    hard_bps: u128,
    all_bps: u128,
}

fn sums(network: &Network) -> Vec<Sum> {
    let mut local: Vec<_> =
        network.local.iter().filter_map(|policy| Some((policy.class, policy.port, policy.limit?))).collect();
    local.sort_unstable_by_key(|(class, port, _)| (*class, *port));
    let mut sums = vec![Sum::default(); network.ports.len()];
    for (class, id) in network.classes.iter().zip(0u32..) {
        let mut ports: Vec<u32> = class.paths.iter().flatten().copied().collect();
        ports.sort_unstable();
        ports.dedup();
        for port in ports {
            let here = local.binary_search_by_key(&(id, port), |(class, port, _)| (*class, *port)).ok();
            let limit: Option<Limit> = here.map(|at| local[at].2).or(class.limit);
            let sum = &mut sums[port as usize];
            sum.all_bps += limit.map_or(0, |limit| u128::from(limit.rate_bps));
            sum.hard_bps +=
                limit.filter(|limit| limit.kind == LimitKind::Hard).map_or(0, |limit| u128::from(limit.rate_bps));
        }
    }
    sums
}
