// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a plan to tables in memory.

use penstock_algo::plane::{BuildError, Entry, Parts, Plane};
use penstock_policy::plan::{Plan, PlanEntry, PlanRuleKey};

/// Secrets that are tried before giving up. One is enough but for a chance of about 10^-9 (table.h, Ranges).
const SECRETS_MAX: u64 = 8;

/// A plan that does not go into tables.
#[derive(Debug, thiserror::Error)]
#[error("the policy's tables cannot be built: {source}")]
pub struct LoadError {
    /// What happened with the last secret.
    #[source]
    pub source: BuildError,
}

/// Builds the tables of a plan, every limiter idle at `now_ns`. The same seed gives the same tables.
///
/// # Errors
/// When the tables cannot be built with any of several secrets: a key is there twice, which the policy's compiler refuses.
pub fn load(plan: &Plan, seed: u64, now_ns: u64) -> Result<Plane, LoadError> {
    let mut last = BuildError::Full(0);
    for attempt in 0..SECRETS_MAX {
        let rules = plan.rule_keys.iter().map(rule_entry_of);
        let limiters = plan.entries.iter().map(entry_of);
        match Plane::new(parts(plan), rules, limiters, seed ^ (attempt << 32), now_ns) {
            Ok(plane) => return Ok(plane),
            Err(error) => last = error,
        }
    }
    Err(LoadError { source: last })
}

/// A key of the rule table, as the table takes it.
pub(crate) fn rule_entry_of(key: &PlanRuleKey) -> Entry<'_> {
    Entry { tuple: key.tuple, value: &key.value, target: key.rule, rate: 0 }
}

/// A row of a limits file, as the limiter table takes it.
pub(crate) fn entry_of(entry: &PlanEntry) -> Entry<'_> {
    Entry { tuple: entry.tuple, value: &entry.value, target: entry.profile, rate: entry.rate }
}

pub(crate) fn parts(plan: &Plan) -> Parts {
    Parts {
        links: plan.links.iter().map(|link| link.wire).collect(),
        tuples: plan.tuples.clone(),
        rules: plan.rules.clone(),
        classes: plan.classes.iter().map(|class| class.wire).collect(),
        profiles: plan.profiles.clone(),
        limits: plan.limits.clone(),
        lines: plan.lines.clone(),
        places: plan.places.clone(),
        user_count: plan.user_count,
        slices: plan.slices.clone(),
        sketch: plan.sketch,
    }
}
