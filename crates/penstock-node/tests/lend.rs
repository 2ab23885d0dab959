// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lent limits in a keeper: over restarts, reloads, the operator's changes, and a data plane that refuses.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use common::controller::{all, delta, epoch, lent};
use common::disk::{Disk, add};
use common::recorder::{Moments, Recorder};
use common::{ROWS, in_force, kernel, put, source};
use penstock_api::v1;
use penstock_dataplane::{Chaos, Stub, Tap};
use penstock_node::clock::boottime_ns;
use penstock_node::compiled::compile;
use penstock_node::leases::Taken;
use penstock_node::{Keeper, limits};
use std::collections::BTreeMap;

const MBIT: u64 = 1_000_000;

fn keeper(disk: &Disk, tap: &Tap) -> (Keeper, Moments) {
    let recorder = Recorder::new(tap);
    let moments = recorder.moments.clone();
    (Keeper::start(disk.store(), Box::new(recorder)).unwrap(), moments)
}

/// Reports once, and takes an order that answers that.
fn order(keeper: &mut Keeper, order: v1::Order) -> Taken {
    let now_ns = boottime_ns();
    let sequence = now_ns;
    let _ = keeper.report(sequence, false, now_ns);
    keeper.take_order(&v1::Order { answers: sequence, ..order }, boottime_ns()).unwrap()
}

/// A keeper of the usual policy, with `a` and `gold` lent.
fn lending(disk: &Disk, tap: &Tap) -> (Keeper, Moments) {
    let (mut keeper, moments) = keeper(disk, tap);
    put(&mut keeper, &source("first", "50Mbit/s", ROWS)).unwrap();
    let _ = keeper.register("sw1");
    let limits = vec![lent(1, "a", 3 * MBIT, Some(MBIT)), lent(2, "gold", 80 * MBIT, None)];
    assert_eq!(order(&mut keeper, all(1, limits)), Taken::Changed);
    (keeper, moments)
}

fn rates(gold: u64, a: u64, b: u64) -> BTreeMap<String, u64> {
    [("down/gold", gold), ("a", a), ("b", b)].map(|(name, rate)| (name.to_owned(), rate * MBIT)).into()
}

fn report(keeper: &mut Keeper) -> v1::Report {
    let now_ns = boottime_ns();
    keeper.report(now_ns, false, now_ns)
}

#[test]
fn lent_rates_take_the_place_of_the_policys_and_are_no_changes_of_the_operator() {
    let (mut keeper, _) = lending(&Disk::new(), &Stub::new().tap());
    assert_eq!(in_force(&keeper).1, rates(80, 3, 20));
    assert!(keeper.changes().is_empty());
    let a = limits::get(&keeper, "a").unwrap();
    let lease = a.lease.unwrap();
    assert_eq!((a.rate_bps, lease.policy_rate_bps, lease.lent_bps), (3 * MBIT, 10 * MBIT, Some(3 * MBIT)));
    assert_eq!((lease.term, lease.number, lease.safe_bps, lease.lapsed), (1, 1, Some(MBIT), false));
    assert!(lease.left_ns > 0 && lease.left_ns <= 5_000_000_000 && a.change.is_none());
    let report = report(&mut keeper);
    assert_eq!((report.applied, report.wants_all, report.lapsed), (epoch(1, 1), false, false));
    let returned = v1::Order { returned: vec![2], ..delta(2, 1, vec![]) };
    assert_eq!(order(&mut keeper, returned), Taken::Changed);
    assert_eq!(in_force(&keeper).1, rates(50, 3, 20));
    assert!(limits::get(&keeper, "gold").unwrap().lease.is_none());
}

#[test]
fn a_new_daemon_goes_on_with_lent_rates_without_a_moment_of_others() {
    let (disk, tap) = (Disk::new(), Stub::new().tap());
    drop(lending(&disk, &tap));
    let (mut keeper, moments) = keeper(&disk, &tap);
    assert_eq!(*moments.lock().unwrap(), [rates(80, 3, 20)]);
    // A new leader learns what is in force, and nothing older is taken.
    let holds = keeper.register("sw1").holds;
    let told: Vec<_> = holds.iter().map(|one| (one.class.as_str(), one.rate_bps.unwrap())).collect();
    assert_eq!(told, [("a", 3 * MBIT), ("gold", 80 * MBIT)]);
    let first = report(&mut keeper);
    assert_eq!((first.applied, first.wants_all, first.lapsed), (epoch(1, 1), true, false));
    assert_eq!(order(&mut keeper, v1::Order { epoch: epoch(0, 9), ..all(0, vec![]) }), Taken::Stale);
}

