// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plane with one of everything, and frames by hand through it: decisions, counters, owners, marks, errors.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)] // a test may fail by the one; constants are small

use penstock_algo::plane::{BuildError, Entry, Parts, Plane, Rng, Room, Tally, frame, mark, parse};
use penstock_algo::{rate, wire};
use wire::{PST_COLOR_GREEN as GREEN, PST_COLOR_NONE as NONE, PST_COLOR_RED as RED, PST_COLOR_YELLOW as YELLOW};
use wire::{PST_VERDICT_DROP as DROP, PST_VERDICT_HOLD as HOLD, PST_VERDICT_MARK as MARK, PST_VERDICT_PASS as PASS};

const MS: u64 = 1_000_000;
/// 1000 bytes a millisecond; all frames are charged 1000 bytes.
const RATE_BYTES_PER_SECOND: u64 = 1_000_000;
const CHARGED_BYTES: u16 = 1000;
const OVERHEAD_BYTES: u16 = 14;
const SEED: u64 = 7;

/// Classes, in the order of [`parts`].
const ROWS: u32 = 0;
const MARKED: u32 = 1;
const SHAPED: u32 = 2;
const METERED: u32 = 3;
const SHADOWED: u32 = 4;
const FREE: u32 = 5;

const ECT: u8 = 2;
const NOT_ECT: u8 = 0;

/// Tuples, most specific first: destination /32 (limiters), source /24 (rules).
const BY_DESTINATION: u32 = 0;
const BY_SOURCE: u32 = 1;

fn key(source: [u8; 4], destination: [u8; 4], family: u64) -> wire::Key {
    let word = |address| u64::from(u32::from_be_bytes(address));
    wire::Key { words: [word(source) << 32 | word(destination), family << 56, 0, 0, 0, 0, 0, 0] }
}

fn destination(last: u8) -> wire::Key {
    key([0; 4], [10, 0, 0, last], 4)
}

fn network(third: u8) -> wire::Key {
    key([192, 0, third, 0], [0; 4], 4)
}

fn tuple(mask: wire::Key, bits: u32, kind: wire::pst_tuple_kind) -> wire::Tuple {
    let words = (0..8).filter(|&i| mask.words[i] != 0).map(|i| 1 << i).sum();
    wire::Tuple { mask, words, specificity_q8: bits << 8, kind: kind as u8, ..wire::Tuple::default() }
}

fn profile(class_index: u32, yellow_action: wire::pst_action, red_action: wire::pst_action) -> wire::Profile {
    wire::Profile {
        burst_bytes: 2 * u32::from(CHARGED_BYTES),
        mtu_bytes: CHARGED_BYTES.into(),
        class_index,
        yellow_action: yellow_action as u8,
        red_action: red_action as u8,
        ..wire::Profile::default()
    }
}

fn limited(limit_index: u32) -> wire::Class {
    wire::Class { limit_index, ..wire::Class::default() }
}

fn parts() -> Parts {
    use wire::{PST_ACTION_DROP, PST_ACTION_DSCP, PST_ACTION_HOLD, PST_ACTION_MARK, PST_ACTION_PASS};
    let excess_bytes = 2 * u32::from(CHARGED_BYTES);
    let rate = rate::encode(RATE_BYTES_PER_SECOND);
    let limit = |profile| wire::Limit { rate, profile, ..wire::Limit::default() };
    Parts {
        links: vec![wire::Link {
            tuple_count: 2,
            overhead_bytes: OVERHEAD_BYTES.into(),
            unmatched_class: wire::PST_NONE,
            unmatched_action: PST_ACTION_DROP as u8,
            ..wire::Link::default()
        }],
        tuples: vec![
            tuple(key([0; 4], [255; 4], 0x0f), 40, wire::PST_TUPLE_LIMITS),
            tuple(key([255, 255, 255, 0], [0; 4], 0x0f), 32, wire::PST_TUPLE_RULES),
        ],
        rules: [MARKED, SHAPED, METERED, SHADOWED, FREE]
            .map(|class_index| wire::Rule { class_index, specificity_q8: 32 << 8 })
            .to_vec(),
        classes: vec![limited(wire::PST_NONE), limited(0), limited(1), limited(2), limited(3), limited(wire::PST_NONE)],
        profiles: vec![
            profile(ROWS, PST_ACTION_PASS, PST_ACTION_DROP),
            wire::Profile { excess_bytes, ..profile(MARKED, PST_ACTION_MARK, PST_ACTION_DROP) },
            profile(SHAPED, PST_ACTION_PASS, PST_ACTION_HOLD),
            wire::Profile {
                meter: wire::PST_METER_RFC2697 as u8,
                excess_bytes,
                yellow_dscp: 12,
                ..profile(METERED, PST_ACTION_DSCP, PST_ACTION_DROP)
            },
            wire::Profile {
                flags: wire::PST_PROFILE_SHADOW as u8,
                ..profile(SHADOWED, PST_ACTION_PASS, PST_ACTION_DROP)
            },
        ],
        limits: vec![limit(1), limit(2), limit(3), limit(4)],
        lines: Vec::new(),
        ..Parts::default()
    }
}

