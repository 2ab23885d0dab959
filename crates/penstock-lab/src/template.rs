// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario file before its variables have values.

use crate::document;
use crate::nodes;
use crate::results::ALL;
use crate::scenario::{
    Enforce, Forward, HOSTS_MAX, Load, PaperNumber, Scenario, Series, Tenant, Traffic, UdpLoad, VERSION, Variable,
};
use penstock_policy::diagnostics::{Diagnostic, Errors, Problem, Source, Span, did_you_mean, quote};
use penstock_policy::yaml::{self, Node, Value};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Values of variables, by name.
pub type Values = BTreeMap<String, String>;

/// A scenario file that was read, and is right at every point of its sweep.
#[derive(Debug)]
pub struct Template {
    source: Source,
    root: Node,
    points: Vec<Values>,
}

impl Template {
    /// Reads a scenario file and tries all of its points.
    ///
    /// # Errors
    /// What is wrong with it, with file, line and column.
    pub fn parse(name: &str, text: String) -> Result<Self, Errors> {
        let source = Source::new(name, text);
        let root = yaml::read(&source)?;
        let points = points(&sweep(&source, &root)?);
        let template = Self { source, root, points };
        for point in &template.points {
            template.at(point)?;
        }
        Ok(template)
    }

    /// The points of the sweep; one without variables where nothing is varied.
    #[must_use]
    pub fn points(&self) -> &[Values] {
        &self.points
    }

    /// The scenario at its first point: claim, rules and figure are the same at all of them.
    ///
    /// # Errors
    /// A variable has no values.
    pub fn first(&self) -> Result<Scenario, Errors> {
        static WITHOUT: Values = Values::new();
        self.at(self.points.first().unwrap_or(&WITHOUT))
    }

    /// The scenario at a point.
    ///
    /// # Errors
    /// What is wrong with it there.
    pub fn at(&self, point: &Values) -> Result<Scenario, Errors> {
        let mut values = point.clone();
        values.extend(tenant_addresses(&self.root));
        let mut root = self.root.clone();
        let mut errors = Errors::default();
        substitute(&mut root, &values, &mut |span, problem| {
            errors.push(Diagnostic::new(self.source.place(span), problem));
        });
        errors.into_result(())?;
        let scenario: Scenario = document::read(&self.source, &root)?;
        match wrong_with(&scenario) {
            None => Ok(scenario),
            Some((keys, problem)) => Err(self.at_keys(&root, keys, problem)),
        }
    }

    fn at_keys(&self, root: &Node, keys: &[&str], problem: Problem) -> Errors {
        let mut node = root;
        for key in keys {
            node = child(node, key).unwrap_or(node);
        }
        let mut errors = Errors::default();
        errors.push(Diagnostic::new(self.source.place(node.span), problem));
        errors
    }
}

fn child<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    match &node.value {
        Value::Map(entries) => entries.iter().find(|(key, _)| key.text == name).map(|(_, node)| node),
        _ => None,
    }
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Sweep(Vec<Variable>);

fn sweep(source: &Source, root: &Node) -> Result<Vec<Variable>, Errors> {
    match child(root, "sweep") {
        Some(node) => document::read::<Sweep>(source, node).map(|sweep| sweep.0),
        None => Ok(Vec::new()),
    }
}

/// Every combination; the first variable changes fastest.
fn points(sweep: &[Variable]) -> Vec<Values> {
    sweep.iter().rev().fold(vec![Values::new()], |points, variable| {
        let values = |point: Values| {
            variable.values.iter().map(move |value| {
                let mut point = point.clone();
                point.insert(variable.name.clone(), value.clone());
                point
            })
        };
        points.into_iter().flat_map(values).collect()
    })
}

/// Address of tenant `index` as a sender, and as a receiver.
#[must_use]
pub fn addresses(index: usize) -> (String, String) {
    (format!("10.88.1.{}", index + 10), format!("10.88.2.{}", index + 10))
}

/// `$src.NAME` and `$dst.NAME`, for policies.
fn tenant_addresses(root: &Node) -> Values {
    let Some(Value::List(tenants)) = child(root, "traffic").and_then(|it| child(it, "tenants")).map(|it| &it.value)
    else {
        return Values::new();
    };
    let names = tenants.iter().enumerate().filter_map(|(index, tenant)| match &child(tenant, "name")?.value {
        Value::Scalar(name) => Some((index, name)),
        _ => None,
    });
    names
        .flat_map(|(index, name)| {
            let (source, destination) = addresses(index);
            [(format!("src.{name}"), source), (format!("dst.{name}"), destination)]
        })
        .collect()
}

