// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a limit's traffic is held to ask for.
#![allow(clippy::unwrap_used)] // a test may panic

use penstock_alloc::demand::{Demand, FALL_NS, Manner, Seen, floor_bps};
use proptest::prelude::*;

const MBPS: u64 = 1_000_000;
const STEP_NS: u64 = 100_000_000;
const MANNER: Manner = Manner { fall_ns: FALL_NS, floor_bps: 300 * MBPS / 256 };

fn seen(offered_bps: u64, limit_bps: u64) -> Seen {
    Seen { offered_bps, passed_bps: offered_bps.min(limit_bps), limit_bps: Some(limit_bps), elapsed_ns: STEP_NS }
}

#[test]
fn who_has_room_asks_for_a_quarter_more_than_it_sends() {
    let mut demand = Demand::default();
    assert_eq!(demand.asks_bps(), None);
    assert!(demand.see(seen(80 * MBPS, 100 * MBPS), MANNER));
    assert_eq!(demand.asks_bps(), Some(100 * MBPS));
    // It rises at once.
    assert!(demand.see(seen(100 * MBPS, 200 * MBPS), MANNER));
    assert_eq!(demand.asks_bps(), Some(125 * MBPS));
}

#[test]
fn who_is_near_its_limit_or_cut_asks_for_all() {
    let mut demand = Demand::default();
    demand.see(seen(10 * MBPS, 100 * MBPS), MANNER);
    for (offered, passed, limit, asks) in [
        (87_499_999, 87_499_999, Some(100_000_000), true),
        (87_500_000, 87_500_000, Some(100_000_000), false),
        // A burst that lost a 64th is none of its limit's doing.
        (65_000_000, 64_000_000, Some(100_000_000), true),
        (65_000_001, 64_000_000, Some(100_000_000), false),
        (65_000_001, 64_000_000, None, false),
        (65_000_000, 65_000_000, None, true),
        (1, 0, Some(0), false),
        (0, 0, Some(0), true),
    ] {
        let seen = Seen { offered_bps: offered, passed_bps: passed, limit_bps: limit, elapsed_ns: STEP_NS };
        demand.see(seen, MANNER);
        assert_eq!(demand.asks_bps().is_some(), asks, "{seen:?}");
    }
}

#[test]
fn it_falls_slowly_and_to_the_floor() {
    let mut demand = Demand::default();
    demand.see(seen(240 * MBPS, 300 * MBPS), MANNER);
    let steps: Vec<u64> = (0..10)
        .map(|_| {
            demand.see(seen(0, 300 * MBPS), MANNER);
            demand.asks_bps().unwrap() / MBPS
        })
        .collect();
    // To a quarter in each 100 ms: after 400 ms nothing of 300 is left but the floor.
    assert_eq!(steps, [74, 18, 4, 1, 1, 1, 1, 1, 1, 1]);
    let mut count = 0;
    while demand.see(seen(0, 300 * MBPS), MANNER) {
        count += 1;
    }
    assert_eq!(demand.asks_bps().map(|asks| asks / MBPS), Some(1));
    assert!(count < 20 && !demand.see(seen(0, 300 * MBPS), MANNER));
    // What was asked for all, too: it is not forgotten at once.
    demand.see(seen(300 * MBPS, 300 * MBPS), MANNER);
    assert_eq!(demand.asks_bps(), None);
    demand.see(seen(0, 300 * MBPS), MANNER);
    assert_eq!(demand.asks_bps(), Some(375 * MBPS * FALL_NS / (FALL_NS + STEP_NS)));
}

fn any_seen() -> impl Strategy<Value = Seen> {
    let rate = || prop_oneof![Just(0), 0..1_000_000_000_u64, 0..1_u64 << 62];
    (rate(), rate(), prop::option::of(rate()), prop_oneof![Just(0), 0..10 * STEP_NS, any::<u64>()]).prop_map(
        |(offered_bps, passed_bps, limit_bps, elapsed_ns)| Seen { offered_bps, passed_bps, limit_bps, elapsed_ns },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Whatever is seen, nothing overflows; what is asked for is all, or no less than what came, and no less than the floor but for a 16th; it changes
    /// only when it says so.
    #[test]
    fn it_asks_for_what_came_at_least(all in prop::collection::vec(any_seen(), 1..30), fall_ns in any::<u64>(), floor_bps in 0..1_000_000_000_u64) {
        let manner = Manner { fall_ns, floor_bps };
        let mut demand = Demand::default();
        for seen in all {
            let before = demand.asks_bps();
            let is_other = demand.see(seen, manner);
            prop_assert_eq!(is_other, before != demand.asks_bps());
            if let Some(asks_bps) = demand.asks_bps() {
                prop_assert!(asks_bps >= seen.offered_bps);
                prop_assert!(asks_bps + asks_bps / 16 >= floor_bps);
            }
        }
    }

    /// Traffic that moves by a 16th of its mean or less, at a limit of what it asked for, is told of once: there is one epoch and no more.
    #[test]
    fn a_steady_network_is_quiet(mean_bps in 1_000_000..1_000_000_000_000_u64, noise in prop::collection::vec(0..=1000_u64, 1..50)) {
        let mut demand = Demand::default();
        // From its most, so that it may fall only, and within an eighth in all: a step down of a 16th is no change, nor is one up again.
        demand.see(seen(mean_bps, mean_bps * 2), MANNER);
        let limit_bps = demand.asks_bps().unwrap();
        for part in noise {
            let offered_bps = mean_bps - mean_bps / 16 * part / 1000;
            prop_assert!(!demand.see(seen(offered_bps, limit_bps), MANNER));
        }
        // And it may grow by as much before it is held to want more than that.
        prop_assert!(!demand.see(seen(mean_bps + mean_bps / 17, limit_bps), MANNER));
        prop_assert!(demand.see(seen(mean_bps + mean_bps / 8, limit_bps), MANNER));
    }

    /// It never falls faster than it would at once, whatever the steps: many small ones are slower than one of the same length, but not below the aim.
    #[test]
    fn it_falls_monotonously_to_its_aim(from_bps in 1_000_000..1_000_000_000_u64, part in 0..10_u64, steps_ns in prop::collection::vec(1..10 * FALL_NS, 1..40)) {
        let mut demand = Demand::default();
        let manner = Manner { floor_bps: 0, ..MANNER };
        let whole = |offered_bps| Seen { offered_bps, passed_bps: offered_bps, limit_bps: None, elapsed_ns: STEP_NS };
        demand.see(whole(from_bps), manner);
        let offered_bps = from_bps * part / 10;
        let mut before_bps = demand.asks_bps().unwrap();
        for elapsed_ns in steps_ns {
            demand.see(Seen { elapsed_ns, ..whole(offered_bps) }, manner);
            let now_bps = demand.asks_bps().unwrap();
            prop_assert!(now_bps <= before_bps && now_bps >= offered_bps * 5 / 4);
            before_bps = now_bps;
        }
    }
}

#[test]
fn floors_are_half_a_hundredth_of_the_aggregate_together() {
    assert_eq!(floor_bps(256_000, 1), 1_000);
    for members in [1, 2, 3, 10, 1_000] {
        assert!(floor_bps(300 * MBPS, members) * members as u64 <= 3 * MBPS / 2, "{members}");
        assert!(floor_bps(300 * MBPS, members) > 0);
    }
}
