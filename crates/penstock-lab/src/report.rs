// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report of a scenario: what the paper says, what came out here, and whether the claim holds.

use crate::machine::Machine;
use crate::results::{Mean, Results, unit};
use crate::scenario::{Effort, PaperNumber, Scenario};
use crate::verdict::{Outcome, judge, place, short};
use std::fmt::Write;

/// Whether all rules hold.
#[must_use]
pub fn holds(outcomes: &[Outcome]) -> bool {
    outcomes.iter().all(|outcome| outcome.holds)
}

/// The first lines of a report: the name, and the verdict that [`verdict_of`] reads.
const HOLDS: &str = "**The claim holds.**";
const DOES_NOT_HOLD: &str = "**The claim does not hold here.**";

/// Writes the report as Markdown.
#[must_use]
pub fn render(name: &str, scenario: &Scenario, effort: Effort, results: &Results, machine: &Machine) -> String {
    let means = results.means();
    let outcomes = judge(&scenario.holds_if, &means);
    let mut text = format!("# {name}\n\n");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}, {}, section {}.\n", scenario.paper.name, scenario.paper.figure, scenario.paper.section);
    let _ = writeln!(text, "Claim: {}\n", scenario.claim.trim());
    let _ = writeln!(text, "{}\n", if holds(&outcomes) { HOLDS } else { DOES_NOT_HOLD });
    text += &rules(&outcomes);
    text += &paper_numbers(&scenario.paper_says, &means);
    text += &numbers(results, &means);
    if scenario.figure.is_some() {
        text += "![The figure](figure.svg)\n\n";
    }
    let _ = writeln!(text, "## How it was run\n\n{}\n", scenario.scaling.trim());
    if scenario.traffic.is_some() {
        let seconds = effort.time.duration().as_secs_f64();
        let _ = writeln!(text, "Each point: {} run(s) of {} s.\n", effort.runs, short(seconds));
    }
    text += &machine.render();
    for remark in &results.remarks {
        let _ = writeln!(text, "- {remark}");
    }
    text
}

fn rules(outcomes: &[Outcome]) -> String {
    let mut text = "| rule | holds | because |\n|---|---|---|\n".to_owned();
    for outcome in outcomes {
        let holds = if outcome.holds { "yes" } else { "**no**" };
        let _ = writeln!(text, "| {} | {holds} | {} |", outcome.rule, outcome.because);
    }
    text + "\n"
}

fn paper_numbers(says: &[PaperNumber], means: &[Mean]) -> String {
    if says.is_empty() {
        return String::new();
    }
    let mut text = "## The paper's numbers beside ours\n\n| what | the paper | here |\n|---|---|---|\n".to_owned();
    for number in says {
        let of = [number.series.clone(), number.tenant.clone()].into_iter().flatten();
        let at = number.at.iter().map(|(name, value)| format!("{name} {value}"));
        let what: Vec<String> = [number.metric.clone()].into_iter().chain(of).chain(at).collect();
        let unit = unit(&number.metric);
        let _ = writeln!(text, "| {} | {} {unit} | {} {unit} |", what.join(", "), number.says, ours(number, means));
    }
    text + "\n"
}

/// Our number, or the range of our numbers.
fn ours(number: &PaperNumber, means: &[Mean]) -> String {
    let fits = |mean: &&Mean| {
        number.series.as_ref().is_none_or(|series| *series == mean.of.series)
            && number.tenant.as_ref().is_none_or(|tenant| *tenant == mean.of.tenant)
            && number.at.iter().all(|(name, value)| mean.of.point.get(name) == Some(value))
    };
    let values: Vec<f64> =
        means.iter().filter(fits).filter_map(|mean| mean.metrics.get(&number.metric).copied()).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match values.len() {
        0 => "not measured".to_owned(),
        1 => short(low),
        _ => format!("{} to {}", short(low), short(high)),
    }
}

fn numbers(results: &Results, means: &[Mean]) -> String {
    let names = results.metric_names();
    let heads: Vec<String> = names
        .iter()
        .map(|name| match unit(name) {
            "" => name.clone(),
            unit => format!("{name}, {unit}"),
        })
        .collect();
    let mut text = format!("## Measured\n\n| where | runs | {} |\n", heads.join(" | "));
    let _ = writeln!(text, "|---|---|{}", "---|".repeat(names.len()));
    for mean in means {
        let cell = |name: &String| mean.metrics.get(name).map(|value| short(*value)).unwrap_or_default();
        let cells: Vec<String> = names.iter().map(cell).collect();
        let _ = writeln!(text, "| {} | {} | {} |", place(&mean.of), mean.runs, cells.join(" | "));
    }
    text + "\n"
}

/// The claim and the verdict of a report that [`render`] wrote.
#[must_use]
pub fn verdict_of(report: &str) -> Option<(String, bool)> {
    let claim = report.lines().find_map(|line| line.strip_prefix("Claim: "))?;
    let holds = report.lines().find_map(|line| match line {
        HOLDS => Some(true),
        DOES_NOT_HOLD => Some(false),
        _ => None,
    })?;
    Some((claim.to_owned(), holds))
}
