// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a source and the changes made at run time to a plan. Changes that the policy has no place for fall away, with a reason.

use crate::changes::{Change, Changes, LimitName, added_rows, added_text_name, overlay};
use crate::store::Source;
use penstock_dataplane::class_of;
use penstock_policy::compile::compile_with;
use penstock_policy::diagnostics::{Diagnostic, Place};
use penstock_policy::limits_file::LimitsText;
use penstock_policy::overlay::Unused;
use penstock_policy::{Errors, Plan, Policy};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

/// First lines of limits files, by path.
pub type Headers = HashMap<String, Vec<u8>>;

/// A policy that is ready for a data plane.
#[derive(Debug)]
pub struct Compiled {
    /// As it was written.
    pub policy: Policy,
    /// With the changes that it has a place for.
    pub plan: Plan,
    /// The first line of each limits file, by its path.
    pub headers: Headers,
    /// Changes that fell away.
    pub dropped: Vec<Dropped>,
}

/// A change that fell away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// Of which limit.
    pub name: LimitName,
    /// What is left of it.
    pub rest: Change,
    /// Why; nothing when the policy says the same itself.
    pub why: Option<String>,
}

/// Compiles a source with changes laid over it.
///
/// # Errors
/// What is wrong with the source.
pub fn compile(source: &Source, changes: &Changes) -> Result<Compiled, Errors> {
    let policy = parse(source)?;
    let mut left = changes.clone();
    let mut reasons: BTreeMap<LimitName, String> = BTreeMap::new();
    // Every round takes at least one change away.
    let plan = loop {
        let result = compile_with(&policy, |path| read(source, path), &overlay(&left));
        let before = reasons.len();
        match result {
            Ok((plan, unused)) => {
                drop_unused(&mut left, &unused, &mut reasons);
                drop_second_names(&mut left, &plan, &mut reasons);
                if reasons.len() == before || !added_any(changes) {
                    break plan;
                }
            }
            Err(errors) => {
                let mut blamed = drop_blamed(&mut left, &errors);
                if blamed.is_empty() {
                    return Err(errors);
                }
                reasons.append(&mut blamed);
            }
        }
    };
    let are = rates_of(&plan, &reasons);
    let dropped = reasons.into_iter().map(|(name, why)| {
        let rest = left.get(&name).cloned().unwrap_or_default();
        let change = changes.get(&name);
        let is_as_wanted = change.is_some_and(|change| change.wanted_bps() == are.get(&name).copied());
        let what = change.map(Change::describe).unwrap_or_default();
        let why = (!is_as_wanted).then(|| format!("{name}: {what}, but {why}"));
        Dropped { name, rest, why }
    });
    Ok(Compiled { dropped: dropped.collect(), policy, plan, headers: headers(source) })
}

fn headers(source: &Source) -> Headers {
    let first_line =
        |bytes: &[u8]| bytes.trim_ascii_start().split(|&byte| byte == b'\n').next().unwrap_or_default().to_vec();
    let read = source.files.iter().filter_map(|file| Some((file, file.bytes.as_ref().ok()?)));
    read.map(|(file, bytes)| (file.path.clone(), first_line(bytes))).collect()
}

/// The rates of limits that a plan has, of those that are asked for.
fn rates_of(plan: &Plan, wanted: &BTreeMap<LimitName, String>) -> HashMap<LimitName, u64> {
    let mut rates = HashMap::new();
    if wanted.is_empty() {
        return rates;
    }
    for class in &plan.classes {
        let name = LimitName { class: class.path.clone(), row: None };
        rates.extend(class.limit_bps.map(|rate_bps| (name, rate_bps)));
    }
    let rows: HashSet<&str> = wanted.keys().filter_map(|name| name.row.as_deref()).collect();
    for (index, entry) in plan.entries.iter().enumerate().filter(|&(index, _)| rows.contains(plan.names.get(index))) {
        let class = class_of(plan, entry).and_then(|class| plan.classes.get(class as usize));
        let class = class.map_or(String::new(), |class| class.path.clone());
        rates.insert(LimitName { class, row: Some(plan.names.get(index).to_owned()) }, entry.rate_bps);
    }
    rates
}

