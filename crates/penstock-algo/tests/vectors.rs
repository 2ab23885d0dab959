// SPDX-License-Identifier: MIT OR Apache-2.0
//! The golden vectors of `algo/vectors`, from Rust: the same bits as native C, line by line.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)] // a test may fail by the one; depths are small numbers

mod support;

use penstock_algo::approx::{Adt, Amt, Axis, Tcam};
use penstock_algo::circulation::{self, Circulation, GROUPS};
use penstock_algo::limiter::Limiter;
use penstock_algo::logical_meter::{self, Congestion, LogicalMeter};
use penstock_algo::meter::Meter;
use penstock_algo::pipeline::SingleLimit;
use penstock_algo::switchrl::{MeterRl, PacketRl, SwitchRl, SwitchRlAdt, Windows};
use penstock_algo::wheel::Wheel;
use penstock_algo::{Judgement, rate, red, wire};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use support::{Directive, replay};

type Replay = fn(&str) -> Result<usize, String>;

/// A reader for each file, but for those of `NO_READERS`.
const READERS: [(&str, Replay); 11] = [
    ("approx.txt", approx),
    ("circulation.txt", circulation),
    ("fixed.txt", fixed),
    ("limiter.txt", limiter),
    ("logical_meter.txt", logical_meter),
    ("pipeline.txt", pipeline),
    ("red.txt", red),
    ("srtcm.txt", rfc_meter),
    ("switchrl.txt", switchrl),
    ("trtcm.txt", rfc_meter),
    ("wheel.txt", wheel),
];

/// Files of headers that Rust does not call: lines of the plane, DragonKing's parts of what circulates, shares and what they are found by.
const NO_READERS: [&str; 13] = [
    "delay.txt",
    "ewma.txt",
    "fair.txt",
    "fairdrop.txt",
    "hcsfq.txt",
    "hsdba.txt",
    "lpf.txt",
    "share.txt",
    "sketch.txt",
    "threshold.txt",
    "tree.txt",
    "wf2q.txt",
    "wf2q_control.txt",
];

const METERS: [&str; 4] = ["window", "rfc2697", "rfc2698", "rfc4115"];
const COLORS: [&str; 3] = ["green", "yellow", "red"];
const VERDICTS: [&str; 4] = ["pass", "mark", "drop", "hold"];
const ACTIONS: [&str; 6] = ["pass", "drop", "mark", "dscp", "red", "hold"];

fn no_profile<T>() -> Result<T, String> {
    Err("nothing was set up before".to_owned())
}

fn expect_color(line: &Directive, color: wire::pst_color) -> Result<(), String> {
    line.expect_word("color", COLORS.get(color as usize).unwrap_or(&"none"))
}

fn expect_judgement(line: &Directive, judgement: Judgement) -> Result<(), String> {
    expect_color(line, judgement.color)?;
    line.expect_word("verdict", VERDICTS[judgement.verdict as usize])?;
    line.expect("reason", &[u64::from(judgement.reason)])
}

fn fixed(text: &str) -> Result<usize, String> {
    replay(text, |line| match line.verb {
        "encode" => line.expect("rate", &[rate::encode(line.number("rate_Bps")?).into()]),
        "cost" => line.expect("ticks", &[rate::cost_ticks(line.number("rate")?, line.number("bytes")?)]),
        "bytes" => line.expect("bytes_q8", &[rate::bytes_q8(line.number("rate")?, line.number("ticks")?)]),
        _ => line.unknown_verb(),
    })
}

fn red(text: &str) -> Result<usize, String> {
    replay(text, |line| match line.verb {
        "probability" => {
            let [depth, green, window] = [line.number("depth")?, line.number("green")?, line.number("window")?];
            line.expect("p", &[red::probability_q32(depth, green, window, line.number("max")?).into()])
        }
        "drops" => line.expect("drops", &[red::drops(line.number("p")?, line.number("random")?).into()]),
        _ => line.unknown_verb(),
    })
}

struct Tables {
    axis: Axis,
    adt: Adt,
    amt: Amt,
}

fn tables(line: &Directive) -> Result<Tables, String> {
    let range = line.number("low")?..=line.number("high")?;
    let axis = Axis::new(range, line.number("r_numerator")?, line.number("r_denominator")?);
    let axis = axis.ok_or("no axis can be cut so")?;
    Ok(Tables { adt: Adt::new(axis.clone(), axis.clone()), amt: Amt::new(axis.clone(), axis.clone()), axis })
}

