// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading a workload file: all errors at once, each with its place.

use std::net::{IpAddr, Ipv6Addr};

use penstock_policy::diagnostics::{Diagnostic, Errors, Problem, Source, Span, did_you_mean, quote};
use penstock_policy::fields::{parse_digits, parse_dscp, parse_number, parse_prefix};
use penstock_policy::matching::Prefix;
use penstock_policy::units::{format_time, parse_rate, parse_size, parse_time};
use penstock_policy::yaml::{self, Key, Node, Value};

use super::{
    Addresses, Arrival, DURATION_MAX_NS, ETHERNET_BYTES, FLOWS_MAX, FlowGroup, Protocol, SizeShare, TimeRange,
    Workload, ipv4,
};

const FILE_KEYS: [&str; 4] = ["penstock-workload", "seed", "duration", "flows"];
const FLOW_KEYS: [&str; 17] = [
    "name",
    "count",
    "rate",
    "peak",
    "size",
    "arrival",
    "start",
    "stop",
    "src",
    "dst",
    "proto",
    "sport",
    "dport",
    "vlan",
    "dscp",
    "ecn",
    "popularity",
];
const ECNS: [&str; 4] = ["not-ect", "ect1", "ect0", "ce"];

impl Workload {
    /// Reads a workload file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(source: &Source) -> Result<Self, Errors> {
        let root = yaml::read(source)?;
        let mut reader = Reader { source, errors: Errors::default() };
        let workload = reader.workload(&root);
        reader.errors.into_result(workload)
    }
}

/// A map whose keys were checked.
#[derive(Clone, Copy)]
struct Fields<'a> {
    entries: &'a [(Key, Node)],
    span: Span,
}

impl<'a> Fields<'a> {
    fn get(&self, key: &str) -> Option<&'a Node> {
        self.entries.iter().find(|(known, _)| known.text == key).map(|(_, node)| node)
    }

    /// The value's place, or the map's when it is missing.
    fn span_of(&self, key: &str) -> Span {
        self.get(key).map_or(self.span, |node| node.span)
    }
}

/// Collects errors. Every method returns a stand-in after an error, so that reading goes on.
struct Reader<'a> {
    source: &'a Source,
    errors: Errors,
}

