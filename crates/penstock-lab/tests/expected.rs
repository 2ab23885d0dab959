// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was measured once, `lab/expected/`: it is of the scenarios that ship, and its page says what their rules make of it.

#![allow(clippy::unwrap_used)] // a test may panic

use penstock_lab::report::{judge_again, overview};
use penstock_lab::results::Results;
use penstock_lab::{Library, Template};
use std::path::PathBuf;

fn lab(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab")).join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(lab(path)).unwrap_or_else(|error| panic!("lab/{path}: {error}"))
}

fn shipped() -> Vec<(String, Template)> {
    let library = Library::new(&lab("scenarios"));
    let names = library.names().unwrap().into_iter();
    names.map(|name| (name.clone(), library.read(&name).unwrap_or_else(|error| panic!("{error}")))).collect()
}

#[test]
fn the_page_says_what_the_rules_make_of_the_numbers() {
    let judged = |(name, template): (String, Template)| {
        let outcomes = judge_again(&template, &read(&format!("expected/{name}.csv"))).unwrap();
        (name, Some(outcomes))
    };
    let table = overview(&shipped().into_iter().map(judged).collect::<Vec<_>>());
    let page = read("expected/results.md");
    assert!(page.ends_with(&table), "the table of lab/expected/results.md is not:\n{table}");
}

#[test]
fn every_series_was_measured_at_every_point() {
    for (name, template) in shipped() {
        let scenario = template.first().unwrap();
        let variables: Vec<&str> = scenario.sweep.iter().map(|variable| variable.name.as_str()).collect();
        let results = Results::read(&read(&format!("expected/{name}.csv")), &variables).unwrap();
        for point in template.points() {
            let was_measured = |series: Option<&str>| results.rows.iter().any(|row| row.of.is(series, None, point));
            assert!(was_measured(None), "{name} at {point:?}");
            for series in &scenario.series {
                assert!(was_measured(Some(&series.name)), "{name}: {} at {point:?}", series.name);
            }
        }
    }
}
