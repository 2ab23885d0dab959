// SPDX-License-Identifier: MIT OR Apache-2.0
//! What shares are made of, in numbers that were worked out by hand.

use super::*;

const MBIT: u64 = 1_000_000;

/// A link of 1 Gbit/s whose children have these sums.
fn parent(taken: u64, weights: u64, held: u64, weights_taken: u64) -> ShareReading {
    let (taken_bps, held_bps) = (taken * MBIT, held * MBIT);
    ShareReading { share_bps: 1000 * MBIT, taken_bps, weights, held_bps, weights_taken, ..ShareReading::default() }
}

fn share(stands: Standing, demand: u64, weight: u64) -> v1::Share {
    v1::Share { standing: stands.into(), demand_bps: demand * MBIT, weight, ..v1::Share::default() }
}

fn told(share: &v1::Share, parent: &ShareReading) -> (By, u64, u64, bool) {
    let origin = origin(share, parent);
    (origin.by(), origin.left_bps / MBIT, origin.weights, origin.of_all)
}

#[test]
fn a_share_is_of_what_the_others_leave() {
    // It weighs 2 of 5 already, and 100 Mbit/s are taken.
    let unsatisfied = share(Standing::Unsatisfied, 800, 2);
    assert_eq!(told(&unsatisfied, &parent(100, 5, 0, 1)), (By::Weight, 900, 5, false));
    // Who is satisfied has put what it asks for into what is taken, and its weight with those of the satisfied.
    let satisfied = share(Standing::Satisfied, 60, 1);
    assert_eq!(told(&satisfied, &parent(100, 4, 0, 2)), (By::Weight, 960, 5, false));
    // Who sends nothing has put in nothing.
    assert_eq!(told(&share(Standing::Idle, 0, 1), &parent(100, 4, 0, 1)), (By::Weight, 900, 5, false));
    // Those who are satisfied took more than by their weights for a moment: 1 of 2 of all is more than all of 50.
    assert_eq!(told(&share(Standing::Unsatisfied, 800, 1), &parent(950, 1, 0, 1)), (By::Weight, 1000, 2, true));
}

#[test]
fn guarantees_and_ceilings_come_before_weights() {
    let held = v1::Share { guarantee_bps: Some(300 * MBIT), share_bps: 300 * MBIT, ..share(Standing::Held, 800, 1) };
    assert_eq!(told(&held, &parent(300, 9, 300, 0)), (By::Guarantee, 1000, 10, false));
    let below = v1::Share { guarantee_bps: Some(90 * MBIT), ..held };
    assert_eq!(told(&below, &parent(300, 9, 300, 0)).0, By::Weight);
    let capped = v1::Share { ceiling_bps: Some(90 * MBIT), ..share(Standing::Satisfied, 800, 1) };
    assert_eq!(told(&capped, &parent(90, 9, 0, 1)), (By::Ceiling, 1000, 10, false));
    let capped_below_its_guarantee = v1::Share { ceiling_bps: Some(200 * MBIT), ..held };
    assert_eq!(told(&capped_below_its_guarantee, &parent(200, 9, 200, 0)).0, By::Ceiling);
}

#[test]
fn the_last_level_that_gives_less_than_is_asked_for_is_the_one() {
    let level = |demand: u64, share_bps: u64, stands: Standing| v1::Level {
        kind: v1::level::Kind::Class.into(),
        share: Some(v1::Share { share_bps: share_bps * MBIT, ..share(stands, demand, 1) }),
        ..v1::Level::default()
    };
    for (demand, share_bps, stands, expected) in [
        (50, 100, Standing::Satisfied, false),
        (500, 100, Standing::Satisfied, true),
        (500, 100, Standing::Unsatisfied, true),
        // An estimate that fades while nothing comes is still of one who asked for more.
        (90, 100, Standing::Unsatisfied, true),
        (90, 100, Standing::Held, false),
        (110, 100, Standing::Held, true),
        (0, 0, Standing::Idle, false),
        // A link.
        (1100, 1000, Standing::Idle, true),
    ] {
        assert_eq!(is_bound(&level(demand, share_bps, stands)), expected, "{demand} {share_bps} {stands:?}");
    }
    let limit = |queue_ns, dropped: Option<f64>| v1::Level {
        kind: v1::level::Kind::Limit.into(),
        queue: Some(v1::Queue { queue_ns, window_ns: 100 }),
        rates: dropped.map(|dropped| v1::Rates { dropped_packets_per_second: dropped, ..v1::Rates::default() }),
        ..v1::Level::default()
    };
    assert!(is_bound(&limit(0, Some(1.0))) && !is_bound(&limit(100, Some(0.0))));
    assert!(is_bound(&limit(95, None)) && !is_bound(&limit(50, None)));
}
