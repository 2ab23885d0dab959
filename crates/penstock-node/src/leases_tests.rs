// SPDX-License-Identifier: MIT OR Apache-2.0
//! Orders one by one, and orders that are lost, doubled, late and out of order.

#![allow(clippy::unwrap_used)] // a test may panic

use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const LEASE_NS: u64 = 1000 * MS;

fn epoch(term: u64, number: u64) -> Option<v1::Epoch> {
    Some(v1::Epoch { term, number })
}

fn lent(limit: u32, rate_bps: u64) -> v1::Lent {
    let (port, class) = ("down".to_owned(), format!("c{limit}"));
    v1::Lent { limit, port, class, rate_bps: Some(rate_bps), safe_bps: Some(1) }
}

fn all(number: u64, answers: u64, limits: Vec<v1::Lent>) -> v1::Order {
    let epoch = epoch(1, number);
    v1::Order { epoch, is_all: true, limits, answers, lease_ns: LEASE_NS, ..v1::Order::default() }
}

fn delta(number: u64, base: u64, answers: u64, limits: Vec<v1::Lent>) -> v1::Order {
    v1::Order { is_all: false, base: epoch(1, base), ..all(number, answers, limits) }
}

/// A node that has sent reports 1 to 9, at 1 s, 2 s and so on, and has two limits of epoch 5 since 9 s.
fn attending() -> Leases {
    let mut leases = Leases::default();
    leases.attend();
    (1..10).for_each(|sequence| leases.sent(sequence, sequence * 1000 * MS));
    assert_eq!(leases.take(&all(5, 9, vec![lent(1, 10), lent(2, 20)]), 9001 * MS), Taken::Changed);
    leases
}

fn rates(leases: &Leases) -> Vec<(u32, u64)> {
    let limits = leases.holding().into_iter().flat_map(|held| &held.limits);
    limits.map(|(&number, lent)| (number, lent.rate_bps.unwrap_or(0))).collect()
}

#[test]
fn an_order_is_taken_or_left_by_its_epoch_base_and_age() {
    let now_ns = 9100 * MS;
    let table = [
        ("a delta on what it has", delta(6, 5, 9, vec![lent(1, 11)]), Taken::Changed),
        ("a delta on something else", delta(7, 6, 9, vec![lent(1, 11)]), Taken::Unfounded),
        ("an older epoch", delta(4, 3, 9, vec![lent(1, 11)]), Taken::Stale),
        ("an older term", v1::Order { epoch: epoch(0, 99), ..all(0, 9, vec![]) }, Taken::Stale),
        ("a newer term", v1::Order { epoch: epoch(2, 1), ..all(0, 9, vec![]) }, Taken::Changed),
        ("no epoch", v1::Order { epoch: None, ..all(0, 9, vec![]) }, Taken::Stale),
        ("an answer older than the lease", delta(6, 5, 8, vec![lent(1, 11)]), Taken::Late),
        ("an answer to what was not sent", delta(6, 5, 10, vec![lent(1, 11)]), Taken::Late),
        ("the same once more", all(5, 9, vec![lent(1, 10), lent(2, 20)]), Taken::Renewed),
        ("nothing but a renewal", delta(5, 5, 9, vec![]), Taken::Renewed),
        (
            "a limit that says no place",
            delta(6, 5, 9, vec![v1::Lent { limit: 2, ..Default::default() }]),
            Taken::Changed,
        ),
        ("one that had none", delta(6, 5, 9, vec![v1::Lent { limit: 3, ..Default::default() }]), Taken::Unfounded),
    ];
    for (name, order, expected) in table {
        let mut leases = attending();
        let before = leases.holding().cloned();
        assert_eq!(leases.take(&order, now_ns), expected, "{name}");
        assert_eq!(leases.holding() != before.as_ref(), expected == Taken::Changed, "{name}");
        assert_eq!(leases.wants_all(), expected == Taken::Unfounded, "{name}");
    }
}

#[test]
fn limits_are_changed_returned_and_replaced() {
    let mut leases = attending();
    let order = v1::Order { returned: vec![1], ..delta(6, 5, 9, vec![lent(3, 30)]) };
    assert_eq!(leases.take(&order, 9100 * MS), Taken::Changed);
    assert_eq!(rates(&leases), [(2, 20), (3, 30)]);
    assert_eq!(leases.take(&all(7, 9, vec![lent(4, 40)]), 9100 * MS), Taken::Changed);
    assert_eq!(rates(&leases), [(4, 40)]);
}

