// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of limits files at run time: added one by one, imported, exported.
//!
//! New rows are compiled against the policy with empty limits files, so that they are checked as any limits file is. When the plan
//! in force has their fields and terms already, they are edits of it; else the policy is compiled anew with them.

use crate::changes::{Change, Changed, Changes, Column, LimitName, added_rows, csv_of};
use crate::compiled::compile;
use crate::error::NodeError;
use crate::keeper::{Held, Keeper};
use crate::limits::{change_so_far, message};
use crate::names;
use penstock_algo::wire;
use penstock_api::v1;
use penstock_dataplane::{Edit, LimitId, class_of, is_live};
use penstock_policy::Plan;
use penstock_policy::compile::compile_with;
use penstock_policy::diagnostics::quote;
use penstock_policy::limits_file::{LimitsText, term_columns};
use penstock_policy::overlay::{ClassOverlay, Overlay};
use penstock_policy::plan::PlanEntry;
use penstock_policy::units::format_rate;
use std::collections::HashMap;

/// Names of each kind that an import lists.
const NAMES_MAX: usize = 20;

/// Which classes have a limits file.
fn have_files(held: &Held) -> Vec<bool> {
    let links = held.policy.iter().flat_map(|policy| &policy.links);
    links.flat_map(|link| &link.classes).map(|class| class.limits.is_some()).collect()
}

/// A class with a limits file: its index, its path and the file's.
struct Place {
    index: u32,
    class: String,
    file: String,
}

fn place(keeper: &Keeper, name: &str) -> Result<Place, NodeError> {
    let (plan, held) = keeper.in_force()?;
    let index = names::class_with_rows(plan, &have_files(held), name)?;
    let classes = held.policy.iter().flat_map(|policy| &policy.links).flat_map(|link| &link.classes);
    let file = classes.into_iter().nth(index as usize).and_then(|class| class.limits.as_ref());
    let class = plan.classes.get(index as usize).map_or(String::new(), |class| class.path.clone());
    Ok(Place { index, class, file: file.map_or(String::new(), |file| file.path.clone()) })
}

/// Rows as they compile in a class, alone.
fn sketch(held: &Held, class: &str, text: LimitsText) -> Result<Plan, NodeError> {
    let policy = held.policy.as_ref().ok_or(NodeError::Idle)?;
    let header = |path: &str| {
        let bytes = held.headers.get(path).cloned().unwrap_or_default();
        Ok(LimitsText { name: path.to_owned(), bytes })
    };
    let of_class = ClassOverlay { added: vec![text], ..ClassOverlay::default() };
    let overlay = Overlay { classes: [(class.to_owned(), of_class)].into(), leaves_out: false };
    Ok(compile_with(policy, header, &overlay)?.0)
}

/// A row of a sketch as a row of the plan in force; none when that has no place for it. No other tuple may be as specific: rows
/// of it could take the same packets, and only compiling all of them would tell.
fn entry_in(plan: &Plan, held: &Held, class: u32, sketch: &Plan, entry: &PlanEntry) -> Option<PlanEntry> {
    let tuple = sketch.tuples.get(entry.tuple as usize)?;
    let of_class = plan.classes.get(class as usize)?;
    let classes = held.policy.iter().flat_map(|policy| &policy.links).flat_map(|link| &link.classes);
    let has_match = !classes.into_iter().nth(class as usize)?.items.is_empty();
    let (first, count) = match has_match {
        true => (of_class.wire.tuple_first, of_class.wire.tuple_count),
        false => {
            let link = plan.links.get(of_class.wire.link_index as usize)?;
            (link.wire.tuple_first, link.wire.tuple_count)
        }
    };
    let of_rows = (first..first + count).filter_map(|index| Some((index, plan.tuples.get(index as usize)?)));
    let of_rows = of_rows.filter(|(_, one)| u32::from(one.kind) == wire::PST_TUPLE_LIMITS);
    let mut rivals = of_rows.filter(|(_, one)| one.specificity_q8 == tuple.specificity_q8);
    let (index, found) = rivals.next()?;
    if rivals.next().is_some() || found.mask != tuple.mask {
        return None;
    }
    let profile = sketch.profiles.get(usize::from(entry.profile))?;
    let profile = plan.profiles.iter().position(|one| one == profile)?;
    Some(PlanEntry { tuple: index, profile: u16::try_from(profile).ok()?, ..*entry })
}

/// Edits and the changes that they are; the edits are none when the policy must be compiled anew.
#[derive(Default)]
struct Work {
    removed: Vec<Edit>,
    set: Vec<Edit>,
    added: Option<Vec<Edit>>,
    changes: Vec<(LimitName, Change)>,
}

impl Work {
    fn new() -> Self {
        Self { added: Some(Vec::new()), ..Self::default() }
    }

