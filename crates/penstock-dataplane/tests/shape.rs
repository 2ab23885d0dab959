// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits that shape, in a replay: who waits, until when, who finds no room; and the capture of what left.

#![allow(clippy::unwrap_used, clippy::duplicate_mod)] // a test may panic

#[path = "common/traffic.rs"]
mod traffic;

use penstock_algo::plane::Rng;
use penstock_dataplane::{Replay, Sinks, VerdictWriter};
use penstock_packet::{Batch, CaptureReader, CaptureWriter, Format, FrameSource, Interface};
use penstock_policy::{Plan, Policy};
use traffic::{Packet, run, run_into};

const MS: u64 = 1_000_000;
const SHAPED: [u8; 4] = [10, 0, 0, 1];
const FREE: [u8; 4] = [10, 0, 0, 9];

fn plan_of(memory: &str, limit: &str) -> Plan {
    let text = format!(
        "penstock: 1\nname: shape\nshaper: {{ memory: {memory} }}\nports: {{ lan: {{ rate: 10Gbit/s }} }}\nlinks:\n  - name: down\n    \
         port: lan\n    classes:\n      - {{ name: shaped, match: [ {{ dst: 10.0.0.1 }} ], limit: {{ {limit} }} }}\n      \
         - {{ name: free, match: [ {{ dst: 10.0.0.9 }} ] }}\n"
    );
    let policy = Policy::parse("test.yaml", &text).unwrap_or_else(|errors| panic!("{errors}"));
    penstock_policy::compile::compile(&policy, |path| panic!("no file {path}")).unwrap()
}

/// 1000 bytes take a millisecond.
fn plan(terms: &str) -> Plan {
    plan_of("10MB", &format!("rate: 8Mbit/s, burst: 0s, excess: 0s, on_excess: shape{terms}"))
}

fn at(times_ms: impl IntoIterator<Item = u64>, to: [u8; 4]) -> Vec<Packet> {
    times_ms.into_iter().map(|ms| Packet { time_ns: ms * MS, to, bytes: 1000, ecn: 1 }).collect()
}

/// Verdict, reason and departure of each packet.
fn told(lines: &[String]) -> Vec<(String, String, Option<u64>)> {
    let fields = |line: &String| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    lines.iter().map(fields).map(|field| (field[6].clone(), field[7].clone(), field[8].parse().ok())).collect()
}

#[test]
fn packets_leave_at_their_turns_and_long_waits_are_marked() {
    let mut replay = Replay::new(plan(", ce_threshold: 2ms"), None, 1).unwrap();
    let said = told(&run(&mut replay, &at([0, 0, 0, 0, 9, 20], SHAPED)));
    let held = |reason: &str, ms: u64| ("hold".to_owned(), reason.to_owned(), Some(ms * MS));
    let pass = |ms: u64| ("pass".to_owned(), String::new(), Some(ms * MS));
    assert_eq!(said, [pass(0), held("held", 1), held("held", 2), held("held_ce", 3), pass(9), pass(20)]);
    let class = &replay.report().classes[0];
    assert_eq!((class.held_packets, class.marked_packets, class.dropped_packets, class.passed_packets), (3, 1, 0, 6));
}

#[test]
fn each_bound_has_its_reason() {
    let reasons = |plan: Plan| -> Vec<String> {
        let said = told(&run(&mut Replay::new(plan, None, 1).unwrap(), &at([0; 6], SHAPED)));
        said.into_iter().map(|(_, reason, _)| reason).collect()
    };
    assert_eq!(reasons(plan(", horizon: 2ms")), ["", "held", "held", "horizon", "horizon", "horizon"]);
    // The packet that was just sent still counts: the virtual queue is as long as the real one.
    assert_eq!(reasons(plan(", backlog: 3KB")), ["", "held", "held", "backlog", "backlog", "backlog"]);
    let slow = "rate: 8Mbit/s, burst: 0s, excess: 0s, on_excess: shape, horizon: 60s";
    let mut replay = Replay::new(plan_of("1MB", slow), None, 1).unwrap();
    let said = told(&run(&mut replay, &at([0; 600], SHAPED)));
    let held = said.iter().filter(|(verdict, ..)| verdict == "hold").count();
    assert_eq!(held, 1_000_000 / 2048, "a packet takes 2 KB");
    assert!(said[held + 1..].iter().all(|(_, reason, _)| reason == "no_room"), "{said:?}");
}

