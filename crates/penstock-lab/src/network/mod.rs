// SPDX-License-Identifier: MIT OR Apache-2.0
//! A network over time, by counting and as a fluid (Nimble, sections 2.1, 4.2 and 6.3): at each moment limits are what a system computes for the
//! classes that are there, and what flows is shared max-min among classes within them.
//!
//! A port that no path comes to from another one is its sender's own. What limits hold there, switches do not: they are counted apart.

pub mod churn;
mod draws;
mod limits;
pub mod programming;
mod random;
#[cfg(test)]
mod tests;

use crate::LabError;
use crate::quantity::Time;
use crate::results::{ALL, Metrics, Results, Row, Sample, Subject};
use crate::stats::real;
use crate::template::Values;
use draws::Draws;
use limits::{Limits, Scheme};
use penstock_alloc::changes::Changes;
use penstock_alloc::model::Network;
use penstock_alloc::what_if::Edit;
use penstock_policy::diagnostics::Source;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Whose samples those of all together are.
const SUM: &str = "sum";

/// A network file, what happens to it, and who limits it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// The network file.
    pub network: String,
    /// One after the other, each from the end of the one before.
    pub epochs: Vec<Epoch>,
    /// What is compared.
    pub systems: Vec<System>,
    /// The same classes with paths by chance.
    #[serde(default)]
    pub draws: Vec<Draws>,
}

/// A part of the time.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Epoch {
    /// Follows the class's name in the results.
    pub name: String,
    /// When it ends.
    pub until: Time,
    /// What is otherwise from its start on.
    #[serde(default)]
    pub what_if: Vec<String>,
}

/// Who limits.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Its series.
    pub name: String,
    /// What it knows, and where its limits are.
    pub scheme: Scheme,
    /// How long it takes until limits follow a change; the first ones are there from the start. At once without it.
    #[serde(default)]
    pub delay: Time,
    /// What is otherwise for this system.
    #[serde(default)]
    pub what_if: Vec<String>,
}

/// An epoch's network, and the limits that a system computes for it.
struct Planned {
    start_ns: u64,
    end_ns: u64,
    network: Network,
    limits: Limits,
}

/// Lets each system limit the network.
///
/// # Errors
/// The network file is wrong, or what happens to it is impossible.
pub fn compute(run: &Timeline, point: &Values) -> Result<Results, LabError> {
    let base = Network::parse(&Source::new("network", run.network.clone()))?;
    let mut results = Results::default();
    for system in &run.systems {
        let plans = plans(run, system, &base)?;
        report(run, system, &plans, point, &mut results);
    }
    for draws in &run.draws {
        results.rows.extend(draws::rows(draws, &base, point)?);
    }
    Ok(results)
}

/// Makes a network otherwise.
fn edit(network: &mut Network, words: &[String]) -> Result<(), LabError> {
    for word in words {
        let failed =
            |problem: penstock_policy::diagnostics::Problem| LabError::Computation(format!("{word}: {problem}"));
        network.edit(&word.parse::<Edit>().map_err(failed)?).map_err(failed)?;
    }
    Ok(())
}

fn plans(run: &Timeline, system: &System, base: &Network) -> Result<Vec<Planned>, LabError> {
    let mut network = base.clone();
    edit(&mut network, &system.what_if)?;
    let mut start_ns = 0;
    let mut plans = Vec::new();
    for epoch in &run.epochs {
        edit(&mut network, &epoch.what_if)?;
        if epoch.until.0 <= start_ns {
            return Err(LabError::Computation(format!("the epoch {} ends before it begins", epoch.name)));
        }
        let limits = Limits::of(system.scheme, &network);
        plans.push(Planned { start_ns, end_ns: epoch.until.0, network: network.clone(), limits });
        start_ns = epoch.until.0;
    }
    Ok(plans)
}

/// What a class gets, from one moment to another.
struct Piece {
    from_ns: u64,
    to_ns: u64,
    paths_bps: Vec<Vec<u64>>,
}

/// An epoch in pieces: until limits follow, the older ones are in force.
fn pieces(system: &System, plans: &[Planned], index: usize) -> Vec<Piece> {
    let plan = &plans[index];
    // The first limits are there from the start.
    let installed_ns = |at: usize| if at == 0 { 0 } else { plans[at].start_ns.saturating_add(system.delay.0) };
    let mut from_ns = plan.start_ns;
    let mut pieces = Vec::new();
    while from_ns < plan.end_ns {
        let in_force = (0..=index).rev().find(|at| installed_ns(*at) <= from_ns).unwrap_or(0);
        let next = (in_force + 1..=index).map(installed_ns).filter(|at| *at > from_ns).min();
        let to_ns = next.unwrap_or(u64::MAX).min(plan.end_ns);
        pieces.push(Piece { from_ns, to_ns, paths_bps: plans[in_force].limits.flows(&plan.network) });
        from_ns = to_ns;
    }
    pieces
}

