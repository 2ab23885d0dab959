// SPDX-License-Identifier: MIT OR Apache-2.0
//! What another network changes.

use crate::networks::Known;
use penstock_alloc::delta::Delta;
use penstock_alloc::model::{Aggregate, Class, Network, Port};
use penstock_api::v1;
use penstock_policy::units::format_rate;
use std::collections::HashMap;

/// Names of each kind that are listed.
const NAMES_MAX: usize = 20;

/// Ports, classes and limits, before and after; limits as if nobody's demand were known.
#[must_use]
pub fn change(known_before: &Known, known_after: &Known) -> v1::NetworkChange {
    let (before, after) = (&known_before.network, &known_after.network);
    v1::NetworkChange {
        revision: 0,
        ports: Some(named(&before.ports, &after.ports, |port| &port.name, port_differs)),
        classes: Some(named(
            &before.classes,
            &after.classes,
            |class| &class.name,
            |one, other| class_differs((before, one), (after, other)),
        )),
        aggregates: Some(named(
            &before.aggregates,
            &after.aggregates,
            |aggregate| &aggregate.name,
            |one, other| aggregate_differs((before, one), (after, other)),
        )),
        limits: Some(limits(known_before, known_after)),
        warnings: known_after.allocation.warnings.clone(),
    }
}

/// One line for the audit log.
#[must_use]
pub fn sentence(change: &v1::NetworkChange) -> String {
    let counts = |what: &str, difference: &Option<v1::Difference>| {
        let difference = difference.clone().unwrap_or_default();
        let v1::Difference { added, removed, changed, .. } = difference;
        let listed: Vec<String> = difference
            .added_names
            .iter()
            .map(|name| format!("+{name}"))
            .chain(difference.removed_names.iter().map(|name| format!("-{name}")))
            .chain(difference.changed_names.iter().map(|changed| format!("{}: {}", changed.name, changed.what)))
            .take(NAMES_MAX)
            .collect();
        let names = if listed.is_empty() { String::new() } else { format!(" ({})", listed.join(", ")) };
        format!("{what} {added} added, {removed} removed, {changed} changed{names}")
    };
    let parts = [("ports", &change.ports), ("classes", &change.classes), ("aggregates", &change.aggregates)];
    parts.map(|(what, difference)| counts(what, difference)).join("; ")
}

fn named<'a, T>(
    before: &'a [T],
    after: &'a [T],
    name: impl Fn(&'a T) -> &'a String,
    differs: impl Fn(&T, &T) -> Option<String>,
) -> v1::Difference {
    let mut difference = v1::Difference::default();
    let mut old: HashMap<&str, &T> = before.iter().map(|one| (name(one).as_str(), one)).collect();
    for one in after {
        match old.remove(name(one).as_str()) {
            None => count(&mut difference.added, &mut difference.added_names, || name(one).clone()),
            Some(was) => match differs(was, one) {
                None => difference.unchanged += 1,
                Some(what) => {
                    let changed = || v1::ChangedName { name: name(one).clone(), what };
                    count(&mut difference.changed, &mut difference.changed_names, changed);
                }
            },
        }
    }
    for one in before.iter().filter(|one| old.contains_key(name(one).as_str())) {
        count(&mut difference.removed, &mut difference.removed_names, || name(one).clone());
    }
    difference
}

fn count<T>(number: &mut u64, names: &mut Vec<T>, name: impl FnOnce() -> T) {
    *number += 1;
    if names.len() < NAMES_MAX {
        names.push(name());
    }
}

fn port_differs(before: &Port, after: &Port) -> Option<String> {
    let mut parts = Vec::new();
    if before.rate_bps != after.rate_bps {
        parts.push(format!("{} -> {}", format_rate(before.rate_bps), format_rate(after.rate_bps)));
    }
    if before.switch != after.switch {
        parts.push(format!("switch {} -> {}", before.switch, after.switch));
    }
    if before.buffer_bytes != after.buffer_bytes {
        parts.push(format!("buffer {} B -> {} B", before.buffer_bytes, after.buffer_bytes));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn class_differs((before, was): (&Network, &Class), (after, is): (&Network, &Class)) -> Option<String> {
    let mut parts = Vec::new();
    if was.weight != is.weight {
        parts.push(format!("weight {} -> {}", was.weight, is.weight));
    }
    if was.priority != is.priority {
        parts.push(format!("priority {} -> {}", was.priority, is.priority));
    }
    let rate = |rate_bps: Option<u64>| rate_bps.map_or_else(|| "none".to_owned(), format_rate);
    let limit = |class: &Class| rate(class.limit.map(|limit| limit.rate_bps));
    if was.limit != is.limit {
        parts.push(format!("limit {} -> {}", limit(was), limit(is)));
    }
    if was.demand_bps != is.demand_bps {
        parts.push(format!("demand {} -> {}", rate(was.demand_bps), rate(is.demand_bps)));
    }
    if was.safe_bps != is.safe_bps {
        parts.push(format!("safe {} -> {}", rate(was.safe_bps), rate(is.safe_bps)));
    }
    let names = |network: &Network, class: &Class| -> Vec<Vec<String>> {
        let name = |port: &u32| network.ports[*port as usize].name.clone();
        class.paths.iter().map(|path| path.iter().map(name).collect()).collect()
    };
    if names(before, was) != names(after, is) {
        parts.push("paths".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn aggregate_differs((before, was): (&Network, &Aggregate), (after, is): (&Network, &Aggregate)) -> Option<String> {
    let mut parts = Vec::new();
    if was.rate_bps != is.rate_bps {
        parts.push(format!("{} -> {}", format_rate(was.rate_bps), format_rate(is.rate_bps)));
    }
    let names = |network: &Network, aggregate: &Aggregate| -> Vec<String> {
        aggregate.classes.iter().map(|class| network.classes[*class as usize].name.clone()).collect()
    };
    if names(before, was) != names(after, is) {
        parts.push("classes".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn limits(before: &Known, after: &Known) -> v1::Difference {
    let delta = Delta::between((&before.network, &before.allocation), (&after.network, &after.allocation));
    let name = |class: &str, port: &str| format!("{class} at {port}");
    let first = |limits: &[penstock_alloc::delta::LimitAt<'_>]| {
        limits.iter().take(NAMES_MAX).map(|at| name(at.class, at.port)).collect()
    };
    v1::Difference {
        added: delta.added.len() as u64,
        removed: delta.removed.len() as u64,
        changed: delta.changed.len() as u64,
        unchanged: delta.unchanged as u64,
        added_names: first(&delta.added),
        removed_names: first(&delta.removed),
        changed_names: delta
            .changed
            .iter()
            .take(NAMES_MAX)
            .map(|one| v1::ChangedName {
                name: name(one.class, one.port),
                what: format!("{} -> {}", format_rate(one.before.rate_bps), format_rate(one.after.rate_bps)),
            })
            .collect(),
    }
}
