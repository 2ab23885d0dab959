// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates over a plan: in which order they change, and what holds when they are gone.

#![allow(clippy::unwrap_used)] // a test may panic

use super::*;
use penstock_policy::plan::{PlanEntry, PlanLink};
use proptest::prelude::*;

const ROWS: u32 = 6;
const BASE_BPS: u64 = 1_000_000;

/// A link with rows `0`, `1` and so on, of 1 Mbit/s each.
fn plan(profile: wire::Profile) -> Plan {
    let class = penstock_policy::plan::PlanClass { path: "down/rows".to_owned(), ..Default::default() };
    let entry = PlanEntry { tuple: 0, rate: 1, rate_bps: BASE_BPS, profile: 0, value: wire::Key::default() };
    let mut plan = Plan {
        links: vec![PlanLink { name: "down".to_owned(), ..PlanLink::default() }],
        classes: vec![class],
        profiles: vec![profile],
        entries: vec![entry; ROWS as usize],
        ..Plan::default()
    };
    plan.classes[0].wire.limit_index = wire::PST_NONE;
    (0..ROWS).for_each(|row| assert!(plan.names.push(&row.to_string()).is_ok()));
    plan
}

fn rates(plan: &Plan) -> Vec<u64> {
    plan.entries.iter().map(|entry| entry.rate_bps).collect()
}

fn lent(class: u32, rate_bps: Option<u64>, safe_bps: Option<u64>) -> (u32, Lent) {
    (class + 10, Lent { port: "down".to_owned(), class: class.to_string(), rate_bps, safe_bps })
}

fn limits() -> impl Strategy<Value = Limits> {
    let rate = || prop::option::of(100_000..100_000_000_u64);
    let one = (0..ROWS + 1, rate(), rate()).prop_map(|(class, rate, safe)| lent(class, rate, safe));
    prop::collection::vec(one, 0..8).prop_map(|all| all.into_iter().collect())
}

proptest! {
    #[test]
    fn at_no_moment_is_the_sum_above_the_larger_one_of_before_and_after(
        sets in prop::collection::vec((limits(), any::<bool>()), 1..6),
    ) {
        let mut plan = plan(wire::Profile::default());
        let (mut places, mut before) = (Places::default(), Limits::new());
        for (after, lapsed) in sets {
            let (next, edits) = places.follow(&plan, Some(&before), &after, lapsed);
            let mut expected = vec![BASE_BPS; ROWS as usize];
            for (number, lent) in after.iter().filter(|(number, _)| **number < ROWS + 10) {
                let rate_bps = if lapsed { lent.safe_bps } else { lent.rate_bps };
                expected[(*number - 10) as usize] = rate_bps.unwrap_or(BASE_BPS);
            }
            let sum = |rates: &[u64]| rates.iter().sum::<u64>();
            let most = sum(&rates(&plan)).max(sum(&expected));
            for edit in &edits {
                edit_plan(&mut plan, std::slice::from_ref(edit));
                prop_assert!(sum(&rates(&plan)) <= most);
            }
            prop_assert_eq!(rates(&plan), expected);
            let mut unlent = plan.clone();
            next.take_off(&mut unlent);
            prop_assert_eq!(rates(&unlent), vec![BASE_BPS; ROWS as usize]);
            prop_assert_eq!(next.problems(0).1, u64::from(after.contains_key(&(ROWS + 10))));
            (places, before) = (next, after);
        }
        let (_, edits) = places.follow(&plan, Some(&before), &Limits::new(), false);
        edit_plan(&mut plan, &edits);
        prop_assert_eq!(rates(&plan), vec![BASE_BPS; ROWS as usize]);
    }
}

#[test]
fn what_the_operator_sets_holds_when_the_lease_ends() {
    let mut plan = plan(wire::Profile::default());
    let limits = Limits::from([lent(0, Some(5_000_000), None), lent(1, None, Some(300_000))]);
    let places = Places::lay_over(&mut plan, &limits, false);
    assert_eq!(rates(&plan)[..3], [5_000_000, BASE_BPS, BASE_BPS]);
    let set = |row: u32| Edit::SetRate { limit: LimitId::Row(row), rate_bps: 2_000_000 };
    let (places, made) = places.translate(&[set(0), set(1), set(2)], &limits, false);
    edit_plan(&mut plan, &made);
    assert_eq!(rates(&plan)[..3], [5_000_000, 2_000_000, 2_000_000]);
    let (_, edits) = places.follow(&plan, Some(&limits), &limits, true);
    edit_plan(&mut plan, &edits);
    assert_eq!(rates(&plan)[..3], [2_000_000, 300_000, 2_000_000]);
}

#[test]
fn a_rate_that_does_not_go_with_the_terms_is_the_nearest_that_does_and_a_problem() {
    let profile = wire::Profile { burst_bytes: 60_000_000, ..wire::Profile::default() };
    let mut plan = plan(profile);
    let limits = Limits::from([lent(0, Some(1), None), lent(1, Some(BASE_BPS), None)]);
    let places = Places::lay_over(&mut plan, &limits, false);
    let rate_bps = rates(&plan)[0];
    assert!(rate_bps > RATE_MIN_BPS && rate_bps < BASE_BPS, "{rate_bps}");
    assert!(problem_of_rate(&profile, rate_bps).is_none() && problem_of_rate(&profile, rate_bps - 1).is_some());
    let (problems, total) = places.problems(5);
    assert_eq!(total, 1);
    let expected = format!("down/0: at {} the limit's burst or excess would take too long;", format_rate(RATE_MIN_BPS));
    assert!(problems[0].starts_with(&expected), "{problems:?}");
    assert!(problems[0].ends_with(&format!("; it has {}", format_rate(rate_bps))), "{problems:?}");
}

#[test]
fn a_rate_below_the_smallest_is_the_smallest() {
    let mut plan = plan(wire::Profile::default());
    let limits = Limits::from([lent(0, Some(0), None)]);
    assert_eq!(Places::lay_over(&mut plan, &limits, false).problems(5).1, 0);
    assert_eq!(rates(&plan)[0], RATE_MIN_BPS);
}
