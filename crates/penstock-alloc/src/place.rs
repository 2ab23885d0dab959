// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where limits go: only where a class is bottlenecked (section 4.2).

use crate::allocation::{Allocation, PathRate, PlacedLimit};
use crate::fill::Filling;
use crate::model::Network;
use crate::terms::{NONE, Terms, to_u32, whole_bps};

/// Above it packets are yellow: the paper's 16 KB, section 4.2.
pub const YELLOW_BYTES: u64 = 16_000;

pub(crate) fn place(network: &Network, terms: &Terms, filling: &Filling) -> Allocation {
    let mut is_bottleneck: Vec<bool> = terms.slots.iter().map(|slot| slot.is_hard).collect();
    let mut paths = Vec::with_capacity(network.classes.len());
    for class in &terms.classes {
        let rate = |path: u32| {
            let slot = bottleneck(terms, filling, path)?;
            is_bottleneck[slot as usize] = true;
            let rate_bps = whole_bps(filling.paths[path as usize].rate);
            Some(PathRate { rate_bps, bottleneck: terms.slots[slot as usize].port })
        };
        paths.push(class.paths.clone().filter_map(rate).collect());
    }
    let mut used_bps = vec![0; terms.ports.len()];
    for (slot, here) in terms.slots.iter().zip(&filling.levels.uses) {
        used_bps[slot.port as usize] += whole_bps(here.used);
    }
    let limits = (0..to_u32(terms.slots.len())).filter(|slot| is_bottleneck[*slot as usize]);
    let limits = limits.map(|slot| limit(network, terms, filling, slot)).collect();
    Allocation { limits, paths, used_bps, warnings: Vec::new() }
}

/// Where a path got no more: where it was frozen last, if it could get no more there now; else the first such port on its way. (It may have
/// been frozen at a port where others then left room, and found another port full.)
fn bottleneck(terms: &Terms, filling: &Filling, path: u32) -> Option<u32> {
    let is_stuck = |slot: &u32| filling.levels.is_stuck(terms, *slot);
    let slots = terms.slots_of(path);
    let last = filling.paths[path as usize].frozen_at;
    if last != NONE && is_stuck(&last) {
        return Some(last);
    }
    slots.iter().find(|slot| is_stuck(slot)).or(slots.first()).copied()
}

fn limit(network: &Network, terms: &Terms, filling: &Filling, id: u32) -> PlacedLimit {
    let slot = &terms.slots[id as usize];
    let port = slot.port as usize;
    let part = part(network.ports[port].buffer_bytes, slot.weight, terms.ports[port].weights);
    PlacedLimit {
        class: slot.class,
        port: slot.port,
        rate_bps: whole_bps(if slot.is_hard { slot.limit } else { filling.levels.uses[id as usize].used }),
        yellow_bytes: YELLOW_BYTES,
        red_bytes: part.max(YELLOW_BYTES),
    }
}

/// bytes * weight / weights, rounded down.
fn part(bytes: u64, weight: u32, weights: u64) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(weight) / u128::from(weights.max(1))).unwrap_or(bytes)
}
