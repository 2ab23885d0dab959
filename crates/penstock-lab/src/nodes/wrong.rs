// SPDX-License-Identifier: MIT OR Apache-2.0
//! What serde cannot see of a network.

use super::policy::{node_name, policy};
use super::spec::{FLOWS_MAX, Fault, Network, Protocol, What};
use crate::results::ALL;
use crate::scenario::{Enforce, Scenario, Series};
use penstock_alloc::model;
use penstock_policy::Policy;
use penstock_policy::diagnostics::{Problem, Source, quote};

type Wrong = (&'static [&'static str], Problem);

const FLOWS: &[&str] = &["network", "flows"];
const SERIES: &[&str] = &["series"];

/// Names of all lines of the results.
#[must_use]
pub fn names(network: &Network) -> Vec<String> {
    let classes = network.flows.iter().map(|flow| flow.class.clone()).chain([ALL.to_owned()]);
    let lines = |class: String| {
        let phases = network.phases.iter().map(|phase| format!("{class} {}", phase.name));
        [class.clone()].into_iter().chain(phases).collect::<Vec<_>>()
    };
    classes.flat_map(lines).collect()
}

/// The first thing that is wrong with a scenario's network, and where.
#[must_use]
pub fn wrong_with(scenario: &Scenario) -> Option<Wrong> {
    let network = scenario.network.as_ref()?;
    let nodes: Vec<String> = (0..network.nodes.min(9) as usize).map(node_name).collect();
    if !(1..=9).contains(&network.nodes)
        || !(1..=9).contains(&network.controllers)
        || ![1, 3, 5].contains(&network.etcd)
    {
        let help = "1 to 9 nodes and controllers, and 1, 3 or 5 members of etcd";
        return Some((&["network"], Problem::new("too few or too many of them", help)));
    }
    if !["reno", "cubic", "bbr"].contains(&network.tcp.as_str()) {
        let message = format!("{} is no congestion control of a network", quote(&network.tcp));
        return Some((&["network", "tcp"], Problem::new(message, "reno, cubic or bbr")));
    }
    wrong_with_flows(network, &nodes)
        .or_else(|| scenario.series.iter().find_map(|it| wrong_with_series(network, it, &nodes)))
}

fn wrong_with_flows(network: &Network, nodes: &[String]) -> Option<Wrong> {
    if network.flows.is_empty() || network.flows.len() > FLOWS_MAX {
        return Some((FLOWS, Problem::new("nobody sends, or too many do", format!("1 to {FLOWS_MAX} flows"))));
    }
    for flow in &network.flows {
        let second = 1_000_000_000;
        if flow.stop <= flow.start || flow.start.0 % second != 0 || flow.stop.0 % second != 0 {
            let message = format!("a flow of {} has no whole seconds", quote(&flow.class));
            return Some((FLOWS, Problem::new(message, "`stop` comes after `start`, both in seconds")));
        }
        if let Some(unknown) = [Some(&flow.from), flow.to.as_ref()].into_iter().flatten().find(|it| !nodes.contains(it))
        {
            return Some((FLOWS, Problem::new(format!("there is no node {}", quote(unknown)), nodes.join(", "))));
        }
        if flow.load == Protocol::Udp && flow.rate.is_none() {
            let message = format!("a flow of {} does not say how fast it is", quote(&flow.class));
            return Some((FLOWS, Problem::new(message, "UDP needs a `rate`")));
        }
    }
    None
}

fn wrong_with_series(network: &Network, series: &Series, nodes: &[String]) -> Option<Wrong> {
    let (files, own, faults): (Vec<&String>, _, &[Fault]) = match &series.enforce {
        Enforce::Lent(lent) => {
            let files = [&lent.network].into_iter().chain(lent.changes.iter().map(|put| &put.network));
            (files.collect(), &lent.own, &lent.faults)
        }
        Enforce::Own(own) => (Vec::new(), &own.own, &[]),
        _ => {
            let message = format!("{} enforces what a network does not know", quote(&series.name));
            return Some((SERIES, Problem::new(message, "`lent` or `own`")));
        }
    };
    for text in files {
        if let Err(errors) = model::Network::parse(&Source::new("network", text.clone())) {
            return Some((SERIES, Problem::new(format!("the network of {}: {errors}", quote(&series.name)), "")));
        }
    }
    let policies = nodes.iter().map(|node| policy(network, own, node));
    if let Some(errors) = policies.filter_map(|text| Policy::parse("policy", &text).err()).next() {
        return Some((&["network"], Problem::new(format!("a node's policy would be wrong: {errors}"), "")));
    }
    let is_of_node = |fault: &Fault| matches!(fault.what, What::ControlCut | What::NodeRebooted);
    let is_right = |fault: &Fault| match &fault.node {
        Some(node) => is_of_node(fault) && nodes.contains(node),
        None => !is_of_node(fault),
    };
    let fault = faults.iter().find(|fault| !is_right(fault) || fault.until.is_some_and(|until| until <= fault.at))?;
    let message = format!("a fault of {} at {} s cannot be", quote(&series.name), fault.at.duration().as_secs_f64());
    Some((SERIES, Problem::new(message, "`node` where it is a node's, and `until` after `at`")))
}
