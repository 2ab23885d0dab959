// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan's tuple space search against a linear search over what was written, on random policies and packets.
//!
//! The linear search knows nothing of masks: it compares fields. A policy must compile exactly when no two matches that
//! disagree are equally specific and have a packet in common.

#![allow(clippy::cast_possible_truncation)] // small numbers

use penstock_algo::wire;
use penstock_policy::compile::compile;
use penstock_policy::limits_file::LimitsText;
use penstock_policy::{Plan, Policy};
use proptest::prelude::*;
use std::collections::HashMap;
use std::fmt::Write as _;

type Net = (u8, u128, u8); // family, address, prefix length
type Span = (u32, u32);

#[derive(Debug, Clone, Default)]
struct Item {
    src: Option<Net>,
    dst: Option<Net>,
    proto: Option<u8>,
    dscp: Option<u8>,
    sport: Option<Span>,
    dport: Option<Span>,
    vlan: Option<Span>,
    vni: Option<Span>,
    teid: Option<Span>,
    src_mac: Option<u64>,
    dst_mac: Option<u64>,
    flags: Option<(u8, u8)>, // mask, value
}

#[derive(Debug, Clone)]
struct Packet {
    family: u8, // 0: not IP
    src: u128,
    dst: u128,
    proto: u8,
    dscp: u8,
    ports: Option<(u32, u32)>,
    flags: Option<u8>,
    vlan: Option<u32>,
    vni: Option<u32>,
    teid: Option<u32>,
    macs: Option<(u64, u64)>,
}

#[derive(Debug, Clone)]
struct Class {
    items: Vec<Item>,
    rows: Vec<Item>,
    columns: u8, // of the rows: bit 0 src, 1 dst, 2 vlan, 3 teid
}

fn width(family: u8) -> u32 {
    if family == 4 { 32 } else { 128 }
}

fn in_net(net: Net, family: u8, address: u128) -> bool {
    let host = width(net.0) - u32::from(net.2);
    net.0 == family && (host == 128 || net.1 >> host == address >> host)
}

fn in_span(span: Span, number: Option<u32>) -> bool {
    number.is_some_and(|number| span.0 <= number && number <= span.1)
}

impl Item {
    fn proto(&self) -> Option<u8> {
        self.proto.or(self.flags.map(|_| 6))
    }

    fn matches(&self, packet: &Packet) -> bool {
        self.src.is_none_or(|net| in_net(net, packet.family, packet.src))
            && self.dst.is_none_or(|net| in_net(net, packet.family, packet.dst))
            && self.proto().is_none_or(|proto| packet.family != 0 && packet.proto == proto)
            && self.dscp.is_none_or(|dscp| packet.family != 0 && packet.dscp == dscp)
            && self.sport.is_none_or(|span| in_span(span, packet.ports.map(|ports| ports.0)))
            && self.dport.is_none_or(|span| in_span(span, packet.ports.map(|ports| ports.1)))
            && self.vlan.is_none_or(|span| in_span(span, packet.vlan))
            && self.vni.is_none_or(|span| in_span(span, packet.vni))
            && self.teid.is_none_or(|span| in_span(span, packet.teid))
            && self.src_mac.is_none_or(|mac| packet.macs.is_some_and(|macs| macs.0 == mac))
            && self.dst_mac.is_none_or(|mac| packet.macs.is_some_and(|macs| macs.1 == mac))
            && self.flags.is_none_or(|(mask, value)| packet.flags.is_some_and(|flags| flags & mask == value))
    }

    /// In 1/256 bit, by the definition and floating point.
    fn specificity(&self) -> u32 {
        let mut bits = 0;
        for net in [self.src, self.dst].into_iter().flatten() {
            bits += u32::from(net.2);
        }
        bits += u32::from(self.src.is_some() || self.dst.is_some());
        bits += self.proto().map_or(0, |_| 8) + self.dscp.map_or(0, |_| 6);
        bits += [self.src_mac, self.dst_mac].iter().flatten().count() as u32 * 48;
        bits += self.flags.map_or(0, |(mask, _)| mask.count_ones());
        let spans = [(16, self.sport), (16, self.dport), (12, self.vlan), (24, self.vni), (32, self.teid)];
        let of_spans = spans.iter().filter_map(|&(field, span)| Some((field, span?)));
        bits * 256 + of_spans.map(|(field, (low, high))| field * 256 - log2_q8(high - low + 1)).sum::<u32>()
    }