#[test]
fn a_lease_runs_from_when_the_answered_report_was_sent() {
    let mut leases = attending();
    assert_eq!(leases.left_ns(9001 * MS), Some(999 * MS));
    leases.sent(10, 9500 * MS);
    leases.sent(11, 9600 * MS);
    assert_eq!(leases.take(&delta(5, 5, 11, vec![]), 9900 * MS), Taken::Renewed);
    assert_eq!(leases.left_ns(9900 * MS), Some(700 * MS));
    // One that was overtaken shortens nothing.
    assert_eq!(leases.take(&delta(5, 5, 10, vec![]), 9901 * MS), Taken::Renewed);
    assert_eq!(leases.left_ns(9900 * MS), Some(700 * MS));
    assert!(!leases.is_over(10_599 * MS) && leases.is_over(10_600 * MS));
}

#[test]
fn only_all_limits_end_a_lapse() {
    let mut leases = attending();
    leases.lapse();
    assert!(leases.wants_all() && leases.left_ns(9500 * MS).is_none());
    // Who answers what was said before has not heard of it.
    assert_eq!(leases.take(&all(5, 9, vec![lent(1, 10)]), 9_600 * MS), Taken::Late);
    leases.sent(10, 11_000 * MS);
    assert_eq!(leases.take(&delta(5, 5, 10, vec![]), 11_001 * MS), Taken::Unfounded);
    assert_eq!(leases.take(&delta(6, 5, 10, vec![]), 11_001 * MS), Taken::Unfounded);
    assert_eq!(leases.take(&all(5, 9, vec![lent(1, 10)]), 11_001 * MS), Taken::Late);
    assert_eq!(leases.take(&all(5, 10, vec![lent(1, 10)]), 11_001 * MS), Taken::Changed);
    assert!(!leases.wants_all());
    assert_eq!(leases.left_ns(11_001 * MS), Some(999 * MS));
    // Nobody came to say that it is over: it is all the same.
    leases.sent(11, 12_000 * MS);
    assert_eq!(leases.take(&delta(5, 5, 11, vec![]), 12_001 * MS), Taken::Late);
    assert_eq!(leases.take(&all(5, 11, vec![lent(1, 10)]), 12_001 * MS), Taken::Late);
}

#[test]
fn a_new_stream_answers_no_report_of_the_one_before() {
    let mut leases = attending();
    leases.attend();
    assert_eq!(leases.take(&delta(5, 5, 9, vec![]), 9100 * MS), Taken::Late);
    assert!(leases.wants_all());
}

#[test]
fn another_boot_or_the_end_of_the_lease_is_a_lapse() {
    let held = attending().holding().cloned();
    assert_eq!(Leases::resume(held.clone(), true, 9500 * MS).left_ns(9500 * MS), Some(500 * MS));
    for (is_of_this_boot, now_ns) in [(true, 10_000 * MS), (false, 9500 * MS), (false, 5 * MS)] {
        let mut leases = Leases::resume(held.clone(), is_of_this_boot, now_ns);
        assert_eq!(leases.left_ns(now_ns), None);
        assert_eq!(leases.holding().unwrap().epoch, Epoch { term: 1, number: 5 });
        leases.attend();
        leases.sent(1, now_ns);
        assert_eq!(leases.take(&all(4, 1, vec![]), now_ns), Taken::Stale);
        assert_eq!(leases.take(&all(5, 1, vec![lent(1, 10)]), now_ns), Taken::Changed);
        assert_eq!(leases.left_ns(now_ns), Some(LEASE_NS));
    }
}

/// What happens in a network that keeps no promise.
#[derive(Debug, Clone)]
enum Step {
    Wait(u64),
    /// The node sends; whether it arrives.
    Report(bool),
    Change(u32, u64),
    Return(u32),
    NewLeader,
    /// The controller sends an order: all, or what follows on an epoch so far back.
    Send(Option<usize>),
    /// An order arrives, once more perhaps, whichever it is.
    Arrive(prop::sample::Index),
    NewStream,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..400 * MS).prop_map(Step::Wait),
        4 => any::<bool>().prop_map(Step::Report),
        3 => (1..4_u32, 1..100_u64).prop_map(|(limit, rate)| Step::Change(limit, rate)),
        1 => (1..4_u32).prop_map(Step::Return),
        1 => Just(Step::NewLeader),
        2 => Just(Step::Send(None)),
        4 => (0..3_usize).prop_map(|back| Step::Send(Some(back))),
        8 => any::<prop::sample::Index>().prop_map(Step::Arrive),
        1 => Just(Step::NewStream),
    ]
}

