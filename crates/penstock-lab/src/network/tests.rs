// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fluid beside what can be worked out by hand.
#![allow(clippy::unwrap_used)] // a test may panic

use super::churn::{self, Churn};
use super::programming::{self, Programming};
use super::*;
use crate::quantity::{Percent, Size};
use crate::results::Results;

const MS: u64 = 1_000_000;
const HALF: Percent = Percent(1 << 31);

/// Two classes share a port of 100 Gbit/s, until one goes.
const SHARED: &str = "penstock-network: 1
ports: [ { name: h1-l, switch: h1, rate: 100Gbit/s }, { name: h2-l, switch: h2, rate: 100Gbit/s }, { name: up, switch: l, rate: 100Gbit/s } ]
classes: [ { name: a, paths: [ [h1-l, up] ] }, { name: b, weight: 3, paths: [ [h2-l, up] ] } ]
";

fn timeline(scheme: Scheme, delay_ms: u64) -> Timeline {
    let epoch = |name: &str, until, what_if: &[&str]| Epoch {
        name: name.to_owned(),
        until: Time(until * MS),
        what_if: what_if.iter().map(|word| (*word).to_owned()).collect(),
    };
    Timeline {
        network: SHARED.to_owned(),
        epochs: vec![epoch("both", 40, &[]), epoch("one", 60, &["remove class a"])],
        systems: vec![System { name: "s".to_owned(), scheme, delay: Time(delay_ms * MS), what_if: Vec::new() }],
        draws: Vec::new(),
    }
}

fn metric(results: &Results, tenant: &str, name: &str) -> f64 {
    results.rows.iter().find(|row| row.of.tenant == tenant).unwrap().metrics[name]
}

#[test]
fn limits_hold_until_others_follow() {
    for (scheme, delay_ms, later) in
        [(Scheme::Global, 0, 100.0), (Scheme::Global, 5, 93.75), (Scheme::Edge, 5, 93.75), (Scheme::Global, 100, 75.0)]
    {
        let results = compute(&timeline(scheme, delay_ms), &Values::new()).unwrap();
        assert_eq!(metric(&results, "a both", "gets"), 25.0);
        assert_eq!(metric(&results, "b both", "gets"), 75.0);
        assert_eq!(metric(&results, "b one", "gets"), later, "{scheme:?} {delay_ms}");
        // Who is never told has nothing to change; else a's limit is removed, and b's is another.
        assert_eq!(metric(&results, "all one", "limits_updated"), if delay_ms > 20 { 0.0 } else { 2.0 });
        assert_eq!(metric(&results, "all", "gets"), (100.0 * 40.0 + later * 20.0) / 60.0);
    }
}

#[test]
fn samples_are_cut_where_limits_follow() {
    let results = compute(&timeline(Scheme::Global, 5), &Values::new()).unwrap();
    let of_b = results.samples.iter().filter(|sample| sample.of.tenant == "b");
    let values: Vec<(f64, f64)> = of_b.map(|sample| ((sample.time_s * 1e3).round(), sample.value)).collect();
    assert_eq!(values, [(0.0, 75.0), (40.0, 75.0), (40.0, 75.0), (45.0, 75.0), (45.0, 100.0), (60.0, 100.0)]);
}

#[test]
fn what_is_wrong_is_said() {
    let mut run = timeline(Scheme::Global, 0);
    run.epochs[1].what_if = vec!["remove class c".to_owned()];
    assert!(compute(&run, &Values::new()).unwrap_err().to_string().contains("remove class c"));
    run.epochs[1] = Epoch { until: Time(MS), what_if: Vec::new(), ..run.epochs[1].clone() };
    assert!(compute(&run, &Values::new()).unwrap_err().to_string().contains("ends before it begins"));
}

