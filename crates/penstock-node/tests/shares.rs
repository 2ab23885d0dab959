// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the daemon does and tells of shares. Nobody computes any here: the tap says what they are.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use common::daemon::{Daemon, change, get, key};
use common::put;
use penstock_algo::wire;
use penstock_api::{NodeClient, v1};
use penstock_dataplane::{LimitId, ShareReading, Standing, Stub, Tap, UserReading, UsersReading};
use penstock_node::Keeper;
use penstock_node::store::{Source, SourceFile, Store};
use std::time::Duration;

const POLICY: &str = "penstock: 1
name: shares
ports: { lan: { rate: 1Gbit/s }, wan: { rate: 1Gbit/s } }
links:
  - name: down
    port: lan
    rate: 1Gbit/s
    unmatched: drop
    classes:
      - name: gold
        weight: 2
        guarantee: 200Mbit/s
        ceiling: 500Mbit/s
        children:
          - { name: a, match: [ { dst: 10.1.1.0/24 } ], weight: 3 }
          - { name: b, match: [ { dst: 10.1.2.0/24 } ] }
      - { name: homes, weight: 2, match: [ { dst: 10.2.0.0/16 } ], users: { key: dst, fair: sketch, file: users.csv } }
      - { name: shops, match: [ { dst: 10.3.0.0/16 } ], users: { key: [dst, src], fair: tree, entries: 64 } }
  - { name: up, port: wan, classes: [ { name: all, match: [ { src: 10.0.0.0/8 } ], limit: { rate: 1Mbit/s } } ] }
";
const USERS: &str = "name,dst,weight,ceiling\nbig,10.2.0.9,4,80Mbit/s\nplain,10.2.0.8,1,\n";
/// Places: classes, then links.
const GOLD: u32 = 0;
const A: u32 = 1;
const B: u32 = 2;
const HOMES: u32 = 3;
const SHOPS: u32 = 4;
const ALL: u32 = 5;
const DOWN: u32 = 6;
const MBIT: u64 = 1_000_000;

fn reading(demand: u64, share: u64, standing: Standing) -> ShareReading {
    ShareReading { demand_bps: demand * MBIT, share_bps: share * MBIT, standing, ..ShareReading::default() }
}

fn source(text: &str) -> Source {
    let file = SourceFile { path: "users.csv".into(), name: "users.csv".into(), bytes: Ok(USERS.into()) };
    Source { name: "p.yaml".into(), text: text.into(), files: vec![file] }
}

/// Gold's children want more, homes have what they ask for, shops are held by nothing.
fn say(tap: &Tap) {
    use Standing::{Satisfied, Unsatisfied};
    let gold = ShareReading { weights: 4, ..reading(800, 400, Unsatisfied) };
    tap.set_share(GOLD, gold);
    tap.set_share(A, reading(400, 300, Unsatisfied));
    tap.set_share(B, reading(400, 100, Unsatisfied));
    let users = UsersReading { limit_bps: Some(20 * MBIT), ..UsersReading::default() };
    tap.set_share(HOMES, ShareReading { users: Some(users), ..reading(90, 400, Satisfied) });
    let users = UsersReading { active: 6, entries: 64, limit_bps: None, fairness: Some(0.75) };
    let shops = ShareReading {
        users: Some(users),
        taken_bps: 50 * MBIT,
        weights: 3,
        weights_taken: 2,
        ..reading(480, 200, Unsatisfied)
    };
    tap.set_share(SHOPS, shops);
    let down =
        ShareReading { taken_bps: 90 * MBIT, weights: 3, weights_taken: 2, ..reading(1370, 1000, Standing::Idle) };
    tap.set_share(DOWN, down);
}

fn count(tap: &Tap, class: u32, packets: u32, dropped: u32) {
    (0..packets).for_each(|packet| {
        tap.count(class, 1000, if packet < dropped { wire::PST_COLOR_RED } else { wire::PST_COLOR_GREEN });
    });
}

fn close(found: Option<f64>, expected: f64) -> bool {
    found.is_some_and(|found| (found - expected).abs() < 1e-9)
}

