// SPDX-License-Identifier: MIT OR Apache-2.0
//! A daemon that attends a controller which says what the test wants: over real connections, with the stub for a data plane.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use common::controller::{Controller, Stay, all, controllers, delta, epoch, lent};
use common::daemon::{Daemon, change, get, key};
use common::{ROWS, policy_text};
use penstock_api::{NodeClient, v1};
use penstock_dataplane::{LimitId, Stub};
use std::time::Duration;

const MBIT: u64 = 1_000_000;
const MS: u64 = 1_000_000;

fn parts(text: String, rows: &str) -> Vec<v1::PolicyPart> {
    let part = |part| v1::PolicyPart { part: Some(part) };
    let file = v1::LimitsFile { path: "rows.csv".into(), name: "rows.csv".into(), ..v1::LimitsFile::default() };
    vec![
        part(v1::policy_part::Part::Policy(v1::PolicyText {
            name: "p.yaml".into(),
            text: text.into_bytes(),
            ..Default::default()
        })),
        part(v1::policy_part::Part::File(file)),
        part(v1::policy_part::Part::Bytes(rows.as_bytes().to_vec())),
    ]
}

async fn up(client: &mut NodeClient) {
    let reply = client.up(tokio_stream::iter(parts(policy_text("first", "50Mbit/s"), ROWS))).await.unwrap();
    change(reply.into_inner().outcome.unwrap());
}

async fn limit(client: &mut NodeClient, name: &str) -> v1::Limit {
    let request = v1::GetLimitRequest { name: name.to_owned() };
    client.get_limit(request).await.unwrap().into_inner().limit.unwrap()
}

async fn status(client: &mut NodeClient) -> v1::ControllerStatus {
    client.status(v1::StatusRequest {}).await.unwrap().into_inner().controller.unwrap()
}

