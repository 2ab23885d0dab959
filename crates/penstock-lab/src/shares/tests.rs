// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small links of which is known what everybody gets.

use super::*;
use crate::results::Row;

const POLICY: &str =
    "{ penstock: 1, ports: { lan: { rate: 10Mbit/s } }, links: [ { name: down, port: lan, rate: 10Mbit/s, classes: [
    { name: a, weight: 3, match: [ { dst: 10.0.0.1 } ] }, { name: b, match: [ { dst: 10.0.0.2 } ] } ] } ] }";

fn workload(b: &str) -> String {
    format!(
        "{{ penstock-workload: 1, duration: 2s, flows: [
        {{ name: a, rate: 10Mbit/s, size: 1000B, src: 172.16.0.1, dst: 10.0.0.1 }},
        {{ name: b, rate: 10Mbit/s, size: 1000B, src: 172.16.0.1, dst: 10.0.0.2, {b} }} ] }}"
    )
}

fn shares(workload: String, system: Kind) -> Shares {
    let systems = vec![Candidate { name: "it".to_owned(), system }];
    let (settle, bin) = (Time(200_000_000), Some(Time(500_000_000)));
    Shares { workload, weights: BTreeMap::new(), settle, bin, watch: true, systems }
}

fn row<'a>(results: &'a Results, tenant: &str) -> &'a Row {
    results.rows.iter().find(|row| row.of.tenant == tenant).unwrap_or_else(|| panic!("no {tenant}: {results:?}"))
}

#[test]
fn a_policy_shares_by_weight_and_follows_a_change() {
    let shares = shares(workload("start: 1s"), Kind::Policy(POLICY.to_owned()));
    let results = compute(&shares, &Values::new()).unwrap();
    assert_eq!(row(&results, "a 0-1s").metrics["fair"], 10.0);
    let (a, b) = (&row(&results, "a 1-2s").metrics, &row(&results, "b 1-2s").metrics);
    assert!((a["fair"] - 7.5).abs() < 1e-6 && (b["fair"] - 2.5).abs() < 1e-6, "{a:?} {b:?}");
    assert!(a["share_error"] < 3.0 && b["share_error"] < 3.0, "{a:?} {b:?}");
    let all = &row(&results, "all").metrics;
    assert!(all["used_least"] > 97.0 && all["used_most"] < 103.0, "{all:?}");
    assert!(all["unsettled"] == 0.0 && all["stays_mean"] < 100.0 && all["first_mean"] <= all["stays_mean"], "{all:?}");
    assert_eq!(row(&results, "joins").metrics["newcomers_packets_mean"], all["newcomers_packets_mean"]);
    let of_b: Vec<f64> = results.samples.iter().filter(|it| it.of.tenant == "b").map(|it| it.value).collect();
    assert!(of_b.len() == 4 && of_b[0] == 0.0 && (of_b[3] - 2.5).abs() < 0.3, "{of_b:?}");
}

#[test]
fn a_queue_shares_by_what_comes() {
    let fifo = Kind::Fifo(Fifo { rate: Rate(10_000_000), queue: Size(10_000) });
    let workload = workload("stop: 2s").replacen("rate: 10Mbit/s", "rate: 30Mbit/s", 1);
    let results = compute(&shares(workload, fifo), &Values::new()).unwrap();
    let (a, b) = (&row(&results, "a").metrics, &row(&results, "b").metrics);
    assert!((a["goodput"] + b["goodput"] - 10.0).abs() < 0.2, "{a:?} {b:?}");
    let wait_most = row(&results, "all").metrics["wait_most"];
    assert!((6.0..=8.0).contains(&wait_most), "a queue of 8 ms is full: {wait_most}");
    assert!(a["fair"] == 5.0 && a["goodput"] > 5.5, "{a:?}: no limit is looked at, and none is right");
}

#[test]
fn what_is_in_no_class_is_an_error() {
    let policy = POLICY.replace("10.0.0.2", "10.0.0.9");
    let error = compute(&shares(workload("stop: 2s"), Kind::Policy(policy)), &Values::new()).unwrap_err().to_string();
    assert!(error.contains("\"b\" is in no class"), "{error}");
}

#[test]
fn published_forms_share_too() {
    let rate = Rate(10_000_000);
    let kinds = [
        Kind::Hsdba(Hsdba { rate, tau_shift: 24 }),
        Kind::Ahab(Ahab { rate, tau_shift: 25, epoch_shift: 22, column_bits: 8, divide_bits: 0 }),
        Kind::Hcsfq(Hcsfq {
            rate,
            packet: Size(1000),
            window: Time(10_000_000),
            smooth_shift: 1,
            decrease_shift: 4,
            increase_shift: 6,
        }),
    ];
    for kind in kinds {
        let results = compute(&shares(workload("stop: 2s"), kind.clone()), &Values::new()).unwrap();
        let b = &row(&results, "b").metrics;
        assert!(b["fair"] == 5.0 && b["share_error"] < 20.0, "{kind:?}: {b:?}");
    }
}
