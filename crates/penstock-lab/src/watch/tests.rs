// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks made by hand: two tenants share 100 Mbit/s, and it is known when who sends and when limits are right.

use super::follow::changes;
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

fn followed(polls: &[Poll]) -> Vec<Change> {
    changes(polls, &tree(), &ASKED_BPS).unwrap()
}

/// Right from 20 looks after the join on, with two looks that are wrong again; after the leave, from 30 on.
fn limit(look: u64) -> f64 {
    match look {
        520..540 | 542..1530 => 54.0 * MBIT,
        _ => 100.0 * MBIT,
    }
}

#[test]
fn a_join_and_a_leave_are_followed() {
    let done = followed(&polls(limit));
    let join = Change { is_join: true, first_ns: Some(21 * STEP_NS), stays_ns: Some(43 * STEP_NS), newcomers_packets: 43 };
    let leave = Change { is_join: false, first_ns: Some(31 * STEP_NS), stays_ns: Some(31 * STEP_NS), newcomers_packets: 0 };
    assert_eq!(done, [join, leave], "dated back to the look before the packet; the end of all is no change");
}

#[test]
fn a_limit_that_is_wrong_at_the_end_never_settled() {
    let done = followed(&polls(|look| if look == 1499 { 61.0 * MBIT } else { limit(look) }));
    assert_eq!((done[0].first_ns, done[0].stays_ns, done[0].newcomers_packets), (Some(21 * STEP_NS), None, 0));
    assert_eq!(done[1].stays_ns, Some(31 * STEP_NS));
    let never = followed(&polls(|_| 100.0 * MBIT));
    assert_eq!((never[0].first_ns, never[0].stays_ns), (None, None));
    let metrics = crate::shares::changes::metrics_by_kind(&never);
    let names: Vec<&str> = metrics.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["all", "joins", "leaves"]);
    assert_eq!((metrics[0].1["unsettled"], metrics[1].1["unsettled"], metrics[2].1["unsettled"]), (1.0, 1.0, 0.0));
    assert!(!metrics[1].1.contains_key("first_mean"), "{metrics:?}");
}

#[test]
fn a_gap_makes_times_longer_and_is_told() {
    let mut polls = polls(limit);
    // Nobody looked for 5 ms around the first packet.
    polls.drain(480..530);
    let join = followed(&polls)[0];
    assert_eq!((join.first_ns, join.newcomers_packets), (Some(51 * STEP_NS), 43));
    let told = gaps(&polls);
    assert!((told["watch_gap_most"] - 5.1).abs() < 1e-9 && (told["watch_gap_p99"] - 0.1).abs() < 1e-9, "{told:?}");
}

#[test]
fn a_packet_that_comes_alone_is_no_start_and_no_end() {
    let mut polls = polls(limit);
    for (look, poll) in polls.iter_mut().enumerate() {
        poll.packets[1] += u64::from(look >= 300) + u64::from(look >= 1800);
    }
    assert_eq!(followed(&polls), followed(&self::polls(limit)));
}

#[test]
fn who_never_sends_is_told() {
    let mut polls = polls(limit);
    polls.iter_mut().for_each(|poll| poll.packets[1] = 3);
    assert_eq!(changes(&polls, &tree(), &ASKED_BPS), Err(1));
}

#[test]
fn a_limit_that_nobody_tells_is_not_right() {
    let mut polls = polls(limit);
    polls.iter_mut().for_each(|poll| poll.limits_bps[0] = None);
    assert!(followed(&polls).iter().all(|change| change.first_ns.is_none()));
}
