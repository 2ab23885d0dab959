// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing a network file: a line each for ports, classes, local policies and aggregates; a class of many paths has a line for each of them,
//! an aggregate of many classes as well.

use super::BUFFER_DEFAULT_BYTES;
use crate::model::{Aggregate, Class, Limit, LimitKind, LocalPolicy, Network, Port};
use penstock_policy::units::{format_rate, format_size};
use std::fmt::Write as _;

/// Longest line of a class, in bytes.
const LINE_MAX: usize = 120;

/// The whole file. Writing to a string cannot fail.
pub fn network(network: &Network) -> String {
    let mut text = "penstock-network: 1\nports:".to_owned();
    list(&mut text, &network.ports, |text, port| {
        let _ = writeln!(text, "  - {}", self::port(port));
    });
    text += "classes:";
    list(&mut text, &network.classes, |text, class| self::class(text, class, &network.ports));
    if !network.local.is_empty() {
        text += "local:";
        list(&mut text, &network.local, |text, local| {
            let _ = writeln!(text, "  - {}", self::local(local, network));
        });
    }
    if !network.aggregates.is_empty() {
        text += "aggregates:";
        list(&mut text, &network.aggregates, |text, aggregate| self::aggregate(text, aggregate, network));
    }
    text
}

fn list<T>(text: &mut String, items: &[T], write: impl Fn(&mut String, &T)) {
    if items.is_empty() {
        text.push_str(" []\n");
        return;
    }
    text.push('\n');
    for item in items {
        write(text, item);
    }
}

fn port(port: &Port) -> String {
    let mut text =
        format!("{{ name: {}, switch: {}, rate: {}", name(&port.name), name(&port.switch), format_rate(port.rate_bps));
    if port.buffer_bytes != BUFFER_DEFAULT_BYTES {
        let _ = write!(text, ", buffer: {}", format_size(port.buffer_bytes));
    }
    text + " }"
}

fn class(text: &mut String, class: &Class, ports: &[Port]) {
    let mut terms = vec![format!("name: {}", name(&class.name))];
    if class.priority != 0 {
        terms.push(format!("priority: {}", class.priority));
    }
    if class.weight != 1 {
        terms.push(format!("weight: {}", class.weight));
    }
    terms.extend(class.limit.map(limit));
    terms.extend(class.demand_bps.map(|demand_bps| format!("demand: {}", format_rate(demand_bps))));
    terms.extend(class.safe_bps.map(|safe_bps| format!("safe: {}", format_rate(safe_bps))));
    let name_of = |port: &u32| ports.get(*port as usize).map(|port| name(&port.name)).unwrap_or_default();
    let paths: Vec<String> = class
        .paths
        .iter()
        .map(|path| format!("[{}]", path.iter().map(name_of).collect::<Vec<_>>().join(", ")))
        .collect();
    let line = format!("  - {{ {}, paths: [{}] }}\n", terms.join(", "), paths.join(", "));
    if line.len() <= LINE_MAX {
        text.push_str(&line);
        return;
    }
    let _ = writeln!(text, "  - {}", terms.join("\n    "));
    text.push_str("    paths:\n");
    for path in paths {
        let _ = writeln!(text, "      - {path}");
    }
}

fn local(local: &LocalPolicy, network: &Network) -> String {
    let port = network.ports.get(local.port as usize).map(|port| name(&port.name)).unwrap_or_default();
    let class = network.classes.get(local.class as usize).map(|class| name(&class.name)).unwrap_or_default();
    let mut text = format!("{{ port: {port}, class: {class}");
    if let Some(priority) = local.priority {
        let _ = write!(text, ", priority: {priority}");
    }
    if let Some(weight) = local.weight {
        let _ = write!(text, ", weight: {weight}");
    }
    if let Some(of) = local.limit {
        let _ = write!(text, ", {}", limit(of));
    }
    text + " }"
}

fn aggregate(text: &mut String, aggregate: &Aggregate, network: &Network) {
    let (own, rate) = (name(&aggregate.name), format_rate(aggregate.rate_bps));
    let name_of = |class: &u32| network.classes.get(*class as usize).map(|class| name(&class.name)).unwrap_or_default();
    let members: Vec<String> = aggregate.classes.iter().map(name_of).collect();
    let line = format!("  - {{ name: {own}, rate: {rate}, classes: [{}] }}\n", members.join(", "));
    if line.len() <= LINE_MAX {
        text.push_str(&line);
        return;
    }
    let _ = writeln!(text, "  - name: {own}\n    rate: {rate}\n    classes:");
    for member in members {
        let _ = writeln!(text, "      - {member}");
    }
}

fn limit(limit: Limit) -> String {
    let kind = match limit.kind {
        LimitKind::Soft => "soft",
        LimitKind::Hard => "hard",
    };
    format!("limit: {{ rate: {}, kind: {kind} }}", format_rate(limit.rate_bps))
}

/// A name as YAML takes it: in quotes where it is more than letters, digits and what means nothing within a word.
fn name(name: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
    if name.starts_with(|char: char| char.is_ascii_alphanumeric()) && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let mut quoted = "\"".to_owned();
    for char in name.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            char if char.is_ascii_graphic() || char.is_alphanumeric() => quoted.push(char),
            char => {
                let _ = write!(quoted, "\\U{:08X}", u32::from(char));
            }
        }
    }
    quoted + "\""
}
