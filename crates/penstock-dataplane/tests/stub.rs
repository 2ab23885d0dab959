// SPDX-License-Identifier: MIT OR Apache-2.0
//! The data planes that have no packets: the stub, and chaos around it.

#![allow(clippy::unwrap_used, clippy::duplicate_mod)] // a test may panic

#[path = "common/suite.rs"]
mod suite;

use penstock_algo::wire;
use penstock_dataplane::{Chaos, Dataplane, DataplaneError, Edit, LimitId, Stub, Tap};
use suite::{ROWS, Subject, packets, plan, row, suite};

const DEVICES: [&str; 2] = ["eth0", "eth1"];

/// Offers packets of 1500 bytes until one is red.
fn saturate(tap: &Tap, limit: LimitId) -> u32 {
    let key = wire::Key::default();
    (1..10_000).find(|_| tap.offer(limit, &key, 1500) == Some(wire::PST_COLOR_RED)).unwrap()
}

#[test]
fn the_stub_does_what_a_data_plane_does() {
    suite(&mut Stub::new(), DEVICES);
}

#[test]
fn chaos_that_never_fails_does_too() {
    suite(&mut Chaos::new(Stub::new(), 1, 0), DEVICES);
}

struct Tapped(Stub, Tap);

impl Subject for Tapped {
    fn dataplane(&mut self) -> &mut dyn Dataplane {
        &mut self.0
    }

    fn offer(&mut self, limit: LimitId) {
        self.1.offer(limit, &wire::Key::default(), 1500).unwrap();
    }

    fn advance(&mut self, time_ns: u64) {
        self.1.advance(time_ns);
    }
}

#[test]
fn the_stub_treats_packets_as_a_data_plane_does() {
    let stub = Stub::new();
    let tap = stub.tap();
    packets(&mut Tapped(stub, tap), DEVICES);
}

#[test]
fn a_new_daemon_adopts_what_is_there() {
    let mut stub = Stub::new();
    let mut held = plan(DEVICES, "50Mbit/s", ROWS);
    let applied = stub.apply(held.clone()).unwrap();
    let (tap, a) = (stub.tap(), LimitId::Row(row(&held, "a")));
    saturate(&tap, a);
    let queue_ns = stub.limit(a).unwrap().queue_ns;
    drop(stub);

    let mut stub = tap.open();
    assert_eq!((stub.generation(), stub.plan().is_some()), (Some(applied.generation), false));
    assert!(matches!(stub.readings(), Err(DataplaneError::Idle)));
    let b = LimitId::Row(row(&held, "b"));
    penstock_dataplane::edit_plan(&mut held, &[Edit::SetRate { limit: b, rate_bps: 1_000_000 }]);
    let adopted = stub.adopt(held).unwrap();
    assert_eq!((adopted.generation, adopted.limits_kept), (applied.generation, 4));
    assert_eq!(stub.limit(a).unwrap().queue_ns, queue_ns);
    assert_eq!(stub.limit(b).unwrap().rate_bps, 1_000_000, "what was edited since is set right");
    assert_eq!(stub.readings().unwrap().classes[1].offered_packets, 36);

    tap.reboot();
    let mut stub = tap.open();
    assert_eq!(stub.generation(), None);
    assert!(matches!(stub.adopt(plan(DEVICES, "50Mbit/s", ROWS)), Err(DataplaneError::Idle)));
}

#[test]
fn chaos_fails_before_and_after() {
    let plan = plan(DEVICES, "50Mbit/s", ROWS);
    let (mut lost, mut made_but_failed) = (0, 0);
    for seed in 0..64 {
        let mut chaos = Chaos::new(Stub::new(), seed, u32::MAX);
        let error = chaos.apply(plan.clone()).unwrap_err();
        assert!(matches!(error, DataplaneError::Chaos { seed: of, write: 0 } if of == seed), "{error}");
        match chaos.generation() {
            None => lost += 1,
            Some(_) => made_but_failed += 1,
        }
    }
    assert!(lost > 16 && made_but_failed > 16, "{lost} lost, {made_but_failed} made but failed");
}

#[test]
fn chaos_is_repeatable() {
    let run = |seed: u64| -> Vec<bool> {
        let mut chaos = Chaos::new(Stub::new(), seed, u32::MAX / 2);
        (0..50).map(|_| chaos.apply(plan(DEVICES, "50Mbit/s", ROWS)).is_ok()).collect()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
    assert!(run(7).iter().any(|&ok| ok) && run(7).iter().any(|&ok| !ok));
}
