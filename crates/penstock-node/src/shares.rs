// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trees of shares as the API tells them: who asks for what, what it may have, and how fair what passed was.

use crate::readings::sum;
use penstock_algo::wire;
use penstock_api::v1;
use penstock_dataplane::{Jain, ShareReading, Standing, UsersReading};
use penstock_policy::CEILING_NONE_BYTES;
use penstock_policy::Plan;

/// The place of a class; links' lie behind those of classes.
fn place_of_link(plan: &Plan, link: usize) -> usize {
    plan.classes.len() + link
}

pub(crate) fn standing(standing: Standing) -> v1::share::Standing {
    match standing {
        Standing::Idle => v1::share::Standing::Idle,
        Standing::Satisfied => v1::share::Standing::Satisfied,
        Standing::Unsatisfied => v1::share::Standing::Unsatisfied,
        Standing::Held => v1::share::Standing::Held,
    }
}

fn users(users: UsersReading) -> v1::Users {
    let UsersReading { active, entries, limit_bps, fairness } = users;
    v1::Users { active, entries, limit_bps, fairness }
}

fn message(place: &wire::TreePlace, is_link: bool, reading: &ShareReading) -> v1::Share {
    let terms = &place.terms;
    let bits = |bytes: u64| bytes.saturating_mul(8);
    v1::Share {
        demand_bps: reading.demand_bps,
        share_bps: reading.share_bps,
        standing: standing(reading.standing).into(),
        weight: if is_link { 0 } else { terms.weight.into() },
        guarantee_bps: (terms.guarantee_Bps > 0).then(|| bits(terms.guarantee_Bps)),
        ceiling_bps: (!is_link && terms.ceiling_Bps < CEILING_NONE_BYTES).then(|| bits(terms.ceiling_Bps)),
        taken_bps: reading.taken_bps,
        weights: reading.weights,
        fairness: None,
        users: reading.users.map(users),
    }
}

/// Gives classes and links what is known of their shares.
pub(crate) fn add(plan: &Plan, shares: &[Option<ShareReading>], message: &mut v1::Readings) {
    let of_place = |place: usize, is_link: bool| {
        Some(self::message(plan.places.get(place)?, is_link, shares.get(place)?.as_ref()?))
    };
    for (index, class) in message.classes.iter_mut().enumerate() {
        class.share = of_place(index, false);
    }
    for (index, link) in message.links.iter_mut().enumerate() {
        link.share = of_place(place_of_link(plan, index), true);
    }
}

/// A class with children has what these have counted, since packets are counted at leaves.
pub(crate) fn add_up(plan: &Plan, classes: &mut [v1::ClassReading]) {
    let mut children = vec![0_u32; classes.len()];
    // Children lie behind their parents.
    for (index, parent) in (0..classes.len()).rev().filter_map(|index| Some((index, parent(plan, index)?))) {
        let (above, below) = classes.split_at_mut(index);
        let (Some(above), Some(below)) = (above.get_mut(parent), below.first()) else { continue };
        above.shadow = below.shadow && (above.shadow || children[parent] == 0);
        above.counters = Some(sum(above.counters.iter().chain(&below.counters)));
        children[parent] += 1;
    }
}

fn parent(plan: &Plan, class: usize) -> Option<usize> {
    plan.classes.get(class)?.parent.map(|parent| parent as usize)
}

/// How fair what passed was, of the children of each class and link, since `before`.
pub(crate) fn add_fairness(plan: &Plan, before: &v1::Readings, message: &mut v1::Readings) {
    let asks = |class: &v1::ClassReading| {
        class.share.as_ref().is_some_and(|share| share.standing() == v1::share::Standing::Unsatisfied)
    };
    let mut of_places = vec![Jain::default(); plan.places.len()];
    for ((index, class), (was, is)) in plan.classes.iter().enumerate().zip(before.classes.iter().zip(&message.classes))
    {
        let above = parent(plan, index).unwrap_or_else(|| place_of_link(plan, class.wire.link_index.into()));
        let passed_bytes = |class: &v1::ClassReading| class.counters.map_or(0, |counters| counters.passed_bytes);
        let passed = passed_bytes(is).checked_sub(passed_bytes(was)).filter(|_| asks(was) && asks(is));
        if let (Some(of_place), Some(passed), Some(share)) = (of_places.get_mut(above), passed, &is.share) {
            of_place.add(passed, u32::try_from(share.weight).unwrap_or(u32::MAX));
        }
    }
    let classes = message.classes.iter_mut().map(|class| class.share.as_mut());
    let links = message.links.iter_mut().map(|link| link.share.as_mut());
    for (share, of_place) in classes.chain(links).zip(&of_places) {
        if let Some(share) = share {
            share.fairness = of_place.value();
        }
    }
}
