// SPDX-License-Identifier: MIT OR Apache-2.0
//! Matches that are equally specific and have a packet in common: which one would win is nothing that the policy says.
//!
//! Two keys have a packet in common when they agree in the bits that both masks have. So for each pair of tuples of one scope
//! that hold equally specific keys, the keys of one are hashed under the common mask and those of the other looked up: the
//! work is the number of keys times the number of tuples that share a specificity, not keys squared. Keys of one tuple
//! have a packet in common only when they are the same; those are found when they are put in.

use crate::diagnostics::{Diagnostic, Errors, Problem};
use crate::limits_file::ROW_ERRORS_MAX;
use crate::rules::RuleAt;
use crate::tables::{RuleKey, Scope, Tables};
use penstock_algo::wire;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A rule's key or a row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Member {
    Rule(u32),
    Row(u32),
}

/// Keys of one tuple that are equally specific.
struct Group {
    mask: wire::Key,
    keys: Vec<(wire::Key, Member)>,
}

/// Reports every pair of rules and the first pairs of rows that are ambiguous. Rows that may be left out are, instead.
pub(crate) fn check(tables: &mut Tables, rules: &[RuleAt<'_>], keys: &[RuleKey], errors: &mut Errors) {
    let mut check = Check {
        tables,
        rules,
        reported: HashSet::new(),
        pairs: Vec::new(),
        pairs_unlisted: 0,
        left_out: HashMap::new(),
    };
    for groups in groups(tables, keys).values() {
        for (index, group) in groups.iter().enumerate() {
            for other in &groups[index + 1..] {
                check.pair(group, other);
            }
        }
    }
    let (pairs, unlisted, left_out) = (check.pairs, check.pairs_unlisted, check.left_out);
    leave_out(tables, rules, &left_out);
    for (a, b) in pairs {
        errors.push(report(tables, rules, a, b));
    }
    if unlisted > 0
        && let Some(rows) = tables.files.first()
    {
        errors.push_unlisted(&rows.text.name, unlisted);
    }
}

/// Leaves out rows, each because of another member.
fn leave_out(tables: &mut Tables, rules: &[RuleAt<'_>], rows: &HashMap<u32, Member>) {
    for (&row, other) in rows {
        let row = row as usize;
        let Some(class) = tables.file(row).added_to.clone() else { continue };
        let other = match *other {
            Member::Rule(rule) => format!("a match of class `{}`", rules[rule as usize].class),
            Member::Row(other) => {
                format!("{}:{}", tables.file(other as usize).text.name, tables.lines[other as usize])
            }
        };
        let why = || format!("ambiguous: this row and {other} are equally specific and take some packets both");
        let Tables { plan, left_out, .. } = tables;
        left_out.insert(&class, plan.names.get(row), why);
    }
}

/// Groups by scope and specificity, where there are at least two.
fn groups(tables: &Tables, keys: &[RuleKey]) -> BTreeMap<(Scope, u32), Vec<Group>> {
    let plan = &tables.plan;
    let mut by_tuple: BTreeMap<(u32, u32), Group> = BTreeMap::new();
    for key in keys {
        let specificity_q8 = plan.rules[key.rule as usize].specificity_q8;
        let mask = plan.tuples[key.tuple as usize].mask;
        let group = by_tuple.entry((key.tuple, specificity_q8)).or_insert_with(|| Group { mask, keys: Vec::new() });
        group.keys.push((key.value, Member::Rule(key.rule)));
    }
    let mut counts: HashMap<(Scope, u32), u32> = HashMap::new();
    for &(tuple, specificity_q8) in by_tuple.keys() {
        *counts.entry((tables.scopes[tuple as usize], specificity_q8)).or_default() += 1;
    }
    let of_rows = |tuple: &wire::Tuple| u32::from(tuple.kind) == wire::PST_TUPLE_LIMITS;
    for (tuple, &scope) in plan.tuples.iter().zip(&tables.scopes).filter(|(tuple, _)| of_rows(tuple)) {
        *counts.entry((scope, tuple.specificity_q8)).or_default() += 1;
    }
    // Rows are many: only those of tuples that have a rival are gathered.
    let wanted = |id: usize| {
        let tuple = &plan.tuples[id];
        of_rows(tuple) && counts.get(&(tables.scopes[id], tuple.specificity_q8)).is_some_and(|&count| count > 1)
    };
    let wanted: Vec<bool> = (0..plan.tuples.len()).map(wanted).collect();
    if wanted.contains(&true) {
        for (entry, row) in plan.entries.iter().zip(0_u32..).filter(|(entry, _)| wanted[entry.tuple as usize]) {
            let tuple = &plan.tuples[entry.tuple as usize];
            let group = by_tuple.entry((entry.tuple, tuple.specificity_q8));
            let group = group.or_insert_with(|| Group { mask: tuple.mask, keys: Vec::new() });
            group.keys.push((entry.value, Member::Row(row)));
        }
    }
    let mut groups: BTreeMap<(Scope, u32), Vec<Group>> = BTreeMap::new();
    for ((tuple, specificity_q8), group) in by_tuple {
        groups.entry((tables.scopes[tuple as usize], specificity_q8)).or_default().push(group);
    }
    groups
}

struct Check<'a> {
    tables: &'a Tables,
    rules: &'a [RuleAt<'a>],
    reported: HashSet<(Member, Member)>,
    pairs: Vec<(Member, Member)>,
    pairs_unlisted: u64,
    /// Added rows that go, and what they are in conflict with.
    left_out: HashMap<u32, Member>,
}