    fn add(&mut self, name: &str, entry: Option<PlanEntry>) {
        match (&mut self.added, entry) {
            (Some(added), Some(entry)) => added.push(Edit::Add { name: name.to_owned(), entry }),
            (added, _) => *added = None,
        }
    }
}

/// Makes the edits, or compiles the policy with the changes.
fn make(keeper: &mut Keeper, work: Work) -> Result<(), NodeError> {
    let Work { removed, set, added, changes } = work;
    if changes.is_empty() {
        return Ok(());
    }
    if let Some(added) = added {
        // Keys are free again before they are taken.
        let edits: Vec<Edit> = removed.into_iter().chain(set).chain(added).collect();
        return keeper.edit(&edits, &changes);
    }
    let source = keeper.source()?;
    let mut all: Changes = keeper.changes().clone();
    for (name, change) in &changes {
        match change.is_empty() {
            true => drop(all.remove(name)),
            false => drop(all.insert(name.clone(), change.clone())),
        }
    }
    let compiled = compile(&source, &all)?;
    let mut refused = compiled.dropped.iter().filter(|one| changes.iter().any(|(changed, _)| *changed == one.name));
    if let Some(why) = refused.find_map(|one| one.why.clone()) {
        return Err(NodeError::Invalid(why));
    }
    let change = keeper.preview(&compiled);
    keeper.replace(None, compiled, change, &changes)?;
    Ok(())
}

/// Adds a row.
///
/// # Errors
/// What is wrong with the row; that there is one of its name or key; or it cannot be kept or made.
pub fn add(keeper: &mut Keeper, request: &v1::AddLimitRequest) -> Result<v1::Limit, NodeError> {
    let place = place(keeper, &request.class)?;
    let (plan, held) = keeper.in_force()?;
    let columns: Vec<Column> =
        request.columns.iter().map(|column| (column.name.clone(), column.value.clone())).collect();
    let name = request.row.trim();
    let text = LimitsText { name: "the new row".to_owned(), bytes: csv_of(&[(name, &columns)]) };
    let sketch = sketch(held, &place.class, text)?;
    let entry = sketch.entries.first().ok_or_else(|| NodeError::Invalid("there is no row to add".to_owned()))?;
    let full = LimitName { class: place.class.clone(), row: Some(name.to_owned()) };
    if let Some(row) = names::row_of(plan, &place.class, name) {
        let rate = plan.entries.get(row as usize).map_or(String::new(), |entry| format_rate(entry.rate_bps));
        let text = format!("{full} is there already, at {rate}; `penstock limits set` changes its rate");
        return Err(NodeError::Exists(text));
    }
    let mut work = Work::new();
    let found = entry_in(plan, held, place.index, &sketch, entry);
    if let Some(other) = found.and_then(|entry| row_with_key(plan, &entry)) {
        let other = names::limit_name(plan, LimitId::Row(other));
        return Err(NodeError::Exists(format!(
            "{} has the key of {other}: a packet is held to one limit",
            quote(name)
        )));
    }
    work.add(name, found);
    let mut change = change_so_far(keeper, &full, 0);
    change.added = Some(columns);
    work.changes.push((full, change));
    make(keeper, work)?;
    let (plan, _) = keeper.in_force()?;
    let row = names::row_of(plan, &place.class, name);
    row.map(|row| message(keeper, plan, LimitId::Row(row))).ok_or(NodeError::Idle)
}

fn row_with_key(plan: &Plan, entry: &PlanEntry) -> Option<u32> {
    let is_same = |other: &PlanEntry| is_live(other) && (other.tuple, other.value) == (entry.tuple, entry.value);
    (0..).zip(&plan.entries).find(|(_, other)| is_same(other)).map(|(row, _)| row)
}

/// Rows of a CSV: the header, and each row's name and other columns.
fn records(bytes: &[u8]) -> (Vec<String>, Vec<(String, Vec<Column>)>) {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let mut records = reader.records().filter_map(Result::ok);
    let trim = |cell: &str| cell.trim_ascii().trim_start_matches('\u{feff}').to_owned();
    let header: Vec<String> = records.next().map(|record| record.iter().map(trim).collect()).unwrap_or_default();
    let rows = records.map(|record| {
        let mut name = String::new();
        let mut columns = Vec::new();
        for (column, cell) in header.iter().zip(record.iter()) {
            match column.as_str() {
                "name" => name = trim(cell),
                _ => columns.push((column.clone(), trim(cell))),
            }
        }
        (name, columns)
    });
    (header.clone(), rows.collect())
}

