// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a share is made of, which user it is that an address is of, and which level keeps it from more.

use crate::keeper::{Held, Keeper};
use crate::shares::standing;
use penstock_algo::wire;
use penstock_api::v1;
use penstock_api::v1::origin::By;
use penstock_api::v1::share::Standing;
use penstock_dataplane::{ShareReading, UserReading};
use penstock_policy::Plan;
use penstock_policy::describe::{Side, key_columns};
use penstock_policy::matching::{MaskedKey, Prefix};
use penstock_policy::row_keys::user_mask;

/// What a share is made of (`share.h`), of a child of `parent`. The sums have moved on since its last packet: this is how it would be found now.
pub(super) fn origin(share: &v1::Share, parent: &ShareReading) -> v1::Origin {
    let (guarantee_bps, ceiling_bps) = (share.guarantee_bps.unwrap_or(0), share.ceiling_bps.unwrap_or(u64::MAX));
    let (weight, stands) = (share.weight.max(1), share.standing());
    // A node takes its own part out of its parent's sums first.
    let own_bps = match stands {
        Standing::Satisfied => share.demand_bps.min(ceiling_bps),
        Standing::Held => share.demand_bps.min(share.share_bps),
        Standing::Idle | Standing::Unsatisfied => 0,
    };
    let own = |is_own: bool, what: u64| if is_own { what } else { 0 };
    let weights = parent.weights.saturating_sub(own(stands == Standing::Unsatisfied, weight)) + weight;
    let all_weights = weights + parent.weights_taken.saturating_sub(own(stands == Standing::Satisfied, weight));
    let left_bps = parent.share_bps.saturating_sub(parent.taken_bps.saturating_sub(own_bps));
    let not_held_bps = parent.held_bps.saturating_sub(own(stands == Standing::Held, own_bps));
    let not_held_bps = parent.share_bps.saturating_sub(not_held_bps);
    let part = |of_bps: u64, weights: u64| u128::from(of_bps) * u128::from(weight) / u128::from(weights);
    let of_all = part(not_held_bps, all_weights) > part(left_bps, weights);
    let (left_bps, weights) = if of_all { (not_held_bps, all_weights) } else { (left_bps, weights) };
    let by = match part(left_bps, weights) {
        fair if fair.max(guarantee_bps.into()) >= ceiling_bps.into() => By::Ceiling,
        fair if fair < guarantee_bps.into() => By::Guarantee,
        _ => By::Weight,
    };
    v1::Origin { by: by.into(), left_bps, weights, of_all }
}

/// A user to be asked for, once nobody looks at the plan any more.
pub(super) struct Asked {
    /// Index of the explanation.
    pub explanation: usize,
    pub class: u32,
    pub key: wire::Key,
    /// As an operator writes it.
    pub name: String,
    /// Of its row.
    pub weight: Option<u16>,
    /// Of its row, if that has one.
    pub ceiling_bps: Option<u64>,
    /// Users of its class have no entries.
    pub of_sketch: bool,
    /// Its class, as it is.
    pub of_class: ShareReading,
}

/// A user, as far as it is known by packets.
pub(super) struct User {
    /// What tells users apart.
    mask: wire::Key,
    pub key: wire::Key,
    pub name: String,
}

impl User {
    /// Whether a packet with this key is of the same one.
    pub fn has(&self, key: &wire::Key) -> bool {
        let bits = self.mask.words.iter().zip(&key.words).zip(&self.key.words);
        bits.into_iter().all(|((mask, key), own)| key & mask == own & mask)
    }
}

/// What is known of a packet: an address, a row of a file.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known(MaskedKey);

impl Known {
    pub fn add_address(&mut self, side: Side, address: Prefix) {
        match side {
            Side::Src => self.0.require_src(address),
            Side::Dst => self.0.require_dst(address),
        }
    }

    pub fn add_row(&mut self, mask: &wire::Key, value: &wire::Key) {
        for (word, (mask, value)) in mask.words.iter().zip(&value.words).enumerate() {
            self.0.mask.words[word] |= mask;
            self.0.value.words[word] |= value;
        }
    }

    fn has(&self, mask: &wire::Key) -> bool {
        mask.words.iter().zip(&self.0.mask.words).all(|(wanted, known)| wanted & !known == 0)
    }

    fn family(&self) -> u8 {
        let family = self.0.value.words[1] >> wire::PST_KEY_FAMILY_SHIFT & u64::from(wire::PST_KEY_FAMILY);
        if family == 6 { 6 } else { 4 }
    }

