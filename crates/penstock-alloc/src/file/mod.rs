// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network file: format version 1, read with every error at once, and written.
//!
//! Beside what the format fixed at first, a port may have a `buffer`, a class a `demand` and a `safe` rate, and a network `aggregates`.
//!
//! Bounds    [`NETWORK_BYTES_MAX`], [`PORTS_MAX`], [`CLASSES_MAX`], [`STEPS_MAX`], [`AGGREGATES_MAX`], [`AGGREGATES_OF_CLASS_MAX`]. A path meets no switch twice, so it is no longer
//!           than there are switches.

mod aggregates;
mod names;
mod paths;
mod reserved;
mod write;

use crate::model::{Class, Limit, LimitKind, LocalPolicy, Network, Port, PortId};
use names::Names;
pub(crate) use names::unknown;
use paths::{Paths, Ports};
use penstock_policy::diagnostics::{Errors, Problem, Source, Span, quote};
use penstock_policy::fields::{parse_digits, parse_weight};
use penstock_policy::reader::{Reader, get};
use penstock_policy::units::{parse_rate, parse_size};
use penstock_policy::yaml::{self, Key, Node, Value};
use reserved::HardLimits;
use std::collections::{HashMap, HashSet};

/// Largest network file. Read class by class, it takes about twice its size of memory; with the classes before the ports, 26 times.
pub const NETWORK_BYTES_MAX: usize = 256 << 20;
/// Most ports.
pub const PORTS_MAX: usize = 1 << 20;
/// Most classes.
pub const CLASSES_MAX: usize = 1 << 20;
/// Most ports of all paths together.
pub const STEPS_MAX: usize = 1 << 25;
/// Most aggregates.
pub const AGGREGATES_MAX: usize = 1 << 20;
/// Most aggregates that a class is a member of: each is one more step on all of its paths.
pub const AGGREGATES_OF_CLASS_MAX: usize = 8;
/// Longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// What may wait in a port that does not say: the buffer that the paper's simulations have, section 5. It is the same for every rate,
/// as buffers belong to switches and not to links: 32 us at 100 Gbit/s, 3.2 ms at 1 Gbit/s.
pub const BUFFER_DEFAULT_BYTES: u64 = 400_000;

const NETWORK_KEYS: [&str; 5] = ["penstock-network", "ports", "classes", "local", "aggregates"];
const PORT_KEYS: [&str; 4] = ["name", "switch", "rate", "buffer"];
const CLASS_KEYS: [&str; 7] = ["name", "priority", "weight", "limit", "demand", "safe", "paths"];
const LOCAL_KEYS: [&str; 5] = ["port", "class", "priority", "weight", "limit"];
const LIMIT_KEYS: [&str; 2] = ["rate", "kind"];
const KINDS: [(&str, LimitKind); 2] = [("soft", LimitKind::Soft), ("hard", LimitKind::Hard)];

const PORT_EXAMPLE: &str = "{ name: l1-s1, switch: l1, rate: 100Gbit/s }";
const CLASS_EXAMPLE: &str = "{ name: a, paths: [ [h1-l1, l1-s1] ] }";
const LOCAL_EXAMPLE: &str = "{ port: l1-s1, class: a, weight: 2 }";
const LIMIT_EXAMPLE: &str = "such as `{ rate: 40Gbit/s, kind: soft }`";
const RATE_EXAMPLE: &str = "such as `100Gbit/s`";