/// A daemon with a policy in force, and the controller that it attends.
async fn attending() -> (Daemon, NodeClient, Controller, Stay) {
    let mut controller = Controller::start().await;
    let folder = tempfile::tempdir().unwrap();
    let addresses = controllers(&[&controller.address]);
    let (daemon, mut client) = Daemon::start_attending(folder, Stub::ticking().tap(), addresses).await;
    up(&mut client).await;
    // Before the policy was in force, or after: the last stream is of its links.
    loop {
        let (stay, first) = controller.stay().await;
        let registration = first.registration.unwrap();
        assert_eq!((registration.node.as_str(), first.sequence, first.wants_all), ("sw1", 1, true));
        if let [port] = registration.ports.as_slice() {
            assert_eq!((port.name.as_str(), port.rate_bps), ("down", 1000 * MBIT));
            return (daemon, client, controller, stay);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_applied_acknowledged_and_told_of() {
    let (daemon, mut client, controller, mut stay) = attending().await;
    stay.order(all(1, vec![lent(1, "a", 3 * MBIT, Some(MBIT)), lent(2, "nobody", MBIT, None)])).await;
    let acknowledged = stay.report_with(|report| report.applied == epoch(1, 1)).await;
    assert!(!acknowledged.lapsed && acknowledged.problems_total == 1);
    assert!(acknowledged.problems[0].starts_with("the link `down` has no class or row `nobody`"));
    stay.order(delta(1, 1, vec![])).await;
    let a = limit(&mut client, "a").await;
    assert_eq!((a.rate_bps, a.lease.unwrap().policy_rate_bps), (3 * MBIT, 10 * MBIT));
    let told = status(&mut client).await;
    assert_eq!((told.node.as_str(), &told.address, told.trouble.as_str()), ("sw1", &controller.address, ""));
    assert_eq!(told.state(), v1::controller_status::State::Attending);
    assert_eq!((told.term, told.number, told.limits, told.lapsed), (1, 1, 2, false));
    assert_eq!(told.problems, acknowledged.problems);
    let url = client.status(v1::StatusRequest {}).await.unwrap().into_inner().metrics;
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap().to_owned();
    let metrics = get(&address, "/metrics").await;
    for line in ["penstock_controller_attending 1", "penstock_lent_limits 2", "penstock_epoch_number 1"] {
        assert!(metrics.contains(line), "{line}");
    }
    assert!(metrics.contains("\npenstock_lease_seconds "));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn demands_are_told_of_what_moves_and_once_when_it_stops() {
    let (daemon, mut client, _controller, mut stay) = attending().await;
    stay.order(all(1, vec![lent(1, "a", 3 * MBIT, None), lent(2, "gold", 9 * MBIT, None), lent(3, "b", MBIT, None)]))
        .await;
    stay.report_with(|report| report.applied == epoch(1, 1)).await;
    stay.order(delta(1, 1, vec![])).await;
    // Whoever was never told of is told to be idle, once.
    let idle = stay.report_with(|report| !report.demands.is_empty()).await.demands;
    let zero = |limit| v1::Demand { limit, ..v1::Demand::default() };
    assert_eq!(idle, [1, 2, 3].map(zero));
    for _ in 0..3 {
        assert!(stay.report().await.demands.is_empty());
    }
    stay.order(delta(1, 1, vec![])).await;
    assert_eq!(limit(&mut client, "gold").await.rate_bps, 9 * MBIT);
    for _ in 0..50 {
        daemon.tap.offer(LimitId::Row(0), &key([10, 1, 0, 1]), 1500);
        daemon.tap.offer(LimitId::Class(0), &key([10, 2, 0, 1]), 1000);
    }
    // They may be told of in two reports.
    let (mut of_a, mut of_gold) = (Vec::new(), Vec::new());
    let mut last = [(1, 1); 2];
    for _ in 0..20 {
        let report = stay.report().await;
        stay.order(delta(1, 1, vec![])).await;
        for demand in report.demands {
            let told = (demand.offered_bps, demand.passed_bps);
            match demand.limit {
                1 => of_a.push(told),
                2 => of_gold.push(told),
                other => panic!("{other} has not moved"),
            }
            last[demand.limit as usize - 1] = told;
        }
    }
    for told in [&of_a, &of_gold] {
        let moved: Vec<_> = told.iter().filter(|(offered_bps, _)| *offered_bps > 0).collect();
        assert!((1..3).contains(&moved.len()) && told.len() == moved.len() + 1, "{told:?}");
    }
    assert_eq!(last, [(0, 0); 2], "idle again");
    let passed_less = of_a.iter().any(|(offered_bps, passed_bps)| passed_bps < offered_bps);
    assert!(passed_less, "75 kB are more than a window of 3 Mbit/s: {of_a:?}");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_that_are_doubled_late_or_stale_change_nothing_and_what_is_unfounded_is_asked_for() {
    let (daemon, mut client, _controller, mut stay) = attending().await;
    let first = all(1, vec![lent(1, "a", 3 * MBIT, None)]);
    stay.order(first.clone()).await;
    stay.report_with(|report| report.applied == epoch(1, 1)).await;
    let second = delta(2, 1, vec![lent(1, "a", 5 * MBIT, None)]);
    stay.order(second.clone()).await;
    stay.order(second.clone()).await;
    stay.order(first).await;
    stay.orders
        .send(Ok(v1::Order { answers: 1_000_000, ..delta(3, 2, vec![lent(1, "a", 7 * MBIT, None)]) }))
        .await
        .unwrap();
    stay.order(delta(9, 8, vec![lent(1, "a", 8 * MBIT, None)])).await;
    let told = stay.report_with(|report| report.applied == epoch(1, 2) && report.wants_all).await;
    assert!(!told.lapsed);
    assert_eq!(limit(&mut client, "a").await.rate_bps, 5 * MBIT);
    stay.order(all(9, vec![lent(1, "a", 8 * MBIT, None)])).await;
    stay.report_with(|report| report.applied == epoch(1, 9) && !report.wants_all).await;
    assert_eq!(limit(&mut client, "a").await.rate_bps, 8 * MBIT);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_ends_the_lease_and_then_the_stream_and_a_new_one_brings_limits_back() {
    let (daemon, mut client, mut controller, mut stay) = attending().await;
    let short = |order| v1::Order { lease_ns: 300 * MS, ..order };
    stay.order(short(all(1, vec![lent(1, "a", 3 * MBIT, Some(2 * MBIT)), lent(2, "gold", MBIT, None)]))).await;
    stay.report_with(|report| report.applied == epoch(1, 1)).await;
    // Reports go on; nobody answers.
    let lapsed = stay.report_with(|report| report.lapsed).await;
    assert!(lapsed.wants_all && lapsed.applied == epoch(1, 1));
    let (a, gold) = (limit(&mut client, "a").await, limit(&mut client, "gold").await);
    assert_eq!((a.rate_bps, gold.rate_bps), (2 * MBIT, 50 * MBIT));
    assert!(a.lease.unwrap().lapsed);
    let (mut stay, first) = controller.stay().await;
    let holds: Vec<_> =
        first.registration.unwrap().holds.into_iter().map(|one| (one.class, one.rate_bps.unwrap())).collect();
    assert_eq!(holds, [("a".to_owned(), 2 * MBIT), ("gold".to_owned(), 50 * MBIT)]);
    assert!(first.lapsed && first.wants_all);
    assert_eq!(status(&mut client).await.state(), v1::controller_status::State::Searching);
    stay.order(all(2, vec![lent(1, "a", 4 * MBIT, None)])).await;
    stay.report_with(|report| report.applied == epoch(1, 2) && !report.lapsed).await;
    assert_eq!(limit(&mut client, "a").await.rate_bps, 4 * MBIT);
    assert_eq!(limit(&mut client, "gold").await.rate_bps, 50 * MBIT);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_lapses_with_nobody_there_and_the_node_comes_back_when_somebody_is() {
    let (daemon, mut client, controller, mut stay) = attending().await;
    stay.order(v1::Order { lease_ns: 300 * MS, ..all(1, vec![lent(1, "a", 3 * MBIT, Some(2 * MBIT))]) }).await;
    stay.report_with(|report| report.applied == epoch(1, 1)).await;
    drop(stay);
    let address = controller.end().await;
    while !limit(&mut client, "a").await.lease.unwrap().lapsed {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(limit(&mut client, "a").await.rate_bps, 2 * MBIT);
    while status(&mut client).await.trouble.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut controller = Controller::start_at(&address).await;
    let (mut stay, _) = controller.stay().await;
    stay.order(all(2, vec![lent(1, "a", 4 * MBIT, None)])).await;
    stay.report_with(|report| report.applied == epoch(1, 2)).await;
    assert_eq!(limit(&mut client, "a").await.rate_bps, 4 * MBIT);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_lead_sends_the_node_on_and_a_dead_one_is_passed_by() {
    let (follower, mut leader) = (Controller::start().await, Controller::start().await);
    follower.refuse(&leader.address);
    let dead = Controller::start().await.end().await;
    let folder = tempfile::tempdir().unwrap();
    // The leader's address is not among those that the node was given.
    let addresses = controllers(&[&dead, &follower.address]);
    let (daemon, mut client) = Daemon::start_attending(folder, Stub::ticking().tap(), addresses).await;
    let (stay, _) = leader.stay().await;
    stay.order(all(1, vec![])).await;
    while status(&mut client).await.state() != v1::controller_status::State::Attending {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(status(&mut client).await.address, leader.address);
    // The other one leads now.
    *follower.refusal.lock().unwrap() = None;
    let (mut leader, follower) = (follower, leader);
    follower.refuse(&leader.address);
    let refusal = follower.refusal.lock().unwrap().clone().unwrap();
    stay.orders.send(Err(refusal)).await.unwrap();
    let (_stay, first) = leader.stay().await;
    assert_eq!((first.sequence, first.applied), (1, epoch(1, 1)));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_within_the_lease_keeps_rates_and_one_without_controllers_forgets_them() {
    let (daemon, _client, mut controller, mut stay) = attending().await;
    stay.order(v1::Order { lease_ns: 600_000 * MS, ..all(1, vec![lent(1, "a", 3 * MBIT, Some(MBIT))]) }).await;
    stay.report_with(|report| report.applied == epoch(1, 1)).await;
    let (folder, tap) = daemon.stop().await;
    let addresses = controllers(&[&controller.address]);
    let (daemon, mut client) = Daemon::start_attending(folder, tap, addresses).await;
    assert_eq!(limit(&mut client, "a").await.rate_bps, 3 * MBIT);
    let (_stay, first) = controller.stay().await;
    assert_eq!((first.applied, first.lapsed), (epoch(1, 1), false));
    assert_eq!(first.registration.unwrap().holds[0].rate_bps, Some(3 * MBIT));
    let (folder, tap) = daemon.stop().await;
    let (daemon, mut client) = Daemon::start_in(folder, tap).await;
    let a = limit(&mut client, "a").await;
    assert_eq!((a.rate_bps, a.lease), (10 * MBIT, None));
    assert!(client.status(v1::StatusRequest {}).await.unwrap().into_inner().controller.is_none());
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_with_other_links_is_registered_anew() {
    let (daemon, mut client, mut controller, mut stay) = attending().await;
    stay.order(all(1, vec![lent(1, "a", 3 * MBIT, None)])).await;
    stay.report_with(|report| report.applied == epoch(1, 1)).await;
    let text = policy_text("second", "50Mbit/s").replace("name: down", "name: core");
    let reply = client.reload(tokio_stream::iter(parts(text, ROWS))).await.unwrap();
    change(reply.into_inner().outcome.unwrap());
    let (_stay, first) = controller.stay().await;
    assert_eq!(first.registration.unwrap().ports[0].name, "core");
    assert_eq!(first.problems, ["the policy has no link `down` (for class `a`); its links are core"]);
    assert_eq!(limit(&mut client, "a").await.rate_bps, 10 * MBIT);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_says_how_often_to_report_within_bounds() {
    let (daemon, _client, _controller, mut stay) = attending().await;
    for every_ns in [1, 20 * MS, 3_600_000 * MS] {
        // However long or short: it goes on.
        for _ in 0..4 {
            stay.order(v1::Order { report_every_ns: every_ns, ..all(1, vec![]) }).await;
            stay.report().await;
        }
    }
    daemon.stop().await;
}