fn approx(text: &str) -> Result<usize, String> {
    let mut built: Option<Tables> = None;
    replay(text, |line| match (line.verb, &built) {
        ("profile", _) => {
            let tables = built.insert(tables(line)?);
            line.expect("intervals", &[tables.axis.intervals().into()])
        }
        ("interval", Some(tables)) => {
            let interval = tables.axis.interval(line.number("value")?);
            line.expect("first", &[u64::from(*interval.start())])?;
            line.expect("last", &[u64::from(*interval.end())])
        }
        ("divide", Some(tables)) => line.expect("q32", &[tables.adt.divide_q32(line.number("x")?, line.number("y")?)]),
        ("multiply", Some(tables)) => {
            line.expect("product_x2", &[tables.amt.multiply_x2(line.number("x")?, line.number("y")?)])
        }
        ("tcam", _) => {
            let tcam = Tcam::new(line.number("b")?).ok_or("no such `b`")?;
            line.expect("product", &[tcam.multiply(line.number("factor")?, line.number("operand")?)])
        }
        ("entries", _) => {
            let tcam = Tcam::new(line.number("b")?).ok_or("no such `b`")?;
            line.expect("count", &[tcam.entries(line.number("operand_bits")?).into()])
        }
        ("interval" | "divide" | "multiply", None) => no_profile(),
        _ => line.unknown_verb(),
    })
}

/// The fields of `struct pst_profile` that lines of meters and of the pipeline share.
fn meter_profile(line: &Directive) -> Result<wire::Profile, String> {
    let meter = line.place("meter", &METERS)? as u8;
    let has_second = [wire::PST_METER_RFC2698, wire::PST_METER_RFC4115].contains(&meter.into());
    let color_aware = if line.flag("color_aware")? { wire::PST_PROFILE_COLOR_AWARE as u8 } else { 0 };
    Ok(wire::Profile {
        burst_ticks: line.number_or_0("burst_ticks")?,
        excess_ticks: line.number_or_0("excess_ticks")?,
        burst_bytes: line.number_or_0("burst_bytes")?,
        excess_bytes: line.number_or_0("excess_bytes")?,
        mtu_bytes: line.number_or_0("mtu_bytes")?,
        second_rate: if has_second { rate::encode(line.number("second_rate_Bps")?) } else { 0 },
        meter,
        flags: color_aware,
        ..wire::Profile::default()
    })
}

fn expect_window(line: &Directive, limiter: &Limiter, rate_code: u32) -> Result<(), String> {
    let (green_ticks, window_ticks) = limiter.depths_ticks();
    line.expect("rate", &[u64::from(rate_code)])?;
    line.expect("green_ticks", &[green_ticks])?;
    line.expect("window_ticks", &[window_ticks])
}

fn limiter(text: &str) -> Result<usize, String> {
    let mut limiter: Option<Limiter> = None;
    replay(text, |line| match (line.verb, &mut limiter) {
        ("profile", limiter) => {
            let rate_code = rate::encode(line.number("rate_Bps")?);
            let mut profile = meter_profile(line)?;
            if line.flag("shapes")? {
                profile.red_action = wire::PST_ACTION_HOLD as u8;
            }
            if u32::from(profile.meter) != wire::PST_METER_WINDOW {
                return Err("not the window meter".to_owned());
            }
            let limiter = limiter.insert(Limiter::new(&profile, rate_code, 0));
            [limiter.vft_ticks] = line.numbers("state")?;
            expect_window(line, limiter, rate_code)
        }
        ("take", Some(limiter)) => {
            let taken = limiter.take(line.number("now")?, line.number("bytes")?);
            expect_color(line, taken.color)?;
            line.expect("state", &[limiter.vft_ticks])?;
            line.expect("depth", &[taken.depth_ticks])?;
            line.expect("wait", &[taken.wait_ticks])
        }
        ("rate", Some(limiter)) => {
            let rate_code = rate::encode(line.number("rate_Bps")?);
            limiter.change_rate(line.number("now")?, rate_code);
            expect_window(line, limiter, rate_code)?;
            line.expect("state", &[limiter.vft_ticks])
        }
        ("take" | "rate", None) => no_profile(),
        _ => line.unknown_verb(),
    })
}

