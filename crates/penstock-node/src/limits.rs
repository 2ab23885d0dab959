// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits one by one: list, get, set, delete.

use crate::changes::{Change, Changed, LimitName};
use crate::difference::rate_and_profile;
use crate::error::NodeError;
use crate::keeper::{Keeper, unix_ns};
use crate::names;
use crate::readings::of_limit;
use penstock_algo::wire;
use penstock_api::v1;
use penstock_dataplane::{Edit, LimitId, is_live};
use penstock_policy::describe::{key_columns, terms};
use penstock_policy::terms::problem_of_rate;
use penstock_policy::units::{RATE_MAX_BPS, RATE_MIN_BPS, format_rate};
use penstock_policy::{Plan, diagnostics::Problem};
use std::collections::{HashMap, HashSet};

/// Limits of one page.
pub const PAGE_LIMITS: usize = 512;
/// Limits that are looked at for one page, so that others need not wait for one whose filter fits few.
const PAGE_LOOKED_MAX: usize = 50_000;

/// A limit as the API has it, without what the data plane knows of it.
#[must_use]
pub fn message(keeper: &Keeper, plan: &Plan, limit: LimitId) -> v1::Limit {
    let name = names::limit_name(plan, limit);
    let (rate_bps, profile) = rate_and_profile(plan, limit);
    let key = match limit {
        LimitId::Class(_) => Vec::new(),
        LimitId::Row(row) => plan.entries.get(row as usize).map_or(Vec::new(), |entry| {
            let mask = plan.tuples.get(entry.tuple as usize).map_or(wire::Key::default(), |tuple| tuple.mask);
            key_columns(&mask, &entry.value)
        }),
    };
    v1::Limit {
        change: keeper.changes().get(&name).map(change_message),
        name: name.to_string(),
        row: name.row.unwrap_or_default(),
        class: name.class,
        key: key.into_iter().map(|(name, value)| v1::Column { name: name.to_owned(), value }).collect(),
        rate_bps,
        terms: terms(&profile),
        lease: keeper.lease_of(limit),
        ..v1::Limit::default()
    }
}

fn change_message(change: &Change) -> v1::RuntimeChange {
    let kind = match (&change.added, change.changed) {
        (Some(_), _) => v1::runtime_change::Kind::Added,
        (None, Some(Changed::Deleted)) => v1::runtime_change::Kind::Deleted,
        (None, _) => v1::runtime_change::Kind::Set,
    };
    v1::RuntimeChange {
        kind: kind.into(),
        policy_rate_bps: change.policy_rate_bps,
        changed_unix_ns: change.changed_unix_ns,
    }
}

/// With queue and counters.
///
/// # Errors
/// There is no such limit, or the data plane does not tell.
pub fn with_reading(keeper: &Keeper, plan: &Plan, limit: LimitId) -> Result<v1::Limit, NodeError> {
    let reading = keeper.dataplane().limit(limit)?;
    let (_, profile) = rate_and_profile(plan, limit);
    let shadow = u32::from(profile.flags) & wire::PST_PROFILE_SHADOW != 0;
    let (queue, counters) = of_limit(&reading, shadow);
    Ok(v1::Limit { queue: Some(queue), counters, ..message(keeper, plan, limit) })
}

/// One limit by its name.
///
/// # Errors
/// No limit is called so, or several are.
pub fn get(keeper: &Keeper, name: &str) -> Result<v1::Limit, NodeError> {
    let (plan, _) = keeper.in_force()?;
    with_reading(keeper, plan, names::limit(plan, name)?)
}

/// Whether a full name contains a part, or fits a pattern with `*`.
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return name.contains(pattern) };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(last)
}

/// Where a list goes on.
#[derive(Debug, Clone, Default)]
pub struct Cursor {
    /// Limits that were looked at: those of classes, then rows.
    next: usize,
    /// Of these, how many fit.
    fitting: u64,
    listed: u64,
    /// Limits with a change, as they were found for the first page, and their generation.
    changed: Option<(u64, Vec<One>)>,
}