    /// Whether some packet has both.
    fn meets(&self, other: &Item) -> bool {
        let family = |item: &Item| item.src.or(item.dst).map(|net| net.0);
        let agree = |a: Option<u64>, b: Option<u64>| a.is_none() || b.is_none() || a == b;
        let nets = |a: Option<Net>, b: Option<Net>| match (a, b) {
            (Some(a), Some(b)) => in_net(a, b.0, b.1) || in_net(b, a.0, a.1),
            _ => true,
        };
        let spans = |a: Option<Span>, b: Option<Span>| match (a, b) {
            (Some(a), Some(b)) => a.0 <= b.1 && b.0 <= a.1,
            _ => true,
        };
        let flags = match (self.flags, other.flags) {
            (Some((a_mask, a)), Some((b_mask, b))) => (a ^ b) & a_mask & b_mask == 0,
            _ => true,
        };
        agree(family(self).map(u64::from), family(other).map(u64::from))
            && nets(self.src, other.src)
            && nets(self.dst, other.dst)
            && agree(self.proto().map(u64::from), other.proto().map(u64::from))
            && agree(self.dscp.map(u64::from), other.dscp.map(u64::from))
            && agree(self.src_mac, other.src_mac)
            && agree(self.dst_mac, other.dst_mac)
            && spans(self.sport, other.sport)
            && spans(self.dport, other.dport)
            && spans(self.vlan, other.vlan)
            && spans(self.vni, other.vni)
            && spans(self.teid, other.teid)
            && flags
    }

    fn yaml(&self) -> String {
        let mut text = Vec::new();
        let mut field =
            |name: &str, value: Option<String>| text.extend(value.map(|value| format!("{name}: \"{value}\"")));
        let span = |span: Option<Span>| span.map(|(low, high)| format!("{low}-{high}"));
        let mac = |mac: u64| (0..6).map(|i| format!("{:02x}", mac >> (40 - 8 * i) & 255)).collect::<Vec<_>>().join(":");
        field("src", self.src.map(net_text));
        field("dst", self.dst.map(net_text));
        field("proto", self.proto.map(|proto| proto.to_string()));
        field("dscp", self.dscp.map(|dscp| dscp.to_string()));
        field("sport", span(self.sport));
        field("dport", span(self.dport));
        field("vlan", span(self.vlan));
        field("vni", span(self.vni));
        field("teid", span(self.teid));
        field("src_mac", self.src_mac.map(mac));
        field("dst_mac", self.dst_mac.map(mac));
        let names = ["fin", "syn", "rst", "psh", "ack"];
        let flags = |(mask, value): (u8, u8)| {
            let set = names.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1);
            set.map(|(bit, name)| if value >> bit & 1 == 1 { (*name).to_owned() } else { format!("!{name}") })
                .collect::<Vec<_>>()
                .join(",")
        };
        field("tcp_flags", self.flags.map(flags));
        format!("{{ {} }}", text.join(", "))
    }
}

fn net_text(net: Net) -> String {
    if net.0 == 4 {
        format!("{}/{}", std::net::Ipv4Addr::from(net.1 as u32), net.2)
    } else {
        format!("{}/{}", std::net::Ipv6Addr::from(net.1), net.2)
    }
}

fn log2_q8(value: u32) -> u32 {
    (f64::from(value).log2() * 256.0).floor() as u32
}

// Few values, so that matches meet often and packets hit them.
fn net(family: u8) -> impl Strategy<Value = Net> {
    let base: u128 = if family == 4 { 0x0a00_0000 } else { 0x2001_0db8 << 96 };
    let widths = if family == 4 { vec![0, 7, 8, 30, 31, 32] } else { vec![0, 32, 63, 126, 127, 128] };
    (0_u128..4, proptest::sample::select(widths)).prop_map(move |(low, length)| {
        let host = width(family) - length;
        let address = base | low;
        let address = if host == 128 { 0 } else { address >> host << host };
        (family, address, length as u8)
    })
}

fn few<T: Clone + std::fmt::Debug + 'static>(strategy: impl Strategy<Value = T> + 'static) -> BoxedStrategy<Option<T>> {
    proptest::option::weighted(0.2, strategy).boxed()
}

fn span(max: u32) -> impl Strategy<Value = Span> {
    (0..=max, 0..=max).prop_map(|(a, b)| (a.min(b), a.max(b)))
}

