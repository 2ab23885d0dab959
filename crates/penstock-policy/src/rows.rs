// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of a limits file on their way into the plan.

use crate::compile::{ClassAt, Compiler, too_many_profiles, u32_of};
use crate::diagnostics::{Diagnostic, Errors, Problem, quote};
use crate::limits_file::{self, LimitsText, Row, RowProblem, Sink};
use crate::matching::MaskedKey;
use crate::model::LimitsFile;
use crate::overlay::{ClassOverlay, RowChange};
use crate::plan::{Plan, PlanEntry};
use crate::tables::{Rows, Scope, Tables};
use crate::terms::{Terms, rate_code};
use crate::warnings::{Tightness, Window};
use hashbrown::HashTable;
use penstock_algo::wire;
use std::collections::HashMap;
use std::hash::BuildHasher;

/// What lies over a limits file.
#[derive(Default)]
pub(crate) struct Laid<'a> {
    /// Names that rows of the class have already.
    pub names: NameSet,
    /// The path of the class, when it is a file of added rows that may be left out.
    pub added_to: Option<&'a String>,
    /// Path and changes of the class.
    pub overlay: Option<(&'a String, &'a ClassOverlay)>,
}

/// Adds the rows of a class's limits file to the plan. Returns the names of the class.
pub(crate) fn add<'a>(
    compiler: &mut Compiler<'a>,
    at: ClassAt<'_>,
    limits: &LimitsFile,
    text: LimitsText,
    laid: Laid<'a>,
) -> NameSet {
    let links = u32_of(compiler.policy.links.len());
    // Rows of a class with a match, and those of users, are looked up after it, among themselves.
    let is_match = at.class.items.is_empty() && at.class.users.is_none();
    let scope = if is_match { u32_of(at.link_index) } else { links + at.index };
    let about = at.class.users.as_ref().map_or(limits_file::Rows::Limits, |users| limits_file::Rows::Users(&users.key));
    let mut errors = Errors::default();
    let first = compiler.tables.plan.entries.len();
    let mut adding = Adding {
        at,
        scope,
        first,
        defaults: limits.defaults,
        problem_of_defaults: None,
        profiles: HashMap::default(),
        last: None,
        rates: RateMemo::default(),
        names: laid.names,
        tightness: Tightness::default(),
        sum_bps: 0,
        overlay: laid.overlay.filter(|(_, class)| !class.rows.is_empty()),
        added_to: laid.added_to,
        above: if is_match { above(at) } else { None },
        compiler,
    };
    limits_file::read(&text, about, &mut errors, &mut adding);
    let Adding { problem_of_defaults, tightness, sum_bps, names, .. } = adding;
    if let Some(problem) = problem_of_defaults {
        let problem = Problem::new(format!("for the rows of this file, {}", problem.message), problem.help);
        errors.push(Diagnostic::new(compiler.policy.source.place(limits.span), problem));
    }
    compiler.errors.append(errors);
    compiler.tables.plan.warnings.extend(tightness.of_file(&text.name));
    // Users are held to their shares, however much their ceilings come to.
    if at.class.users.is_none() {
        let sum = &mut compiler.sums_bps[at.link_index];
        *sum = sum.saturating_add(sum_bps);
    }
    compiler.tables.files.push(Rows { text, first, added_to: laid.added_to.cloned() });
    names
}

type ProfileAt = (u16, wire::Profile);

struct Adding<'c, 'a> {
    compiler: &'c mut Compiler<'a>,
    at: ClassAt<'c>,
    scope: Scope,
    /// Index of the file's first row in the plan's entries.
    first: usize,
    defaults: Terms,
    /// What is wrong with the defaults when no row can make it right.
    problem_of_defaults: Option<Problem>,
    profiles: HashMap<Terms, ProfileAt, foldhash::fast::FixedState>,
    /// The terms of the row before, those with the defaults under them, and their profile: most rows are like it.
    last: Option<(Terms, Terms, ProfileAt)>,
    rates: RateMemo,
    names: NameSet,
    tightness: Tightness,
    sum_bps: u64,
    overlay: Option<(&'a String, &'a ClassOverlay)>,
    added_to: Option<&'a String>,
    /// What rows must be inside of.
    above: Option<Above<'c>>,
}

