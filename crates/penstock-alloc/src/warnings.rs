// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits that ask for more than a port or an aggregate has (section 3.2: a warning if they do).

use penstock_policy::units::format_rate;

use crate::model::{Aggregate, Class, ClassId, Network, PortId};
use crate::terms::{Terms, UNITS};

/// What must not be applied: hard limits are installed as they are, so their sum at a port cannot be above its rate, nor that of members of an
/// aggregate above that. One sentence for each, which names it and the sum.
pub fn problems(network: &Network) -> Vec<String> {
    over(network, &Terms::new(network)).filter(|over| over.is_hard).map(|over| over.sentence).collect()
}

/// What does not do what it says: the problems, limits of all kinds whose sum is above a port's rate, safe rates above an aggregate's, and members
/// that are held where they only pass.
pub(crate) fn warnings(network: &Network, terms: &Terms) -> Vec<String> {
    let over = over(network, terms).map(|over| over.sentence);
    over.chain(unsafe_aggregates(network)).chain(met_again(network)).collect()
}

struct Over {
    is_hard: bool,
    sentence: String,
}

fn over(network: &Network, terms: &Terms) -> impl Iterator<Item = Over> {
    let ports = network.ports.iter().map(|port| ("port", &port.name, port.rate_bps));
    let aggregates = network.aggregates.iter().map(|one| ("aggregate", &one.name, one.rate_bps));
    ports.chain(aggregates).zip(&terms.ports).filter_map(|((noun, name, rate_bps), at)| {
        let is_hard = at.reserved > i128::from(at.rate);
        let (what, sum) = if is_hard { ("hard limits", at.reserved) } else { ("limits", at.limits) };
        let sum_bps = u64::try_from(sum / i128::from(UNITS)).unwrap_or(u64::MAX);
        let (sum_rate, rate) = (format_rate(sum_bps), format_rate(rate_bps));
        let sentence = || format!("{noun} `{name}`: {what} of {sum_rate} in all, above its rate of {rate}");
        (sum > i128::from(at.rate)).then(|| Over { is_hard, sentence: sentence() })
    })
}

/// Safe rates that together are above what an aggregate may have: while nobody says what its limits are, that is what it has.
fn unsafe_aggregates(network: &Network) -> Vec<String> {
    if network.aggregates.is_empty() {
        return Vec::new();
    }
    let safe_bps = network.all_safe_bps();
    let of_class = |class: &ClassId| {
        let firsts = network.classes[*class as usize].first_ports().len() as u64;
        safe_bps[*class as usize].unwrap_or(0).saturating_mul(firsts)
    };
    let sentence = |aggregate: &Aggregate| {
        let sum_bps = aggregate.classes.iter().map(of_class).fold(0, u64::saturating_add);
        let (sum, rate) = (format_rate(sum_bps), format_rate(aggregate.rate_bps));
        let sentence =
            || format!("aggregate `{}`: safe rates of {sum} in all, above its rate of {rate}", aggregate.name);
        (sum_bps > aggregate.rate_bps).then(sentence)
    };
    network.aggregates.iter().filter_map(sentence).collect()
}

/// Members that pass a port where others of their paths begin: there they are held to what begins there, and the rest is lost.
fn met_again(network: &Network) -> Vec<String> {
    let mut members: Vec<ClassId> = network.memberships().into_iter().map(|(class, _)| class).collect();
    members.dedup();
    let sentence = |class: &Class| {
        let firsts = class.first_ports();
        let behind = |path: &Vec<PortId>| path.iter().skip(1).copied().find(|port| firsts.binary_search(port).is_ok());
        let port = &network.ports[class.paths.iter().find_map(behind)? as usize].name;
        Some(format!(
            "class `{}`: paths of it begin at the port `{port}` and others pass it; as a member of an aggregate it has there what begins there",
            class.name
        ))
    };
    members.iter().filter_map(|class| sentence(&network.classes[*class as usize])).collect()
}
