// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenario files: those that ship are right at every point, and what is wrong with one is said with its place.

#![allow(clippy::unwrap_used)] // a test may panic

use penstock_lab::scenario::{Enforce, Load};
use penstock_lab::{LabError, Library, Template};
use std::path::Path;

const GOOD: &str = "penstock-lab: 1
claim: It works.
paper: { name: P, figure: Figure 1, section: '2' }
scaling: none
sweep: [ { name: cir, values: [ 50Mbit/s, 100Mbit/s ] }, { name: flows, values: [ '1', '2' ] } ]
effort: { quick: { time: 2s, runs: 1 }, full: { time: 4s, runs: 3 } }
traffic:
  forward: redirect
  tenants: [ { name: flow, tcp: dctcp, limit: $cir, load: { tcp: { flows: $flows } } } ]
series:
  - { name: none, enforce: nothing }
  - { name: meter, enforce: { meterrl: { rate: $cir, burst: 1MB, interval: 4ms, tenants: [ flow ] } } }
  - name: penstock
    enforce: { penstock: { policy: \"limit $cir for $dst.flow.\" } }
holds_if: [ { metric: saturation, at_least: 91 } ]
";

fn shipped() -> Library {
    Library::new(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/scenarios")))
}

#[test]
fn all_that_ship_are_right() {
    let names = shipped().names().unwrap();
    assert!(names.len() >= 20, "{names:?}");
    for name in names {
        let template = shipped().read(&name).unwrap_or_else(|error| panic!("{error}"));
        for point in template.points() {
            let scenario = template.at(point).unwrap();
            for series in &scenario.series {
                let Enforce::Penstock(penstock) = &series.enforce else { continue };
                let changes = penstock.changes.iter().map(|change| &change.policy);
                for policy in [&penstock.policy].into_iter().chain(changes) {
                    let policy = penstock_policy::Policy::parse(&name, policy).unwrap_or_else(|e| panic!("{e}"));
                    let plan = penstock_policy::compile::compile(&policy, |_| Err(std::io::Error::other("no files")));
                    plan.unwrap_or_else(|errors| panic!("{name}: {errors}"));
                }
            }
        }
    }
}

#[test]
fn a_point_has_its_values() {
    let template = Template::parse("good.yaml", GOOD.to_owned()).unwrap_or_else(|errors| panic!("{errors}"));
    let points: Vec<String> =
        template.points().iter().map(|point| format!("{} {}", point["cir"], point["flows"])).collect();
    // The first variable changes fastest.
    assert_eq!(points, ["50Mbit/s 1", "100Mbit/s 1", "50Mbit/s 2", "100Mbit/s 2"]);
    let scenario = template.at(&template.points()[3]).unwrap();
    let traffic = scenario.traffic.unwrap();
    assert_eq!(traffic.tenants[0].limit.unwrap().0, 100_000_000);
    assert!(matches!(traffic.tenants[0].load, Load::Tcp(load) if load.flows == 2));
    let Enforce::Penstock(penstock) = &scenario.series[2].enforce else { panic!("{:?}", scenario.series[2]) };
    assert_eq!(penstock.policy, "limit 100Mbit/s for 10.88.2.10.");
}

/// What a change of the good file is answered with.
fn complaint(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from:?} is not in the file");
    let text = GOOD.replacen(from, to, 1);
    Template::parse("bad.yaml", text).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn mistakes_have_a_place_and_a_remedy() {
    let cases = [
        ("scaling:", "scalling:", "bad.yaml:4:1: error: there is no key `scalling` here", "did you mean `scaling`?"),
        (
            "tcp: dctcp",
            "tcp: vegas",
            "bad.yaml:9:12: error: `vegas` is no congestion control",
            "reno, cubic, bbr or dctcp",
        ),
        ("limit: $cir", "limit: $cirr", "bad.yaml:9:47: error: there is no variable `$cirr`", "did you mean `cir`?"),
        ("limit: $cir", "limit: 50Mbit", "`Mbit` is not a unit of a rate", "50Mbit/s"),
        ("flows: $flows", "flows: many", "`many` is not a whole number", "^^^^"),
        ("enforce: nothing", "enforce: notthing", "bad.yaml:11:28: error: `notthing` is not known here", "`nothing`"),
        ("claim: It works.\n", "", "`claim` is missing", "bad.yaml:1:1"),
        ("penstock-lab: 1", "penstock-lab: 2", "bad.yaml:1:15: error: this format version is not known", "version 1"),
        ("forward: redirect", "forward: redirect\n  senders: 2", "a redirect leads from each sender", "forward: route"),
        ("tenants: [ { name: flow,", "tenants: [ { name: flow, sender: 3,", "on a host that does not exist", "from 0"),
        ("tcp: dctcp", "start: 1s, stop: 1s", "`flow` cannot stop then", "behind its `start`"),
        ("load: { tcp: { flows: $flows } }", "stop: 1s, load: { sockperf: {} }", "`flow` cannot stop then", "`udp`"),
        (
            "forward: redirect",
            "forward: redirect\n  watch_shares: true",
            "what `flow` asks for is not known",
            "loads of `udp`",
        ),
        (
            "[ { name: flow, tcp: dctcp, limit: $cir, load: { tcp: { flows: $flows } } } ]",
            "[ { name: flow, load: { udp: { rate: 1Mbit/s, size: 1kB, even: true } } }, { name: b, load: { udp: { rate: 1Mbit/s, size: 1kB } } } ]",
            "`flow` sends evenly, and others by the same device",
            "a sender of its own",
        ),
        ("[ { metric: saturation, at_least: 91 } ]", "[]", "nothing is claimed", "at least one rule"),
        (", at_least: 91", "", "the rule about `saturation` has no bound: it always holds", "`at_least`, `at_most`"),
        ("at_least: 91", "at_least: 91, factor: 2", "has a factor of nothing", "`factor` goes with `below` or `above`"),
        ("at_least: 91", "below: metre", "bad.yaml:15:11: error: there is no series `metre`", "did you mean `meter`?"),
        ("at_least: 91", "at_least: 91, tenant: flo", "there is no tenant `flo`", "did you mean `flow`?"),
        ("at_least: 91", "at_least: 91, at: { cirr: 1 }", "there is no variable `cirr`", "did you mean `cir`?"),
        ("at_least: 91", "at_least: 91, at: { flows: '3' }", "there is no value `3`", "1, 2"),
        ("{ time: 2s, runs: 1 }", "{ time: 2s }", "`runs` is missing", "bad.yaml:6:"),
        ("burst: 1MB", "burst: 1", "bad.yaml:12:", "unit"),
    ];
    for (from, to, says, and) in cases {
        let text = complaint(from, to);
        assert!(text.contains(says) && text.contains(and), "{to:?} gives:\n{text}");
    }
}

#[test]
fn one_policy_is_watched() {
    let udp = "[ { name: flow, load: { udp: { rate: 1Mbit/s, size: 1kB } } } ]";
    let watched = GOOD
        .replace("forward: redirect", "forward: redirect\n  watch_shares: true")
        .replace("[ { name: flow, tcp: dctcp, limit: $cir, load: { tcp: { flows: $flows } } } ]", udp);
    Template::parse("good.yaml", watched.clone()).unwrap_or_else(|errors| panic!("{errors}"));
    let joins = watched.replace("at_least: 91", "at_least: 91, tenant: joins");
    Template::parse("good.yaml", joins).unwrap_or_else(|errors| panic!("{errors}"));
    let changes = "limit $cir for $dst.flow.\", changes: [ { at: 1s, policy: x } ] } }";
    let changed = watched.replace("limit $cir for $dst.flow.\" } }", changes);
    let text = Template::parse("bad.yaml", changed).map(|_| ()).unwrap_err().to_string();
    assert!(text.contains("`watch_shares` looks at one policy") && text.contains("bad.yaml:9:"), "{text}");
}

const NETWORK: &str = "penstock-lab: 1
claim: It works.
paper: { name: P, figure: Figure 1, section: '2' }
scaling: none
effort: { quick: { time: 2s, runs: 1 }, full: { time: 4s, runs: 3 } }
network:
  nodes: 2
  link: 1Gbit/s
  terms: 'burst: 5ms'
  flows: [ { class: a, from: gw1, to: gw2, start: 0s, stop: 2s, load: tcp } ]
series:
  - name: lent
    enforce:
      lent:
        faults: [ { at: 1s, what: leader_killed } ]
        network: '{ penstock-network: 1, ports: [ { name: gw1-up, switch: gw1, rate: 1Gbit/s } ], classes: [ { name: a, paths: [ [ gw1-up ] ] } ] }'
holds_if: [ { metric: passed, tenant: a, at_least: 91 } ]
";

#[test]
fn mistakes_of_networks_have_a_remedy() {
    Template::parse("good.yaml", NETWORK.to_owned()).unwrap_or_else(|errors| panic!("{errors}"));
    let cases = [
        ("to: gw2", "to: gw3", "there is no node `gw3`", "gw1, gw2"),
        ("load: tcp", "load: udp", "a flow of `a` does not say how fast it is", "UDP needs a `rate`"),
        ("stop: 2s", "stop: 1500ms", "a flow of `a` has no whole seconds", "both in seconds"),
        ("nodes: 2", "nodes: 2\n  tcp: dctcp", "`dctcp` is no congestion control", "reno, cubic or bbr"),
        ("nodes: 2", "nodes: 2\n  etcd: 2", "too few or too many", "1, 3 or 5 members"),
        ("'burst: 5ms'", "'burts: 5ms'", "a node's policy would be wrong", "burts"),
        ("[ gw1-up ]", "[ gw9-up ]", "the network of `lent`", "gw9-up"),
        ("leader_killed", "control_cut", "a fault of `lent` at 1 s cannot be", "`node` where it is a node's"),
        ("tenant: a", "tenant: b", "there is no tenant `b`", "known: a, all"),
        ("lent:\n        faults", "penstock:\n        policy: x\n        faults", "no key `faults`", ""),
        ("network:\n  nodes", "traffic:\n  nodes", "no key", "nodes"),
    ];
    for (from, to, says, and) in cases {
        assert!(NETWORK.contains(from), "{from}");
        let errors = Template::parse("bad.yaml", NETWORK.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(errors.contains(says) && errors.contains(and), "{to:?} gives:\n{errors}");
    }
    let errors = Template::parse("bad.yaml", GOOD.replacen("enforce: nothing", "enforce: { own: {} }", 1)).unwrap_err();
    assert!(errors.to_string().contains("are of a network"), "{errors}");
}

#[test]
fn unknown_scenarios_are_named() {
    let error = shipped().read("switchrl/fig77").unwrap_err();
    assert!(matches!(error, LabError::Unknown { .. }), "{error}");
    assert!(error.to_string().contains("switchrl/fig7"), "{error}");
}