fn rfc_meter(text: &str) -> Result<usize, String> {
    let mut meter: Option<Meter> = None;
    replay(text, |line| match (line.verb, &mut meter) {
        ("profile", meter) => {
            let rate_code = rate::encode(line.number("rate_Bps")?);
            let profile = meter_profile(line)?;
            let meter = meter.insert(Meter::new(&profile, rate_code, 0).ok_or("not the meter of an RFC")?);
            let [committed_ticks, excess_ticks] = line.numbers("state")?;
            meter.state = wire::MeterState { committed_ticks, excess_ticks };
            let (committed_ticks, excess_ticks) = meter.depths_ticks();
            let is_peak = u32::from(profile.meter) == wire::PST_METER_RFC2698;
            line.expect("rate", &[u64::from(rate_code)])?;
            if profile.second_rate != 0 {
                line.expect("second_rate", &[u64::from(profile.second_rate)])?;
            }
            line.expect("cbs_ticks", &[committed_ticks])?;
            line.expect(if is_peak { "pbs_ticks" } else { "ebs_ticks" }, &[excess_ticks])
        }
        ("take", Some(meter)) => {
            let color_in = line.place("in", &COLORS)? as wire::pst_color;
            expect_color(line, meter.take(line.number("now")?, line.number("bytes")?, color_in))?;
            line.expect("state", &[meter.state.committed_ticks, meter.state.excess_ticks])
        }
        ("take", None) => no_profile(),
        _ => line.unknown_verb(),
    })
}

enum SwitchRlKind<'a> {
    MeterRl(MeterRl),
    PacketRl(PacketRl),
    OptPacketRl(SwitchRl),
    SwitchRl(SwitchRl),
    Adt(SwitchRlAdt<'a>),
}

fn switchrl_profile<'a>(line: &Directive, adt: &'a Adt) -> Result<SwitchRlKind<'a>, String> {
    let (algorithm, rate, mtu_bytes) = (line.word("algorithm")?, line.number("rate_Bps")?, line.number("mtu_bytes")?);
    if algorithm == "meterrl" {
        let limiter = MeterRl::new(rate, line.number("interval_ns")?, line.number("burst_bytes")?, mtu_bytes);
        return Ok(SwitchRlKind::MeterRl(limiter));
    }
    let now_ns = line.number("now")?;
    if algorithm == "packetrl" {
        return Ok(SwitchRlKind::PacketRl(PacketRl::new(rate, line.number("burst_bytes")?, mtu_bytes, now_ns)));
    }
    let (ctw_ns, etw_ns) = (line.number("ctw_ns")?, line.number("etw_ns")?);
    let windows = Windows { ctw_ns, etw_ns, mtu_bytes, drop_max_q32: line.number("drop_max")? };
    let rate_mbps: u32 = line.number("rate_Mbps")?;
    let is_adt = algorithm == "switchrl_adt";
    if is_adt != (rate_mbps > 0) {
        return Err("`rate_Mbps` is the rate of the ADT, and of nothing else".to_owned());
    }
    match algorithm {
        "optpacketrl" => Ok(SwitchRlKind::OptPacketRl(SwitchRl::new(rate, &windows, now_ns))),
        "switchrl" => Ok(SwitchRlKind::SwitchRl(SwitchRl::new(rate, &windows, now_ns))),
        "switchrl_adt" => Ok(SwitchRlKind::Adt(SwitchRlAdt::new(rate_mbps, adt, &windows, now_ns))),
        _ => Err(format!("unknown algorithm `{algorithm}`")),
    }
}

/// Algorithms 1 to 3 know green and red only.
fn send_or_drop(color: wire::pst_color) -> Judgement {
    if color == wire::PST_COLOR_GREEN {
        Judgement { color, verdict: wire::PST_VERDICT_PASS, reason: wire::PST_REASON_NONE }
    } else {
        Judgement { color, verdict: wire::PST_VERDICT_DROP, reason: wire::PST_REASON_OVER_RATE }
    }
}

