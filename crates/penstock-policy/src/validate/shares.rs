// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares: weights, guarantees and ceilings of the classes of a link, and the terms by which classes are held to them.

use super::class::{RATE_EXAMPLE, REST, Written, find, read_terms};
use crate::diagnostics::{Problem, Span, quote};
use crate::fields;
use crate::model::Share;
use crate::reader::{Reader, get};
use crate::terms::Terms;
use crate::units::{self, format_rate};
use crate::yaml::{Key, Node};

/// Any of them in any class makes a link one that is shared.
const SHARE_KEYS: [&str; 5] = ["weight", "guarantee", "ceiling", "children", "users"];
/// How a class is held to its share.
const TERM_KEYS: [&str; 7] = ["on_excess", "burst", "excess", "early_drop", "horizon", "backlog", "ce_threshold"];

/// What a class says of its share.
#[derive(Default)]
pub struct WrittenShare {
    /// Whether it says anything, be it right or wrong.
    is_said: bool,
    weight: Option<u32>,
    guarantee: Option<(u64, Span)>,
    ceiling_bps: Option<u64>,
    /// Its own; then, those that hold for it.
    terms: Terms,
    /// Terms that it says: name, where the name stands, where the value.
    said: Vec<(String, Span, Span)>,
    /// None of its terms is wrong in itself.
    is_sound: bool,
}

impl WrittenShare {
    /// Of a class that was not written.
    pub fn of_rest(is_shadow: bool) -> Self {
        Self { terms: Terms { shadow: is_shadow, ..Terms::default() }, is_sound: true, ..Self::default() }
    }
}

/// Reads what a class says of its share.
pub fn read(reader: &mut Reader<'_>, entries: &[(Key, Node)], is_shadow: bool) -> WrittenShare {
    let mut rate = |key: &str| {
        let node = get(entries, key)?;
        let rate_bps = reader.value(node, &format!("`{key}`"), RATE_EXAMPLE, units::parse_rate)?;
        Some((rate_bps, node.span))
    };
    let (guarantee, ceiling) = (rate("guarantee"), rate("ceiling"));
    let weight =
        get(entries, "weight").and_then(|node| reader.value(node, "`weight`", "such as `2`", fields::parse_weight));
    if let (Some((guarantee_bps, span)), Some((ceiling_bps, _))) = (guarantee, ceiling)
        && guarantee_bps > ceiling_bps
    {
        let (guarantee, ceiling) = (format_rate(guarantee_bps), format_rate(ceiling_bps));
        let message = format!("the guarantee of {guarantee} is above the ceiling of {ceiling}");
        reader.fail(span, Problem::new(message, "a class never gets more than its ceiling"));
    }
    let errors_before = reader.errors.diagnostics().len();
    let own: Vec<(Key, Node)> =
        entries.iter().filter(|(key, _)| TERM_KEYS.contains(&key.text.as_str())).cloned().collect();
    let terms = read_terms(reader, &own, is_shadow);
    WrittenShare {
        is_said: SHARE_KEYS.iter().any(|key| find(entries, key).is_some()),
        weight,
        guarantee,
        ceiling_bps: ceiling.map(|(ceiling_bps, _)| ceiling_bps),
        terms,
        said: own.into_iter().map(|(key, node)| (key.text, key.span, node.span)).collect(),
        is_sound: reader.errors.diagnostics().len() == errors_before,
    }
}

/// A link, to those who speak of it.
pub struct LinkAt<'a> {
    pub name: &'a str,
    pub rate_bps: u64,
}

/// Settles what each class of a link gets.
pub fn settle(reader: &mut Reader<'_>, classes: &mut [Written], link: &LinkAt<'_>) {
    if !classes.iter().any(|written| written.share.is_said) {
        for (key, span, _) in classes.iter().flat_map(|written| &written.share.said) {
            let message = format!("`{key}` outside of a `limit`, on a link that shares nothing");
            let help = "put it into `limit: { .. }`; with a `weight` it is about the share of the class";
            reader.fail(*span, Problem::new(message, help));
        }
        return;
    }
    names(reader, classes);
    matches(reader, classes);
    terms(reader, classes);
    modes(reader, classes);
    guarantees(reader, classes, link);
    for written in classes {
        let share = &written.share;
        let guarantee_bps = share.guarantee.map(|(guarantee_bps, _)| guarantee_bps);
        let in_mbit = guarantee_bps.map_or(1, |rate_bps| (rate_bps + 500_000) / 1_000_000);
        let weight =
            share.weight.unwrap_or(u32::try_from(in_mbit).unwrap_or(fields::WEIGHT_MAX).clamp(1, fields::WEIGHT_MAX));
        written.class.share = Some(Share { weight, guarantee_bps, ceiling_bps: share.ceiling_bps, terms: share.terms });
    }
}

/// A child that is called as the one that is not written.
fn names(reader: &mut Reader<'_>, classes: &[Written]) {
    for written in classes.iter().filter(|written| written.class.name == REST && !written.is_rest) {
        let Some(parent) = written.class.parent.and_then(|parent| classes.get(parent)) else { continue };
        if !parent.class.items_of_all.is_empty() {
            let name = quote(&parent.class.path);
            let message = format!("the name `{REST}` is taken: what {name} matches and none of its children is there");
            reader.fail(written.span, Problem::new(message, "use another name"));
        }
    }
}