fn parse(source: &Source) -> Result<Policy, Errors> {
    match std::str::from_utf8(&source.text) {
        Ok(text) => Policy::parse(&source.name, text),
        Err(error) => {
            let mut errors = Errors::default();
            errors.push(penstock_policy::limits_file::not_utf8(&source.name, &source.text, error));
            Err(errors)
        }
    }
}

/// A limits file out of the source.
fn read(source: &Source, path: &str) -> io::Result<LimitsText> {
    let file = source.files.iter().find(|file| file.path == path).ok_or(io::ErrorKind::NotFound)?;
    match &file.bytes {
        Ok(bytes) => Ok(LimitsText { name: file.name.clone(), bytes: bytes.clone() }),
        Err(why) => Err(io::Error::other(why.clone())),
    }
}

/// Changes of what is not there only matter to the plan when rows were added: without those it is the same plan.
fn added_any(changes: &Changes) -> bool {
    changes.values().any(|change| change.added.is_some())
}

fn drop_unused(left: &mut Changes, unused: &[Unused], reasons: &mut BTreeMap<LimitName, String>) {
    for one in unused {
        let (names, why): (Vec<LimitName>, _) = match one {
            Unused::ClassLimit { class } => {
                (vec![LimitName { class: class.clone(), row: None }], "the policy has no limit of this class")
            }
            Unused::Row { class, row } => (
                vec![LimitName { class: class.clone(), row: Some(row.clone()) }],
                "the policy has no such row, or not at this rate",
            ),
            Unused::Added { class } => (
                added_rows(left, class).map(|(name, _)| name.clone()).collect(),
                "the policy has no rows of this class",
            ),
        };
        for name in names {
            match one {
                Unused::Added { .. } => take(left, &name, |change| change.added = None),
                _ => take(left, &name, |change| change.changed = None),
            }
            reasons.insert(name, why.to_owned());
        }
    }
}

/// Added rows whose name the policy has given to a row of its own since.
fn drop_second_names(left: &mut Changes, plan: &Plan, reasons: &mut BTreeMap<LimitName, String>) {
    let added = left.iter().filter(|(_, change)| change.added.is_some());
    let mut counts: HashMap<(&str, &str), (u32, LimitName)> =
        added.filter_map(|(name, _)| Some(((name.class.as_str(), name.row.as_deref()?), (0, name.clone())))).collect();
    if counts.is_empty() {
        return;
    }
    for (index, entry) in plan.entries.iter().enumerate() {
        let class = class_of(plan, entry).and_then(|class| plan.classes.get(class as usize));
        let class = class.map_or("", |class| class.path.as_str());
        if let Some((count, _)) = counts.get_mut(&(class, plan.names.get(index))) {
            *count += 1;
        }
    }
    let second: Vec<LimitName> = counts.into_values().filter(|(count, _)| *count > 1).map(|(_, name)| name).collect();
    for name in second {
        take(left, &name, |change| change.added = None);
        reasons.insert(name, "the policy has a row of that name".to_owned());
    }
}

/// Takes away the added rows that errors speak of.
fn drop_blamed(left: &mut Changes, errors: &Errors) -> BTreeMap<LimitName, String> {
    let mut blamed = BTreeMap::new();
    let classes: Vec<String> = left.keys().map(|name| name.class.clone()).collect();
    for class in classes {
        let file = added_text_name(&class);
        let rows: Vec<LimitName> = added_rows(left, &class).map(|(name, _)| name.clone()).collect();
        for diagnostic in errors.diagnostics() {
            let lines = places(diagnostic).filter(|place| place.file() == file).map(Place::line);
            // Line 1 is the header.
            for name in lines.filter_map(|line| rows.get(line.wrapping_sub(2))) {
                blamed.insert(name.clone(), diagnostic.problem.message.clone());
            }
        }
    }
    for name in blamed.keys() {
        take(left, name, |change| change.added = None);
    }
    blamed
}

fn places(diagnostic: &Diagnostic) -> impl Iterator<Item = &Place> {
    std::iter::once(&diagnostic.place).chain(diagnostic.related.iter().map(|(place, _)| place))
}