#[test]
fn a_rate_that_went_down_is_in_the_store_before_it_is_acknowledged() {
    let (disk, tap) = (Disk::new(), Stub::new().tap());
    let (mut keeper, _) = lending(&disk, &tap);
    assert_eq!(order(&mut keeper, delta(2, 1, vec![lent(1, "a", 2 * MBIT, None)])), Taken::Changed);
    // Whoever starts now comes back with no more.
    let crashed = disk.copy().store().lent().unwrap().unwrap();
    assert_eq!(crashed.holding.limits[&1].rate_bps, Some(2 * MBIT));
    // More may be forgotten, for a second.
    assert_eq!(order(&mut keeper, delta(3, 2, vec![lent(1, "a", 9 * MBIT, None)])), Taken::Changed);
    assert_eq!(disk.copy().store().lent().unwrap().unwrap().holding.limits[&1].rate_bps, Some(2 * MBIT));
    keeper.save_lease(boottime_ns(), true);
    assert_eq!(disk.copy().store().lent().unwrap().unwrap().holding.limits[&1].rate_bps, Some(9 * MBIT));
}

#[test]
fn after_another_boot_or_the_leases_end_a_daemon_starts_with_safe_rates() {
    for is_other_boot in [true, false] {
        let (disk, tap) = (Disk::new(), Stub::new().tap());
        drop(lending(&disk, &tap));
        let mut record = disk.store().lent().unwrap().unwrap();
        match is_other_boot {
            true => record.boot = "another".to_owned(),
            false => (record.holding.answered_ns, record.holding.lease_ns) = (1, 1),
        }
        disk.store().lend(Some(&record)).unwrap();
        tap.reboot();
        let (mut keeper, moments) = keeper(&disk, &tap);
        assert_eq!(*moments.lock().unwrap(), [rates(50, 1, 20)], "other boot: {is_other_boot}");
        let _ = keeper.register("sw1");
        let first = report(&mut keeper);
        assert_eq!((first.applied, first.wants_all, first.lapsed), (epoch(1, 1), true, true));
        assert_eq!(order(&mut keeper, all(2, vec![lent(5, "a", 4 * MBIT, None)])), Taken::Changed);
        assert_eq!(in_force(&keeper).1, rates(50, 4, 20));
        assert!(!report(&mut keeper).lapsed);
    }
}

#[test]
fn a_lapse_brings_safe_rates_and_the_policys_and_says_so() {
    let (disk, tap) = (Disk::new(), Stub::new().tap());
    let (mut keeper, _) = lending(&disk, &tap);
    let left_ns = keeper.lapse(boottime_ns()).unwrap();
    assert!(left_ns > 0);
    assert_eq!(keeper.lapse(boottime_ns() + left_ns), None);
    assert_eq!(in_force(&keeper).1, rates(50, 1, 20));
    let lease = limits::get(&keeper, "a").unwrap().lease.unwrap();
    assert!(lease.lapsed && lease.left_ns == 0);
    let told = report(&mut keeper);
    assert!(told.lapsed && told.wants_all);
    assert_eq!(order(&mut keeper, delta(2, 1, vec![])), Taken::Unfounded);
    assert_eq!(in_force(&keeper).1, rates(50, 1, 20));
}

