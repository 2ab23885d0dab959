// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a source and the changes made at run time to a plan. Changes that the policy has no place for fall away, with a reason.

use crate::changes::{Change, Changes, LimitName, added_rows, overlay};
use crate::difference::NAMES_MAX;
use crate::store::Source;
use penstock_dataplane::class_of;
use penstock_policy::compile::compile_with;
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

impl Compiled {
    /// Why changes fell away: the first reasons, and how many there are. A policy may drop millions of changes.
    #[must_use]
    pub fn reasons(&self) -> (Vec<String>, u64) {
        let reasons = self.dropped.iter().filter_map(|one| one.why.as_ref());
        (reasons.clone().take(NAMES_MAX).cloned().collect(), reasons.count() as u64)
    }
}

/// Compiles a source with changes laid over it.
///
/// # Errors
/// What is wrong with the source.
pub fn compile(source: &Source, changes: &Changes) -> Result<Compiled, Errors> {
    let policy = parse(source)?;
    let (plan, unused) = compile_with(&policy, |path| read(source, path), &overlay(changes))?;
    let without_place = without_place(changes, unused);
    let are = rates_of(&plan, &without_place);
    let dropped = without_place.into_iter().map(|(name, (rest, why))| {
        let change = changes.get(&name);
        let is_as_wanted = change.is_some_and(|change| change.wanted_bps() == are.get(&name).copied());
        let what = change.map(Change::describe).unwrap_or_default();
        let why = (!is_as_wanted).then(|| format!("{name}: {what}, but {why}"));
        Dropped { name, rest, why }
    });
    Ok(Compiled { dropped: dropped.collect(), policy, plan, headers: headers(source) })
}

/// Changes that the policy has no place for: what is left of each, and why.
type WithoutPlace = BTreeMap<LimitName, (Change, String)>;

fn without_place(changes: &Changes, unused: Vec<Unused>) -> WithoutPlace {
    let mut found = WithoutPlace::new();
    let mut drop = |name: LimitName, is_added: bool, why: &str| {
        let whole = || changes.get(&name).cloned().unwrap_or_default();
        let (rest, reason) = found.entry(name.clone()).or_insert_with(|| (whole(), String::new()));
        why.clone_into(reason);
        match is_added {
            true => rest.added = None,
            false => rest.changed = None,
        }
    };
    for one in unused {
        match one {
            Unused::ClassLimit { class } => {
                drop(LimitName { class, row: None }, false, "the policy has no limit of this class");
            }
            Unused::Row { class, row } => {
                let why = "the policy has no such row, or not at this rate";
                drop(LimitName { class, row: Some(row) }, false, why);
            }
            Unused::AddedRow { class, row, why } => drop(LimitName { class, row: Some(row) }, true, &why),
            Unused::Added { class } => {
                for (name, _) in added_rows(changes, &class) {
                    drop(name.clone(), true, "the policy has no rows of this class");
                }
            }
        }
    }
    found
}

fn headers(source: &Source) -> Headers {
    let first_line =
        |bytes: &[u8]| bytes.trim_ascii_start().split(|&byte| byte == b'\n').next().unwrap_or_default().to_vec();
    let read = source.files.iter().filter_map(|file| Some((file, file.bytes.as_ref().ok()?)));
    read.map(|(file, bytes)| (file.path.clone(), first_line(bytes))).collect()
}

/// The rates of limits that a plan has, of those that are asked for.
fn rates_of(plan: &Plan, wanted: &WithoutPlace) -> HashMap<LimitName, u64> {
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
            "down/rows/b: added at run time, but the name `b` is on line 3 of rows.csv too",
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
    fn added_rows_of_other_columns_stand_side_by_side() {
        let rate = || ("rate".to_owned(), "1Mbit/s".to_owned());
        let by = |column: &str, value: &str| {
            let columns = vec![(column.to_owned(), value.to_owned()), rate()];
            Change { added: Some(columns), ..Change::default() }
        };
        let changes: Changes = [
            (name("flow"), by("five_tuple", "udp 10.0.0.1:53 -> 10.1.2.3:1000")),
            (name("host"), by("dst", "10.1.0.7")),
        ]
        .into();
        let compiled = compile(&source("name,dst,rate\na,10.1.0.1,1Mbit/s\n"), &changes).unwrap();
        assert_eq!((compiled.dropped.len(), compiled.plan.entries.len()), (0, 3));
    }

    #[test]
    fn a_policy_that_has_taken_over_what_was_added_is_compiled_no_more_than_twice() {
        const ROWS: u32 = 20_000;
        let address = |row: u32| format!("10.1.{}.{}", row >> 8, row & 255);
        let changes: Changes = (0..ROWS).map(|row| (name(&format!("r{row}")), added(&address(row)))).collect();
        let rows: String = (0..ROWS).map(|row| format!("r{row},{},1Mbit/s\n", address(row))).collect();
        let started = std::time::Instant::now();
        let compiled = compile(&source(&format!("name,dst,rate\n{rows}")), &changes).unwrap();
        assert_eq!((compiled.dropped.len(), compiled.plan.entries.len()), (ROWS as usize, ROWS as usize));
        assert!(compiled.dropped.iter().all(|one| one.why.is_none() && one.rest.is_empty()));
        assert_eq!(compiled.reasons(), (Vec::new(), 0));
        // Once for every 20 rows takes minutes.
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    }

    #[test]
    fn what_is_wrong_with_the_source_is_said_as_always() {
        let errors = compile(&source("name,dst,rate\na,10.1.0.1,1Mbit\n"), &Changes::new()).unwrap_err();
        assert!(errors.to_string().starts_with("rows.csv:2:12: error: `Mbit` is not a unit of a rate"), "{errors}");
    }
}
