// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trees of shares as they are: what a plane's nodes say, for people.

use crate::dataplane::{ShareReading, Standing, UserReading, UsersReading};
use penstock_algo::plane::{Plane, UserState};
use penstock_algo::wire;
use std::sync::{Mutex, PoisonError};

/// What passed is compared over so long at least, ns: over less, packets are too few to tell.
const COMPARED_NS: u64 = 200_000_000;

/// What users had passed when it was last looked at, and how fair that was.
#[derive(Debug, Default)]
pub(crate) struct Fairness(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    at_ns: u64,
    /// By node behind the places.
    passed_bytes: Vec<u64>,
    /// By class.
    indices: Vec<Option<f64>>,
}

impl Fairness {
    /// By class: Jain's index of what passed of users who ask for more than they get, by their weights.
    fn of_classes(&self, plane: &Plane, now_ns: u64) -> Vec<Option<f64>> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now_ns.saturating_sub(seen.at_ns) < COMPARED_NS {
            return seen.indices.clone();
        }
        let first = plane.places().len();
        let with_users = plane.places().iter().filter(|place| place.first_user != wire::PST_NONE);
        let nodes = with_users.map(|place| (place.first_user + place.user_count + 1) as usize);
        let nodes = nodes.max().unwrap_or(0).saturating_sub(first);
        seen.passed_bytes.resize(nodes, 0);
        let mut indices = Vec::with_capacity(first);
        for class in 0..u32::try_from(first).unwrap_or(u32::MAX) {
            let mut index = Jain::default();
            for user in plane.users(class, now_ns) {
                let Some(before) = (user.node as usize).checked_sub(first).and_then(|at| seen.passed_bytes.get_mut(at))
                else {
                    continue;
                };
                let passed = user.passed_bytes.checked_sub(std::mem::replace(before, user.passed_bytes));
                if let (Some(passed), wire::PST_SHARE_UNSATISFIED) = (passed, user.state) {
                    index.add(passed, user.weight);
                }
            }
            indices.push(index.value());
        }
        (seen.at_ns, seen.indices) = (now_ns, indices);
        seen.indices.clone()
    }
}

/// Jain's index: the square of the sum, over the sum of squares and how many there are.
#[derive(Debug, Default)]
struct Jain {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Jain {
    #[allow(clippy::cast_precision_loss)] // for people: 53 bits are enough
    fn add(&mut self, amount: u64, weight: u32) {
        let amount = amount as f64 / f64::from(weight);
        self.count += 1.0;
        self.sum += amount;
        self.squares += amount * amount;
    }

    fn value(&self) -> Option<f64> {
        (self.squares > 0.0).then(|| self.sum * self.sum / (self.count * self.squares))
    }
}

fn standing(state: wire::pst_share_state) -> Standing {
    match state {
        wire::PST_SHARE_SATISFIED => Standing::Satisfied,
        wire::PST_SHARE_UNSATISFIED => Standing::Unsatisfied,
        wire::PST_SHARE_HELD => Standing::Held,
        _ => Standing::Idle,
    }
}

/// By place: classes, then links.
pub(crate) fn readings(plane: &Plane, fairness: &Fairness, now_ns: u64) -> Vec<Option<ShareReading>> {
    let fairness = if plane.places().is_empty() { Vec::new() } else { fairness.of_classes(plane, now_ns) };
    let of_place = |(index, place): (u32, &wire::TreePlace)| {
        let share = plane.share(index, now_ns)?;
        let users = (place.users != wire::PST_NONE).then(|| UsersReading {
            active: plane.users(index, now_ns).count() as u64,
            entries: u64::from(place.user_count),
            limit_bps: share.user_limit_Bps.map(|limit| limit.saturating_mul(8)),
            fairness: fairness.get(index as usize).copied().flatten(),
        });
        Some(ShareReading {
            demand_bps: share.demand_Bps.saturating_mul(8),
            share_bps: share.share_Bps.saturating_mul(8),
            standing: standing(share.state),
            taken_bps: share.children.taken_Bps.saturating_mul(8),
            weights: share.children.weight,
            users,
        })
    };
    (0..).zip(plane.places()).map(of_place).collect()
}

/// A user that packets with this key are of.
pub(crate) fn user(plane: &mut Plane, class: u32, key: &wire::Key, now_ns: u64) -> Option<UserReading> {
    let UserState { demand_Bps: demand, share_Bps: share, has_entry, weight, state, .. } =
        plane.user(class, key, now_ns)?;
    let of_sketch = if demand > share { Standing::Unsatisfied } else { Standing::Satisfied };
    Some(UserReading {
        demand_bps: demand.saturating_mul(8),
        share_bps: share.saturating_mul(8),
        weight: has_entry.then_some(weight),
        standing: if has_entry || demand == 0 { standing(state) } else { of_sketch },
        has_entry,
    })
}