#[test]
fn drawn_paths_of_one_sender_gain_more() {
    let draws = |one_sender| Draws {
        name: "drawn".to_owned(),
        topology: "leaf-spine:leaves=3,spines=2,hosts=2,traffic=all-to-all".to_owned(),
        count: 500,
        one_sender,
        seed: 1,
    };
    let network = "penstock-network: 1
ports: [ { name: p, switch: s, rate: 1Gbit/s }, { name: q, switch: r, rate: 1Gbit/s } ]
classes: [ { name: first, paths: [ [p], [q] ] }, { name: second, priority: 1, paths: [ [p] ] } ]
";
    let base = Network::parse(&Source::new("network", network.to_owned())).unwrap();
    let gain = |one_sender| draws::rows(&draws(one_sender), &base, &Values::new()).unwrap()[0].metrics["gain"];
    assert!(gain(true) > gain(false) && gain(false) > 0.0, "{} {}", gain(true), gain(false));
    let mut many = base;
    many.classes[0].paths = vec![vec![0]; 100];
    assert!(draws::rows(&draws(true), &many, &Values::new()).is_err());
}

fn churn(long: Percent) -> Metrics {
    let run = Churn {
        topology: "leaf-spine:leaves=2,spines=2,hosts=2,traffic=all-to-all".to_owned(),
        tenants: 2,
        load: HALF,
        long,
        short_size: Size(16_000),
        long_size: Size(64_000_000),
        interval: Time(10 * MS),
        seed: 1,
    };
    assert!(churn::compute(&run, &Values::new(), Time(100 * MS)).is_err(), "nothing is left behind the start");
    let results = churn::compute(&run, &Values::new(), Time(1_000 * MS)).unwrap();
    let of = |series: &str, tenant: &str| {
        let row = results.rows.iter().find(|row| row.of.is(Some(series), Some(tenant), &Values::new()));
        row.unwrap().metrics.clone()
    };
    // Four hosts send to three others; two tenants at four ports to hosts and eight between switches.
    assert_eq!((of("edge", "worst")["limits"], of("switches", "worst")["limits"]), (12.0, 24.0));
    assert_eq!(of("switches_and_hosts", "worst")["limits"], 32.0);
    let (edge, switches) = (of("edge", "all"), of("switches", "all"));
    assert!(switches["limits"] <= 24.0 && edge["limits"] <= edge["paths"]);
    assert!(switches["limits_updated"] <= 2.0 * switches["limits"] + 24.0);
    edge
}

/// All pairs send 400 Gbit/s when the ports of hosts are full, so half of that is 7.8 flows in 10 ms when half of them are long, and 246 when a 64th is.
#[test]
fn as_many_paths_are_taken_as_flows_come() {
    let few = churn(HALF)["paths"];
    let many = churn(Percent(1 << 26))["paths"];
    assert!(few > 4.0 && few < 24.0, "{few}");
    assert!(many > few, "{many} {few}");
}

#[test]
fn a_device_that_has_more_limits_takes_longer() {
    let run = Programming {
        topology: "leaf-spine:leaves=4,spines=2,hosts=4".to_owned(),
        pairs_each: vec![5],
        mean: Time(2 * MS),
        deviation: Time(0),
        down: Time(10 * MS),
        to: HALF,
        up: Time(50 * MS),
        end: Time(100 * MS),
        bin: Time(MS),
        seed: 1,
    };
    let results = programming::compute(&run, &Values::new()).unwrap();
    let worst = |series: &str, name: &str| {
        let row = results.rows.iter().find(|row| row.of.is(Some(series), Some("worst"), &Values::new())).unwrap();
        row.metrics[name]
    };
    // A host has a class, and so a limit, for each of 15 others. A port to a host is passed by its 15 classes.
    assert_eq!((worst("edge", "limits_most"), worst("edge", "done")), (15.0, 30.0));
    assert!(worst("switches", "limits_most") >= 60.0);
    assert_eq!(worst("switches", "done"), 2.0 * worst("switches", "limits_most"));
    let of = |series: &str| {
        let samples = results.samples.iter().filter(|sample| sample.of.series == series);
        samples.map(|sample| sample.value).collect::<Vec<f64>>()
    };
    for series in ["edge", "switches"] {
        let flow = of(series);
        assert_eq!(flow.len(), 101);
        assert!(flow[..11].iter().all(|value| *value == flow[0]));
        assert!((flow[50] - flow[0] / 2.0).abs() < 0.25 * flow[0] && flow[50] < flow[20]);
        assert!((flow[100] - flow[0]).abs() < 1e-6 * flow[0], "{series} is restored");
    }
    let row = results.rows.iter().find(|row| row.of.tenant == "5 pairs").unwrap();
    assert!(row.metrics["settled_up"] > 0.0 && row.metrics["off"] > 0.0);
}