fn item() -> impl Strategy<Value = Item> {
    let addresses = prop_oneof![Just(4_u8), Just(6)].prop_flat_map(|family| {
        let some = move || proptest::option::weighted(0.5, net(family));
        (some(), some())
    });
    let numbers = (few(span(15)), few(span(15)), few(span(3)), few(span(3)), few(span(3)));
    let rest = (few(0_u64..2), few(0_u64..2), few((1_u8..32, 0_u8..32)), few(0_u8..3), few(0_u8..2));
    (addresses, numbers, rest).prop_map(
        |((src, dst), (sport, dport, vlan, vni, teid), (src_mac, dst_mac, flags, p, dscp))| {
            let flags = flags.map(|(mask, value)| (mask, value & mask));
            let ported = sport.is_some() || dport.is_some();
            let proto = p.map(|p| {
                if flags.is_some() {
                    6
                } else if ported {
                    [6, 17, 132][p as usize]
                } else {
                    [6, 17, 1][p as usize]
                }
            });
            let dscp = dscp.map(|dscp| dscp * 46);
            Item { src, dst, proto, dscp, sport, dport, vlan, vni, teid, src_mac, dst_mac, flags }
        },
    )
}

fn row(columns: u8) -> impl Strategy<Value = Item> {
    let family = prop_oneof![Just(4_u8), Just(6)];
    let addresses = family.prop_flat_map(|family| (net(family), net(family)));
    (addresses, 0_u32..3, 0_u32..3).prop_map(move |((src, dst), vlan, teid)| Item {
        src: (columns & 1 != 0).then_some(src),
        dst: (columns & 2 != 0).then_some(dst),
        vlan: (columns & 4 != 0).then_some((vlan, vlan)),
        teid: (columns & 8 != 0).then_some((teid, teid)),
        ..Item::default()
    })
}

fn class() -> impl Strategy<Value = Class> {
    let items = || proptest::collection::vec(item(), 1..4);
    let rows = || (1_u8..16).prop_flat_map(|columns| (proptest::collection::vec(row(columns), 1..5), Just(columns)));
    prop_oneof![
        3 => items().prop_map(|items| Class { items, rows: Vec::new(), columns: 0 }),
        1 => rows().prop_map(|(rows, columns)| Class { items: Vec::new(), rows, columns }),
        1 => (items(), rows()).prop_map(|(items, (rows, columns))| Class { items, rows, columns }),
    ]
}

fn packet() -> impl Strategy<Value = Packet> {
    let ip = (prop_oneof![Just(4_u8), Just(4), Just(6), Just(0)], 0_u128..4, 0_u128..4, 0_u8..4, 0_u8..2);
    let transport = (proptest::option::of((0_u32..16, 0_u32..16)), 0_u8..32);
    let some = |max: u32| proptest::option::of(0..=max);
    let macs = proptest::option::of((0_u64..2, 0_u64..2));
    (ip, transport, some(3), some(3), some(3), macs).prop_map(
        |((family, src, dst, p, dscp), (ports, flags), vlan, vni, teid, macs)| {
            let base: u128 = if family == 4 { 0x0a00_0000 } else { 0x2001_0db8 << 96 };
            let proto = [6, 17, 132, 1][p as usize];
            let ports = ports.filter(|_| proto != 1 && family != 0);
            Packet {
                family,
                src: base | src,
                dst: base | dst,
                proto,
                dscp: dscp * 46,
                ports,
                flags: Some(flags).filter(|_| proto == 6 && ports.is_some()),
                vlan,
                vni,
                teid,
                macs,
            }
        },
    )
}

/// As `wire.h` says.
fn key(packet: &Packet) -> wire::Key {
    let mut words = [0_u64; 8];
    let mut present = 0;
    if packet.family == 4 {
        words[0] = (packet.src as u64) << 32 | packet.dst as u64;
    } else if packet.family == 6 {
        words[0] = (packet.src >> 64) as u64;
        words[2] = packet.src as u64;
        words[3] = (packet.dst >> 64) as u64;
        words[4] = packet.dst as u64;
    }
    if packet.family != 0 {
        words[1] = u64::from(packet.family) << 56 | u64::from(packet.proto) << 48 | u64::from(packet.dscp) << 40;
    }
    if let Some((sport, dport)) = packet.ports {
        words[1] |= u64::from(wire::PST_KEY_HAS_PORTS) << 56 | u64::from(sport) << 16 | u64::from(dport);
    }
    if let Some(flags) = packet.flags {
        words[1] |= u64::from(wire::PST_KEY_HAS_TCP) << 56 | u64::from(flags) << 32;
    }
    if let Some(vlan) = packet.vlan {
        words[5] |= u64::from(vlan) << 48;
        present |= wire::PST_KEY_HAS_VLAN;
    }
    if let Some((src, dst)) = packet.macs {
        words[5] |= src;
        words[6] |= dst;
        present |= wire::PST_KEY_HAS_MAC;
    }
    if let Some(vni) = packet.vni {
        words[7] |= u64::from(vni) << 32;
        present |= wire::PST_KEY_HAS_VNI;
    }
    if let Some(teid) = packet.teid {
        words[7] |= u64::from(teid);
        present |= wire::PST_KEY_HAS_TEID;
    }
    words[6] |= u64::from(present) << 48;
    wire::Key { words }
}

