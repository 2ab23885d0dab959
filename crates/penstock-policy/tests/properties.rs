// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units come back as they went, ranges are covered exactly, and no input whatever makes the readers panic.

use penstock_policy::compile::compile;
use penstock_policy::fields;
use penstock_policy::limits_file::LimitsText;
use penstock_policy::matching::{Match, Prefix, Range, TcpFlags, log2_q8};
use penstock_policy::units::{self, Depth, RATE_MAX_BPS, RATE_MIN_BPS};
use penstock_policy::{Errors, Plan, Policy};
use proptest::prelude::*;

fn run(text: &str, file: &[u8]) -> Result<Plan, Errors> {
    let policy = Policy::parse("p.yaml", text)?;
    compile(&policy, |name| Ok(LimitsText { name: name.to_owned(), bytes: file.to_vec() }))
}

#[test]
fn units_mean_what_they_say() {
    let rates = [
        ("512bit/s", 512),
        ("60kbit/s", 60_000),
        ("60Kbit/s", 60_000),
        ("1.5Gbit/s", 1_500_000_000),
        ("12MB/s", 96_000_000),
        ("1TB/s", 0),
        ("1Tbit/s", 1_000_000_000_000),
        ("1Mibit/s", 1_048_576),
        ("0.5GiB/s", 4_294_967_296),
        ("100 Mbit/s", 100_000_000),
        ("1.000000001Gbit/s", 1_000_000_001),
        ("511bit/s", 0),
        ("1,5Gbit/s", 0),
        ("1e6bit/s", 0),
        (".5Gbit/s", 0),
        ("5.Gbit/s", 0),
        ("0x10Mbit/s", 0),
    ];
    for (text, expected) in rates {
        assert_eq!(units::parse_rate(text).unwrap_or(0), expected, "{text}");
    }
    let sizes =
        [("64KB", 64_000), ("64KiB", 65_536), ("1500B", 1500), ("1.5KB", 1500), ("1GiB", 1 << 30), ("64kB", 64_000)];
    for (text, expected) in sizes {
        assert_eq!(units::parse_size(text), Ok(expected), "{text}");
    }
    let times = [
        ("17.5ms", 17_500_000),
        ("5us", 5_000),
        ("2s", 2_000_000_000),
        ("7ns", 7),
        ("1min", 60_000_000_000),
        ("0.5h", 1_800_000_000_000),
    ];
    for (text, expected) in times {
        assert_eq!(units::parse_time(text), Ok(expected), "{text}");
    }
    assert_eq!(units::parse_depth("1ms"), Ok(Depth::Time(1_000_000)));
    assert_eq!(units::parse_depth("1KB"), Ok(Depth::Bytes(1_000)));
    let percents = [("0%", 0), ("50%", 1 << 31), ("100%", u32::MAX), ("0.1%", 4_294_967), ("12.5%", 1 << 29)];
    for (text, expected) in percents {
        assert_eq!(units::parse_percent(text), Ok(expected), "{text}");
    }
}

#[test]
fn the_logarithm_is_rounded_down() {
    for value in 1..=70_000_u64 {
        let exact = (value as f64).log2() * 256.0;
        let found = f64::from(log2_q8(value));
        assert!(found <= exact + 1e-9 && exact < found + 1.0 + 1e-9, "log2({value}) is {exact}, not {found}");
    }
    assert_eq!(log2_q8(1 << 32), 32 * 256);
}

#[test]
fn names_of_code_points_are_those_of_the_rfcs() {
    let known = [
        ("ef", 46),
        ("cs0", 0),
        ("cs6", 48),
        ("af11", 10),
        ("af12", 12),
        ("af43", 38),
        ("AF31", 26),
        ("va", 44),
        ("le", 1),
        ("63", 63),
    ];
    for (name, number) in known {
        assert_eq!(fields::parse_dscp(name), Ok(number), "{name}");
    }
    for name in ["af10", "af14", "af51", "cs8", "af1", "64", "-1", ""] {
        assert!(fields::parse_dscp(name).is_err(), "{name}");
    }
}

