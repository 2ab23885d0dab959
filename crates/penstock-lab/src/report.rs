// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report of a scenario: what the paper says, what came out here, and whether the claim holds.

use crate::LabError;
use crate::machine::Machine;
use crate::results::{Mean, Results, unit};
use crate::scenario::{Effort, PaperNumber, Scenario};
use crate::template::Template;
use crate::verdict::{Outcome, judge, place, short};
use std::fmt::Write;

/// Whether all rules hold.
#[must_use]
pub fn holds(outcomes: &[Outcome]) -> bool {
    outcomes.iter().all(|outcome| outcome.holds)
}

/// Writes the report as Markdown.
#[must_use]
pub fn render(name: &str, scenario: &Scenario, effort: Effort, results: &Results, machine: &Machine) -> String {
    let means = results.means();
    let outcomes = judge(&scenario.holds_if, &means);
    let mut text = format!("# {name}\n\n");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}, {}, section {}.\n", scenario.paper.name, scenario.paper.figure, scenario.paper.section);
    let _ = writeln!(text, "Claim: {}\n", scenario.claim.trim());
    let _ = writeln!(text, "**The claim {}.**\n", if holds(&outcomes) { "holds" } else { "does not hold here" });
    text += &rules(&outcomes);
    text += &paper_numbers(&scenario.paper_says, &means);
    text += &numbers(results, &means);
    if scenario.figure.is_some() {
        text += "![The figure](figure.svg)\n\n";
    }
    let _ = writeln!(text, "## How it was run\n\n{}\n", scenario.scaling.trim());
    if scenario.compute.is_none() {
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
    let fits = |mean: &&Mean| mean.of.is(number.series.as_deref(), number.tenant.as_deref(), &number.at);
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

/// What a scenario's rules say about the `results.csv` of an earlier run.
///
/// # Errors
/// It is not one of this lab.
pub fn judge_again(template: &Template, csv: &str) -> Result<Vec<Outcome>, LabError> {
    let scenario = template.first()?;
    let variables: Vec<&str> = scenario.sweep.iter().map(|variable| variable.name.as_str()).collect();
    Ok(judge(&scenario.holds_if, &Results::read(csv, &variables)?.means()))
}

/// A line a scenario: its name, its verdict, and each rule with what decided about it. `None` stands for one that was not run.
#[must_use]
pub fn overview(scenarios: &[(String, Option<Vec<Outcome>>)]) -> String {
    let mut text = "| scenario | verdict | rules, and the numbers that decided |\n|---|---|---|\n".to_owned();
    for (name, outcomes) in scenarios {
        let verdict = match outcomes {
            None => "not run",
            Some(outcomes) if holds(outcomes) => "holds",
            Some(_) => "**does not hold**",
        };
        let missed = |outcome: &Outcome| if outcome.holds { "" } else { "**missed:** " };
        let line = |outcome: &Outcome| format!("{}{} ({})", missed(outcome), outcome.rule, outcome.because);
        let lines: Vec<String> = outcomes.iter().flatten().map(line).collect();
        let _ = writeln!(text, "| {name} | {verdict} | {} |", lines.join("; "));
    }
    text
}
