// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes: match items, limits, and the classes below.

use super::shares::{self, WrittenShare};
use crate::diagnostics::{Problem, Span};
use crate::fields;
use crate::matching::Match;
use crate::model::{Class, Item, Limit, LimitsFile};
use crate::reader::{Reader, get, parse_word};
use crate::terms::{Action, METERS, ON_EXCESS, Terms};
use crate::units;
use crate::yaml::{Key, Node, Value};
use penstock_algo::share::DEPTH_MAX;

const CLASS_KEYS: [&str; 18] = [
    "name",
    "match",
    "limit",
    "limits",
    "mode",
    "delay",
    "weight",
    "guarantee",
    "ceiling",
    "children",
    "users",
    "on_excess",
    "burst",
    "excess",
    "early_drop",
    "horizon",
    "backlog",
    "ce_threshold",
];
const MATCH_KEYS: [&str; 12] =
    ["src", "dst", "proto", "sport", "dport", "dscp", "vlan", "vni", "teid", "src_mac", "dst_mac", "tcp_flags"];
const TERM_KEYS: [&str; 14] = [
    "burst",
    "excess",
    "on_excess",
    "meter",
    "peak",
    "excess_rate",
    "color_aware",
    "yellow",
    "red",
    "early_drop",
    "horizon",
    "backlog",
    "ce_threshold",
    "mode",
];
const CLASS_EXAMPLE: &str = "such as `{ name: gold, match: [ { dst: 10.1.0.0/16 } ], limit: { rate: 100Mbit/s } }`";
pub const RATE_EXAMPLE: &str = "such as `100Mbit/s`";

/// A class, and what its link has to know of how it was written.
pub struct Written {
    pub class: Class,
    /// Of its name.
    pub span: Span,
    /// Whether it has a `match` or `limits`, be they right or wrong.
    pub matches: bool,
    /// It was not written: it has what belongs to its parent and to no other child.
    pub is_rest: bool,
    pub share: WrittenShare,
}

/// What a class is in.
#[derive(Clone, Default)]
pub struct Above {
    /// A class of the link, by its index.
    parent: Option<usize>,
    /// Its path, and a slash.
    prefix: String,
    /// Classes from the link down to it.
    depth: usize,
    is_shadow: bool,
}

/// Reads a class and those below it.
pub fn class(reader: &mut Reader<'_>, node: &Node, above: &Above, classes: &mut Vec<Written>) {
    let Some(entries) = reader.map(node, "a class", &CLASS_KEYS, CLASS_EXAMPLE) else { return };
    let name_node = reader.required(entries, "name", node.span, "this class", "NAME");
    let name = name_node.and_then(|node| reader.name(node, "the name of a class"));
    let span = name_node.map_or(node.span, |node| node.span);
    if above.depth >= DEPTH_MAX {
        let message = format!("a class {} levels below its link", above.depth + 1);
        return reader.fail(span, Problem::new(message, format!("at most {DEPTH_MAX} are allowed")));
    }
    let items = get(entries, "match").map(|node| items(reader, node)).unwrap_or_default();
    let is_shadow = get(entries, "mode").map_or(above.is_shadow, |node| shadow(reader, node));
    let limit = get(entries, "limit").and_then(|node| limit(reader, node, is_shadow));
    let limits = get(entries, "limits").and_then(|node| limits_file(reader, node, is_shadow));
    let users = get(entries, "users").and_then(|node| super::users::users(reader, node, is_shadow));
    let delay = get(entries, "delay").and_then(|node| super::delay::delay(reader, node));
    let children = get(entries, "children");
    let children = children.and_then(|node| reader.list(node, "`children`", "a list of classes")).unwrap_or_default();
    refuse_pairs(reader, entries, !children.is_empty());
    let share = shares::read(reader, entries, is_shadow);
    if name.is_none() && children.is_empty() {
        return;
    }
    let name = name.unwrap_or_default();
    let path = format!("{}{name}", above.prefix);
    let matches = get(entries, "match").or_else(|| get(entries, "limits")).is_some();
    let is_inner = !children.is_empty();
    let (items, items_of_all) = if is_inner { (Vec::new(), items) } else { (items, Vec::new()) };
    let prefix = format!("{path}/");
    let parent = above.parent;
    let class_of =
        Class { name, path, parent, is_inner, items, items_of_all, limit, limits, delay, share: None, users, span };
    let below = Above { parent: Some(classes.len()), prefix, depth: above.depth + 1, is_shadow };
    classes.push(Written { class: class_of, span, matches, is_rest: false, share });
    for node in children {
        class(reader, node, &below, classes);
    }
    if is_inner {
        classes.extend(rest(classes, &below));
    }
}