/// A policy of `count` classes, the last of which repeats the first one's match: thousands of rules are checked in pairs.
#[test]
fn thousands_of_rules_are_checked_against_each_other() {
    let mut text =
        "penstock: 1\nports: { lan: { rate: 1Gbit/s } }\nlinks:\n  - name: down\n    port: lan\n    classes:\n"
            .to_owned();
    for index in 0..5_000 {
        let (high, low) = (index / 256, index % 256);
        text +=
            &format!("      - {{ name: c{index}, match: [ {{ dst: 10.{high}.{low}.0/24, dport: 1000-1999 }} ] }}\n");
    }
    assert_eq!(run(&text, b"").unwrap().rules.len(), 5_000);
    text += "      - { name: last, match: [ { src: 10.0.0.0/24, dst: 10.0.0.0/8, sport: 5 } ] }\n";
    assert!(run(&text, b"").is_ok(), "more specific than all others");
    text += "      - { name: tie, match: [ { src: 10.0.0.0/24, dport: 1500-2499 } ] }\n";
    let errors = run(&text, b"").unwrap_err().render(false);
    assert_eq!(errors.matches("error: ambiguous").count(), 1_000, "as many as are listed");
    assert!(errors.ends_with("p.yaml: 4000 more errors\n"));
}

#[test]
fn the_bad_row_of_two_hundred_thousand_is_named() {
    let mut csv = "name,dst,rate\n".to_owned();
    for index in 0..200_000_u32 {
        let address = std::net::Ipv4Addr::from(0x0a00_0000 + index);
        let rate = if index == 199_997 { "1Mbit" } else { "1Mbit/s" };
        csv += &format!("t{index},{address},{rate}\n");
    }
    let text = "penstock: 1\nports: { lan: { rate: 1Gbit/s } }\nlinks: [ { name: down, port: lan, classes: [ { name: t, limits: { file: t.csv } } ] } ]";
    let errors = run(text, csv.as_bytes()).unwrap_err();
    let place = &errors.diagnostics()[0].place;
    assert_eq!((place.file(), place.line(), place.column(), errors.diagnostics().len()), ("t.csv", 199_999, 20, 1));
    // The same with CR LF and without an end of the last line.
    let errors = run(text, csv.trim_end().replace('\n', "\r\n").as_bytes()).unwrap_err();
    assert_eq!(errors.diagnostics()[0].place.line(), 199_999);
    let plan = run(text, csv.replace("Mbit\n", "Mbit/s\n").as_bytes()).unwrap();
    assert_eq!((plan.entries.len(), plan.names.get(199_997), plan.tuples.len()), (200_000, "t199997", 1));
}

#[test]
fn bytes_that_are_not_text_are_placed() {
    let text = "penstock: 1\nports: { lan: { rate: 1Gbit/s } }\nlinks: [ { name: down, port: lan, classes: [ { name: t, limits: { file: t.csv } } ] } ]";
    let errors = run(text, b"name,dst,rate\na\xc3\xa9,10.0.0.1,1Mbit/s\nb\xff,10.0.0.2,1Mbit/s\n").unwrap_err();
    let place = &errors.diagnostics()[0].place;
    assert_eq!((place.line(), place.column()), (3, 2));
}

#[test]
fn towers_and_bombs_are_refused() {
    for tower in ["[".repeat(1_000_000), "{a: ".repeat(300_000), "- ".repeat(300_000), "? ".repeat(100_000)] {
        assert!(Policy::parse("p.yaml", &tower).is_err());
    }
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    let errors = Policy::parse("p.yaml", &bomb).unwrap_err().render(false);
    assert!(errors.contains("anchors and aliases expand to more than"), "{errors}");
    assert!(
        Policy::parse("p.yaml", &" ".repeat((16 << 20) + 1)).unwrap_err().render(false).contains("larger than 16 MiB")
    );
}

