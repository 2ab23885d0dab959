// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock replay`: a capture or a workload through a policy.

use crate::arguments;
use crate::failure::Failure;
use crate::output::{out, warn};
use crate::outputs::Outputs;
use crate::plot::{self, Panel};
use crate::table;
use crate::watch::Terminal;
use anyhow::Context;
use penstock_dataplane::report::Report;
use penstock_dataplane::{Outcome, Replay, ReplayError};
use penstock_packet::workload::{Generator, Workload};
use penstock_packet::{CaptureReader, FrameSource};
use penstock_policy::Loaded;
use penstock_policy::diagnostics::Source;
use penstock_policy::plan::Plan;
use std::io::Write;
use std::path::Path;

/// Classes drawn when nobody says which.
const PANELS_MAX: usize = 8;

/// Runs the command.
pub fn run(arguments: &arguments::Replay) -> Result<(), Failure> {
    let plan = load_policy(&arguments.policy)?.plan;
    let reloads = load_reloads(&arguments.reloads)?;
    let candidates = panels(arguments, &plan, &reloads)?;
    let mut source = open(arguments)?;
    let mut replay = Replay::new(plan, arguments.link.as_deref(), arguments.seed)
        .map_err(|error| Failure::input(arguments.policy.display(), error))?;
    for (reload, plan) in arguments.reloads.iter().zip(reloads) {
        let due = replay.reload_at(reload.time_ns, plan);
        due.map_err(|error| Failure::input(reload.policy.display(), error))?;
    }
    let mut outputs = Outputs::create(arguments, source.as_ref())?;
    outputs.watch_rates(&candidates);
    let mut watch = Terminal::new()?;
    let outcome = replay.run(source.as_mut(), &mut outputs.sinks, &mut watch);
    watch.finish();

    let mut report = replay.report();
    report.ended_early = match &outcome {
        Outcome::Whole => None,
        Outcome::Interrupted => Some("interrupted".to_owned()),
        Outcome::Failed(error) => Some(error.to_string()),
    };
    print(&report, arguments)?;
    if let (Outcome::Whole, Some(late)) = (&outcome, arguments.reloads.get(report.reloads.len())) {
        let what =
            format!("no packet came at {} or later: {} was not put into force", late.time, late.policy.display());
        warn(&what);
    }
    let svg = match &mut outputs.sinks.timeline {
        Some(timeline) => {
            timeline.coarsen(plot::BINS_MAX);
            let panels = if arguments.plot_only.is_empty() { busiest(&report, candidates) } else { candidates };
            Some(plot::draw(&format!("{}: rates over time", report.policy), timeline, &panels)?)
        }
        None => None,
    };
    outputs.finish(svg, matches!(outcome, Outcome::Whole))?;
    match outcome {
        Outcome::Whole => Ok(()),
        Outcome::Interrupted => Err(Failure::Interrupted),
        Outcome::Failed(ReplayError::Input(error)) => Err(Failure::input(origin(arguments), error)),
        Outcome::Failed(error) => Err(Failure::Failed(error.into())),
    }
}

/// Reads a policy; whatever is wrong with it is bad input.
pub fn load_policy(path: &Path) -> Result<Loaded, Failure> {
    penstock_policy::load(path).map_err(|error| Failure::Input(error.to_string()))
}

/// Reads the policies of `--reload`, whose times ascend.
fn load_reloads(reloads: &[arguments::Reload]) -> Result<Vec<Plan>, Failure> {
    if let Some(pair) = reloads.windows(2).find(|pair| pair[0].time_ns >= pair[1].time_ns) {
        let what = format!("{} does not come after {}; give reloads in the order of time", pair[1].time, pair[0].time);
        return Err(Failure::input("--reload", what));
    }
    reloads.iter().map(|reload| Ok(load_policy(&reload.policy)?.plan)).collect()
}

