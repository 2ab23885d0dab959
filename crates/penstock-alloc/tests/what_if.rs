// SPDX-License-Identifier: MIT OR Apache-2.0
//! What-if: each form of words, what it does to a network, and that nothing is done when it cannot be.
#![allow(clippy::unwrap_used)] // a test may panic

use penstock_alloc::changes::Changes;
use penstock_alloc::model::Network;
use penstock_alloc::what_if::Edit;
use penstock_policy::diagnostics::Source;

const NETWORK: &str = "penstock-network: 1
ports:
  - { name: h1-l1, switch: h1, rate: 100Gbit/s }
  - { name: l1-s1, switch: l1, rate: 100Gbit/s }
  - { name: l1-s2, switch: l1, rate: 100Gbit/s }
  - { name: s1-l2, switch: s1, rate: 100Gbit/s }
  - { name: s2-l2, switch: s2, rate: 100Gbit/s }
classes:
  - { name: a, paths: [[h1-l1, l1-s1, s1-l2], [h1-l1, l1-s2, s2-l2]] }
  - { name: b, paths: [[l1-s1, s1-l2]] }
  - { name: c, weight: 2, paths: [[l1-s2, s2-l2]] }
local:
  - { port: l1-s1, class: a, weight: 2 }
  - { port: l1-s2, class: c, weight: 3 }
aggregates:
  - { name: t7, rate: 5Gbit/s, classes: [a, b] }
  - { name: t8, rate: 6Gbit/s, classes: [c, a] }
";

fn network() -> Network {
    Network::parse(&Source::new("n.yaml", NETWORK.to_owned())).unwrap()
}

/// The lines that change, and what is said.
fn after(edits: &[&str]) -> (Vec<String>, Vec<String>) {
    let mut network = network();
    let mut notes = Vec::new();
    for edit in edits {
        notes.extend(network.edit(&edit.parse::<Edit>().unwrap()).unwrap());
    }
    let text = network.to_yaml();
    let read = Network::parse(&Source::new("n.yaml", text.clone())).map_err(|errors| errors.to_string());
    assert_eq!(read, Ok(network), "what is left is a network");
    let before =
        NETWORK.lines().filter(|line| !text.lines().any(|other| other == *line)).map(|line| format!("-{line}"));
    let now = text.lines().filter(|line| !NETWORK.lines().any(|other| other == *line)).map(|line| format!("+{line}"));
    (before.chain(now).collect(), notes)
}

#[test]
fn a_port_takes_its_paths_with_it() {
    let (lines, notes) = after(&["remove port l1-s1"]);
    assert_eq!(
        lines,
        [
            "-  - { name: l1-s1, switch: l1, rate: 100Gbit/s }",
            "-  - { name: a, paths: [[h1-l1, l1-s1, s1-l2], [h1-l1, l1-s2, s2-l2]] }",
            "-  - { name: b, paths: [[l1-s1, s1-l2]] }",
            "-  - { port: l1-s1, class: a, weight: 2 }",
            "-  - { name: t7, rate: 5Gbit/s, classes: [a, b] }",
            "+  - { name: a, paths: [[h1-l1, l1-s2, s2-l2]] }",
            "+  - { name: t7, rate: 5Gbit/s, classes: [a] }",
        ]
    );
    assert_eq!(notes, ["port l1-s1 took 2 paths of 2 classes with it", "class b has no path left"]);
}

#[test]
fn a_switch_takes_its_ports_with_it() {
    let (lines, notes) = after(&["remove switch l1"]);
    assert_eq!(lines.iter().filter(|line| line.starts_with('-')).count(), 2 + 3 + 2 + 2 + 3);
    assert_eq!(lines.iter().filter(|line| line.starts_with('+')).collect::<Vec<_>>(), ["+classes: []"]);
    assert_eq!(notes.len(), 6, "{notes:?}");
    assert_eq!(notes[4..], ["aggregate t7 has no class left", "aggregate t8 has no class left"]);
}