/// Puts values in the place of `$names`. The sweep itself has none.
fn substitute(node: &mut Node, values: &Values, fail: &mut impl FnMut(Span, Problem)) {
    match &mut node.value {
        Value::Scalar(text) => match replaced(text, values) {
            Ok(Some(new)) => *text = new,
            Ok(None) => {}
            Err(problem) => fail(node.span, problem),
        },
        Value::List(items) => items.iter_mut().for_each(|item| substitute(item, values, fail)),
        Value::Map(entries) => entries.iter_mut().for_each(|(_, value)| substitute(value, values, fail)),
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-')
}

fn replaced(text: &str, values: &Values) -> Result<Option<String>, Problem> {
    let mut parts = text.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    if out.len() == text.len() {
        return Ok(None);
    }
    for part in parts {
        let end = part.find(|letter| !is_of_name(letter)).unwrap_or(part.len());
        let name = part[..end].trim_end_matches('.');
        let Some(value) = values.get(name) else {
            let known: Vec<&str> = values.keys().map(String::as_str).collect();
            let message = format!("there is no variable {}", quote(&format!("${name}")));
            return Err(Problem::new(message, did_you_mean(name, "variables", &known)));
        };
        out += value;
        out += &part[name.len()..];
    }
    Ok(Some(out))
}

type Wrong = (&'static [&'static str], Problem);

/// What serde cannot see.
fn wrong_with(scenario: &Scenario) -> Option<Wrong> {
    if scenario.penstock_lab != VERSION {
        let problem = Problem::new("this format version is not known", "version 1 is");
        return Some((&["penstock-lab"], problem));
    }
    let kinds = [scenario.traffic.is_some(), scenario.compute.is_some(), scenario.network.is_some()];
    if kinds.into_iter().filter(|is_there| *is_there).count() != 1 {
        return Some((&[], Problem::new("a scenario has either `traffic` or `compute`", "or `network`")));
    }
    if scenario.holds_if.is_empty() {
        return Some((&["holds_if"], Problem::new("nothing is claimed", "at least one rule")));
    }
    if scenario.compute.is_none() && scenario.series.is_empty() {
        return Some((&["series"], Problem::new("`series` is missing", "such as `- { name: penstock, enforce: .. }`")));
    }
    let is_of_network = |series: &Series| matches!(series.enforce, Enforce::Lent(_) | Enforce::Own(_));
    if scenario.network.is_none() && scenario.series.iter().any(is_of_network) {
        return Some((
            &["series"],
            Problem::new("`lent` and `own` are of a network", "`network` in the place of `traffic`"),
        ));
    }
    let changes = |series: &Series| matches!(&series.enforce, Enforce::Penstock(it) if !it.changes.is_empty());
    if scenario.traffic.as_ref().is_some_and(|it| it.watch_shares) && scenario.series.iter().any(changes) {
        let problem = Problem::new("`watch_shares` looks at one policy", "no `changes` beside it");
        return Some((&["traffic", "watch_shares"], problem));
    }
    let traffic = scenario.traffic.as_ref().and_then(wrong_with_traffic);
    traffic.or_else(|| nodes::wrong_with(scenario)).or_else(|| wrong_with_rules(scenario))
}

/// A rule that holds whatever is measured, or speaks of what is not.
fn wrong_with_rules(scenario: &Scenario) -> Option<Wrong> {
    for rule in &scenario.holds_if {
        let compared = [&rule.below, &rule.above].into_iter().flatten();
        if rule.at_least.is_none() && rule.at_most.is_none() && compared.clone().next().is_none() {
            let message = format!("the rule about {} has no bound: it always holds", quote(&rule.metric));
            return Some((&["holds_if"], Problem::new(message, "`at_least`, `at_most`, `below` or `above`")));
        }
        if rule.factor.is_some() && compared.clone().next().is_none() {
            let message = format!("the rule about {} has a factor of nothing", quote(&rule.metric));
            return Some((&["holds_if"], Problem::new(message, "`factor` goes with `below` or `above`")));
        }
        let problem = unknown(scenario, compared.chain(&rule.series), rule.tenant.as_ref(), &rule.at);
        if let Some(problem) = problem {
            return Some((&["holds_if"], problem));
        }
    }
    let unknown = |number: &PaperNumber| unknown(scenario, number.series.iter(), number.tenant.as_ref(), &number.at);
    scenario.paper_says.iter().find_map(unknown).map(|problem| (&["paper_says"] as _, problem))
}

