// SPDX-License-Identifier: MIT OR Apache-2.0
//! A whole scenario: all of its points, series and runs, and the files that come of it.

use crate::LabError;
use crate::computation::compute;
use crate::dctcp::{Dctcp, Totals};
use crate::machine::Machine;
use crate::process::Stop;
use crate::report;
use crate::results::Results;
use crate::scenario::{Effort, Scenario};
use crate::template::{Template, Values};
use crate::topology::check_machine;
use crate::verdict::{Outcome, judge};
use crate::{figure, live, load, nodes};
use std::path::Path;

/// What came of a scenario.
#[derive(Debug)]
pub struct Done {
    /// Each rule with its outcome.
    pub outcomes: Vec<Outcome>,
    /// Whether all of them hold.
    pub holds: bool,
    /// Everything that was measured.
    pub results: Results,
    /// What DCTCP's sockets did, where there were some.
    pub dctcp: Option<Totals>,
}

/// Who looks on.
pub trait Progress {
    /// Step `at` of `of`, counted from 1, begins.
    fn step(&mut self, at: usize, of: usize, what: &str);
}

/// Runs a scenario and writes `report.md`, `results.csv`, and where there are some `samples.csv` and `figure.svg` into `folder`.
///
/// # Errors
/// The machine lacks something, a tool fails, or Ctrl-C was pressed. Namespaces and processes are gone in any case.
pub fn run(
    name: &str,
    template: &Template,
    is_full: bool,
    folder: &Path,
    progress: &mut dyn Progress,
    stop: &Stop,
) -> Result<Done, LabError> {
    let points = template.points().iter().map(|point| Ok((point.clone(), template.at(point)?)));
    let points = points.collect::<Result<Vec<(Values, Scenario)>, LabError>>()?;
    let first = &template.first()?;
    let effort = if is_full { first.effort.full } else { first.effort.quick };
    let machine = Machine::look();
    let dctcp = prepare_machine(&points)?;
    let results = measure(&points, effort, progress, stop)?;
    let failed = |source| LabError::io(format!("cannot write to {}", folder.display()), source);
    std::fs::create_dir_all(folder).map_err(failed)?;
    results.write(folder)?;
    if let Some(svg) = figure::draw(first, &results)? {
        std::fs::write(folder.join("figure.svg"), svg).map_err(failed)?;
    }
    let text = report::render(name, first, effort, &results, &machine);
    std::fs::write(folder.join("report.md"), text).map_err(failed)?;
    let outcomes = judge(&first.holds_if, &results.means());
    let dctcp = dctcp.map(|dctcp| dctcp.totals()).transpose()?;
    Ok(Done { holds: report::holds(&outcomes), outcomes, results, dctcp })
}

fn measure(
    points: &[(Values, Scenario)],
    effort: Effort,
    progress: &mut dyn Progress,
    stop: &Stop,
) -> Result<Results, LabError> {
    let mut results = Results::default();
    let steps = |scenario: &Scenario| match scenario.compute {
        Some(_) => 1,
        None => scenario.series.len() * effort.runs as usize,
    };
    let of = points.iter().map(|(_, scenario)| steps(scenario)).sum();
    let mut at = 0;
    for (point, scenario) in points {
        if let Some(computation) = &scenario.compute {
            at += 1;
            progress.step(at, of, &words(point));
            stop.check()?;
            let done = compute(computation, point, effort.time)?;
            results.rows.extend(done.rows);
            results.samples.extend(done.samples);
        }
        let (traffic, network) = (&scenario.traffic, &scenario.network);
        if scenario.compute.is_some() {
            continue;
        }
        for series in &scenario.series {
            for run in 1..=effort.runs {
                at += 1;
                progress.step(at, of, &format!("{} {}", series.name, words(point)));
                let (of, time) = ((point, run), effort.time.duration());
                let done = match (traffic, network) {
                    (Some(traffic), _) => live::run(traffic, series, of, time, stop)?,
                    (None, Some(network)) => nodes::run(network, series, of, time, stop)?,
                    (None, None) => continue,
                };
                results.rows.extend(done.rows);
                if run == 1 {
                    results.samples.extend(done.samples);
                }
            }
        }
    }
    Ok(results)
}

/// Checks for root and tools, removes what an earlier lab left behind, and registers DCTCP where somebody uses it.
fn prepare_machine(points: &[(Values, Scenario)]) -> Result<Option<Dctcp>, LabError> {
    let traffic = || points.iter().filter_map(|(_, scenario)| scenario.traffic.as_ref());
    let has_network = points.iter().any(|(_, scenario)| scenario.network.is_some());
    if traffic().next().is_none() && !has_network {
        return Ok(None);
    }
    let tenants = || traffic().flat_map(|traffic| &traffic.tenants);
    let tools: Vec<_> = tenants().flat_map(|tenant| load::tools(&tenant.load)).copied().collect();
    let of_network: &[_] = if has_network { &nodes::TOOLS } else { &[] };
    check_machine(&[tools, of_network.to_vec()].concat())?;
    crate::netns::remove_stale();
    tenants().any(|tenant| tenant.tcp == "dctcp").then(Dctcp::register).transpose()
}

fn words(point: &Values) -> String {
    point.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}