fn plane_of(parts: Parts, seed: u64) -> Plane {
    let networks = [1, 2, 3, 4, 5].map(network);
    let destinations = [1, 2].map(destination);
    let rate = rate::encode(RATE_BYTES_PER_SECOND);
    let rules = networks.iter().enumerate().map(|(index, value)| Entry {
        tuple: BY_SOURCE,
        value,
        target: index as u16,
        rate: 0,
    });
    let limiters = destinations.iter().map(|value| Entry { tuple: BY_DESTINATION, value, target: 0, rate });
    Plane::new(parts, rules, limiters, seed, 0).unwrap()
}

fn plane() -> Plane {
    plane_of(parts(), SEED)
}

/// An Ethernet frame with an IPv4 header that is sound, and UDP.
fn udp(source: [u8; 4], destination: [u8; 4], tos: u8) -> Vec<u8> {
    let ip_bytes = CHARGED_BYTES - OVERHEAD_BYTES;
    let mut frame = vec![0; usize::from(CHARGED_BYTES)];
    frame[12] = 0x08;
    frame[14] = 0x45;
    frame[15] = tos;
    frame[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
    frame[22] = 64;
    frame[23] = 17;
    frame[26..30].copy_from_slice(&source);
    frame[30..34].copy_from_slice(&destination);
    frame[38..40].copy_from_slice(&(ip_bytes - 20).to_be_bytes());
    let checksum = !checksum(&frame);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// To the limiter of 10.0.0.`last`.
fn to(last: u8) -> Vec<u8> {
    udp([203, 0, 113, 1], [10, 0, 0, last], NOT_ECT)
}

/// From the network of a class.
fn from(class: u32, tos: u8) -> Vec<u8> {
    udp([192, 0, class as u8, 9], [10, 9, 9, 9], tos)
}

/// The ones' complement sum of the IPv4 header: 0xffff when its checksum is right.
fn checksum(frame: &[u8]) -> u16 {
    let sum: u32 = frame[14..34].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

#[derive(Debug, PartialEq, Eq)]
struct Run {
    packets: Vec<wire::Packet>,
    decisions: Vec<wire::Decision>,
    reasons: Vec<u64>,
}

/// What packets may take that wait, in all.
const ROOM_CHUNKS: u32 = 3;

/// Runs frames through a plane in calls of at most `batch`.
fn run_batches(plane: &mut Plane, tally: &mut Tally, arrivals: &[(u64, Vec<u8>)], batch: usize) -> Run {
    let mut rng = Rng::new(1);
    let mut room = Room::new(ROOM_CHUNKS, 0);
    let mut run = Run { packets: Vec::new(), decisions: Vec::new(), reasons: Vec::new() };
    for arrivals in arrivals.chunks(batch) {
        let frames: Vec<wire::pst_frame> = arrivals
            .iter()
            .map(|(now_ns, data)| frame(data, data.len() as u32, wire::PST_LINK_ETHERNET, *now_ns))
            .collect();
        let (mut packets, mut decisions) = (Vec::new(), Vec::new());
        // SAFETY: the frames' data outlives the call.
        unsafe { plane.run(&frames, &mut rng, tally, &mut room, &mut packets, &mut decisions) };
        run.packets.extend(packets);
        run.decisions.extend(decisions);
    }
    run.reasons.clone_from(&tally.reasons);
    run
}

fn run(plane: &mut Plane, arrivals: &[(u64, Vec<u8>)]) -> (Run, Tally) {
    let mut tally = plane.tally();
    let run = run_batches(plane, &mut tally, arrivals, arrivals.len());
    (run, tally)
}

fn verdicts(run: &Run) -> Vec<(wire::pst_verdict, wire::pst_color, &'static str)> {
    let names = wire::REASON_NAMES;
    run.decisions.iter().map(|d| (d.verdict.into(), d.color.into(), names[usize::from(d.reason)])).collect()
}

#[test]
fn each_row_has_its_own_limit_and_its_own_counters() {
    let mut plane = plane();
    let arrivals = [(0, to(1)), (0, to(1)), (0, to(1)), (0, to(2)), (MS, to(1)), (MS, to(1))];
    let (run, tally) = run(&mut plane, &arrivals);
    let (green, red) = ((PASS, GREEN, "none"), (DROP, RED, "over_rate"));
    assert_eq!(verdicts(&run), [green, green, red, green, green, red]);
    for decision in &run.decisions {
        assert_eq!((decision.class_index, decision.limit_index), (ROWS, wire::PST_NONE));
        assert_eq!((decision.length, decision.shadow), (CHARGED_BYTES.into(), 0));
    }
    let slots: Vec<usize> = run.decisions.iter().map(|decision| decision.slot as usize).collect();
    let (first, second) = (slots[0], slots[3]);
    assert_eq!(slots, [first, first, first, second, first, first]);
    assert_eq!((plane.owner(first), plane.owner(second)), (Some(0), Some(1)));

    let bytes = u64::from(CHARGED_BYTES);
    let five = wire::pst_counters {
        offered_packets: 5,
        offered_bytes: 5 * bytes,
        dropped_packets: 2,
        dropped_bytes: 2 * bytes,
        green_packets: 3,
        ..wire::pst_counters::default()
    };
    let one = wire::pst_counters {
        offered_packets: 1,
        offered_bytes: bytes,
        green_packets: 1,
        ..wire::pst_counters::default()
    };
    assert_eq!((tally.slots[first], tally.slots[second]), (five, one));
    assert_eq!(tally.slots.iter().filter(|slot| slot.offered_packets > 0).count(), 2);
    let elsewhere = tally.classes.iter().chain(&tally.limits);
    assert!(elsewhere.into_iter().all(|one| *one == wire::pst_counters::default()), "a packet is counted once");
    assert_eq!((run.reasons[0], run.reasons[wire::PST_REASON_OVER_RATE as usize]), (4, 2));
    assert_eq!(run.reasons.iter().sum::<u64>(), 6);
}

#[test]
fn owners_are_the_limiters_and_nobody_else() {
    let plane = plane();
    let owners: Vec<usize> = (0..plane.tally().slots.len()).filter_map(|slot| plane.owner(slot)).collect();
    assert!(owners == [0, 1] || owners == [1, 0], "{owners:?}");
    assert_eq!(plane.owner(plane.tally().slots.len()), None);
    assert_eq!(plane.profiles(), parts().profiles);
}

/// A table that is this full has moved many of its entries.
#[test]
fn owners_follow_limiters_that_move() {
    let address = |index: u32| (0x0a00_0000 + index).to_be_bytes();
    let values: Vec<wire::Key> = (0..20_000).map(|index| key([0; 4], address(index), 4)).collect();
    let rate = rate::encode(RATE_BYTES_PER_SECOND);
    let limiters = values.iter().map(|value| Entry { tuple: BY_DESTINATION, value, target: 0, rate });
    let mut plane = Plane::new(parts(), [].into_iter(), limiters, SEED, 0).unwrap();
    let indices: Vec<u32> = (0..20_000).step_by(7).collect();
    let arrivals: Vec<_> = indices.iter().map(|&index| (0, udp([203, 0, 113, 1], address(index), NOT_ECT))).collect();
    let (run, _) = run(&mut plane, &arrivals);
    for (index, decision) in indices.iter().zip(&run.decisions) {
        assert_eq!(plane.owner(decision.slot as usize), Some(*index as usize));
    }
}

#[test]
fn yellow_marks_what_is_ecn_capable_and_red_drops() {
    let mut plane = plane();
    let arrivals = [ECT, ECT, ECT, NOT_ECT, ECT].map(|tos| (0, from(MARKED, tos)));
    let (run, tally) = run(&mut plane, &arrivals);
    let green = (PASS, GREEN, "none");
    assert_eq!(
        verdicts(&run),
        [green, green, (MARK, YELLOW, "ce_mark"), (PASS, YELLOW, "none"), (DROP, RED, "over_rate")]
    );
    assert!(run.decisions.iter().all(|d| (d.class_index, d.limit_index, d.slot) == (MARKED, 0, wire::PST_NONE)));
    let limit = tally.limits[0];
    assert_eq!((limit.offered_packets, limit.green_packets, limit.yellow_packets), (5, 2, 2));
    assert_eq!((limit.marked_packets, limit.dropped_packets), (1, 1));
    assert_eq!(tally.classes[MARKED as usize], wire::pst_counters::default());
}

#[test]
fn mark_writes_what_was_decided_and_nothing_else() {
    let mut plane = plane();
    let arrivals = [ECT; 3].map(|tos| (0, from(MARKED, tos)));
    let (ecn, _) = run(&mut plane, &arrivals);
    let mut data = from(MARKED, ECT);
    assert!(!mark(&mut data, &ecn.packets[0], &ecn.decisions[0]));
    assert_eq!(data, from(MARKED, ECT));
    assert!(mark(&mut data, &ecn.packets[2], &ecn.decisions[2]));
    assert_eq!(data, from(MARKED, 3), "CE, and the checksum that belongs to it");
    assert_eq!(checksum(&data), 0xffff);

    let arrivals = [NOT_ECT; 3].map(|tos| (0, from(METERED, tos)));
    let (dscp, _) = run(&mut plane, &arrivals);
    assert_eq!(verdicts(&dscp)[2], (MARK, YELLOW, "dscp_mark"));
    let mut data = from(METERED, NOT_ECT);
    assert!(mark(&mut data, &dscp.packets[2], &dscp.decisions[2]));
    assert_eq!(data, from(METERED, 12 << 2));

    let mut cut = from(MARKED, ECT)[..20].to_vec();
    let before = cut.clone();
    assert!(!mark(&mut cut, &ecn.packets[2], &ecn.decisions[2]), "no room for an IP header");
    assert_eq!(cut, before);
}

#[test]
fn a_shaper_holds_until_the_turn_comes() {
    let mut plane = plane();
    let arrivals = [0; 4].map(|now_ns| (now_ns, from(SHAPED, NOT_ECT)));
    let (run, tally) = run(&mut plane, &arrivals);
    // Two at once, the third when it is its turn, the fourth a packet's time after it.
    let (green, held) = ((PASS, GREEN, "none"), (HOLD, RED, "held"));
    assert_eq!(verdicts(&run), [green, green, (PASS, RED, "none"), held]);
    let departures: Vec<u64> = run.decisions.iter().map(|decision| decision.departure_ns).collect();
    assert_eq!(departures, [0, 0, 0, MS]);
    assert_eq!((tally.limits[1].held_packets, tally.limits[1].dropped_packets), (1, 0));
}

#[test]
fn what_waits_takes_room_until_it_departs() {
    let mut plane = plane();
    let arrivals = [0, 0, 0, 0, 0, 0, 0, MS - 1, MS + 4096, MS + 4096].map(|now_ns| (now_ns, from(SHAPED, NOT_ECT)));
    let (run, tally) = run(&mut plane, &arrivals);
    let reasons: Vec<&str> = verdicts(&run).into_iter().map(|(_, _, reason)| reason).collect();
    let held = ["held"; ROOM_CHUNKS as usize];
    assert_eq!(reasons[3..], [held.as_slice(), &["no_room", "no_room", "held", "no_room"]].concat());
    // Who found no room was not charged: the last one held goes a packet's time after the one before it.
    assert_eq!(run.decisions[8].departure_ns, 4 * MS);
    assert_eq!((tally.limits[1].held_packets, tally.limits[1].dropped_packets), (4, 3));
}

#[test]
fn an_rfc_meter_keeps_two_words() {
    let mut plane = plane();
    let arrivals = [0; 5].map(|now_ns| (now_ns, from(METERED, NOT_ECT)));
    let (run, tally) = run(&mut plane, &arrivals);
    let colors: Vec<u32> = run.decisions.iter().map(|decision| decision.color.into()).collect();
    assert_eq!(colors, [GREEN, GREEN, YELLOW, YELLOW, RED]);
    assert_eq!(tally.limits[2].marked_packets, 2);
}

#[test]
fn a_shadow_says_what_would_have_been() {
    let mut plane = plane();
    let arrivals = [0; 3].map(|now_ns| (now_ns, from(SHADOWED, NOT_ECT)));
    let (run, _) = run(&mut plane, &arrivals);
    assert_eq!(verdicts(&run)[2], (DROP, RED, "over_rate"));
    assert!(run.decisions.iter().all(|decision| decision.shadow == 1));
}

#[test]
fn what_has_no_limit_passes_and_what_has_no_class_does_as_the_link_says() {
    let mut plane = plane();
    let stranger = udp([203, 0, 113, 1], [10, 9, 9, 9], NOT_ECT);
    let (run, tally) = run(&mut plane, &[(0, from(FREE, NOT_ECT)), (0, stranger), (0, vec![0; 13])]);
    let (free, unmatched, malformed) =
        ((PASS, NONE, "none"), (DROP, NONE, "unmatched"), (PASS, NONE, "short_ethernet"));
    assert_eq!(verdicts(&run), [free, unmatched, malformed]);
    let classes: Vec<u32> = run.decisions.iter().map(|decision| decision.class_index).collect();
    assert_eq!(classes, [FREE, wire::PST_NONE, wire::PST_NONE]);
    assert_eq!(tally.classes.iter().map(|class| class.offered_packets).sum::<u64>(), 1);
    assert_eq!(run.reasons.iter().sum::<u64>(), 3);
}

#[test]
fn the_more_specific_match_wins() {
    let mut plane = plane();
    let both = udp([192, 0, FREE as u8, 9], [10, 0, 0, 1], NOT_ECT);
    let (run, _) = run(&mut plane, &[(0, both)]);
    assert_eq!(run.decisions[0].class_index, ROWS);
}

#[test]
fn a_selected_link_is_the_only_one_that_is_offered_packets() {
    let mut parts = parts();
    let second = wire::Link { tuple_first: 1, tuple_count: 1, overhead_bytes: 0, ..parts.links[0] };
    parts.links.push(second);
    let mut plane = plane_of(parts, SEED);
    let (both, _) = run(&mut plane, &[(0, to(1))]);
    assert_eq!((both.decisions[0].link, both.decisions[0].class_index), (0, ROWS));
    plane.select_link(1);
    let (selected, _) = run(&mut plane, &[(0, to(1)), (0, from(FREE, NOT_ECT))]);
    assert_eq!(verdicts(&selected), [(DROP, NONE, "unmatched"), (PASS, NONE, "none")]);
    assert!(selected.decisions.iter().all(|d| (d.link, d.length) == (1, (CHARGED_BYTES - OVERHEAD_BYTES).into())));
}

/// Some of everything, at three times the rate.
fn traffic() -> Vec<(u64, Vec<u8>)> {
    let kinds = [to(1), to(2), from(MARKED, ECT), from(MARKED, NOT_ECT), from(SHAPED, ECT), from(METERED, ECT)];
    let rest = [from(SHADOWED, ECT), from(FREE, ECT), from(200, ECT), vec![0; 13]];
    let frames: Vec<Vec<u8>> = kinds.into_iter().chain(rest).collect();
    let mut rng = Rng::new(3);
    (0..2000).map(|i| (i * MS / 30, frames[rng.next_u32() as usize % frames.len()].clone())).collect()
}

/// Early drop, so that the random numbers matter.
fn random_parts() -> Parts {
    let mut parts = parts();
    parts.profiles[1].yellow_action = wire::PST_ACTION_RED as u8;
    parts.profiles[1].red_max_q32 = u32::MAX;
    parts
}

#[test]
fn the_same_seed_gives_the_same_decisions() {
    let traffic = traffic();
    let (one, one_tally) = run(&mut plane_of(random_parts(), SEED), &traffic);
    let (again, again_tally) = run(&mut plane_of(random_parts(), SEED), &traffic);
    assert_eq!(one, again);
    assert_eq!(one_tally.slots, again_tally.slots);
    let reasons = |run: &Run| run.reasons.iter().filter(|count| **count > 0).count();
    assert!(reasons(&one) >= 6 && one.reasons[wire::PST_REASON_EARLY_DROP as usize] > 0, "{:?}", one.reasons);

    // Another seed puts limiters into other slots, and changes no verdict.
    let (other, _) = run(&mut plane_of(random_parts(), SEED + 1), &traffic);
    let slots = |run: &Run| run.decisions.iter().map(|decision| decision.slot).collect::<Vec<_>>();
    assert_ne!(slots(&one), slots(&other));
    assert_eq!(verdicts(&one), verdicts(&other));
}

#[test]
fn batches_of_any_length_give_the_same_decisions() {
    let traffic = traffic();
    let (whole, _) = run(&mut plane_of(random_parts(), SEED), &traffic);
    for batch in [1, 31, 33] {
        let mut plane = plane_of(random_parts(), SEED);
        let mut tally = plane.tally();
        assert_eq!(run_batches(&mut plane, &mut tally, &traffic, batch), whole);
    }
}

#[test]
fn the_random_sequence_depends_on_its_seed_alone() {
    let draw = |seed| [(); 4].map(|()| Rng::new(seed)).map(|mut rng| (rng.next_u32(), rng.next_u64()));
    assert!(draw(1).iter().all(|drawn| *drawn == draw(1)[0]));
    assert_ne!(draw(1)[0], draw(2)[0]);
    let mut rng = Rng::new(1);
    assert_ne!(rng.next_u32(), rng.next_u32());
}

#[test]
fn parse_finds_what_the_key_says() {
    let data = udp([192, 0, 2, 1], [10, 0, 0, 1], ECT);
    let packet = parse(&data, data.len() as u32, wire::PST_LINK_ETHERNET);
    assert_eq!(packet.key.words[0], 0xc000_0201_0a00_0001);
    assert_eq!((packet.network_family, packet.network_tos, packet.network_offset), (4, ECT, 14));
    assert_eq!(packet.length, u32::from(CHARGED_BYTES - OVERHEAD_BYTES));
    let short = parse(&data[..13], 13, wire::PST_LINK_ETHERNET);
    assert_eq!(u32::from(short.reason), wire::PST_REASON_SHORT_ETHERNET);
}

fn build(rules: &[(u32, wire::Key)], limiters: &[(u32, wire::Key)]) -> Result<Plane, BuildError> {
    let entry = |(tuple, value), rate| Entry { tuple, value, target: 0, rate };
    let rules = rules.iter().map(|(tuple, value)| entry((*tuple, value), 0));
    let limiters = limiters.iter().map(|(tuple, value)| entry((*tuple, value), rate::encode(RATE_BYTES_PER_SECOND)));
    Plane::new(parts(), rules, limiters, SEED, 0)
}

#[test]
fn a_key_that_comes_twice_is_refused() {
    let [one, two] = [destination(1), destination(2)].map(|value| (BY_DESTINATION, value));
    assert_eq!(build(&[], &[one, two, one]).unwrap_err(), BuildError::Taken(2));
    // What the mask hides makes no difference.
    let hidden = (BY_SOURCE, key([192, 0, 1, 77], [1, 2, 3, 4], 4));
    assert_eq!(build(&[(BY_SOURCE, network(1)), hidden], &[one]).unwrap_err(), BuildError::Taken(1));
    assert!(build(&[(BY_SOURCE, network(1)), (BY_SOURCE, network(2))], &[one, two]).is_ok());
}

#[test]
fn the_same_value_under_two_tuples_is_two_keys() {
    let mut parts = parts();
    parts.tuples[1] = parts.tuples[0];
    let value = destination(1);
    let entry = |tuple| Entry { tuple, value: &value, target: 0, rate: rate::encode(RATE_BYTES_PER_SECOND) };
    assert!(Plane::new(parts, [].into_iter(), [entry(0), entry(1)].into_iter(), SEED, 0).is_ok());
}

#[test]
fn an_entry_under_no_tuple_is_refused() {
    let known = (BY_DESTINATION, destination(1));
    let unknown = (2, destination(2));
    assert_eq!(build(&[], &[known, unknown]).unwrap_err(), BuildError::UnknownTuple(1));
    assert_eq!(build(&[unknown], &[]).unwrap_err(), BuildError::UnknownTuple(0));
}

#[test]
#[should_panic(expected = "tally")]
fn a_tally_of_another_plane_is_refused() {
    let mut tally = plane().tally();
    tally.classes.pop();
    run_batches(&mut plane(), &mut tally, &[(0, to(1))], 1);
}

#[test]
#[should_panic(expected = "link_count")]
fn a_plane_without_links_is_refused() {
    let mut parts = parts();
    parts.links.clear();
    let mut plane = plane_of(parts, SEED);
    run(&mut plane, &[(0, to(1))]);
}