/// A child's packets must be its parent's.
fn matches(reader: &mut Reader<'_>, classes: &[Written]) {
    for written in classes.iter().filter(|written| !written.is_rest) {
        let Some(above) = above_with_match(classes, written.class.parent) else { continue };
        for item in written.class.items.iter().chain(&written.class.items_of_all) {
            let is_inside = above.class.items_of_all.iter().any(|outer| item.fields.is_inside(&outer.fields));
            if !is_inside {
                let name = quote(&above.class.path);
                let message = format!("this match would take packets that do not belong to {name}");
                let help = format!("a match below {name} has all that one of {name}'s items says, and perhaps more");
                reader.fail(item.span, Problem::new(message, help));
            }
        }
    }
}

/// The next class above that has a `match`.
fn above_with_match(classes: &[Written], mut parent: Option<usize>) -> Option<&Written> {
    loop {
        let above = classes.get(parent?)?;
        if !above.class.items_of_all.is_empty() {
            return Some(above);
        }
        parent = above.class.parent;
    }
}

/// Terms of a class hold below it, unless a class there says otherwise.
fn terms(reader: &mut Reader<'_>, classes: &mut [Written]) {
    for index in 0..classes.len() {
        let parent = classes[index].class.parent.map(|parent| &classes[parent].share);
        let (base, is_sound) = parent.map_or((Terms::default(), true), |share| (share.terms, share.is_sound));
        let share = &mut classes[index].share;
        share.terms = Terms { shadow: share.terms.shadow, ..base.with_row(&share.terms) };
        share.is_sound &= is_sound;
        let written = &classes[index];
        if written.class.is_inner || !written.share.is_sound {
            continue;
        }
        for (key, problem) in written.share.terms.profile().err().unwrap_or_default() {
            reader.fail(said(classes, index, key), problem);
        }
    }
}

/// A packet has one verdict, and one word for whether it counts: that of its limit and of its share.
fn modes(reader: &mut Reader<'_>, classes: &[Written]) {
    for written in classes {
        let of_limit = written.class.limit.map(|limit| limit.terms.shadow);
        let of_limits = written.class.limits.as_ref().map(|limits| limits.defaults.shadow);
        if of_limit.or(of_limits).unwrap_or(false) && !written.share.terms.shadow {
            let name = quote(&written.class.path);
            let message = format!("the limit of {name} is in shadow mode, and its share is not");
            reader.fail(written.span, Problem::new(message, "write `mode: shadow` at the class: it is about both"));
        }
    }
}

/// Where a term of a class stands: in itself, or above.
fn said(classes: &[Written], index: usize, key: &str) -> Span {
    let mut at = Some(index);
    while let Some(written) = at.and_then(|index| classes.get(index)) {
        if let Some((.., value)) = written.share.said.iter().find(|(known, ..)| known == key) {
            return *value;
        }
        at = written.class.parent;
    }
    classes[index].span
}

/// Guarantees that cannot all be kept.
fn guarantees(reader: &mut Reader<'_>, classes: &[Written], link: &LinkAt<'_>) {
    let mut most_bps: Vec<u64> = Vec::with_capacity(classes.len());
    for written in classes {
        let above_bps = written.class.parent.map_or(link.rate_bps, |parent| most_bps[parent]);
        most_bps.push(written.share.ceiling_bps.map_or(above_bps, |ceiling_bps| ceiling_bps.min(above_bps)));
    }
    let parents = (0..classes.len()).filter(|&index| classes[index].class.is_inner).map(Some);
    for parent in std::iter::once(None).chain(parents) {
        // Those below a class follow it.
        let below = classes[parent.map_or(0, |parent| parent + 1)..].iter();
        let below = below.take_while(|written| parent.is_none() || written.class.parent >= parent);
        let children = below.filter(|written| written.class.parent == parent);
        let guarantees: Vec<(u64, Span)> = children.filter_map(|written| written.share.guarantee).collect();
        let sum_bps = guarantees.iter().map(|(guarantee_bps, _)| guarantee_bps).sum::<u64>();
        let most = parent.map_or(link.rate_bps, |parent| most_bps[parent]);
        let mut before_bps = 0;
        let passes = guarantees.iter().find(|(guarantee_bps, _)| {
            before_bps += guarantee_bps;
            before_bps > most
        });
        let Some(&(_, span)) = passes else { continue };
        let (whose, what) = match parent.map(|parent| &classes[parent]) {
            None => (format!("classes of link {}", quote(link.name)), "its rate of"),
            Some(above) => {
                let own = above.share.ceiling_bps.is_some_and(|ceiling_bps| ceiling_bps == most);
                let what = if own { "its ceiling of" } else { "all that it can get," };
                (format!("children of {}", quote(&above.class.path)), what)
            }
        };
        let (sum, most) = (format_rate(sum_bps), format_rate(most));
        let message = format!("the guarantees of the {whose} add up to {sum}, more than {what} {most}");
        reader.fail(
            span,
            Problem::new(message, "lower some of them: a `weight` shares what is free, and guarantees nothing"),
        );
    }
}
