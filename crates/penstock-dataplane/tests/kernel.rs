// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel judges as userspace does, bit for bit: the program through `BPF_PROG_RUN`, beside `Plane::run` on the same frames.
//!
//! Needs root (CAP_BPF, CAP_NET_ADMIN); without it these tests say so and pass, but not where CI is set.

#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::cast_possible_truncation)] // a test may panic and talk

#[path = "../../penstock-algo/tests/support/mod.rs"]
mod support;

use penstock_algo::plane::{Parts, Plane, Rng, Tally, frame};
use penstock_algo::rate;
use penstock_algo::wire;
use penstock_dataplane::load;
use penstock_dataplane::xdp::{Generation, LoadOptions, Port};
use penstock_packet::build::{Ip, Mac, Segment, ethernet};
use penstock_policy::limits_file::LimitsText;
use penstock_policy::{Plan, Policy};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, Ordering};
use support::{Directive, replay};

const START_NS: u64 = 3_600_000_000_000;
const LOOPBACK: u32 = 1;
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
/// What BPF_PROG_RUN takes for an Ethernet frame.
const FRAME_MIN_BYTES: usize = 14;

const POLICY: &str = "
penstock: 1
name: kernel
malformed: drop
ports: { lan: { rate: 10Gbit/s } }
links:
  - name: down
    port: lan
    rate: 10Gbit/s
    unmatched: drop
    classes:
      - { name: police, match: [ { dst: 10.0.0.0/24 }, { dst: '2001:db8::/48' } ], limit: { rate: 1Mbit/s, burst: 20KB } }
      - { name: early, match: [ { dst: 10.0.1.0/24, proto: udp, dport: 1000-3000 } ], limit: { rate: 1Mbit/s, early_drop: 50% } }
      - { name: mark, match: [ { dst: 10.0.2.0/24 } ], limit: { rate: 2Mbit/s, burst: 5ms, excess: 40ms, on_excess: mark } }
      - { name: shadow, match: [ { dst: 10.0.3.0/24 } ], limit: { rate: 100kbit/s }, mode: shadow }
      - { name: single, match: [ { dst: 10.0.4.0/24 } ], limit: { rate: 1Mbit/s, meter: rfc2697, burst: 10KB, excess: 20KB, yellow: { dscp: af12 } } }
      - { name: two, match: [ { vlan: 7 } ], limit: { rate: 1Mbit/s, meter: rfc2698, peak: 2Mbit/s, burst: 10KB, excess: 20KB, color_aware: true } }
      - { name: tunnel, match: [ { vni: 42 }, { teid: 7 } ], limit: { rate: 1Mbit/s } }
      - { name: rows, limits: { file: rows.csv } }
      - { name: inside, match: [ { dst: 10.0.5.128/25 } ], limits: { file: inside.csv } }
      - { name: free, match: [ { proto: tcp, tcp_flags: syn } ] }
";

/// Rows of every meter and action that a file can ask for, some of them in one bucket.
fn rows() -> String {
    let row = |last: u32| {
        let rest = ["drop,", "mark,", "drop,rfc2697"][last as usize % 3];
        format!("r{last},10.0.5.{last}/32,{}kbit/s,10KB,20KB,{rest}\n", 200 + last)
    };
    let rows: String = (0..100).map(row).collect();
    format!("name,dst,rate,burst,excess,on_excess,meter\n{rows}net,10.0.5.0/25,5Mbit/s,10KB,20KB,drop,\n")
}

fn plan() -> Plan {
    let policy = Policy::parse("test.yaml", POLICY).unwrap_or_else(|errors| panic!("{errors}"));
    let read = |name: &str| {
        let inside = "name,dst,rate\na,10.0.5.128/26,1Mbit/s\nb,10.0.5.200,300kbit/s\n".to_owned();
        let text = if name.starts_with("rows") { rows() } else { inside };
        Ok(LimitsText { name: name.to_owned(), bytes: text.into_bytes() })
    };
    penstock_policy::compile::compile(&policy, read).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The kernel lets us in, or a word why this test proved nothing.
fn may_load_programs() -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root {
        assert!(std::env::var_os("CI").is_none(), "CI proves nothing here without root");
        eprintln!("SKIP: loading a program into the kernel needs root");
    }
    is_root
}

