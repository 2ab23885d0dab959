// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lent rates over a plan: which limits have them, what holds without them, and how one set of rates follows another.

use crate::difference::rate_and_profile;
use crate::leases::Lent;
use crate::places;
use penstock_algo::wire;
use penstock_dataplane::{Edit, LimitId, edit_plan, is_live};
use penstock_policy::Plan;
use penstock_policy::diagnostics::Problem;
use penstock_policy::terms::problem_of_rate;
use penstock_policy::units::{RATE_MAX_BPS, RATE_MIN_BPS, format_rate};
use std::collections::{BTreeMap, HashMap};

/// Limits by the controller's number.
pub type Limits = BTreeMap<u32, Lent>;

/// A lent limit in a plan.
#[derive(Debug, Clone)]
pub struct Placed {
    /// Which one.
    pub limit: LimitId,
    /// What the policy says, with the changes made at run time, bit/s.
    pub base_bps: u64,
    /// What it has, bit/s.
    pub now_bps: u64,
    profile: wire::Profile,
    /// Whose packets it judges: its class and those below. Empty for a row.
    pub classes: Vec<u32>,
}

/// Where lent limits are.
#[derive(Debug, Clone, Default)]
pub struct Places {
    placed: BTreeMap<u32, Placed>,
    by_limit: HashMap<LimitId, u32>,
    /// Limits that have no place, and why.
    lost: BTreeMap<u32, String>,
    /// Limits whose rate is not the one lent, and why.
    bent: BTreeMap<u32, String>,
}

impl Places {
    /// Gives a plan that nobody judges by yet the rates lent.
    #[must_use]
    pub fn lay_over(plan: &mut Plan, limits: &Limits, lapsed: bool) -> Self {
        let (places, edits) = Self::default().follow(plan, None, limits, lapsed);
        edit_plan(plan, &edits);
        places
    }

    /// What follows on these places when other limits are lent, and what it changes: rates that go down come first, so that their sum is
    /// at no moment above the larger one of before and after. Without `before` all names are looked for anew.
    #[must_use]
    pub fn follow(&self, plan: &Plan, before: Option<&Limits>, after: &Limits, lapsed: bool) -> (Self, Vec<Edit>) {
        let is_known = before.is_some_and(|before| has_same_names(before, after));
        let mut places = if is_known { self.clone() } else { self.find(plan, after) };
        places.bent.clear();
        let mut rates: Vec<(u64, u64, LimitId)> = Vec::new();
        for (number, placed) in &mut places.placed {
            let Some(lent) = after.get(number) else { continue };
            let (rate_bps, problem) = placed.rate(lent, lapsed);
            if rate_bps != placed.now_bps {
                rates.push((placed.now_bps, rate_bps, placed.limit));
                placed.now_bps = rate_bps;
            }
            if let Some(problem) = problem {
                places.bent.insert(*number, format!("{}/{}: {problem}", lent.port, lent.class));
            }
        }
        let returned = self.placed.values().filter(|was| !places.by_limit.contains_key(&was.limit));
        let returned = returned.filter(|was| was.now_bps != was.base_bps && is_there(plan, was.limit));
        rates.extend(returned.map(|was| (was.now_bps, was.base_bps, was.limit)));
        rates.sort_by_key(|&(was_bps, rate_bps, _)| rate_bps > was_bps);
        let edits = rates.into_iter().map(|(_, rate_bps, limit)| Edit::SetRate { limit, rate_bps });
        (places, edits.collect())
    }

    /// Looks for all names anew. Limits that stay have what they have.
    fn find(&self, plan: &Plan, limits: &Limits) -> Self {
        let mut places = Self::default();
        for (number, found) in places::find(plan, limits) {
            match found {
                Ok(limit) => {
                    let mut placed = Placed::new(plan, limit);
                    if let Some(was) = self.of(limit) {
                        placed.base_bps = was.base_bps;
                    }
                    places.by_limit.insert(limit, number);
                    places.placed.insert(number, placed);
                }
                Err(why) => drop(places.lost.insert(number, why)),
            }
        }
        places
    }

    /// What is wrong, in words: so many at most, and how many there are.
    #[must_use]
    pub fn problems(&self, most: usize) -> (Vec<String>, u64) {
        let all = self.lost.values().chain(self.bent.values());
        (all.take(most).cloned().collect(), (self.lost.len() + self.bent.len()) as u64)
    }

    /// Whether the same numbers are the same limits.
    #[must_use]
    pub fn has_numbers_of(&self, other: &Self) -> bool {
        self.by_limit == other.by_limit
    }