impl Network {
    /// Reads a network file, whether or not its hard limits fit.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(source: &Source) -> Result<Network, Errors> {
        Self::parse_checked(source).map(|(network, _)| network)
    }

    /// Reads a network file. The errors beside the network are what must not be applied of it: its [`crate::problems`], each where the file says the
    /// rate of that port or aggregate. Such a network can be planned all the same.
    ///
    /// # Errors
    /// Everything that is wrong with it, hard limits that do not fit as well.
    pub fn parse_checked(source: &Source) -> Result<(Network, Errors), Errors> {
        let mut reader = Reader::new(source);
        if source.text().len() > NETWORK_BYTES_MAX {
            let message = format!("the file is larger than {} MiB", NETWORK_BYTES_MAX >> 20);
            let start = Span { line: 1, column: 1, end_line: 1, end_column: 2 };
            reader.fail(start, Problem::new(message, "name fewer paths for each class, or plan parts of the network"));
            return Err(reader.errors);
        }
        let mut reading = Reading::new(reader);
        // Classes, of which there may be many, are read as they come when the ports are there already.
        let mut take = |before: &[(Key, Node)], key: &Key, item: Node| reading.take(before, key, item);
        let root = yaml::read_items(source, "penstock-network: 1", &mut take)?;
        reading.finish(&root);
        let Reading { mut reader, network, unfit, .. } = reading;
        if reader.errors.is_empty() {
            return Ok((network, unfit.into_result(()).err().unwrap_or_default()));
        }
        reader.errors.append(unfit);
        reader.errors.into_result((network, Errors::default()))
    }

    /// The network as a file that [`Network::parse`] reads back.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        write::network(self)
    }
}

/// A network that is being read.
struct Reading<'s> {
    reader: Reader<'s>,
    network: Network,
    port_names: Names,
    class_names: Names,
    /// There once the ports were read.
    paths: Option<Paths>,
    hard_limits: HardLimits,
    /// Hard limits that do not fit.
    unfit: Errors,
}

impl<'s> Reading<'s> {
    fn new(reader: Reader<'s>) -> Self {
        let (port_names, class_names) = (Names::new("port"), Names::new("class"));
        Self {
            reader,
            network: Network::default(),
            port_names,
            class_names,
            paths: None,
            hard_limits: HardLimits::default(),
            unfit: Errors::default(),
        }
    }

    /// Reads a class that comes behind the ports; gives everything else back.
    fn take(&mut self, before: &[(Key, Node)], key: &Key, item: Node) -> Option<Node> {
        let (true, Some(ports)) = (key.text == "classes", get(before, "ports")) else { return Some(item) };
        self.ports(ports);
        self.class(&item);
        None
    }

    /// What comes behind the last item.
    fn finish(&mut self, root: &Node) {
        let reader = &mut self.reader;
        if let Value::Map(entries) = &root.value
            && let (Some((key, _)), None) = (entries.first(), get(entries, "penstock-network"))
            && matches!(key.text.as_str(), "penstock" | "penstock-workload")
        {
            let what = if key.text == "penstock" { "policy of one node" } else { "workload" };
            let help = "a network starts with `penstock-network: 1`";
            reader.fail(key.span, Problem::new(format!("this is the {what}, not a network"), help));
            return;
        }
        let start = "it starts with `penstock-network: 1`";
        let Some(entries) = reader.map(root, "a network", &NETWORK_KEYS, start) else { return };
        let top = Span { end_line: root.span.line, ..root.span };
        version(reader, entries, top);
        let ports = reader.required(entries, "ports", top, "this network", &format!("[ {PORT_EXAMPLE} ]"));
        let classes = reader.required(entries, "classes", top, "this network", &format!("[ {CLASS_EXAMPLE} ]"));
        if let Some(node) = ports {
            self.ports(node);
        }
        if let Some(node) = classes {
            self.classes(node);
        }
        let errors_before = self.reader.errors.count();
        if let Some(node) = get(entries, "local") {
            let known = Known { ports: &self.port_names, class_names: &self.class_names, network: &self.network };
            let local = local(&mut self.reader, node, &known, &mut self.hard_limits);
            self.network.local = local;
        }
        if let Some(node) = get(entries, "aggregates") {
            let known = aggregates::Known { ports: &self.port_names, classes: &self.class_names };
            self.network.aggregates = aggregates::read(&mut self.reader, node, known);
        }
        // A local policy that is wrong may hold in the place of a hard limit; and what is too much is not looked into.
        if self.reader.errors.count() == errors_before && self.is_within_bounds() {
            self.unfit = reserved::unfit(self.reader.source, &self.network, &self.hard_limits, entries);
        }
    }

