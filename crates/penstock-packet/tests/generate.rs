// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generated traffic does what its file says, and a wrong file is told so.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)] // a test may fail by either

mod fixtures;

use std::collections::HashMap;

use etherparse::{NetHeaders, PacketHeaders};
use fixtures::{Seen, drain};
use penstock_packet::build::{Ip, Mac, Segment, ethernet};
use penstock_packet::workload::{FlowGroup, Generator, Workload};
use penstock_policy::diagnostics::Source;

const ADDRESSES: &str = "src: 172.16.0.1, dst: 10.0.0.0/8";

fn parse(text: &str) -> Result<Workload, String> {
    Workload::parse(&Source::new("w.yaml", text.to_owned())).map_err(|errors| errors.to_string())
}

/// A workload of one second whose groups are given.
fn workload(groups: &[&str]) -> Workload {
    let lines: Vec<String> = groups.iter().map(|group| format!("  - {{ {group} }}\n")).collect();
    parse(&format!("penstock-workload: 1\nduration: 1s\nflows:\n{}", lines.concat())).unwrap()
}

fn generate(workload: &Workload) -> Vec<Seen> {
    let outcome = drain(&mut Generator::new(workload));
    assert!(outcome.error.is_none());
    assert!(outcome.frames.is_sorted_by_key(|frame| frame.time_ns));
    outcome.frames
}

/// Packets of each destination address (IPv4).
fn by_destination(frames: &[Seen]) -> HashMap<[u8; 4], Vec<&Seen>> {
    let mut flows: HashMap<[u8; 4], Vec<&Seen>> = HashMap::new();
    for frame in frames {
        flows.entry(frame.data[30..34].try_into().unwrap()).or_default().push(frame);
    }
    flows
}

fn wire_bits(frames: &[Seen]) -> u64 {
    frames.iter().map(|frame| u64::from(frame.wire_bytes) * 8).sum()
}

#[test]
fn cbr_flows_have_their_rate_and_their_own_phase() {
    let workload = workload(&[&format!("name: a, count: 50, rate: 1200kbit/s, size: 1500B, {ADDRESSES}")]);
    let frames = generate(&workload);
    let flows = by_destination(&frames);
    assert_eq!(flows.len(), 50);
    let mut phases = Vec::new();
    for flow in 0u8..50 {
        let frames = &flows[&[10, 0, 0, flow]];
        // 1,200,000 / 12,000 = 100 packets a second, 10 ms apart.
        assert_eq!(frames.len(), 100);
        assert!(frames.windows(2).all(|pair| (pair[1].time_ns - pair[0].time_ns).abs_diff(10_000_000) <= 1));
        phases.push(frames[0].time_ns);
    }
    phases.sort_unstable();
    phases.dedup();
    assert_eq!(phases.len(), 50);
    assert!(phases[0] < 2_000_000 && phases[49] > 8_000_000, "{phases:?}");
}

#[test]
fn gaps_are_exact_at_high_rates() {
    // 5.12 ns a packet: whole nanoseconds would be wrong by 2 %.
    let text = "name: a, rate: 100Gbit/s, size: 64B, stop: 1ms, src: 10.0.0.1, dst: 10.0.0.2";
    let packets = generate(&workload(&[text])).len();
    assert!(packets.abs_diff(195_312) <= 1, "{packets}");
}

#[test]
fn poisson_gaps_have_mean_and_deviation_of_an_exponential() {
    let workload = workload(&[&format!("name: a, rate: 240Mbit/s, size: 1500B, arrival: poisson, {ADDRESSES}")]);
    let frames = generate(&workload);
    // 20,000 packets expected, standard deviation 141.
    assert!(frames.len().abs_diff(20_000) < 700, "{}", frames.len());
    let gaps: Vec<f64> = frames.windows(2).map(|pair| (pair[1].time_ns - pair[0].time_ns) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    let variation = variance.sqrt() / mean;
    assert!((variation - 1.0).abs() < 0.05, "{variation}");
}

#[test]
fn bursts_send_at_the_peak_and_pause() {
    let arrival = "arrival: { on: 1ms-2ms, off: 5ms-10ms }";
    let frames = generate(&workload(&[&format!("name: a, peak: 1.2Gbit/s, size: 1500B, {arrival}, {ADDRESSES}")]));
    let gaps: Vec<u64> = frames.windows(2).map(|pair| pair[1].time_ns - pair[0].time_ns).collect();
    // 10 us within a burst; between two, the pause and at most one gap more.
    let pauses =
        gaps.iter().filter(|&&gap| gap > 10_001).inspect(|&&gap| assert!((5_000_000..10_010_001).contains(&gap)));
    let count = pauses.count();
    assert!((83..=167).contains(&count), "{count}");
    let in_bursts = gaps.len() - count;
    assert!((count * 99..=(count + 1) * 200).contains(&in_bursts), "{in_bursts} in {count} bursts");
}

#[test]
fn sizes_come_by_their_shares_at_the_same_rate() {
    let sizes = "size: [ { bytes: 64B, share: 3 }, { bytes: 1500, share: 1 } ]";
    let frames = generate(&workload(&[&format!("name: a, rate: 80Mbit/s, {sizes}, {ADDRESSES}")]));
    let small = frames.iter().filter(|frame| frame.wire_bytes == 64).count();
    let large = frames.iter().filter(|frame| frame.wire_bytes == 1500).count();
    assert_eq!(small + large, frames.len());
    let share = small as f64 / frames.len() as f64;
    assert!((share - 0.75).abs() < 0.02, "{share}");
    assert!(wire_bits(&frames).abs_diff(80_000_000) <= 2 * 12_000, "{}", wire_bits(&frames));
}

#[test]
fn popularity_gives_the_rate_of_the_group_to_few_flows() {
    let text = format!("name: a, count: 1000, rate: 240kbit/s, size: 1500B, popularity: {{ zipf: 1.2 }}, {ADDRESSES}");
    let frames = generate(&workload(&[&text]));
    assert_eq!(frames.len(), 20_000);
    let flows = by_destination(&frames);
    let share = |flow: [u8; 4]| flows.get(&flow).map_or(0, Vec::len) as f64 / frames.len() as f64;
    let norm: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-1.2)).sum();
    for rank in 1u8..=4 {
        let (found, expected) = (share([10, 0, 0, rank - 1]), f64::from(rank).powf(-1.2) / norm);
        assert!((found - expected).abs() < 0.015, "rank {rank}: {found}, expected {expected}");
    }
}

