// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hard limits that do not fit, each port and aggregate at the place of its rate.

use crate::allocation::Bottleneck;
use crate::model::{ClassId, Network, PortId};
use crate::warnings::{self, Reserved};
use penstock_policy::diagnostics::{Diagnostic, Errors, Problem, Source, Span, quote};
use penstock_policy::reader::get;
use penstock_policy::units::{format_rate, parse_rate};
use penstock_policy::yaml::{Key, Node, Value};
use std::collections::HashMap;

/// Limits that an error shows, the largest.
const SHOWN_MAX: usize = 3;

/// Where hard limits are said.
#[derive(Default)]
pub struct HardLimits {
    of_class: HashMap<ClassId, Span>,
    at_port: HashMap<(PortId, ClassId), Span>,
}

impl HardLimits {
    /// The class of that index says one.
    pub fn of_class(&mut self, class: usize, span: Span) {
        // An index beyond 32 bits is beyond the bounds of a file as well.
        self.of_class.extend(ClassId::try_from(class).map(|class| (class, span)));
    }

    /// A local policy says one.
    pub fn at_port(&mut self, port: PortId, class: ClassId, span: Span) {
        self.at_port.insert((port, class), span);
    }

    fn at(&self, port: PortId, class: ClassId) -> Option<Span> {
        self.at_port.get(&(port, class)).or_else(|| self.of_class.get(&class)).copied()
    }
}

/// What does not fit of a network, which may have other errors. `entries` are the file's.
pub fn unfit(source: &Source, network: &Network, said: &HardLimits, entries: &[(Key, Node)]) -> Errors {
    let mut errors = Errors::default();
    let all = warnings::reserved(network);
    if all.is_empty() {
        return errors;
    }
    let (ports, aggregates) = (rates(get(entries, "ports")), rates(get(entries, "aggregates")));
    for one in &all {
        let rates = if one.at.port().is_some() { &ports } else { &aggregates };
        if let Some(span) = rates.get(one.at.name(network)).copied().flatten() {
            errors.push(diagnostic(source, network, said, one, span));
        }
    }
    errors
}

fn diagnostic(source: &Source, network: &Network, said: &HardLimits, one: &Reserved, rate: Span) -> Diagnostic {
    let fits = format_rate(one.rate_bps);
    let help = format!("lower them to {fits} in all, raise this rate, or make some of them `kind: soft`");
    let mut diagnostic = Diagnostic::new(source.place(rate), Problem::new(&one.sentence, help));
    let (shown, rest) = one.limits.split_at(one.limits.len().min(SHOWN_MAX));
    for (index, &(class, bps)) in shown.iter().enumerate() {
        let of = &network.classes[class as usize];
        // What an aggregate counts is the sum of a class's limits where its paths begin.
        let ports = match one.at {
            Bottleneck::Port(port) => vec![port],
            Bottleneck::Aggregate(_) => of.first_ports(),
        };
        let Some(span) = ports.first().and_then(|port| said.at(*port, class)) else { continue };
        let mut message = format!("{} has {} of them", quote(&of.name), format_rate(bps));
        if ports.len() > 1 {
            message += &format!(", at {} ports", ports.len());
        }
        if index + 1 == shown.len() {
            message += &match rest.len() {
                0 => String::new(),
                1 => "; 1 more class has the rest".to_owned(),
                more => format!("; {more} more classes have the rest"),
            };
        }
        diagnostic = diagnostic.with_related(source.place(span), message);
    }
    diagnostic
}

/// By name: where the rate of a port or an aggregate is said; none where it is wrong, which has been said. Of two of a name the first counts.
fn rates(list: Option<&Node>) -> HashMap<&str, Option<Span>> {
    let mut rates = HashMap::new();
    let Some(Value::List(items)) = list.map(|node| &node.value) else { return rates };
    for item in items {
        let Value::Map(entries) = &item.value else { continue };
        let Some(Node { value: Value::Scalar(name), .. }) = get(entries, "name") else { continue };
        let is_right = |rate: &&Node| matches!(&rate.value, Value::Scalar(text) if parse_rate(text).is_ok());
        rates.entry(name.as_str()).or_insert(get(entries, "rate").filter(is_right).map(|rate| rate.span));
    }
    rates
}