fn policy(classes: &[Class]) -> (String, HashMap<String, String>) {
    let mut text =
        "penstock: 1\nports: { lan: { rate: 1Gbit/s } }\nlinks:\n  - name: down\n    port: lan\n    classes:\n"
            .to_owned();
    let mut files = HashMap::new();
    for (index, class) in classes.iter().enumerate() {
        let _ = writeln!(text, "      - name: c{index}");
        if !class.items.is_empty() {
            let items: Vec<String> = class.items.iter().map(Item::yaml).collect();
            let _ = writeln!(text, "        match: [ {} ]", items.join(", "));
        }
        if class.rows.is_empty() {
            continue;
        }
        let _ = writeln!(text, "        limits: {{ file: f{index} }}");
        let names = ["src", "dst", "vlan", "teid"];
        let columns: Vec<&str> = (0..4).filter(|bit| class.columns >> bit & 1 == 1).map(|bit| names[bit]).collect();
        let mut csv = format!("name,{},rate\n", columns.join(","));
        for (row, cells) in class.rows.iter().enumerate() {
            let number = |span: Option<Span>| span.map(|span| span.0.to_string());
            let cells = [cells.src.map(net_text), cells.dst.map(net_text), number(cells.vlan), number(cells.teid)];
            let cells: Vec<String> = cells.into_iter().flatten().collect();
            let _ = writeln!(csv, "r{index}-{row},{},1Mbit/s", cells.join(","));
        }
        files.insert(format!("f{index}"), csv);
    }
    (text, files)
}

/// Class and row by trying everything.
fn linear(classes: &[Class], packet: &Packet) -> (Option<usize>, Option<String>) {
    let mut best: Option<(u32, usize, Option<usize>)> = None;
    let mut take = |specificity: u32, class: usize, row: Option<usize>| {
        if best.is_none_or(|best| best.0 < specificity) {
            best = Some((specificity, class, row));
        }
    };
    for (index, class) in classes.iter().enumerate() {
        for item in class.items.iter().filter(|item| item.matches(packet)) {
            take(item.specificity(), index, None);
        }
        if class.items.is_empty() {
            for (row, item) in class.rows.iter().enumerate().filter(|(_, item)| item.matches(packet)) {
                take(item.specificity(), index, Some(row));
            }
        }
    }
    let Some((_, class, mut row)) = best else { return (None, None) };
    if !classes[class].items.is_empty() {
        let rows = classes[class].rows.iter().enumerate().filter(|(_, item)| item.matches(packet));
        row = rows.max_by_key(|(_, item)| item.specificity()).map(|(row, _)| row);
    }
    (Some(class), row.map(|row| format!("r{class}-{row}")))
}

fn is_ambiguous(classes: &[Class]) -> bool {
    let tie = |a: &Item, b: &Item| a.specificity() == b.specificity() && a.meets(b);
    let mut link: Vec<(usize, bool, &Item)> = Vec::new();
    for (index, class) in classes.iter().enumerate() {
        link.extend(class.items.iter().map(|item| (index, false, item)));
        if class.items.is_empty() {
            link.extend(class.rows.iter().map(|row| (index, true, row)));
        } else {
            let rows = &class.rows;
            if rows.iter().enumerate().any(|(index, row)| rows[..index].iter().any(|other| tie(row, other))) {
                return true;
            }
        }
    }
    let differ = |a: &(usize, bool, &Item), b: &(usize, bool, &Item)| a.1 || b.1 || a.0 != b.0;
    link.iter().enumerate().any(|(index, a)| link[..index].iter().any(|b| differ(a, b) && tie(a.2, b.2)))
}

/// Class and row as `classify.h` finds them.
struct Search<'a> {
    plan: &'a Plan,
    rules: HashMap<(u32, wire::Key), u16>,
    rows: HashMap<(u32, wire::Key), usize>,
}

