// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a name means: a link, a class, a limit.

use crate::changes::LimitName;
use crate::error::NodeError;
use penstock_algo::wire;
use penstock_dataplane::{LimitId, class_of, is_live};
use penstock_policy::Plan;
use penstock_policy::diagnostics::{closest, quote};
use std::collections::HashSet;

/// Names are compared with a wrong one up to this many rows: beyond it takes longer than a person waits.
const COMPARED_ROWS_MAX: usize = 20_000;
/// Meanings of a name that a message lists.
const LISTED_MAX: usize = 5;

/// What a name may mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A link: its index.
    Link(u32),
    /// A class: its index.
    Class(u32),
    /// A row of a limits file: its index.
    Row(u32),
}

/// The path of the class that a row belongs to.
#[must_use]
pub fn class_path(plan: &Plan, row: u32) -> &str {
    let entry = plan.entries.get(row as usize);
    let class = entry.and_then(|entry| class_of(plan, entry)).and_then(|class| plan.classes.get(class as usize));
    class.map_or("", |class| &class.path)
}

/// The full name of a limit.
#[must_use]
pub fn limit_name(plan: &Plan, limit: LimitId) -> LimitName {
    match limit {
        LimitId::Row(row) => {
            let name = plan.names.get(row as usize).to_owned();
            LimitName { class: class_path(plan, row).to_owned(), row: Some(name) }
        }
        LimitId::Class(index) => {
            let class = plan.classes.iter().find(|class| class.wire.limit_index == index);
            LimitName { class: class.map_or(String::new(), |class| class.path.clone()), row: None }
        }
    }
}

fn full_name(plan: &Plan, subject: Subject) -> String {
    match subject {
        Subject::Link(link) => plan.links.get(link as usize).map_or(String::new(), |link| link.name.clone()),
        Subject::Class(class) => plan.classes.get(class as usize).map_or(String::new(), |class| class.path.clone()),
        Subject::Row(row) => limit_name(plan, LimitId::Row(row)).to_string(),
    }
}

/// Everything that a name may mean: those whose full name it is, or else those whose last part it is.
#[must_use]
pub fn find(plan: &Plan, name: &str) -> Vec<Subject> {
    let (mut full, mut last) = (Vec::new(), Vec::new());
    for (index, link) in (0..).zip(&plan.links) {
        if link.name == name {
            full.push(Subject::Link(index));
        }
    }
    for (index, class) in (0..).zip(&plan.classes) {
        if class.path == name {
            full.push(Subject::Class(index));
        } else if class.path.rsplit('/').next() == Some(name) {
            last.push(Subject::Class(index));
        }
    }
    for (row, _) in (0_u32..).zip(&plan.entries).filter(|(_, entry)| is_live(entry)) {
        let of_row = plan.names.get(row as usize);
        if of_row == name {
            last.push(Subject::Row(row));
        } else if let Some(class) = name.strip_suffix(of_row).and_then(|rest| rest.strip_suffix('/'))
            && class == class_path(plan, row)
        {
            full.push(Subject::Row(row));
        }
    }
    if full.is_empty() { last } else { full }
}

/// The live row of a class with this name.
#[must_use]
pub fn row_of(plan: &Plan, class: &str, name: &str) -> Option<u32> {
    let live = (0_u32..).zip(&plan.entries).filter(|(_, entry)| is_live(entry)).map(|(row, _)| row);
    live.into_iter().find(|&row| plan.names.get(row as usize) == name && class_path(plan, row) == class)
}

/// The one limit that a name means.
///
/// # Errors
/// None, or several.
pub fn limit(plan: &Plan, name: &str) -> Result<LimitId, NodeError> {
    let found = find(plan, name);
    let limits: Vec<LimitId> = found.iter().filter_map(|&subject| limit_of(plan, subject)).collect();
    match limits.as_slice() {
        [limit] => Ok(*limit),
        [] => Err(NodeError::NotFound(match found.first() {
            None => unknown(plan, "limit", name),
            Some(&subject) => without_limit(plan, subject),
        })),
        several => {
            let names = several.iter().take(LISTED_MAX).map(|&limit| limit_name(plan, limit).to_string());
            let names: Vec<String> = names.collect();
            let text = format!("{} limits are called {}: say which: {}", several.len(), quote(name), names.join(", "));
            Err(NodeError::Invalid(text))
        }
    }
}

/// The limits that full names mean, in one walk; those that mean none are left out.
#[must_use]
pub fn limits(plan: &Plan, wanted: &[String]) -> Vec<LimitId> {
    let of_classes = plan.classes.iter().filter(|class| class.wire.limit_index != wire::PST_NONE);
    let of_classes = of_classes.filter(|class| wanted.contains(&class.path));
    let mut found: Vec<LimitId> = of_classes.map(|class| LimitId::Class(class.wire.limit_index)).collect();
    // A class may be several classes below its link, and a row's name may have slashes.
    let rests = wanted.iter().flat_map(|name| name.match_indices('/').skip(1).map(|(at, _)| &name[at + 1..]));
    let rows: HashSet<&str> = rests.collect();
    if rows.is_empty() {
        return found;
    }
    for (row, _) in (0_u32..).zip(&plan.entries).filter(|(_, entry)| is_live(entry)) {
        let limit = LimitId::Row(row);
        if rows.contains(plan.names.get(row as usize)) && wanted.contains(&limit_name(plan, limit).to_string()) {
            found.push(limit);
        }
    }
    found
}