fn switchrl_take(line: &Directive, limiter: &mut SwitchRlKind) -> Result<(), String> {
    let bytes = line.number("bytes")?;
    let now_and_random = || Ok::<_, String>((line.number("now")?, line.number("random")?));
    match limiter {
        SwitchRlKind::MeterRl(limiter) => {
            expect_color(line, limiter.take(bytes))?;
            line.expect("state", &[limiter.tokens_nanobytes])
        }
        SwitchRlKind::PacketRl(limiter) => {
            expect_color(line, limiter.take(line.number("now")?, bytes))?;
            line.expect("state", &[limiter.tokens_nanobytes, limiter.prev_ns])
        }
        SwitchRlKind::OptPacketRl(limiter) => {
            let (now_ns, _): (_, u32) = now_and_random()?;
            expect_judgement(line, send_or_drop(limiter.take_opt(now_ns, bytes)))?;
            line.expect("state", &[limiter.accu_ticks])
        }
        SwitchRlKind::SwitchRl(limiter) => {
            let (now_ns, random_u32) = now_and_random()?;
            expect_judgement(line, limiter.take(now_ns, bytes, random_u32))?;
            line.expect("state", &[limiter.accu_ticks])
        }
        SwitchRlKind::Adt(limiter) => {
            let (now_ns, random_u32) = now_and_random()?;
            expect_judgement(line, limiter.take(now_ns, bytes, random_u32))?;
            line.expect("state", &[limiter.accu_ticks])
        }
    }
}

fn switchrl(text: &str) -> Result<usize, String> {
    // The table of the paper's section 6, with the intervals of erratum S6.
    let axis = Axis::new(1..=10_000, 2, 100).ok_or("no axis")?;
    let adt = Adt::new(axis.clone(), axis);
    let mut limiter = None;
    replay(text, |line| match (line.verb, &mut limiter) {
        ("profile", limiter) => {
            *limiter = Some(switchrl_profile(line, &adt)?);
            Ok(())
        }
        ("take", Some(limiter)) => switchrl_take(line, limiter),
        ("refill", Some(SwitchRlKind::MeterRl(limiter))) => {
            limiter.refill();
            line.expect("state", &[limiter.tokens_nanobytes])
        }
        ("take" | "refill", _) => no_profile(),
        _ => line.unknown_verb(),
    })
}

fn logical_meter(text: &str) -> Result<usize, String> {
    let mut meter: Option<LogicalMeter> = None;
    replay(text, |line| match (line.verb, &mut meter) {
        ("profile", meter) => {
            let congestions = [Congestion::Police, Congestion::Dctcp, Congestion::Dcqcn];
            let tcam_bits = line.number("tcam_bits")?;
            let params = logical_meter::Params {
                rate_bytes_per_second: line.number("rate_Bps")?,
                yellow_bytes: line.number("yellow_bytes")?,
                red_bytes: line.number("red_bytes")?,
                mtu_bytes: line.number("mtu_bytes")?,
                red_max_q32: line.number("red_max")?,
                congestion: congestions[line.place("congestion", &["police", "dctcp", "dcqcn"])?],
                tcam_bits: (tcam_bits > 0).then_some(tcam_bits),
            };
            *meter = Some(LogicalMeter::new(&params, line.number("now")?));
            Ok(())
        }
        ("take", Some(meter)) => {
            let (now_ns, random_u32) = (line.number("now")?, line.number("random")?);
            expect_judgement(line, meter.take(now_ns, line.number("bytes")?, line.flag("ect")?, random_u32))?;
            line.expect("state", &[meter.queue_nanobytes, meter.last_ns])
        }
        ("change", Some(meter)) => {
            let params = logical_meter::Params {
                rate_bytes_per_second: line.number("rate_Bps")?,
                yellow_bytes: line.number("yellow_bytes")?,
                red_bytes: line.number("red_bytes")?,
                ..*meter.params()
            };
            meter.change(line.number("now")?, &params);
            line.expect("state", &[meter.queue_nanobytes, meter.last_ns])
        }
        ("take" | "change", None) => no_profile(),
        _ => line.unknown_verb(),
    })
}

fn pipeline_limit(line: &Directive) -> Result<(SingleLimit, bool), String> {
    let mut profile = meter_profile(line)?;
    let is_window = u32::from(profile.meter) == wire::PST_METER_WINDOW;
    if line.flag("shadow")? {
        profile.flags |= wire::PST_PROFILE_SHADOW as u8;
    }
    profile.yellow_action = line.place("yellow", &ACTIONS)? as u8;
    profile.red_action = line.place("red", &ACTIONS)? as u8;
    profile.yellow_dscp = line.number_or_0("yellow_dscp")?;
    profile.red_dscp = line.number_or_0("red_dscp")?;
    profile.red_max_q32 = line.number_or_0("red_max")?;
    profile.hold_ticks = line.number_or_0("hold_ticks")?;
    profile.hold_bytes = line.number_or_0("hold_bytes")?;
    profile.ce_ns = line.number_or_0("ce_ns")?;
    let mut limit = SingleLimit::new(&profile, rate::encode(line.number("rate_Bps")?), line.number("overhead")?, 0);
    if is_window {
        [limit.vft_ticks] = line.numbers("state")?;
    } else {
        [limit.meter.committed_ticks, limit.meter.excess_ticks] = line.numbers("state")?;
    }
    Ok((limit, is_window))
}

