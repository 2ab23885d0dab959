// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a tree to a policy: everything that can be said about the file without reading another one, all errors at once.

mod class;
mod delay;
mod shares;
mod users;

use crate::diagnostics::{Errors, Problem, Source, Span, did_you_mean, quote};
use crate::fields;
use crate::model::{
    Disposition, Link, MTU_DEFAULT_BYTES, OVERHEAD_DEFAULT_BYTES, POLICY_BYTES_MAX, Policy, Port, Shaper, Unmatched,
};
use crate::reader::{self, Reader, get};
use crate::units::{self, format_size, format_time};
use crate::yaml::{Key, Node, Value};
use class::Written;
use std::collections::HashMap;
use std::sync::Arc;

const POLICY_KEYS: [&str; 8] = ["penstock", "name", "ports", "forward", "links", "malformed", "shaper", "sketch"];
const PORT_KEYS: [&str; 3] = ["device", "rate", "mtu"];
const LINK_KEYS: [&str; 7] = ["name", "port", "rate", "unmatched", "overhead", "delay", "classes"];
const PORTS_EXAMPLE: &str = "such as `ports: { wan: { rate: 1Gbit/s } }`";
const RATE_EXAMPLE: &str = "such as `10Gbit/s`";

/// What packets that wait take at least and at most.
const SHAPER_MIN_BYTES: u64 = 1_000_000;
const SHAPER_MAX_BYTES: u64 = 64_000_000_000;
/// A worker that stays awake longer than that had better never sleep.
const SPIN_MAX_NS: u64 = 1_000_000;
/// Smallest MTU: every IPv4 host takes 68 bytes (RFC 791).
const MTU_MIN_BYTES: u32 = 68;
const MTU_MAX_BYTES: u32 = 65_535;
const OVERHEAD_MAX_BYTES: u64 = 255;
/// A decision has eight bits for its link.
const LINKS_MAX: usize = 255;
/// Longest name of a network device on Linux.
const DEVICE_BYTES_MAX: usize = 15;

const DISPOSITIONS: [(&str, Disposition); 2] = [("pass", Disposition::Pass), ("drop", Disposition::Drop)];

/// The error for a file that is too large to be read.
pub fn too_large(source: &Source) -> Errors {
    let mut reader = Reader::new(source);
    let message = format!("the file is larger than {} MiB", POLICY_BYTES_MAX >> 20);
    let help = "limits of single tenants go into a limits file";
    reader.fail(Span { line: 1, column: 1, end_line: 1, end_column: 2 }, Problem::new(message, help));
    reader.errors
}

/// Checks a whole file.
pub fn policy(source: &Arc<Source>, root: &Node) -> Result<Policy, Errors> {
    let mut reader = Reader::new(source);
    let policy = read_policy(&mut reader, source, root);
    match policy {
        Some(policy) => reader.errors.into_result(policy),
        None => Err(reader.errors),
    }
}

fn read_policy(reader: &mut Reader<'_>, source: &Arc<Source>, root: &Node) -> Option<Policy> {
    let entries = reader.map(root, "a policy", &POLICY_KEYS, "it starts with `penstock: 1`")?;
    let top = Span { end_line: root.span.line, ..root.span };
    if let Some(version) = reader.required(entries, "penstock", top, "this policy", "1") {
        reader.value(version, "`penstock`", "`penstock: 1`", |text| match text {
            "1" => Ok(()),
            _ => Err(Problem::new(format!("format version {} is not known", quote(text)), "write `penstock: 1`")),
        });
    }
    let name = match get(entries, "name") {
        Some(node) => reader.name(node, "the name of a policy"),
        None => Some(stem(source.name())),
    };
    let ports = reader.required(entries, "ports", top, "this policy", "{ wan: { rate: 1Gbit/s } }");
    let ports = ports.map(|node| ports_of(reader, node)).unwrap_or_default();
    let forward = get(entries, "forward").map(|node| forward_of(reader, node, &ports)).unwrap_or_default();
    let malformed = get(entries, "malformed").and_then(|node| reader.word(node, "`malformed`", &DISPOSITIONS));
    let shaper = get(entries, "shaper").map(|node| shaper(reader, node)).unwrap_or_default();
    let sketch = get(entries, "sketch").map(|node| users::sketch(reader, node)).unwrap_or_default();
    let links = reader.required(entries, "links", top, "this policy", "[ ... ]");
    let links = links.map(|node| links_of(reader, node, &ports)).unwrap_or_default();
    Some(Policy {
        name: name.unwrap_or_default(),
        ports,
        forward,
        links,
        malformed: malformed.unwrap_or(Disposition::Pass),
        shaper,
        sketch,
        source: Arc::clone(source),
    })
}

