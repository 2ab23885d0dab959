// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan as JSON. Its keys are a contract; more may come.

use super::Plans;
use crate::failure::Failure;
use anyhow::Context;
use penstock_alloc::changes::Changes;
use penstock_alloc::compare::Scheme;
use penstock_alloc::model::{Network, PortId};
use serde::Serialize;
use std::io::{BufWriter, ErrorKind, Write};

#[derive(Serialize)]
struct Report<'a> {
    epoch: u64,
    limits: Vec<LimitRow<'a>>,
    paths: Vec<PathRow<'a>>,
    ports: Vec<PortRow<'a>>,
    aggregates: Vec<AggregateRow<'a>>,
    changes: ChangesRow,
    warnings: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    comparison: Vec<SchemeRow<'a>>,
}

#[derive(Serialize)]
struct LimitRow<'a> {
    class: &'a str,
    port: &'a str,
    rate_bps: u64,
    yellow_bytes: u64,
    red_bytes: u64,
}

#[derive(Serialize)]
struct PathRow<'a> {
    class: &'a str,
    path: usize,
    rate_bps: u64,
    bottleneck: &'a str,
}

#[derive(Serialize)]
struct PortRow<'a> {
    name: &'a str,
    switch: &'a str,
    rate_bps: u64,
    used_bps: u64,
}

#[derive(Serialize)]
struct AggregateRow<'a> {
    name: &'a str,
    rate_bps: u64,
    used_bps: u64,
}

#[derive(Serialize)]
struct ChangesRow {
    added: usize,
    removed: usize,
    changed: usize,
    unchanged: usize,
}

/// One way to limit the network; who is short is compared with the plan.
#[derive(Serialize)]
struct SchemeRow<'a> {
    scheme: &'a str,
    flow_bps: u128,
    used_bps: u128,
    limits: usize,
    changes: Option<ChangesRow>,
    short: Vec<ShortRow<'a>>,
    over: Vec<OverRow<'a>>,
}

#[derive(Serialize)]
struct ShortRow<'a> {
    class: &'a str,
    due_bps: u64,
    gets_bps: u64,
}

#[derive(Serialize)]
struct OverRow<'a> {
    port: &'a str,
    rate_bps: u64,
    offered_bps: u64,
}

impl From<Changes> for ChangesRow {
    fn from(changes: Changes) -> Self {
        let Changes { added, removed, changed, unchanged } = changes;
        Self { added, removed, changed, unchanged }
    }
}

/// Prints it. That nobody reads to the end is no failure.
pub fn print(plans: &Plans<'_>) -> Result<(), Failure> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = serde_json::to_writer_pretty(&mut out, &report(plans)).map_err(std::io::Error::from);
    match written.and_then(|()| writeln!(out)).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot print")?,
        _ => Ok(()),
    }
}

fn report<'a>(plans: &'a Plans<'a>) -> Report<'a> {
    let (network, allocation) = (plans.now.network, plans.now.allocation);
    let port = |id: PortId| network.ports[id as usize].name.as_str();
    let limit = |limit: &penstock_alloc::allocation::PlacedLimit| LimitRow {
        class: &network.classes[limit.class as usize].name,
        port: port(limit.port),
        rate_bps: limit.rate_bps,
        yellow_bytes: limit.yellow_bytes,
        red_bytes: limit.red_bytes,
    };
    let mut paths = Vec::new();
    for (class, rates) in network.classes.iter().zip(&allocation.paths) {
        paths.extend(rates.iter().enumerate().map(|(path, rate)| PathRow {
            class: &class.name,
            path,
            rate_bps: rate.rate_bps,
            bottleneck: rate.bottleneck.name(network),
        }));
    }
    let ports = network.ports.iter().zip(&allocation.used_bps).map(|(port, &used_bps)| PortRow {
        name: &port.name,
        switch: &port.switch,
        rate_bps: port.rate_bps,
        used_bps,
    });
    let aggregates = network.aggregates.iter().zip(&allocation.aggregates_used_bps);
    let aggregates = aggregates.map(|(aggregate, &used_bps)| AggregateRow {
        name: &aggregate.name,
        rate_bps: aggregate.rate_bps,
        used_bps,
    });
    let changes = plans.schemes.first().and_then(|(_, scheme)| scheme.changes);
    // Where there was nothing before, all of it is new.
    let all = Changes { added: allocation.limits.len(), ..Changes::default() };
    Report {
        epoch: 1,
        limits: allocation.limits.iter().map(limit).collect(),
        paths,
        ports: ports.collect(),
        aggregates: aggregates.collect(),
        changes: changes.unwrap_or(all).into(),
        warnings: allocation.warnings.iter().map(String::as_str).collect(),
        notes: plans.notes.iter().map(String::as_str).collect(),
        comparison: comparison(plans, network),
    }
}

fn comparison<'a>(plans: &'a Plans<'a>, network: &'a Network) -> Vec<SchemeRow<'a>> {
    if plans.schemes.len() < 2 {
        return Vec::new();
    }
    let row = |(name, scheme): &'a (&'static str, Scheme)| SchemeRow {
        scheme: name,
        flow_bps: scheme.flow_bps,
        used_bps: scheme.used_bps,
        limits: scheme.limits,
        changes: scheme.changes.map(ChangesRow::from),
        short: scheme
            .short
            .iter()
            .map(|short| ShortRow {
                class: &network.classes[short.class as usize].name,
                due_bps: short.due_bps,
                gets_bps: short.gets_bps,
            })
            .collect(),
        over: scheme
            .over
            .iter()
            .map(|over| OverRow {
                port: &network.ports[over.port as usize].name,
                rate_bps: over.rate_bps,
                offered_bps: over.offered_bps,
            })
            .collect(),
    };
    plans.schemes.iter().map(row).collect()
}