/// The class above whose match holds for rows as well: its path, and the keys of its match.
struct Above<'c> {
    path: &'c str,
    keys: Vec<MaskedKey>,
}

fn above<'c>(at: ClassAt<'c>) -> Option<Above<'c>> {
    let class = at.link.above_with_match(at.class)?;
    let keys = class.items_of_all.iter().flat_map(|item| item.fields.keys()).collect();
    Some(Above { path: &class.path, keys })
}

impl Sink for Adding<'_, '_> {
    fn start(&mut self, rows: usize, has_terms: bool) -> bool {
        self.compiler.tables.reserve(rows);
        self.names.reserve(&self.compiler.tables.plan, rows);
        if !has_terms {
            let problems = self.defaults.profile().err().unwrap_or_default();
            self.problem_of_defaults = problems.into_iter().next().map(|(_, problem)| problem);
        }
        self.problem_of_defaults.is_none()
    }

    fn leave_out(&mut self, row: &str, problem: &Problem) -> bool {
        if let Some(class) = self.added_to {
            self.compiler.tables.left_out.insert(class, row, || problem.message.clone());
        }
        self.added_to.is_some()
    }

    fn take(&mut self, row: &Row<'_>) -> Result<(), RowProblem> {
        if self.added_to.is_some_and(|class| self.compiler.tables.left_out.contains(class, row.name)) {
            return Ok(());
        }
        let change = self.change_of(row);
        if let Some((_, RowChange::Removed)) = change {
            self.note(change);
            return Ok(());
        }
        let (terms, (profile, wire)) = self.terms(row)?;
        let mut row = *row;
        // A rate that the row's terms do not go with has no place, as if the row were gone; one that it has anyway needs none.
        if let Some((_, RowChange::Rate(rate_bps))) = change
            && terms.problem_at(rate_bps).is_none()
            && rate_bps != row.rate_bps
        {
            self.note(change);
            row.rate_bps = rate_bps;
        }
        let row = &row;
        if let Some(problem) = terms.problem_at(row.rate_bps) {
            return Err(problem);
        }
        if let Some(above) = self.above.as_ref().filter(|above| !above.keys.iter().any(|key| row.key.is_inside(key))) {
            let name = quote(above.path);
            let message = format!("this row would take packets that do not belong to {name}");
            return Err(("", Problem::new(message, format!("its key has all that one of {name}'s match items says"))));
        }
        let tables = &mut self.compiler.tables;
        let tuple = tables.tuple(self.scope, wire::PST_TUPLE_LIMITS, &row.key.mask, row.specificity_q8);
        let (rate, window) = self.rates.find(row.rate_bps, profile, &wire);
        self.push(row, PlanEntry { tuple, rate, rate_bps: row.rate_bps, profile, value: row.key.value })?;
        self.tightness.see(window, row.rate_bps, row.name);
        self.sum_bps = self.sum_bps.saturating_add(row.rate_bps);
        Ok(())
    }
}

