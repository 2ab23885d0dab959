// SPDX-License-Identifier: MIT OR Apache-2.0
//! The replay engine as a data plane: policies come, change and go in virtual time.

#![allow(clippy::unwrap_used, clippy::duplicate_mod)] // a test may panic

#[path = "common/suite.rs"]
mod suite;
#[path = "common/traffic.rs"]
mod traffic;

use penstock_algo::wire;
use penstock_dataplane::report::ClassReport;
use penstock_dataplane::timeline::Timeline;
use penstock_dataplane::{Dataplane, DataplaneError, Edit, LimitId, Outcome, Replay, Sinks};
use penstock_policy::{Plan, Policy};
use suite::{ROWS, Subject, packets, plan, suite};
use traffic::{Packet, run, run_into, try_run};

const DEVICES: [&str; 2] = ["eth0", "eth1"];
const MS_NS: u64 = 1_000_000;

struct Replayed {
    replay: Replay,
    now_ns: u64,
}

impl Subject for Replayed {
    fn dataplane(&mut self) -> &mut dyn Dataplane {
        &mut self.replay
    }

    fn offer(&mut self, limit: LimitId) {
        let to = match limit {
            LimitId::Class(_) => [10, 2, 0, 1],
            LimitId::Row(row) => {
                let destination = self.replay.plan().unwrap().entries[row as usize].value.words[0];
                u32::try_from(destination).unwrap().to_be_bytes()
            }
        };
        run(&mut self.replay, &[Packet { time_ns: self.now_ns, to, bytes: 1500, ecn: 0 }]);
    }

    fn advance(&mut self, time_ns: u64) {
        self.now_ns += time_ns;
        self.replay.advance_to(self.now_ns);
    }
}

#[test]
fn replay_does_what_a_data_plane_does() {
    suite(&mut Replay::idle(1), DEVICES);
}

#[test]
fn replay_treats_packets_as_a_data_plane_does() {
    packets(&mut Replayed { replay: Replay::idle(1), now_ns: 0 }, DEVICES);
}

#[test]
fn nothing_outlives_the_process() {
    let mut replay = Replay::new(plan(DEVICES, "50Mbit/s", ROWS), None, 1).unwrap();
    assert!(matches!(replay.adopt(plan(DEVICES, "1Mbit/s", ROWS)), Err(DataplaneError::Idle)));
    assert_eq!(replay.limit(LimitId::Class(0)).unwrap().rate_bps, 50_000_000);
}

/// A packet of 1500 bytes a millisecond, 12 Mbit/s, to one address.
fn steady(to: [u8; 4], milliseconds: std::ops::Range<u64>) -> Vec<Packet> {
    milliseconds.map(|at| Packet { time_ns: at * MS_NS, to, bytes: 1500, ecn: 0 }).collect()
}

#[test]
fn a_plan_that_cannot_be_loaded_leaves_the_old_one_in_force() {
    let good = plan(DEVICES, "50Mbit/s", ROWS);
    let mut bad = good.clone();
    bad.policy = "bad".to_owned();
    bad.entries[0].rate_bps = 1;
    bad.names.push("again").unwrap();
    bad.entries.push(bad.entries[0]);
    let packets = steady([10, 1, 0, 1], 0..400);
    let mut undisturbed = Replay::new(good.clone(), None, 1).unwrap();
    let expected = run(&mut undisturbed, &packets);
    assert!(expected.iter().any(|line| line.contains("over_rate")));

    let mut replay = Replay::new(good, None, 1).unwrap();
    let mut lines = run(&mut replay, &packets[..200]);
    let error = replay.apply(bad).unwrap_err();
    assert!(matches!(error, DataplaneError::Load(_)), "{error}");
    assert_eq!((replay.generation(), replay.plan().unwrap().policy.as_str()), (Some(1), "suite"));
    lines.extend(run(&mut replay, &packets[200..]));
    assert_eq!(lines, expected);
    assert_eq!(format!("{:?}", replay.report()), format!("{:?}", undisturbed.report()));
}

