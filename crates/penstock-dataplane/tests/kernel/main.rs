// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel judges as userspace does, bit for bit: the program through `BPF_PROG_RUN`, beside `Plane::run` on the same frames.
//!
//! Needs root (CAP_BPF, CAP_NET_ADMIN); without it these tests say so and pass, but not where CI is set.

#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::cast_possible_truncation)] // a test may panic and talk

#[path = "../../../penstock-algo/tests/support/mod.rs"]
mod support;

mod both;
mod counts;
mod cpus;
mod golden;
mod shares;
mod stack;

use both::{Both, FRAME_MIN_BYTES, may_load_programs, some_frame};
use penstock_algo::plane::{Entry, Parts, Plane, Rng};
use penstock_algo::wire;
use penstock_dataplane::xdp::{Generation, LoadOptions, Port};

#[test]
fn the_kernel_judges_as_userspace_does() {
    if may_load_programs() {
        judge_many(&mut Both::new());
    }
}

/// As with a table of millions, whose lines are asked for ahead, and where limits are not counted.
#[test]
fn the_kernel_judges_large_tables_as_userspace_does() {
    if may_load_programs() {
        judge_many(&mut Both::with(LoadOptions { counts_limits: Some(false), asks_ahead: Some(true) }));
    }
}

fn judge_many(both: &mut Both) {
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
    if both.kernel.slot_counters(0).is_some() {
        both.compare_counters();
    }
    assert!(of_rows > 500, "{of_rows}");
    let wanted = [
        wire::PST_REASON_NONE,
        wire::PST_REASON_OVER_RATE,
        wire::PST_REASON_EARLY_DROP,
        wire::PST_REASON_CE_MARK,
        wire::PST_REASON_DSCP_MARK,
        wire::PST_REASON_UNMATCHED,
        wire::PST_REASON_HELD,
        wire::PST_REASON_DELAYED,
        wire::PST_REASON_LOST,
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
        malformed += u32::from(wire::is_malformed(decision.reason));
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
    let check = |name: &str, kernel: Generation, instructions_max: u32, verified_max: u32| {
        let cost = kernel.cost().unwrap();
        eprintln!("{name}: {} instructions, {} verified", cost.instructions, cost.verified);
        assert!(cost.instructions <= instructions_max && cost.verified <= verified_max, "{cost:?}");
    };
    check("usual", Both::with(LoadOptions { asks_ahead: Some(true), ..LoadOptions::default() }).kernel, 8_000, 200_000);
    check("largest", largest(), 12_000, 300_000);
}

/// More copies of links than a byte can count: many ports, each offered to the links of the others. And more than there may be.
#[test]
fn a_decision_names_its_link_among_hundreds() {
    if !may_load_programs() {
        return;
    }
    let link = wire::Link { unmatched_class: wire::PST_NONE, ..wire::Link::default() };
    let parts = Parts { links: vec![link; 2], ..Parts::default() };
    let plane = Plane::new(parts, std::iter::empty(), std::iter::empty(), 1, 0).unwrap();
    let load = |links: usize| {
        let of_others = vec![0; links];
        let others = of_others.chunks(64).zip(both::LOOPBACK + 1..);
        let others = others.map(|(links, ifindex)| Port { ifindex, links: links.to_vec(), ..Port::default() });
        let own = Port { ifindex: both::LOOPBACK, links: vec![1], ..Port::default() };
        let ports: Vec<Port> = others.chain([own]).collect();
        Generation::load_for_test(&plane, &ports, LoadOptions::default())
    };
    for before in [255, 256, 300, 65_535] {
        let mut kernel = load(before).unwrap_or_else(|error| panic!("{before}: {error}"));
        let (_, _, decision) = kernel.test_run(&[0; 60], both::START_NS, 0).unwrap();
        assert_eq!(usize::from(decision.link), before);
        assert_eq!(kernel.link_of(&decision), Some(1));
    }
    let refused = load(65_536).unwrap_err().to_string();
    assert!(refused.starts_with("links of all ports: 65537; the kernel program takes 65536"), "{refused}");
}

/// As many links to a port, and tuples to a link and a class, as a plane may have.
fn largest() -> Generation {
    let tuples_max = 256;
    let tuple = wire::Tuple { words: 3, kind: wire::PST_TUPLE_LIMITS as u8, ..wire::Tuple::default() };
    let parts = Parts {
        links: vec![wire::Link { tuple_count: tuples_max, ..wire::Link::default() }; 64],
        tuples: vec![tuple; tuples_max as usize],
        rules: vec![wire::Rule::default(); 1_000],
        classes: vec![wire::Class { tuple_count: tuples_max, ..wire::Class::default() }; 1_000],
        profiles: vec![wire::Profile::default(); 1_000],
        limits: vec![wire::Limit::default(); 1_000],
        lines: vec![wire::Line::default(); 1_000],
        places: vec![wire::TreePlace::default(); 1_064],
        user_count: 1_000,
        slices: vec![wire::Slice { flags: wire::PST_SLICE_PERIODIC, ..wire::Slice::default() }; 1_000],
        sketch: wire::Sketch { rows: 4, column_bits: 11, ..wire::Sketch::default() },
    };
    let value = wire::Key::default();
    let entry = |kind: u32| Entry { tuple: kind, value: &value, target: 0, rate: 1 };
    let plane = Plane::new(parts, [entry(0)].into_iter(), [entry(1)].into_iter(), 1, 0).unwrap();
    let port = Port { ifindex: 1_000, links: (0..64).collect(), ..Port::default() };
    let options = LoadOptions { counts_limits: Some(true), asks_ahead: Some(true) };
    Generation::load_with(&plane, &[port], options).unwrap()
}