impl Reader<'_> {
    fn fail(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.errors.push(Diagnostic::new(self.source.place(span), Problem::new(message, help)));
    }

    fn workload(&mut self, root: &Node) -> Workload {
        let mut workload = Workload { seed: 1, duration_ns: 0, groups: Vec::new() };
        let Some(fields) = self.map(root, "a workload", &FILE_KEYS) else { return workload };
        match self.read(fields, "penstock-workload", |text| parse_number(text, "format version", 1)) {
            Some(1) => {}
            Some(_) => {
                self.fail(fields.span_of("penstock-workload"), "there is no format version 0", "version 1 is known")
            }
            None if fields.get("penstock-workload").is_none() => {
                self.fail(
                    fields.span,
                    "`penstock-workload` is missing",
                    "a workload starts with `penstock-workload: 1`",
                );
            }
            None => {}
        }
        if let Some(seed) = self.read(fields, "seed", parse_seed) {
            workload.seed = seed;
        }
        workload.duration_ns = self.required(fields, "duration", "such as `duration: 2s`", parse_time).unwrap_or(1);
        if workload.duration_ns == 0 || workload.duration_ns > DURATION_MAX_NS {
            let help = format!("more than 0s, at most {}", format_time(DURATION_MAX_NS));
            self.fail(fields.span_of("duration"), "the duration is out of range", help);
        }
        let items = match fields.get("flows").map(|node| (&node.value, node.span)) {
            Some((Value::List(items), _)) if !items.is_empty() => items.as_slice(),
            Some((_, span)) => {
                self.fail(span, "`flows` is not a list of groups", "such as `- { name: bulk, rate: 1Mbit/s, ... }`");
                return workload;
            }
            None => {
                self.fail(fields.span, "`flows` is missing", "a list of groups of flows");
                return workload;
            }
        };
        for item in items {
            if let Some(group) = self.group(item, workload.duration_ns) {
                workload.groups.push(group);
            }
        }
        let flows: u64 = workload.groups.iter().map(|group| u64::from(group.count)).sum();
        if flows > u64::from(FLOWS_MAX) {
            self.fail(fields.span_of("flows"), format!("{flows} flows in all"), format!("at most {FLOWS_MAX}"));
        }
        workload
    }

    fn group(&mut self, node: &Node, duration_ns: u64) -> Option<FlowGroup> {
        let fields = self.map(node, "a group of flows", &FLOW_KEYS)?;
        let name = self.required(fields, "name", "such as `name: bulk`", |text| Ok(text.to_owned()));
        let count = self.read(fields, "count", |text| parse_number(text, "number of flows", FLOWS_MAX)).unwrap_or(1);
        if count == 0 {
            self.fail(fields.span_of("count"), "a group without flows", "at least 1");
        }
        let arrival = self.arrival(fields);
        let rate_bps = self.rate(fields, arrival);
        let stop_ns = self.read(fields, "stop", parse_time).map_or(duration_ns, |stop_ns| stop_ns.min(duration_ns));
        let start_ns = self.read(fields, "start", parse_time).unwrap_or(0);
        if start_ns >= stop_ns {
            self.fail(
                fields.span_of("start"),
                "the flows stop before they start",
                "`start` is before `stop` and the end",
            );
        }
        let source = self.addresses(fields, "src", count);
        let destination = self.addresses(fields, "dst", count);
        if let (Some(source), Some(destination)) = (source, destination)
            && source.is_ipv4 != destination.is_ipv4
        {
            self.fail(fields.span_of("dst"), "`src` and `dst` are not of one family", "two IPv4 or two IPv6 addresses");
        }
        let protocol = self.read(fields, "proto", parse_protocol).unwrap_or(Protocol::Udp);
        let header_bytes = match source {
            Some(Addresses { is_ipv4: false, .. }) => 40,
            _ => 20,
        } + match protocol {
            Protocol::Udp => 8,
            Protocol::Tcp => 20,
        } + ETHERNET_BYTES;
        let sizes = self.sizes(fields, header_bytes);
        let group = FlowGroup {
            name: name?,
            count,
            rate_bps: rate_bps?,
            sizes,
            arrival: arrival?,
            start_ns,
            stop_ns,
            source: source?,
            destination: destination?,
            protocol,
            sport: self.read(fields, "sport", parse_port).unwrap_or(1000),
            dport: self.read(fields, "dport", parse_port).unwrap_or(2000),
            vlan: self.read(fields, "vlan", |text| parse_u16(text, "VLAN", 4095)),
            dscp: self.read(fields, "dscp", parse_dscp).unwrap_or(0),
            ecn: self.read(fields, "ecn", parse_ecn).unwrap_or(0),
            popularity: self.popularity(fields),
        };
        (!group.sizes.is_empty()).then_some(group)
    }

    /// `rate`, or `peak` for bursts; the other one has no meaning.
    fn rate(&mut self, fields: Fields<'_>, arrival: Option<Arrival>) -> Option<u64> {
        let (key, other, why) = match arrival? {
            Arrival::Bursts { .. } => ("peak", "rate", "bursts have a `peak`, their rate follows from `on` and `off`"),
            Arrival::Cbr | Arrival::Poisson => ("rate", "peak", "only bursts have a `peak`; use `rate`"),
        };
        if fields.get(other).is_some() {
            self.fail(fields.span_of(other), format!("`{other}` does not go with this arrival"), why);
        }
        self.required(fields, key, &format!("such as `{key}: 10Mbit/s`"), parse_rate)
    }

    fn arrival(&mut self, fields: Fields<'_>) -> Option<Arrival> {
        let Some(node) = fields.get("arrival") else { return Some(Arrival::Cbr) };
        let help = "`cbr`, `poisson` or bursts such as `{ on: 1ms-20ms, off: 50us-500us }`";
        match &node.value {
            Value::Scalar(text) if text == "cbr" => Some(Arrival::Cbr),
            Value::Scalar(text) if text == "poisson" => Some(Arrival::Poisson),
            Value::Map(_) => {
                let bursts = self.map(node, "bursts", &["on", "off"])?;
                let on = self.required(bursts, "on", help, parse_time_range);
                let off = self.required(bursts, "off", help, parse_time_range);
                let (on, off) = (on?, off?);
                if on.min_ns == 0 {
                    self.fail(bursts.span_of("on"), "a burst of no length", "more than 0s, such as `on: 1ms-20ms`");
                }
                Some(Arrival::Bursts { on, off })
            }
            value => {
                self.fail(node.span, format!("{} is not an arrival", value.describe()), help);
                None
            }
        }
    }

    /// One size, or a list of sizes with shares; empty after an error.
    fn sizes(&mut self, fields: Fields<'_>, header_bytes: u16) -> Vec<SizeShare> {
        let Some(node) = fields.get("size") else {
            self.fail(fields.span, "`size` is missing", "such as `size: 1500B`");
            return Vec::new();
        };
        let parse = |text: &str| parse_packet_size(text, header_bytes);
        let mut sizes = Vec::new();
        match &node.value {
            Value::List(items) if !items.is_empty() => {
                for item in items {
                    let Some(fields) = self.map(item, "a size", &["bytes", "share"]) else { continue };
                    // The key is the unit, so a bare number will do here.
                    let parse_bytes = |text: &str| {
                        parse(&if parse_digits(text).is_some() { format!("{text}B") } else { text.to_owned() })
                    };
                    let bytes = self.required(fields, "bytes", "such as `bytes: 64B`", parse_bytes);
                    let share = self.required(fields, "share", "such as `share: 0.5`", parse_positive);
                    if let (Some(bytes), Some(share)) = (bytes, share) {
                        sizes.push(SizeShare { bytes, share });
                    }
                }
            }
            _ => {
                if let Some(bytes) = self.read(fields, "size", parse) {
                    sizes.push(SizeShare { bytes, share: 1.0 });
                }
            }
        }
        sizes
    }

    fn addresses(&mut self, fields: Fields<'_>, key: &str, count: u32) -> Option<Addresses> {
        let prefix = self.required(fields, key, "an address, or a prefix that has one for each flow", parse_prefix)?;
        let width = if prefix.family == 4 { 32 } else { 128 };
        let host_bits = u32::from(width - prefix.length);
        if (1..32).contains(&host_bits) && count > 1 << host_bits {
            let message = format!("`{prefix}` has {} addresses for {count} flows", 1u64 << host_bits);
            self.fail(fields.span_of(key), message, "a shorter prefix, or a single address for all");
        }
        Some(Addresses::prefix(first_address(prefix), prefix.length))
    }

    fn popularity(&mut self, fields: Fields<'_>) -> Option<f64> {
        let node = fields.get("popularity")?;
        let fields = self.map(node, "a popularity", &["zipf"])?;
        self.required(fields, "zipf", "such as `zipf: 1.2`", parse_positive)
    }

    fn map<'n>(&mut self, node: &'n Node, what: &str, known: &[&str]) -> Option<Fields<'n>> {
        let Value::Map(entries) = &node.value else {
            let message = format!("{what} is a map, found {}", node.value.describe());
            self.fail(node.span, message, format!("its keys: {}", known.join(", ")));
            return None;
        };
        for (key, _) in entries {
            if !known.contains(&key.text.as_str()) {
                let message = format!("{what} has no key {}", quote(&key.text));
                self.fail(key.span, message, did_you_mean(&key.text, "its keys", known));
            }
        }
        Some(Fields { entries, span: node.span })
    }

    fn required<T>(
        &mut self,
        fields: Fields<'_>,
        key: &str,
        help: &str,
        parse: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        if fields.get(key).is_none() {
            self.fail(fields.span, format!("`{key}` is missing"), help);
        }
        self.read(fields, key, parse)
    }

    fn read<T>(&mut self, fields: Fields<'_>, key: &str, parse: impl FnOnce(&str) -> Result<T, Problem>) -> Option<T> {
        let node = fields.get(key)?;
        let Value::Scalar(text) = &node.value else {
            self.fail(node.span, format!("`{key}` is a single value, found {}", node.value.describe()), "");
            return None;
        };
        match parse(text) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.errors.push(Diagnostic::new(self.source.place(node.span), problem));
                None
            }
        }
    }
}

