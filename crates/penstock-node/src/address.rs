// SPDX-License-Identifier: MIT OR Apache-2.0
//! What packets from or to an address belong to, as far as the address alone tells.
//!
//! The most specific match wins (`compile.rs` of the policy). So of the matches that name the address, most specific first, those up to
//! the first that asks for nothing else are candidates; what stands behind that one never gets the packet. Matches that do not look at
//! the address may be more specific still: then nothing is certain, and a note says so.

use crate::keeper::Held;
use penstock_algo::wire;
use penstock_dataplane::{class_of, is_live};
use penstock_policy::Plan;
use penstock_policy::describe::{Side, key_columns, prefix};
use penstock_policy::matching::{Match, Prefix};
use penstock_policy::model::Unmatched;
use penstock_policy::plan::PlanEntry;

/// Where a packet of the address may end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Index of the link.
    pub link: u32,
    /// Index of the class.
    pub class: u32,
    /// Index of the row, if one takes it.
    pub row: Option<u32>,
    /// Which address of the packet it is.
    pub side: Side,
    /// What else a packet must have.
    pub conditions: Vec<String>,
    /// Whether every packet of the address ends here.
    pub certain: bool,
    specificity_q8: u32,
}

/// All candidates of an address (or of a whole prefix), link by link, source and destination, the most specific first; and notes.
#[must_use]
pub fn candidates(plan: &Plan, held: &Held, address: Prefix) -> (Vec<Candidate>, Vec<String>) {
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    for side in [Side::Dst, Side::Src] {
        for (link, _) in (0_u32..).zip(&plan.links) {
            let search = Search { plan, held, address, side, link };
            let mut of_link = search.matches();
            of_link.extend(search.rows());
            of_link.sort_by_key(|candidate| std::cmp::Reverse(candidate.specificity_q8));
            let first_sure = of_link.iter().position(|candidate| candidate.conditions.is_empty());
            of_link.truncate(first_sure.map_or(of_link.len(), |index| index + 1));
            let floor_q8 = first_sure.and_then(|index| of_link.get(index)).map_or(0, |sure| sure.specificity_q8);
            let rivals = search.rivals(floor_q8);
            if let (Some(0), 0, Some(sure)) = (first_sure, rivals, of_link.first_mut()) {
                sure.certain = true;
            }
            if first_sure.is_none() && !of_link.is_empty() {
                notes.extend(unmatched(held, link));
            }
            if !of_link.is_empty() && rivals > 0 {
                let name = plan.links.get(link as usize).map_or("", |link| link.name.as_str());
                let (matches, are, come) =
                    if rivals == 1 { ("match", "is", "comes") } else { ("matches", "are", "come") };
                let side = side.name();
                let what =
                    format!("{rivals} {matches} of other fields than {side} {are} more specific, and {come} first");
                notes.push(format!("{name}: {what}"));
            }
            found.extend(of_link);
        }
    }
    notes.sort_unstable();
    notes.dedup();
    (found, notes)
}

/// What becomes of packets that no match of a link takes.
#[must_use]
pub fn unmatched(held: &Held, link: u32) -> Option<String> {
    let link = held.policy.as_ref()?.links.get(link as usize)?;
    let what = match link.unmatched {
        Unmatched::Pass => "pass".to_owned(),
        Unmatched::Drop => "are dropped".to_owned(),
        Unmatched::Class(class) => {
            format!("belong to class {}", link.classes.get(class).map_or("", |class| class.name.as_str()))
        }
    };
    Some(format!("{}: packets that no match takes {what}", link.name))
}

struct Search<'a> {
    plan: &'a Plan,
    held: &'a Held,
    address: Prefix,
    side: Side,
    link: u32,
}