impl<'a> Adding<'_, 'a> {
    fn change_of(&self, row: &Row<'_>) -> Option<(&'a str, RowChange)> {
        let (_, class) = self.overlay?;
        class.rows.get_key_value(row.name).map(|(name, &change)| (name.as_str(), change))
    }

    /// The overlay had a place.
    fn note(&mut self, change: Option<(&'a str, RowChange)>) {
        if let (Some((path, _)), Some((name, _))) = (self.overlay, change) {
            self.compiler.changed.insert((path, name));
        }
    }

    /// The terms that hold for a row, and their profile.
    fn terms(&mut self, row: &Row<'_>) -> Result<(Terms, ProfileAt), RowProblem> {
        if let Some((own, terms, profile)) = self.last
            && own == row.terms
        {
            return Ok((terms, profile));
        }
        let terms = self.defaults.with_row(&row.terms);
        let profile = match self.profiles.get(&terms) {
            Some(&profile) => profile,
            None => {
                if let Some(problem) = terms.profile().err().and_then(|problems| problems.into_iter().next()) {
                    return Err(problem);
                }
                let profile = self.compiler.profile(self.at, &terms).ok_or_else(|| ("", too_many_profiles()))?;
                self.profiles.insert(terms, profile);
                profile
            }
        };
        self.last = Some((row.terms, terms, profile));
        Ok((terms, profile))
    }

    fn push(&mut self, row: &Row<'_>, entry: PlanEntry) -> Result<(), RowProblem> {
        let tables = &mut self.compiler.tables;
        let name_hash = self.names.hash(row.name);
        if let Some(other) = self.names.find(&tables.plan, name_hash, row.name) {
            let message = format!("the name `{}` is on {} too", row.name, where_is(tables, other, self.first));
            return Err(("name", Problem::new(message, "names are unique within a file")));
        }
        if let Err(other) = tables.push_row(entry, row.line) {
            let message = format!("the key of this row is on {} too", where_is(tables, other, self.first));
            return Err(("", Problem::new(message, "a packet is held to one limit: remove one of the rows")));
        }
        let index = u32_of(tables.plan.names.len());
        if tables.plan.names.push(row.name).is_err() {
            return Err(("name", Problem::new("the names of all rows take more than 4 GiB", "use shorter names")));
        }
        self.names.insert(&tables.plan, name_hash, index);
        Ok(())
    }
}

/// The line of another row; its file as well when that is not the one whose first row is `first`.
fn where_is(tables: &Tables, other: usize, first: usize) -> String {
    let line = tables.lines[other];
    if other >= first { format!("line {line}") } else { format!("line {line} of {}", tables.file(other).text.name) }
}

/// Rate codes and too tight windows that were computed last: files have few different rates. A place for each hash.
struct RateMemo {
    known: Vec<(u64, u16, u32, Option<Window>)>,
}

impl Default for RateMemo {
    fn default() -> Self {
        // No row has the rate 0.
        Self { known: vec![(0, 0, 0, None); 1 << Self::BITS] }
    }
}

impl RateMemo {
    const BITS: u32 = 8;

    fn find(&mut self, rate_bps: u64, profile: u16, wire: &wire::Profile) -> (u32, Option<Window>) {
        // Multiplicative hashing with 2^64 / golden ratio.
        let hash = rate_bps.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - Self::BITS);
        let place = &mut self.known[usize::try_from(hash).unwrap_or(0)];
        if (place.0, place.1) != (rate_bps, profile) {
            let code = rate_code(rate_bps);
            *place = (rate_bps, profile, code, Window::too_tight(wire, code));
        }
        (place.2, place.3)
    }
}

/// Names of one class's rows, to find one that comes twice.
#[derive(Default)]
pub(crate) struct NameSet {
    ids: HashTable<u32>,
    hasher: foldhash::fast::FixedState,
}

impl NameSet {
    fn hash(&self, name: &str) -> u64 {
        self.hasher.hash_one(name)
    }

    fn reserve(&mut self, plan: &Plan, count: usize) {
        self.ids.reserve(count, |&id| self.hasher.hash_one(plan.names.get(id as usize)));
    }

    fn find(&self, plan: &Plan, hash: u64, name: &str) -> Option<usize> {
        let found = self.ids.find(hash, |&id| plan.names.get(id as usize) == name);
        found.map(|&id| id as usize)
    }

    fn insert(&mut self, plan: &Plan, hash: u64, id: u32) {
        self.ids.insert_unique(hash, id, |&id| self.hasher.hash_one(plan.names.get(id as usize)));
    }
}
