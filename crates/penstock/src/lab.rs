// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock lab`: the papers' experiments.

use crate::failure::Failure;
use anyhow::Context;
use clap::{Args, Subcommand};
use penstock_lab::report::{judge_again, overview};
use penstock_lab::{Done, LabError, Library, Progress, Stop};
use std::path::{Path, PathBuf};

/// Run the papers' experiments on this machine: real TCP between network namespaces
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  penstock lab list
  penstock lab run switchrl/fig7
  penstock lab run --full nimble/fig3 switchrl/fig8
  penstock lab report")]
pub struct Lab {
    #[command(subcommand)]
    command: LabCommand,
    /// Folder of scenarios, `<paper>/<figure>.yaml`
    #[arg(long, global = true, value_name = "FOLDER", default_value = "lab/scenarios")]
    scenarios: PathBuf,
    /// Folder that results go to, `<paper>/<figure>/report.md` and more
    #[arg(long, global = true, value_name = "FOLDER", default_value = "out/lab")]
    results: PathBuf,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// List scenarios with what they claim
    List,
    /// Run scenarios; needs root, and leaves nothing behind
    Run {
        /// Scenarios, as `list` prints them; `all` runs every one
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// As long and as often as in the paper
        #[arg(long)]
        full: bool,
    },
    /// Print which claims hold by the numbers measured so far, `results.csv` of each, and what decided
    Report,
}

/// Runs the command.
pub fn run(arguments: &Lab) -> Result<(), Failure> {
    let library = Library::new(&arguments.scenarios);
    match &arguments.command {
        LabCommand::List => list(&library),
        LabCommand::Run { ids, full } => run_all(&library, ids, *full, &arguments.results),
        LabCommand::Report => report(&library, &arguments.results),
    }
}

fn failure(error: LabError) -> Failure {
    match error {
        LabError::Scenario(errors) => Failure::Input(errors.to_string()),
        LabError::Unknown { .. } => Failure::Input(format!("error: {error}")),
        LabError::Interrupted => Failure::Interrupted,
        other => Failure::Failed(other.into()),
    }
}

#[allow(clippy::print_stdout)] // the command line's own output
fn list(library: &Library) -> Result<(), Failure> {
    for name in library.names().map_err(failure)? {
        let template = library.read(&name).map_err(failure)?;
        let claim = template.first().map_err(|errors| failure(errors.into()))?.claim;
        println!("{name:<22} {}", claim.trim());
    }
    Ok(())
}

#[allow(clippy::print_stdout)] // as above
fn run_all(library: &Library, ids: &[String], is_full: bool, results: &Path) -> Result<(), Failure> {
    let names = if ids.iter().any(|id| id == "all") { library.names().map_err(failure)? } else { ids.to_vec() };
    // All of them are read before the first one runs.
    let templates = names.iter().map(|name| library.read(name)).collect::<Result<Vec<_>, _>>().map_err(failure)?;
    let stop = Stop::default();
    let asked = stop.clone();
    ctrlc::set_handler(move || asked.ask()).context("cannot catch Ctrl-C")?;
    for (name, template) in names.iter().zip(&templates) {
        let folder = results.join(name);
        let mut steps = Steps { name };
        let done = penstock_lab::run(name, template, is_full, &folder, &mut steps, &stop).map_err(failure)?;
        println!("{}", summary(name, &done, &folder));
    }
    Ok(())
}

fn summary(name: &str, done: &Done, folder: &Path) -> String {
    let mut text = format!("{name}: the claim {}", if done.holds { "holds" } else { "DOES NOT HOLD here" });
    for outcome in &done.outcomes {
        let mark = if outcome.holds { "yes" } else { "NO " };
        text += &format!("\n  {mark}  {}; {}", outcome.rule, outcome.because);
    }
    text + &format!("\n  {}", folder.join("report.md").display())
}

/// One line a step, on standard error.
struct Steps<'a> {
    name: &'a str,
}

impl Progress for Steps<'_> {
    #[allow(clippy::print_stderr)] // as above
    fn step(&mut self, at: usize, of: usize, what: &str) {
        eprintln!("{}: {at}/{of} {what}", self.name);
    }
}

#[allow(clippy::print_stdout)] // as above
fn report(library: &Library, results: &Path) -> Result<(), Failure> {
    let mut scenarios = Vec::new();
    for name in library.names().map_err(failure)? {
        // As a run writes it, or as `lab/expected` has it.
        let places = [results.join(&name).join("results.csv"), results.join(format!("{name}.csv"))];
        let outcomes = match places.iter().find(|path| path.is_file()) {
            None => None,
            Some(path) => {
                let csv = std::fs::read_to_string(path).map_err(|error| Failure::input(path.display(), error))?;
                Some(judge_again(&library.read(&name).map_err(failure)?, &csv).map_err(failure)?)
            }
        };
        scenarios.push((name, outcomes));
    }
    print!("{}", overview(&scenarios));
    Ok(())
}