/// What TCP sends in bursts, a shaper passes whole, and a policer does not.
#[test]
fn bursts_below_the_horizon_lose_nothing() {
    let bursts: Vec<Packet> = (0..50).flat_map(|burst| at([burst * 100; 90], SHAPED)).collect();
    let dropped = |plan: Plan| {
        let mut replay = Replay::new(plan, None, 1).unwrap();
        run(&mut replay, &bursts);
        replay.report().classes[0].dropped_packets
    };
    assert_eq!(dropped(plan(", horizon: 89ms")), 0);
    assert!(dropped(plan_of("10MB", "rate: 8Mbit/s")) > 1000);
    assert_eq!(dropped(plan(", horizon: 88ms")), 50, "the last one of each would wait longer");
}

/// Random arrivals, also over changes of the rate: departures do not fall, none comes before its packet, and the rate is kept.
#[test]
fn order_and_rate_hold_over_reloads() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let mut draw = |bound: u32| u64::from(rng.next_u32() % bound);
        let mut time_ns = 0;
        let mut packets = Vec::new();
        for _ in 0..2000 {
            time_ns += if draw(100) == 0 { draw(100_000_000) } else { draw(2_000_000) };
            packets.push(Packet { time_ns, to: SHAPED, bytes: 64 + usize::try_from(draw(1400)).unwrap(), ecn: 0 });
        }
        let mut replay = Replay::new(plan(", horizon: 300ms"), None, 1).unwrap();
        let rates = [("12Mbit/s", 1_500_000), ("4Mbit/s", 500_000), ("8Mbit/s", 1_000_000)];
        for (index, (rate, _)) in (1..).zip(rates) {
            let limit = format!("rate: {rate}, burst: 0s, excess: 0s, on_excess: shape, horizon: 300ms");
            replay.reload_at(index * time_ns / 4, plan_of("10MB", &limit)).unwrap();
        }
        let said = told(&run(&mut replay, &packets));
        let mut last_ns = 0;
        let mut passed = 0;
        for (packet, (verdict, _, departure)) in packets.iter().zip(&said) {
            let Some(departure_ns) = *departure else { continue };
            let departure_ns = departure_ns + packets[0].time_ns;
            assert!(departure_ns >= last_ns && departure_ns >= packet.time_ns, "{verdict} {departure_ns} {last_ns}");
            last_ns = departure_ns;
            passed += packet.bytes as u64;
        }
        // The most that any of the rates allows, and a packet that has just begun.
        let most = 1_500_000 * (last_ns - packets[0].time_ns) / 1_000_000_000 + 1500;
        assert!(passed <= most && passed * 2 > most / 2, "seed {seed}: {passed} bytes of {most}");
    }
}

#[test]
fn the_capture_has_what_left_in_the_order_in_which_it_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.pcap");
    let interface = Interface { name: None, linktype: 1, snap_bytes: 65_535 };
    let capture = CaptureWriter::create(&path, Format::Pcap, &[interface]).unwrap();
    let verdicts = Some(VerdictWriter::new(Vec::new()).unwrap());
    let mut sinks = Sinks { capture: Some(capture), verdicts, ..Sinks::default() };
    let mut packets = [at([100; 4], SHAPED), at([101, 102, 110], FREE)].concat();
    packets.push(Packet { time_ns: 110 * MS, to: SHAPED, bytes: 700, ecn: 1 });
    packets.push(Packet { time_ns: 110 * MS, to: SHAPED, bytes: 600, ecn: 1 });
    let mut replay = Replay::new(plan(", ce_threshold: 2ms"), None, 1).unwrap();
    run_into(&mut replay, &packets, &mut sinks);
    sinks.capture.unwrap().finish(true).unwrap();

    let mut reader = CaptureReader::open(&path).unwrap();
    let mut batch = Batch::new();
    let mut left = Vec::new();
    while reader.next_batch(&mut batch).unwrap() {
        left.extend(
            batch.iter().map(|frame| (frame.time_ns / 1000, frame.wire_bytes, frame.data[33], frame.data[15] & 3)),
        );
    }
    // Microseconds, bytes, the last byte of the address, ECN: the fourth waited for 3 ms and has CE; of two at the same moment the one that
    // waited goes first; what waits at the end leaves as well.
    let expected = [
        (100_000, 1000, 1, 1),
        (101_000, 1000, 1, 1),
        (101_000, 1000, 9, 1),
        (102_000, 1000, 1, 1),
        (102_000, 1000, 9, 1),
        (103_000, 1000, 1, 3),
        (110_000, 1000, 9, 1),
        (110_000, 700, 1, 1),
        (110_700, 600, 1, 1),
    ];
    assert_eq!(left, expected);
}