#[test]
fn readings_have_shares_sums_of_children_and_fairness() {
    let folder = tempfile::tempdir().unwrap();
    let stub = Stub::new();
    let tap = stub.tap();
    let mut keeper = Keeper::start(Store::open(folder.path()).unwrap(), Box::new(stub)).unwrap();
    put(&mut keeper, &source(POLICY)).unwrap();
    say(&tap);
    count(&tap, A, 10, 0);
    let first = keeper.readings(None).unwrap();
    let gold = &first.classes[0];
    assert_eq!(
        (gold.path.as_str(), gold.parent.as_str(), first.classes[1].parent.as_str()),
        ("down/gold", "", "down/gold")
    );
    let share = gold.share.unwrap();
    assert_eq!((share.demand_bps, share.share_bps, share.weight, share.weights), (800 * MBIT, 400 * MBIT, 2, 4));
    assert_eq!((share.guarantee_bps, share.ceiling_bps), (Some(200 * MBIT), Some(500 * MBIT)));
    assert_eq!((share.standing(), share.fairness), (v1::share::Standing::Unsatisfied, None), "there is no interval");
    let users = first.classes[4].share.unwrap().users.unwrap();
    assert_eq!((users.active, users.entries, users.fairness), (6, 64, Some(0.75)));
    assert_eq!(first.classes[3].share.unwrap().users.unwrap().limit_bps, Some(20 * MBIT));
    let link = first.links[0].share.unwrap();
    assert_eq!((link.share_bps, link.weight, link.ceiling_bps), (1000 * MBIT, 0, None));
    assert_eq!((first.classes[5].share, first.links[1].share), (None, None), "what shares nothing has no share");

    // By weight a gets what b gets; what homes and shops get is by 2 and 1.
    count(&tap, A, 40, 10);
    count(&tap, B, 90, 80);
    count(&tap, HOMES, 7, 0);
    count(&tap, SHOPS, 40, 20);
    count(&tap, ALL, 3, 0);
    tap.advance(100_000_000);
    let second = keeper.readings(Some(&first)).unwrap();
    let gold = &second.classes[0];
    let counters = gold.counters.unwrap();
    assert_eq!((counters.offered_packets, counters.passed_bytes, counters.dropped_packets), (140, 50_000, 90));
    // 130 packets and 40 in 100 ms.
    assert!(
        close(gold.rates.map(|rates| rates.offered_bps), 10.4e6)
            && close(gold.rates.map(|rates| rates.passed_bps), 3.2e6)
    );
    let link = second.links[0].counters.unwrap();
    assert_eq!((link.offered_packets, link.passed_packets), (187, 77), "packets of children are counted once");
    assert!(close(gold.share.unwrap().fairness, 1.0));
    // 40 by 2 and 20 by 1: fair; homes have what they ask for.
    assert!(close(second.links[0].share.unwrap().fairness, 1.0));
    count(&tap, SHOPS, 60, 0);
    count(&tap, A, 40, 0);
    tap.advance(100_000_000);
    let third = keeper.readings(Some(&second)).unwrap();
    // 20 and 60.
    assert!(close(third.links[0].share.unwrap().fairness, 0.8), "{:?}", third.links[0].share);
    // All for a, and nothing for b.
    assert!(close(third.classes[0].share.unwrap().fairness, 0.5));
    // b stopped asking: there is nobody to compare a with.
    tap.set_share(B, reading(0, 100, Standing::Idle));
    count(&tap, A, 40, 0);
    tap.advance(100_000_000);
    let fourth = keeper.readings(Some(&third)).unwrap();
    assert!(close(fourth.classes[0].share.unwrap().fairness, 1.0));
    // It asks again, and did not do so for all of the interval.
    tap.set_share(B, reading(400, 100, Standing::Unsatisfied));
    count(&tap, A, 40, 0);
    tap.advance(100_000_000);
    let fifth = keeper.readings(Some(&fourth)).unwrap();
    assert!(close(fifth.classes[0].share.unwrap().fairness, 1.0));
}

async fn up(client: &mut NodeClient, text: &str) {
    use v1::policy_part::Part;
    let policy = v1::PolicyText { name: "p.yaml".into(), text: text.into(), dry_run: false };
    let file = v1::LimitsFile { path: "users.csv".into(), name: "users.csv".into(), unreadable: String::new() };
    let parts = [Part::Policy(policy), Part::File(file), Part::Bytes(USERS.into())];
    let parts = parts.map(|part| v1::PolicyPart { part: Some(part) });
    change(client.up(tokio_stream::iter(parts)).await.unwrap().into_inner().outcome.unwrap());
}

async fn tending(client: &mut NodeClient) -> Option<v1::Tending> {
    client.status(v1::StatusRequest {}).await.unwrap().into_inner().policy.unwrap().shares
}

