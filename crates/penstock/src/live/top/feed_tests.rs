// SPDX-License-Identifier: MIT OR Apache-2.0
//! A feed and a real daemon, over a data plane in memory.

#![allow(clippy::unwrap_used)] // a test may panic

use super::*;
use penstock_dataplane::Stub;
use penstock_node::{Settings, serve};
use std::path::Path;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const POLICY: &str = "penstock: 1
name: edge
ports: { lan: { rate: 1Gbit/s } }
links:
  - name: down
    port: lan
    classes:
      - { name: gold, match: [ { dst: 10.2.0.0/16 } ], limit: { rate: 50Mbit/s } }
      - { name: rows, limits: { file: rows.csv } }
";
const ROWS: &str = "name,dst,rate\nacme,10.1.0.0/24,10Mbit/s\nborealis,10.1.1.0/24,20Mbit/s\n";

/// A daemon that keeps its store, and what ends it.
fn daemon(folder: &Path) -> (JoinHandle<()>, oneshot::Sender<()>) {
    let settings = Settings {
        socket: folder.join("node.sock"),
        state: folder.join("state"),
        metrics: None,
        metrics_limits: None,
        metrics_limits_max: 1,
        dataplane: "stub",
        counts_limits: None,
        sampling: Duration::from_secs(1),
        controllers: None,
    };
    let (stop, stopped) = oneshot::channel();
    let stopped = async { stopped.await.unwrap_or(()) };
    let running = async move { serve(settings, || Ok(Box::new(Stub::ticking())), stopped).await.unwrap() };
    (tokio::spawn(running), stop)
}

async fn client(folder: &Path) -> NodeClient {
    loop {
        match penstock_api::connect(&folder.join("node.sock")).await {
            Ok(client) => return client,
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

async fn up(client: &mut NodeClient) {
    use v1::policy_part::Part;
    let policy = v1::PolicyText { name: "policy.yaml".into(), text: POLICY.into(), dry_run: false };
    let file = v1::LimitsFile { path: "rows.csv".into(), name: "rows.csv".into(), unreadable: String::new() };
    let parts = [Part::Policy(policy), Part::File(file), Part::Bytes(ROWS.into())];
    let parts = parts.map(|part| v1::PolicyPart { part: Some(part) });
    let reply = client.up(tokio_stream::iter(parts)).await.unwrap().into_inner();
    assert!(matches!(reply.outcome, Some(v1::change_reply::Outcome::Change(_))), "{reply:?}");
}

/// The first news that fits.
async fn hear<T>(news: &mut mpsc::Receiver<News>, fits: impl Fn(News) -> Option<T>) -> T {
    loop {
        if let Some(found) = fits(news.recv().await.unwrap()) {
            return found;
        }
    }
}

fn reading(news: News) -> Option<v1::Readings> {
    if let News::Readings(readings) = news { Some(*readings) } else { None }
}

fn trouble(news: News) -> Option<String> {
    if let News::Trouble(why) = news { Some(why) } else { None }
}

/// Names of limits, how many fit, and whether they have rates.
fn limits(news: News) -> Option<(Vec<String>, u64, bool)> {
    let News::Limits(news) = news else { return None };
    let has_rates = news.limits.iter().all(|limit| limit.rates.is_some());
    Some((news.limits.into_iter().map(|limit| limit.name).collect(), news.total, has_rates))
}

#[tokio::test]
async fn a_daemon_that_goes_is_told_of_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let (running, stop) = daemon(folder.path());
    let mut first = client(folder.path()).await;
    let (want, wanted) = watch::channel(None);
    let (sender, mut news) = mpsc::channel(16);
    let feed = Feed { socket: folder.path().join("node.sock"), interval_ns: 100_000_000, wanted, news: sender };
    let feeding = tokio::spawn(feed.run(first.clone()));
    let why = hear(&mut news, trouble).await;
    assert!(why.starts_with("no policy is in force"), "{why}");
    up(&mut first).await;
    assert_eq!(hear(&mut news, reading).await.classes.len(), 2);

    want.send(Some(Wanted { class: "down/rows".into(), filter: "*al*".into() })).unwrap();
    assert_eq!(hear(&mut news, limits).await, (vec!["down/rows/borealis".to_owned()], 1, false));
    assert!(hear(&mut news, limits).await.2, "the second reading has rates");
    let add = v1::AddLimitRequest {
        row: "alpha".into(),
        class: "down/rows".into(),
        columns: vec![
            v1::Column { name: "dst".into(), value: "10.1.2.0/24".into() },
            v1::Column { name: "rate".into(), value: "1Mbit/s".into() },
        ],
    };
    first.add_limit(add).await.unwrap();
    hear(&mut news, |news| limits(news).filter(|(names, total, _)| names.len() == 2 && *total == 2)).await;
    want.send(Some(Wanted { class: "down/gold".into(), filter: String::new() })).unwrap();
    hear(&mut news, |news| limits(news).filter(|told| *told == (vec!["down/gold".to_owned()], 1, true))).await;

    drop(first);
    stop.send(()).unwrap();
    let why = hear(&mut news, trouble).await;
    assert!(why.contains("ended"), "{why}");
    running.await.unwrap();
    let (running, stop) = daemon(folder.path());
    let readings = hear(&mut news, reading).await;
    assert_eq!((readings.policy.as_str(), readings.interval_ns), ("edge", 0));
    assert_eq!(hear(&mut news, limits).await.0, ["down/gold"]);

    drop(news);
    feeding.await.unwrap();
    stop.send(()).unwrap();
    running.await.unwrap();
}

#[test]
fn a_filter_of_rows_is_a_pattern_of_full_names() {
    let pattern = |filter: &str| pattern(&Wanted { class: "down/vip".into(), filter: filter.into() });
    for (filter, row, expected) in
        [("", "acme", true), ("cm", "acme", true), ("a*", "acme", true), ("c*", "acme", false)]
    {
        assert_eq!(fits(&pattern(filter), &format!("down/vip/{row}")), expected, "{filter}");
        assert_eq!(fits(filter, row), expected, "the view and the daemon agree on {filter}");
    }
    assert!(!fits(&pattern(""), "down/vip"));
}