/// The name of the child that has what belongs to its parent and to no other child.
pub const REST: &str = "other";

/// That child, if there is anything for it.
fn rest(classes: &[Written], below: &Above) -> Option<Written> {
    let (parent, others) = classes.get(below.parent?..)?.split_first()?;
    // What another child says in the same words is that child's.
    let is_taken =
        |item: &&Item| others.iter().any(|other| other.class.items.iter().any(|own| own.fields == item.fields));
    let items: Vec<Item> = parent.class.items_of_all.iter().filter(|item| !is_taken(item)).copied().collect();
    let span = parent.span;
    let class = Class {
        name: REST.to_owned(),
        path: format!("{}{REST}", below.prefix),
        parent: below.parent,
        is_inner: false,
        limit: None,
        limits: None,
        delay: None,
        share: None,
        users: None,
        span,
        items,
        items_of_all: Vec::new(),
    };
    let share = WrittenShare::of_rest(below.is_shadow);
    let is_wanted = !class.items.is_empty();
    is_wanted.then_some(Written { class, span, matches: true, is_rest: true, share })
}

pub fn find<'n>(entries: &'n [(Key, Node)], key: &str) -> Option<&'n (Key, Node)> {
    entries.iter().find(|(known, _)| known.text == key)
}

/// Keys that do not go together.
fn refuse_pairs(reader: &mut Reader<'_>, entries: &[(Key, Node)], is_inner: bool) {
    let mut refuse = |key: &str, beside: bool, message: &str, help: &str| {
        if let (Some((key, _)), true) = (find(entries, key), beside) {
            reader.fail(key.span, Problem::new(message, help));
        }
    };
    let has = |key| get(entries, key).is_some();
    let message = "`limit` and `limits` in one class: a packet is held to one limit, the class's or its row's";
    refuse("limits", has("limit"), message, "keep one of them, or make two classes");
    let message = "`limit` in a class with `users`";
    refuse("limit", has("users"), message, "`ceiling: RATE` beside `users` is what all of them get at most");
    let message = "`limits` in a class with `users`";
    refuse("limits", has("users"), message, "`users: { file: users.csv }` has a `ceiling` for each user");
    let message = "`limit` in a class with `children`";
    refuse("limit", is_inner, message, "`ceiling: RATE` is what all of them get at most");
    let message = "`limits` in a class with `children`";
    refuse("limits", is_inner, message, "give them to one of its children");
    let message = "`users` in a class with `children`";
    refuse("users", is_inner, message, "give them to one of its children");
}

fn shadow(reader: &mut Reader<'_>, node: &Node) -> bool {
    reader.word(node, "`mode`", &[("shadow", true), ("enforce", false)]).unwrap_or(false)
}

fn items(reader: &mut Reader<'_>, node: &Node) -> Vec<Item> {
    let example = "such as `match: [ { dst: 10.1.0.0/16 }, { proto: udp, dport: 53 } ]`";
    let Some(nodes) = reader.list(node, "`match`", example) else {
        return Vec::new();
    };
    if nodes.is_empty() {
        reader
            .fail(node.span, Problem::new("`match` is an empty list: nothing would match", "`{}` matches everything"));
    }
    nodes.iter().filter_map(|node| item(reader, node)).collect()
}