struct Both {
    plane: Plane,
    kernel: Generation,
    rng: Rng,
    now_ns: u64,
    tally: Tally,
    last_key: wire::Key,
}

impl Both {
    fn new() -> Self {
        let plan = plan();
        let plane = load(&plan, 7, START_NS).unwrap();
        let links = (0..plan.links.len()).map(|link| u32::try_from(link).unwrap()).collect();
        let kernel = Generation::load_for_test(&plane, &[Port { ifindex: LOOPBACK, links, forward: None }]).unwrap();
        let tally = plane.tally();
        Self { plane, kernel, rng: Rng::new(11), now_ns: START_NS, tally, last_key: wire::Key::default() }
    }

    /// Judges a frame twice and compares all that can be seen. Returns the decision.
    fn judge(&mut self, data: &[u8], gap_ns: u64) -> wire::Decision {
        self.now_ns += gap_ns;
        let mut draw = self.rng;
        let random_u32 = draw.next_u32();
        let (mut packets, mut decisions) = (Vec::new(), Vec::new());
        let wire_bytes = u32::try_from(data.len()).unwrap();
        let frames = [frame(data, wire_bytes, wire::PST_LINK_ETHERNET, self.now_ns)];
        // SAFETY: the frame points into `data`, which lives through the call.
        unsafe { self.plane.run(&frames, &mut self.rng, &mut self.tally, &mut packets, &mut decisions) };
        let expected = decisions[0];
        self.last_key = packets[0].key;
        let mut marked = data.to_vec();
        if expected.shadow == 0 && u32::from(expected.verdict) == wire::PST_VERDICT_MARK {
            penstock_algo::plane::mark(&mut marked, &packets[0], &expected);
        }
        let (action, left, decision) = self.kernel.test_run(data, self.now_ns, random_u32).unwrap();
        assert_eq!(decision, expected, "{data:02x?}");
        let drops = expected.shadow == 0 && u32::from(expected.verdict) == wire::PST_VERDICT_DROP;
        assert_eq!(action, if drops { XDP_DROP } else { XDP_PASS });
        assert_eq!(left, marked, "the frame that goes on");
        decision
    }

    /// Both counted the same at each limit.
    fn compare_counters(&self) {
        for (limit, counters) in (0..).zip(&self.tally.limits) {
            assert_eq!(self.kernel.limit_counters(limit), Some(*counters), "limit {limit}");
        }
        for (slot, counters) in (0..).zip(&self.tally.slots) {
            assert_eq!(self.kernel.slot_counters(slot), Some(*counters), "slot {slot}");
        }
        let offered = |counters: &[wire::pst_counters]| counters.iter().map(|one| one.offered_packets).sum::<u64>();
        let tally = [&self.tally.classes, &self.tally.limits, &self.tally.slots].map(|counters| offered(counters));
        assert!(tally[1] > 100 && tally[2] > 100, "{tally:?}");
        assert_eq!(offered(&self.kernel.class_counters().unwrap()), tally.iter().sum(), "by class, all are counted");
    }

    /// All states are the same bits, too.
    fn compare_states(&self) {
        let image = self.plane.image();
        for (index, limit) in image.limits.iter().enumerate() {
            assert_eq!(self.kernel.limits().get(index), *limit, "limit {index}");
        }
        for (index, meter) in image.meters.iter().enumerate() {
            assert_eq!(self.kernel.meters().get(index), *meter, "meter {index}");
        }
        for (index, bucket) in image.limiter_buckets.iter().enumerate() {
            assert_eq!(self.kernel.limiter_buckets().get(index).states, bucket.states, "bucket {index}");
        }
    }
}

fn v4(third: u8, last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, third, last).into()
}

fn udp_frame(ip: &Ip, port: u16, bytes: usize, vlans: &[u16]) -> Vec<u8> {
    let segment = Segment::udp(5000, port).padded(ip, bytes);
    ethernet(Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]), vlans, &ip.packet(&segment))
}