fn first_address(prefix: Prefix) -> IpAddr {
    if prefix.family == 4 { IpAddr::V4(ipv4(prefix.address)) } else { IpAddr::V6(Ipv6Addr::from_bits(prefix.address)) }
}

fn parse_seed(text: &str) -> Result<u64, Problem> {
    text.parse()
        .map_err(|_| Problem::new(format!("{} is not a seed", quote(text)), format!("a number from 0 to {}", u64::MAX)))
}

fn parse_positive(text: &str) -> Result<f64, Problem> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err(Problem::new(format!("{} is not a number above 0", quote(text)), "such as `1.2`")),
    }
}

fn parse_u16(text: &str, what: &str, max: u16) -> Result<u16, Problem> {
    parse_number(text, what, u32::from(max)).map(|number| u16::try_from(number).unwrap_or(max))
}

fn parse_port(text: &str) -> Result<u16, Problem> {
    parse_u16(text, "port", u16::MAX)
}

fn parse_ecn(text: &str) -> Result<u8, Problem> {
    let by_name = ECNS.iter().position(|name| *name == text).and_then(|at| u8::try_from(at).ok());
    let by_number = || parse_digits(text).and_then(|number| u8::try_from(number).ok()).filter(|number| *number < 4);
    by_name.or_else(by_number).ok_or_else(|| {
        Problem::new(format!("{} is not an ECN codepoint", quote(text)), "not-ect, ect0, ect1, ce, or 0 to 3")
    })
}

fn parse_protocol(text: &str) -> Result<Protocol, Problem> {
    match text {
        "udp" => Ok(Protocol::Udp),
        "tcp" => Ok(Protocol::Tcp),
        _ => Err(Problem::new(format!("{} is not generated", quote(text)), "`udp` or `tcp`")),
    }
}

/// `1ms-20ms`, or one time for a fixed length.
fn parse_time_range(text: &str) -> Result<TimeRange, Problem> {
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    let range = TimeRange { min_ns: parse_time(min.trim())?, max_ns: parse_time(max.trim())? };
    if range.min_ns > range.max_ns {
        return Err(Problem::new(
            format!("the range {} ends before it starts", quote(text)),
            format!("`{max}-{min}`?"),
        ));
    }
    Ok(range)
}

fn parse_packet_size(text: &str, header_bytes: u16) -> Result<u16, Problem> {
    let bytes = parse_size(text)?;
    match u16::try_from(bytes) {
        Ok(bytes) if bytes >= header_bytes => Ok(bytes),
        _ => Err(Problem::new(
            format!("a packet cannot have the size {}", quote(text)),
            format!("from {header_bytes}B, its headers from Ethernet on, to 65535B"),
        )),
    }
}
