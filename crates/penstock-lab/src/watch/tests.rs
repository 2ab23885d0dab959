// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks made by hand: two tenants share 100 Mbit/s, and it is known when who sends and when limits are right.

use super::follow::{Followed, followed};
use super::{Poll, gaps};
use crate::shares::changes::Change;
use crate::shares::fill::Node;

const MBIT: f64 = 1e6;
/// Between looks, ns.
const STEP_NS: u64 = 100_000;
const ASKED_BPS: [f64; 2] = [100.0 * MBIT, 100.0 * MBIT];

fn tree() -> (Vec<Node>, Vec<usize>) {
    let root = Node { parent: None, weight: 1.0, guarantee: 0.0, ceiling: 100.0 * MBIT, demand: 0.0 };
    let leaf = Node { parent: Some(0), ceiling: f64::INFINITY, ..root };
    (vec![root, leaf, leaf], vec![1, 2])
}

/// `a` sends in all of 2000 looks, a packet a look; `b` from look 500 up to 1500, that one included. All limits are what `limit` says.
fn polls(limit: impl Fn(u64) -> f64) -> Vec<Poll> {
    let poll = |look: u64| Poll {
        time_ns: 7_000_000_000 + look * STEP_NS,
        packets: vec![look, (look + 1).clamp(500, 1501) - 500],
        limits_bps: vec![Some(limit(look)), Some(limit(look))],
    };
    (0..2000).map(poll).collect()
}

fn follow(polls: &[Poll]) -> Followed {
    followed(polls, &tree(), &ASKED_BPS).unwrap()
}

/// Right from 20 looks after the join on, with two looks that are wrong again; after the leave, from 30 on.
fn limit(look: u64) -> f64 {
    match look {
        520..540 | 542..1530 => 54.0 * MBIT,
        _ => 100.0 * MBIT,
    }
}

/// When all limits were right for the first time and for good, in looks, and what the newcomer had sent by then.
fn looks(change: &Change) -> (Option<u64>, Option<u64>, u64) {
    let looks = |time_ns: Option<u64>| time_ns.map(|time_ns| time_ns / STEP_NS);
    (looks(change.first_ns), looks(change.stays_ns), change.newcomers_packets)
}

#[test]
fn a_join_and_a_leave_are_followed() {
    let done = follow(&polls(limit));
    assert_eq!(done.changes.len(), 2, "the beginning and the end of all are no changes");
    assert!(done.changes[0].is_join && !done.changes[1].is_join);
    // Dated back to the look before the packet.
    assert_eq!(looks(&done.changes[0]), (Some(21), Some(43), 43));
    assert_eq!(looks(&done.changes[1]), (Some(31), Some(31), 0));
    assert_eq!((done.right_share, done.pause_ns), (Some(100.0), STEP_NS));
}

#[test]
fn a_limit_that_is_never_right_has_not_settled() {
    let never = follow(&polls(|_| 100.0 * MBIT)).changes;
    assert_eq!(looks(&never[0]), (None, None, 0));
    let metrics = crate::shares::changes::metrics_by_kind(&never);
    let names: Vec<&str> = metrics.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["all", "joins", "leaves"]);
    assert_eq!((metrics[0].1["unsettled"], metrics[1].1["unsettled"], metrics[2].1["unsettled"]), (1.0, 1.0, 0.0));
    assert!(!metrics[1].1.contains_key("first_mean"), "{metrics:?}");
}

#[test]
fn a_limit_that_is_never_right_for_long_has_not_settled() {
    // Wrong once in 19.9 ms.
    let done =
        follow(&polls(|look| if (520..1500).contains(&look) && look % 199 == 100 { 61.0 * MBIT } else { limit(look) }));
    assert_eq!(looks(&done.changes[0]).0, Some(21));
    assert_eq!(done.changes[0].stays_ns.map(|time_ns| time_ns / STEP_NS), Some(1493 + 1 - 499));
    let wrong_at_the_end =
        follow(&polls(|look| if look < 1499 && look % 199 != 100 { limit(look) } else { 61.0 * MBIT }));
    assert_eq!(looks(&wrong_at_the_end.changes[0]), (Some(21), None, 0));
}

#[test]
fn what_is_wrong_later_is_no_part_of_the_change() {
    // 19.9 ms are not for good; 20 ms are.
    let done = follow(&polls(|look| if look == 542 + 200 || look == 1530 + 199 { 61.0 * MBIT } else { limit(look) }));
    assert_eq!(looks(&done.changes[0]), (Some(21), Some(43), 43));
    assert_eq!(looks(&done.changes[1]), (Some(31), Some(231), 0));
    assert!(done.right_share.is_some_and(|share| share > 99.0 && share < 100.0), "{done:?}");
}

#[test]
fn a_gap_makes_times_longer_and_is_told() {
    let mut polls = polls(limit);
    // Nobody looked for 5 ms around the first packet.
    polls.drain(480..530);
    let done = follow(&polls);
    // The first look after it is dated back to the last one before it.
    assert_eq!((looks(&done.changes[0]).0, done.pause_ns), (Some(51), 51 * STEP_NS));
    let told = gaps(&polls);
    assert!((told["watch_gap_most"] - 5.1).abs() < 1e-9 && (told["watch_gap_p99"] - 0.1).abs() < 1e-9, "{told:?}");
}

#[test]
fn a_packet_that_comes_alone_is_no_start_and_no_end() {
    let mut polls = polls(limit);
    for (look, poll) in polls.iter_mut().enumerate() {
        poll.packets[1] += u64::from(look >= 300) + u64::from(look >= 1800);
    }
    assert_eq!(follow(&polls), follow(&self::polls(limit)));
}

#[test]
fn who_never_sends_is_told() {
    let mut polls = polls(limit);
    polls.iter_mut().for_each(|poll| poll.packets[1] = 3);
    assert_eq!(followed(&polls, &tree(), &ASKED_BPS), Err(1));
}

#[test]
fn a_limit_that_nobody_tells_is_not_right() {
    let mut polls = polls(limit);
    polls.iter_mut().for_each(|poll| poll.limits_bps[0] = None);
    assert!(follow(&polls).changes.iter().all(|change| change.first_ns.is_none()));
}
