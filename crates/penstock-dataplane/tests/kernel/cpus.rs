// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several CPUs at once.

use crate::both::{Both, START_NS, may_load_programs, udp_frame, v4};
use penstock_algo::plane::{Plane, Rng, Room, frame};
use penstock_algo::{rate, wire};
use penstock_dataplane::xdp::Generation;
use penstock_packet::build::Ip;
use std::sync::atomic::{AtomicU32, Ordering};

/// Judges a frame on two CPUs at once, a hundred times on each, at the time of the last test run.
fn race(kernel: &Generation, data: &[u8]) {
    let ready = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                ready.fetch_add(1, Ordering::SeqCst);
                while ready.load(Ordering::SeqCst) < 2 {
                    std::hint::spin_loop();
                }
                kernel.test_repeat(data, 100).unwrap();
            });
        }
    });
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
            let before = counters_of(&both.kernel, &first);
            race(&both.kernel, &data);
            let after = counters_of(&both.kernel, &first);
            assert_eq!(after.offered_packets - before.offered_packets, 200, "each packet is counted once");
            let passed = passed(&after) - passed(&before) + 1;
            // The same from an idle limiter, one packet after the other: what fits.
            let fits = fitting_packets(&mut both.plane, &data, now_ns);
            assert!((fits..=fits + 1).contains(&passed), "round {round}: {passed} passed, {fits} fit");
        }
    }
}

/// meter.h, Concurrency: the same with RFC meters, whose states are two words. What passes is charged to the tick, in each bucket,
/// and each is overdrawn by one packet at most.
#[test]
fn two_cpus_share_one_rfc_meter() {
    if !may_load_programs() {
        return;
    }
    let mut both = Both::new();
    let single = udp_frame(&Ip::between(v4(100, 1), v4(4, 1)), 9, 500, &[]);
    let two = udp_frame(&Ip::between(v4(100, 1), v4(6, 1)), 9, 500, &[7]);
    let row = udp_frame(&Ip::between(v4(100, 1), v4(5, 2)), 9, 500, &[]);
    for (meter, data) in
        [(wire::PST_METER_RFC2697, single), (wire::PST_METER_RFC2698, two), (wire::PST_METER_RFC2697, row)]
    {
        for round in 0..50_u64 {
            let now_ns = START_NS + (round + 1) * 10_000_000_000;
            let (_, _, first) = both.kernel.test_run(&data, now_ns, 0).unwrap();
            let (index, costs) = meter_of(&both, &first);
            let start = both.kernel.meters().get(index);
            let before = counters_of(&both.kernel, &first);
            race(&both.kernel, &data);
            let (after, end) = (counters_of(&both.kernel, &first), both.kernel.meters().get(index));
            assert_eq!(after.offered_packets - before.offered_packets, 200);
            let green = after.green_packets - before.green_packets;
            let passed = green + after.yellow_packets - before.yellow_packets;
            assert_eq!(end.committed_ticks - start.committed_ticks, green * costs[0], "round {round}");
            assert_eq!(end.excess_ticks - start.excess_ticks, passed * costs[1], "round {round}");
            let fits = fitting_packets(&mut both.plane, &data, now_ns);
            let over = if meter == wire::PST_METER_RFC2697 { 2 } else { 1 };
            assert!((fits..=fits + over).contains(&(passed + 1)), "round {round}: {passed} passed, {fits} fit");
        }
    }
}

/// The meter that judged a packet, and what such a packet costs in each of its buckets.
fn meter_of(both: &Both, decision: &wire::Decision) -> (usize, [u64; 2]) {
    let image = both.plane.image();
    let (state, rate, profile) = if decision.slot == wire::PST_NONE {
        let limit = image.limits[decision.limit_index as usize];
        (limit.state, limit.rate, limit.profile)
    } else {
        let slots = wire::PST_BUCKET_SLOTS;
        let (bucket, slot) =
            (image.limiter_buckets[(decision.slot / slots) as usize], (decision.slot % slots) as usize);
        (bucket.states[slot], bucket.rates[slot], bucket.keys[slot] as u16)
    };
    let profile = image.profiles[usize::from(profile)];
    let second = if u32::from(profile.meter) == wire::PST_METER_RFC2697 { rate } else { profile.second_rate };
    (state as usize, [rate, second].map(|rate| rate::cost_ticks(rate, decision.length)))
}

fn passed(counters: &wire::pst_counters) -> u64 {
    counters.offered_packets - counters.dropped_packets
}

fn counters_of(kernel: &Generation, decision: &wire::Decision) -> wire::pst_counters {
    let is_row = decision.slot != wire::PST_NONE;
    let counters =
        if is_row { kernel.slot_counters(decision.slot) } else { kernel.limit_counters(decision.limit_index) };
    counters.unwrap()
}

fn fitting_packets(plane: &mut Plane, data: &[u8], now_ns: u64) -> u64 {
    let wire_bytes = u32::try_from(data.len()).unwrap();
    let frames = vec![frame(data, wire_bytes, wire::PST_LINK_ETHERNET, now_ns); 201];
    let (mut packets, mut decisions) = (Vec::new(), Vec::new());
    let mut tally = plane.tally();
    // SAFETY: the frames point into `data`, which lives through the call.
    unsafe { plane.run(&frames, &mut Rng::new(1), &mut tally, &mut Room::none(), &mut packets, &mut decisions) };
    decisions.iter().filter(|decision| u32::from(decision.verdict) != wire::PST_VERDICT_DROP).count() as u64
}