/// Sets and adds rows as a limits file says.
///
/// # Errors
/// What is wrong with the file; or it cannot be kept or made. Nothing was changed then.
pub fn import(keeper: &mut Keeper, file: &v1::ImportFile, bytes: Vec<u8>) -> Result<v1::Difference, NodeError> {
    let place = place(keeper, &file.class)?;
    let (header, records) = records(&bytes);
    let (plan, held) = keeper.in_force()?;
    let sketch = sketch(held, &place.class, LimitsText { name: file.name.clone(), bytes })?;
    let has_terms = header.iter().any(|column| term_columns().any(|term| term == column));
    let known = rows_by_name(plan, place.index);
    let (mut work, mut difference) = (Work::new(), v1::Difference::default());
    for (entry, (name, columns)) in sketch.entries.iter().zip(records) {
        let full = LimitName { class: place.class.clone(), row: Some(name.clone()) };
        let Some((row, old)) = known.get(name.as_str()).and_then(|&row| Some((row, plan.entries.get(row as usize)?)))
        else {
            difference.added += 1;
            if difference.added_names.len() < NAMES_MAX {
                difference.added_names.push(full.to_string());
            }
            work.add(&name, entry_in(plan, held, place.index, &sketch, entry));
            let change = Change { added: Some(columns), ..change_so_far(keeper, &full, 0) };
            work.changes.push((full, change));
            continue;
        };
        let old_bps = keeper.base_bps(plan, LimitId::Row(row));
        let same_key = same_key(plan, old, &sketch, entry);
        let same_terms = !has_terms
            || plan.profiles.get(usize::from(old.profile)) == sketch.profiles.get(usize::from(entry.profile));
        if same_key && same_terms && old_bps == entry.rate_bps {
            difference.unchanged += 1;
            continue;
        }
        let mut change = change_so_far(keeper, &full, old_bps);
        if same_key && same_terms {
            work.set.push(Edit::SetRate { limit: LimitId::Row(row), rate_bps: entry.rate_bps });
            change.set_rate(entry.rate_bps);
        } else {
            work.removed.push(Edit::Remove { row });
            work.add(&name, entry_in(plan, held, place.index, &sketch, entry));
            change.delete();
            change.added = Some(columns);
        }
        difference.changed += 1;
        if difference.changed_names.len() < NAMES_MAX {
            let mut what = format!("{} -> {}", format_rate(old_bps), format_rate(entry.rate_bps));
            if !(same_key && same_terms) {
                what.push_str(", another key or other terms");
            }
            difference.changed_names.push(v1::ChangedName { name: full.to_string(), what });
        }
        work.changes.push((full, change));
    }
    if !file.dry_run {
        make(keeper, work)?;
    }
    Ok(difference)
}

fn rows_by_name(plan: &Plan, class: u32) -> HashMap<&str, u32> {
    let live = (0_u32..).zip(&plan.entries).filter(|(_, entry)| is_live(entry) && class_of(plan, entry) == Some(class));
    live.map(|(row, _)| (plan.names.get(row as usize), row)).collect()
}

fn same_key(plan: &Plan, old: &PlanEntry, sketch: &Plan, entry: &PlanEntry) -> bool {
    let mask = |plan: &Plan, tuple: u32| plan.tuples.get(tuple as usize).map(|tuple| tuple.mask);
    old.value == entry.value && mask(plan, old.tuple) == mask(sketch, entry.tuple)
}

/// The rows of a class as a limits file, changes included.
///
/// # Errors
/// The class has no limits file, or the store cannot be read.
pub fn export(keeper: &mut Keeper, class: &str) -> Result<Vec<u8>, NodeError> {
    let place = place(keeper, class)?;
    let bytes = keeper.source_file(&place.file)?;
    let changes = keeper.changes();
    if !changes.keys().any(|name| name.class == place.class) {
        return Ok(bytes);
    }
    let (header, records) = records(&bytes);
    let mut rows: Vec<(String, Vec<Column>)> = Vec::with_capacity(records.len());
    for (name, mut columns) in records {
        let full = LimitName { class: place.class.clone(), row: Some(name.clone()) };
        match changes.get(&full).and_then(|change| change.changed) {
            Some(Changed::Deleted) => continue,
            Some(Changed::Rate(rate_bps)) => {
                for (_, value) in columns.iter_mut().filter(|(column, _)| column == "rate") {
                    *value = format_rate(rate_bps);
                }
            }
            None => {}
        }
        rows.push((name, columns));
    }
    for (name, columns) in added_rows(changes, &place.class) {
        rows.push((name.row.clone().unwrap_or_default(), columns.to_vec()));
    }
    if rows.is_empty() {
        return Ok(format!("{}\n", header.join(",")).into_bytes());
    }
    let borrowed: Vec<(&str, &[Column])> =
        rows.iter().map(|(name, columns)| (name.as_str(), columns.as_slice())).collect();
    Ok(csv_of(&borrowed))
}
