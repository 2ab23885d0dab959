// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock plan`: one policy for a whole network.

mod arguments;
mod json;
mod picture;
mod tables;

pub use arguments::Plan;

use crate::failure::Failure;
use crate::output::print;
use anyhow::Context;
use arguments::Baseline;
use penstock_alloc::allocate;
use penstock_alloc::allocation::Allocation;
use penstock_alloc::compare::{self, Planned, Scheme};
use penstock_alloc::file::NETWORK_BYTES_MAX;
use penstock_alloc::model::Network;
use penstock_packet::OutputFile;
use penstock_policy::diagnostics::{Errors, Problem};
use std::io::Write;
use std::path::Path;

/// A network and who gets what in it.
struct Owned {
    network: Network,
    allocation: Allocation,
}

impl Owned {
    fn new(network: Network) -> Self {
        let allocation = allocate(&network);
        Self { network, allocation }
    }

    fn planned(&self) -> Planned<'_> {
        Planned { network: &self.network, allocation: &self.allocation }
    }
}

/// Everything that is printed of a plan.
struct Plans<'a> {
    /// As errors call the network.
    name: &'a str,
    now: Planned<'a>,
    before: Option<Planned<'a>>,
    /// What what-ifs took with them.
    notes: Vec<String>,
    /// The global allocation, then what it is compared with.
    schemes: Vec<(&'static str, Scheme)>,
}

/// Runs the command.
pub fn run(arguments: &Plan) -> Result<(), Failure> {
    if let Some(generator) = &arguments.generate {
        let network = generator.network().map_err(|problem| problem_of("--generate", &problem))?;
        return print(format_args!("{}", network.to_yaml()));
    }
    // Clap has seen to it that there is one or the other.
    let path = arguments.network.as_deref().unwrap_or_else(|| Path::new("-"));
    let Loaded { name, mut network, unfit } = load(path)?;
    let before = match &arguments.against {
        Some(path) => Some(load(path)?.network),
        None if arguments.edits.is_empty() => None,
        None => Some(network.clone()),
    };
    let mut notes = Vec::new();
    for edit in &arguments.edits {
        notes.extend(network.edit(edit).map_err(|problem| problem_of("--what-if", &problem))?);
    }
    // A name that cannot be written is found before the work.
    let svg = arguments.svg.as_deref().map(create).transpose()?;
    let before = before.map(Owned::new);
    let now = Owned::new(network);
    let (plan, base) = (now.planned(), before.as_ref().map(Owned::planned));
    let schemes = schemes(&arguments.compare, plan, base);
    let plans = Plans { name: &name, now: plan, before: base, notes, schemes };
    if let (Some(file), Some(path)) = (svg, &arguments.svg) {
        draw(&plans, file, path)?;
    }
    if arguments.json {
        json::print(&plans)?;
    } else {
        print(format_args!("{}", tables::render(&plans, arguments.top)))?;
    }
    // What is no more as the file has it has no place there.
    if arguments.edits.is_empty() { refuse(&unfit) } else { refuse_edited(&plans) }
}

fn problem_of(origin: &str, problem: &Problem) -> Failure {
    let help = if problem.help.is_empty() { String::new() } else { format!("\n  help: {}", problem.help) };
    Failure::Input(format!("error: {origin}: {}{help}", problem.message))
}

/// A network that was read.
struct Loaded {
    /// As errors call it.
    name: String,
    network: Network,
    /// Hard limits that do not fit.
    unfit: Errors,
}

fn load(path: &Path) -> Result<Loaded, Failure> {
    let source = penstock_policy::read_source(path, NETWORK_BYTES_MAX);
    let source = source.map_err(|error| match error {
        penstock_policy::LoadError::Invalid(errors) => Failure::Input(errors.to_string()),
        error @ penstock_policy::LoadError::Read { .. } => Failure::Input(format!("error: {error}")),
    })?;
    let (network, unfit) = Network::parse_checked(&source).map_err(|errors| Failure::Input(errors.to_string()))?;
    Ok(Loaded { name: source.name().to_owned(), network, unfit })
}

fn schemes(baselines: &[Baseline], now: Planned<'_>, before: Option<Planned<'_>>) -> Vec<(&'static str, Scheme)> {
    let mut schemes = vec![("global", compare::global(now, before))];
    if baselines.contains(&Baseline::Local) {
        schemes.push(("local", compare::local(now, before)));
    }
    if baselines.contains(&Baseline::Edge) {
        schemes.push(("edge", compare::edge(now, before)));
    }
    schemes
}

fn create(path: &Path) -> Result<OutputFile, Failure> {
    OutputFile::create(path).with_context(|| format!("cannot write {}", path.display())).map_err(Failure::from)
}

fn draw(plans: &Plans<'_>, mut file: OutputFile, path: &Path) -> Result<(), Failure> {
    let svg = picture::draw(plans)?;
    let written = file.write_all(svg.as_bytes()).and_then(|()| file.finish(true));
    Ok(written.with_context(|| format!("cannot write {}", path.display()))?)
}

/// Hard limits are installed as they are: what asks for more than a port has must not be.
fn refuse(unfit: &Errors) -> Result<(), Failure> {
    if unfit.is_empty() { Ok(()) } else { Err(Failure::Refused(unfit.to_string())) }
}

/// The same of a network that is not the file's any more.
fn refuse_edited(plans: &Plans<'_>) -> Result<(), Failure> {
    let problems = penstock_alloc::problems(plans.now.network);
    let line = |problem: &String| format!("error: {}: {problem}\n", plans.name);
    if problems.is_empty() { Ok(()) } else { Err(Failure::Refused(problems.iter().map(line).collect())) }
}