#[test]
fn json_is_a_policy_too() {
    let json = "{\n\t\"penstock\": 1,\n\t\"ports\": {\"lan\": {\"rate\": \"1Gbit/s\"}},\n\t\"links\": [{\"name\":\"down\",\"port\":\"lan\",\"classes\":[\n\t\t{\"name\":\"a\",\"match\":[{\"dst\":\"2001:db8::/32\"},{}],\"limit\":{\"rate\":\"1Mbit\\/s\"}}\n\t]}]\n}\n";
    let plan = run(json, b"").unwrap();
    assert_eq!((plan.rules.len(), plan.limits.len()), (2, 1));
}

/// Words of the language, so that random texts get past the first line.
fn words() -> impl Strategy<Value = String> {
    let words = vec![
        "penstock: 1\n",
        "ports: { lan: { rate: 1Gbit/s } }\n",
        "links:\n",
        "  - name: down\n",
        "    port: lan\n",
        "    classes:\n",
        "      - name: a\n",
        "        match: [ {} ]\n",
        "        limit: { rate: 1Mbit/s }\n",
        "        limits: { file: f }\n",
        "        weight: 2\n",
        "        guarantee: 2Mbit/s\n",
        "        ceiling: 3Mbit/s\n",
        "        burst: 1ms\n",
        "        users: { key: [dst, vlan], fair: tree, entries: 9, file: f }\n",
        "        users: { key: five_tuple, fair: sketch }\n",
        "        children:\n",
        "        - name: b\n",
        "          match: [ { vlan: 1 } ]\n",
        "    unmatched: { class: a/b }\n",
        "{",
        "}",
        "[",
        "]",
        ": ",
        ", ",
        "&a ",
        "*a ",
        "- ",
        "\n",
        "  ",
        "\t",
        "\"",
        "'",
        "#",
        "|",
        ">",
        "!x ",
        "dst: ",
        "10.0.0.0/8",
        "::/0",
        "dport: ",
        "1-2",
        "0",
        "é",
        "\u{2028}",
        "\r",
        "%",
        "? ",
        "---\n",
    ];
    proptest::collection::vec(proptest::sample::select(words), 0..40).prop_map(|words| words.concat())
}

/// Cells of a limits file.
fn cells() -> impl Strategy<Value = Vec<u8>> {
    let cells = vec![
        "name,dst,rate\n",
        "name,src,dst,vlan,vni,teid,rate,burst,excess,on_excess,meter,peak,excess_rate\n",
        "name,five_tuple,rate\n",
        "name,dst,weight,ceiling\n",
        ",",
        "\n",
        "\r\n",
        "\"",
        "a",
        "b",
        "10.0.0.1",
        "10.0.0.0/8",
        "::1",
        "1Mbit/s",
        "udp 10.0.0.1:5 -> 10.0.0.2:5",
        "tcp [::1]:5 -> [::2]:5",
        "rfc2697",
        "10KB",
        "1ms",
        "é",
        "-",
        "->",
        "]",
        "[",
        ":",
    ];
    let bytes = prop_oneof![30 => proptest::sample::select(cells).prop_map(|cell| cell.as_bytes().to_vec()), 1 => Just(vec![0xff])];
    proptest::collection::vec(bytes, 0..60).prop_map(|cells| cells.concat())
}

