// SPDX-License-Identifier: MIT OR Apache-2.0
//! What another policy changes.

use crate::names::limit_name;
use penstock_algo::wire;
use penstock_api::v1;
use penstock_dataplane::{LimitId, Same, is_live};
use penstock_policy::plan::{Plan, PlanClass, PlanLink};
use penstock_policy::{describe, units::format_rate};
use std::collections::HashSet;

/// Names of each kind that are listed.
pub(crate) const NAMES_MAX: usize = 20;

/// Classes and limits, before and after.
#[must_use]
pub fn difference(before: &Plan, after: &Plan) -> (v1::Difference, v1::Difference) {
    let same = Same::new(before, after);
    (classes(before, after, &same), limits(before, after, &same))
}

/// Adds a name to a list that has an end.
fn list(names: &mut Vec<String>, name: impl FnOnce() -> String) {
    if names.len() < NAMES_MAX {
        names.push(name());
    }
}

fn changed(difference: &mut v1::Difference, name: impl FnOnce() -> String, what: String) {
    difference.changed += 1;
    if difference.changed_names.len() < NAMES_MAX {
        difference.changed_names.push(v1::ChangedName { name: name(), what });
    }
}

fn classes(before: &Plan, after: &Plan, same: &Same) -> v1::Difference {
    let mut difference = v1::Difference::default();
    let (keys_before, keys_after) = (keys_by_class(before), keys_by_class(after));
    for (index, (class, was)) in after.classes.iter().zip(&same.classes).enumerate() {
        match was {
            None => {
                difference.added += 1;
                list(&mut difference.added_names, || class.path.clone());
            }
            Some(was) => {
                let is_other = keys_before.get(*was as usize) != keys_after.get(index);
                let delay = before.classes.get(*was as usize).and_then(|was| {
                    let links = (link_of(before, was), link_of(after, class));
                    let of_link = delays(before, links.0.map(|it| it.wire.line), after, links.1.map(|it| it.wire.line));
                    let own = delays(before, Some(was.wire.line), after, Some(class.wire.line));
                    own.filter(|own| of_link.as_ref() != Some(own)) // which is told of below
                });
                let parts: Vec<String> = is_other.then(|| "match".to_owned()).into_iter().chain(delay).collect();
                if parts.is_empty() {
                    difference.unchanged += 1;
                } else {
                    changed(&mut difference, || class.path.clone(), parts.join(", "));
                }
            }
        }
    }
    for link in &after.links {
        let was = before.links.iter().find(|other| other.name == link.name);
        let delay = was.and_then(|was| delays(before, Some(was.wire.line), after, Some(link.wire.line)));
        if let Some(what) = delay {
            changed(&mut difference, || link.name.clone(), what);
        }
    }
    let kept: HashSet<u32> = same.classes.iter().flatten().copied().collect();
    for (_, class) in (0..).zip(&before.classes).filter(|(index, _)| !kept.contains(index)) {
        difference.removed += 1;
        list(&mut difference.removed_names, || class.path.clone());
    }
    difference
}

fn link_of<'a>(plan: &'a Plan, class: &PlanClass) -> Option<&'a PlanLink> {
    plan.links.get(usize::from(class.wire.link_index))
}

/// What another delay line changes, in words.
fn delays(before: &Plan, was: Option<u16>, after: &Plan, line: Option<u16>) -> Option<String> {
    let words = |plan: &Plan, line: Option<u16>| {
        let line = line.and_then(|line| plan.lines.get(usize::from(line)));
        line.and_then(describe::line).unwrap_or_else(|| "none".to_owned())
    };
    let (was, now) = (words(before, was), words(after, line));
    (was != now).then(|| format!("delay {was} -> {now}"))
}

/// A key of the rule table, without the indices of its plan.
type RuleKey = (wire::Key, wire::Key, u32);