/// The next page of a list; whether it is the last.
///
/// # Errors
/// No policy is in force.
pub fn page(
    keeper: &Keeper,
    request: &v1::ListLimitsRequest,
    cursor: &mut Cursor,
) -> Result<(v1::LimitsPage, bool), NodeError> {
    let (plan, held) = keeper.in_force()?;
    let generation = held.record.generation;
    let mut page = v1::LimitsPage::default();
    let mut known = cursor.changed.take().filter(|(of, _)| request.changed && *of == generation);
    if request.changed {
        known = known.or_else(|| Some((generation, changed(keeper, plan))));
    }
    let all = known.as_ref().map_or(Listed::All(plan), |(_, changed)| Listed::Changed(changed));
    let is_last = fill(&mut page, keeper, request, &all, cursor)?;
    cursor.changed = known;
    Ok((page, is_last))
}

/// Fills a page; whether it is the last.
fn fill(
    page: &mut v1::LimitsPage,
    keeper: &Keeper,
    request: &v1::ListLimitsRequest,
    all: &Listed<'_>,
    cursor: &mut Cursor,
) -> Result<bool, NodeError> {
    let (plan, _) = keeper.in_force()?;
    let end = cursor.next.saturating_add(PAGE_LOOKED_MAX);
    while let Some(listed) = all.at(cursor.next) {
        if cursor.next == end || page.limits.len() == PAGE_LIMITS {
            return Ok(false);
        }
        cursor.next += 1;
        let Some(listed) = listed else { continue };
        if !fits(&request.filter, &listed.name(plan)) {
            continue;
        }
        cursor.fitting += 1;
        let wanted = cursor.fitting > request.offset && (request.count == 0 || cursor.listed < request.count);
        if wanted {
            cursor.listed += 1;
            page.limits.push(listed.message(keeper, plan));
        }
    }
    page.total = cursor.fitting;
    Ok(true)
}

/// Limits that fit a filter, and how many there are of them; at most `most` are returned.
#[must_use]
pub fn fitting(plan: &Plan, filter: &str, most: u64) -> (Vec<LimitId>, u64) {
    let (mut found, mut total) = (Vec::new(), 0);
    let all = Listed::All(plan);
    for one in (0..).map_while(|index| all.at(index)).flatten() {
        if let One::Limit(limit) = one
            && fits(filter, &names::limit_name(plan, limit).to_string())
        {
            total += 1;
            if total <= most {
                found.push(limit);
            }
        }
    }
    (found, total)
}

/// What a list is of.
enum Listed<'a> {
    All(&'a Plan),
    Changed(&'a [One]),
}

/// A limit that is there, or one that was deleted.
#[derive(Debug, Clone)]
enum One {
    Limit(LimitId),
    Deleted(LimitName),
}

impl Listed<'_> {
    /// None beyond the end; nothing where a row was.
    fn at(&self, index: usize) -> Option<Option<One>> {
        match self {
            Listed::Changed(changed) => changed.get(index).cloned().map(Some),
            Listed::All(plan) => {
                let limits = plan.limits.len();
                let limit = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
                if index < limits {
                    return Some(Some(One::Limit(LimitId::Class(limit(index)))));
                }
                let entry = plan.entries.get(index - limits)?;
                Some(is_live(entry).then(|| One::Limit(LimitId::Row(limit(index - limits)))))
            }
        }
    }
}

impl One {
    fn name(&self, plan: &Plan) -> String {
        match self {
            One::Limit(limit) => names::limit_name(plan, *limit).to_string(),
            One::Deleted(name) => name.to_string(),
        }
    }

    fn message(&self, keeper: &Keeper, plan: &Plan) -> v1::Limit {
        match self {
            One::Limit(limit) => message(keeper, plan, *limit),
            One::Deleted(name) => v1::Limit {
                name: name.to_string(),
                row: name.row.clone().unwrap_or_default(),
                class: name.class.clone(),
                change: keeper.changes().get(name).map(change_message),
                ..v1::Limit::default()
            },
        }
    }
}

