// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the program tells: counters of each limit, and samples.

use crate::both::{Both, LOOPBACK, START_NS, may_load_programs, plan, some_frame, udp_frame, v4};
use penstock_algo::plane::Rng;
use penstock_algo::wire;
use penstock_dataplane::load;
use penstock_dataplane::xdp::{Generation, LoadOptions, Port};
use penstock_packet::build::Ip;

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
        let is_told = u32::from(decision.verdict) == wire::PST_VERDICT_DROP || wire::is_mark(decision.reason);
        if is_told && both.now_ns - last_ns >= gap_ns {
            last_ns = both.now_ns;
            told.push((both.now_ns, decision, both.last_key, LOOPBACK));
        }
    }
    let samples = both.kernel.drain_samples().unwrap();
    let samples: Vec<_> = samples.iter().map(|one| (one.time_ns, one.decision, one.key, one.ifindex)).collect();
    assert_eq!(samples, told);
    assert!(told.iter().any(|(_, decision, _, _)| decision.shadow != 0));
    assert!(told.iter().any(|(_, decision, _, _)| wire::is_malformed(decision.reason)));
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
    let ports = [Port { ifindex: LOOPBACK, links: vec![0], ..Port::default() }];
    let counters = |counts_limits| {
        let options = LoadOptions { counts_limits, ..LoadOptions::default() };
        Generation::load_with(&plane, &ports, options).unwrap().slot_counters(0)
    };
    assert!(counters(None).is_some(), "few rows");
    assert!(counters(Some(true)).is_some());
    assert_eq!(counters(Some(false)), None);
}
