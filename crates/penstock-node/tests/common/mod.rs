// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests of the daemon share.
#![allow(dead_code, clippy::unwrap_used)] // each test file uses a part; a test may panic

pub mod controller;
pub mod daemon;
pub mod disk;
pub mod recorder;

use penstock_dataplane::Tap;
use penstock_node::Keeper;
use penstock_node::changes::Changes;
use penstock_node::compiled::compile;
use penstock_node::store::{Packed, Source, SourceFile};
use penstock_policy::Plan;
use std::collections::BTreeMap;

pub const ROWS: &str = "name,dst,rate\na,10.1.0.1,10Mbit/s\nb,10.1.0.2,20Mbit/s\n";

/// A policy of a class with a limit and a class with rows.
pub fn source(name: &str, gold: &str, rows: &str) -> Source {
    let file = SourceFile { path: "rows.csv".into(), name: "rows.csv".into(), bytes: Ok(rows.as_bytes().to_vec()) };
    Source { name: format!("{name}.yaml"), text: policy_text(name, gold).into_bytes(), files: vec![file] }
}

pub fn policy_text(name: &str, gold: &str) -> String {
    format!(
        "penstock: 1\nname: {name}\nports: {{ lan: {{ rate: 1Gbit/s }} }}\nlinks:\n  - name: down\n    port: lan\n    classes:\n      \
         - {{ name: gold, match: [ {{ dst: 10.2.0.0/16 }} ], limit: {{ rate: {gold} }} }}\n      \
         - {{ name: rows, limits: {{ file: rows.csv }} }}\n"
    )
}

/// Every limit with its rate, as the plan has them.
pub fn rates(plan: &Plan) -> BTreeMap<String, u64> {
    let classes = plan.classes.iter().filter_map(|class| Some((class.path.clone(), class.limit_bps?)));
    let rows = plan.entries.iter().enumerate().filter(|(_, entry)| entry.rate != 0);
    classes.chain(rows.map(|(row, entry)| (plan.names.get(row).to_owned(), entry.rate_bps))).collect()
}

/// What the source and the changes come to.
pub fn expected(source: &Source, changes: &Changes) -> BTreeMap<String, u64> {
    rates(&compile(source, changes).unwrap().plan)
}

/// What is in force, by the keeper's data plane.
pub fn in_force(keeper: &Keeper) -> (String, BTreeMap<String, u64>) {
    match keeper.in_force() {
        Ok((plan, _)) => (plan.policy.clone(), rates(plan)),
        Err(_) => (String::new(), BTreeMap::new()),
    }
}

/// Compiles and puts into force, as `up` and `reload` do.
pub fn put(keeper: &mut Keeper, source: &Source) -> Result<(), penstock_node::NodeError> {
    keeper.may(keeper.held().is_some())?;
    let compiled = compile(source, keeper.changes())?;
    let change = keeper.preview(&compiled);
    keeper.replace(Some(&Packed::new(source).unwrap()), compiled, change, &[]).map(|_| ())
}

/// Tries again what could not be put into force, as the daemon does now and then.
pub fn retry(keeper: &mut Keeper) {
    if let Some((packed, changes)) = keeper.stalled() {
        keeper.retry(compile(&packed.unpack().unwrap(), &changes));
    }
}

/// A data plane as a daemon that starts finds it.
pub fn kernel(tap: &Tap) -> Box<dyn penstock_dataplane::Dataplane> {
    Box::new(tap.open())
}
