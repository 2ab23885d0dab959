// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a policy comes to: the tree and its sizes, as `penstock check` prints them.

use crate::describe;
use crate::model::{Policy, Unmatched};
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
    /// Rows of limits files.
    pub entries: usize,
    /// Different terms.
    pub profiles: usize,
    /// Bytes of the rule table and the limiter table.
    pub table_bytes: u64,
    /// What the operator should know.
    pub warnings: Vec<String>,
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
    /// Link and class.
    pub path: String,
    /// Match items.
    pub rules: usize,
    /// Its own limit, bit/s.
    pub limit_bps: Option<u64>,
    /// Its limits file.
    pub file: Option<String>,
    /// Rows of it.
    pub entries: usize,
    /// The delay line of its packets: its own, or the link's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
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
    let mut classes = plan.classes.iter().zip(rows);
    let links = policy.links.iter().zip(&plan.links).map(|(link, planned)| {
        let own = classes.by_ref().take(link.classes.len());
        let classes = own.zip(&link.classes).map(|((planned, entries), class)| ClassSummary {
            path: planned.path.clone(),
            rules: class.items.len(),
            limit_bps: planned.limit_bps,
            file: class.limits.as_ref().map(|limits| limits.path.clone()),
            entries,
            delay: delay_of(planned.wire.line),
        });
        LinkSummary {
            name: link.name.clone(),
            port: policy.ports[link.port].name.clone(),
            rate_bps: link.rate_bps,
            unmatched: match link.unmatched {
                Unmatched::Pass => "pass".to_owned(),
                Unmatched::Drop => "drop".to_owned(),
                Unmatched::Class(index) => format!("class {}", link.classes[index].name),
            },
            delay: delay_of(planned.wire.line),
            tuples: planned.wire.tuple_count,
            classes: classes.collect(),
        }
    });
    let links = links.collect();
    let bucket_bytes = size_of::<wire::Bucket>() as u64;
    let table = |keys: usize| u64::from(plane::buckets_for(u32::try_from(keys).unwrap_or(u32::MAX))) * bucket_bytes;
    Summary {
        policy: plan.policy.clone(),
        links,
        tuples: plan.tuples.len(),
        rules: plan.rules.len(),
        rule_keys: plan.rule_keys.len(),
        limits: plan.limits.len(),
        entries: plan.entries.len(),
        profiles: plan.profiles.len(),
        table_bytes: table(plan.rule_keys.len()) + table(plan.entries.len()),
        warnings: plan.warnings.clone(),
    }
}
