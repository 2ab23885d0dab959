// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a policy comes to: the tree and its sizes, as `penstock check` prints them.

use crate::describe;
use crate::model::{Class, Policy, Unmatched};
use crate::plan::Plan;
use penstock_algo::{plane, wire};
use serde::Serialize;

/// A policy in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Its name.
    pub policy: String,
    /// Its links, in file order.
    pub links: Vec<LinkSummary>,
    /// Combinations of fields and prefix lengths that are looked at.
    pub tuples: usize,
    /// Match items.
    pub rules: usize,
    /// Keys that they expand to.
    pub rule_keys: usize,
    /// Limits of classes.
    pub limits: usize,
    /// Rows of limits files and users files.
    pub entries: usize,
    /// Different terms.
    pub profiles: usize,
    /// Bytes of the rule table and the limiter table.
    pub table_bytes: u64,
    /// What shares take; none where no link is shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares: Option<SharesSummary>,
    /// What the operator should know.
    pub warnings: Vec<String>,
}

/// Shares in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharesSummary {
    /// Nodes of links, classes, and users that have entries.
    pub nodes: u64,
    /// Classes whose users have no entries.
    pub slices: u64,
    /// Words of the sketch of these users: filters, and limiters.
    pub sketch_words: u64,
    /// What all of it takes, with the places of links and classes.
    pub bytes: u64,
}

/// A link in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkSummary {
    /// Its name.
    pub name: String,
    /// Its port's name.
    pub port: String,
    /// Its rate, bit/s.
    pub rate_bps: u64,
    /// `pass`, `drop` or `class NAME`.
    pub unmatched: String,
    /// Its delay line, if it has one: `2ms, jitter 200us`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// Combinations of fields and prefix lengths: probes that a packet may cost.
    pub tuples: u32,
    /// Its classes, in file order.
    pub classes: Vec<ClassSummary>,
}

/// A class in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassSummary {
    /// Link and class, as in `down/gold/web`.
    pub path: String,
    /// The class that it is a child of: an index into its link's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<usize>,
    /// Match items.
    pub rules: usize,
    /// Its own limit, bit/s.
    pub limit_bps: Option<u64>,
    /// Its limits file, or its users'.
    pub file: Option<String>,
    /// Rows of it, or of its users file.
    pub entries: usize,
    /// The delay line of its packets: its own, or the link's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// What it gets of its parent, where its link is shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<ShareSummary>,
}

/// A share as it was written, or what is taken for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShareSummary {
    /// Its weight among its siblings.
    pub weight: u32,
    /// What it gets in any case, bit/s.
    pub guarantee_bps: Option<u64>,
    /// What it gets at most, bit/s.
    pub ceiling_bps: Option<u64>,
    /// How it is held to its share: `burst 17.5ms, excess 25ms, drop`; none of a class with children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms: Option<String>,
    /// Who shares what it gets: `by dst, in a sketch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<String>,
}

/// Sums up a policy and its plan.
#[must_use]
pub fn summarize(policy: &Policy, plan: &Plan) -> Summary {
    let mut rows = vec![0_usize; plan.classes.len()];
    for entry in &plan.entries {
        let profile = plan.profiles.get(usize::from(entry.profile));
        if let Some(count) = profile.and_then(|profile| rows.get_mut(profile.class_index as usize)) {
            *count += 1;
        }
    }
    let delay_of = |line: u16| plan.lines.get(usize::from(line)).and_then(describe::line);
    let mut classes = plan.classes.iter().zip(0..).zip(rows);
    let links = policy.links.iter().zip(&plan.links).map(|(link, planned)| {
        let own = classes.by_ref().take(link.classes.len());
        let classes = own.zip(&link.classes).map(|(((planned, index), entries), class)| ClassSummary {
            path: planned.path.clone(),
            parent: class.parent,
            rules: class.items.len(),
            limit_bps: planned.limit_bps,
            file: class.file().map(|file| file.path.clone()),
            entries,
            delay: delay_of(planned.wire.line),
            share: share(class, plan, index),
        });
        LinkSummary {
            name: link.name.clone(),
            port: policy.ports[link.port].name.clone(),
            rate_bps: link.rate_bps,
            unmatched: match link.unmatched {
                Unmatched::Pass => "pass".to_owned(),
                Unmatched::Drop => "drop".to_owned(),
                Unmatched::Class(index) => format!("class {}", link.classes[index].path),
            },
            delay: delay_of(planned.wire.line),
            tuples: planned.wire.tuple_count,
            classes: classes.collect(),
        }
    });
    let links = links.collect();
    // Nobody looks a packet up by what tells users apart.
    let user_tuples = 2 * plan.places.iter().filter(|place| place.users != wire::PST_NONE).count();
    let bucket_bytes = size_of::<wire::Bucket>() as u64;
    let table = |keys: usize| u64::from(plane::buckets_for(u32::try_from(keys).unwrap_or(u32::MAX))) * bucket_bytes;
    Summary {
        policy: plan.policy.clone(),
        links,
        tuples: plan.tuples.len() - user_tuples,
        rules: plan.rules.len(),
        rule_keys: plan.rule_keys.len(),
        limits: plan.limits.len(),
        entries: plan.entries.len(),
        profiles: plan.profiles.len(),
        table_bytes: table(plan.rule_keys.len()) + table(plan.entries.len()),
        shares: (!plan.places.is_empty()).then(|| shares(plan)),
        warnings: plan.warnings.clone(),
    }
}

fn share(class: &Class, plan: &Plan, index: usize) -> Option<ShareSummary> {
    let share = class.share?;
    let profile = plan.places.get(index).and_then(|place| plan.profiles.get(place.profile as usize));
    Some(ShareSummary {
        weight: share.weight,
        guarantee_bps: share.guarantee_bps,
        ceiling_bps: share.ceiling_bps,
        terms: profile.map(describe::terms),
        users: class.users.as_ref().map(describe::users),
    })
}

/// As `wire_share.h` has them in memory.
fn shares(plan: &Plan) -> SharesSummary {
    let (places, slices) = (plan.places.len() as u64, plan.slices.len() as u64);
    let nodes = places + u64::from(plan.user_count);
    let sketch_words = penstock_algo::share::sketch_words(&plan.sketch, &plan.slices) as u64;
    let bytes = nodes * size_of::<wire::TreeNode>() as u64
        + places * size_of::<wire::TreePlace>() as u64
        + slices * size_of::<wire::Slice>() as u64
        + sketch_words * size_of::<u64>() as u64;
    SharesSummary { nodes, slices, sketch_words, bytes }
}