#[test]
fn a_reload_comes_into_force_with_lent_rates() {
    let (disk, tap) = (Disk::new(), Stub::new().tap());
    let (mut keeper, moments) = lending(&disk, &tap);
    moments.lock().unwrap().clear();
    let next = source("second", "60Mbit/s", "name,dst,rate\na,10.1.0.1,11Mbit/s\nb,10.1.0.2,21Mbit/s\n");
    // What is lent is no difference between the policies.
    let preview = keeper.preview(&compile(&next, keeper.changes()).unwrap());
    let what: Vec<_> = preview.limits.unwrap().changed_names.into_iter().map(|one| one.what).collect();
    assert_eq!(what, ["50Mbit/s -> 60Mbit/s", "10Mbit/s -> 11Mbit/s", "20Mbit/s -> 21Mbit/s"]);
    put(&mut keeper, &next).unwrap();
    assert_eq!(*moments.lock().unwrap(), [rates(80, 3, 21)]);
    assert_eq!(limits::get(&keeper, "a").unwrap().lease.unwrap().policy_rate_bps, 11 * MBIT);
    // A policy without one of them: a problem, and the others hold.
    put(&mut keeper, &source("third", "60Mbit/s", "name,dst,rate\nb,10.1.0.2,22Mbit/s\n")).unwrap();
    let told = report(&mut keeper);
    assert!(told.problems[0].starts_with("the link `down` has no class or row `a`; "), "{:?}", told.problems);
    assert_eq!((told.problems.len(), told.problems_total), (1, 1));
    assert_eq!(in_force(&keeper).1["down/gold"], 80 * MBIT);
    // Back again, and out of force.
    put(&mut keeper, &source("fourth", "60Mbit/s", ROWS)).unwrap();
    assert_eq!(in_force(&keeper).1, rates(80, 3, 20));
    keeper.down().unwrap();
    assert_eq!(report(&mut keeper).problems, ["no policy is in force: there is no place for 2 limits"]);
    put(&mut keeper, &source("fifth", "60Mbit/s", ROWS)).unwrap();
    assert_eq!((in_force(&keeper).1, report(&mut keeper).problems_total), (rates(80, 3, 20), 0));
}

#[test]
fn what_the_operator_sets_holds_when_nothing_is_lent_any_more() {
    let (disk, tap) = (Disk::new(), Stub::new().tap());
    let (mut keeper, _) = lending(&disk, &tap);
    let reply = limits::set(&mut keeper, "gold", 40 * MBIT).unwrap();
    assert_eq!((reply.before_bps, reply.rate_bps), (50 * MBIT, 40 * MBIT));
    assert_eq!(reply.lease.unwrap().policy_rate_bps, 40 * MBIT);
    assert_eq!(in_force(&keeper).1, rates(80, 3, 20));
    assert_eq!(limits::get(&keeper, "gold").unwrap().change.unwrap().policy_rate_bps, 50 * MBIT);
    drop(keeper);
    let (mut keeper, moments) = self::keeper(&disk, &tap);
    assert_eq!(*moments.lock().unwrap(), [rates(80, 3, 20)]);
    keeper.lapse(boottime_ns() + 6_000_000_000);
    assert_eq!(in_force(&keeper).1, rates(40, 1, 20));
    limits::set(&mut keeper, "gold", 45 * MBIT).unwrap();
    assert_eq!(in_force(&keeper).1, rates(45, 1, 20), "it has the policy's rate now");
}

#[test]
fn rows_that_come_and_go_find_and_lose_their_place() {
    let (disk, tap) = (Disk::new(), Stub::new().tap());
    let (mut keeper, _) = lending(&disk, &tap);
    let limits = vec![lent(1, "a", 3 * MBIT, None), lent(3, "c", 7 * MBIT, None)];
    assert_eq!(order(&mut keeper, all(2, limits)), Taken::Changed);
    assert_eq!(report(&mut keeper).problems_total, 1);
    add(&mut keeper, "c", "10.1.0.3").unwrap();
    assert_eq!((in_force(&keeper).1["c"], report(&mut keeper).problems_total), (7 * MBIT, 0));
    limits::delete(&mut keeper, "a").unwrap();
    assert_eq!(report(&mut keeper).problems_total, 1);
    assert!(limits::get(&keeper, "c").unwrap().lease.is_some());
    assert_eq!(order(&mut keeper, all(3, vec![])), Taken::Changed);
    assert_eq!((in_force(&keeper).1["c"], report(&mut keeper).problems_total), (3 * MBIT, 0));
}