fn take(left: &mut Changes, name: &LimitName, part: impl FnOnce(&mut Change)) {
    if let Some(change) = left.get_mut(name) {
        part(change);
        if change.is_empty() {
            left.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Changed;
    use crate::store::SourceFile;

    fn source(rows: &str) -> Source {
        let text = "penstock: 1\nports: { lan: { rate: 1Gbit/s } }\nlinks:\n  - name: down\n    port: lan\n    classes:\n      \
                    - { name: gold, match: [ { dst: 10.2.0.0/16 } ], limit: { rate: 50Mbit/s } }\n      \
                    - { name: rows, limits: { file: rows.csv } }\n";
        let file = SourceFile {
            path: "rows.csv".to_owned(),
            name: "rows.csv".to_owned(),
            bytes: Ok(rows.as_bytes().to_vec()),
        };
        Source { name: "p.yaml".to_owned(), text: text.as_bytes().to_vec(), files: vec![file] }
    }

    fn name(row: &str) -> LimitName {
        LimitName { class: "down/rows".to_owned(), row: Some(row.to_owned()) }
    }

    fn added(dst: &str) -> Change {
        let columns = vec![("dst".to_owned(), dst.to_owned()), ("rate".to_owned(), "1Mbit/s".to_owned())];
        Change { added: Some(columns), ..Change::default() }
    }

    #[test]
    fn changes_that_have_no_place_fall_away_and_the_rest_holds() {
        let rate = Change { changed: Some(Changed::Rate(7_000_000)), ..Change::default() };
        let changes: Changes = [
            (name("a"), rate.clone()),
            (name("gone"), rate.clone()),
            (name("new"), added("10.1.0.7")),
            (name("key"), added("10.1.0.2")),
            (name("b"), added("10.1.0.8")),
            (LimitName { class: "down/gold".to_owned(), row: None }, rate.clone()),
            (LimitName { class: "down/silver".to_owned(), row: None }, rate),
        ]
        .into();
        let compiled = compile(&source("name,dst,rate\na,10.1.0.1,1Mbit/s\nb,10.1.0.2,2Mbit/s\n"), &changes).unwrap();
        let rows: Vec<(&str, u64)> = (0..)
            .zip(&compiled.plan.entries)
            .map(|(index, entry)| (compiled.plan.names.get(index), entry.rate_bps))
            .collect();
        assert_eq!(rows, [("a", 7_000_000), ("b", 2_000_000), ("new", 1_000_000)]);
        assert_eq!(compiled.plan.classes[0].limit_bps, Some(7_000_000));
        let mut dropped: Vec<&str> = compiled.dropped.iter().filter_map(|one| one.why.as_deref()).collect();
        dropped.sort_unstable();
        let expected = [
            "down/rows/b: added at run time, but the policy has a row of that name",
            "down/rows/gone: set to 7Mbit/s at run time, but the policy has no such row, or not at this rate",
            "down/rows/key: added at run time, but the key of this row is on line 3 of rows.csv too",
            "down/silver: set to 7Mbit/s at run time, but the policy has no limit of this class",
        ];
        assert_eq!(dropped, expected);
    }

    #[test]
    fn what_the_policy_says_itself_falls_away_in_silence() {
        let rate = Change { changed: Some(Changed::Rate(1_000_000)), ..Change::default() };
        let deleted = Change { changed: Some(Changed::Deleted), ..Change::default() };
        let changes: Changes = [(name("a"), rate), (name("gone"), deleted), (name("b"), added("10.1.0.2"))].into();
        let compiled = compile(&source("name,dst,rate\na,10.1.0.1,1Mbit/s\nb,10.1.0.2,1Mbit/s\n"), &changes).unwrap();
        let expected = ["a", "b", "gone"].map(|row| Dropped { name: name(row), rest: Change::default(), why: None });
        assert_eq!(compiled.dropped, expected);
    }

    #[test]
    fn what_is_wrong_with_the_source_is_said_as_always() {
        let errors = compile(&source("name,dst,rate\na,10.1.0.1,1Mbit\n"), &Changes::new()).unwrap_err();
        assert!(errors.to_string().starts_with("rows.csv:2:12: error: `Mbit` is not a unit of a rate"), "{errors}");
    }
}