/// What the input is called in messages.
fn origin(arguments: &arguments::Replay) -> String {
    let path = arguments.input.as_ref().or(arguments.workload.as_ref());
    path.map_or_else(String::new, |path| path.display().to_string())
}

fn open(arguments: &arguments::Replay) -> Result<Box<dyn FrameSource>, Failure> {
    if let Some(path) = &arguments.workload {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::input(path.display(), error))?;
        let source = Source::new(&path.display().to_string(), text);
        let workload = Workload::parse(&source).map_err(|errors| Failure::Input(errors.to_string()))?;
        return Ok(Box::new(Generator::new(&workload)));
    }
    let path = arguments.input.clone().unwrap_or_default();
    match CaptureReader::open(&path) {
        Ok(reader) => Ok(Box::new(reader)),
        Err(error) => Err(Failure::input(path.display(), error)),
    }
}

/// Prints the report; one that goes nowhere (a closed pipe) is no failure.
fn print(report: &Report, arguments: &arguments::Replay) -> Result<(), Failure> {
    let text = if arguments.json {
        serde_json::to_string(report).context("the report as JSON")? + "\n"
    } else {
        table::render(report, arguments.top)
    };
    // With `--out -` standard output is the capture.
    let to_capture = |path: &Option<std::path::PathBuf>| path.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if to_capture(&arguments.out) || to_capture(&arguments.verdicts) {
        return std::io::stderr()
            .write_all(text.as_bytes())
            .context("cannot print the report")
            .map_err(Failure::Failed);
    }
    out!("{text}");
    Ok(())
}

/// What may be drawn: what `--plot-only` names, or all classes of all policies. Each is the series of the same index.
fn panels(arguments: &arguments::Replay, plan: &Plan, reloads: &[Plan]) -> Result<Vec<Panel>, Failure> {
    if arguments.plot.is_none() {
        return Ok(Vec::new());
    }
    let plans = || std::iter::once(plan).chain(reloads);
    let paths = || plans().flat_map(|plan| &plan.classes).map(|class| class.path.as_str());
    let mut names: Vec<&str> = arguments.plot_only.iter().map(String::as_str).collect();
    if names.is_empty() {
        names = paths().collect();
    }
    let mut panels: Vec<Panel> = Vec::new();
    for name in names {
        if panels.iter().any(|panel| panel.name == name) {
            continue;
        }
        let mut limits = plans().filter_map(|plan| limit_of(plan, name));
        let Some(limit_bps) = limits.next() else {
            let what =
                format!("no class or limit is called {name:?}; classes: {}", paths().collect::<Vec<_>>().join(", "));
            return Err(Failure::input("--plot-only", what));
        };
        // One line for all of the time: where a policy changes the limit, there is none.
        let limit_bps = limit_bps.filter(|_| limits.all(|other| other == limit_bps));
        panels.push(Panel { name: name.to_owned(), series: panels.len(), limit_bps });
    }
    Ok(panels)
}

/// The limit of a class or of a row, where a plan has it.
fn limit_of(plan: &Plan, name: &str) -> Option<Option<u64>> {
    if let Some(class) = plan.classes.iter().find(|class| class.path == name) {
        return Some(class.limit_bps);
    }
    let row = (0..plan.names.len()).find(|&row| plan.names.get(row) == name)?;
    Some(Some(plan.entries[row].rate_bps))
}

/// The classes that were offered most, in the policy's order.
fn busiest(report: &Report, mut panels: Vec<Panel>) -> Vec<Panel> {
    let offered = |panel: &Panel| {
        let class = report.classes.iter().find(|class| class.path == panel.name);
        class.map_or(0, |class| class.offered_bytes)
    };
    panels.sort_by_key(|panel| std::cmp::Reverse(offered(panel)));
    panels.retain(|panel| offered(panel) > 0);
    panels.truncate(PANELS_MAX);
    panels.sort_by_key(|panel| panel.series);
    panels
}