    /// The user of a class that it is. Else the columns that would say which. None where the class has no users.
    pub fn user(&self, held: &Held, class: u32) -> Option<Result<User, Vec<&'static str>>> {
        let classes = held.policy.iter().flat_map(|policy| &policy.links).flat_map(|link| &link.classes);
        let users = classes.into_iter().nth(class as usize)?.users.as_ref()?;
        let family = self.family();
        let unknown = users.key.iter().filter(|&&column| !self.has(&user_mask(&[column], family)));
        let missing: Vec<&str> = unknown.map(|column| column.name()).collect();
        if !missing.is_empty() {
            return Some(Err(missing));
        }
        let mask = user_mask(&users.key, family);
        let columns = key_columns(&mask, &self.0.value);
        let name: Vec<String> = columns.iter().map(|(column, value)| format!("{column} {value}")).collect();
        Some(Ok(User { mask, key: self.0.value, name: name.join(", ") }))
    }
}

/// The place of a class or of a link, as its data plane tells it.
pub(super) fn reading_of(shares: &[Option<ShareReading>], place: usize) -> Option<&ShareReading> {
    shares.get(place).and_then(Option::as_ref)
}

/// Where packets of a class are counted as those of a child.
pub(super) fn parent_place(plan: &Plan, class: u32) -> Option<usize> {
    let class = plan.classes.get(class as usize)?;
    Some(class.parent.map_or(plan.classes.len() + usize::from(class.wire.link_index), |parent| parent as usize))
}

/// The level of a user.
pub(super) fn user_level(asked: &Asked, user: &UserReading) -> v1::Level {
    let weight = user.weight.map(u64::from).or(asked.weight.map(u64::from)).unwrap_or(1).max(1);
    // What a sketch knows is for a weight of 1.
    let times = if asked.of_sketch { weight } else { 1 };
    let share = v1::Share {
        demand_bps: user.demand_bps.saturating_mul(times),
        share_bps: user.share_bps.saturating_mul(times),
        standing: standing(user.standing).into(),
        weight,
        ceiling_bps: asked.ceiling_bps,
        ..v1::Share::default()
    };
    v1::Level {
        kind: v1::level::Kind::User.into(),
        name: asked.name.clone(),
        // Its row's ceiling is a limit of its own, which is not part of its share.
        origin: user.has_entry.then(|| origin(&v1::Share { ceiling_bps: None, ..share }, &asked.of_class)),
        share: Some(share),
        has_entry: user.has_entry,
        ..v1::Level::default()
    }
}

/// Asks for users, and says of each explanation which level keeps its subject from more.
pub(super) fn finish(keeper: &mut Keeper, asked: &[Asked], explanations: &mut [v1::Explanation]) {
    for one in asked {
        let Ok(Some(user)) = keeper.user(one.class, &one.key) else { continue };
        if let Some(explanation) = explanations.get_mut(one.explanation) {
            explanation.levels.push(user_level(one, &user));
        }
    }
    for explanation in explanations {
        bind(&mut explanation.levels);
    }
}

/// Marks the last level that gives less than is asked for. Who has what it asks for is kept from nothing by what is above.
fn bind(levels: &mut [v1::Level]) {
    let mut is_below_user = true;
    if levels.iter().all(|level| level.share.is_none()) {
        return;
    }
    for level in levels.iter_mut().rev() {
        let kind = level.kind();
        let is_limit = kind == v1::level::Kind::Limit;
        if !is_limit && !is_below_user {
            return;
        }
        level.bound = is_bound(level);
        // What a user asks for is what its limit has let go.
        is_below_user &= kind != v1::level::Kind::User;
        if level.bound || (kind != v1::level::Kind::User && !(is_limit && is_below_user)) {
            return;
        }
    }
}

/// Whether there would be more if this level gave more.
fn is_bound(level: &v1::Level) -> bool {
    if level.kind() == v1::level::Kind::Limit {
        let is_full = level.queue.is_some_and(|queue| queue.queue_ns >= queue.window_ns / 10 * 9);
        return level.rates.map_or(is_full, |rates| rates.dropped_packets_per_second > 0.0);
    }
    let Some(share) = &level.share else { return false };
    let is_above = share.demand_bps > share.share_bps;
    let is_user = level.kind() == v1::level::Kind::User;
    match share.standing() {
        Standing::Unsatisfied => true,
        Standing::Held => is_above,
        // It may have what it asks for, or its ceiling. A link stands with nobody.
        Standing::Satisfied | Standing::Idle => !is_user && share.demand_bps > 0 && is_above,
    }
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