fn item(reader: &mut Reader<'_>, node: &Node) -> Option<Item> {
    let entries = reader.map(node, "a match item", &MATCH_KEYS, "such as `{ dst: 10.1.0.0/16, proto: udp }`")?;
    let errors_before = reader.errors.diagnostics().len();
    let mut fields = Match::default();
    for (key, node) in entries {
        field(reader, &mut fields, key, node);
    }
    if reader.errors.diagnostics().len() == errors_before
        && let Err(problem) = fields.check()
    {
        reader.fail(node.span, problem);
    }
    Some(Item { fields, span: node.span })
}

fn field(reader: &mut Reader<'_>, fields: &mut Match, key: &Key, node: &Node) {
    let what = format!("`{}`", key.text);
    let number = |noun: &'static str, max| move |text: &str| fields::parse_range(text, noun, max);
    match key.text.as_str() {
        "src" => fields.src = reader.value(node, &what, "a prefix; write one item for each", fields::parse_prefix),
        "dst" => fields.dst = reader.value(node, &what, "a prefix; write one item for each", fields::parse_prefix),
        "proto" => fields.proto = reader.value(node, &what, "such as `udp`", fields::parse_proto),
        "sport" => fields.sport = reader.value(node, &what, "such as `1024-65535`", number("port", 65_535)),
        "dport" => fields.dport = reader.value(node, &what, "such as `53` or `5060-5070`", number("port", 65_535)),
        "dscp" => fields.dscp = reader.value(node, &what, "such as `ef`", fields::parse_dscp),
        "vlan" => fields.vlan = reader.value(node, &what, "such as `100`", number("VLAN identifier", 4_094)),
        "vni" => fields.vni = reader.value(node, &what, "such as `5000`", number("VNI", (1 << 24) - 1)),
        "teid" => fields.teid = reader.value(node, &what, "such as `7`", number("TEID", u32::MAX)),
        "src_mac" => fields.src_mac = reader.value(node, &what, "such as `02:00:5e:10:00:01`", fields::parse_mac),
        "dst_mac" => fields.dst_mac = reader.value(node, &what, "such as `02:00:5e:10:00:01`", fields::parse_mac),
        "tcp_flags" => fields.tcp_flags = tcp_flags(reader, node).or(fields.tcp_flags),
        _ => {}
    }
}

/// Flags in one text, or in a list.
fn tcp_flags(reader: &mut Reader<'_>, node: &Node) -> Option<crate::matching::TcpFlags> {
    let example = "such as `\"syn,!ack\"` or `[syn, \"!ack\"]`";
    let joined = match &node.value {
        Value::List(words) => {
            let texts: Vec<&str> = words.iter().filter_map(|word| reader.text(word, "a TCP flag", example)).collect();
            let joined = Value::Scalar(texts.join(","));
            Some(Node { span: node.span, value: joined })
        }
        _ => None,
    };
    reader.value(joined.as_ref().unwrap_or(node), "`tcp_flags`", example, fields::parse_tcp_flags)
}

fn limit(reader: &mut Reader<'_>, node: &Node, shadow: bool) -> Option<Limit> {
    let known: Vec<&str> = ["rate"].into_iter().chain(TERM_KEYS).collect();
    let entries = reader.map(node, "a limit", &known, "such as `{ rate: 100Mbit/s, burst: 10ms }`")?;
    let rate = reader.required(entries, "rate", node.span, "this limit", "100Mbit/s");
    let rate_bps = rate.and_then(|node| reader.value(node, "`rate`", RATE_EXAMPLE, units::parse_rate));
    let terms = terms(reader, entries, node.span, shadow)?;
    let rate_bps = rate_bps?;
    if let Some((key, problem)) = terms.problem_at(rate_bps) {
        reader.fail(get(entries, key).map_or(node.span, |node| node.span), problem);
        return None;
    }
    Some(Limit { rate_bps, terms })
}