fn keys_by_class(plan: &Plan) -> Vec<HashSet<RuleKey>> {
    let mut keys = vec![HashSet::new(); plan.classes.len()];
    for key in &plan.rule_keys {
        let (tuple, rule) = (plan.tuples.get(key.tuple as usize), plan.rules.get(usize::from(key.rule)));
        if let (Some(tuple), Some(rule)) = (tuple, rule)
            && let Some(of_class) = keys.get_mut(rule.class_index as usize)
        {
            of_class.insert((tuple.mask, key.value, rule.specificity_q8));
        }
    }
    keys
}

fn limits(before: &Plan, after: &Plan, same: &Same) -> v1::Difference {
    let mut difference = v1::Difference::default();
    let of_classes = (0..).zip(&same.limits).map(|(index, was)| (LimitId::Class(index), was.map(LimitId::Class)));
    let live =
        (0..).zip(&same.rows).filter(|&(row, _): &(u32, _)| after.entries.get(row as usize).is_some_and(is_live));
    let of_rows = live.map(|(index, was)| (LimitId::Row(index), was.map(LimitId::Row)));
    for (limit, was) in of_classes.chain(of_rows) {
        let name = || limit_name(after, limit).to_string();
        let Some(was) = was else {
            difference.added += 1;
            list(&mut difference.added_names, name);
            continue;
        };
        match what_changed(before, was, after, limit) {
            Some(what) => changed(&mut difference, name, what),
            None => difference.unchanged += 1,
        }
    }
    let kept_rows: HashSet<u32> = same.rows.iter().flatten().copied().collect();
    let kept_limits: HashSet<u32> = same.limits.iter().flatten().copied().collect();
    let gone_limits = (0..).zip(&before.limits).filter(|(index, _)| !kept_limits.contains(index));
    let gone_limits = gone_limits.map(|(index, _)| LimitId::Class(index));
    let gone_rows = (0..).zip(&before.entries).filter(|(row, entry)| is_live(entry) && !kept_rows.contains(row));
    for limit in gone_limits.chain(gone_rows.map(|(row, _)| LimitId::Row(row))) {
        difference.removed += 1;
        list(&mut difference.removed_names, || limit_name(before, limit).to_string());
    }
    difference
}

/// Rate in bit/s and profile of a limit.
#[must_use]
pub fn rate_and_profile(plan: &Plan, limit: LimitId) -> (u64, wire::Profile) {
    let profile = |index: u16| plan.profiles.get(usize::from(index)).copied().unwrap_or_default();
    match limit {
        LimitId::Row(row) => plan
            .entries
            .get(row as usize)
            .map_or((0, wire::Profile::default()), |entry| (entry.rate_bps, profile(entry.profile))),
        LimitId::Class(index) => {
            let class = plan.classes.iter().find(|class| class.wire.limit_index == index);
            let of_limit =
                plan.limits.get(index as usize).map_or(wire::Profile::default(), |limit| profile(limit.profile));
            (class.and_then(|class| class.limit_bps).unwrap_or(0), of_limit)
        }
    }
}