#[test]
fn groups_start_and_stop() {
    let frames = generate(&workload(&[
        &format!("name: a, rate: 12Mbit/s, size: 1500B, start: 200ms, stop: 300ms, {ADDRESSES}"),
        &format!("name: b, rate: 12Mbit/s, size: 500B, start: 900ms, stop: 5s, {ADDRESSES}"),
    ]));
    let times =
        |wire_bytes: u32| frames.iter().filter(move |frame| frame.wire_bytes == wire_bytes).map(|frame| frame.time_ns);
    assert_eq!(times(1500).count(), 100);
    assert!(times(1500).all(|time| (200_000_000..300_000_000).contains(&time)));
    assert_eq!(times(500).count(), 300);
    assert!(times(500).all(|time| (900_000_000..1_000_000_000).contains(&time)));
}

#[test]
fn the_seed_alone_decides() {
    let text = format!("name: a, count: 20, rate: 1Mbit/s, size: 200B, arrival: poisson, {ADDRESSES}");
    let first = workload(&[&text]);
    let other = Workload { seed: 2, ..first.clone() };
    assert_eq!(generate(&first), generate(&first));
    assert_ne!(generate(&first), generate(&other));
}

#[test]
fn frames_are_the_beginning_of_real_packets() {
    for (fields, source, destination, segment, tos) in [
        (
            "src: 172.16.0.1, dst: 10.0.0.0/8, proto: udp, sport: 1, dport: 65535",
            "172.16.0.1",
            "10.0.0.2",
            Segment::udp(1, 65535),
            (0, 0),
        ),
        (
            "src: 172.16.0.0/24, dst: 10.1.2.3, proto: tcp, dscp: ef, ecn: ect0, vlan: 7",
            "172.16.0.2",
            "10.1.2.3",
            Segment::tcp(1000, 2000, 0x10),
            (46, 2),
        ),
        (
            "src: \"2001:db8::/32\", dst: \"2001:db8:1::5\", proto: udp, dscp: 63, ecn: ce",
            "2001:db8::2",
            "2001:db8:1::5",
            Segment::udp(1000, 2000),
            (63, 3),
        ),
        (
            "src: \"2001:db8::1\", dst: \"2001:db8:1::/48\", proto: tcp, vlan: 4094, ecn: ect1",
            "2001:db8::1",
            "2001:db8:1::2",
            Segment::tcp(1000, 2000, 0x10),
            (0, 1),
        ),
    ] {
        let workload = workload(&[&format!("name: a, count: 3, rate: 1Mbit/s, size: 1001B, {fields}")]);
        let FlowGroup { vlan, source: sources, destination: destinations, .. } = &workload.groups[0];
        assert_eq!(sources.at(2).to_string(), source);
        assert_eq!(destinations.at(2).to_string(), destination);
        let ip = Ip::between(sources.at(2), destinations.at(2)).with_tos(tos.0, tos.1);
        let packet = ip.packet(&segment.padded(&ip, 987));
        let whole = ethernet(Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]), vlan.as_slice(), &packet);
        let frames = generate(&workload);
        let frame = frames.iter().find(|frame| whole.starts_with(&frame.data));
        let frame = frame.unwrap_or_else(|| panic!("no such frame: {fields}"));
        assert_eq!(frame.wire_bytes as usize, whole.len());
        // All headers are there.
        let headers = PacketHeaders::from_ethernet_slice(&whole).unwrap();
        assert_eq!(frame.data.len(), whole.len() - headers.payload.slice().len());
        assert!(matches!(headers.net, Some(NetHeaders::Ipv4(..) | NetHeaders::Ipv6(..))));
    }
}