/// Frames of all classes, in every encapsulation that the parser opens.
fn some_frame(rng: &mut Rng) -> Vec<u8> {
    let mut draw = |bound: u32| rng.next_u32() % bound;
    let (third, last) = (u8::try_from(draw(6)).unwrap(), u8::try_from(draw(250)).unwrap());
    let (bytes, ecn, dscp) =
        (64 + draw(1300) as usize, u8::try_from(draw(4)).unwrap(), u8::try_from(draw(64)).unwrap());
    let ip = Ip::between(v4(100, 1), v4(third, last)).with_tos(dscp, ecn);
    let port = u16::try_from(draw(4000)).unwrap();
    match draw(9) {
        0 => {
            let ip = Ip::between(Ipv6Addr::LOCALHOST, Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, last.into()));
            udp_frame(&ip.with_tos(dscp, ecn), port, bytes, &[])
        }
        1 => udp_frame(&ip, port, bytes, &[7]),
        2 => udp_frame(&ip, port, bytes, &[7, 8]),
        3 => {
            let inner = udp_frame(&ip, port, bytes, &[]);
            let outer = Ip::between(v4(101, 1), v4(101, 2)).with_tos(0, ecn);
            let segment = Segment::vxlan(40 + draw(4), &inner);
            ethernet(Mac([2; 6]), Mac([4; 6]), &[], &outer.packet(&segment))
        }
        4 => {
            let inner = ip.packet(&Segment::udp(1, port).padded(&ip, bytes));
            let outer = Ip::between(v4(101, 1), v4(101, 2));
            ethernet(Mac([2; 6]), Mac([4; 6]), &[], &outer.packet(&Segment::gtpu(6 + draw(3), &inner)))
        }
        5 => {
            let segment = Segment::tcp(80, port, if draw(2) == 0 { 0x02 } else { 0x10 }).padded(&ip, bytes);
            ethernet(Mac([2; 6]), Mac([4; 6]), &[], &ip.packet(&segment))
        }
        _ => udp_frame(&ip, port, bytes, &[]),
    }
}

#[test]
fn the_kernel_judges_as_userspace_does() {
    if !may_load_programs() {
        return;
    }
    let mut both = Both::new();
    let mut rng = Rng::new(3);
    let mut seen = vec![0_u32; wire::PST_REASON_COUNT as usize];
    let mut of_rows = 0;
    for _ in 0..20_000 {
        let data = some_frame(&mut rng);
        let decision = both.judge(&data, u64::from(rng.next_u32() % 600_000));
        seen[usize::from(decision.reason)] += 1;
        of_rows += u32::from(decision.slot != wire::PST_NONE);
    }
    both.compare_states();
    both.compare_counters();
    assert!(of_rows > 500, "{of_rows}");
    let wanted = [
        wire::PST_REASON_NONE,
        wire::PST_REASON_OVER_RATE,
        wire::PST_REASON_EARLY_DROP,
        wire::PST_REASON_CE_MARK,
        wire::PST_REASON_DSCP_MARK,
        wire::PST_REASON_UNMATCHED,
    ];
    assert!(wanted.iter().all(|reason| seen[*reason as usize] > 10), "{seen:?}");
}

/// Frames that nobody would send: cut anywhere, bytes changed, nothing but noise. Nothing but counters changes.
#[test]
fn hostile_frames_change_nothing_but_counters() {
    if !may_load_programs() {
        return;
    }
    let mut both = Both::new();
    let mut rng = Rng::new(5);
    let mut malformed = 0;
    for round in 0..10_000 {
        let mut data = some_frame(&mut rng);
        match round % 3 {
            0 => data.truncate((rng.next_u32() as usize % data.len()).max(FRAME_MIN_BYTES)),
            1 => {
                for _ in 0..=rng.next_u32() % 4 {
                    let place = 12 + rng.next_u32() as usize % (data.len() - 12).min(90);
                    data[place] = (rng.next_u32() >> 24) as u8;
                }
            }
            _ => data = (0..FRAME_MIN_BYTES + rng.next_u32() as usize % 200).map(|_| rng.next_u32() as u8).collect(),
        }
        let decision = both.judge(&data, 1_000);
        malformed += u32::from(u32::from(decision.reason) >= wire::PST_REASON_SHORT_ETHERNET);
    }
    both.compare_states();
    assert!(malformed > 1_000, "{malformed}");
}

