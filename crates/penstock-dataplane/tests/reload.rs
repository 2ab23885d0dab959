// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reloads and edits at any moment of a replay: nothing that is not in the new policy changes what becomes of a packet.

#![allow(clippy::unwrap_used, clippy::duplicate_mod)] // a test may panic

#[path = "common/traffic.rs"]
mod traffic;

use penstock_algo::plane::Rng;
use penstock_dataplane::{Dataplane, Edit, LimitId, Replay, Sinks, edit_plan, is_live};
use penstock_packet::{CaptureWriter, Format, Interface};
use penstock_policy::limits_file::LimitsText;
use penstock_policy::{Plan, Policy};
use proptest::prelude::*;
use traffic::{Packet, run, run_into};

const PACKETS: usize = 1500;

/// Every meter, with drop, mark, early drop and shadow, as limits of classes and as rows.
const POLICY: &str = "
penstock: 1
name: reload
ports: { lan: { rate: 10Gbit/s } }
links:
  - name: down
    port: lan
    unmatched: drop
    classes:
      - { name: police, match: [ { dst: 10.0.0.0/24 } ], limit: { rate: 1Mbit/s, burst: 10ms, excess: 10ms } }
      - { name: early, match: [ { dst: 10.0.1.0/24 } ], limit: { rate: 1Mbit/s, early_drop: 50% } }
      - { name: mark, match: [ { dst: 10.0.2.0/24 } ], limit: { rate: 2Mbit/s, burst: 5ms, excess: 40ms, on_excess: mark } }
      - { name: shadow, match: [ { dst: 10.0.3.0/24 } ], limit: { rate: 100kbit/s }, mode: shadow }
      - { name: single, match: [ { dst: 10.0.4.0/24 } ], limit: { rate: 1Mbit/s, meter: rfc2697, burst: 10KB, excess: 20KB, yellow: { dscp: af12 } } }
      - { name: two, match: [ { dst: 10.0.5.0/24 } ], limit: { rate: 1Mbit/s, meter: rfc2698, peak: 2Mbit/s, burst: 10KB, excess: 20KB } }
      - { name: four, match: [ { dst: 10.0.6.0/24 } ], limit: { rate: 1Mbit/s, meter: rfc4115, excess_rate: 500kbit/s, burst: 10KB, excess: 20KB } }
      - { name: rows, limits: { file: rows.csv } }
      - { name: free, match: [ { dst: 10.0.8.0/24 } ] }
";

/// Rows of several kinds, of which a few share an address's longer and shorter prefixes.
fn rows() -> String {
    let row = |last: u32| {
        let rest = ["drop,", "mark,", "drop,rfc2697"][last as usize % 3];
        format!("r{last},10.0.7.{last}/32,{}kbit/s,4KB,4KB,{rest}\n", 200 + last)
    };
    let rows: String = (0..12).map(row).collect();
    format!("name,dst,rate,burst,excess,on_excess,meter\n{rows}net,10.0.7.0/24,2Mbit/s,4KB,4KB,drop,\n")
}