#[test]
fn a_million_flows_take_turns() {
    let text = format!("name: a, count: 1000000, rate: 12kbit/s, size: 1500B, {ADDRESSES}");
    let frames = generate(&workload(&[&text]));
    assert_eq!(frames.len(), 1_000_000);
    assert_eq!(by_destination(&frames).len(), 1_000_000);
}

#[test]
fn errors_say_where_and_what_would_be_right() {
    for (group, expected) in [
        ("name: a, rate: 1Mbit, size: 1500B", &["did you mean `1Mbit/s`?"][..]),
        ("name: a, rate: 1Mbit/s, size: 1500", &["has no unit"]),
        ("name: a, rate: 1Mbit/s, size: 20B", &["from 42B"]),
        ("name: a, rate: 1Mbit/s, size: 30B, proto: tcp", &["from 54B"]),
        ("name: a, rate: 1Mbit/s, size: 70000B", &["to 65535B"]),
        ("name: a, rate: 1Mbit/s, size: 100B, proto: icmp", &["`udp` or `tcp`"]),
        ("name: a, rate: 1Mbit/s, size: 100B, arival: cbr", &["did you mean `arrival`?"]),
        ("name: a, rate: 1Mbit/s, size: 100B, arrival: often", &["`often` is not an arrival"]),
        (
            "name: a, rate: 1Mbit/s, size: 100B, arrival: { on: 1ms, off: 1ms }",
            &["`rate` does not go", "`peak` is missing"],
        ),
        ("name: a, peak: 1Mbit/s, size: 100B", &["`peak` does not go", "`rate` is missing"]),
        ("name: a, peak: 1Mbit/s, size: 100B, arrival: { on: 0s, off: 1ms }", &["a burst of no length"]),
        ("name: a, peak: 1Mbit/s, size: 100B, arrival: { on: 2ms-1ms, off: 1ms }", &["ends before it starts"]),
        ("name: a, rate: 1Mbit/s, size: 100B, count: 0", &["at least 1"]),
        ("name: a, rate: 1Mbit/s, size: 100B, start: 2s", &["stop before they start"]),
        ("name: a, rate: 1Mbit/s, size: 100B, ecn: 4", &["not an ECN codepoint"]),
        ("name: a, rate: 1Mbit/s, size: 100B, popularity: { zipf: -1 }", &["not a number above 0"]),
        ("name: a, rate: 1Mbit/s, size: [ { bytes: 64B } ]", &["`share` is missing"]),
        ("rate: 1Mbit/s", &["`name` is missing", "`size` is missing"]),
    ] {
        let text = format!("penstock-workload: 1\nduration: 1s\nflows:\n  - {{ {group}, {ADDRESSES} }}\n");
        let errors = parse(&text).unwrap_err();
        assert!(errors.starts_with("w.yaml:4:"), "{group}: {errors}");
        for expected in expected {
            assert!(errors.contains(expected), "{group}: {errors}");
        }
    }
}

#[test]
fn addresses_must_suffice_and_be_of_one_family() {
    for (addresses, expected) in [
        ("src: 10.0.0.1, dst: 10.1.0.0/24", "has 256 addresses for 257 flows"),
        ("src: 10.0.0.1, dst: \"2001:db8::/64\"", "not of one family"),
        ("src: 10.0.0.1", "`dst` is missing"),
        ("src: 10.0.0.1, dst: 10.0.0.1/8", "address bits set below the prefix"),
    ] {
        let group = format!("name: a, count: 257, rate: 1Mbit/s, size: 100B, {addresses}");
        let errors = parse(&format!("penstock-workload: 1\nduration: 1s\nflows: [ {{ {group} }} ]\n")).unwrap_err();
        assert!(errors.contains(expected), "{errors}");
    }
}

#[test]
fn the_file_itself_must_be_a_workload() {
    for (text, expected) in [
        ("", "empty"),
        ("penstock: 1\n", "`penstock-workload` is missing"),
        ("penstock-workload: 2\n", "`2` is not a format version"),
        ("penstock-workload: 1\nduration: 0s\n", "out of range"),
        ("penstock-workload: 1\nduration: 25h\n", "out of range"),
        ("penstock-workload: 1\nduration: 1s\n", "`flows` is missing"),
        ("penstock-workload: 1\nduration: 1s\nflows: []\n", "not a list of groups"),
        ("penstock-workload: 1\nduration: 1s\nseed: x\n", "`x` is not a seed"),
        ("- a\n", "a workload is a map"),
    ] {
        let errors = parse(text).unwrap_err();
        assert!(errors.contains(expected), "{text}: {errors}");
    }
    let group = "name: a, count: 60000000, rate: 1Mbit/s, size: 100B, src: 10.0.0.1, dst: 0.0.0.0/0";
    let errors = parse(&format!("penstock-workload: 1\nduration: 1s\nflows: [ {{ {group} }}, {{ {group} }} ]\n"));
    assert!(errors.unwrap_err().contains("120000000 flows in all"));
}
