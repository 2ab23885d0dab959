// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes laid over a policy's limits.

#![allow(clippy::unwrap_used)] // a test may panic

use penstock_policy::compile::compile_with;
use penstock_policy::limits_file::LimitsText;
use penstock_policy::overlay::{ClassOverlay, Overlay, RowChange, Unused};
use penstock_policy::{Errors, Plan, Policy};

const POLICY: &str = "penstock: 1\nports: { lan: { rate: 1Gbit/s } }\nlinks:\n  - name: down\n    port: lan\n    classes:\n      \
                      - { name: gold, match: [ { dst: 10.2.0.0/16 } ], limit: { rate: 50Mbit/s } }\n      \
                      - { name: rows, limits: { file: rows.csv } }\n";

fn compile(overlay: &Overlay) -> Result<(Plan, Vec<Unused>), Errors> {
    let policy = Policy::parse("p.yaml", POLICY).unwrap();
    let bytes = b"name,dst,rate\na,10.1.0.1,10Mbit/s\nb,10.1.0.2,20Mbit/s\n".to_vec();
    let read = |_: &str| Ok(LimitsText { name: "rows.csv".to_owned(), bytes: bytes.clone() });
    compile_with(&policy, read, overlay)
}

fn rows(changes: &[(&str, RowChange)], added: Option<&str>) -> Overlay {
    let rows = changes.iter().map(|&(name, change)| (name.to_owned(), change)).collect();
    let added = added.map(|text| LimitsText { name: "added rows".to_owned(), bytes: text.as_bytes().to_vec() });
    let added = added.into_iter().collect();
    let classes = [("down/rows".to_owned(), ClassOverlay { rate_bps: None, rows, added })].into();
    Overlay { classes, leaves_out: false }
}

fn names_and_rates(plan: &Plan) -> Vec<(&str, u64)> {
    plan.entries.iter().enumerate().map(|(index, entry)| (plan.names.get(index), entry.rate_bps)).collect()
}

#[test]
fn rates_rows_and_added_rows() {
    let added = "name,dst,rate,on_excess\nc,10.1.0.3,5Mbit/s,mark\n";
    let mut overlay = rows(&[("a", RowChange::Rate(11_000_000)), ("b", RowChange::Removed)], Some(added));
    let gold = ClassOverlay { rate_bps: Some(60_000_000), ..ClassOverlay::default() };
    overlay.classes.insert("down/gold".to_owned(), gold);
    let (plan, unused) = compile(&overlay).unwrap();
    assert_eq!(names_and_rates(&plan), [("a", 11_000_000), ("c", 5_000_000)]);
    assert_eq!(plan.classes[0].limit_bps, Some(60_000_000));
    assert_eq!(plan.limits[0].rate, penstock_policy::terms::rate_code(60_000_000));
    assert!(unused.is_empty());
    assert_ne!(plan.entries[0].profile, plan.entries[1].profile);
}

#[test]
fn a_row_that_is_taken_away_leaves_its_key_and_its_name() {
    let overlay = rows(&[("b", RowChange::Removed)], Some("name,dst,rate\nb,10.1.0.2,1Mbit/s\n"));
    let (plan, _) = compile(&overlay).unwrap();
    assert_eq!(names_and_rates(&plan), [("a", 10_000_000), ("b", 1_000_000)]);
}

#[test]
fn what_has_no_place_is_said() {
    let mut overlay = rows(&[("x", RowChange::Rate(1_000_000))], None);
    let both = || ClassOverlay {
        rate_bps: Some(1_000_000),
        added: vec![LimitsText { name: "added".to_owned(), bytes: b"name,dst,rate\nq,10.9.9.9,1Mbit/s\n".to_vec() }],
        ..ClassOverlay::default()
    };
    overlay.classes.insert("down/gone".to_owned(), both());
    overlay.classes.insert("down/gold".to_owned(), both());
    let (plan, unused) = compile(&overlay).unwrap();
    assert_eq!(plan.entries.len(), 2);
    let expected = [
        Unused::ClassLimit { class: "down/gone".to_owned() },
        Unused::Row { class: "down/rows".to_owned(), row: "x".to_owned() },
        Unused::Added { class: "down/gold".to_owned() },
        Unused::Added { class: "down/gone".to_owned() },
    ];
    assert_eq!(unused, expected);
}

#[test]
fn a_rate_that_the_policy_has_anyway_needs_no_change() {
    let mut overlay = rows(&[("a", RowChange::Rate(10_000_000))], None);
    let gold = ClassOverlay { rate_bps: Some(50_000_000), ..ClassOverlay::default() };
    overlay.classes.insert("down/gold".to_owned(), gold);
    let (plan, unused) = compile(&overlay).unwrap();
    assert_eq!((plan.entries[0].rate_bps, plan.classes[0].limit_bps), (10_000_000, Some(50_000_000)));
    assert_eq!(unused.len(), 2);
}

