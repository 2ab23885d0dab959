// SPDX-License-Identifier: MIT OR Apache-2.0
//! Aggregates of a network file: which classes may have how much together.

use super::names::Names;
use super::{AGGREGATES_MAX, AGGREGATES_OF_CLASS_MAX, CLASSES_MAX, RATE_EXAMPLE, items, own_name};
use crate::model::{Aggregate, ClassId};
use penstock_policy::diagnostics::{Problem, Span, quote};
use penstock_policy::reader::{Reader, get};
use penstock_policy::units::parse_rate;
use penstock_policy::yaml::{Node, Value};
use std::collections::HashMap;

const KEYS: [&str; 3] = ["name", "rate", "classes"];
const EXAMPLE: &str = "{ name: t7, rate: 300Mbit/s, classes: [a, b] }";

/// What aggregates may not be called, and whom they may have.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    pub ports: &'a Names,
    pub classes: &'a Names,
}

/// All aggregates.
pub fn read(reader: &mut Reader<'_>, node: &Node, known: Known<'_>) -> Vec<Aggregate> {
    let mut names = Names::new("aggregate");
    let mut counts: HashMap<ClassId, usize> = HashMap::new();
    let mut aggregates = Vec::new();
    for item in items(reader, node, "`aggregates`", AGGREGATES_MAX, EXAMPLE) {
        let Some(entries) = reader.map(item, "an aggregate", &KEYS, &format!("such as `{EXAMPLE}`")) else { continue };
        let name = own_name(reader, item, entries, &mut names);
        if let Some(node) = get(entries, "name") {
            is_no_ports(reader, node, known.ports);
        }
        let rate = reader.required(entries, "rate", item.span, "this aggregate", "300Mbit/s");
        let rate_bps = rate.and_then(|node| reader.value(node, "`rate`", RATE_EXAMPLE, parse_rate));
        let listed = reader.required(entries, "classes", item.span, "this aggregate", "[a, b]");
        let classes = listed.map(|node| members(reader, node, known.classes, &mut counts));
        if let (Some(name), Some(rate_bps), Some(classes)) = (name, rate_bps, classes) {
            aggregates.push(Aggregate { name, rate_bps, classes });
        }
    }
    aggregates
}

/// A plan names a bottleneck by its name only.
fn is_no_ports(reader: &mut Reader<'_>, node: &Node, ports: &Names) {
    let Value::Scalar(text) = &node.value else { return };
    if let Some(first) = ports.place(text) {
        let message = format!("there is a port of the name {}", quote(text));
        reader.fail_twice(node.span, Problem::new(message, "rename one"), first);
    }
}

/// The members of one aggregate, each once.
fn members(reader: &mut Reader<'_>, node: &Node, names: &Names, counts: &mut HashMap<ClassId, usize>) -> Vec<ClassId> {
    let mut seen: HashMap<ClassId, Span> = HashMap::new();
    let mut classes = Vec::new();
    let listed = items(reader, node, "`classes` of an aggregate", CLASSES_MAX, "a, b");
    if let (Value::List(items), []) = (&node.value, listed)
        && items.is_empty()
    {
        reader.fail(node.span, Problem::new("this aggregate has no classes", "such as `classes: [a, b]`"));
    }
    for item in listed {
        let Some(class) = names.find(reader, item) else { continue };
        if let Some(&first) = seen.get(&class) {
            let message = "this class is in the aggregate twice";
            reader.fail_twice(item.span, Problem::new(message, "name it once"), first);
            continue;
        }
        seen.insert(class, item.span);
        let count = counts.entry(class).or_default();
        *count += 1;
        if *count == AGGREGATES_OF_CLASS_MAX + 1 {
            let help = format!("{AGGREGATES_OF_CLASS_MAX} are the most");
            reader.fail(item.span, Problem::new("this class is in too many aggregates", help));
        }
        classes.push(class);
    }
    classes
}
