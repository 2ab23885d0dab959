// SPDX-License-Identifier: MIT OR Apache-2.0
//! The golden vectors of the pipeline, through the kernel.

use crate::both::{LOOPBACK, may_load_programs};
use crate::support::{Directive, replay};
use penstock_algo::plane::{Parts, Plane};
use penstock_algo::{rate, wire};
use penstock_dataplane::xdp::{Generation, LoadOptions, Port};

const METERS: [&str; 4] = ["window", "rfc2697", "rfc2698", "rfc4115"];
const COLORS: [&str; 4] = ["green", "yellow", "red", "none"];
const VERDICTS: [&str; 4] = ["pass", "mark", "drop", "hold"];
const ACTIONS: [&str; 6] = ["pass", "drop", "mark", "dscp", "red", "hold"];

/// A plane of one limit that takes every packet, in the kernel, and whether its state is one word.
fn single_limit(line: &Directive) -> Result<(Generation, bool), String> {
    let meter = line.place("meter", &METERS)?;
    let is_window = meter == 0;
    let flag = |key, flag: u32| Ok::<_, String>(if line.flag(key)? { flag } else { 0 });
    let flags = flag("shadow", wire::PST_PROFILE_SHADOW)? | flag("color_aware", wire::PST_PROFILE_COLOR_AWARE)?;
    let profile = wire::Profile {
        meter: meter as u8,
        flags: flags as u8,
        burst_ticks: line.number_or_0("burst_ticks")?,
        excess_ticks: line.number_or_0("excess_ticks")?,
        burst_bytes: line.number_or_0("burst_bytes")?,
        excess_bytes: line.number_or_0("excess_bytes")?,
        mtu_bytes: line.number_or_0("mtu_bytes")?,
        second_rate: if meter > 1 { rate::encode(line.number("second_rate_Bps")?) } else { 0 },
        yellow_action: line.place("yellow", &ACTIONS)? as u8,
        red_action: line.place("red", &ACTIONS)? as u8,
        yellow_dscp: line.number_or_0("yellow_dscp")?,
        red_dscp: line.number_or_0("red_dscp")?,
        red_max_q32: line.number_or_0("red_max")?,
        hold_ticks: line.number_or_0("hold_ticks")?,
        hold_bytes: line.number_or_0("hold_bytes")?,
        ce_ns: line.number_or_0("ce_ns")?,
        ..wire::Profile::default()
    };
    let rate = rate::encode(line.number("rate_Bps")?);
    let parts = Parts {
        links: vec![wire::Link { overhead_bytes: line.number("overhead")?, ..wire::Link::default() }],
        classes: vec![wire::Class::default()],
        profiles: vec![profile],
        limits: vec![wire::Limit { rate, ..wire::Limit::default() }],
        ..Parts::default()
    };
    let plane = Plane::new(parts, [].into_iter(), [].into_iter(), 1, 0).unwrap();
    let port = Port { ifindex: LOOPBACK, links: vec![0], ..Port::default() };
    let mut kernel = Generation::load_for_test(&plane, &[port], LoadOptions::default()).unwrap();
    if is_window {
        let [state] = line.numbers("state")?;
        let limit = kernel.limits().get(0);
        kernel.limits_mut().set(0, wire::Limit { state, ..limit });
    } else {
        let [committed_ticks, excess_ticks] = line.numbers("state")?;
        let meter = meter_of(&kernel);
        kernel.meters_mut().set(meter, wire::MeterState { committed_ticks, excess_ticks });
    }
    Ok((kernel, is_window))
}

/// The RFC meter of the one limit.
fn meter_of(kernel: &Generation) -> usize {
    usize::try_from(kernel.limits().get(0).state).unwrap()
}

/// A frame whose packet is what a line says: `length` bytes, with a TOS if it is IP.
fn frame_of(line: &Directive) -> Result<Vec<u8>, String> {
    let length: u16 = line.number("length")?;
    let mut data = vec![0; 14 + usize::from(length)];
    data[12..14].copy_from_slice(&[0x88, 0xb5]); // local experimental: not IP
    if line.has("tos") {
        data[12..16].copy_from_slice(&[0x08, 0x00, 0x45, line.number("tos")?]);
        data[16..18].copy_from_slice(&length.to_be_bytes());
        data[23] = 253; // experimental: nothing behind the header is looked at
    }
    Ok(data)
}

fn check_packet(line: &Directive, kernel: &mut Generation, is_window: bool) -> Result<(), String> {
    let (_, _, decision) =
        kernel.test_run(&frame_of(line)?, line.number("now")?, line.number("random")?).map_err(|e| e.to_string())?;
    line.expect_word("color", COLORS[usize::from(decision.color)])?;
    line.expect_word("verdict", VERDICTS[usize::from(decision.verdict)])?;
    line.expect_word("reason", wire::REASON_NAMES[usize::from(decision.reason)])?;
    line.expect("departure", &[decision.departure_ns])?;
    if u32::from(decision.reason) == wire::PST_REASON_DSCP_MARK {
        line.expect("dscp", &[decision.dscp.into()])?;
    }
    if is_window {
        line.expect("state", &[kernel.limits().get(0).state])
    } else {
        let meter = kernel.meters().get(meter_of(kernel));
        line.expect("state", &[meter.committed_ticks, meter.excess_ticks])
    }
}

#[test]
fn golden_vectors_hold_in_the_kernel() {
    if !may_load_programs() {
        return;
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../algo/vectors/pipeline.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let mut limit = None;
    let directives = replay(&text, |line| match (line.verb, &mut limit) {
        ("limit", limit) => {
            *limit = Some(single_limit(line)?);
            Ok(())
        }
        ("packet", Some((kernel, is_window))) => check_packet(line, kernel, *is_window),
        _ => line.unknown_verb(),
    });
    assert!(directives.unwrap_or_else(|error| panic!("{error}")) > 300);
}