#[test]
fn a_wrong_added_row_is_an_error_with_its_place() {
    let error = compile(&rows(&[], Some("name,dst,rate\nc,10.1.0.1,5Mbit/s\n"))).unwrap_err();
    let place = &error.diagnostics()[0].place;
    assert_eq!((place.file(), place.line()), ("added rows", 2), "{error}");
}

#[test]
fn added_rows_that_cannot_be_are_left_out_all_at_once() {
    // The name of another row, its key, a wrong value; rows by `src` would be ambiguous with those of the file.
    let by_dst = "name,dst,rate\na,10.1.0.8,5Mbit/s\nk,10.1.0.2,5Mbit/s\nw,10.1.0.300,5Mbit/s\ng,10.1.0.9,5Mbit/s\n";
    let mut overlay = rows(&[("b", RowChange::Rate(21_000_000))], Some(by_dst));
    let by_src: String = (0..100).map(|row| format!("s{row},10.7.0.{row},5Mbit/s\n")).collect();
    let by_src = LimitsText { name: "added rows".to_owned(), bytes: format!("name,src,rate\n{by_src}").into_bytes() };
    overlay.classes.get_mut("down/rows").unwrap().added.push(by_src);
    overlay.leaves_out = true;
    let (plan, unused) = compile(&overlay).unwrap();
    assert_eq!(names_and_rates(&plan), [("a", 10_000_000), ("b", 21_000_000), ("g", 5_000_000)]);
    assert_eq!(plan.tuples.len(), 2, "they leave no trace");
    let why = |wanted: &str| {
        unused.iter().find_map(|one| match one {
            Unused::AddedRow { class, row, why } if row == wanted => Some((class.as_str(), why.as_str())),
            _ => None,
        })
    };
    assert_eq!(unused.len(), 103);
    assert_eq!(why("a"), Some(("down/rows", "the name `a` is on line 2 of rows.csv too")));
    assert_eq!(why("k"), Some(("down/rows", "the key of this row is on line 3 of rows.csv too")));
    assert_eq!(why("w").unwrap().1, "`10.1.0.300` is not an IP address or prefix");
    let ambiguous = "ambiguous: this row and rows.csv:2 are equally specific and take some packets both";
    assert_eq!((why("s0").unwrap().1, why("s99").unwrap().1), (ambiguous, ambiguous));
}

#[test]
fn limits_and_users_inside_a_tree() {
    let text = "penstock: 1\nports: { lan: { rate: 1Gbit/s } }\nlinks:\n  - name: down\n    port: lan\n    classes:\n      \
                - name: gold\n        children:\n          \
                - { name: web, match: [ { dst: 10.2.0.0/16 } ], limit: { rate: 50Mbit/s } }\n          \
                - { name: homes, match: [ { dst: 10.3.0.0/16 } ], users: { key: dst, fair: tree, file: u.csv } }\n      \
                - { name: web, match: [ {} ], limit: { rate: 70Mbit/s } }\n";
    let policy = Policy::parse("p.yaml", text).unwrap();
    let limit = |rate_bps| ClassOverlay { rate_bps: Some(rate_bps), ..ClassOverlay::default() };
    let rows =
        [("a", RowChange::Rate(9_000_000)), ("b", RowChange::Removed)].map(|(row, change)| (row.to_owned(), change));
    let added = LimitsText { name: "added".to_owned(), bytes: b"name,dst,rate\nq,10.3.9.9,1Mbit/s\n".to_vec() };
    let homes = ClassOverlay { rows: rows.into(), added: vec![added], ..ClassOverlay::default() };
    let classes = [("down/gold/web", limit(60_000_000)), ("down/gold", limit(1_000_000)), ("down/gold/homes", homes)];
    let classes = classes.into_iter().map(|(path, class)| (path.to_owned(), class)).collect();
    let read = |_: &str| {
        let bytes = b"name,dst,weight\na,10.3.0.1,2\nb,10.3.0.2,3\nc,10.3.0.3,4\n".to_vec();
        Ok(LimitsText { name: "u.csv".to_owned(), bytes })
    };
    let (plan, unused) = compile_with(&policy, read, &Overlay { classes, leaves_out: false }).unwrap();
    let limits: Vec<_> = plan.classes.iter().map(|class| (class.path.as_str(), class.limit_bps)).collect();
    let expected = [
        ("down/gold", None),
        ("down/gold/web", Some(60_000_000)),
        ("down/gold/homes", None),
        ("down/web", Some(70_000_000)),
    ];
    assert_eq!(limits, expected);
    let largest = penstock_algo::rate::MAX_BPS * 8;
    assert_eq!(names_and_rates(&plan), [("a", 9_000_000), ("c", largest)]);
    let expected =
        [Unused::ClassLimit { class: "down/gold".to_owned() }, Unused::Added { class: "down/gold/homes".to_owned() }];
    assert_eq!(unused, expected, "a class without a limit of its own; rows of users are not added like limits");
}