impl<'a> Search<'a> {
    fn new(plan: &'a Plan) -> Self {
        let rules: HashMap<_, _> = plan.rule_keys.iter().map(|key| ((key.tuple, key.value), key.rule)).collect();
        let rows: HashMap<_, _> =
            plan.entries.iter().enumerate().map(|(row, entry)| ((entry.tuple, entry.value), row)).collect();
        assert_eq!((rules.len(), rows.len()), (plan.rule_keys.len(), plan.entries.len()), "keys are unique");
        Self { plan, rules, rows }
    }

    fn masked(&self, tuple: u32, key: &wire::Key) -> (u32, wire::Key) {
        let mut value = *key;
        let mask = &self.plan.tuples[tuple as usize];
        for index in 0..8 {
            value.words[index] &= mask.mask.words[index];
            assert_eq!(mask.words >> index & 1 == 1, mask.mask.words[index] != 0);
        }
        (tuple, value)
    }

    fn find(&self, key: &wire::Key) -> (Option<usize>, Option<String>) {
        let link = &self.plan.links[0].wire;
        let mut best: Option<(u32, usize, Option<usize>)> = None;
        for tuple in link.tuple_first..link.tuple_first + link.tuple_count {
            let at = &self.plan.tuples[tuple as usize];
            if best.is_some_and(|best| at.specificity_q8 <= best.0) {
                break;
            }
            let masked = self.masked(tuple, key);
            let hit = if u32::from(at.kind) == wire::PST_TUPLE_RULES {
                let rule = self.rules.get(&masked).map(|&rule| &self.plan.rules[usize::from(rule)]);
                rule.map(|rule| (rule.specificity_q8, rule.class_index as usize, None))
            } else {
                let row = self.rows.get(&masked).copied();
                let class =
                    |row: usize| self.plan.profiles[usize::from(self.plan.entries[row].profile)].class_index as usize;
                row.map(|row| (at.specificity_q8, class(row), Some(row)))
            };
            if let Some(hit) = hit
                && best.is_none_or(|best| best.0 < hit.0)
            {
                best = Some(hit);
            }
        }
        let Some((_, class, mut row)) = best else { return (None, None) };
        let own = &self.plan.classes[class].wire;
        if own.tuple_count > 0 {
            let mut tuples = own.tuple_first..own.tuple_first + own.tuple_count;
            row = tuples.find_map(|tuple| self.rows.get(&self.masked(tuple, key)).copied());
        }
        (Some(class), row.map(|row| self.plan.names.get(row).to_owned()))
    }
}

fn compile_text(text: &str, files: &HashMap<String, String>) -> Result<Plan, penstock_policy::Errors> {
    let policy = Policy::parse("p.yaml", text)?;
    compile(&policy, |name| Ok(LimitsText { name: name.to_owned(), bytes: files[name].clone().into_bytes() }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn the_plan_finds_what_a_linear_search_finds(
        classes in proptest::collection::vec(class(), 1..5),
        packets in proptest::collection::vec(packet(), 64),
    ) {
        let (text, files) = policy(&classes);
        match compile_text(&text, &files) {
            Err(errors) => prop_assert!(is_ambiguous(&classes), "{text}\n{files:?}\n{errors}"),
            Ok(plan) => {
                prop_assert!(!is_ambiguous(&classes), "{text}\n{files:?}");
                let search = Search::new(&plan);
                for packet in &packets {
                    let expected = linear(&classes, packet);
                    let found = search.find(&key(packet));
                    prop_assert_eq!(found, expected, "{}\n{:?}\n{:?}", text, files, packet);
                }
            }
        }
    }
}

/// The strategy above must not have become trivial: both outcomes are frequent, and so are hits.
#[test]
fn random_policies_are_of_both_kinds() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut sound, mut hits, mut rows) = (0, 0, 0);
    for _ in 0..500 {
        let classes = proptest::collection::vec(class(), 1..5).new_tree(&mut runner).unwrap().current();
        if is_ambiguous(&classes) {
            continue;
        }
        sound += 1;
        for _ in 0..64 {
            let (class, row) = linear(&classes, &packet().new_tree(&mut runner).unwrap().current());
            hits += usize::from(class.is_some());
            rows += usize::from(row.is_some());
        }
    }
    assert!((100..450).contains(&sound), "{sound} of 500 are sound");
    assert!(hits > sound * 5 && rows > sound, "{hits} hits, {rows} rows in {sound} policies");
}
