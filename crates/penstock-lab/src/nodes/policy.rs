// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policy of each node: a wire between its host and the core, with a limit for each class on each link that it passes.

use super::spec::Network;
use crate::quantity::Rate;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Name of a node, counted from 0.
#[must_use]
pub fn node_name(index: usize) -> String {
    format!("gw{}", index + 1)
}

/// Addresses of a flow: where it comes from, and where it goes.
#[must_use]
pub fn addresses(flow: usize) -> (String, String) {
    crate::template::addresses(flow)
}

/// Destinations of each class on a link, which is `up` or `down`.
fn classes_of(network: &Network, node: &str, is_up: bool) -> BTreeMap<String, Vec<String>> {
    let mut classes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (flow, index) in network.flows.iter().zip(0..) {
        let passes = if is_up { flow.from == node } else { flow.to.as_deref() == Some(node) };
        if passes {
            classes.entry(flow.class.clone()).or_default().push(addresses(index).1);
        }
    }
    classes
}

/// The policy of a node.
#[must_use]
pub fn policy(network: &Network, own: &BTreeMap<String, Rate>, node: &str) -> String {
    let mut text = format!(
        "penstock: 1\nname: {node}\nports: {{ up: {{ device: wan, rate: 10Gbit/s }}, down: {{ device: lan, rate: 10Gbit/s }} }}\n\
         forward: [ [ down, up ] ]\nlinks:\n"
    );
    for (port, is_up) in [("up", true), ("down", false)] {
        let link = format!("{node}-{port}");
        let rate = network.links.get(&link).unwrap_or(&network.link);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  - name: {link}\n    port: {port}\n    rate: {}bit/s\n    unmatched: pass\n    classes:",
            rate.0
        );
        let classes = classes_of(network, node, is_up);
        if classes.is_empty() {
            let _ = text.pop();
            text += " []\n";
        }
        for (class, destinations) in classes {
            let matched: Vec<String> = destinations.iter().map(|address| format!("{{ dst: {address} }}")).collect();
            let own = own.get(&format!("{link}/{class}")).unwrap_or(rate).0;
            let limit = format!("{{ rate: {own}bit/s, {} }}", network.terms);
            let _ = writeln!(text, "      - {{ name: {class}, match: [ {} ], limit: {limit} }}", matched.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_on_each_link_that_its_flows_pass() {
        let text = "{ nodes: 2, link: 1Gbit/s, links: { gw1-up: 200Mbit/s }, terms: 'burst: 5ms', flows: [
            { class: a, from: gw1, to: gw2, start: 0s, stop: 1s, load: tcp },
            { class: a, from: gw1, start: 0s, stop: 1s, load: tcp },
            { class: b, from: gw2, start: 0s, stop: 1s, load: tcp } ] }";
        let source = penstock_policy::diagnostics::Source::new("test", text.to_owned());
        let root = penstock_policy::yaml::read(&source).unwrap();
        let network: Network = crate::document::read(&source, &root).unwrap();
        let own = BTreeMap::from([("gw1-up/a".to_owned(), Rate(7_000_000))]);
        let [first, second] = ["gw1", "gw2"].map(|node| policy(&network, &own, node));
        let limit = "{ name: a, match: [ { dst: 10.88.2.10 }, { dst: 10.88.2.11 } ], limit: { rate: 7000000bit/s, burst: 5ms } }";
        assert!(first.contains(limit) && first.contains("rate: 200000000bit/s"), "{first}");
        assert!(
            second.contains("{ name: a, match: [ { dst: 10.88.2.10 } ], limit: { rate: 1000000000bit/s"),
            "{second}"
        );
        assert!(second.contains("{ name: b, match: [ { dst: 10.88.2.12 } ]"), "{second}");
        for text in [first, second] {
            penstock_policy::Policy::parse("policy", &text).unwrap_or_else(|errors| panic!("{errors}"));
        }
    }
}