impl Check<'_> {
    /// Looks for keys of two groups that agree where both masks look.
    fn pair(&mut self, a: &Group, b: &Group) {
        let (small, large) = if a.keys.len() <= b.keys.len() { (a, b) } else { (b, a) };
        self.look_up(small, large, false);
        // Not every key of the small group was named by then; of added rows each one that is in conflict must be.
        if self.tables.files.iter().any(|file| file.added_to.is_some()) {
            self.look_up(large, small, true);
        }
    }

    /// Looks up the keys of one group among those of another; of those in conflict, only added rows are wanted, perhaps.
    fn look_up(&mut self, small: &Group, large: &Group, only_added: bool) {
        let (a, b) = (small, large);
        let mut common = wire::Key::default();
        for (index, word) in common.words.iter_mut().enumerate() {
            *word = a.mask.words[index] & b.mask.words[index];
        }
        // Of the keys that look alike under the common mask, the first, and the first that is in conflict with it: any
        // third one is in conflict with at least one of the two if it is with any.
        let mut seen: HashMap<wire::Key, (Member, Option<Member>), foldhash::fast::FixedState> = HashMap::default();
        for (value, member) in &small.keys {
            let slot = seen.entry(under(value, &common)).or_insert((*member, None));
            if slot.1.is_none() && self.in_conflict(slot.0, *member) {
                slot.1 = Some(*member);
            }
        }
        for (value, member) in &large.keys {
            let Some(&(first, second)) = seen.get(&under(value, &common)) else { continue };
            let rival = [Some(first), second].into_iter().flatten().find(|&rival| self.in_conflict(rival, *member));
            if let Some(rival) = rival
                && !self.goes(rival, *member)
                && !only_added
            {
                self.found(rival, *member);
            }
        }
    }

    /// Whether one of two that are in conflict is an added row, which goes; of two of these, the later one.
    fn goes(&mut self, a: Member, b: Member) -> bool {
        let is_added = |member: &Member| match member {
            Member::Row(row) => self.tables.file(*row as usize).added_to.is_some(),
            Member::Rule(_) => false,
        };
        let (added, other) = match (is_added(&a), is_added(&b)) {
            (true, true) => (std::cmp::max(a, b), std::cmp::min(a, b)),
            (true, false) => (a, b),
            (false, true) => (b, a),
            (false, false) => return false,
        };
        if let Member::Row(row) = added {
            self.left_out.entry(row).or_insert(other);
        }
        true
    }

    /// Two items of one class agree about the class; two rows never agree about the limit.
    fn in_conflict(&self, a: Member, b: Member) -> bool {
        match (a, b) {
            (Member::Rule(a), Member::Rule(b)) => {
                self.rules[a as usize].class_index != self.rules[b as usize].class_index
            }
            _ => a != b,
        }
    }

    fn found(&mut self, a: Member, b: Member) {
        if let (Member::Rule(a_rule), Member::Rule(b_rule)) = (a, b) {
            let pair = if a_rule < b_rule { (a, b) } else { (b, a) };
            if self.reported.insert(pair) {
                self.pairs.push(pair);
            }
        } else if self.pairs.len() < ROW_ERRORS_MAX {
            self.pairs.push((a, b));
        } else {
            self.pairs_unlisted += 1;
        }
    }
}

fn under(value: &wire::Key, mask: &wire::Key) -> wire::Key {
    let mut result = *value;
    for (word, mask) in result.words.iter_mut().zip(&mask.words) {
        *word &= mask;
    }
    result
}

const HELP: &str = "make one of them more specific, or give the packets that both take a match of their own";

/// The error for two match items of different classes.
pub(crate) fn between_rules(a: &RuleAt<'_>, b: &RuleAt<'_>) -> Diagnostic {
    let message = format!(
        "ambiguous: this match of class `{}` and one of class `{}` are equally specific and take some packets both",
        b.class, a.class
    );
    Diagnostic::new(b.place.clone(), Problem::new(message, HELP))
        .with_related(a.place.clone(), format!("the match of class `{}`", a.class))
}

fn report(tables: &Tables, rules: &[RuleAt<'_>], a: Member, b: Member) -> Diagnostic {
    match (a, b) {
        (Member::Rule(a), Member::Rule(b)) => between_rules(&rules[a as usize], &rules[b as usize]),
        (Member::Row(row), Member::Rule(rule)) | (Member::Rule(rule), Member::Row(row)) => {
            let rule = &rules[rule as usize];
            let place = tables.row_place(row as usize);
            let message = format!(
                "ambiguous: this match of class `{}` and {}:{} are equally specific and take some packets both",
                rule.class,
                place.file(),
                place.line()
            );
            Diagnostic::new(rule.place.clone(), Problem::new(message, HELP)).with_related(place, "the row")
        }
        (Member::Row(a), Member::Row(b)) => {
            let (first, place) = (tables.row_place(a.min(b) as usize), tables.row_place(a.max(b) as usize));
            let message = format!(
                "ambiguous: this row and {}:{} are equally specific and take some packets both",
                first.file(),
                first.line()
            );
            Diagnostic::new(place, Problem::new(message, HELP)).with_related(first, "the other row")
        }
    }
}
