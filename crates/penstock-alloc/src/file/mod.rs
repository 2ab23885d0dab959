// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network file: format version 1, read with every error at once, and written.
//!
//! Beside what the format fixes, a port may have a `buffer` and a class a `demand`.
//!
//! Bounds    [`NETWORK_BYTES_MAX`], [`PORTS_MAX`], [`CLASSES_MAX`], [`STEPS_MAX`]. A path meets no switch twice, so it is no longer
//!           than there are switches.

mod names;
mod paths;
mod write;

use crate::model::{Class, Limit, LimitKind, LocalPolicy, Network, Port, PortId};
use names::Names;
pub(crate) use names::unknown;
use paths::Paths;
use penstock_policy::diagnostics::{Errors, Problem, Source, Span, quote};
use penstock_policy::fields::{parse_digits, parse_weight};
use penstock_policy::reader::{Reader, get};
use penstock_policy::units::{parse_rate, parse_size};
use penstock_policy::yaml::{self, Key, Node, Value};
use std::collections::{HashMap, HashSet};

/// Largest network file; the tree that is read from it takes ten times as much memory.
pub const NETWORK_BYTES_MAX: usize = 256 << 20;
/// Most ports.
pub const PORTS_MAX: usize = 1 << 20;
/// Most classes.
pub const CLASSES_MAX: usize = 1 << 20;
/// Most ports of all paths together.
pub const STEPS_MAX: usize = 1 << 26;
/// Longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// What may wait in a port that does not say: the buffer that the paper's simulations have, section 5. It is the same for every rate,
/// as buffers belong to switches and not to links: 32 us at 100 Gbit/s, 3.2 ms at 1 Gbit/s.
pub const BUFFER_DEFAULT_BYTES: u64 = 400_000;

const NETWORK_KEYS: [&str; 4] = ["penstock-network", "ports", "classes", "local"];
const PORT_KEYS: [&str; 4] = ["name", "switch", "rate", "buffer"];
const CLASS_KEYS: [&str; 6] = ["name", "priority", "weight", "limit", "demand", "paths"];
const LOCAL_KEYS: [&str; 5] = ["port", "class", "priority", "weight", "limit"];
const LIMIT_KEYS: [&str; 2] = ["rate", "kind"];
const KINDS: [(&str, LimitKind); 2] = [("soft", LimitKind::Soft), ("hard", LimitKind::Hard)];

const PORT_EXAMPLE: &str = "{ name: l1-s1, switch: l1, rate: 100Gbit/s }";
const CLASS_EXAMPLE: &str = "{ name: a, paths: [ [h1-l1, l1-s1] ] }";
const LOCAL_EXAMPLE: &str = "{ port: l1-s1, class: a, weight: 2 }";
const LIMIT_EXAMPLE: &str = "such as `{ rate: 40Gbit/s, kind: soft }`";
const RATE_EXAMPLE: &str = "such as `100Gbit/s`";

impl Network {
    /// Reads a network file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(source: &Source) -> Result<Network, Errors> {
        let mut reader = Reader::new(source);
        if source.text().len() > NETWORK_BYTES_MAX {
            let message = format!("the file is larger than {} MiB", NETWORK_BYTES_MAX >> 20);
            let start = Span { line: 1, column: 1, end_line: 1, end_column: 2 };
            reader.fail(start, Problem::new(message, "name fewer paths for each class, or plan parts of the network"));
            return Err(reader.errors);
        }
        let root = yaml::read_as(source, "penstock-network: 1")?;
        match read(&mut reader, &root) {
            Some(network) => reader.errors.into_result(network),
            None => reader.errors.into_result(Network::default()),
        }
    }

    /// The network as a file that [`Network::parse`] reads back.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        write::network(self)
    }
}

