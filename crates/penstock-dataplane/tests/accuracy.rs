// SPDX-License-Identifier: MIT OR Apache-2.0
//! A saturated limit passes its rate: policy text to verdicts, every meter kind, default windows and 1 ms windows.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use common::{Saturating, plan_of, run};

/// Rate error that is allowed: 0.1 %.
const TOLERANCE_PPM: u64 = 1_000;
/// Packets that pass in the steady part, so that one packet more or less is a twentieth of the tolerance.
const STEADY_PACKETS: u64 = 20_000;

struct Case {
    rate: &'static str,
    rate_bps: u64,
    packet_bytes: u32,
}

const CASES: [Case; 9] = [
    Case { rate: "60kbit/s", rate_bps: 60_000, packet_bytes: 64 },
    Case { rate: "60kbit/s", rate_bps: 60_000, packet_bytes: 1514 },
    Case { rate: "60kbit/s", rate_bps: 60_000, packet_bytes: 9000 },
    Case { rate: "1Mbit/s", rate_bps: 1_000_000, packet_bytes: 577 },
    Case { rate: "100Mbit/s", rate_bps: 100_000_000, packet_bytes: 64 },
    Case { rate: "100Mbit/s", rate_bps: 100_000_000, packet_bytes: 1514 },
    Case { rate: "10Gbit/s", rate_bps: 10_000_000_000, packet_bytes: 1514 },
    Case { rate: "100Gbit/s", rate_bps: 100_000_000_000, packet_bytes: 9000 },
    Case { rate: "100Gbit/s", rate_bps: 100_000_000_000, packet_bytes: 1514 },
];

/// Offers `overload_percent` of the rate, waits until the burst is spent, and compares what passes then with the rate.
fn check(case: &Case, limit: &str, overload_percent: u64, passes_percent: u64) {
    let text = format!(
        "penstock: 1\nname: accuracy\nports: {{ p: {{ rate: 400Gbit/s, mtu: 9000 }} }}\nlinks:\n  - name: l\n    port: p\n    \
         rate: 400Gbit/s\n    classes:\n      - {{ name: c, match: [ {{}} ], limit: {{ rate: {}, {limit} }} }}\n",
        case.rate
    );
    let plan = plan_of(&text);
    let passes_bps = case.rate_bps * passes_percent / 100;
    let offered_bps = passes_bps * overload_percent / 100;
    // Every window here holds at most 43 ms, 128 KB or three packets; an overload of 5 % drains it in 20 times as long, one of
    // 70 % in less than twice.
    let packet_ns = u64::from(case.packet_bytes) * 8_000_000_000 / passes_bps;
    let window_ns = (if limit.contains("1ms") { 2_000_000 } else { 43_000_000 })
        .max(if limit.contains("64KB") { 128_000 * 8_000_000_000 / passes_bps } else { 0 })
        .max(3 * 9014 * 8_000_000_000 / passes_bps);
    let settle_ns = window_ns * 110 / (overload_percent - 100) + 100 * packet_ns;
    let steady_ns =
        (STEADY_PACKETS * u64::from(case.packet_bytes) * 8).saturating_mul(1_000_000) / (passes_bps / 1000).max(1);
    let mut source = Saturating::new(case.packet_bytes, offered_bps, settle_ns + steady_ns);
    let passed = run(&plan, &mut source, settle_ns);
    let expected = u64::try_from(u128::from(passes_bps) * u128::from(steady_ns) / 8_000_000_000).unwrap();
    let error_ppm = passed.abs_diff(expected) * 1_000_000 / expected;
    assert!(
        error_ppm <= TOLERANCE_PPM,
        "{limit} at {}, {} B, offered {overload_percent} %: passed {passed} bytes, expected {expected}: {error_ppm} ppm",
        case.rate,
        case.packet_bytes
    );
}

#[test]
fn window_with_default_windows() {
    for case in CASES.iter().filter(|case| case.rate_bps <= 10_000_000_000) {
        check(case, "on_excess: drop", 170, 100);
        check(case, "on_excess: drop", 400, 100);
    }
}

#[test]
fn window_with_1_ms_windows() {
    for case in &CASES {
        check(case, "burst: 1ms, excess: 1ms", 170, 100);
        check(case, "burst: 1ms, excess: 1ms, on_excess: mark", 200, 100);
    }
}

/// Without a burst, and with the horizon full all the time.
#[test]
fn a_shaper() {
    for case in &CASES {
        check(case, "burst: 0s, excess: 0s, on_excess: shape, horizon: 40ms", 170, 100);
    }
}

/// Erratum S2: as published, a saturated 60 kbit/s limit with 1500 B packets would get 56 % of its rate.
#[test]
fn a_slow_limit_gets_its_rate() {
    for overload_percent in [105, 170, 1000] {
        check(&CASES[1], "on_excess: drop", overload_percent, 100);
    }
}

#[test]
fn rfc_meters() {
    for case in &CASES {
        check(case, "meter: rfc2697, burst: 64KB, excess: 64KB", 170, 100);
        // The peak rate is what passes: 100 Gbit/s of peak where the committed rate is half of it, and so on down.
        let peak = format!("meter: rfc2698, burst: 64KB, excess: 64KB, peak: {}bit/s", case.rate_bps * 2);
        check(case, &peak, 170, 200);
        let excess = format!("meter: rfc4115, burst: 64KB, excess: 64KB, excess_rate: {}bit/s", case.rate_bps / 2);
        check(case, &excess, 170, 150);
    }
}