impl Search<'_> {
    fn contains(&self, prefix: Prefix) -> bool {
        prefix.family == self.address.family
            && prefix.length <= self.address.length
            && self.address.address & prefix.mask() == prefix.address
    }

    /// Match items of this link's classes: class and item.
    fn items(&self) -> impl Iterator<Item = (u32, &Match)> {
        let links = self.held.policy.iter().flat_map(|policy| policy.links.iter().zip(0_u32..));
        let classes = links.flat_map(|(link, index)| link.classes.iter().map(move |class| (index, class)));
        let numbered = classes.zip(0_u32..).filter(|((link, _), _)| *link == self.link);
        numbered.flat_map(|((_, class), index)| class.items.iter().map(move |item| (index, &item.fields)))
    }

    fn own_side(&self, item: &Match) -> Option<Prefix> {
        match self.side {
            Side::Src => item.src,
            Side::Dst => item.dst,
        }
    }

    fn matches(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        for (class, item) in self.items().filter(|(_, item)| self.own_side(item).is_some_and(|own| self.contains(own)))
        {
            let mut rest = *item;
            match self.side {
                Side::Src => rest.src = None,
                Side::Dst => rest.dst = None,
            }
            let conditions = if rest == Match::default() { Vec::new() } else { vec![rest.to_string()] };
            let candidate = Candidate {
                link: self.link,
                class,
                row: None,
                side: self.side,
                conditions,
                certain: false,
                specificity_q8: item.specificity_q8(),
            };
            found.extend(self.inside(&candidate));
            found.push(candidate);
        }
        found
    }

    /// Rows inside of a class that has a match as well, up to the first that asks for nothing else.
    fn inside(&self, of_class: &Candidate) -> Vec<Candidate> {
        let class = self.plan.classes.get(of_class.class as usize);
        let (first, count) = class.map_or((0, 0), |class| (class.wire.tuple_first, class.wire.tuple_count));
        let mut rows = self.rows_under(first, count);
        rows.sort_by_key(|candidate| std::cmp::Reverse(candidate.specificity_q8));
        for row in &mut rows {
            // They compete with other classes as their class does, and come before it.
            row.specificity_q8 = of_class.specificity_q8;
            row.conditions.splice(0..0, of_class.conditions.iter().cloned());
        }
        rows
    }

    fn rows(&self) -> Vec<Candidate> {
        let link = self.plan.links.get(self.link as usize);
        let (first, count) = link.map_or((0, 0), |link| (link.wire.tuple_first, link.wire.tuple_count));
        self.rows_under(first, count)
    }

    /// Rows of some tuples that name the address.
    fn rows_under(&self, first: u32, count: u32) -> Vec<Candidate> {
        let wanted = |tuple: u32| {
            let tuple = self.plan.tuples.get(tuple as usize).filter(|_| (first..first + count).contains(&tuple));
            tuple.filter(|tuple| u32::from(tuple.kind) == wire::PST_TUPLE_LIMITS)
        };
        if !(first..first + count).any(|tuple| wanted(tuple).is_some()) {
            return Vec::new();
        }
        let live = (0_u32..).zip(&self.plan.entries).filter(|(_, entry)| is_live(entry));
        let of_row = |(row, entry): (u32, &PlanEntry)| {
            let tuple = wanted(entry.tuple)?;
            prefix(&tuple.mask, &entry.value, self.side).filter(|own| self.contains(*own))?;
            let name = self.side.name();
            let rest = key_columns(&tuple.mask, &entry.value).into_iter().filter(|(column, _)| *column != name);
            Some(Candidate {
                link: self.link,
                class: class_of(self.plan, entry)?,
                row: Some(row),
                side: self.side,
                conditions: rest.map(|(column, value)| format!("{column} {value}")).collect(),
                certain: false,
                specificity_q8: tuple.specificity_q8,
            })
        };
        live.filter_map(of_row).collect()
    }

    /// Matches and rows' fields that do not look at this address and are more specific than `floor_q8`.
    fn rivals(&self, floor_q8: u32) -> usize {
        let agrees = |item: &Match| item.family().is_none_or(|family| family == self.address.family);
        let items = self.items().filter(|(_, item)| self.own_side(item).is_none() && agrees(item));
        let items = items.filter(|(_, item)| item.specificity_q8() > floor_q8).count();
        let link = self.plan.links.get(self.link as usize);
        let (first, count) = link.map_or((0, 0), |link| (link.wire.tuple_first, link.wire.tuple_count));
        let tuples = (first..first + count).filter_map(|index| Some((index, self.plan.tuples.get(index as usize)?)));
        let of_rows = tuples.filter(|(_, tuple)| u32::from(tuple.kind) == wire::PST_TUPLE_LIMITS);
        let mut rivals = items;
        for (index, tuple) in of_rows.filter(|(_, tuple)| tuple.specificity_q8 > floor_q8) {
            // All rows of a tuple look at the same fields of the same family: one tells.
            let any = self.plan.entries.iter().find(|entry| is_live(entry) && entry.tuple == index);
            rivals += usize::from(any.is_some_and(|entry| self.is_blind(&tuple.mask, &entry.value)));
        }
        rivals
    }

    /// Whether a row does not look at this address, and takes packets of its family.
    fn is_blind(&self, mask: &wire::Key, value: &wire::Key) -> bool {
        let sides = [Side::Src, Side::Dst].map(|side| prefix(mask, value, side));
        let family = sides.iter().flatten().map(|prefix| prefix.family).next();
        prefix(mask, value, self.side).is_none() && family.is_none_or(|family| family == self.address.family)
    }
}