/// A series, a tenant or a value of a variable that the scenario does not have.
fn unknown<'a>(
    scenario: &Scenario,
    mut series: impl Iterator<Item = &'a String>,
    tenant: Option<&String>,
    at: &Values,
) -> Option<Problem> {
    let missing = |what: &str, name: &str, known: &[&str]| {
        Some(Problem::new(format!("there is no {what} {}", quote(name)), did_you_mean(name, "known", known)))
    };
    for (name, value) in at {
        let variables: Vec<&str> = scenario.sweep.iter().map(|variable| variable.name.as_str()).collect();
        let Some(variable) = scenario.sweep.iter().find(|variable| variable.name == *name) else {
            return missing("variable", name, &variables);
        };
        if !variable.values.contains(value) {
            let values: Vec<&str> = variable.values.iter().map(String::as_str).collect();
            return missing("value", value, &values);
        }
    }
    // What is computed names its series itself.
    if scenario.compute.is_some() {
        return None;
    }
    let known: Vec<&str> = scenario.series.iter().map(|series| series.name.as_str()).collect();
    if let Some(name) = series.find(|name| !known.contains(&name.as_str())) {
        return missing("series", name, &known);
    }
    let tenants: Vec<String> = match (&scenario.traffic, &scenario.network) {
        (Some(traffic), _) => lines_of(traffic),
        (None, Some(network)) => nodes::names(network),
        (None, None) => Vec::new(),
    };
    let known: Vec<&str> = tenants.iter().map(String::as_str).collect();
    tenant.filter(|name| !tenants.contains(name)).and_then(|name| missing("tenant", name, &known))
}

/// Names of all lines of the results.
fn lines_of(traffic: &Traffic) -> Vec<String> {
    let lines = |tenant: &Tenant| {
        let phases = traffic.phases.iter().map(|phase| format!("{} {}", tenant.name, phase.name));
        [tenant.name.clone()].into_iter().chain(phases).collect::<Vec<_>>()
    };
    let of_changes = ["joins", "leaves"].map(str::to_owned).into_iter().filter(|_| traffic.watch_shares);
    traffic.tenants.iter().flat_map(lines).chain([ALL.to_owned()]).chain(of_changes).collect()
}

fn wrong_with_traffic(traffic: &Traffic) -> Option<Wrong> {
    let wrong = |keys: &'static [&'static str], message: &str, help: &str| Some((keys, Problem::new(message, help)));
    let hosts = 1..=HOSTS_MAX;
    if !hosts.contains(&traffic.senders) || !hosts.contains(&traffic.receivers) {
        return wrong(&["traffic"], "too few or too many hosts", &format!("1 to {HOSTS_MAX} senders and receivers"));
    }
    if traffic.forward == Forward::Redirect && traffic.senders != traffic.receivers {
        let help = "as many receivers as senders, or `forward: route`";
        return wrong(&["traffic", "forward"], "a redirect leads from each sender to its own receiver", help);
    }
    if traffic.forward == Forward::Redirect && traffic.link.is_some() {
        return wrong(&["traffic", "link"], "a redirect passes by the queue of a link", "`forward: route`");
    }
    if traffic.tenants.is_empty() || traffic.tenants.len() > HOSTS_MAX as usize {
        return wrong(&["traffic", "tenants"], "nobody sends, or too many do", &format!("1 to {HOSTS_MAX} tenants"));
    }
    for tenant in &traffic.tenants {
        if tenant.sender >= traffic.senders || tenant.receiver >= traffic.receivers {
            let message = format!("{} is on a host that does not exist", quote(&tenant.name));
            return wrong(&["traffic", "tenants"], &message, "hosts count from 0");
        }
        if traffic.forward == Forward::Redirect && tenant.sender != tenant.receiver {
            let message = format!("{} sends to a receiver that its wire does not lead to", quote(&tenant.name));
            return wrong(&["traffic", "tenants"], &message, "the same number, or `forward: route`");
        }
        let is_iperf = matches!(tenant.load, Load::Tcp(_) | Load::Udp(_));
        if traffic.watch_shares && !matches!(tenant.load, Load::Udp(_)) {
            let message = format!("what {} asks for is not known", quote(&tenant.name));
            return wrong(&["traffic", "watch_shares"], &message, "loads of `udp` only");
        }
        let others = || traffic.tenants.iter().filter(|other| other.sender == tenant.sender).count();
        if matches!(tenant.load, Load::Udp(UdpLoad { even: true, .. })) && others() > 1 {
            let message = format!("{} sends evenly, and others by the same device", quote(&tenant.name));
            return wrong(&["traffic", "tenants"], &message, "a sender of its own");
        }
        if tenant.stop.is_some_and(|stop| stop <= tenant.start || !is_iperf) {
            let message = format!("{} cannot stop then", quote(&tenant.name));
            return wrong(&["traffic", "tenants"], &message, "behind its `start`, with a load of `tcp` or `udp`");
        }
        if !["reno", "cubic", "bbr", "dctcp"].contains(&tenant.tcp.as_str()) {
            let message = format!("{} is no congestion control of this lab", quote(&tenant.tcp));
            return wrong(&["traffic", "tenants"], &message, "reno, cubic, bbr or dctcp");
        }
    }
    None
}
