// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where limits that are lent are in a plan: the network's port is a link, its class a class or a row of that link.

use crate::leases::Lent;
use crate::names::limit_name;
use penstock_algo::wire;
use penstock_dataplane::{LimitId, class_of, is_live};
use penstock_policy::Plan;
use penstock_policy::diagnostics::{closest, quote};
use std::collections::{BTreeMap, HashMap};

/// Meanings of a name that a problem lists.
const LISTED_MAX: usize = 5;
/// Names are compared with a wrong one up to this many rows.
const COMPARED_ROWS_MAX: usize = 20_000;

/// Places of limits by number, or what is wrong with them.
pub type Found = BTreeMap<u32, Result<LimitId, String>>;

/// What a name may mean in its link.
#[derive(Debug, Default)]
struct Meanings {
    /// Those whose path below the link it is.
    full: Vec<LimitId>,
    /// Those whose last part it is.
    last: Vec<LimitId>,
    /// A class that has no limit of its own.
    without_limit: Option<u32>,
}

/// By link, then by name.
type Wanted<'a> = HashMap<u32, HashMap<&'a str, Meanings>>;

/// Finds all of them in one walk through the plan.
#[must_use]
pub fn find(plan: &Plan, limits: &BTreeMap<u32, Lent>) -> Found {
    let links: HashMap<&str, u32> = plan.links.iter().map(|link| link.name.as_str()).zip(0..).collect();
    let mut wanted = Wanted::new();
    for lent in limits.values() {
        if let Some(&link) = links.get(lent.port.as_str()) {
            wanted.entry(link).or_default().entry(&lent.class).or_default();
        }
    }
    walk_classes(plan, &mut wanted);
    walk_rows(plan, &mut wanted);
    let mut taken: HashMap<LimitId, u32> = HashMap::new();
    let mut found = Found::new();
    for (&number, lent) in limits {
        let place = match links.get(lent.port.as_str()) {
            None => Err(unknown_link(plan, lent)),
            Some(link) => place(plan, lent, wanted.get(link).and_then(|of_link| of_link.get(lent.class.as_str()))),
        };
        let place = place.and_then(|limit| match taken.get(&limit).and_then(|other| limits.get(other)) {
            Some(other) => {
                let name = limit_name(plan, limit).to_string();
                Err(format!("{} is lent twice, as {} and as {}", quote(&name), quote(&other.class), quote(&lent.class)))
            }
            None => {
                taken.insert(limit, number);
                Ok(limit)
            }
        });
        found.insert(number, place);
    }
    found
}

/// The link of a class, and its path below that.
fn below_link(plan: &Plan, class: u32) -> Option<(u32, &str)> {
    let class = plan.classes.get(class as usize)?;
    let link = plan.links.get(usize::from(class.wire.link_index))?;
    let path = class.path.strip_prefix(&link.name)?.strip_prefix('/')?;
    Some((class.wire.link_index.into(), path))
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn walk_classes(plan: &Plan, wanted: &mut Wanted<'_>) {
    for (index, class) in (0..).zip(&plan.classes) {
        let Some((link, path)) = below_link(plan, index) else { continue };
        let Some(of_link) = wanted.get_mut(&link) else { continue };
        let last = last_part(path);
        let has_limit = class.wire.limit_index != wire::PST_NONE;
        let limit = LimitId::Class(class.wire.limit_index);
        let mut note = |name: &str, is_full: bool| {
            let Some(meanings) = of_link.get_mut(name) else { return };
            match (has_limit, is_full) {
                (false, _) => meanings.without_limit = Some(index),
                (true, true) => meanings.full.push(limit),
                (true, false) => meanings.last.push(limit),
            }
        };
        note(path, true);
        if last != path {
            note(last, false);
        }
    }
}

fn walk_rows(plan: &Plan, wanted: &mut Wanted<'_>) {
    if wanted.is_empty() {
        return;
    }
    let has_paths = wanted.values().flat_map(HashMap::keys).any(|name| name.contains('/'));
    for (row, entry) in (0_u32..).zip(&plan.entries).filter(|(_, entry)| is_live(entry)) {
        let Some((link, path)) = class_of(plan, entry).and_then(|class| below_link(plan, class)) else { continue };
        let (Some(of_link), name) = (wanted.get_mut(&link), plan.names.get(row as usize)) else { continue };
        if let Some(meanings) = of_link.get_mut(name) {
            meanings.last.push(LimitId::Row(row));
        }
        if has_paths && let Some(meanings) = of_link.get_mut(format!("{path}/{name}").as_str()) {
            meanings.full.push(LimitId::Row(row));
        }
    }
}

fn place(plan: &Plan, lent: &Lent, meanings: Option<&Meanings>) -> Result<LimitId, String> {
    let nothing = Meanings::default();
    let meanings = meanings.unwrap_or(&nothing);
    let several = if meanings.full.is_empty() { &meanings.last } else { &meanings.full };
    match (several.as_slice(), meanings.without_limit) {
        ([limit], _) => Ok(*limit),
        ([], Some(class)) => {
            let path = plan.classes.get(class as usize).map_or("", |class| class.path.as_str());
            let help = "give it `limit: { rate: .. }` in the policy";
            Err(format!("the class {} has no limit of its own; {help}", quote(path)))
        }
        ([], None) => Err(unknown_class(plan, lent)),
        (several, _) => {
            let names = several.iter().take(LISTED_MAX).map(|&limit| limit_name(plan, limit).to_string());
            let names: Vec<String> = names.collect();
            let (count, class, port) = (several.len(), quote(&lent.class), quote(&lent.port));
            let names = names.join(", ");
            Err(format!("{count} limits of link {port} are called {class}: {names}; call one of them so and no other"))
        }
    }
}

fn unknown_link(plan: &Plan, lent: &Lent) -> String {
    let names: Vec<&str> = plan.links.iter().map(|link| link.name.as_str()).collect();
    let help = match closest(&lent.port, &names) {
        Some(meant) => format!("did you mean {}?", quote(meant)),
        None => format!("its links are {}", names.join(", ")),
    };
    format!("the policy has no link {} (for class {}); {help}", quote(&lent.port), quote(&lent.class))
}

fn unknown_class(plan: &Plan, lent: &Lent) -> String {
    let mut names: Vec<&str> = Vec::new();
    let of_link = |class: u32| {
        below_link(plan, class).filter(|_| {
            let link = plan.classes.get(class as usize).and_then(|it| plan.links.get(usize::from(it.wire.link_index)));
            link.is_some_and(|link| link.name == lent.port)
        })
    };
    for (class, _) in (0..).zip(&plan.classes) {
        names.extend(of_link(class).map(|(_, path)| last_part(path)));
    }
    if plan.entries.len() <= COMPARED_ROWS_MAX {
        let live = (0_usize..).zip(&plan.entries).filter(|(_, entry)| is_live(entry));
        let of_link = live.filter(|(_, entry)| class_of(plan, entry).and_then(of_link).is_some());
        names.extend(of_link.map(|(row, _)| plan.names.get(row)));
    }
    let help = match closest(&lent.class, &names) {
        Some(meant) => format!("did you mean {}?", quote(meant)),
        None => "a class of that name with a limit of its own, or a row of a limits file, would be right".to_owned(),
    };
    format!("the link {} has no class or row {}; {help}", quote(&lent.port), quote(&lent.class))
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
