// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where limits go: only where a class is bottlenecked (section 4.2), and where paths of members of aggregates begin.

use crate::allocation::{Allocation, Bottleneck, PathRate, PlacedLimit};
use crate::arena::Arena;
use crate::fill::Filling;
use crate::members::place_members;
use crate::model::{ClassId, Network};
use crate::terms::{NONE, Terms, whole_bps};

/// Above it packets are yellow: the paper's 16 KB, section 4.2.
pub const YELLOW_BYTES: u64 = 16_000;

/// No limit.
pub(crate) const UNPLACED: u64 = u64::MAX;

/// The limit of each slot, bits/s, or UNPLACED: at the bottleneck of each path what its class uses there in all, and hard limits as they are. None is
/// placed at an aggregate: its members have theirs where their paths begin.
pub(crate) fn place(terms: &Terms, filling: &Filling, rates_bps: &mut Vec<u64>) {
    rates_bps.clear();
    rates_bps.resize(terms.slots.len(), UNPLACED);
    let is_port = |slot: u32| terms.slots[slot as usize].port < terms.aggregates_from;
    for path in filling.paths.iter().filter(|path| path.frozen_at != NONE && is_port(path.frozen_at)) {
        rates_bps[path.frozen_at as usize] = whole_bps(filling.levels.uses[path.frozen_at as usize].used);
    }
    let is_hard_port = |arena: &&Arena| arena.kind.is_hard() && arena.port < terms.aggregates_from;
    for arena in terms.arenas.iter().filter(is_hard_port) {
        arena.by_cap.iter().for_each(|slot| rates_bps[*slot as usize] = whole_bps(terms.slots[*slot as usize].limit));
    }
    place_members(terms, filling, rates_bps);
}

/// A filling in full; `ids` are the numbers of the network's classes.
pub(crate) fn allocation(
    network: &Network,
    ids: &[u32],
    terms: &Terms,
    filling: &Filling,
    rates_bps: &[u64],
) -> Allocation {
    let mut paths = Vec::with_capacity(ids.len());
    let mut limits = Vec::with_capacity(ids.len());
    for (id, class) in ids.iter().zip(0..) {
        let own = &terms.classes[*id as usize];
        let mut rates = Vec::with_capacity(own.paths.len());
        rates.extend(own.paths.clone().filter_map(|path| path_rate(terms, filling, path)));
        paths.push(rates);
        limits.extend(limits_of(network, terms, rates_bps, *id, class));
    }
    let mut used_bps = vec![0; terms.ports.len()];
    for (slot, here) in terms.slots.iter().zip(&filling.levels.uses) {
        used_bps[slot.port as usize] += whole_bps(here.used);
    }
    let aggregates_used_bps = used_bps.split_off(terms.aggregates_from as usize);
    Allocation { limits, paths, used_bps, aggregates_used_bps, warnings: Vec::new() }
}

/// The limits of one class, by port; `id` is its number in the terms.
pub(crate) fn limits_of<'a>(
    network: &'a Network,
    terms: &'a Terms,
    rates_bps: &'a [u64],
    id: u32,
    class: ClassId,
) -> impl Iterator<Item = PlacedLimit> + 'a {
    let slots = terms.classes[id as usize].slots.clone();
    slots.filter(|slot| rates_bps[*slot as usize] != UNPLACED).map(move |slot| PlacedLimit {
        class,
        port: terms.slots[slot as usize].port,
        rate_bps: rates_bps[slot as usize],
        yellow_bytes: YELLOW_BYTES,
        red_bytes: red_bytes(network, terms, slot),
    })
}

fn path_rate(terms: &Terms, filling: &Filling, path: u32) -> Option<PathRate> {
    let path = &filling.paths[path as usize];
    let port = terms.slots.get(path.frozen_at as usize)?.port;
    let aggregate = port.checked_sub(terms.aggregates_from);
    let bottleneck = aggregate.map_or(Bottleneck::Port(port), Bottleneck::Aggregate);
    Some(PathRate { rate_bps: whole_bps(path.rate), bottleneck })
}

/// A class's part of a port's buffer, by weight among those that have paths there (section 4.2).
pub(crate) fn red_bytes(network: &Network, terms: &Terms, slot: u32) -> u64 {
    let slot = &terms.slots[slot as usize];
    let port = slot.port as usize;
    red_bytes_of(network.ports[port].buffer_bytes, slot.weight, terms.ports[port].weights)
}

/// bytes * weight / weights, rounded down; what is yellow is not red.
pub(crate) fn red_bytes_of(buffer_bytes: u64, weight: u32, weights: u64) -> u64 {
    let weights = weights.max(1);
    let part = match buffer_bytes.checked_mul(u64::from(weight)) {
        Some(product) => product / weights,
        None => u64::try_from(u128::from(buffer_bytes) * u128::from(weight) / u128::from(weights)).unwrap_or(u64::MAX),
    };
    part.max(YELLOW_BYTES)
}