/// A program for any policy stays far from what the verifier takes, and the stack below its limit (else it does not load).
#[test]
fn the_program_stays_within_its_budget() {
    if !may_load_programs() {
        return;
    }
    let mut largest = Both::new();
    let cost = largest.kernel.cost().unwrap();
    eprintln!("{} instructions, {} verified", cost.instructions, cost.verified);
    assert!(cost.instructions <= 8_000, "{cost:?}");
    assert!(cost.verified <= 400_000, "{cost:?}");
}

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
    let port = Port { ifindex: LOOPBACK, links: vec![0], forward: None };
    let mut kernel = Generation::load_for_test(&plane, &[port]).unwrap();
    if is_window {
        let [state] = line.numbers("state")?;
        let limit = kernel.limits().get(0);
        kernel.limits_mut().set(0, wire::Limit { state, ..limit });
    } else {
        let [committed_ticks, excess_ticks] = line.numbers("state")?;
        kernel.meters_mut().set(0, wire::MeterState { committed_ticks, excess_ticks });
    }
    Ok((kernel, is_window))
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
        let meter = kernel.meters().get(0);
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

/// limiter.h, Concurrency: whatever passes is charged, and at most one packet for each other CPU passes above red. In each round,
/// one moment long, two CPUs want several times what fits, of a limit of a class and of a row.
#[test]
fn two_cpus_share_one_limiter() {
    if !may_load_programs() {
        return;
    }
    let mut both = Both::new();
    for (third, last) in [(0, 9), (5, 0)] {
        let data = udp_frame(&Ip::between(v4(100, 1), v4(third, last)), 9, 1000, &[]);
        for round in 0..50_u64 {
            let now_ns = START_NS + (round + 1) * 10_000_000_000;
            let (_, _, first) = both.kernel.test_run(&data, now_ns, 0).unwrap();
            assert_eq!(u32::from(first.verdict), wire::PST_VERDICT_PASS, "idle for ten seconds");
            let before = passed(&both.kernel, &first);
            let counted_before = offered_of_limit(&both.kernel, &first);
            let ready = AtomicU32::new(0);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        ready.fetch_add(1, Ordering::SeqCst);
                        while ready.load(Ordering::SeqCst) < 2 {
                            std::hint::spin_loop();
                        }
                        both.kernel.test_repeat(&data, 100).unwrap();
                    });
                }
            });
            assert_eq!(offered_of_limit(&both.kernel, &first) - counted_before, 200, "each packet is counted once");
            let now_passed = passed(&both.kernel, &first) - before + 1;
            // The same from an idle limiter, one packet after the other: what fits.
            let fits = fitting_packets(&mut both.plane, &data, now_ns);
            assert!((fits..=fits + 1).contains(&now_passed), "round {round}: {now_passed} passed, {fits} fit");
        }
    }
}

fn passed(kernel: &Generation, decision: &wire::Decision) -> u64 {
    let counters = kernel.class_counters().unwrap()[decision.class_index as usize];
    counters.offered_packets - counters.dropped_packets
}

fn offered_of_limit(kernel: &Generation, decision: &wire::Decision) -> u64 {
    let is_row = decision.slot != wire::PST_NONE;
    let counters =
        if is_row { kernel.slot_counters(decision.slot) } else { kernel.limit_counters(decision.limit_index) };
    counters.unwrap().offered_packets
}

/// A row that moves takes its counters along, and a slot that is freed forgets them.
#[test]
fn counters_follow_their_row() {
    if !may_load_programs() {
        return;
    }
    let mut both = Both::new();
    let data = udp_frame(&Ip::between(v4(100, 1), v4(5, 0)), 9, 1000, &[]);
    let decision = both.judge(&data, 0);
    (0..50).for_each(|_| assert_eq!(both.judge(&data, 1_000).slot, decision.slot));
    let counted = both.kernel.slot_counters(decision.slot).unwrap();
    assert_eq!(counted.offered_packets, 51);
    assert!(counted.dropped_packets > 0 && counted.green_packets > 0 && counted.yellow_packets > 0, "{counted:?}");
    let free = (0..).find(|slot| both.plane.owner(*slot).is_none()).unwrap() as u32;
    both.kernel.move_counters(decision.slot, free);
    assert_eq!(both.kernel.slot_counters(decision.slot), Some(wire::pst_counters::default()));
    assert_eq!(both.kernel.slot_counters(free), Some(counted));
    both.kernel.reset_counters(free);
    assert_eq!(both.kernel.slot_counters(free), Some(wire::pst_counters::default()));
}

