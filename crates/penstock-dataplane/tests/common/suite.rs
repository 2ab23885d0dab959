// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for every data plane, whatever it is made of: [`suite`] without packets, [`packets`] where a test decides about packets
//! and time.
#![allow(clippy::unwrap_used, dead_code)] // a test may panic; each test file uses a part

use penstock_algo::wire;
use penstock_dataplane::{Dataplane, DataplaneError, Edit, LimitId};
use penstock_policy::limits_file::LimitsText;
use penstock_policy::plan::PlanEntry;
use penstock_policy::{Plan, Policy};

pub const ROWS: &str = "name,dst,rate\na,10.1.0.1,10Mbit/s\nb,10.1.0.2,20Mbit/s\nc,10.1.0.0/24,30Mbit/s\n";

/// A policy on two devices: a class with a limit, a class with a limits file, a class without either.
pub fn plan(devices: [&str; 2], gold: &str, rows: &str) -> Plan {
    let text = format!(
        "penstock: 1\nname: suite\nports:\n  wan: {{ device: {}, rate: 1Gbit/s }}\n  lan: {{ device: {}, rate: 1Gbit/s }}\n\
         links:\n  - name: down\n    port: lan\n    classes:\n      \
         - {{ name: gold, match: [ {{ dst: 10.2.0.0/16 }} ], limit: {{ rate: {gold} }} }}\n      \
         - {{ name: rows, limits: {{ file: rows.csv }} }}\n      \
         - {{ name: free, match: [ {{ dst: 10.3.0.0/16 }} ] }}\n",
        devices[0], devices[1]
    );
    let policy = Policy::parse("suite.yaml", &text).unwrap_or_else(|errors| panic!("{errors}"));
    let read = |name: &str| Ok(LimitsText { name: name.to_owned(), bytes: rows.as_bytes().to_vec() });
    penstock_policy::compile::compile(&policy, read).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The index of a row by its name.
pub fn row(plan: &Plan, name: &str) -> u32 {
    (0..).zip(&plan.entries).find(|&(index, _)| plan.names.get(index as usize) == name).unwrap().0
}

fn entry_of(plan: &Plan, name: &str) -> PlanEntry {
    plan.entries[row(plan, name) as usize]
}

/// A row as `like`, for the address after it.
fn next_to(plan: &Plan, like: &str, offset: u64) -> PlanEntry {
    let mut entry = entry_of(plan, like);
    entry.value.words[0] += offset;
    entry
}

/// Runs it all. Nothing is in force before and after. The devices are those that a policy may name.
pub fn suite(dataplane: &mut dyn Dataplane, devices: [&str; 2]) {
    nothing_is_in_force(dataplane);
    a_policy_comes_into_force(dataplane, devices);
    rates_change(dataplane);
    rows_come_and_go(dataplane);
    all_edits_or_none(dataplane);
    another_policy_keeps_what_stays(dataplane, devices);
    dataplane.down().unwrap();
    nothing_is_in_force(dataplane);
}

/// A data plane with its other side.
pub trait Subject {
    fn dataplane(&mut self) -> &mut dyn Dataplane;

    /// Offers a packet that a limit charges 1500 bytes for.
    fn offer(&mut self, limit: LimitId);

    /// Moves the clock on.
    fn advance(&mut self, time_ns: u64);
}

/// What packets do to limits. Nothing is in force before and after.
pub fn packets(subject: &mut dyn Subject, devices: [&str; 2]) {
    a_limit_lets_its_window_through_and_drops_the_rest(subject, devices);
    a_new_rate_keeps_the_bytes_of_the_queue(subject, devices);
    a_row_that_comes_again_is_a_new_one(subject);
    subject.dataplane().down().unwrap();
    nothing_is_in_force(subject.dataplane());
}

const MS_NS: u64 = 1_000_000;
/// 42.5 ms at 10 Mbit/s are 53,125 bytes: 35 packets of 1500 bytes fit, the next does not.
const SATURATING: u32 = 36;

fn a_limit_lets_its_window_through_and_drops_the_rest(subject: &mut dyn Subject, devices: [&str; 2]) {
    let plan = plan(devices, "50Mbit/s", ROWS);
    subject.dataplane().apply(plan.clone()).unwrap();
    let a = LimitId::Row(row(&plan, "a"));
    (1..SATURATING).for_each(|_| subject.offer(a));
    assert_eq!(subject.dataplane().limit(a).unwrap().counters.unwrap().dropped_packets, 0);
    subject.offer(a);
    let reading = subject.dataplane().limit(a).unwrap();
    assert_eq!((reading.queue_ns / MS_NS, reading.counters.unwrap().dropped_packets), (42, 1));
    subject.advance(20 * MS_NS);
    assert_eq!(subject.dataplane().limit(a).unwrap().queue_ns / MS_NS, 22);
    subject.offer(LimitId::Class(0));
    let readings = subject.dataplane().readings().unwrap();
    let [gold, rows] = [readings.classes[0], readings.classes[1]];
    assert_eq!((gold.offered_packets, gold.offered_bytes), (1, 1500));
    assert_eq!((rows.offered_packets, rows.offered_bytes, rows.dropped_packets), (36, 54_000, 1));
    assert_eq!((rows.green_packets, rows.yellow_packets), (14, 21));
    assert_eq!(readings.reasons[wire::PST_REASON_OVER_RATE as usize], 1);
    let samples = subject.dataplane().samples().unwrap();
    assert_eq!((samples.len(), samples[0].decision.class_index), (1, 1));
    assert_eq!(u32::from(samples[0].decision.reason), wire::PST_REASON_OVER_RATE);
    assert_eq!(samples[0].time_ns, readings.now_ns - 20 * MS_NS);
    assert!(subject.dataplane().samples().unwrap().is_empty(), "they are taken once");
}

fn a_new_rate_keeps_the_bytes_of_the_queue(subject: &mut dyn Subject, devices: [&str; 2]) {
    let first = subject.dataplane().plan().unwrap().clone();
    let (a, gold) = (LimitId::Row(row(&first, "a")), LimitId::Class(0));
    let queue_ns = subject.dataplane().limit(a).unwrap().queue_ns;
    subject.dataplane().edit(&[Edit::SetRate { limit: a, rate_bps: 20_000_000 }]).unwrap();
    assert!(subject.dataplane().limit(a).unwrap().queue_ns.abs_diff(queue_ns / 2) < 1_000);
    // The same through another policy, in which the row has another index; counters go on.
    let gold_ns = subject.dataplane().limit(gold).unwrap().queue_ns;
    assert!(gold_ns > 0);
    let rows = "name,dst,rate\nz,10.1.0.9,1Mbit/s\na,10.1.0.1,40Mbit/s\n";
    let second = plan(devices, "100Mbit/s", rows);
    assert_eq!(subject.dataplane().apply(second.clone()).unwrap().limits_kept, 2);
    let a = LimitId::Row(row(&second, "a"));
    let reading = subject.dataplane().limit(a).unwrap();
    assert!(reading.queue_ns.abs_diff(queue_ns / 4) < 1_000);
    assert_eq!(reading.counters.unwrap().offered_packets, 36);
    assert!(subject.dataplane().limit(gold).unwrap().queue_ns.abs_diff(gold_ns / 2) < 1_000);
    let readings = subject.dataplane().readings().unwrap();
    let offered: Vec<u64> = readings.classes.iter().map(|class| class.offered_packets).collect();
    assert_eq!((offered, readings.reasons[wire::PST_REASON_OVER_RATE as usize]), (vec![1, 36, 0], 1));
    let z = LimitId::Row(row(&second, "z"));
    assert_eq!(subject.dataplane().limit(z).unwrap().queue_ns, 0);
}

fn a_row_that_comes_again_is_a_new_one(subject: &mut dyn Subject) {
    let held = subject.dataplane().plan().unwrap().clone();
    let a = row(&held, "a");
    let entry = entry_of(&held, "a");
    subject.dataplane().edit(&[Edit::Remove { row: a }, Edit::Add { name: "a".to_owned(), entry }]).unwrap();
    let reading = subject.dataplane().limit(LimitId::Row(2)).unwrap();
    assert_eq!((reading.queue_ns, reading.counters.unwrap().offered_packets), (0, 0));
    let readings = subject.dataplane().readings().unwrap();
    assert_eq!(readings.classes[1].offered_packets, 36, "its class still counts what it counted");
    subject.offer(LimitId::Row(2));
    assert_eq!(subject.dataplane().readings().unwrap().classes[1].offered_packets, 37);
}

fn nothing_is_in_force(dataplane: &mut dyn Dataplane) {
    assert_eq!(dataplane.generation(), None);
    assert!(dataplane.plan().is_none());
    assert!(matches!(dataplane.readings(), Err(DataplaneError::Idle)));
    assert!(matches!(dataplane.limit(LimitId::Row(0)), Err(DataplaneError::Idle)));
    assert!(matches!(dataplane.edit(&[Edit::Remove { row: 0 }]), Err(DataplaneError::Idle)));
    dataplane.down().unwrap();
}

fn a_policy_comes_into_force(dataplane: &mut dyn Dataplane, devices: [&str; 2]) {
    let plan = plan(devices, "50Mbit/s", ROWS);
    let applied = dataplane.apply(plan.clone()).unwrap();
    assert_eq!(applied.limits_kept, 0);
    assert_eq!(dataplane.generation(), Some(applied.generation));
    let held = dataplane.plan().unwrap();
    assert_eq!((held.policy.as_str(), held.entries.len(), held.classes.len()), ("suite", 3, 3));
    let readings = dataplane.readings().unwrap();
    assert_eq!(readings.classes.len(), 3);
    assert_eq!(readings.reasons.len(), wire::PST_REASON_COUNT as usize);
    assert!(readings.classes.iter().all(|counters| counters.offered_packets == 0));
    for (name, rate_bps) in [("a", 10_000_000), ("b", 20_000_000), ("c", 30_000_000)] {
        let reading = dataplane.limit(LimitId::Row(row(&plan, name))).unwrap();
        assert_eq!((reading.rate_bps, reading.queue_ns, reading.window_ns), (rate_bps, 0, 42_500_000), "{name}");
    }
    let reading = dataplane.limit(LimitId::Class(0)).unwrap();
    assert_eq!((reading.rate_bps, reading.queue_ns, reading.window_ns), (50_000_000, 0, 42_500_000));
    for unknown in [LimitId::Row(3), LimitId::Class(1)] {
        assert!(matches!(dataplane.limit(unknown), Err(DataplaneError::UnknownLimit(limit)) if limit == unknown));
    }
}

fn rates_change(dataplane: &mut dyn Dataplane) {
    let b = row(dataplane.plan().unwrap(), "b");
    let generation = dataplane.generation();
    let edits = [
        Edit::SetRate { limit: LimitId::Row(b), rate_bps: 25_000_000 },
        Edit::SetRate { limit: LimitId::Class(0), rate_bps: 60_000_000 },
    ];
    dataplane.edit(&edits).unwrap();
    assert_eq!(dataplane.limit(LimitId::Row(b)).unwrap().rate_bps, 25_000_000);
    assert_eq!(dataplane.limit(LimitId::Class(0)).unwrap().rate_bps, 60_000_000);
    let plan = dataplane.plan().unwrap();
    assert_eq!((plan.entries[b as usize].rate_bps, plan.classes[0].limit_bps), (25_000_000, Some(60_000_000)));
    assert_eq!(dataplane.generation(), generation, "an edit is no new generation");
}

fn rows_come_and_go(dataplane: &mut dyn Dataplane) {
    let plan = dataplane.plan().unwrap().clone();
    let b = row(&plan, "b");
    let entry = next_to(&plan, "b", 100);
    dataplane.edit(&[Edit::Add { name: "d".to_owned(), entry }]).unwrap();
    let added = LimitId::Row(3);
    assert_eq!(dataplane.limit(added).unwrap().rate_bps, 25_000_000);
    assert_eq!(dataplane.plan().unwrap().names.get(3), "d");
    let again = dataplane.edit(&[Edit::Add { name: "e".to_owned(), entry }]);
    assert!(matches!(again, Err(DataplaneError::Taken { name }) if name == "e"));

    dataplane.edit(&[Edit::Remove { row: b }]).unwrap();
    assert!(matches!(dataplane.limit(LimitId::Row(b)), Err(DataplaneError::UnknownLimit(_))));
    let removed = &dataplane.plan().unwrap().entries;
    assert_eq!((removed.len(), removed[b as usize].rate), (4, 0), "the index stays");
    let edit = Edit::SetRate { limit: LimitId::Row(b), rate_bps: 1_000_000 };
    assert!(matches!(dataplane.edit(&[edit]), Err(DataplaneError::UnknownLimit(_))));

    // The key is free again, and the row gets the next index.
    dataplane.edit(&[Edit::Add { name: "b".to_owned(), entry: entry_of(&plan, "b") }]).unwrap();
    assert_eq!(dataplane.limit(LimitId::Row(4)).unwrap().rate_bps, 25_000_000);
}

fn all_edits_or_none(dataplane: &mut dyn Dataplane) {
    let plan = dataplane.plan().unwrap().clone();
    let a = LimitId::Row(row(&plan, "a"));
    let good = Edit::SetRate { limit: a, rate_bps: 11_000_000 };
    let mut unknown_tuple = next_to(&plan, "a", 200);
    unknown_tuple.tuple = 1_000;
    let bad = [
        Edit::SetRate { limit: LimitId::Row(99), rate_bps: 1_000_000 },
        Edit::SetRate { limit: LimitId::Class(9), rate_bps: 1_000_000 },
        Edit::Remove { row: 99 },
        Edit::Add { name: "x".to_owned(), entry: entry_of(&plan, "a") },
        Edit::Add { name: "y".to_owned(), entry: unknown_tuple },
    ];
    for bad in bad {
        let message = format!("{bad:?}");
        assert!(dataplane.edit(&[good.clone(), bad]).is_err(), "{message}");
        assert_eq!(dataplane.limit(a).unwrap().rate_bps, 10_000_000, "{message}");
        assert_eq!(dataplane.plan().unwrap().entries.len(), 5, "{message}");
    }
    // One edit may stand on the one before.
    let edits = [
        Edit::Add { name: "f".to_owned(), entry: next_to(&plan, "a", 300) },
        Edit::SetRate { limit: LimitId::Row(5), rate_bps: 12_000_000 },
        Edit::Remove { row: 5 },
    ];
    dataplane.edit(&edits).unwrap();
    assert!(dataplane.limit(LimitId::Row(5)).is_err());
}

fn another_policy_keeps_what_stays(dataplane: &mut dyn Dataplane, devices: [&str; 2]) {
    let before = dataplane.generation().unwrap();
    // b is there under another index and rate, a is gone, n is new; c and gold are as they were.
    let rows = "name,dst,rate\nn,10.1.9.9,1Mbit/s\nb,10.1.0.2,5Mbit/s\nc,10.1.0.0/24,30Mbit/s\n";
    let next = plan(devices, "50Mbit/s", rows);
    let applied = dataplane.apply(next.clone()).unwrap();
    assert!(applied.generation > before);
    assert_eq!(applied.limits_kept, 3, "b, c and gold");
    assert_eq!(dataplane.limit(LimitId::Row(row(&next, "b"))).unwrap().rate_bps, 5_000_000);
    assert_eq!(dataplane.limit(LimitId::Class(0)).unwrap().rate_bps, 50_000_000);
}