fn limit_of(plan: &Plan, subject: Subject) -> Option<LimitId> {
    match subject {
        Subject::Link(_) => None,
        Subject::Row(row) => Some(LimitId::Row(row)),
        Subject::Class(class) => {
            let index = plan.classes.get(class as usize)?.wire.limit_index;
            (index != wire::PST_NONE).then_some(LimitId::Class(index))
        }
    }
}

fn without_limit(plan: &Plan, subject: Subject) -> String {
    let name = full_name(plan, subject);
    match subject {
        Subject::Link(_) => format!("{} is a link; its rate is part of the policy", quote(&name)),
        _ => {
            format!("the class {} has no limit of its own; `penstock limits list {name}` lists its rows", quote(&name))
        }
    }
}

/// Says that nothing is called so, and what may have been meant.
#[must_use]
pub fn unknown(plan: &Plan, what: &str, name: &str) -> String {
    let links = plan.links.iter().map(|link| link.name.as_str());
    let classes =
        plan.classes.iter().flat_map(|class| [class.path.as_str(), class.path.rsplit('/').next().unwrap_or("")]);
    let rows = if plan.entries.len() <= COMPARED_ROWS_MAX { plan.entries.len() } else { 0 };
    let rows = (0..rows).filter(|&row| plan.entries.get(row).is_some_and(is_live)).map(|row| plan.names.get(row));
    let known: Vec<&str> = links.chain(classes).chain(rows).collect();
    let last = name.rsplit('/').next().unwrap_or(name);
    let meant = closest(name, &known).or_else(|| closest(last, &known)).filter(|&meant| meant != name);
    let help = match meant {
        Some(meant) => format!("did you mean {}?", quote(meant)),
        None => "`penstock limits list PART` finds names".to_owned(),
    };
    format!("there is no {what} {}; {help}", quote(name))
}

/// The class with a limits file that is meant: by its path or its last part, or the only one there is.
///
/// # Errors
/// None, or several.
pub fn class_with_rows(plan: &Plan, has_file: &[bool], name: &str) -> Result<u32, NodeError> {
    let all: Vec<u32> = (0..).zip(has_file).filter(|&(_, &has)| has).map(|(class, _)| class).collect();
    let path = |class: u32| plan.classes.get(class as usize).map_or("", |class| class.path.as_str());
    if all.is_empty() {
        return Err(NodeError::Invalid("no class of the policy has a limits file".to_owned()));
    }
    let paths: Vec<&str> = all.iter().map(|&class| path(class)).collect();
    if name.is_empty() {
        let [class] = all.as_slice() else {
            let text = format!("several classes have limits files: say which with --class: {}", paths.join(", "));
            return Err(NodeError::Invalid(text));
        };
        return Ok(*class);
    }
    let is_meant = |&class: &u32| path(class) == name || path(class).rsplit('/').next() == Some(name);
    let meant: Vec<u32> = all.iter().copied().filter(is_meant).collect();
    match meant.as_slice() {
        [class] => Ok(*class),
        [] => {
            let text = format!("no class with a limits file is called {}: {}", quote(name), paths.join(", "));
            Err(NodeError::NotFound(text))
        }
        _ => Err(NodeError::Invalid(format!("{} is ambiguous: {}", quote(name), paths.join(", ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_policy::plan::{PlanClass, PlanEntry};

    #[test]
    fn limits_below_other_classes_are_found_by_their_full_names() {
        let class = |path: &str, limit_index: u32| {
            let wire = wire::Class { limit_index, ..wire::Class::default() };
            PlanClass { path: path.to_owned(), wire, ..PlanClass::default() }
        };
        let profile = |class_index: u32| wire::Profile { class_index, ..wire::Profile::default() };
        let entry = |profile: u16| {
            let (rate, rate_bps, value) = (1, 1_000_000, wire::Key::default());
            PlanEntry { tuple: 0, rate, rate_bps, profile, value }
        };
        let none = wire::PST_NONE;
        let mut plan = Plan {
            classes: vec![class("down/gold", none), class("down/gold/web", 0), class("down/rows", none)],
            profiles: vec![profile(1), profile(2)],
            limits: vec![wire::Limit::default()],
            entries: vec![entry(0), entry(1), entry(1)],
            ..Plan::default()
        };
        ["a", "a", "b/c"].iter().for_each(|name| assert!(plan.names.push(name).is_ok()));
        let found = |name: &str| limits(&plan, &[name.to_owned()]);
        assert_eq!(found("down/gold/web"), [LimitId::Class(0)]);
        assert_eq!(found("down/gold/web/a"), [LimitId::Row(0)]);
        assert_eq!((found("down/rows/a"), found("down/rows/b/c")), (vec![LimitId::Row(1)], vec![LimitId::Row(2)]));
        assert!(found("down/gold/a").is_empty() && found("down/rows/c").is_empty());
    }
}