type State = BTreeMap<u32, u64>;

/// A controller that remembers what each epoch was.
#[derive(Default)]
struct Model {
    epochs: Vec<(Epoch, State)>,
    /// Of the stream: the newest report that arrived.
    heard: u64,
    stream: u64,
    /// With their streams.
    sent: Vec<(u64, v1::Order)>,
}

impl Model {
    fn next(&mut self, is_new_leader: bool, state: State) {
        let last = self.epochs.last().map_or(Epoch { term: 1, number: 0 }, |(epoch, _)| *epoch);
        let epoch = match is_new_leader {
            true => Epoch { term: last.term + 1, number: 1 },
            false => Epoch { number: last.number + 1, ..last },
        };
        self.epochs.push((epoch, state));
    }

    fn order(&self, back: Option<usize>) -> Option<v1::Order> {
        let (epoch, state) = self.epochs.last()?;
        let base = back.and_then(|back| self.epochs.iter().rev().nth(back));
        let was = base.map(|(_, state)| state.clone()).unwrap_or_default();
        let limits = state.iter().filter(|(limit, rate)| was.get(limit) != Some(rate));
        Some(v1::Order {
            epoch: Some((*epoch).into()),
            base: base.map(|(epoch, _)| (*epoch).into()),
            is_all: base.is_none(),
            limits: limits.map(|(&limit, &rate)| lent(limit, rate)).collect(),
            returned: was.keys().filter(|limit| !state.contains_key(limit)).copied().collect(),
            answers: self.heard,
            lease_ns: LEASE_NS,
            ..v1::Order::default()
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn whatever_the_network_does_epochs_never_go_back_and_no_lease_is_longer_than_it_should(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let (mut leases, mut model) = (Leases::default(), Model::default());
        model.next(false, State::new());
        leases.attend();
        let (mut now_ns, mut sequence, mut newest) = (1000 * MS, 0, None);
        // Send times of reports that were answered by an order which arrived, over all streams.
        let mut answered_ns = 0;
        let mut sent_ns: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for step in steps {
            let state = model.epochs.last().unwrap().1.clone();
            match step {
                Step::Wait(time_ns) => now_ns += time_ns,
                Step::Report(arrives) => {
                    sequence += 1;
                    leases.sent(sequence, now_ns);
                    sent_ns.insert((model.stream, sequence), now_ns);
                    if arrives {
                        model.heard = sequence;
                    }
                }
                Step::Change(limit, rate) => {
                    model.next(false, State::from_iter(state.into_iter().chain([(limit, rate)])));
                }
                Step::Return(limit) => {
                    model.next(false, state.into_iter().filter(|(one, _)| *one != limit).collect());
                }
                Step::NewLeader => model.next(true, state),
                Step::Send(back) => {
                    let order = model.order(back).unwrap();
                    model.sent.push((model.stream, order));
                }
                Step::Arrive(index) => {
                    // What was on its way when a stream ended is lost.
                    let of_stream: Vec<_> = model.sent.iter().filter(|(stream, _)| *stream == model.stream).collect();
                    if !of_stream.is_empty() {
                        let (stream, order) = of_stream[index.index(of_stream.len())];
                        if let Some(sent_ns) = sent_ns.get(&(*stream, order.answers)) {
                            answered_ns = answered_ns.max(*sent_ns);
                        }
                        leases.take(order, now_ns);
                    }
                }
                Step::NewStream => {
                    leases.attend();
                    (sequence, model.heard, model.stream) = (0, 0, model.stream + 1);
                }
            }
            if leases.is_over(now_ns) {
                leases.lapse();
            }
            let Some(held) = leases.holding() else { continue };
            prop_assert!(newest.is_none_or(|newest| newest <= held.epoch), "{newest:?}, then {:?}", held.epoch);
            newest = Some(held.epoch);
            let meant = &model.epochs.iter().find(|(epoch, _)| *epoch == held.epoch).unwrap().1;
            prop_assert_eq!(&State::from_iter(rates(&leases)), meant);
            prop_assert!(held.lapsed || now_ns < answered_ns + LEASE_NS);
        }
        // The network is whole again: one report and its answer are enough.
        leases.sent(sequence + 1, now_ns);
        model.heard = sequence + 1;
        leases.take(&model.order(None).unwrap(), now_ns);
        let held = leases.holding().unwrap();
        prop_assert_eq!(held.epoch, model.epochs.last().unwrap().0);
        prop_assert!(!held.lapsed && !leases.wants_all());
    }
}
