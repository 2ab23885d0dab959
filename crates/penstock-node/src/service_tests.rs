// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who waits for whom.

#![allow(clippy::unwrap_used)] // a test may panic

use super::*;
use crate::store::{SourceFile, Store};
use penstock_dataplane::{Chaos, Stub};
use std::time::Instant;

/// A policy with a limits file that takes long to pack and to unpack, and next to nothing to keep.
fn source(name: &str) -> Source {
    let text = format!(
        "penstock: 1\nname: {name}\nports: {{ lan: {{ rate: 1Gbit/s }} }}\nlinks:\n  - name: down\n    port: lan\n    classes:\n      \
         - {{ name: gold, match: [ {{ dst: 10.2.0.0/16 }} ], limit: {{ rate: 50Mbit/s }} }}\n"
    );
    let file = SourceFile { path: "unused".into(), name: "unused".into(), bytes: Ok(vec![0; 128 << 20]) };
    Source { name: format!("{name}.yaml"), text: text.into_bytes(), files: vec![file] }
}

fn node(keeper: Keeper) -> (Node, watch::Sender<bool>) {
    let (stopping, stopped) = watch::channel(false);
    let about = About {
        dataplane: "stub",
        state: String::new(),
        metrics: String::new(),
        started_unix_ns: 0,
        sampling: Duration::from_secs(1),
    };
    (Node::new(keeper, about, stopped), stopping)
}

/// How long others wait for the keeper at most while something is done, and how long that takes.
fn longest_wait(node: &Node, work: impl FnOnce(&Node) + Send) -> (Duration, Duration) {
    let started = Instant::now();
    let mut longest = Duration::ZERO;
    std::thread::scope(|scope| {
        let working = scope.spawn(|| work(node));
        while !working.is_finished() {
            let asked = Instant::now();
            drop(node.keeper());
            longest = longest.max(asked.elapsed());
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    (longest, started.elapsed())
}

#[test]
fn readings_go_on_while_a_policy_is_compiled_packed_and_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let stub = Stub::new();
    let tap = stub.tap();
    let (first, _stopping) = node(Keeper::start(Store::open(folder.path()).unwrap(), Box::new(stub)).unwrap());
    let policy = source("first");
    let (wait, all) = longest_wait(&first, |node| drop(node.put_blocking(&policy, false, false).unwrap()));
    assert!(wait < all / 2, "up: waited {wait:?} of {all:?}");
    drop((first, policy));

    tap.reboot();
    let (dial, second) = (0..100)
        .find_map(|seed| {
            let chaos = Chaos::new(tap.open(), seed, u32::MAX);
            let dial = chaos.dial();
            let keeper = Keeper::start(Store::open(folder.path()).unwrap(), Box::new(chaos)).unwrap();
            let is_stalled = keeper.in_force().is_err();
            tap.reboot();
            is_stalled.then_some((dial, keeper))
        })
        .unwrap();
    let (second, _stopping) = node(second);
    dial.set_failing(0);
    let (wait, all) = longest_wait(&second, Node::retry);
    assert!(second.keeper().in_force().is_ok());
    assert!(wait < all / 2, "again: waited {wait:?} of {all:?}");
}