fn what_changed(before: &Plan, was: LimitId, after: &Plan, limit: LimitId) -> Option<String> {
    let ((rate_before, terms_before), (rate, terms)) = (rate_and_profile(before, was), rate_and_profile(after, limit));
    let mut parts = Vec::new();
    if rate_before != rate {
        parts.push(format!("{} -> {}", format_rate(rate_before), format_rate(rate)));
    }
    if (wire::Profile { class_index: terms.class_index, ..terms_before }) != terms {
        let (before, after) = (describe::terms(&terms_before), describe::terms(&terms));
        // Terms that read alike differ in something that has no word here, such as the MTU.
        parts.push(if before == after { "terms".to_owned() } else { format!("{before} -> {after}") });
    }
    if let (LimitId::Row(was), LimitId::Row(row)) = (was, limit) {
        let name = before.names.get(was as usize);
        if name != after.names.get(row as usize) {
            parts.push(format!("was called {name}"));
        }
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_policy::Policy;
    use penstock_policy::limits_file::LimitsText;

    fn plan(gold: &str, extra: &str, rows: &str) -> Plan {
        let text = format!(
            "penstock: 1\nports: {{ lan: {{ rate: 1Gbit/s }} }}\nlinks:\n  - name: down\n    port: lan\n    classes:\n      \
             - {{ name: gold, {gold} }}\n      - {{ name: rows, limits: {{ file: r.csv }} }}\n{extra}"
        );
        let policy = Policy::parse("p.yaml", &text).unwrap();
        let read = |_: &str| Ok(LimitsText { name: "r.csv".to_owned(), bytes: rows.as_bytes().to_vec() });
        penstock_policy::compile::compile(&policy, read).unwrap()
    }

    #[test]
    fn what_is_new_gone_changed_and_the_same() {
        let gold = "match: [ { dst: 10.2.0.0/16 } ], limit: { rate: 50Mbit/s }";
        let rows = "name,dst,rate\na,10.1.0.1,1Mbit/s\nb,10.1.0.2,2Mbit/s\nc,10.1.0.3,3Mbit/s\n";
        let before = plan(gold, "      - { name: old, match: [ { dst: 10.3.0.0/16 } ] }\n", rows);
        let gold = "match: [ { dst: 10.2.0.0/17 } ], limit: { rate: 60Mbit/s, on_excess: mark }";
        let rows = "name,dst,rate\nd,10.1.0.4,1Mbit/s\nb,10.1.0.2,5Mbit/s\nnew name,10.1.0.3,3Mbit/s\n";
        let after = plan(gold, "      - { name: new, match: [ { dst: 10.4.0.0/16 } ] }\n", rows);
        let (classes, limits) = difference(&before, &after);
        assert_eq!((classes.added, classes.removed, classes.changed, classes.unchanged), (1, 1, 1, 1));
        assert_eq!(classes.changed_names[0].name, "down/gold");
        assert_eq!((limits.added, limits.removed, limits.changed, limits.unchanged), (1, 1, 3, 0));
        assert_eq!(
            (limits.added_names, limits.removed_names),
            (vec!["down/rows/d".into()], vec!["down/rows/a".into()])
        );
        let said: Vec<(&str, &str)> =
            limits.changed_names.iter().map(|one| (one.name.as_str(), one.what.as_str())).collect();
        let expected = [
            ("down/gold", "50Mbit/s -> 60Mbit/s, burst 17.5ms, excess 25ms, drop -> burst 17.5ms, excess 25ms, mark"),
            ("down/rows/b", "2Mbit/s -> 5Mbit/s"),
            ("down/rows/new name", "was called c"),
        ];
        assert_eq!(said, expected);
        let (classes, limits) = difference(&after, &after);
        assert_eq!((classes.unchanged, limits.unchanged), (3, 4));
    }

    #[test]
    fn delays_that_change_are_told_of() {
        const ROWS: &str = "name,dst,rate\n";
        let gold = |delay: &str| format!("match: [ {{ dst: 10.2.0.0/16 }} ], delay: {delay}");
        let (before, after) =
            (plan(&gold("2ms"), "    delay: 1ms\n", ROWS), plan(&gold("3ms"), "    delay: 1ms\n", ROWS));
        let said = |before: &Plan, after: &Plan| {
            let names = difference(before, after).0.changed_names;
            names.iter().map(|one| format!("{} {}", one.name, one.what)).collect::<Vec<_>>()
        };
        assert_eq!(said(&before, &after), ["down/gold delay 2ms -> 3ms"]);
        let link = plan(&gold("3ms"), "    delay: { time: 1ms, loss: 0.5% }\n", ROWS);
        assert_eq!(said(&after, &link), ["down delay 1ms -> 1ms, loss 0.5%"]);
        assert_eq!(said(&link, &plan(&gold("3ms"), "", ROWS)), ["down delay 1ms, loss 0.5% -> none"]);
        assert_eq!(said(&link, &link), [] as [String; 0]);
        // What a class has of its link, and loses.
        let with = |gold: &str| plan(&format!("match: [ {{ dst: 10.2.0.0/16 }} ]{gold}"), "    delay: 1ms\n", ROWS);
        assert_eq!(said(&with(""), &with(", delay: 0ms")), ["down/gold delay 1ms -> none"]);
        assert_eq!(said(&with(""), &with(", delay: 1ms")), [] as [String; 0]);
    }
}
