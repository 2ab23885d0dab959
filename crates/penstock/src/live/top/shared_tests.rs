// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readings of a policy that shares, for tests.

use penstock_api::v1;
use v1::share::Standing::{Idle, Unsatisfied};

const MBIT: u64 = 1_000_000;

#[allow(clippy::cast_precision_loss)] // round numbers
fn rates(passed: u64) -> Option<v1::Rates> {
    let passed_bps = (passed * MBIT) as f64;
    let packets = passed_bps / 8_000.0;
    Some(v1::Rates { offered_bps: passed_bps, passed_bps, offered_packets_per_second: packets, ..v1::Rates::default() })
}

fn class(path: &str, parent: &str, share: Option<(u64, u64, u64)>, passed: u64) -> v1::ClassReading {
    let share = share.map(|(demand, share, weight)| v1::Share {
        demand_bps: demand * MBIT,
        share_bps: share * MBIT,
        standing: Unsatisfied.into(),
        weight,
        ..v1::Share::default()
    });
    v1::ClassReading {
        path: path.into(),
        parent: parent.into(),
        share,
        rates: rates(passed),
        counters: Some(v1::Counters { offered_packets: 10, ..v1::Counters::default() }),
        ..v1::ClassReading::default()
    }
}

/// A link with two levels and users of both kinds; another link that shares nothing.
pub fn readings() -> v1::Readings {
    let mut classes = vec![
        class("down/gold", "", Some((800, 400, 2)), 400),
        class("down/gold/a", "down/gold", Some((400, 300, 3)), 300),
        class("down/gold/b", "down/gold", Some((400, 100, 1)), 100),
        class("down/homes", "", Some((900, 400, 2)), 400),
        class("down/shops", "", Some((480, 200, 1)), 200),
        class("up/small", "", None, 1),
        class("up/big", "", None, 7),
    ];
    let mut say = |class: usize, change: &dyn Fn(&mut v1::Share)| {
        classes.get_mut(class).and_then(|class| class.share.as_mut()).into_iter().for_each(change);
    };
    say(0, &|gold| {
        (gold.fairness, gold.guarantee_bps, gold.ceiling_bps) = (Some(1.0), Some(200 * MBIT), Some(500 * MBIT));
    });
    say(3, &|homes| homes.users = Some(v1::Users { limit_bps: Some(40 * MBIT), ..v1::Users::default() }));
    say(4, &|shops| {
        let fairness = Some(0.99);
        shops.users = Some(v1::Users { active: 6, entries: 64, limit_bps: None, fairness });
    });
    classes[5].limit_bps = Some(5 * MBIT);
    let share = v1::Share {
        demand_bps: 2_180 * MBIT,
        share_bps: 1_000 * MBIT,
        standing: Idle.into(),
        fairness: Some(0.998),
        ..v1::Share::default()
    };
    let link = |name: &str, rate_bps, passed, share| v1::LinkReading {
        name: name.into(),
        rate_bps,
        rates: rates(passed),
        share,
        counters: Some(v1::Counters { offered_packets: 20, ..v1::Counters::default() }),
    };
    let links = vec![link("down", 1_000 * MBIT, 1_000, Some(share)), link("up", 100 * MBIT, 8, None)];
    v1::Readings { interval_ns: 1_000_000_000, links, classes, ..v1::Readings::default() }
}
