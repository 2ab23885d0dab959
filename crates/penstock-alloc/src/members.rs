// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of the members of aggregates: always, at the port that each of their paths begins with, so that what enters the network of an aggregate is
//! never above its rate, whatever its members come to ask for before the next filling.
//!
//! There a member may have what its paths that begin there got. What is spare of the aggregate goes to those who got all that they asked for: they may
//! ask for more any moment, whereas who asks for more already is held back by something else, and would only take there what is another's. It is
//! divided by weight (a member's, in even parts for the ports that its paths begin at), up to the limit that a member has at its port and the port's
//! rate; what one cannot take goes to the others. A member of several aggregates has the least of what they add; what is not taken of the others
//! stays spare.
//!
//! All in whole bits/s rounded down, so the sum over the first ports of an aggregate's members is at most its rate.

use crate::fill::Filling;
use crate::terms::{Terms, UNITS, whole_bps};

/// A class at a port that paths of its begin at.
struct First {
    slot: u32,
    class: u32,
    port: u32,
    /// What these paths got, bits/s.
    got_bps: u64,
    /// What it may have beside that at most, bits/s.
    room_bps: u64,
    /// 0: nothing is added.
    weight: u64,
    /// What its aggregates add, the least of them; one that adds nothing is one.
    added_bps: Option<u64>,
}

/// So that weights can be divided.
const WEIGHT_PARTS: u64 = 1 << 16;

/// Puts the limits of members into the places of those that were found for them as for other classes.
pub(crate) fn place_members(terms: &Terms, filling: &Filling, rates_bps: &mut [u64]) {
    if terms.ports.len() == terms.aggregates_from as usize {
        return;
    }
    let mut firsts = firsts(terms, filling);
    for aggregate in &terms.ports[terms.aggregates_from as usize..] {
        let mut members: Vec<usize> = Vec::new();
        for arena in aggregate.arenas.iter().map(|arena| &terms.arenas[*arena as usize]) {
            for slot in arena.by_slope.iter() {
                let own = &terms.classes[terms.slots[*slot as usize].class as usize].slots;
                let from = firsts.partition_point(|first| first.slot < own.start);
                members.extend((from..firsts.len()).take_while(|at| firsts[*at].slot < own.end));
            }
        }
        let got_bps: u64 = members.iter().map(|at| firsts[*at].got_bps).sum();
        let rate_bps =
            u64::try_from((i128::from(aggregate.rate) - aggregate.reserved) / i128::from(UNITS)).unwrap_or(0);
        spread(&mut firsts, members, rate_bps.saturating_sub(got_bps));
    }
    for first in firsts {
        rates_bps[first.slot as usize] = first.got_bps + first.added_bps.unwrap_or(0);
    }
}

/// Of all members but those whose hard limits are reserved, in the order of slots.
fn firsts(terms: &Terms, filling: &Filling) -> Vec<First> {
    let mut firsts = Vec::new();
    let mut paths = Vec::new();
    for aggregate in &terms.ports[terms.aggregates_from as usize..] {
        for arena in &aggregate.arenas {
            for slot in &terms.arenas[*arena as usize].by_slope {
                let slots = terms.classes[terms.slots[*slot as usize].class as usize].slots.clone();
                // Those in aggregates are the last ones. Who is in several is met several times.
                let is_first = *slot == slots.start || terms.slots[*slot as usize - 1].port < terms.aggregates_from;
                if is_first {
                    firsts_of(terms, filling, *slot, &mut paths, &mut firsts);
                }
            }
        }
    }
    firsts.sort_unstable_by_key(|first: &First| first.slot);
    firsts
}

/// Of one member; `at` is its slot in the first of its aggregates.
fn firsts_of(terms: &Terms, filling: &Filling, at: u32, paths: &mut Vec<(u32, u32)>, firsts: &mut Vec<First>) {
    let (class, weight) = (terms.slots[at as usize].class, terms.slots[at as usize].weight);
    let own = &terms.classes[class as usize];
    let aggregates = (own.slots.end - at) as usize;
    paths.clear();
    paths.extend(own.paths.clone().map(|path| (terms.slots_of(path)[aggregates], path)));
    paths.sort_unstable();
    let before = firsts.len();
    for here in paths.chunk_by(|one, other| one.0 == other.0) {
        let slot = here[0].0;
        let limit = &terms.slots[slot as usize];
        let got_bps = whole_bps(here.iter().map(|(_, path)| filling.paths[*path as usize].rate).sum());
        let most_bps = whole_bps(limit.limit.min(terms.ports[limit.port as usize].rate));
        let is_content = here.iter().all(|(_, path)| has_what_it_asked_for(terms, filling, *path));
        let (room_bps, weight) = (most_bps.saturating_sub(got_bps), u64::from(is_content));
        firsts.push(First { slot, class, port: limit.port, got_bps, room_bps, weight, added_bps: None });
    }
    let content: u64 = firsts[before..].iter().map(|first| first.weight).sum();
    for first in firsts[before..].iter_mut().filter(|first| first.weight > 0) {
        first.weight = (u64::from(weight) * WEIGHT_PARTS / content).max(1);
    }
}

/// Whether its class got its demand, and not only its limit, at one of its ports.
fn has_what_it_asked_for(terms: &Terms, filling: &Filling, path: u32) -> bool {
    terms.slots_of(path).iter().any(|slot| {
        let at = &terms.slots[*slot as usize];
        at.cap < at.limit && filling.levels.is_at_cap(terms, *slot)
    })
}

/// Divides what is spare: those first who can take least for their weight, so that what they leave is there for the others.
fn spread(firsts: &mut [First], mut members: Vec<usize>, mut spare_bps: u64) {
    members.retain(|at| firsts[*at].weight > 0);
    members.sort_unstable_by(|one, other| {
        let (one, other) = (&firsts[*one], &firsts[*other]);
        let room = |first: &First, other: &First| u128::from(first.room_bps) * u128::from(other.weight);
        room(one, other).cmp(&room(other, one)).then((one.class, one.port).cmp(&(other.class, other.port)))
    });
    let mut weights: u64 = members.iter().map(|at| firsts[*at].weight).sum();
    for at in members {
        let first = &mut firsts[at];
        let part = u128::from(spare_bps) * u128::from(first.weight) / u128::from(weights.max(1));
        let part_bps = u64::try_from(part).unwrap_or(spare_bps).min(first.room_bps);
        first.added_bps = Some(first.added_bps.map_or(part_bps, |before| before.min(part_bps)));
        spare_bps -= part_bps;
        weights -= first.weight;
    }
}