fn pipeline(text: &str) -> Result<usize, String> {
    let mut limit = None;
    replay(text, |line| match (line.verb, &mut limit) {
        ("limit", limit) => {
            *limit = Some(pipeline_limit(line)?);
            Ok(())
        }
        ("packet", Some((limit, is_window))) => {
            let packet = wire::Packet {
                length: line.number("length")?,
                network_family: if line.has("tos") { 4 } else { 0 },
                network_tos: line.number_or_0("tos")?,
                ..wire::Packet::default()
            };
            let decision = limit.decide(&packet, line.number("now")?, line.number("random")?);
            expect_color(line, decision.color.into())?;
            line.expect_word("verdict", VERDICTS[usize::from(decision.verdict)])?;
            line.expect_word("reason", wire::REASON_NAMES[usize::from(decision.reason)])?;
            line.expect("departure", &[decision.departure_ns])?;
            if u32::from(decision.reason) == wire::PST_REASON_DSCP_MARK {
                line.expect("dscp", &[decision.dscp.into()])?;
            }
            if *is_window {
                line.expect("state", &[limit.vft_ticks])
            } else {
                line.expect("state", &[limit.meter.committed_ticks, limit.meter.excess_ticks])
            }
        }
        ("packet", None) => no_profile(),
        _ => line.unknown_verb(),
    })
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../algo/vectors")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn wheel(text: &str) -> Result<usize, String> {
    let mut wheel = Wheel::new(0, 0);
    replay(text, |line| match line.verb {
        "start" => {
            wheel = Wheel::new(100, line.number("now")?);
            Ok(())
        }
        "put" => line.expect("put", &[u64::from(wheel.put(line.number("item")?, line.number("due")?))]),
        "take" => {
            let item = wheel.take(line.number("now")?).map_or(wire::PST_NONE, |(item, _)| item);
            line.expect("item", &[item.into()])
        }
        _ => line.unknown_verb(),
    })
}

fn circulation_profile(line: &Directive) -> Result<Circulation, String> {
    let params = circulation::Params {
        capacity_bytes_per_second: line.numbers("capacity_Bps")?,
        monitor_ns: line.number("monitor")?,
        slide_ns: line.number("slide")?,
        h_ns: line.number("h")?,
        loop_ns: line.number("loop")?,
        room_bytes: line.numbers::<GROUPS>("room_bytes")?.map(|bytes| bytes as u32),
        variance_q16: line.number("variance")?,
        alpha_ns: line.number("alpha")?,
        delta_q16: line.number::<u32>("delta")?.cast_signed(),
        redistributes: line.flag("redistributes")?,
        schedules: line.flag("schedules")?,
    };
    Ok(Circulation::new(&params, line.number("packets")?, line.number("now")?))
}

fn circulation(text: &str) -> Result<usize, String> {
    let mut circulation = None;
    replay(text, |line| match (line.verb, &mut circulation) {
        ("profile", circulation) => {
            *circulation = Some(circulation_profile(line)?);
            Ok(())
        }
        ("put", Some(circulation)) => {
            let packet = circulation::Packet {
                vst_ns: line.number("vst")?,
                vft_ns: line.number("vft")?,
                bytes: line.number("bytes")?,
                tag: line.number("tag")?,
            };
            line.expect("put", &[circulation.put(line.number("now")?, &packet).into()])
        }
        ("run", Some(circulation)) => {
            let sent = circulation.run(line.number("until")?);
            line.expect("sent", &[sent.is_some().into()])?;
            let Some(sent) = sent else { return Ok(()) };
            line.expect("at", &[sent.sent_ns])?;
            line.expect("tag", &[sent.tag.into()])?;
            line.expect("vst", &[sent.vst_ns])?;
            line.expect("bytes", &[sent.bytes.into()])
        }
        ("state", Some(circulation)) => {
            line.expect("waiting", &[circulation.waiting().into()])?;
            line.expect("passed", &circulation.passed_bytes())?;
            line.expect("windows", &circulation.windows_ns())
        }
        ("put" | "run" | "state", None) => no_profile(),
        _ => line.unknown_verb(),
    })
}

fn is_directive(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#')
}

