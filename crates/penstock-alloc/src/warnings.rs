// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits that ask for more than a port or an aggregate has (section 3.2: a warning if they do).

use penstock_policy::units::format_rate;
use std::cmp::Reverse;

use crate::allocation::Bottleneck;
use crate::model::{Aggregate, AggregateId, Class, ClassId, Limit, LimitKind, Network, PortId};
use crate::terms::{Terms, UNITS, whole_bps};

/// What must not be applied: hard limits are installed as they are, so their sum at a port cannot be above its rate, nor that of members of an
/// aggregate above that. One sentence for each, which names it and the sum. Of a network that was read from a file, [`Network::parse_checked`] says
/// where.
pub fn problems(network: &Network) -> Vec<String> {
    if !has_hard_limits(network) {
        return Vec::new();
    }
    over(network, &Terms::new(network)).filter(|over| over.is_hard).map(|over| over.sentence).collect()
}

/// Hard limits that do not fit.
pub(crate) struct Reserved {
    pub at: Bottleneck,
    /// As [`problems`] has it.
    pub sentence: String,
    /// What they may be in all, bits/s.
    pub rate_bps: u64,
    /// Who reserves how much of it, bits/s, largest first.
    pub limits: Vec<(ClassId, u64)>,
}

/// [`problems`] in parts.
pub(crate) fn reserved(network: &Network) -> Vec<Reserved> {
    if !has_hard_limits(network) {
        return Vec::new();
    }
    let terms = Terms::new(network);
    let mut places = vec![None::<usize>; terms.ports.len()];
    let mut all: Vec<Reserved> = Vec::new();
    for Over { at, rate_bps, sentence, .. } in over(network, &terms).filter(|over| over.is_hard) {
        let number = match at {
            Bottleneck::Port(port) => port,
            Bottleneck::Aggregate(aggregate) => terms.aggregates_from + aggregate,
        };
        places[number as usize] = Some(all.len());
        all.push(Reserved { at, sentence, rate_bps, limits: Vec::new() });
    }
    for slot in terms.slots.iter().filter(|slot| slot.is_hard) {
        if let Some(place) = places[slot.port as usize] {
            all[place].limits.push((slot.class, whole_bps(slot.limit)));
        }
    }
    for one in &mut all {
        one.limits.sort_by_key(|(class, bps)| (Reverse(*bps), *class));
    }
    all
}

/// Most networks have none.
fn has_hard_limits(network: &Network) -> bool {
    let of_classes = network.classes.iter().filter_map(|class| class.limit);
    let mut limits = of_classes.chain(network.local.iter().filter_map(|policy| policy.limit));
    limits.any(|Limit { kind, .. }| kind == LimitKind::Hard)
}

/// What does not do what it says: the problems, limits of all kinds whose sum is above a port's rate, safe rates above an aggregate's, and members
/// that are held where they only pass.
pub(crate) fn warnings(network: &Network, terms: &Terms) -> Vec<String> {
    let over = over(network, terms).map(|over| over.sentence);
    over.chain(unsafe_aggregates(network)).chain(met_again(network)).collect()
}

struct Over {
    at: Bottleneck,
    is_hard: bool,
    rate_bps: u64,
    sentence: String,
}

fn over(network: &Network, terms: &Terms) -> impl Iterator<Item = Over> {
    let ports = (0..).zip(&network.ports).map(|(id, port)| (Bottleneck::Port(id), "port", port.rate_bps));
    let aggregate = |(id, one): (AggregateId, &Aggregate)| (Bottleneck::Aggregate(id), "aggregate", one.rate_bps);
    let aggregates = (0..).zip(&network.aggregates).map(aggregate);
    ports.chain(aggregates).zip(&terms.ports).filter_map(|((at, noun, rate_bps), port)| {
        let is_hard = port.reserved > i128::from(port.rate);
        let (what, sum) = if is_hard { ("hard limits", port.reserved) } else { ("limits", port.limits) };
        let sum_bps = u64::try_from(sum / i128::from(UNITS)).unwrap_or(u64::MAX);
        let (name, sum_rate, rate) = (at.name(network), format_rate(sum_bps), format_rate(rate_bps));
        let sentence = || format!("{noun} `{name}`: {what} of {sum_rate} in all, above its rate of {rate}");
        (sum > i128::from(port.rate)).then(|| Over { at, is_hard, rate_bps, sentence: sentence() })
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
