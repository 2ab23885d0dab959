// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemon over a real unix socket and a real port, with the stub for a data plane.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use common::daemon::{Daemon, change, get, key, settings};
use common::{ROWS, policy_text};
use penstock_api::{NodeClient, v1};
use penstock_dataplane::{Dataplane, LimitId};
use penstock_node::{Settings, serve};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::Code;

fn parts(name: &str, gold: &str, rows: &str, dry_run: bool) -> Vec<v1::PolicyPart> {
    use v1::policy_part::Part;
    let file = v1::LimitsFile { path: "rows.csv".into(), name: "rows.csv".into(), unreadable: String::new() };
    let text = policy_text(name, gold).into_bytes();
    let head = [Part::Policy(v1::PolicyText { name: format!("{name}.yaml"), text, dry_run }), Part::File(file)];
    let bytes = rows.as_bytes().chunks(100_000).map(|chunk| Part::Bytes(chunk.to_vec()));
    head.into_iter().chain(bytes).map(|part| v1::PolicyPart { part: Some(part) }).collect()
}

async fn up(client: &mut NodeClient, gold: &str, rows: &str) -> v1::change_reply::Outcome {
    let reply = client.up(tokio_stream::iter(parts("first", gold, rows, false))).await.unwrap();
    reply.into_inner().outcome.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_comes_changes_and_goes() {
    let (daemon, mut client) = Daemon::start().await;
    let idle = client.get_limit(v1::GetLimitRequest { name: "a".into() }).await.unwrap_err();
    assert_eq!(idle.code(), Code::FailedPrecondition);
    assert!(client.reload(tokio_stream::iter(parts("x", "1Mbit/s", ROWS, false))).await.is_err());

    let first = change(up(&mut client, "50Mbit/s", ROWS).await);
    assert_eq!((first.generation, first.limits.as_ref().unwrap().added), (1, 3));
    let again = client.up(tokio_stream::iter(parts("first", "1Mbit/s", ROWS, false))).await.unwrap_err();
    assert!(again.message().contains("`penstock reload POLICY` replaces it"), "{again}");

    let rows = "name,dst,rate\na,10.1.0.1,15Mbit/s\nc,10.1.0.3,1Mbit/s\n";
    let dry = client.reload(tokio_stream::iter(parts("second", "50Mbit/s", rows, true))).await.unwrap();
    let dry = change(dry.into_inner().outcome.unwrap());
    let limits = dry.limits.unwrap();
    assert_eq!((limits.added, limits.removed, limits.changed, limits.unchanged), (1, 1, 1, 1));
    assert_eq!(limits.changed_names[0].what, "10Mbit/s -> 15Mbit/s");
    let status = client.status(v1::StatusRequest {}).await.unwrap().into_inner();
    assert_eq!(status.policy.unwrap().generation, 1, "a dry run changes nothing");

    client.set_limit(v1::SetLimitRequest { name: "b".into(), rate_bps: 21_000_000 }).await.unwrap();
    let reply = client.reload(tokio_stream::iter(parts("second", "50Mbit/s", rows, false))).await.unwrap();
    let second = change(reply.into_inner().outcome.unwrap());
    assert_eq!((second.generation, second.limits_kept), (2, 2));
    assert_eq!((second.runtime_changes_dropped.len(), second.runtime_changes_dropped_total), (1, 1));
    assert!(second.runtime_changes_dropped[0].starts_with("down/rows/b: set to 21Mbit/s at run time, but"));
    let status = client.status(v1::StatusRequest {}).await.unwrap().into_inner().policy.unwrap();
    assert_eq!((status.name.as_str(), status.limits, status.runtime_changes), ("second", 3, 0));

    assert_eq!(client.down(v1::DownRequest {}).await.unwrap().into_inner().policy, "second");
    assert_eq!(daemon.tap.open().generation(), None);
    assert!(client.status(v1::StatusRequest {}).await.unwrap().into_inner().policy.is_none());
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_policy_comes_back_whole() {
    let (daemon, mut client) = Daemon::start().await;
    let rows = "name,dst,rate\na,10.1.0.1,10Mbit\n";
    let outcome = up(&mut client, "50Mbit/s", rows).await;
    let v1::change_reply::Outcome::Diagnostics(found) = outcome else { panic!("{outcome:?}") };
    let expected = "rows.csv:2:12: error: `Mbit` is not a unit of a rate\n  |\n2 | a,10.1.0.1,10Mbit\n  |            ^^^^^^\n  \
                    help: did you mean `10Mbit/s`?\n";
    assert_eq!(found.text, expected);
    // A thousand errors are longer than what fits into a header of HTTP.
    let classes: String =
        (0..1_000).map(|index| format!("      - {{ name: c{index}, limit: {{ rate: 5 }} }}\n")).collect();
    let mut many = parts("many", "50Mbit/s", ROWS, false);
    let text = policy_text("many", "50Mbit/s") + &classes;
    let policy = v1::PolicyText { name: "many.yaml".into(), text: text.into_bytes(), dry_run: false };
    many[0].part = Some(v1::policy_part::Part::Policy(policy));
    let outcome = client.up(tokio_stream::iter(many)).await.unwrap().into_inner().outcome.unwrap();
    let v1::change_reply::Outcome::Diagnostics(found) = outcome else { panic!("{outcome:?}") };
    assert!(found.text.matches("error: ").count() > 500);
    // A limits file that the client could not read is an error at the policy's line.
    let mut unread = parts("first", "50Mbit/s", "", false);
    let file = v1::LimitsFile { path: "rows.csv".into(), name: "rows.csv".into(), unreadable: "no such file".into() };
    unread[1].part = Some(v1::policy_part::Part::File(file));
    let outcome = client.up(tokio_stream::iter(unread)).await.unwrap().into_inner().outcome.unwrap();
    let v1::change_reply::Outcome::Diagnostics(found) = outcome else { panic!("{outcome:?}") };
    assert!(
        found.text.starts_with("first.yaml:9:39: error: cannot read the limits file: no such file"),
        "{}",
        found.text
    );
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_listed_in_pages_changed_and_kept() {
    let rows: String = (0..2_000).map(|row| format!("r{row},10.3.{}.{},1Mbit/s\n", row / 250, row % 250)).collect();
    let (daemon, mut client) = Daemon::start().await;
    change(up(&mut client, "50Mbit/s", &format!("name,dst,rate\n{rows}")).await);
    let list = async |client: &mut NodeClient, request: v1::ListLimitsRequest| {
        let mut pages = client.list_limits(request).await.unwrap().into_inner();
        let (mut names, mut total, mut count) = (Vec::new(), 0, 0);
        while let Some(page) = pages.message().await.unwrap() {
            names.extend(page.limits.into_iter().map(|limit| limit.name));
            (total, count) = (page.total, count + 1);
        }
        (names, total, count)
    };
    let (names, total, pages) = list(&mut client, v1::ListLimitsRequest::default()).await;
    assert_eq!((names.len(), total, names.iter().collect::<BTreeSet<_>>().len()), (2_001, 2_001, 2_001));
    assert!(pages > 2);
    let request = v1::ListLimitsRequest { filter: "down/rows/r19*9".into(), offset: 1, count: 3, changed: false };
    let (names, total, _) = list(&mut client, request).await;
    assert_eq!((names, total), (["r1909", "r1919", "r1929"].map(|row| format!("down/rows/{row}")).to_vec(), 11));

    let column = |name: &str, value: &str| v1::Column { name: name.into(), value: value.into() };
    let add = |row: &str, dst: &str, rate: &str| v1::AddLimitRequest {
        row: row.into(),
        class: String::new(),
        columns: vec![column("dst", dst), column("rate", rate)],
    };
    client.add_limit(add("new", "10.9.0.1", "2Mbit/s")).await.unwrap();
    let taken = client.add_limit(add("other", "10.9.0.1", "2Mbit/s")).await.unwrap_err();
    assert!(taken.message().contains("has the key of down/rows/new"), "{taken}");
    assert_eq!(client.add_limit(add("r7", "10.9.0.2", "2Mbit/s")).await.unwrap_err().code(), Code::AlreadyExists);
    let wrong = client.add_limit(add("x", "10.9.0.300", "2Mbit/s")).await.unwrap().into_inner().outcome.unwrap();
    assert!(
        matches!(wrong, v1::add_limit_reply::Outcome::Diagnostics(found) if found.text.starts_with("the new row:2:3: error:"))
    );
    client.delete_limit(v1::DeleteLimitRequest { name: "r5".into() }).await.unwrap();
    assert_eq!(
        client.delete_limit(v1::DeleteLimitRequest { name: "gold".into() }).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    client.set_limit(v1::SetLimitRequest { name: "down/gold".into(), rate_bps: 51_000_000 }).await.unwrap();
    for (name, rate_bps, code) in [("r5", 1_000_000, Code::NotFound), ("r6", 5, Code::InvalidArgument)] {
        let error = client.set_limit(v1::SetLimitRequest { name: name.into(), rate_bps }).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
    let changed = v1::ListLimitsRequest { changed: true, ..v1::ListLimitsRequest::default() };
    let expected = vec!["down/gold".to_owned(), "down/rows/new".into(), "down/rows/r5".into()];
    assert_eq!(list(&mut client, changed.clone()).await.0, expected);

    let (folder, tap) = daemon.stop().await;
    let (daemon, mut client) = Daemon::start_in(folder, tap).await;
    assert_eq!(list(&mut client, changed).await.0, expected, "changes survive a restart");
    let limit = client.get_limit(v1::GetLimitRequest { name: "new".into() }).await.unwrap().into_inner().limit.unwrap();
    assert_eq!((limit.rate_bps, limit.key[0].value.as_str()), (2_000_000, "10.9.0.1"));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_exported_can_be_imported() {
    let (daemon, mut client) = Daemon::start().await;
    change(up(&mut client, "50Mbit/s", ROWS).await);
    client.set_limit(v1::SetLimitRequest { name: "a".into(), rate_bps: 12_000_000 }).await.unwrap();
    let export = async |client: &mut NodeClient| {
        let mut parts = client.export_limits(v1::ExportLimitsRequest::default()).await.unwrap().into_inner();
        let mut bytes = Vec::new();
        while let Some(part) = parts.message().await.unwrap() {
            bytes.extend(part.bytes);
        }
        String::from_utf8(bytes).unwrap()
    };
    let exported = export(&mut client).await;
    assert_eq!(exported, "name,dst,rate\na,10.1.0.1,12Mbit/s\nb,10.1.0.2,20Mbit/s\n");
    let import = async |client: &mut NodeClient, text: &str, dry_run: bool| {
        let file = v1::ImportFile { name: "in.csv".into(), class: String::new(), dry_run };
        let parts = [v1::import_part::Part::File(file), v1::import_part::Part::Bytes(text.as_bytes().to_vec())];
        let parts = parts.map(|part| v1::ImportPart { part: Some(part) });
        client.import_limits(tokio_stream::iter(parts)).await.unwrap().into_inner().outcome.unwrap()
    };
    let same = import(&mut client, &exported, false).await;
    assert!(
        matches!(same, v1::import_reply::Outcome::Limits(found) if found.unchanged == 2 && found.changed + found.added == 0)
    );
    let text = "name,dst,rate,on_excess\na,10.1.0.1,13Mbit/s,\nb,10.1.0.7,20Mbit/s,mark\nc,10.1.0.8,1Mbit/s,\n";
    let dry = import(&mut client, text, true).await;
    assert!(matches!(dry, v1::import_reply::Outcome::Limits(found) if (found.changed, found.added) == (2, 1)));
    assert_eq!(export(&mut client).await, exported, "a dry run changes nothing");
    import(&mut client, text, false).await;
    let expected = "name,dst,rate,on_excess\na,10.1.0.1,13Mbit/s,\nb,10.1.0.7,20Mbit/s,mark\nc,10.1.0.8,1Mbit/s,\n";
    assert_eq!(export(&mut client).await, expected);
    let wrong = import(&mut client, "name,dst,rate\na,10.1.0.1,13\nb,10.1.0.1,1Mbit/s\n", false).await;
    let v1::import_reply::Outcome::Diagnostics(found) = wrong else { panic!("{wrong:?}") };
    assert!(found.text.starts_with("in.csv:2:12: error: `13` has no unit"), "{}", found.text);
    assert_eq!(export(&mut client).await, expected, "a wrong file changes nothing");
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readings_have_counts_and_rates() {
    let (daemon, mut client) = Daemon::start().await;
    change(up(&mut client, "50Mbit/s", ROWS).await);
    // The first reading comes at once, the second after a second: what is offered now lies between them.
    let request = v1::WatchRequest { interval_ns: 0, limits: vec!["down/rows/a".into(), "gone".into()] };
    let mut readings = client.watch(request).await.unwrap().into_inner();
    let first = readings.message().await.unwrap().unwrap();
    assert!(first.interval_ns == 0 && first.classes[1].rates.is_none());
    for _ in 0..40 {
        daemon.tap.offer(LimitId::Row(0), &key([10, 1, 0, 1]), 1500);
    }
    daemon.tap.advance(100_000_000);
    let second = readings.message().await.unwrap().unwrap();
    let class = &second.classes[1];
    assert_eq!((class.path.as_str(), second.interval_ns), ("down/rows", 100_000_000));
    let counters = class.counters.unwrap();
    assert_eq!((counters.offered_packets, counters.dropped_packets, counters.passed_packets), (40, 5, 35));
    assert_eq!((counters.green_packets, counters.yellow_packets, counters.red_packets), (14, 21, Some(5)));
    // 40 and 35 packets of 1500 bytes in 100 ms.
    let rates = class.rates.unwrap();
    assert!((rates.offered_bps - 4_800_000.0).abs() < 1.0 && (rates.passed_bps - 4_200_000.0).abs() < 1.0, "{rates:?}");
    assert_eq!(second.limits.len(), 1);
    assert!((second.limits[0].rates.unwrap().dropped_packets_per_second - 50.0).abs() < 1e-6);
    assert_eq!(second.links[0].counters.unwrap().offered_packets, 40);
    assert_eq!((second.reasons[0].reason.as_str(), second.reasons[0].packets), ("over_rate", 5));
    let bad = client.watch(v1::WatchRequest { interval_ns: 1, limits: Vec::new() }).await.unwrap_err();
    assert_eq!(bad.code(), Code::InvalidArgument);
    // A watch does not hold up the end.
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn explanations_go_level_by_level() {
    let (daemon, mut client) = Daemon::start().await;
    change(up(&mut client, "50Mbit/s", ROWS).await);
    for _ in 0..40 {
        daemon.tap.offer(LimitId::Row(0), &key([10, 1, 0, 1]), 1500);
        daemon.tap.offer(LimitId::Row(1), &key([10, 1, 0, 2]), 1500);
    }
    let explain = async |client: &mut NodeClient, subject: &str| {
        client.explain(v1::ExplainRequest { subject: subject.into() }).await.map(tonic::Response::into_inner)
    };
    // The daemon takes samples by itself.
    let mut reply = explain(&mut client, "a").await.unwrap();
    while reply.explanations[0].samples.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
        reply = explain(&mut client, "a").await.unwrap();
    }
    let [explanation] = reply.explanations.as_slice() else { panic!("{reply:?}") };
    let names: Vec<&str> = explanation.levels.iter().map(|level| level.name.as_str()).collect();
    assert_eq!(names, ["down", "down/rows", "down/rows/a"]);
    let limit = &explanation.levels[2];
    assert_eq!((limit.rate_bps, limit.terms.as_str()), (Some(10_000_000), "burst 17.5ms, excess 25ms, drop"));
    let queue = limit.queue.unwrap();
    assert_eq!((queue.queue_ns / 1_000_000, queue.window_ns), (42, 42_500_000));
    assert_eq!(limit.counters.unwrap().red_packets, Some(5));
    assert_eq!(explanation.sampled_reasons[0].packets, 5, "those of the other row are not of this one");
    assert_eq!(explanation.samples[0].packet, "udp 192.0.2.1:1000 -> 10.1.0.1:53");

    let reply = explain(&mut client, "10.1.0.2").await.unwrap();
    assert_eq!((reply.explanations[0].matched_as.as_str(), reply.explanations[0].certain), ("dst", true));
    assert_eq!(reply.explanations[0].levels[2].name, "down/rows/b");
    let reply = explain(&mut client, "10.2.3.4").await.unwrap();
    assert_eq!(reply.explanations[0].levels[2].name, "down/gold");
    assert!(reply.explanations[0].certain, "no row names it");
    let nothing = explain(&mut client, "192.0.2.99").await.unwrap();
    assert!(nothing.explanations.is_empty());
    assert_eq!(nothing.notes[0], "nothing in the policy names 192.0.2.99");
    let error = explain(&mut client, "golf").await.unwrap_err();
    assert!(error.code() == Code::NotFound && error.message().ends_with("did you mean `gold`?"), "{error}");
    daemon.stop().await;
}

/// Classes that compete for the packets of one address: by ports, by rows inside of a class, by rows of another side, unmatched.
const RIVALS: &str = "penstock: 1
ports: { wan: { rate: 1Gbit/s }, lan: { rate: 1Gbit/s } }
links:
  - name: down
    port: lan
    unmatched: { class: rest }
    classes:
      - { name: voice, match: [ { proto: udp, dport: 5060, dst: 10.1.0.0/16 } ], limit: { rate: 1Mbit/s } }
      - { name: web, match: [ { proto: tcp, dport: 80 } ], limit: { rate: 1Mbit/s } }
      - { name: net, match: [ { dst: 10.1.0.0/16 }, { dst: '2001:db8::/48' } ], limits: { file: rows.csv } }
      - { name: wide, match: [ { dst: 10.0.0.0/8 } ] }
      - { name: rest, limit: { rate: 2Mbit/s } }
  - { name: up, port: wan, unmatched: drop, classes: [ { name: all, match: [ { src: 10.0.0.0/8, dscp: ef } ] } ] }
";

#[tokio::test(flavor = "multi_thread")]
async fn explanations_by_address_list_what_may_take_the_packet() {
    use v1::policy_part::Part;
    let (daemon, mut client) = Daemon::start().await;
    let file = v1::LimitsFile { path: "rows.csv".into(), name: "rows.csv".into(), unreadable: String::new() };
    let rows = "name,dst,rate\nhost,10.1.0.7,1Mbit/s\nsix,2001:db8::7,1Mbit/s\n";
    let policy = v1::PolicyText { name: "p.yaml".into(), text: RIVALS.into(), dry_run: false };
    let parts = [Part::Policy(policy), Part::File(file), Part::Bytes(rows.into())];
    let parts = parts.map(|part| v1::PolicyPart { part: Some(part) });
    change(client.up(tokio_stream::iter(parts)).await.unwrap().into_inner().outcome.unwrap());
    let ends = async |client: &mut NodeClient, subject: &str| {
        let reply = client.explain(v1::ExplainRequest { subject: subject.into() }).await.unwrap().into_inner();
        let end = |one: &v1::Explanation| {
            let last = one.levels.last().unwrap().name.clone();
            (one.matched_as.clone(), last, one.conditions.join(" and "), one.certain)
        };
        (reply.explanations.iter().map(end).collect::<Vec<_>>(), reply.notes)
    };
    let of = |side: &str, name: &str, conditions: &str, certain: bool| {
        (side.to_owned(), name.to_owned(), conditions.to_owned(), certain)
    };
    // The row inside of the class comes before the class; nothing behind it gets the packet.
    let (found, notes) = ends(&mut client, "10.1.0.7").await;
    let expected = [
        of("dst", "down/voice", "proto udp, dport 5060", false),
        of("dst", "down/net/host", "", false),
        of("src", "up/all", "dscp 46", false),
    ];
    assert_eq!(found, expected);
    let expected = [
        "down: 1 match of other fields than dst is more specific, and comes first",
        "up: packets that no match takes are dropped",
    ];
    assert_eq!(notes, expected);
    // Without a row it is the class, which has no limit of its own.
    let (found, _) = ends(&mut client, "10.1.0.8").await;
    assert_eq!(found[1], of("dst", "down/net", "", false));
    let (found, notes) = ends(&mut client, "2001:db8::7").await;
    assert_eq!((found, notes.len()), (vec![of("dst", "down/net/six", "", true)], 0));
    // A prefix belongs to what contains all of it.
    let (found, _) = ends(&mut client, "10.0.0.0/9").await;
    assert_eq!(found[0], of("dst", "down/wide", "", false));
    let (found, notes) = ends(&mut client, "192.0.2.1").await;
    assert!(found.is_empty());
    assert_eq!(notes[1], "down: packets that no match takes belong to class rest");
    daemon.stop().await;
}

/// Series by name and labels, and what is declared, out of the text format.
fn parse_metrics(text: &str) -> (BTreeMap<String, f64>, BTreeSet<String>) {
    let (mut series, mut declared) = (BTreeMap::new(), BTreeSet::new());
    assert!(text.ends_with("# EOF\n"));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            declared.insert(if kind == "counter" { format!("{name}_total") } else { name.to_owned() });
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(series.insert(name.to_owned(), value.parse().unwrap()).is_none(), "twice: {line}");
            let metric = name.split('{').next().unwrap();
            assert!(declared.contains(metric), "{line} has no TYPE");
        }
    }
    (series, declared)
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_prometheus_text() {
    let (daemon, mut client) = Daemon::start().await;
    let url = client.status(v1::StatusRequest {}).await.unwrap().into_inner().metrics;
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap().to_owned();
    let body = |text: String| text.split_once("\r\n\r\n").unwrap().1.to_owned();
    let (idle, _) = parse_metrics(&body(get(&address, "/metrics").await));
    assert!(!idle.keys().any(|name| name.contains("policy")));

    change(up(&mut client, "50Mbit/s", &format!("{ROWS}c,10.1.0.3,1Mbit/s\n")).await);
    for _ in 0..40 {
        daemon.tap.offer(LimitId::Row(0), &key([10, 1, 0, 1]), 1500);
    }
    let (series, declared) = parse_metrics(&body(get(&address, "/metrics").await));
    let expected = [
        ("penstock_policy_generation", 1.0),
        ("penstock_policy_info{policy=\"first\"}", 1.0),
        ("penstock_build_info{version=\"0.1.0\",dataplane=\"stub\"}", 1.0),
        ("penstock_class_offered_bytes_total{class=\"down/rows\"}", 60_000.0),
        ("penstock_class_passed_packets_total{class=\"down/rows\"}", 35.0),
        ("penstock_class_dropped_bytes_total{class=\"down/rows\"}", 7_500.0),
        ("penstock_class_color_packets_total{class=\"down/rows\",color=\"yellow\"}", 21.0),
        ("penstock_class_limit_bytes_per_second{class=\"down/gold\"}", 6_250_000.0),
        ("penstock_reason_packets_total{reason=\"over_rate\"}", 5.0),
        ("penstock_limit_series_max", 2.0),
        ("penstock_limit_series_left_out_total", 0.0),
    ];
    for (name, value) in expected {
        assert_eq!(series.get(name), Some(&value), "{name}");
    }
    assert!(!declared.iter().any(|name| name.starts_with("penstock_limit_rate")), "limits only on request");

    let (series, _) = parse_metrics(&body(get(&address, "/metrics?limits=down%2Frows%2F*").await));
    let of_limits: Vec<&String> = series.keys().filter(|name| name.starts_with("penstock_limit_rate")).collect();
    assert_eq!(of_limits.len(), 2, "{of_limits:?}");
    assert_eq!(series["penstock_limit_series_left_out_total"], 1.0);
    assert_eq!(series["penstock_limit_dropped_packets_total{class=\"down/rows\",limit=\"down/rows/a\"}"], 5.0);
    assert!(get(&address, "/").await.starts_with("HTTP/1.1 404"));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scraper_that_stays_does_not_hold_a_daemon_that_stops() {
    let (daemon, mut client) = Daemon::start().await;
    let url = client.status(v1::StatusRequest {}).await.unwrap().into_inner().metrics;
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap();
    let mut scraper = tokio::net::TcpStream::connect(address).await.unwrap();
    scraper.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut text = Vec::new();
    while !text.ends_with(b"# EOF\n") {
        assert!(scraper.read_buf(&mut text).await.unwrap() > 0);
    }
    let (folder, tap) = daemon.stop().await;
    let over = tokio::time::timeout(Duration::from_secs(10), scraper.read_buf(&mut text)).await;
    assert_eq!(over.expect("it is over for the scraper").unwrap_or(0), 0);
    let (daemon, _client) = Daemon::start_in(folder, tap).await;
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_daemon_has_a_socket_and_a_dead_one_leaves_it() {
    let (daemon, _client) = Daemon::start().await;
    let second = serve(settings(daemon.folder.path()), || unreachable!(), std::future::pending()).await.unwrap_err();
    assert!(second.to_string().contains("a daemon listens on"), "{second}");
    // Another socket, the same store.
    let other = Settings { socket: daemon.folder.path().join("other.sock"), ..settings(daemon.folder.path()) };
    let third = serve(other, || unreachable!(), std::future::pending()).await.unwrap_err();
    assert!(third.to_string().contains("another daemon uses it"), "{third}");
    let socket = daemon.socket();
    let (folder, tap) = daemon.stop().await;
    // What a daemon that was killed leaves behind.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    let (daemon, mut client) = Daemon::start_in(folder, tap).await;
    client.status(v1::StatusRequest {}).await.unwrap();
    let (folder, _) = daemon.stop().await;
    std::fs::write(&socket, "not a socket").unwrap();
    let refused = serve(settings(folder.path()), || unreachable!(), std::future::pending()).await.unwrap_err();
    assert!(refused.to_string().contains("is no socket"), "{refused}");
}