#[test]
fn what_the_data_plane_refuses_is_not_acknowledged_and_not_half_done() {
    let (mut refused, mut happened) = (0, 0);
    for seed in 0..20 {
        let (disk, tap) = (Disk::new(), Stub::new().tap());
        drop(lending(&disk, &tap));
        let chaos = Chaos::new(tap.open(), seed, 0);
        let dial = chaos.dial();
        let mut keeper = Keeper::start(disk.store(), Box::new(chaos)).unwrap();
        let _ = keeper.register("sw1");
        let _ = keeper.report(1, false, boottime_ns());
        let limits = vec![lent(1, "a", 9 * MBIT, None), lent(2, "gold", 70 * MBIT, None)];
        let order = v1::Order { answers: 1, ..delta(2, 1, limits) };
        dial.set_failing(u32::MAX);
        match keeper.take_order(&order, boottime_ns()) {
            Ok(taken) => {
                assert_eq!(taken, Taken::Changed, "it failed, and happened all the same");
                assert_eq!((in_force(&keeper).1, report(&mut keeper).applied), (rates(70, 9, 20), epoch(1, 2)));
                happened += 1;
            }
            Err(error) => {
                assert!(error.to_string().contains("this write failed on purpose"), "{error}");
                let told = report(&mut keeper);
                assert_eq!((in_force(&keeper).1, told.applied), (rates(80, 3, 20), epoch(1, 1)));
                assert!(told.wants_all);
                refused += 1;
            }
        }
        // A lapse that cannot be made is tried until it is.
        keeper.lapse(boottime_ns() + 6_000_000_000);
        dial.set_failing(0);
        keeper.lapse(boottime_ns() + 6_000_000_000);
        assert!(report(&mut keeper).lapsed);
        assert_eq!(in_force(&keeper).1["down/gold"], 50 * MBIT);
    }
    assert!(refused > 0 && happened > 0, "{refused} {happened}");
}

#[test]
fn rates_go_down_before_others_go_up() {
    let (disk, tap) = (Disk::new(), Stub::new().tap());
    let (mut keeper, moments) = lending(&disk, &tap);
    for (number, (a, gold)) in (2..).zip([(60, 20), (10, 70), (80, 1), (1, 80)]) {
        let sum = |rates: &BTreeMap<String, u64>| rates["a"] + rates["down/gold"];
        let before = sum(&in_force(&keeper).1);
        moments.lock().unwrap().clear();
        let limits = vec![lent(1, "a", a * MBIT, None), lent(2, "gold", gold * MBIT, None)];
        assert_eq!(order(&mut keeper, delta(number, number - 1, limits)), Taken::Changed);
        let most = before.max((a + gold) * MBIT);
        let moments = moments.lock().unwrap();
        assert!(moments.len() == 2 && moments.iter().all(|rates| sum(rates) <= most), "{moments:?}");
    }
}

#[test]
fn one_order_that_is_wrong_in_parts_holds_in_the_others() {
    let (disk, tap) = (Disk::new(), Stub::new().tap());
    let (mut keeper, _) = lending(&disk, &tap);
    let mut limits: Vec<_> = (10..40).map(|number| lent(number, &format!("x{number}"), MBIT, None)).collect();
    limits.push(lent(1, "a", 4 * MBIT, None));
    limits.push(v1::Lent { port: "up".to_owned(), ..lent(2, "gold", MBIT, None) });
    assert_eq!(order(&mut keeper, all(2, limits)), Taken::Changed);
    assert_eq!(in_force(&keeper).1, rates(50, 4, 20));
    let told = report(&mut keeper);
    assert_eq!((told.applied, told.problems.len(), told.problems_total), (epoch(1, 2), 20, 31));
    assert_eq!(told.problems[0], "the policy has no link `up` (for class `gold`); its links are down");
}

#[test]
fn a_keeper_that_nothing_was_lent_to_says_so() {
    let (disk, tap) = (Disk::new(), Stub::new().tap());
    let mut keeper = Keeper::start(disk.store(), kernel(&tap)).unwrap();
    let registration = keeper.register("sw1");
    assert!(registration.holds.is_empty() && registration.ports.is_empty());
    let told = report(&mut keeper);
    assert_eq!((told.applied, told.wants_all, told.lapsed, told.problems_total), (None, true, false, 0));
    assert!(keeper.lapse(boottime_ns()).is_none() && keeper.controller_status().is_none());
}