#[test]
fn a_replay_that_is_restricted_to_a_link_stays_there() {
    let links = |names: [&str; 2]| {
        let link = |name: &str| {
            format!("  - {{ name: {name}, port: to-{name}, classes: [ {{ name: all, match: [ {{}} ] }} ] }}\n")
        };
        let ports = names.map(|name| format!("  to-{name}: {{ rate: 1Gbit/s }}\n")).concat();
        compiled(&format!("penstock: 1\nname: links\nports:\n{ports}links:\n{}", names.map(link).concat()))
    };
    let mut replay = Replay::new(links(["up", "down"]), Some("down"), 1).unwrap();
    for error in
        [replay.apply(links(["up", "aside"])).unwrap_err(), replay.reload_at(1, links(["up", "aside"])).unwrap_err()]
    {
        assert_eq!(error.to_string(), "the policy has no link \"down\"; it has up, aside");
    }
    assert_eq!(replay.generation(), Some(1));
    run(&mut replay, &steady([10, 2, 0, 1], 0..10));
    replay.apply(links(["down", "aside"])).unwrap();
    run(&mut replay, &steady([10, 2, 0, 1], 10..20));
    replay.apply(links(["aside", "down"])).unwrap();
    run(&mut replay, &steady([10, 2, 0, 1], 20..30));
    let report = replay.report();
    let links: Vec<(&str, u64)> = report.links.iter().map(|link| (link.name.as_str(), link.passed_packets)).collect();
    assert_eq!(links, [("aside", 0), ("down", 30), ("up", 0)]);
    let all = [("down/all", 30, 0), ("aside/all", 0, 0), ("up/all", 0, 0)];
    assert!(all.iter().all(|class| offered_and_dropped(&report.classes).contains(class)), "{report:?}");
}

/// A row that comes may move others, and without room for it there are larger tables: nothing of the others changes.
#[test]
fn rows_that_make_room_keep_what_they_are() {
    let rows: String = (0..100).map(|row| format!("r{row},10.1.0.{row},10Mbit/s\n")).collect();
    let mut replay = Replay::new(plan(DEVICES, "50Mbit/s", &format!("name,dst,rate\n{rows}")), None, 1).unwrap();
    for row in 0..100_u8 {
        let packet = Packet { time_ns: 0, to: [10, 1, 0, row], bytes: 1500, ecn: 0 };
        run(&mut replay, &vec![packet; usize::from(row)]);
    }
    let held = replay.plan().unwrap().clone();
    let rows = |replay: &Replay| -> Vec<String> {
        (0..100).map(|row| format!("{:?}", replay.limit(LimitId::Row(row)).unwrap())).collect()
    };
    let (was, before) = (rows(&replay), replay.readings().unwrap());
    let mut added = 0;
    while replay.generation() == Some(1) {
        assert_eq!(rows(&replay), was, "after {added} rows");
        let mut entry = held.entries[0];
        entry.value.words[0] += 1_000 + added;
        replay.edit(&[Edit::Add { name: format!("n{added}"), entry }]).unwrap();
        added += 1;
    }
    assert_eq!((replay.generation(), rows(&replay)), (Some(2), was));
    let after = replay.readings().unwrap();
    assert_eq!((after.classes, after.reasons), (before.classes, before.reasons));
    let last = LimitId::Row(u32::try_from(99 + added).unwrap());
    let address = u32::try_from(replay.plan().unwrap().entries.last().unwrap().value.words[0]).unwrap();
    run(&mut replay, &[Packet { time_ns: 0, to: address.to_be_bytes(), bytes: 1500, ecn: 0 }]);
    assert_eq!(replay.limit(last).unwrap().counters.unwrap().offered_packets, 1);
    assert!(replay.report().reloads.is_empty(), "an edit is no reload");
}

/// Samples come at most one in PST_SAMPLE_GAP_NSEC, and no more than anybody reads are kept: the last ones.
#[test]
fn samples_are_few() {
    let mut replay = Replay::new(plan(DEVICES, "50Mbit/s", ROWS), None, 1).unwrap();
    let flood = |microseconds: std::ops::Range<u64>| -> Vec<Packet> {
        microseconds.map(|at| Packet { time_ns: at * 10_000, to: [10, 1, 0, 1], bytes: 1500, ecn: 0 }).collect()
    };
    run(&mut replay, &flood(0..1_000));
    let samples = replay.samples().unwrap();
    assert_eq!(samples.len(), 10, "one for each millisecond of drops");
    let gap_ns = u64::from(wire::PST_SAMPLE_GAP_NSEC);
    assert!(samples.windows(2).all(|pair| pair[1].time_ns - pair[0].time_ns == gap_ns));
    assert!(samples.iter().all(|sample| sample.key.words[0] & 0xffff_ffff == 0x0a01_0001));
    run(&mut replay, &steady([10, 1, 0, 1], 10..9_000));
    let samples = replay.samples().unwrap();
    assert_eq!(samples.len(), 1024);
    assert!(samples.last().unwrap().time_ns > replay.readings().unwrap().now_ns - 100 * MS_NS);
    run(&mut replay, &flood(900_000..901_000));
    replay.apply(plan(DEVICES, "50Mbit/s", ROWS)).unwrap();
    assert!(replay.samples().unwrap().is_empty(), "they speak of classes of the policy before");
}