#[tokio::test(flavor = "multi_thread")]
async fn shares_are_tended_while_there_are_any() {
    let (daemon, mut client) = Daemon::start().await;
    assert_eq!(daemon.tap.tends(), 0);
    up(&mut client, POLICY).await;
    let told = loop {
        match tending(&mut client).await {
            Some(told) if told.times >= 20 => break told,
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    assert!(daemon.tap.tends() >= told.times);
    // 8 places, and 64 entries with the one for those who find none.
    assert_eq!(told.nodes, 8 + 65);
    // On a machine with other work it is more.
    assert!(told.period_mean_ns > 10_000_000 && told.period_p99_ns >= told.period_mean_ns, "{told:?}");
    assert!(told.cost_max_ns >= told.cost_mean_ns && told.cost_mean_ns > 0, "{told:?}");

    client.down(v1::DownRequest {}).await.unwrap();
    let tends = daemon.tap.tends();
    // A policy that shares nothing has nothing to tend.
    up(
        &mut client,
        &common::policy_text("plain", "1Mbit/s")
            .replace("rows.csv", "limits.csv")
            .replace("limits: { file: limits.csv }", "match: [ {} ]"),
    )
    .await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!((daemon.tap.tends(), tending(&mut client).await), (tends, None));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_tell_of_shares() {
    let (daemon, mut client) = Daemon::start().await;
    let url = client.status(v1::StatusRequest {}).await.unwrap().into_inner().metrics;
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap().to_owned();
    up(&mut client, POLICY).await;
    say(&daemon.tap);
    let mut text = String::new();
    // Fairness takes two readings, and whether there is anything to tend is looked at now and then.
    let wanted = ["penstock_class_share_fairness{class=\"down/gold\"}", "penstock_share_tends_total"];
    while !wanted.iter().all(|name| text.contains(name)) {
        count(&daemon.tap, A, 3, 0);
        count(&daemon.tap, B, 1, 0);
        daemon.tap.advance(1_000_000_000);
        tokio::time::sleep(Duration::from_millis(10)).await;
        text = get(&address, "/metrics").await;
    }
    let lines = [
        "penstock_class_share_demand_bytes_per_second{class=\"down/gold\"} 100000000.0",
        "penstock_class_share_bytes_per_second{class=\"down/gold\"} 50000000.0",
        "penstock_class_share_users{class=\"down/shops\"} 6",
        "penstock_class_share_user_limit_bytes_per_second{class=\"down/homes\"} 2500000.0",
        "penstock_class_share_fairness{class=\"down/shops\"} 0.75",
        "penstock_link_share_demand_bytes_per_second{link=\"down\"} 171250000.0",
    ];
    for line in lines {
        assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
    }
    for name in
        ["penstock_share_tends_total ", "penstock_share_tended_nodes 73", "penstock_share_tend_cost_seconds_count "]
    {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name} is not in\n{text}");
    }
    let has_share = |line: &str| line.contains("_share_") && line.contains("\"up");
    assert!(!text.lines().any(has_share), "what shares nothing has no share");
    let help = text.lines().find(|line| line.starts_with("# HELP penstock_class_offered_bytes ")).unwrap();
    assert!(help.contains("of a class with children the sum of theirs"), "{help}");
    daemon.stop().await;
}

async fn explain(client: &mut NodeClient, subject: &str) -> v1::ExplainReply {
    client.explain(v1::ExplainRequest { subject: subject.into() }).await.unwrap().into_inner()
}

fn level<'a>(reply: &'a v1::ExplainReply, name: &str) -> &'a v1::Level {
    let levels = &reply.explanations[0].levels;
    levels.iter().find(|level| level.name == name).unwrap_or_else(|| panic!("no {name} in {levels:?}"))
}

