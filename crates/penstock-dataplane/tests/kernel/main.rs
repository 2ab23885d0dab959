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

use both::{Both, FRAME_MIN_BYTES, may_load_programs, some_frame};
use penstock_algo::plane::Rng;
use penstock_algo::wire;

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
    let largest = Both::new();
    let cost = largest.kernel.cost().unwrap();
    eprintln!("{} instructions, {} verified", cost.instructions, cost.verified);
    assert!(cost.instructions <= 8_000, "{cost:?}");
    assert!(cost.verified <= 400_000, "{cost:?}");
}
