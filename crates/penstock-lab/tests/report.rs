// SPDX-License-Identifier: MIT OR Apache-2.0
//! A report says what was claimed, what the paper says, what came out, and whether that is enough.

#![allow(clippy::unwrap_used)] // a test may panic

use penstock_lab::report::{judge_again, overview, render};
use penstock_lab::results::{Results, Row, Sample, Subject};
use penstock_lab::{Machine, Template};
use std::collections::BTreeMap;

const SCENARIO: &str = "penstock-lab: 1
claim: Penstock is steady.
paper: { name: SwitchRL, figure: Figure 7, section: '8.1' }
scaling: Rates 1:100.
sweep: [ { name: cir, values: [ 50Mbit/s ] } ]
effort: { quick: { time: 2s, runs: 2 }, full: { time: 4s, runs: 3 } }
traffic: { forward: redirect, tenants: [ { name: flow, load: { tcp: { flows: 1 } } } ] }
series: [ { name: a, enforce: nothing }, { name: b, enforce: nothing } ]
paper_says:
  - { series: a, metric: oscillation, says: 3.6 to 8.2 }
  - { series: a, metric: unknown, says: '1' }
holds_if: [ { series: a, metric: oscillation, below: b } ]
figure: { sweep: { metric: oscillation } }
";

fn subject(series: &str) -> Subject {
    let point = BTreeMap::from([("cir".to_owned(), "50Mbit/s".to_owned())]);
    Subject { series: series.to_owned(), point, tenant: "flow".to_owned() }
}

/// Two runs of each series, with these oscillations.
fn results(a: [f64; 2], b: [f64; 2]) -> Results {
    let mut results = Results::default();
    for (series, values) in [("a", a), ("b", b)] {
        for (value, run) in values.into_iter().zip(1..) {
            let metrics = BTreeMap::from([("oscillation".to_owned(), value)]);
            results.rows.push(Row { of: subject(series), run, metrics });
        }
    }
    results
}

fn template() -> Template {
    Template::parse("report.yaml", SCENARIO.to_owned()).unwrap_or_else(|errors| panic!("{errors}"))
}

fn report(results: &Results) -> String {
    let template = template();
    let scenario = template.at(&template.points()[0]).unwrap();
    render("switchrl/fig7", &scenario, scenario.effort.quick, results, &Machine::look())
}

#[test]
fn means_are_judged_and_stand_beside_the_papers() {
    let text = report(&results([4.0, 5.0], [9.0, 11.0]));
    assert!(text.contains("Claim: Penstock is steady.\n\n**The claim holds.**\n"), "{text}");
    assert!(text.contains("| oscillation, a | 3.6 to 8.2 % | 4.50 % |"), "{text}");
    assert!(text.contains("| unknown, a | 1  | not measured  |"), "{text}");
    assert!(text.contains("| a, cir 50Mbit/s, flow | 2 | 4.50 |"), "{text}");
    assert!(
        text.contains("Rates 1:100.") && text.contains("2 run(s) of 2.00 s") && text.contains("- Linux: "),
        "{text}"
    );
}

#[test]
fn a_miss_is_reported_as_one() {
    let text = report(&results([12.0, 5.0], [8.0, 8.0]));
    assert!(text.contains("**The claim does not hold here.**"), "{text}");
    assert!(text.contains("| **no** | measured: 8.50 (a, cir 50Mbit/s, flow); b has 8.00 |"), "{text}");
}

#[test]
fn files_have_a_line_a_run_and_a_line_a_sample() {
    let mut results = results([4.0, 5.0], [9.0, 11.0]);
    results.samples.push(Sample { of: subject("a"), name: "goodput", time_s: 1.5, value: 2.25 });
    let folder = tempfile::tempdir().unwrap();
    results.write(folder.path()).unwrap();
    let rows = std::fs::read_to_string(folder.path().join("results.csv")).unwrap();
    let lines: Vec<&str> = rows.lines().collect();
    assert_eq!(lines[..2], ["series,tenant,run,cir,oscillation", "a,flow,1,50Mbit/s,4.0000"]);
    assert_eq!(lines.len(), 5);
    let samples = std::fs::read_to_string(folder.path().join("samples.csv")).unwrap();
    assert_eq!(samples, "series,tenant,sample,time_s,value,cir\na,flow,goodput,1.5000,2.2500,50Mbit/s\n");
}

#[test]
fn what_was_written_is_judged_again() {
    let folder = tempfile::tempdir().unwrap();
    let judged = |results: &Results| {
        results.write(folder.path()).unwrap();
        let csv = std::fs::read_to_string(folder.path().join("results.csv")).unwrap();
        judge_again(&template(), &csv).unwrap()
    };
    let (held, missed) = (judged(&results([4.0, 5.0], [9.0, 11.0])), judged(&results([12.0, 5.0], [8.0, 8.0])));
    let lines =
        overview(&[("held".to_owned(), Some(held)), ("missed".to_owned(), Some(missed)), ("new".to_owned(), None)]);
    let lines: Vec<&str> = lines.lines().skip(2).collect();
    assert_eq!(
        lines,
        [
            "| held | holds | oscillation of a is below b's (measured: 4.50 (a, cir 50Mbit/s, flow); b has 10.00) |",
            "| missed | **does not hold** | **missed:** oscillation of a is below b's (measured: 8.50 (a, cir 50Mbit/s, flow); \
             b has 8.00) |",
            "| new | not run |  |",
        ]
    );
    let wrong = judge_again(&template(), "series,tenant,run,cir,oscillation\na,flow,1,50Mbit/s,much\n").unwrap_err();
    assert!(wrong.to_string().contains("oscillation is \"much\""), "{wrong}");
}