/// Matches of few values, so that some lie within others. Ranges are never whole: that there are ports would be all they say.
fn item() -> impl Strategy<Value = Match> {
    let prefix = (prop_oneof![Just(4_u8), Just(6)], 0_u128..4, 0_u8..3).prop_map(|(family, low, short)| {
        let width = if family == 4 { 32_u8 } else { 128 };
        let length = if short == 2 { 0 } else { width - short };
        let prefix = Prefix { address: low, length, family };
        Prefix { address: low & prefix.mask(), ..prefix }
    });
    let range =
        || proptest::option::of((0_u32..8, 0_u32..8).prop_map(|(a, b)| Range { low: a.min(b), high: a.max(b) }));
    let flags = (1_u8..4, 0_u8..4).prop_map(|(mask, value)| TcpFlags { mask, value: value & mask });
    let prefixes = (proptest::option::of(prefix.clone()), proptest::option::of(prefix));
    let small = || proptest::option::of(0_u8..2);
    (prefixes, range(), range(), small(), small(), proptest::option::weighted(0.3, flags)).prop_map(
        |((src, dst), dport, vlan, proto, dscp, tcp_flags)| {
            let proto = proto.map(|proto| if proto == 0 { fields::TCP } else { fields::UDP });
            Match { src, dst, dport, vlan, proto, dscp, tcp_flags, ..Match::default() }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn a_match_lies_within_another_as_its_keys_do(inner in item(), loose in item(), keeps in any::<u8>()) {
        // Half of the pairs differ only in what the outer one leaves out.
        let keep = |bit: u8| keeps >> bit & 1 == 1;
        let outer = if keep(7) { loose } else {
            Match {
                src: inner.src.filter(|_| keep(0)),
                dst: inner.dst.filter(|_| keep(1)),
                proto: inner.proto.filter(|_| keep(2)),
                dport: inner.dport.filter(|_| keep(3)).map(|range| Range { low: range.low.saturating_sub(1), ..range }),
                vlan: inner.vlan.filter(|_| keep(4)),
                dscp: inner.dscp.filter(|_| keep(5)),
                tcp_flags: inner.tcp_flags.filter(|_| keep(6)),
                ..Match::default()
            }
        };
        if inner.check().is_ok() && outer.check().is_ok() {
            let outer_keys = outer.keys();
            let by_keys = inner.keys().iter().all(|key| outer_keys.iter().any(|outer| key.is_inside(outer)));
            prop_assert_eq!(inner.is_inside(&outer), by_keys, "{} in {}", inner, outer);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn rates_come_back(rate_bps in RATE_MIN_BPS..=RATE_MAX_BPS, bytes in any::<u64>(), time_ns in any::<u64>()) {
        prop_assert_eq!(units::parse_rate(&units::format_rate(rate_bps)), Ok(rate_bps));
        prop_assert_eq!(units::parse_size(&units::format_size(bytes)), Ok(bytes));
        prop_assert_eq!(units::parse_time(&units::format_time(time_ns)), Ok(time_ns));
    }

    #[test]
    fn ranges_are_covered_once(a in any::<u16>(), b in any::<u16>()) {
        let range = Range { low: u32::from(a.min(b)), high: u32::from(a.max(b)) };
        let prefixes = range.prefixes(16);
        prop_assert!(prefixes.len() <= 30);
        let mut next = range.low;
        for (number, length) in prefixes {
            prop_assert_eq!(number, next, "no gap, no overlap");
            prop_assert_eq!(number % (1 << (16 - length)), 0, "aligned");
            next += 1 << (16 - length);
        }
        prop_assert_eq!(next, range.high + 1);
    }

    #[test]
    fn addresses_are_read_as_the_library_reads_them(text in "[0-9]{1,3}(\\.[0-9]{0,3}){2,4}", address in any::<u32>()) {
        prop_assert_eq!(fields::parse_ipv4(&text), text.parse::<std::net::Ipv4Addr>().ok().map(u32::from));
        prop_assert_eq!(fields::parse_ipv4(&std::net::Ipv4Addr::from(address).to_string()), Some(address));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>(), words in words(), cells in cells()) {
        for policy in [&text, &words, &format!("penstock: 1\n{words}")] {
            if let Err(errors) = run(policy, &cells) {
                prop_assert!(!errors.is_empty() && errors.render(true).contains("error: "));
            }
        }
        let head = "penstock: 1\nports: { lan: { rate: 1Gbit/s } }\nlinks: [ { name: down, port: lan, classes: [ { name: t, limits: { file: f } } ] } ]";
        let users = head.replace("limits: { file: f }", "match: [ {} ], users: { key: dst, fair: sketch, file: f }");
        for policy in [head, &users] {
            if let Err(errors) = run(policy, &cells) {
                prop_assert!(errors.render(false).contains("error: "));
            }
        }
        let _ = (units::parse_rate(&text), units::parse_depth(&text), units::parse_percent(&text), fields::parse_prefix(&text));
        let _ = (fields::parse_mac(&text), fields::parse_tcp_flags(&text), fields::parse_range(&text, "port", 65_535));
    }
}