/// What holds packets that wait.
fn shaper(reader: &mut Reader<'_>, node: &Node) -> Shaper {
    let mut shaper = Shaper::default();
    let entries =
        reader.map(node, "`shaper`", &["memory", "spin", "form"], "such as `{ memory: 64MiB }`").unwrap_or_default();
    if let Some(node) = get(entries, "memory")
        && let Some(bytes) = reader.value(node, "`memory`", "such as `64MiB`", units::parse_size)
    {
        shaper.memory_bytes = bytes;
        if !(SHAPER_MIN_BYTES..=SHAPER_MAX_BYTES).contains(&bytes) {
            let range = format!("from {} to {}", format_size(SHAPER_MIN_BYTES), format_size(SHAPER_MAX_BYTES));
            reader.fail(node.span, Problem::new(format!("`memory` of {} is out of range", format_size(bytes)), range));
        }
    }
    if let Some(node) = get(entries, "spin")
        && let Some(spin_ns) = reader.value(node, "`spin`", "such as `50us`", units::parse_time)
    {
        shaper.spin_ns = spin_ns;
        if spin_ns > SPIN_MAX_NS {
            let message = format!("`spin` of {} is too long", format_time(spin_ns));
            reader.fail(node.span, Problem::new(message, format!("at most {}", format_time(SPIN_MAX_NS))));
        }
    }
    let form = get(entries, "form").and_then(|node| reader.word(node, "`form`", &[("wheel", false), ("groups", true)]));
    shaper.in_groups = form.unwrap_or(shaper.in_groups);
    shaper
}