/// Classes on one link, as YAML items, under a policy of this name.
fn classes(name: &str, classes: &str) -> Plan {
    let text = format!(
        "penstock: 1\nname: {name}\nports: {{ lan: {{ rate: 1Gbit/s }} }}\nlinks:\n  - name: down\n    port: lan\n    classes:\n{classes}"
    );
    compiled(&text)
}

fn compiled(text: &str) -> Plan {
    let policy = Policy::parse("test.yaml", text).unwrap_or_else(|errors| panic!("{errors}"));
    penstock_policy::compile::compile(&policy, |path| panic!("no file {path}"))
        .unwrap_or_else(|errors| panic!("{errors}"))
}

const GOLD: &str =
    "      - { name: gold, match: [ { dst: 10.2.0.0/16 } ], limit: { rate: 1Mbit/s, burst: 10ms, excess: 0ms } }\n";
const FREE: &str = "      - { name: free, match: [ { dst: 10.3.0.0/16 } ] }\n";
const NEW: &str = "      - { name: new, match: [ { dst: 10.4.0.0/16 } ] }\n";

fn offered_and_dropped(classes: &[ClassReport]) -> Vec<(&str, u64, u64)> {
    classes.iter().map(|class| (class.path.as_str(), class.offered_packets, class.dropped_packets)).collect()
}

/// The report is of the whole replay: what is gone is listed behind what is there, and goes on when it comes back.
#[test]
fn the_report_is_of_all_policies() {
    let both = classes("both", &format!("{GOLD}{FREE}"));
    let mut replay = Replay::new(both.clone(), None, 1).unwrap();
    let flows = [[10, 2, 0, 1], [10, 3, 0, 1], [10, 4, 0, 1]];
    let second = |from: u64| -> Vec<Packet> {
        (from..from + 100)
            .flat_map(|at| flows.map(|to| Packet { time_ns: at * MS_NS, to, bytes: 1500, ecn: 0 }))
            .collect()
    };
    run(&mut replay, &second(0));
    let gold = replay.report().classes[0].dropped_packets;
    assert!((80..100).contains(&gold));

    replay.apply(classes("less", &format!("{NEW}{FREE}"))).unwrap();
    run(&mut replay, &second(100));
    let report = replay.report();
    assert_eq!(
        offered_and_dropped(&report.classes),
        [("down/new", 100, 0), ("down/free", 200, 0), ("down/gold", 100, gold)]
    );
    assert_eq!((report.policy.as_str(), report.limits.len(), report.classes[2].limit_bps), ("less", 0, 0));
    assert_eq!((report.reasons["over_rate"], report.unmatched_packets), (gold, 200));

    replay.apply(both).unwrap();
    run(&mut replay, &second(200));
    let report = replay.report();
    let again = report.classes[0].dropped_packets - gold;
    assert!((80..100).contains(&again));
    assert_eq!(
        offered_and_dropped(&report.classes),
        [("down/gold", 200, gold + again), ("down/free", 300, 0), ("down/new", 100, 0)]
    );
    assert_eq!((report.limits.len(), report.limits[0].offered_packets), (1, 100), "as a limit, it is a new one");
    let times: Vec<(u64, &str)> = report.reloads.iter().map(|one| (one.time_ns, one.policy.as_str())).collect();
    assert_eq!(times, [(99 * MS_NS, "less"), (199 * MS_NS, "both")]);

    replay.down().unwrap();
    let report = replay.report();
    let all: u64 = report.classes.iter().map(|class| class.offered_packets).sum();
    assert_eq!((report.packets, report.packets - report.unmatched_packets), (900, all), "{report:?}");
    assert_eq!(report.links[0].offered_packets, 900);
    assert_eq!(report.reasons["over_rate"], gold + again);
}