    fn is_within_bounds(&self) -> bool {
        self.steps() <= STEPS_MAX && self.network.classes.len() <= CLASSES_MAX
    }

    /// Ports of all paths.
    fn steps(&self) -> usize {
        self.paths.as_ref().map_or(0, Paths::steps)
    }

    /// Reads the ports, once.
    fn ports(&mut self, node: &Node) {
        if self.paths.is_none() {
            self.network.ports = ports(&mut self.reader, node, &mut self.port_names);
            self.paths = Some(Paths::new(&self.network.ports));
        }
    }

    /// Reads the classes that came before the ports, and says if there are too many in all.
    fn classes(&mut self, node: &Node) {
        for item in items(&mut self.reader, node, "`classes`", CLASSES_MAX, CLASS_EXAMPLE) {
            self.class(item);
        }
        let steps = self.steps();
        let start = Span { end_line: node.span.line, ..node.span };
        if steps > STEPS_MAX {
            let help = format!("{STEPS_MAX} are the most: name fewer paths for each class");
            self.reader.fail(start, Problem::new(format!("the paths have {steps} ports in all"), help));
        }
        let count = self.network.classes.len();
        if count > CLASSES_MAX {
            let help = format!("{CLASSES_MAX} are the most");
            self.reader.fail(start, Problem::new(format!("`classes` has {count} entries"), help));
        }
    }

    /// Reads a class; one that has an error is there all the same, so that local policies that name it are not reported as well.
    fn class(&mut self, item: &Node) {
        let reader = &mut self.reader;
        let example = format!("such as `{CLASS_EXAMPLE}`");
        let Some(entries) = reader.map(item, "a class", &CLASS_KEYS, &example) else { return };
        let Some(name) = own_name(reader, item, entries, &mut self.class_names) else { return };
        let terms = terms(reader, entries);
        if let Some(span) = terms.hard_limit {
            self.hard_limits.of_class(self.network.classes.len(), span);
        }
        let demand = get(entries, "demand");
        let demand_bps = demand.and_then(|node| reader.value(node, "`demand`", RATE_EXAMPLE, parse_rate));
        let safe = get(entries, "safe");
        let safe_bps = safe.and_then(|node| reader.value(node, "`safe`", RATE_EXAMPLE, parse_rate));
        let listed = reader.required(entries, "paths", item.span, "this class", "[ [h1-l1, l1-s1] ]");
        let known = Ports { ports: &self.network.ports, names: &self.port_names };
        let paths = match (listed, &mut self.paths) {
            (Some(node), Some(paths)) => paths.read(reader, node, known),
            // A network without ports has been told so.
            _ => None,
        };
        self.network.classes.push(Class {
            name,
            priority: terms.priority.unwrap_or(0),
            weight: terms.weight.unwrap_or(1),
            limit: terms.limit,
            demand_bps,
            safe_bps,
            paths: paths.unwrap_or_default(),
        });
    }
}

fn version(reader: &mut Reader<'_>, entries: &[(Key, Node)], top: Span) {
    let Some(version) = reader.required(entries, "penstock-network", top, "this network", "1") else { return };
    reader.value(version, "`penstock-network`", "`penstock-network: 1`", |text| match text {
        "1" => Ok(()),
        _ => {
            let message = format!("format version {} is not known", quote(text));
            Err(Problem::new(message, "write `penstock-network: 1`"))
        }
    });
}

/// A list of maps of which there are not too many.
fn items<'n>(reader: &mut Reader<'_>, node: &'n Node, what: &str, most: usize, example: &str) -> &'n [Node] {
    let items = reader.list(node, what, &format!("such as `[ {example} ]`")).unwrap_or_default();
    if items.len() > most {
        let message = format!("{what} has {} entries", items.len());
        reader.fail(node.span, Problem::new(message, format!("{most} are the most")));
        return &[];
    }
    items
}

