// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes: match items, limits, and what is not built yet.

use super::reader::{Reader, get, parse_word};
use crate::diagnostics::{Problem, Span, quote};
use crate::fields;
use crate::matching::Match;
use crate::model::{Class, Item, Limit, LimitsFile};
use crate::terms::{Action, METERS, ON_EXCESS, Terms};
use crate::units;
use crate::yaml::{Key, Node, Value};

const CLASS_KEYS: [&str; 11] =
    ["name", "match", "limit", "limits", "mode", "delay", "weight", "guarantee", "ceiling", "children", "users"];
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
const RATE_EXAMPLE: &str = "such as `100Mbit/s`";

/// A class, and what its link has to know of how it was written.
pub struct Written {
    pub class: Class,
    /// Of its name.
    pub span: Span,
    /// Whether it has a `match` or `limits`, be they right or wrong.
    pub matches: bool,
}

/// Reads a class.
pub fn class(reader: &mut Reader<'_>, node: &Node) -> Option<Written> {
    let entries = reader.map(node, "a class", &CLASS_KEYS, CLASS_EXAMPLE)?;
    let name_node = reader.required(entries, "name", node.span, "this class", "NAME");
    let name = name_node.and_then(|node| reader.name(node, "the name of a class"));
    let items = get(entries, "match").map(|node| items(reader, node)).unwrap_or_default();
    let is_shadow = get(entries, "mode").is_some_and(|node| shadow(reader, node));
    let limit = get(entries, "limit").and_then(|node| limit(reader, node, is_shadow));
    let limits = get(entries, "limits").and_then(|node| limits_file(reader, node, is_shadow));
    let delay = get(entries, "delay").and_then(|node| super::delay::delay(reader, node));
    if let (Some((key, _)), true) = (find(entries, "limits"), get(entries, "limit").is_some()) {
        let message = "`limit` and `limits` in one class: a packet is held to one limit, the class's or its row's";
        reader.fail(key.span, Problem::new(message, "keep one of them, or make two classes"));
    }
    for (key, value) in entries {
        not_yet(reader, key, value);
    }
    let span = name_node.map_or(node.span, |node| node.span);
    let matches = get(entries, "match").or_else(|| get(entries, "limits")).is_some();
    Some(Written { class: Class { name: name?, items, limit, limits, delay, span }, span, matches })
}

fn find<'n>(entries: &'n [(Key, Node)], key: &str) -> Option<&'n (Key, Node)> {
    entries.iter().find(|(known, _)| known.text == key)
}

/// Shares are not built. Their keys are checked for form, so that what is said about them stays true later.
fn not_yet(reader: &mut Reader<'_>, key: &Key, value: &Node) {
    let well_formed = match key.text.as_str() {
        "weight" => reader.value(value, "`weight`", "such as `2`", weight).is_some(),
        "guarantee" | "ceiling" => {
            reader.value(value, &format!("`{}`", key.text), RATE_EXAMPLE, units::parse_rate).is_some()
        }
        "children" => reader.list(value, "`children`", "a list of classes").is_some(),
        "users" => reader.open_map(value, "`users`", "such as `{ key: dst, fair: sketch }`").is_some(),
        _ => return,
    };
    if well_formed {
        let message = format!("not yet: `{}` needs fair shares between classes, which are not built", key.text);
        reader.fail(key.span, Problem::new(message, "remove it; `limit` and `limits` are enforced"));
    }
}

fn weight(text: &str) -> Result<(), Problem> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let all_digits = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_positive = text.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    if all_digits(whole) && all_digits(fraction) && is_positive {
        return Ok(());
    }
    Err(Problem::new(format!("{} is not a weight", quote(text)), "a positive number such as `2`"))
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

fn read_terms(reader: &mut Reader<'_>, entries: &[(Key, Node)], shadow_class: bool) -> Terms {
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