/// Limits with a change, in the order of their names.
fn changed(keeper: &Keeper, plan: &Plan) -> Vec<One> {
    let changes = keeper.changes();
    let names: HashSet<&str> = changes.keys().filter_map(|name| name.row.as_deref()).collect();
    let mut rows = HashMap::new();
    let live = (0_u32..).zip(&plan.entries).filter(|(_, entry)| is_live(entry));
    for (row, _) in live.filter(|(row, _)| names.contains(plan.names.get(*row as usize))) {
        let name = names::limit_name(plan, LimitId::Row(row));
        if changes.contains_key(&name) {
            rows.insert(name, row);
        }
    }
    let one = |name: &LimitName| match rows.get(name) {
        Some(&row) => One::Limit(LimitId::Row(row)),
        None => {
            let own = plan.classes.iter().find(|class| name.row.is_none() && class.path == name.class);
            match own {
                Some(class) => One::Limit(LimitId::Class(class.wire.limit_index)),
                None => One::Deleted(name.clone()),
            }
        }
    };
    changes.keys().map(one).collect()
}

/// The change of a limit so far, to be changed further.
pub(crate) fn change_so_far(keeper: &Keeper, name: &LimitName, rate_bps: u64) -> Change {
    let fresh = || Change { policy_rate_bps: rate_bps, ..Change::default() };
    let so_far = keeper.changes().get(name).cloned().unwrap_or_else(fresh);
    Change { changed_unix_ns: unix_ns(), ..so_far }
}

/// Another rate.
///
/// # Errors
/// No limit is called so, the rate is out of range or does not go with the limit's terms, or it cannot be kept or made.
pub fn set(keeper: &mut Keeper, name: &str, rate_bps: u64) -> Result<v1::SetLimitReply, NodeError> {
    let (plan, _) = keeper.in_force()?;
    let limit = names::limit(plan, name)?;
    let name = names::limit_name(plan, limit);
    let (before_bps, profile) = (keeper.base_bps(plan, limit), rate_and_profile(plan, limit).1);
    check_rate(&profile, rate_bps)?;
    let mut change = change_so_far(keeper, &name, before_bps);
    change.set_rate(rate_bps);
    keeper.edit(&[Edit::SetRate { limit, rate_bps }], &[(name.clone(), change)])?;
    Ok(v1::SetLimitReply { name: name.to_string(), before_bps, rate_bps, lease: keeper.lease_of(limit) })
}

fn check_rate(profile: &wire::Profile, rate_bps: u64) -> Result<(), NodeError> {
    if !(RATE_MIN_BPS..=RATE_MAX_BPS).contains(&rate_bps) {
        let (least, most) = (format_rate(RATE_MIN_BPS), format_rate(RATE_MAX_BPS));
        let text = format!("the rate {} is out of range; rates go from {least} to {most}", format_rate(rate_bps));
        return Err(NodeError::Invalid(text));
    }
    match problem_of_rate(profile, rate_bps) {
        None => Ok(()),
        Some(Problem { message, help }) => Err(NodeError::Invalid(format!("{message}; {help}"))),
    }
}

/// Takes a row away.
///
/// # Errors
/// No row is called so, or it cannot be kept or made.
pub fn delete(keeper: &mut Keeper, name: &str) -> Result<v1::DeleteLimitReply, NodeError> {
    let (plan, _) = keeper.in_force()?;
    let limit = names::limit(plan, name)?;
    let LimitId::Row(row) = limit else {
        let text = format!("{name} is a class's own limit, part of the policy: take it out there, and reload");
        return Err(NodeError::Invalid(text));
    };
    let name = names::limit_name(plan, limit);
    let rate_bps = keeper.base_bps(plan, limit);
    let mut change = change_so_far(keeper, &name, rate_bps);
    change.delete();
    keeper.edit(&[Edit::Remove { row }], &[(name.clone(), change)])?;
    Ok(v1::DeleteLimitReply { name: name.to_string(), rate_bps })
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn filters_are_parts_or_patterns() {
        for (pattern, name, expected) in [
            ("", "down/a", true),
            ("own", "down/a", true),
            ("x", "down/a", false),
            ("down/*", "down/a", true),
            ("own/*", "down/a", false),
            ("*/a", "down/b/a", true),
            ("*/a", "down/b/ab", false),
            ("d*b*a", "down/b/a", true),
            ("d*x*a", "down/b/a", false),
            ("*", "", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