fn limits_file(reader: &mut Reader<'_>, node: &Node, shadow: bool) -> Option<LimitsFile> {
    let known: Vec<&str> = ["file"].into_iter().chain(TERM_KEYS).collect();
    let entries = reader.map(node, "`limits`", &known, "such as `{ file: tenants.csv, burst: 10ms }`")?;
    let file = reader.required(entries, "file", node.span, "`limits`", "tenants.csv")?;
    let path = reader.text(file, "`file`", "such as `tenants.csv`")?.to_owned();
    let errors_before = reader.errors.diagnostics().len();
    let defaults = read_terms(reader, entries, shadow);
    if reader.errors.diagnostics().len() == errors_before {
        // Rows may complete what the defaults leave open: that is found when the file is read.
        for (key, problem) in defaults.profile().err().unwrap_or_default() {
            if let Some(node) = get(entries, key) {
                reader.fail(node.span, problem);
            }
        }
    }
    Some(LimitsFile { path, defaults, span: file.span })
}

/// Terms that must be complete.
fn terms(reader: &mut Reader<'_>, entries: &[(Key, Node)], parent: Span, shadow: bool) -> Option<Terms> {
    let errors_before = reader.errors.diagnostics().len();
    let terms = read_terms(reader, entries, shadow);
    if reader.errors.diagnostics().len() > errors_before {
        return None;
    }
    let problems = terms.profile().err().unwrap_or_default();
    let is_sound = problems.is_empty();
    for (key, problem) in problems {
        // What is missing is missing because of the meter.
        let place = get(entries, key).or_else(|| get(entries, "meter"));
        reader.fail(place.map_or(parent, |node| node.span), problem);
    }
    is_sound.then_some(terms)
}

pub fn read_terms(reader: &mut Reader<'_>, entries: &[(Key, Node)], shadow_class: bool) -> Terms {
    let mut terms = Terms { shadow: shadow_class, ..Terms::default() };
    for (key, node) in entries {
        let what = format!("`{}`", key.text);
        let depth = "such as `17.5ms` or `64KB`";
        match key.text.as_str() {
            "burst" => terms.burst = reader.value(node, &what, depth, units::parse_depth),
            "excess" => terms.excess = reader.value(node, &what, depth, units::parse_depth),
            "on_excess" => terms.on_excess = reader.word(node, &what, &ON_EXCESS),
            "meter" => terms.meter = reader.word(node, &what, &METERS),
            "peak" => terms.peak_bps = reader.value(node, &what, RATE_EXAMPLE, units::parse_rate),
            "excess_rate" => terms.excess_rate_bps = reader.value(node, &what, RATE_EXAMPLE, units::parse_rate),
            "color_aware" => terms.color_aware = reader.word(node, &what, &[("true", true), ("false", false)]),
            "yellow" => terms.yellow = action(reader, node, &what),
            "red" => terms.red = action(reader, node, &what),
            "early_drop" => terms.early_drop_q32 = reader.value(node, &what, "such as `10%`", units::parse_percent),
            "horizon" => terms.horizon_ns = reader.value(node, &what, "such as `200ms`", units::parse_time),
            "backlog" => terms.backlog_bytes = reader.value(node, &what, "such as `1MB`", units::parse_size),
            "ce_threshold" => terms.ce_threshold_ns = reader.value(node, &what, "such as `5ms`", units::parse_time),
            "mode" => terms.shadow |= shadow(reader, node),
            _ => {}
        }
    }
    terms
}

/// `pass`, `drop`, `mark`, `{ dscp: NAME }` or `"dscp: NAME"`.
fn action(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<Action> {
    if let Value::Map(_) = node.value {
        let entries = reader.map(node, what, &["dscp"], "")?;
        let dscp = reader.required(entries, "dscp", node.span, what, "af12")?;
        return reader.value(dscp, "`dscp`", "such as `af12`", fields::parse_dscp).map(Action::Dscp);
    }
    reader.value(node, what, "`pass`, `drop`, `mark` or `{ dscp: af12 }`", |text| {
        if let Some(name) = text.strip_prefix("dscp:") {
            return fields::parse_dscp(name.trim()).map(Action::Dscp);
        }
        let words = [("pass", Action::Pass), ("drop", Action::Drop), ("mark", Action::Mark)];
        parse_word(text, what, &words).map_err(|problem| {
            let help = problem.help.replace("one of: pass, drop, mark", "one of: pass, drop, mark, { dscp: NAME }");
            Problem::new(problem.message, help)
        })
    })
}