fn read(reader: &mut Reader<'_>, root: &Node) -> Option<Network> {
    if let Value::Map(entries) = &root.value
        && let (Some((key, _)), None) = (entries.first(), get(entries, "penstock-network"))
        && matches!(key.text.as_str(), "penstock" | "penstock-workload")
    {
        let what = if key.text == "penstock" { "policy of one node" } else { "workload" };
        let help = "a network starts with `penstock-network: 1`";
        reader.fail(key.span, Problem::new(format!("this is the {what}, not a network"), help));
        return None;
    }
    let entries = reader.map(root, "a network", &NETWORK_KEYS, "it starts with `penstock-network: 1`")?;
    let top = Span { end_line: root.span.line, ..root.span };
    if let Some(version) = reader.required(entries, "penstock-network", top, "this network", "1") {
        reader.value(version, "`penstock-network`", "`penstock-network: 1`", |text| match text {
            "1" => Ok(()),
            _ => {
                let message = format!("format version {} is not known", quote(text));
                Err(Problem::new(message, "write `penstock-network: 1`"))
            }
        });
    }
    let mut network = Network::default();
    let ports_node = reader.required(entries, "ports", top, "this network", &format!("[ {PORT_EXAMPLE} ]"));
    let mut port_names = Names::new("port");
    if let Some(node) = ports_node {
        network.ports = ports(reader, node, &mut port_names);
    }
    let classes_node = reader.required(entries, "classes", top, "this network", &format!("[ {CLASS_EXAMPLE} ]"));
    let mut class_names = Names::new("class");
    if let Some(node) = classes_node {
        let mut paths = Paths::new(&network.ports, &port_names);
        network.classes = classes(reader, node, &mut class_names, &mut paths);
    }
    if let Some(node) = get(entries, "local") {
        let known = Known { ports: &port_names, class_names: &class_names, classes: &network.classes };
        network.local = local(reader, node, &known);
    }
    Some(network)
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
fn ports<'n>(reader: &mut Reader<'_>, node: &'n Node, names: &mut Names<'n>) -> Vec<Port> {
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
fn own_name<'n>(
    reader: &mut Reader<'_>,
    item: &Node,
    entries: &'n [(Key, Node)],
    names: &mut Names<'n>,
) -> Option<String> {
    let noun = names.noun;
    let node = reader.required(entries, "name", item.span, &format!("this {noun}"), "NAME")?;
    // A name that is wrong is a name all the same, so that those who use it are not reported as well.
    let name = match (word(reader, node, &format!("the name of a {noun}")), &node.value) {
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

/// Classes; one that has an error is there all the same, so that local policies that name it are not reported as well.
fn classes<'n>(
    reader: &mut Reader<'_>,
    node: &'n Node,
    names: &mut Names<'n>,
    paths: &mut Paths<'_, 'n>,
) -> Vec<Class> {
    let items = items(reader, node, "`classes`", CLASSES_MAX, CLASS_EXAMPLE);
    let mut classes = Vec::with_capacity(items.len());
    for item in items {
        let example = format!("such as `{CLASS_EXAMPLE}`");
        let Some(entries) = reader.map(item, "a class", &CLASS_KEYS, &example) else { continue };
        let Some(name) = own_name(reader, item, entries, names) else { continue };
        let terms = terms(reader, entries);
        let demand = get(entries, "demand");
        let demand_bps = demand.and_then(|node| reader.value(node, "`demand`", RATE_EXAMPLE, parse_rate));
        let listed = reader.required(entries, "paths", item.span, "this class", "[ [h1-l1, l1-s1] ]");
        classes.push(Class {
            name,
            priority: terms.priority.unwrap_or(0),
            weight: terms.weight.unwrap_or(1),
            limit: terms.limit,
            demand_bps,
            paths: listed.and_then(|node| paths.read(reader, node)).unwrap_or_default(),
        });
    }
    if paths.steps() > STEPS_MAX {
        let message = format!("the paths have {} ports in all", paths.steps());
        let help = format!("{STEPS_MAX} are the most: name fewer paths for each class");
        reader.fail(Span { end_line: node.span.line, ..node.span }, Problem::new(message, help));
    }
    classes
}

/// What a class says of itself, and a local policy in its place.
struct Terms {
    priority: Option<u32>,
    weight: Option<u32>,
    limit: Option<Limit>,
}

fn terms(reader: &mut Reader<'_>, entries: &[(Key, Node)]) -> Terms {
    let priority = get(entries, "priority");
    let weight = get(entries, "weight");
    Terms {
        priority: priority.and_then(|node| reader.value(node, "`priority`", "such as `0`", parse_priority)),
        weight: weight.and_then(|node| reader.value(node, "`weight`", "such as `2`", parse_weight)),
        limit: get(entries, "limit").and_then(|node| limit(reader, node)),
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
struct Known<'a, 'n> {
    ports: &'a Names<'n>,
    class_names: &'a Names<'n>,
    /// Those whose paths are wrong have none.
    classes: &'a [Class],
}

fn local(reader: &mut Reader<'_>, node: &Node, known: &Known<'_, '_>) -> Vec<LocalPolicy> {
    let mut local = Vec::new();
    let met = met(known.classes);
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
        let has_paths = known.classes.get(class as usize).is_some_and(|class| !class.paths.is_empty());
        if has_paths && !met.contains(&(class as usize, port)) {
            let (class, port) = (quote(known.class_names.name(class)), quote(known.ports.name(port)));
            let message = format!("no path of {class} meets the port {port}");
            reader.fail(item.span, Problem::new(message, "remove it, or name a port of the class's paths"));
        }
        let Terms { priority, weight, limit } = terms;
        local.push(LocalPolicy { port, class, priority, weight, limit });
    }
    local
}
