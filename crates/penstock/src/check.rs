// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock check`: is the policy right, and what does it come to?

use crate::arguments;
use crate::failure::Failure;
use crate::output::{out, outln};
use crate::units::{counted, rate};
use anyhow::Context;
use penstock_policy::summary::{ClassSummary, LinkSummary, ShareSummary, Summary, summarize};
use std::fmt::Write;

/// Runs the command.
pub fn run(arguments: &arguments::Check) -> Result<(), Failure> {
    let loaded = crate::replay::load_policy(&arguments.policy)?;
    let summary = summarize(&loaded.policy, &loaded.plan);
    if arguments.json {
        outln!("{}", serde_json::to_string_pretty(&summary).context("the summary as JSON")?);
    } else {
        out!("{}", render(&summary));
    }
    Ok(())
}

fn render(summary: &Summary) -> String {
    let mut text = format!("{}: the policy is right\n", summary.policy);
    // Writing to a string cannot fail.
    for link in &summary.links {
        let _ = writeln!(
            text,
            "\n{}  port {}, {}, unmatched: {}{}",
            link.name,
            link.port,
            bits(link.rate_bps),
            link.unmatched,
            link.delay.as_ref().map_or_else(String::new, |delay| format!(", delay {delay}"))
        );
        for (index, class) in link.classes.iter().enumerate() {
            let name = class.path.rsplit('/').next().unwrap_or(&class.path);
            let _ = writeln!(text, "{}{name}  {}", branch(link, index), terms(class, link));
        }
    }
    let _ = writeln!(
        text,
        "\ncompiles to {} in {}, {}, {}, {},\n{} (probes a packet at most), {} of tables",
        counted(summary.rules as u64, "match item", "match items"),
        counted(summary.rule_keys as u64, "key", "keys"),
        counted(summary.entries as u64, "row", "rows"),
        counted(summary.limits as u64, "limit of a class", "limits of classes"),
        counted(summary.profiles as u64, "profile", "profiles"),
        counted(summary.tuples as u64, "field combination", "field combinations"),
        bytes(summary.table_bytes)
    );
    if let Some(shares) = &summary.shares {
        let _ = writeln!(
            text,
            "shares: {}, {}, {}: {}",
            counted(shares.nodes, "node", "nodes"),
            counted(shares.slices, "slice", "slices"),
            counted(shares.sketch_words, "word of a sketch", "words of a sketch"),
            bytes(shares.bytes)
        );
    }
    for warning in &summary.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

/// The lines of a tree in front of a class.
fn branch(link: &LinkSummary, index: usize) -> String {
    let has_more = |of: usize| {
        let parent = link.classes[of].parent;
        let below = link.classes[of + 1..].iter().take_while(|later| later.parent >= parent);
        below.into_iter().any(|later| later.parent == parent)
    };
    let mut branch = if has_more(index) { "├─ " } else { "└─ " }.to_owned();
    let mut above = link.classes[index].parent;
    while let Some(parent) = above {
        branch.insert_str(0, if has_more(parent) { "│  " } else { "   " });
        above = link.classes[parent].parent;
    }
    branch
}

/// How everything is held to its rate unless the policy says otherwise.
const TERMS_DEFAULT: &str = "burst 17.5ms, excess 25ms, drop";

fn share(share: &ShareSummary, terms: &mut Vec<String>) {
    terms.push(format!("weight {}", share.weight));
    terms.extend(share.guarantee_bps.map(|guarantee| format!("guarantee {}", bits(guarantee))));
    terms.extend(share.ceiling_bps.map(|ceiling| format!("ceiling {}", bits(ceiling))));
    terms.extend(share.users.as_ref().map(|users| format!("users {users}")));
    terms.extend(share.terms.clone().filter(|terms| terms != TERMS_DEFAULT));
}

fn terms(class: &ClassSummary, link: &LinkSummary) -> String {
    let mut terms = Vec::new();
    if class.rules > 0 {
        terms.push(counted(class.rules as u64, "match item", "match items"));
    }
    if let Some(of_class) = &class.share {
        share(of_class, &mut terms);
    }
    if let Some(file) = &class.file {
        let is_of_users = class.share.as_ref().is_some_and(|share| share.users.is_some());
        let (one, many) = if is_of_users { ("user", "users") } else { ("limit", "limits") };
        terms.push(format!("{} from {file}", counted(class.entries as u64, one, many)));
    }
    match class.limit_bps {
        Some(limit) => terms.push(format!("limit {}", bits(limit))),
        None if class.file.is_none() && class.share.is_none() => terms.push("no limit".to_owned()),
        None => {}
    }
    if class.delay != link.delay {
        terms.push(class.delay.as_ref().map_or_else(|| "no delay".to_owned(), |delay| format!("delay {delay}")));
    }
    terms.join(", ")
}

#[allow(clippy::cast_precision_loss)] // four digits are shown
fn bits(bits_per_second: u64) -> String {
    rate(bits_per_second as f64)
}

fn bytes(number: u64) -> String {
    match number {
        small if small < 10_000 => format!("{small} B"),
        kilo if kilo < 10_000_000 => format!("{} KB", kilo / 1000),
        mega => format!("{} MB", mega / 1_000_000),
    }
}