#[test]
fn every_file_has_a_reader_and_every_reader_a_file() {
    let names = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = names.filter(|name| name.ends_with(".txt")).collect();
    let readers = READERS.map(|(name, _)| name).into_iter().chain(NO_READERS);
    let known: BTreeSet<String> = readers.map(str::to_owned).collect();
    assert_eq!(files, known);
}

#[test]
fn every_line_of_every_file_comes_out() {
    for (name, replay) in READERS {
        let text = read(name);
        let lines = text.lines().filter(|line| is_directive(line)).count();
        assert_eq!(replay(&text), Ok(lines), "{name}");
    }
}

/// What stands after `->`, on the last line that has it, for each verb: (line, word on it, which element of the list).
fn outputs(text: &str) -> Vec<(usize, usize, usize)> {
    let mut places = std::collections::BTreeMap::new();
    for (line_index, line) in text.lines().enumerate().filter(|(_, line)| is_directive(line)) {
        let words: Vec<&str> = line.split(' ').collect();
        let arrow = words.iter().position(|&word| word == "->").unwrap_or(words.len());
        for (word_index, word) in words.iter().enumerate().skip(arrow + 1) {
            let (key, value) = word.split_once('=').unwrap();
            for element in 0..value.split(',').count() {
                places.insert((words[0], key, element), (line_index, word_index, element));
            }
        }
    }
    places.into_values().collect()
}

/// The file with another number, or another word, in one place.
fn with_change(text: &str, (line_index, word_index, element): (usize, usize, usize)) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut words: Vec<String> = lines[line_index].split(' ').map(str::to_owned).collect();
    let (key, value) = words[word_index].split_once('=').unwrap();
    let mut elements: Vec<String> = value.split(',').map(str::to_owned).collect();
    elements[element] = match elements[element].parse::<u64>() {
        Ok(number) => number.wrapping_add(1).to_string(),
        Err(_) if elements[element] == "red" => "green".to_owned(),
        Err(_) => "red".to_owned(),
    };
    words[word_index] = format!("{key}={}", elements.join(","));
    lines[line_index] = words.join(" ");
    lines.join("\n") + "\n"
}

#[test]
fn any_other_output_is_reported_at_its_line() {
    for (name, replay) in READERS {
        let text = read(name);
        let places = outputs(&text);
        assert!(places.len() >= 2, "{name}");
        for place in places {
            let fault = replay(&with_change(&text, place)).expect_err(name);
            assert!(fault.starts_with(&format!("line {}: ", place.0 + 1)), "{name}: {fault}");
            assert!(fault.contains("must be"), "{name}: {fault}");
        }
    }
}

#[test]
fn a_line_that_is_not_understood_is_an_error() {
    let good = "# comment\n\ncost rate=4285749568 bytes=0x40 -> ticks=1024000000000\n";
    assert_eq!(fixed(good), Ok(1));
    for (bad, fault) in [
        ("", "no directives"),
        ("# comment\n", "no directives"),
        (&good[..good.len() - 1], "line 3: the file is cut"),
        (&good.replace("cost", "price"), "line 3: unknown verb `price`"),
        (&good.replace("rate=", "speed="), "line 3: no `rate`"),
        (&good.replace("ticks=", "time="), "line 3: no `ticks` after `->`"),
        (&good.replace(" ->", " more=1 ->"), "line 3: nobody asked for `more`"),
        (&good.replace("-> ", "-> more=1 "), "line 3: nobody asked for `more`"),
        (&good.replace("-> ", "-> ticks=1 "), "line 3: `ticks` twice"),
        (&good.replace(" ->", ""), "line 3: no `ticks` after `->`"),
        (&good.replace("0x40", "-64"), "line 3: `bytes=-64` is not 1 numbers"),
        (&good.replace("0x40", "+64"), "line 3: `bytes=+64` is not 1 numbers"),
        (&good.replace("0x40", "64,64"), "line 3: `bytes=64,64` is not 1 numbers"),
        (&good.replace("0x40", "0x100000040"), "line 3: `bytes=4294967360` is too large"),
        (&good.replace("0x40", "18446744073709551616"), "line 3: `bytes=18446744073709551616` is not 1 numbers"),
        (&good.replace(" bytes", "  bytes"), "line 3: `` is not key=value"),
        (&good.replace('\n', "\r\n"), "line 1: not plain text"),
    ] {
        assert_eq!(fixed(bad), Err(fault.to_owned()), "{bad}");
    }
    assert_eq!(limiter("take now=0 bytes=64\n"), Err("line 1: nothing was set up before".to_owned()));
}