#[test]
fn each_word_does_what_it_says() {
    for (edit, line) in [
        ("set weight of class b to 3", "+  - { name: b, weight: 3, paths: [[l1-s1, s1-l2]] }"),
        ("set priority of class b to 2", "+  - { name: b, priority: 2, paths: [[l1-s1, s1-l2]] }"),
        ("set demand of class b to 5Mbit/s", "+  - { name: b, demand: 5Mbit/s, paths: [[l1-s1, s1-l2]] }"),
        (
            "set limit of class b to 5Mbit/s hard",
            "+  - { name: b, limit: { rate: 5Mbit/s, kind: hard }, paths: [[l1-s1, s1-l2]] }",
        ),
        (
            "set limit of class b to 5Mbit/s",
            "+  - { name: b, limit: { rate: 5Mbit/s, kind: soft }, paths: [[l1-s1, s1-l2]] }",
        ),
        ("add path l1-s2, s2-l2 to class b", "+  - { name: b, paths: [[l1-s1, s1-l2], [l1-s2, s2-l2]] }"),
        ("remove path h1-l1,l1-s1,s1-l2 of class a", "+  - { name: a, paths: [[h1-l1, l1-s2, s2-l2]] }"),
        ("set rate of port l1-s2 to 40Gbit/s", "+  - { name: l1-s2, switch: l1, rate: 40Gbit/s }"),
        ("set rate of aggregate t7 to 2Gbit/s", "+  - { name: t7, rate: 2Gbit/s, classes: [a, b] }"),
    ] {
        let (lines, notes) = after(&[edit]);
        assert!(lines.iter().any(|other| other == line), "{edit}: {lines:#?}");
        assert!(
            lines.iter().filter(|line| line.starts_with('+')).count() == 1 && notes.is_empty(),
            "{edit}: {lines:#?}"
        );
    }
}

#[test]
fn edits_follow_each_other() {
    let (lines, notes) = after(&["remove class c", "set limit of class b to 1Gbit/s", "set limit of class b to none"]);
    assert_eq!(
        lines,
        [
            "-  - { name: c, weight: 2, paths: [[l1-s2, s2-l2]] }",
            "-  - { port: l1-s2, class: c, weight: 3 }",
            "-  - { name: t8, rate: 6Gbit/s, classes: [c, a] }",
            "+  - { name: t8, rate: 6Gbit/s, classes: [a] }",
        ]
    );
    assert!(notes.is_empty());
    let (lines, notes) = after(&["remove aggregate t7"]);
    assert_eq!((lines, notes.len()), (vec!["-  - { name: t7, rate: 5Gbit/s, classes: [a, b] }".to_owned()], 0));
    let (_, notes) = after(&["remove class b", "remove class a", "remove port h1-l1"]);
    assert_eq!(notes, ["aggregate t7 has no class left", "port h1-l1 had no paths"]);
    let (_, notes) = after(&["remove path l1-s1,s1-l2 of class b"]);
    assert_eq!(notes, ["class b has no path left"]);
}

#[test]
fn what_is_not_there_changes_nothing() {
    for (edit, what) in [
        ("remove port l1-s3", "did you mean `l1-s1`?"),
        ("remove switch l9", "did you mean `l1`?"),
        ("remove class d", "classes: a, b, c"),
        ("remove path l1-s1 of class b", "has no such path"),
        ("add path l1-s1,s1-l2,l1-s2 to class b", "leaves the switch `l1` twice"),
        ("set rate of port nowhere to 1Gbit/s", "there is no port `nowhere`"),
        ("set rate of aggregate t9 to 1Gbit/s", "there is no aggregate `t9`"),
        ("remove aggregate tenant", "aggregates: t7, t8"),
    ] {
        let mut network = network();
        let problem = network.edit(&edit.parse::<Edit>().unwrap()).unwrap_err();
        let said = format!("{}; {}", problem.message, problem.help);
        assert!(said.contains(what), "{edit}: {said}");
        assert_eq!(network, self::network());
    }
}

#[test]
fn words_that_mean_nothing_are_refused() {
    for (words, what) in [
        ("", "one of: `remove port"),
        ("remove", "one of: `remove port"),
        ("delete port x", "it starts with: remove, add, set"),
        ("remov port x", "did you mean `remove`?"),
        ("remove prot x", "did you mean `port`?"),
        ("add path to class a", "this path is empty"),
        ("set wieght of class a to 2", "did you mean `weight`?"),
        ("set weight of class a to 0", "from 1 to"),
        ("set weight of class a to 1 2", "from 1 to"),
        ("set limit of class a to 5", "has no unit"),
        ("set limit of class a to 5Mbit/s firm", "`40Gbit/s hard`"),
        ("set rate of class a to 5Mbit/s", "`set rate of port`"),
        ("set demand of class a to", "one of: `remove port"),
    ] {
        let problem = words.parse::<Edit>().unwrap_err();
        let said = format!("{}; {}", problem.message, problem.help);
        assert!(said.contains(what), "{words}: {said}");
    }
}

#[test]
fn changes_are_counted_by_their_keys() {
    let changes = Changes::between([("a", 1), ("b", 2), ("c", 3)], [("b", 2), ("c", 4), ("d", 5), ("e", 6)]);
    assert_eq!(changes, Changes { added: 2, removed: 1, changed: 1, unchanged: 1 });
    assert_eq!(changes.updates(), 4);
}
