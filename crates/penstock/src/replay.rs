// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock replay`: a capture or a workload through a policy.

use crate::arguments;
use crate::failure::Failure;
use crate::output::out;
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
    let panels = panels_asked(arguments, &plan)?;
    let mut source = open(arguments)?;
    let mut replay = Replay::new(&plan, arguments.link.as_deref(), arguments.seed)
        .map_err(|error| Failure::input(arguments.policy.display(), error))?;
    let mut outputs = Outputs::create(arguments, source.as_ref())?;
    outputs.watch_rates(&plan, &panels);
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
    let svg = match &mut outputs.sinks.timeline {
        Some(timeline) => {
            timeline.coarsen(plot::BINS_MAX);
            let panels = if panels.is_empty() { busiest(&report) } else { panels };
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

/// The panels named by `--plot-only`.
fn panels_asked(arguments: &arguments::Replay, plan: &Plan) -> Result<Vec<Panel>, Failure> {
    let mut panels = Vec::new();
    let mut limits = 0;
    for name in &arguments.plot_only {
        if let Some(index) = plan.classes.iter().position(|class| class.path == *name) {
            panels.push(Panel {
                name: name.clone(),
                series: index,
                limit_bps: plan.classes[index].limit_bps,
                entry: None,
            });
        } else if let Some(entry) = (0..plan.names.len()).find(|&entry| plan.names.get(entry) == name) {
            let limit_bps = Some(plan.entries[entry].rate_bps);
            panels.push(Panel {
                name: name.clone(),
                series: plan.classes.len() + limits,
                limit_bps,
                entry: Some(entry),
            });
            limits += 1;
        } else {
            let classes: Vec<&str> = plan.classes.iter().map(|class| class.path.as_str()).collect();
            let what = format!("no class or limit is called {name:?}; classes: {}", classes.join(", "));
            return Err(Failure::input("--plot-only", what));
        }
    }
    Ok(panels)
}

/// The classes that were offered most, in the policy's order.
fn busiest(report: &Report) -> Vec<Panel> {
    let mut classes: Vec<usize> = (0..report.classes.len()).collect();
    classes.sort_by_key(|&index| std::cmp::Reverse(report.classes[index].offered_bytes));
    classes.retain(|&index| report.classes[index].offered_packets > 0);
    classes.truncate(PANELS_MAX);
    classes.sort_unstable();
    let panel = |index: usize| {
        let class = &report.classes[index];
        let limit_bps = (class.limit_bps > 0).then_some(class.limit_bps);
        Panel { name: class.path.clone(), series: index, limit_bps, entry: None }
    };
    classes.into_iter().map(panel).collect()
}