fn bound(reply: &v1::ExplainReply) -> Vec<&str> {
    let levels = reply.explanations[0].levels.iter();
    levels.filter(|level| level.bound).map(|level| level.name.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn explanations_say_what_shares_are_made_of_and_what_binds() {
    let (daemon, mut client) = Daemon::start().await;
    up(&mut client, POLICY).await;
    say(&daemon.tap);
    let reply = explain(&mut client, "10.1.1.7").await;
    let names: Vec<&str> = reply.explanations[0].levels.iter().map(|level| level.name.as_str()).collect();
    assert_eq!(names, ["down", "down/gold", "down/gold/a"], "from the link down, without a user");
    let gold = level(&reply, "down/gold").origin.unwrap();
    // Homes have taken 90 of 1000 Mbit/s; gold weighs 2 of 3 (of shops and gold).
    assert_eq!((gold.by(), gold.left_bps, gold.weights), (v1::origin::By::Ceiling, 910 * MBIT, 3));
    let a = level(&reply, "down/gold/a").origin.unwrap();
    assert_eq!((a.by(), a.left_bps, a.weights), (v1::origin::By::Weight, 400 * MBIT, 4));
    assert_eq!(bound(&reply), ["down/gold/a"], "the last one that does");
    // Names: a path, the last part of one, an inner class, a link.
    assert_eq!(level(&explain(&mut client, "a").await, "down/gold/a").share.unwrap().demand_bps, 400 * MBIT);
    assert_eq!(bound(&explain(&mut client, "down/gold").await), ["down/gold"]);
    assert_eq!(bound(&explain(&mut client, "down").await), ["down"]);
    assert!(bound(&explain(&mut client, "homes").await).is_empty(), "homes have what they ask for");

    // A user without an entry, by its address: its row has its weight, and a ceiling that is not reached.
    let of_sketch = UserReading {
        demand_bps: 30 * MBIT,
        share_bps: 20 * MBIT,
        standing: Standing::Unsatisfied,
        ..UserReading::default()
    };
    daemon.tap.set_user(HOMES, users_key([10, 2, 0, 9]), of_sketch);
    let reply = explain(&mut client, "10.2.0.9").await;
    let user = level(&reply, "dst 10.2.0.9");
    let share = user.share.unwrap();
    assert_eq!((user.kind(), user.has_entry, user.origin), (v1::level::Kind::User, false, None));
    assert_eq!(
        (share.weight, share.demand_bps, share.share_bps),
        (4, 120 * MBIT, 80 * MBIT),
        "4 times the limit of a weight of 1"
    );
    assert_eq!(share.ceiling_bps, Some(80 * MBIT));
    assert_eq!(level(&reply, "down/homes/big").rate_bps, Some(80 * MBIT));
    assert_eq!(bound(&reply), ["dst 10.2.0.9"]);
    // One that has what it asks for is held by nothing but its row's ceiling.
    let has_all = UserReading { standing: Standing::Satisfied, demand_bps: MBIT, ..of_sketch };
    daemon.tap.set_user(HOMES, users_key([10, 2, 0, 9]), has_all);
    daemon.tap.set_share(HOMES, reading(900, 400, Standing::Unsatisfied));
    assert!(bound(&explain(&mut client, "10.2.0.9").await).is_empty());
    daemon.tap.set_user(HOMES, users_key([10, 2, 3, 5]), has_all);
    assert!(bound(&explain(&mut client, "10.2.3.5").await).is_empty(), "its class asks for more, and it does not");
    (0..800).for_each(|_| {
        daemon.tap.offer(LimitId::Row(0), &key([10, 2, 0, 9]), 1000);
    });
    assert_eq!(bound(&explain(&mut client, "10.2.0.9").await), ["down/homes/big"]);
    // By the name of its row; without a row, too; a row without a ceiling has none.
    assert_eq!(level(&explain(&mut client, "big").await, "dst 10.2.0.9").share.unwrap().weight, 4);
    daemon.tap.set_user(HOMES, users_key([10, 2, 3, 4]), of_sketch);
    let reply = explain(&mut client, "10.2.3.4").await;
    assert_eq!(level(&reply, "dst 10.2.3.4").share.unwrap().share_bps, 20 * MBIT);
    daemon.tap.set_user(HOMES, users_key([10, 2, 0, 8]), of_sketch);
    let reply = explain(&mut client, "10.2.0.8").await;
    assert_eq!(level(&reply, "dst 10.2.0.8").share.unwrap().ceiling_bps, None);
    // Samples are of this user, and not of all in its class.
    let mut reply = explain(&mut client, "10.2.0.9").await;
    while reply.explanations[0].samples.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
        reply = explain(&mut client, "10.2.0.9").await;
    }
    assert!(explain(&mut client, "10.2.3.4").await.explanations[0].samples.is_empty());
    assert!(!explain(&mut client, "homes").await.explanations[0].samples.is_empty());
    // Which user of shops it is takes the source as well; which of homes, a whole address.
    let reply = explain(&mut client, "10.3.0.1").await;
    assert_eq!(reply.notes, ["down/shops: which user it is also takes a single src"]);
    let reply = explain(&mut client, "10.2.0.0/24").await;
    assert!(
        reply.notes.contains(&"down/homes: which user it is also takes a single dst".to_owned()),
        "{:?}",
        reply.notes
    );
    daemon.stop().await;
}

/// What of a packet's key tells users by their destination.
fn users_key(dst: [u8; 4]) -> wire::Key {
    let whole = key(dst);
    let mut key = wire::Key::default();
    key.words[0] = whole.words[0] & u64::from(u32::MAX);
    key.words[1] = 4 << wire::PST_KEY_FAMILY_SHIFT;
    key
}
