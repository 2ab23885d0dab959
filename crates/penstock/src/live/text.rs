// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pieces of text that several commands print, 80 columns wide.

use crate::units::{count, duration};
use penstock_api::v1;
use penstock_policy::units::format_rate;
use std::fmt::Write;
use textwrap::{Options, WordSplitter};

/// Names of each kind that are printed; the daemon sends 20 at most.
const NAMES_MAX: usize = 10;

/// What changes, in lines.
pub fn difference(title: &str, difference: &v1::Difference) -> String {
    let v1::Difference { added, removed, changed, unchanged, .. } = *difference;
    let mut text = format!(
        "  {title:8} {} added, {} removed, {} changed, {} unchanged\n",
        count(added),
        count(removed),
        count(changed),
        count(unchanged)
    );
    let plain = |names: &[String]| names.iter().map(|name| (name.clone(), String::new())).collect::<Vec<_>>();
    let with_what = difference.changed_names.iter().map(|one| (one.name.clone(), format!(": {}", one.what))).collect();
    let kinds = [
        ("+", plain(&difference.added_names), added),
        ("-", plain(&difference.removed_names), removed),
        ("~", with_what, changed),
    ];
    for (sign, names, total) in kinds {
        for (name, what) in names.iter().take(NAMES_MAX) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "    {sign} {name}{what}");
        }
        let shown = names.len().min(NAMES_MAX) as u64;
        if total > shown {
            let _ = writeln!(text, "    {sign} and {} more", count(total - shown));
        }
    }
    text
}

/// A key as in a limits file: `dst 10.1.0.0/16`.
pub fn key(limit: &v1::Limit) -> String {
    let columns = limit.key.iter().map(|column| match column.name.as_str() {
        "five_tuple" => column.value.clone(),
        name => format!("{name} {}", column.value),
    });
    columns.collect::<Vec<_>>().join(", ")
}

/// What was changed of a limit at run time.
pub fn change(change: &v1::RuntimeChange) -> String {
    match change.kind() {
        v1::runtime_change::Kind::Added => "added".to_owned(),
        v1::runtime_change::Kind::Deleted => format!("deleted, was {}", format_rate(change.policy_rate_bps)),
        _ => format!("was {}", format_rate(change.policy_rate_bps)),
    }
}

/// Whose rate a limit has, in one word or two, with what the policy says.
pub fn lent(lease: &v1::Lease) -> String {
    let how = if lease.lapsed { "safe" } else { "lent" };
    format!("{how}, policy {}", format_rate(lease.policy_rate_bps))
}

/// Whose rate a limit has and until when, and what holds then: two lines.
pub fn lease(lease: &v1::Lease) -> [String; 2] {
    let policy = format!("the policy's {}", format_rate(lease.policy_rate_bps));
    let safe = lease.safe_bps.map(|safe_bps| format!("its safe {}", format_rate(safe_bps)));
    let epoch = format!("epoch {}.{}", lease.term, lease.number);
    match (lease.lapsed, safe) {
        (true, Some(safe)) => [format!("the lease of {epoch} is over: {safe}"), format!("returned, {policy}")],
        (true, None) => [format!("the lease of {epoch} is over"), policy],
        (false, safe) => {
            let rate = if lease.lent_bps.is_some() { "lent" } else { "lent without a rate" };
            let then = safe.map_or_else(|| format!("then {policy}"), |safe| format!("then {safe}; returned, {policy}"));
            [format!("{rate} by {epoch}, for {}", duration(lease.left_ns)), then]
        }
    }
}

/// A text that may be long, in lines of 80 columns behind an indent. Names are not broken.
pub fn wrapped(indent: &str, text: &str) -> String {
    let options = Options::new(80).initial_indent(indent).subsequent_indent(indent);
    textwrap::fill(text, options.word_splitter(WordSplitter::NoHyphenation).break_words(false)) + "\n"
}

/// Warnings, a line each.
pub fn warnings(warnings: &[String]) -> String {
    warnings.iter().map(|warning| format!("warning: {warning}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_says_whose_rate_it_is_and_what_holds_after_it() {
        let lent = v1::Lease {
            term: 1_000_000_000,
            number: 12,
            left_ns: 4_900_000_000,
            lapsed: false,
            lent_bps: Some(3_000_000),
            safe_bps: Some(1_000_000),
            policy_rate_bps: 10_000_000,
        };
        let none = v1::Lease { safe_bps: None, ..lent };
        for (of, first, then) in [
            (
                lent,
                "lent by epoch 1000000000.12, for 4.900 s",
                "then its safe 1Mbit/s; returned, the policy's 10Mbit/s",
            ),
            (none, "lent by epoch 1000000000.12, for 4.900 s", "then the policy's 10Mbit/s"),
            (
                v1::Lease { lent_bps: None, ..lent },
                "lent without a rate by epoch 1000000000.12, for 4.900 s",
                "then its safe 1Mbit/s; returned, the policy's 10Mbit/s",
            ),
            (
                v1::Lease { lapsed: true, ..lent },
                "the lease of epoch 1000000000.12 is over: its safe 1Mbit/s",
                "returned, the policy's 10Mbit/s",
            ),
            (v1::Lease { lapsed: true, ..none }, "the lease of epoch 1000000000.12 is over", "the policy's 10Mbit/s"),
        ] {
            assert_eq!(lease(&of), [first, then]);
            assert!(first.len() < 69 && then.len() < 69, "with its indent wider than 80 columns");
        }
    }
}