fn plan() -> Plan {
    let policy = Policy::parse("test.yaml", POLICY).unwrap_or_else(|errors| panic!("{errors}"));
    let read = |name: &str| Ok(LimitsText { name: name.to_owned(), bytes: rows().into_bytes() });
    penstock_policy::compile::compile(&policy, read).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Packets to all classes, now and then with a long gap; a few times what the limits pass.
fn traffic(seed: u64) -> Vec<Packet> {
    let mut rng = Rng::new(seed);
    let mut draw = |bound: u32| rng.next_u32() % bound;
    let mut time_ns = 0;
    let packet = |_| {
        time_ns += if draw(300) == 0 { 30_000_000 } else { u64::from(draw(150_000)) };
        let (third, last) = (draw(10), draw(14));
        let third = if third == 9 { 7 } else { third };
        let to = [10, 0, u8::try_from(third).unwrap(), u8::try_from(last).unwrap()];
        Packet { time_ns, to, bytes: 64 + draw(1400) as usize, ecn: u8::try_from(draw(4)).unwrap() }
    };
    (0..PACKETS).map(packet).collect()
}

/// Else the properties below say little.
#[test]
fn the_traffic_meets_every_verdict() {
    let mut replay = Replay::new(plan(), None, 1).unwrap();
    run(&mut replay, &traffic(1));
    let report = replay.report();
    for reason in ["over_rate", "early_drop", "ce_mark", "dscp_mark"] {
        assert!(report.reasons.get(reason).is_some_and(|&packets| packets >= 10), "{reason}: {:?}", report.reasons);
    }
    let judged = |name: &str| report.limits.iter().filter(|limit| limit.name == name && limit.red_packets > 0).count();
    assert_eq!([judged("police"), judged("shadow"), judged("single"), judged("two"), judged("four")], [1; 5]);
    assert!(report.limits.iter().filter(|limit| limit.class == "down/rows" && limit.red_packets > 0).count() >= 3);
}

/// All that can be told of limits: rate, queue, window and counters.
fn limits(replay: &Replay) -> Vec<String> {
    let plan = replay.plan().unwrap();
    let rows = (0..).zip(&plan.entries).filter(|(_, entry)| is_live(entry)).map(|(row, _)| LimitId::Row(row));
    let all = rows.chain((0..).zip(&plan.limits).map(|(index, _)| LimitId::Class(index)));
    all.map(|limit| format!("{limit:?}: {:?}", replay.limit(limit).unwrap())).collect()
}

/// The report without what tells of reloads.
fn report(replay: &Replay) -> String {
    let mut report = replay.report();
    report.reloads.clear();
    format!("{report:#?}")
}

/// Packets up to each moment, with something that is done then.
fn interrupted(
    replay: &mut Replay,
    packets: &[Packet],
    moments: &[usize],
    mut then: impl FnMut(&mut Replay),
) -> Vec<String> {
    let mut moments = moments.to_vec();
    moments.sort_unstable();
    let (mut lines, mut done) = (Vec::new(), 0);
    for moment in moments {
        lines.extend(run(replay, &packets[done..moment]));
        done = moment;
        then(replay);
    }
    lines.extend(run(replay, &packets[done..]));
    lines
}

/// Frames that passed, marked ones marked, of a replay with the same policy again at these times.
fn captured(reloads_ns: impl Iterator<Item = u64>) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.pcap");
    let mut replay = Replay::new(plan(), None, 1).unwrap();
    reloads_ns.for_each(|time_ns| replay.reload_at(time_ns, plan()).unwrap());
    let interface = Interface { name: None, linktype: 1, snap_bytes: 65_535 };
    let capture = CaptureWriter::create(&path, Format::Pcap, &[interface]).unwrap();
    let mut sinks = Sinks { capture: Some(capture), ..Sinks::default() };
    run_into(&mut replay, &traffic(1), &mut sinks);
    sinks.capture.unwrap().finish(true).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn frames_that_pass_are_the_same() {
    let undisturbed = captured(std::iter::empty());
    assert!(undisturbed.len() > 100_000);
    assert!(captured((1..50).map(|millisecond| millisecond * 1_000_000)) == undisturbed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_same_policy_again_changes_nothing(
        seed in any::<u64>(),
        moments in prop::collection::vec(1..PACKETS, 1..12),
    ) {
        let packets = traffic(seed);
        let mut undisturbed = Replay::new(plan(), None, seed).unwrap();
        let expected = run(&mut undisturbed, &packets);
        let mut replay = Replay::new(plan(), None, seed).unwrap();
        let mut kept = Vec::new();
        let lines = interrupted(&mut replay, &packets, &moments, |replay| {
            kept.push(replay.apply(plan()).unwrap().limits_kept);
        });
        prop_assert_eq!(lines, expected);
        prop_assert_eq!(limits(&replay), limits(&undisturbed));
        prop_assert_eq!(report(&replay), report(&undisturbed));
        let (a, b) = (replay.readings().unwrap(), undisturbed.readings().unwrap());
        prop_assert_eq!((a.now_ns, a.classes, a.reasons), (b.now_ns, b.classes, b.reasons));
        prop_assert!(kept.iter().all(|&kept| kept == 20), "{:?}", kept);
    }

    #[test]
    fn an_edit_is_a_reload_with_the_edited_policy(
        seed in any::<u64>(),
        moments in prop::collection::vec(1..PACKETS, 1..12),
    ) {
        let packets = traffic(seed);
        let mut edited = Replay::new(plan(), None, seed).unwrap();
        let mut edits = EditsOf(Rng::new(seed));
        let lines = interrupted(&mut edited, &packets, &moments, |replay| {
            let edit = edits.next(replay.plan().unwrap());
            replay.edit(&[edit]).unwrap();
        });
        let mut reloaded = Replay::new(plan(), None, seed).unwrap();
        let mut edits = EditsOf(Rng::new(seed));
        let expected = interrupted(&mut reloaded, &packets, &moments, |replay| {
            let mut plan = replay.plan().unwrap().clone();
            let edit = edits.next(&plan);
            edit_plan(&mut plan, &[edit]);
            replay.apply(plan).unwrap();
        });
        prop_assert_eq!(lines, expected);
        prop_assert_eq!(limits(&edited), limits(&reloaded));
        prop_assert_eq!(report(&edited), report(&reloaded));
    }

    #[test]
    fn a_reload_that_is_due_is_a_reload_then(seed in any::<u64>(), moments in prop::collection::vec(1..PACKETS, 1..6)) {
        let packets = traffic(seed);
        let first_ns = packets[0].time_ns;
        let mut moments = moments;
        moments.sort_unstable();
        let mut edits = EditsOf(Rng::new(seed));
        let mut plans = Vec::new();
        let mut next = plan();
        for &moment in &moments {
            let edit = edits.next(&next);
            edit_plan(&mut next, &[edit]);
            // Between two packets, so that time moves on to it; of two with one stamp, before both.
            let due_ns = (packets[moment - 1].time_ns + packets[moment].time_ns).div_ceil(2) - first_ns;
            plans.push((due_ns, next.clone()));
        }
        let mut scheduled = Replay::new(plan(), None, seed).unwrap();
        for (due_ns, plan) in plans.clone() {
            scheduled.reload_at(due_ns, plan).unwrap();
        }
        let lines = run(&mut scheduled, &packets);
        let mut applied = Replay::new(plan(), None, seed).unwrap();
        let (mut expected, mut rest) = (Vec::new(), packets.as_slice());
        for (due_ns, plan) in plans {
            let before = rest.partition_point(|packet| packet.time_ns - first_ns < due_ns);
            expected.extend(run(&mut applied, &rest[..before]));
            rest = &rest[before..];
            applied.advance_to(due_ns);
            applied.apply(plan).unwrap();
        }
        expected.extend(run(&mut applied, rest));
        prop_assert_eq!(lines, expected);
        prop_assert_eq!(format!("{:?}", scheduled.report()), format!("{:?}", applied.report()));
        prop_assert_eq!(scheduled.report().reloads.len(), moments.len());
    }
}

/// Edits by chance: another rate, a row that goes, one that comes.
struct EditsOf(Rng);

impl EditsOf {
    fn next(&mut self, plan: &Plan) -> Edit {
        let mut draw = |bound: usize| self.0.next_u32() as usize % bound;
        let rows: Vec<u32> = (0..).zip(&plan.entries).filter(|(_, entry)| is_live(entry)).map(|(row, _)| row).collect();
        let row = rows[draw(rows.len())];
        // Never the same one twice: an edit to the rate that there is would round the queue, and a reload would not.
        let rate_bps = 100_000 + 1_000 * draw(3_000) as u64 + 7;
        match draw(4) {
            0 => Edit::SetRate { limit: LimitId::Row(row), rate_bps },
            1 => Edit::SetRate { limit: LimitId::Class(u32::try_from(draw(plan.limits.len())).unwrap()), rate_bps },
            2 if rows.len() > 1 => Edit::Remove { row },
            _ => {
                let mut entry = plan.entries[0];
                let is_taken = |key: &_| rows.iter().any(|&row| plan.entries[row as usize].value == *key);
                while is_taken(&entry.value) {
                    entry.value.words[0] += 1;
                }
                (entry.rate_bps, entry.rate) = (rate_bps, penstock_policy::terms::rate_code(rate_bps));
                Edit::Add { name: "n".to_owned(), entry }
            }
        }
    }
}