/// One sample a CPU in each gap, of what was dropped or marked, shadow and malformed included; what finds the ring full is counted.
#[test]
fn some_drops_and_marks_are_told_of() {
    if !may_load_programs() {
        return;
    }
    let gap_ns = u64::from(wire::PST_SAMPLE_GAP_NSEC);
    let mut both = Both::new();
    stay_on_one_cpu();
    let mut rng = Rng::new(9);
    let mut told = Vec::new();
    let mut last_ns = 0;
    for round in 0..4_000 {
        let mut data = some_frame(&mut rng);
        if round % 10 == 0 {
            data.truncate(20);
        }
        let decision = both.judge(&data, u64::from(rng.next_u32()) % (2 * gap_ns));
        let verdict = u32::from(decision.verdict);
        let is_told = verdict == wire::PST_VERDICT_DROP || verdict == wire::PST_VERDICT_MARK;
        if is_told && both.now_ns - last_ns >= gap_ns {
            last_ns = both.now_ns;
            told.push((both.now_ns, decision, both.last_key, LOOPBACK));
        }
    }
    let samples = both.kernel.drain_samples().unwrap();
    let samples: Vec<_> = samples.iter().map(|one| (one.time_ns, one.decision, one.key, one.ifindex)).collect();
    assert_eq!(samples, told);
    assert!(told.iter().any(|(_, decision, _, _)| decision.shadow != 0));
    assert!(told.iter().any(|(_, decision, _, _)| u32::from(decision.reason) >= wire::PST_REASON_SHORT_ETHERNET));
    assert_eq!(both.kernel.samples_lost().unwrap(), 0);
    assert_eq!(both.kernel.drain_samples().unwrap(), [], "taken is taken");

    let unmatched = udp_frame(&Ip::between(v4(100, 1), v4(99, 1)), 9, 100, &[]);
    let offered = 5_000;
    for _ in 0..offered {
        both.judge(&unmatched, gap_ns);
    }
    let taken = both.kernel.drain_samples().unwrap().len() as u64;
    assert!(taken > 1_000 && taken < offered, "{taken}");
    assert_eq!(both.kernel.samples_lost().unwrap(), offered - taken);
}

/// Samples are a matter of each CPU.
fn stay_on_one_cpu() {
    // SAFETY: a set of CPUs on the stack, and its size.
    unsafe {
        let mut cpus: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(usize::try_from(libc::sched_getcpu()).unwrap(), &mut cpus);
        assert_eq!(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const cpus), 0);
    }
}

/// Counters of each limit are left out where nobody asked for them.
#[test]
fn limits_are_counted_on_request() {
    if !may_load_programs() {
        return;
    }
    let plane = load(&plan(), 7, START_NS).unwrap();
    let ports = [Port { ifindex: LOOPBACK, links: vec![0], forward: None }];
    let counters = |counts_limits| {
        let options = LoadOptions { counts_limits };
        Generation::load_with(&plane, &ports, options).unwrap().slot_counters(0)
    };
    assert!(counters(None).is_some(), "few rows");
    assert!(counters(Some(true)).is_some());
    assert_eq!(counters(Some(false)), None);
}

fn fitting_packets(plane: &mut Plane, data: &[u8], now_ns: u64) -> u64 {
    let wire_bytes = u32::try_from(data.len()).unwrap();
    let frames = vec![frame(data, wire_bytes, wire::PST_LINK_ETHERNET, now_ns); 201];
    let (mut packets, mut decisions) = (Vec::new(), Vec::new());
    let mut tally = plane.tally();
    // SAFETY: the frames point into `data`, which lives through the call.
    unsafe { plane.run(&frames, &mut Rng::new(1), &mut tally, &mut packets, &mut decisions) };
    decisions.iter().filter(|decision| u32::from(decision.verdict) != wire::PST_VERDICT_DROP).count() as u64
}