/// What a limit in shadow mode would have dropped passed, whatever its mode is later.
#[test]
fn a_change_of_mode_does_not_change_what_passed() {
    let mode = |mode: &str| classes(mode, &GOLD.replace("limit:", &format!("mode: {mode}, limit:")));
    let mut replay = Replay::new(mode("shadow"), None, 1).unwrap();
    let mut dropped = Vec::new();
    for (round, next) in (0..).zip(["enforce", "shadow", "shadow"]) {
        run(&mut replay, &steady([10, 2, 0, 1], round * 100..round * 100 + 100));
        dropped.push(replay.report().classes[0].dropped_packets);
        replay.apply(mode(next)).unwrap();
    }
    let report = replay.report();
    let (class, limit) = (&report.classes[0], &report.limits[0]);
    assert!(dropped[0] > 50 && dropped[1] > dropped[0] + 50 && dropped[2] > dropped[1] + 50, "{dropped:?}");
    assert_eq!((class.offered_packets, limit.offered_packets), (300, 300));
    let passed = 300 - (dropped[1] - dropped[0]);
    assert_eq!((class.passed_packets, limit.passed_packets, report.links[0].passed_packets), (passed, passed, passed));
    assert_eq!((class.dropped_packets, limit.dropped_packets), (dropped[2], dropped[2]));
    assert_eq!(report.links[0].passed_bytes, class.passed_bytes);
    assert_eq!(replay.limit(LimitId::Class(0)).unwrap().counters.unwrap().dropped_packets, dropped[2]);
}

/// A limit of another kind of meter is a new one, but its class goes on.
#[test]
fn another_kind_of_meter_starts_anew() {
    let mut replay = Replay::new(classes("window", GOLD), None, 1).unwrap();
    run(&mut replay, &steady([10, 2, 0, 1], 0..100));
    let class = replay.report().classes[0].clone();
    let rfc = GOLD.replace("burst: 10ms, excess: 0ms", "meter: rfc2697, burst: 10KB, excess: 10KB");
    assert_eq!(replay.apply(classes("rfc", &rfc)).unwrap().limits_kept, 0);
    let report = replay.report();
    assert_eq!((report.classes[0].dropped_packets, report.limits[0].offered_packets), (class.dropped_packets, 0));
    assert_eq!(report.classes[0].passed_bytes, class.passed_bytes);
    assert_eq!(replay.readings().unwrap().classes[0].dropped_packets, class.dropped_packets);
}

/// Series are of classes and rows by name, wherever the policy in force has them.
#[test]
fn a_timeline_follows_classes() {
    let mut replay = Replay::new(classes("before", &format!("{GOLD}{FREE}")), None, 1).unwrap();
    replay.reload_at(50 * MS_NS, classes("after", &format!("{NEW}{FREE}{GOLD}"))).unwrap();
    let series = ["down/new", "down/gold"].map(str::to_owned).to_vec();
    let mut sinks = Sinks { timeline: Some(Timeline::new(2)), series, ..Sinks::default() };
    let flows = [[10, 2, 0, 1], [10, 3, 0, 1], [10, 4, 0, 1]];
    let packets = (0..100).flat_map(|at| flows.map(|to| Packet { time_ns: at * MS_NS, to, bytes: 1500, ecn: 0 }));
    run_into(&mut replay, &packets.collect::<Vec<_>>(), &mut sinks);
    let timeline = sinks.timeline.unwrap();
    let offered = |series: usize| timeline.bins(series).iter().map(|bin| bin.offered).sum::<u64>();
    assert_eq!((offered(0), offered(1)), (50 * 1500, 100 * 1500));
}

#[test]
fn rows_have_series_by_name() {
    let mut replay = Replay::new(plan(DEVICES, "50Mbit/s", ROWS), None, 1).unwrap();
    let next = plan(DEVICES, "50Mbit/s", "name,dst,rate\nz,10.1.0.9,1Mbit/s\na,10.1.0.1,40Mbit/s\n");
    replay.reload_at(50 * MS_NS, next).unwrap();
    let mut sinks = Sinks { timeline: Some(Timeline::new(1)), series: vec!["a".to_owned()], ..Sinks::default() };
    run_into(&mut replay, &steady([10, 1, 0, 1], 0..100), &mut sinks);
    let offered: u64 = sinks.timeline.unwrap().bins(0).iter().map(|bin| bin.offered).sum();
    assert_eq!(offered, 100 * 1500);
}

#[test]
fn packets_without_a_policy_are_an_error() {
    let mut replay = Replay::new(classes("free", FREE), None, 1).unwrap();
    replay.down().unwrap();
    let outcome = try_run(&mut replay, &steady([10, 3, 0, 1], 0..1), &mut Sinks::default());
    let Outcome::Failed(error) = outcome else { panic!("{outcome:?}") };
    assert_eq!(error.to_string(), "no policy is in force");
}