    /// Those that have a place, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Placed)> {
        self.placed.iter().map(|(&number, placed)| (number, placed))
    }

    /// The lent limit that a limit is, with its number.
    #[must_use]
    pub fn number_of(&self, limit: LimitId) -> Option<u32> {
        self.by_limit.get(&limit).copied()
    }

    /// What a limit has by its number, bit/s; none without a place.
    #[must_use]
    pub fn now_bps(&self, number: u32) -> Option<u64> {
        self.placed.get(&number).map(|placed| placed.now_bps)
    }

    /// A limit that is lent.
    #[must_use]
    pub fn of(&self, limit: LimitId) -> Option<&Placed> {
        self.placed.get(&self.number_of(limit)?)
    }

    /// The operator's edits as the data plane should make them: of a lent limit what holds without the lease changes, and its rate only
    /// where it has that.
    #[must_use]
    pub fn translate(&self, edits: &[Edit], limits: &Limits, lapsed: bool) -> (Self, Vec<Edit>) {
        let mut places = self.clone();
        let mut made = Vec::with_capacity(edits.len());
        for edit in edits {
            let Edit::SetRate { limit, rate_bps } = edit else {
                made.push(edit.clone());
                continue;
            };
            let number = self.number_of(*limit);
            let lent = number.and_then(|number| Some((places.placed.get_mut(&number)?, limits.get(&number)?)));
            let Some((placed, lent)) = lent else {
                made.push(edit.clone());
                continue;
            };
            placed.base_bps = *rate_bps;
            let (rate_bps, _) = placed.rate(lent, lapsed);
            if rate_bps != placed.now_bps {
                placed.now_bps = rate_bps;
                made.push(Edit::SetRate { limit: *limit, rate_bps });
            }
        }
        (places, made)
    }

    /// A plan as it is without what is lent.
    pub fn take_off(&self, plan: &mut Plan) {
        let lent = self.placed.values().filter(|placed| is_there(plan, placed.limit));
        let edits: Vec<Edit> =
            lent.map(|placed| Edit::SetRate { limit: placed.limit, rate_bps: placed.base_bps }).collect();
        edit_plan(plan, &edits);
    }
}

impl Placed {
    fn new(plan: &Plan, limit: LimitId) -> Self {
        let (rate_bps, profile) = rate_and_profile(plan, limit);
        let classes = match limit {
            LimitId::Row(_) => Vec::new(),
            LimitId::Class(_) => below(plan, profile.class_index),
        };
        Self { limit, base_bps: rate_bps, now_bps: rate_bps, profile, classes }
    }

    /// What it should have, and why that is not what is lent.
    fn rate(&self, lent: &Lent, lapsed: bool) -> (u64, Option<String>) {
        let wanted_bps = match (lapsed, lent.rate_bps, lent.safe_bps) {
            (false, Some(rate_bps), _) | (true, _, Some(rate_bps)) => rate_bps,
            (false, None, _) | (true, _, None) => return (self.base_bps, None),
        };
        let wanted_bps = wanted_bps.clamp(RATE_MIN_BPS, RATE_MAX_BPS);
        match problem_of_rate(&self.profile, wanted_bps) {
            None => (wanted_bps, None),
            Some(Problem { message, help }) => {
                let nearest_bps = nearest(&self.profile, wanted_bps, self.base_bps);
                (nearest_bps, Some(format!("{message}; {help}; it has {}", format_rate(nearest_bps))))
            }
        }
    }
}

/// The rate nearest to one that does not go with a limit's terms, between it and one that does.
fn nearest(profile: &wire::Profile, wrong_bps: u64, right_bps: u64) -> u64 {
    let (mut wrong_bps, mut right_bps) = (wrong_bps, right_bps);
    while wrong_bps.abs_diff(right_bps) > 1 {
        let middle_bps = wrong_bps.midpoint(right_bps);
        match problem_of_rate(profile, middle_bps) {
            Some(_) => wrong_bps = middle_bps,
            None => right_bps = middle_bps,
        }
    }
    right_bps
}

/// A class and those below it.
fn below(plan: &Plan, class: u32) -> Vec<u32> {
    let mut found = vec![class];
    // A class comes after the one that it is a child of.
    for (index, _) in (0..).zip(&plan.classes) {
        let parent = plan.classes.get(index as usize).and_then(|class| class.parent);
        if parent.is_some_and(|parent| found.contains(&parent)) {
            found.push(index);
        }
    }
    found
}

fn is_there(plan: &Plan, limit: LimitId) -> bool {
    match limit {
        LimitId::Row(row) => plan.entries.get(row as usize).is_some_and(is_live),
        LimitId::Class(index) => (index as usize) < plan.limits.len(),
    }
}

fn has_same_names(before: &Limits, after: &Limits) -> bool {
    let is_same =
        |((a, was), (b, is)): ((&u32, &Lent), (&u32, &Lent))| (a, &was.port, &was.class) == (b, &is.port, &is.class);
    before.len() == after.len() && before.iter().zip(after).all(is_same)
}

#[cfg(test)]
#[path = "lending_tests.rs"]
mod tests;