/// Ports; one that has an error is there all the same, so that paths that name it are not reported as well.
fn ports(reader: &mut Reader<'_>, node: &Node, names: &mut Names) -> Vec<Port> {
    let items = items(reader, node, "`ports`", PORTS_MAX, PORT_EXAMPLE);
    if items.is_empty() && reader.errors.is_empty() {
        reader.fail(node.span, Problem::new("`ports` is empty", format!("such as `[ {PORT_EXAMPLE} ]`")));
    }
    let mut ports = Vec::with_capacity(items.len());
    for item in items {
        let example = format!("such as `{PORT_EXAMPLE}`");
        let Some(entries) = reader.map(item, "a port", &PORT_KEYS, &example) else { continue };
        let Some(name) = own_name(reader, item, entries, names) else { continue };
        let switch = reader.required(entries, "switch", item.span, "this port", "l1");
        let switch = switch.and_then(|node| word(reader, node, "the name of a switch"));
        let rate = reader.required(entries, "rate", item.span, "this port", "100Gbit/s");
        let rate_bps = rate.and_then(|node| reader.value(node, "`rate`", RATE_EXAMPLE, parse_rate));
        let buffer = get(entries, "buffer");
        let buffer_bytes = buffer.and_then(|node| reader.value(node, "`buffer`", "such as `400KB`", parse_size));
        ports.push(Port {
            name,
            switch: switch.unwrap_or_default(),
            rate_bps: rate_bps.unwrap_or(1),
            buffer_bytes: buffer_bytes.unwrap_or(BUFFER_DEFAULT_BYTES),
        });
    }
    ports
}

/// A word; other than names of a policy it may have slashes, as ports of switches often do.
fn word(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<String> {
    reader.value(node, what, "a name such as `l1-s1`", |text| match text {
        _ if text.len() > NAME_BYTES_MAX => {
            Err(Problem::new(format!("{what} {} is too long", quote(text)), format!("at most {NAME_BYTES_MAX} bytes")))
        }
        _ if text.chars().any(|char| char.is_control() || char.is_whitespace()) => {
            let message = format!("{what} {} has a space or a control character", quote(text));
            Err(Problem::new(message, "a name is one word"))
        }
        _ => Ok(text.to_owned()),
    })
}

/// The name of an entry, which no other one has; none when it was there before.
fn own_name(reader: &mut Reader<'_>, item: &Node, entries: &[(Key, Node)], names: &mut Names) -> Option<String> {
    let noun = names.noun;
    let node = reader.required(entries, "name", item.span, &format!("this {noun}"), "NAME")?;
    // A name that is wrong is a name all the same, so that those who use it are not reported as well.
    let name = match (word(reader, node, &format!("the name of {} {noun}", names.article())), &node.value) {
        (Some(name), _) => name,
        (None, Value::Scalar(text)) if !text.is_empty() => text.clone(),
        _ => return None,
    };
    if let Some(first) = names.add(node) {
        let message = format!("there are two {} of the name {}", names.plural(), quote(&name));
        reader.fail_twice(node.span, Problem::new(message, "rename one"), first);
        return None;
    }
    Some(name)
}

/// What a class says of itself, and a local policy in its place.
struct Terms {
    priority: Option<u32>,
    weight: Option<u32>,
    limit: Option<Limit>,
    /// Where the limit is said, if it is a hard one.
    hard_limit: Option<Span>,
}

fn terms(reader: &mut Reader<'_>, entries: &[(Key, Node)]) -> Terms {
    let priority = get(entries, "priority");
    let weight = get(entries, "weight");
    let limit = get(entries, "limit").and_then(|node| Some((limit(reader, node)?, node.span)));
    Terms {
        priority: priority.and_then(|node| reader.value(node, "`priority`", "such as `0`", parse_priority)),
        weight: weight.and_then(|node| reader.value(node, "`weight`", "such as `2`", parse_weight)),
        limit: limit.map(|(limit, _)| limit),
        hard_limit: limit.filter(|(limit, _)| limit.kind == LimitKind::Hard).map(|(_, span)| span),
    }
}

/// A priority: a whole number, 0 is served first.
///
/// # Errors
/// It is something else.
pub fn parse_priority(text: &str) -> Result<u32, Problem> {
    parse_digits(text).ok_or_else(|| {
        let help = "a whole number from 0 up; smaller ones are served first";
        Problem::new(format!("{} is not a priority", quote(text)), help)
    })
}

fn limit(reader: &mut Reader<'_>, node: &Node) -> Option<Limit> {
    let entries = reader.map(node, "`limit`", &LIMIT_KEYS, LIMIT_EXAMPLE)?;
    let rate = reader.required(entries, "rate", node.span, "this limit", "40Gbit/s");
    let rate_bps = rate.and_then(|node| reader.value(node, "`rate`", RATE_EXAMPLE, parse_rate));
    let kind = get(entries, "kind").map(|node| reader.word(node, "`kind`", &KINDS));
    let kind = kind.unwrap_or(Some(LimitKind::Soft))?;
    Some(Limit { rate_bps: rate_bps?, kind })
}

/// Which class has a path through which port.
fn met(classes: &[Class]) -> HashSet<(usize, PortId)> {
    let steps = |class: &Class| class.paths.iter().flatten().copied().collect::<Vec<_>>();
    classes
        .iter()
        .enumerate()
        .flat_map(|(index, class)| steps(class).into_iter().map(move |port| (index, port)))
        .collect()
}

/// What a local policy may speak of.
struct Known<'a> {
    ports: &'a Names,
    class_names: &'a Names,
    /// Classes whose paths are wrong have none.
    network: &'a Network,
}