/// A file's name without folder and ending.
fn stem(name: &str) -> String {
    let stem = std::path::Path::new(name).file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// Ports; one that has an error is there all the same, so that links that name it are not reported as well.
fn ports_of(reader: &mut Reader<'_>, node: &Node) -> Vec<Port> {
    let Some(entries) = reader.open_map(node, "`ports`", PORTS_EXAMPLE) else {
        return Vec::new();
    };
    if entries.is_empty() {
        reader.fail(node.span, Problem::new("`ports` is empty", PORTS_EXAMPLE));
    }
    let mut devices: HashMap<String, Span> = HashMap::new();
    let mut ports = Vec::new();
    for (key, node) in entries {
        let name_node = Node { span: key.span, value: Value::Scalar(key.text.clone()) };
        reader.name(&name_node, "the name of a port");
        let mut port =
            Port { name: key.text.clone(), device: None, rate_bps: units::RATE_MAX_BPS, mtu_bytes: MTU_DEFAULT_BYTES };
        read_port(reader, key, node, &mut port, &mut devices);
        ports.push(port);
    }
    ports
}

fn read_port(
    reader: &mut Reader<'_>,
    key: &Key,
    node: &Node,
    port: &mut Port,
    devices: &mut HashMap<String, Span>,
) -> Option<()> {
    let entries = reader.map(node, "a port", &PORT_KEYS, "such as `{ rate: 1Gbit/s, mtu: 9000 }`")?;
    if let Some(rate) = reader.required(entries, "rate", key.span, "this port", "10Gbit/s") {
        port.rate_bps = reader.value(rate, "`rate`", RATE_EXAMPLE, units::parse_rate).unwrap_or(port.rate_bps);
    }
    if let Some(mtu) = get(entries, "mtu") {
        port.mtu_bytes = reader.value(mtu, "`mtu`", "such as `9000`", parse_mtu).unwrap_or(port.mtu_bytes);
    }
    if let Some(node) = get(entries, "device") {
        let device = reader.value(node, "`device`", "such as `eth0`", parse_device)?;
        if let Some(&first) = devices.get(&device) {
            reader.fail_twice(node.span, Problem::new("two ports on one device", "each port has its own"), first);
        }
        devices.insert(device.clone(), node.span);
        port.device = Some(device);
    }
    Some(())
}

/// `9000` or `9000B`: an MTU is a number of bytes to everyone who sets one.
fn parse_mtu(text: &str) -> Result<u32, Problem> {
    let bytes = fields::parse_digits(text.strip_suffix('B').unwrap_or(text));
    match bytes {
        Some(bytes) if (MTU_MIN_BYTES..=MTU_MAX_BYTES).contains(&bytes) => Ok(bytes),
        _ => Err(Problem::new(
            format!("{} is not an MTU", quote(text)),
            format!("bytes of the largest IP packet, from {MTU_MIN_BYTES} to {MTU_MAX_BYTES}"),
        )),
    }
}

fn parse_device(text: &str) -> Result<String, Problem> {
    let is_plain = !text.contains('/') && !text.chars().any(|char| char.is_whitespace() || char.is_control());
    if is_plain && text.len() <= DEVICE_BYTES_MAX {
        return Ok(text.to_owned());
    }
    Err(Problem::new(
        format!("{} is not the name of a network device", quote(text)),
        "such as `eth0`; `ip link` lists them",
    ))
}

/// The index of a port.
fn port_index(reader: &mut Reader<'_>, node: &Node, ports: &[Port]) -> Option<usize> {
    let text = reader.text(node, "`port`", "the name of a port")?;
    let found = ports.iter().position(|port| port.name == text);
    if found.is_none() && !ports.is_empty() {
        let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
        let help = did_you_mean(text, "ports", &names);
        reader.fail(node.span, Problem::new(format!("there is no port {}", quote(text)), help));
    }
    found
}

fn forward_of(reader: &mut Reader<'_>, node: &Node, ports: &[Port]) -> Vec<(usize, usize)> {
    let example = "a list of pairs of ports, such as `[[wan, lan]]`";
    let pairs = reader.list(node, "`forward`", example).unwrap_or_default();
    let mut forward = Vec::new();
    let mut used: HashMap<usize, Span> = HashMap::new();
    for pair in pairs {
        let Some(nodes) = reader.list(pair, "an entry of `forward`", example) else { continue };
        let [a, b] = nodes else {
            let message = format!("an entry of `forward` has two ports, not {}", nodes.len());
            reader.fail(pair.span, Problem::new(message, example));
            continue;
        };
        let found = (port_index(reader, a, ports), port_index(reader, b, ports));
        for (port, node) in [(found.0, a), (found.1, b)] {
            let Some(port) = port else { continue };
            if let Some(first) = used.insert(port, node.span) {
                let message = format!("the port {} is forwarded twice", quote(&ports[port].name));
                reader.fail_twice(node.span, Problem::new(message, "a port is bridged to one other port"), first);
            }
        }
        if let (Some(a), Some(b)) = found {
            forward.push((a, b));
        }
    }
    forward
}

fn links_of(reader: &mut Reader<'_>, node: &Node, ports: &[Port]) -> Vec<Link> {
    let example = "such as `links: [ { name: down, port: lan, rate: 1Gbit/s, classes: [ ... ] } ]`";
    let nodes = reader.list(node, "`links`", example).unwrap_or_default();
    if nodes.len() > LINKS_MAX {
        let message = format!("{} links; at most {LINKS_MAX} are allowed", nodes.len());
        reader.fail(node.span, Problem::new(message, "one link for each port that traffic leaves"));
    }
    let mut names: HashMap<String, Span> = HashMap::new();
    let mut taken: HashMap<usize, Span> = HashMap::new();
    let mut links = Vec::new();
    for node in nodes {
        let Some((link, name_span, port_span)) = link(reader, node, ports) else { continue };
        if let Some(first) = names.insert(link.name.clone(), name_span) {
            let message = format!("two links are called {}", quote(&link.name));
            reader.fail_twice(name_span, Problem::new(message, "names are unique"), first);
        }
        if let Some(first) = taken.insert(link.port, port_span) {
            let message = format!("two links on the port {}", quote(&ports[link.port].name));
            reader.fail_twice(port_span, Problem::new(message, "what leaves a port is one link"), first);
        }
        links.push(link);
    }
    links
}

fn link(reader: &mut Reader<'_>, node: &Node, ports: &[Port]) -> Option<(Link, Span, Span)> {
    let example = "such as `{ name: down, port: lan, rate: 1Gbit/s, classes: [ ... ] }`";
    let entries = reader.map(node, "a link", &LINK_KEYS, example)?;
    let name_node = reader.required(entries, "name", node.span, "this link", "down");
    let name = name_node.and_then(|node| reader.name(node, "the name of a link"));
    let port_node = reader.required(entries, "port", node.span, "this link", "NAME");
    let port = port_node.and_then(|node| port_index(reader, node, ports));
    let rate = get(entries, "rate").and_then(|node| reader.value(node, "`rate`", RATE_EXAMPLE, units::parse_rate));
    let overhead =
        get(entries, "overhead").and_then(|node| reader.value(node, "`overhead`", "such as `18B`", overhead));
    let delay = get(entries, "delay").and_then(|node| delay::delay(reader, node));
    let classes = reader.required(entries, "classes", node.span, "this link", "[ ... ]");
    let mut written = classes.map(|node| classes_of(reader, node)).unwrap_or_default();
    let unmatched = get(entries, "unmatched").and_then(|node| unmatched(reader, node, &written));
    let unmatched = unmatched.unwrap_or(Unmatched::Pass);
    for (index, class) in written.iter().enumerate() {
        if !class.matches && !class.class.is_inner && unmatched != Unmatched::Class(index) {
            let name = quote(&class.class.path);
            let message = format!("the class {name} has neither `match` nor `limits`: no packet would belong to it");
            reader.fail(class.span, Problem::new(message, "add `match: [ ... ]`; `match: [ {} ]` takes every packet"));
        }
    }
    let rate_bps = rate.or_else(|| port.map(|port| ports[port].rate_bps)).unwrap_or(units::RATE_MAX_BPS);
    let at = shares::LinkAt { name: name.as_deref().unwrap_or_default(), rate_bps };
    shares::settle(reader, &mut written, &at);
    let classes = written.into_iter().map(|written| written.class).collect();
    let (name, port) = (name?, port?);
    let overhead_bytes = overhead.unwrap_or(OVERHEAD_DEFAULT_BYTES);
    let link = Link { name, port, rate_bps, unmatched, overhead_bytes, delay, classes, span: node.span };
    Some((link, name_node.map_or(node.span, |node| node.span), port_node.map_or(node.span, |node| node.span)))
}

fn overhead(text: &str) -> Result<u32, Problem> {
    let bytes = units::parse_size(text)?;
    match u32::try_from(bytes) {
        Ok(overhead_bytes) if bytes <= OVERHEAD_MAX_BYTES => Ok(overhead_bytes),
        _ => {
            let help = format!("bytes that each packet counts beyond its IP packet, at most {OVERHEAD_MAX_BYTES}B");
            Err(Problem::new(format!("the overhead {} is too large", quote(text)), help))
        }
    }
}

fn classes_of(reader: &mut Reader<'_>, node: &Node) -> Vec<Written> {
    let nodes = reader.list(node, "`classes`", "a list of classes").unwrap_or_default();
    let mut classes = Vec::new();
    for node in nodes {
        class::class(reader, node, &class::Above::default(), &mut classes);
    }
    let mut names: HashMap<(Option<usize>, &str), Span> = HashMap::new();
    for written in classes.iter().filter(|written| !written.is_rest && !written.class.name.is_empty()) {
        let parent = written.class.parent;
        let Some(first) = names.insert((parent, &written.class.name), written.span) else { continue };
        let name = quote(&written.class.name);
        let (message, help) = match parent.and_then(|parent| classes.get(parent)) {
            None => (format!("two classes of this link are called {name}"), "names are unique within a link"),
            Some(above) => {
                let above = quote(&above.class.path);
                (format!("two children of {above} are called {name}"), "names are unique among siblings")
            }
        };
        reader.fail_twice(written.span, Problem::new(message, help), first);
    }
    classes
}

/// `pass`, `drop`, `{ class: NAME }` or `"class: NAME"`.
fn unmatched(reader: &mut Reader<'_>, node: &Node, classes: &[Written]) -> Option<Unmatched> {
    let what = "`unmatched`";
    let named = match &node.value {
        Value::Map(_) => {
            let entries = reader.map(node, what, &["class"], "")?;
            let class = reader.required(entries, "class", node.span, what, "NAME")?;
            (class.span, reader.text(class, "`class`", "the name of a class")?)
        }
        Value::Scalar(text) if text.starts_with("class:") => (node.span, text["class:".len()..].trim()),
        _ => {
            let words = [("pass", Unmatched::Pass), ("drop", Unmatched::Drop)];
            return reader.value(node, what, "`pass`, `drop` or `{ class: NAME }`", |text| {
                reader::parse_word(text, what, &words)
                    .map_err(|problem| Problem::new(problem.message, "`pass`, `drop` or `{ class: NAME }`"))
            });
        }
    };
    let (span, name) = named;
    let found = classes.iter().position(|written| written.class.path == name);
    let leaves = classes.iter().filter(|written| !written.class.is_inner).map(|written| written.class.path.as_str());
    let Some(index) = found else {
        let help = did_you_mean(name, "classes of this link", &leaves.collect::<Vec<_>>());
        reader.fail(span, Problem::new(format!("there is no class {} in this link", quote(name)), help));
        return None;
    };
    if classes[index].class.is_inner {
        let below: Vec<&str> = leaves.filter(|path| path.starts_with(&format!("{name}/"))).collect();
        let message = format!("the class {} has children: which of them is meant?", quote(name));
        reader.fail(span, Problem::new(message, format!("one of: {}", below.join(", "))));
    }
    Some(Unmatched::Class(index))
}
