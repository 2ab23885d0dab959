// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where limits go: only where a class is bottlenecked (section 4.2).

use crate::allocation::{Allocation, PathRate, PlacedLimit};
use crate::fill::{Filling, stuck};
use crate::model::Network;
use crate::terms::{NONE, Terms, whole_bps};

/// Above it packets are yellow: the paper's 16 KB, section 4.2.
pub const YELLOW_BYTES: u64 = 16_000;

pub(crate) fn place(network: &Network, terms: &Terms, filling: &Filling) -> Allocation {
    let stuck = stuck(terms, &filling.used);
    let mut is_bottleneck: Vec<bool> = terms.slots.iter().map(|slot| slot.reserved.is_some()).collect();
    let mut paths = Vec::with_capacity(network.classes.len());
    for own in terms.class_paths.windows(2) {
        let rate = |path: u32| {
            let slot = bottleneck(terms, filling, &stuck, path)?;
            is_bottleneck[slot as usize] = true;
            let rate_bps = whole_bps(filling.rates[path as usize]);
            Some(PathRate { rate_bps, bottleneck: terms.slots[slot as usize].port })
        };
        paths.push((own[0]..own[1]).filter_map(rate).collect());
    }
    let mut used_bps = vec![0; terms.ports.len()];
    for (slot, used) in terms.slots.iter().zip(&filling.used) {
        used_bps[slot.port as usize] += whole_bps(*used);
    }
    Allocation { limits: limits(network, terms, filling, &is_bottleneck), paths, used_bps, warnings: Vec::new() }
}

/// Where a path got no more: where it was frozen last, if it could get no more there now; else the first such port on its way. (It may have
/// been frozen at a port where others then left room, and found another port full.)
fn bottleneck(terms: &Terms, filling: &Filling, stuck: &[bool], path: u32) -> Option<u32> {
    let slots = terms.path_slots.get(path);
    let last = filling.frozen_at[path as usize];
    if last != NONE && stuck[last as usize] {
        return Some(last);
    }
    slots.iter().find(|slot| stuck[**slot as usize]).or(slots.first()).copied()
}

fn limits(network: &Network, terms: &Terms, filling: &Filling, is_bottleneck: &[bool]) -> Vec<PlacedLimit> {
    let mut weights = vec![0u64; terms.ports.len()];
    for slot in &terms.slots {
        weights[slot.port as usize] += u64::from(slot.weight);
    }
    let mut limits = Vec::new();
    for (id, slot) in terms.slots.iter().enumerate().filter(|(id, _)| is_bottleneck[*id]) {
        let port = slot.port as usize;
        let part = part(network.ports[port].buffer_bytes, u64::from(slot.weight), weights[port]);
        limits.push(PlacedLimit {
            class: slot.class,
            port: slot.port,
            rate_bps: whole_bps(slot.reserved.unwrap_or(filling.used[id])),
            yellow_bytes: YELLOW_BYTES,
            red_bytes: part.max(YELLOW_BYTES),
        });
    }
    limits
}

/// bytes * weight / weights, rounded down.
fn part(bytes: u64, weight: u64, weights: u64) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(weight) / u128::from(weights.max(1))).unwrap_or(bytes)
}