fn local(reader: &mut Reader<'_>, node: &Node, known: &Known<'_>, hard_limits: &mut HardLimits) -> Vec<LocalPolicy> {
    let mut local = Vec::new();
    let met = met(&known.network.classes);
    let mut seen: HashMap<(PortId, u32), Span> = HashMap::new();
    for item in items(reader, node, "`local`", CLASSES_MAX, LOCAL_EXAMPLE) {
        let example = format!("such as `{LOCAL_EXAMPLE}`");
        let Some(entries) = reader.map(item, "a local policy", &LOCAL_KEYS, &example) else { continue };
        let port_node = reader.required(entries, "port", item.span, "this local policy", "l1-s1");
        let port = port_node.and_then(|node| known.ports.find(reader, node));
        let class_node = reader.required(entries, "class", item.span, "this local policy", "a");
        let class = class_node.and_then(|node| known.class_names.find(reader, node));
        let is_something = ["priority", "weight", "limit"].iter().any(|key| get(entries, key).is_some());
        if !is_something {
            let help = "add a `priority`, a `weight` or a `limit` that holds there in the place of the class's";
            reader.fail(item.span, Problem::new("this local policy replaces nothing", help));
        }
        let terms = terms(reader, entries);
        let (Some(port), Some(class)) = (port, class) else { continue };
        if let Some(&first) = seen.get(&(port, class)) {
            let message = "there are two local policies for this class at this port";
            reader.fail_twice(item.span, Problem::new(message, "make them one"), first);
            continue;
        }
        seen.insert((port, class), item.span);
        let of = &known.network.classes[class as usize];
        if !of.paths.is_empty() && !met.contains(&(class as usize, port)) {
            let port = quote(&known.network.ports[port as usize].name);
            let message = format!("no path of {} meets the port {port}", quote(&of.name));
            reader.fail(item.span, Problem::new(message, "remove it, or name a port of the class's paths"));
        }
        let Terms { priority, weight, limit, hard_limit } = terms;
        if let Some(span) = hard_limit {
            hard_limits.at_port(port, class, span);
        }
        local.push(LocalPolicy { port, class, priority, weight, limit });
    }
    local
}