fn report(run: &Timeline, system: &System, plans: &[Planned], point: &Values, results: &mut Results) {
    let of = |tenant: String| Subject { series: system.name.clone(), point: point.clone(), tenant };
    let (mut bits, mut updated) = (0.0, 0);
    for (index, (plan, epoch)) in plans.iter().zip(&run.epochs).enumerate() {
        let pieces = pieces(system, plans, index);
        let named = |name: &str| if epoch.name.is_empty() { name.to_owned() } else { format!("{name} {}", epoch.name) };
        for (at, class) in plan.network.classes.iter().enumerate() {
            let metrics = class_metrics(plan, &pieces, at);
            results.rows.push(Row { of: of(named(&class.name)), run: 1, metrics });
            sample(&pieces, &of(class.name.clone()), "gets", results, |piece| piece.paths_bps[at].iter().sum());
        }
        sample(&pieces, &of(SUM.to_owned()), "gets_of_all", results, |piece| piece.paths_bps.iter().flatten().sum());
        let is_sent = index > 0 && plan.start_ns.saturating_add(system.delay.0) < plans[plans.len() - 1].end_ns;
        let changes = if is_sent { plan.limits.changes_from(&plans[index - 1].limits) } else { Changes::default() };
        let metrics = all_metrics(plan, &pieces, &changes);
        bits += metrics["gets"] * real(plan.end_ns - plan.start_ns);
        updated += changes.updates() as u64;
        results.rows.push(Row { of: of(named(ALL)), run: 1, metrics });
    }
    if let Some(end_ns) = plans.last().map(|plan| plan.end_ns).filter(|_| plans.len() > 1) {
        let metrics = [("gets".to_owned(), bits / real(end_ns)), ("limits_updated".to_owned(), real(updated))];
        results.rows.push(Row { of: of(ALL.to_owned()), run: 1, metrics: metrics.into() });
    }
}

/// A value at the start and at the end of each piece.
fn sample(pieces: &[Piece], of: &Subject, name: &'static str, results: &mut Results, rate_bps: impl Fn(&Piece) -> u64) {
    for piece in pieces {
        let value = gbps(rate_bps(piece));
        let at = |time_ns| Sample { of: of.clone(), name, time_s: seconds(time_ns), value };
        results.samples.extend([at(piece.from_ns), at(piece.to_ns)]);
    }
}

/// What a class gets, and its paths; the mean over the epoch.
fn class_metrics(plan: &Planned, pieces: &[Piece], class: usize) -> Metrics {
    let mean = |of: &dyn Fn(&[u64]) -> u64| mean_of(plan, pieces, &|piece| gbps(of(&piece.paths_bps[class])));
    let mut metrics = Metrics::from([("gets".to_owned(), mean(&|paths| paths.iter().sum()))]);
    if plan.network.classes[class].paths.len() > 1 {
        metrics.insert("path_least".to_owned(), mean(&|paths| paths.iter().copied().min().unwrap_or(0)));
        metrics.insert("path_most".to_owned(), mean(&|paths| paths.iter().copied().max().unwrap_or(0)));
    }
    metrics
}

fn all_metrics(plan: &Planned, pieces: &[Piece], changes: &Changes) -> Metrics {
    let gets = mean_of(plan, pieces, &|piece| gbps(piece.paths_bps.iter().flatten().sum()));
    let ports: u64 = plan.network.ports.iter().map(|port| port.rate_bps).sum();
    let carried = mean_of(plan, pieces, &|piece| gbps(carried_bps(&plan.network, &piece.paths_bps)));
    BTreeMap::from([
        ("gets".to_owned(), gets),
        ("ports_used".to_owned(), 100.0 * carried / gbps(ports)),
        ("limits".to_owned(), real(plan.limits.installed() as u64)),
        ("limits_updated".to_owned(), real(changes.updates() as u64)),
    ])
}

/// The mean over an epoch, by time.
fn mean_of(plan: &Planned, pieces: &[Piece], value: &dyn Fn(&Piece) -> f64) -> f64 {
    let sum: f64 = pieces.iter().map(|piece| value(piece) * real(piece.to_ns - piece.from_ns)).sum();
    sum / real(plan.end_ns - plan.start_ns)
}

/// What the ports carry, all together.
fn carried_bps(network: &Network, paths_bps: &[Vec<u64>]) -> u64 {
    let classes = network.classes.iter().zip(paths_bps);
    classes.flat_map(|(class, rates)| class.paths.iter().zip(rates)).map(|(path, rate)| path.len() as u64 * rate).sum()
}

fn gbps(rate_bps: u64) -> f64 {
    real(rate_bps) / 1e9
}

fn seconds(time_ns: u64) -> f64 {
    real(time_ns) / 1e9
}
