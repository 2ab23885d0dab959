// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock plan` as a person runs it.

#![allow(clippy::unwrap_used)] // a test may panic

mod support;

use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use support::{Lab, penstock};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/network.yaml");

/// One tenant at three gateways.
const AGGREGATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/aggregate.yaml");

/// Hard limits of 12 Gbit/s on a port of 10.
const OVER: &str = "penstock-network: 1
ports: [ { name: a, switch: s, rate: 10Gbit/s } ]
classes:
  - { name: x, limit: { rate: 8Gbit/s, kind: hard }, paths: [ [a] ] }
  - { name: y, limit: { rate: 4Gbit/s, kind: hard }, paths: [ [a] ] }
";

struct Done {
    code: i32,
    out: String,
    err: String,
}

fn plan(arguments: &[&str]) -> Done {
    let output = penstock().arg("plan").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

fn fine(arguments: &[&str]) -> String {
    let done = plan(arguments);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{arguments:?}");
    done.out
}

fn json_of(arguments: &[&str]) -> Value {
    serde_json::from_str(&fine(&[arguments, &["--json"]].concat())).unwrap()
}

fn written(lab: &Lab, name: &str, text: &str) -> String {
    lab.write(name, text.as_bytes()).display().to_string()
}

/// Figure 11 of the paper, and what 6.3.2 says of it.
#[test]
fn the_example_is_the_papers() {
    let plan = json_of(&[EXAMPLE, "--compare", "local,edge"]);
    let path = |class: &str, path: u64, gbps: u64, bottleneck: &str| json!({ "class": class, "path": path, "rate_bps": gbps * 1_000_000_000, "bottleneck": bottleneck });
    let paths = [
        path("tenant1", 0, 50, "h1-l1"),
        path("tenant1", 1, 50, "h1-l1"),
        path("tenant2", 0, 20, "l2-h4"),
        path("tenant3", 0, 30, "l2-h4"),
    ];
    assert_eq!(plan["paths"], json!(paths));
    let limit = |class: &str, port: &str, gbps: u64, red_bytes: u64| json!({ "class": class, "port": port, "rate_bps": gbps * 1_000_000_000, "yellow_bytes": 16_000, "red_bytes": red_bytes });
    let limits = [
        limit("tenant1", "h1-l1", 100, 400_000),
        limit("tenant2", "l2-h4", 20, 133_333),
        limit("tenant3", "l2-h4", 30, 200_000),
    ];
    assert_eq!(plan["limits"], json!(limits));
    assert_eq!(plan["epoch"], 1);
    assert_eq!(plan["changes"], json!({ "added": 3, "removed": 0, "changed": 0, "unchanged": 0 }));
    assert_eq!((&plan["warnings"], &plan["aggregates"]), (&json!([]), &json!([])));
    let port = plan["ports"].as_array().unwrap().iter().find(|port| port["name"] == "s1-l2").unwrap();
    assert_eq!((&port["rate_bps"], &port["used_bps"]), (&json!(100_000_000_000_u64), &json!(70_000_000_000_u64)));
    let flows: Vec<_> =
        plan["comparison"].as_array().unwrap().iter().map(|row| (&row["scheme"], &row["flow_bps"])).collect();
    let gbps = |gbps: u64| json!(gbps * 1_000_000_000);
    let (global, local) = (gbps(150), gbps(100));
    assert_eq!(flows, [(&json!("global"), &global), (&json!("local"), &local), (&json!("edge"), &global)]);
    let short = plan["comparison"][1]["short"].as_array().unwrap();
    assert_eq!(short[0], json!({ "class": "tenant3", "due_bps": gbps(30), "gets_bps": 0 }));
}

#[test]
fn a_person_reads_who_gets_what_in_80_columns() {
    let out = fine(&[EXAMPLE, "--compare", "edge,local"]);
    for line in [
        " tenant1         0       1  100.0 G      2  h1-l1",
        " l2-h4  100.0 G  100.0 G  100.0 %        3      3  tenant2, tenant3",
        " l2-h4     tenant3  30.00 G    16KB      200KB",
        " local   100.0 G     66.7 %",
        "  local: tenant3 gets 0 of 30.00 G",
    ] {
        assert!(out.lines().any(|other| other.starts_with(line)), "no {line} in\n{out}");
    }
    let lab = Lab::new();
    let long = |word: &str| format!("{word}-{}", "name".repeat(20));
    let network = format!(
        "penstock-network: 1\nports: [ {{ name: {}, switch: s, rate: 10Gbit/s }} ]\nclasses:\n  - {{ name: {}, demand: 1Mbit/s, limit: {{ rate: 9Gbit/s }}, paths: [ [{}] ] }}\n",
        long("port"),
        long("class"),
        long("port")
    );
    let file = written(&lab, "n.yaml", &network);
    let what_if = format!("set demand of class {} to none", long("class"));
    let out = fine(&[&file, "--what-if", &what_if]);
    let widest = out.lines().skip(1).map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{out}");
}

#[test]
fn what_if_says_what_changes() {
    let edits = ["--what-if", "remove port s1-l2", "--what-if", "set limit of class tenant3 to 60Gbit/s"];
    let out = fine(&[&[EXAMPLE], edits.as_slice()].concat());
    for line in [
        "  port s1-l2 took 2 paths of 2 classes with it",
        "  class tenant2 has no path left",
        " tenant3  30.00 G  60.00 G    +30.00 G",
        " tenant2  20.00 G        -    -20.00 G",
        "2 limits: 1 added, 2 removed, 0 changed, 1 as before",
    ] {
        assert!(out.lines().any(|other| other == line), "no {line} in\n{out}");
    }
    let plan = json_of(&[&[EXAMPLE], edits.as_slice()].concat());
    assert_eq!(plan["changes"], json!({ "added": 1, "removed": 2, "changed": 0, "unchanged": 1 }));
    assert_eq!(plan["notes"].as_array().unwrap().len(), 2);
    // Nothing is as it was but a class that nobody knows.
    assert!(fine(&[EXAMPLE, "--against", EXAMPLE]).contains("no class gets more or less"));
}

#[test]
fn another_file_is_what_changes_are_from() {
    let lab = Lab::new();
    let today = std::fs::read_to_string(EXAMPLE).unwrap();
    let tomorrow = today.replace("weight: 3", "weight: 8");
    let tomorrow = written(&lab, "tomorrow.yaml", &tomorrow);
    let plan = json_of(&[&tomorrow, "--against", EXAMPLE, "--compare", "edge,local"]);
    assert_eq!(plan["changes"], json!({ "added": 0, "removed": 0, "changed": 2, "unchanged": 1 }));
    // Two flows change: at the edge where they start; locally nothing was allowed and nothing is.
    let updates = |scheme: usize| plan["comparison"][scheme]["changes"]["changed"].as_u64();
    assert_eq!([0, 1, 2].map(updates), [Some(2), Some(0), Some(2)]);
    assert!(fine(&[&tomorrow, "--against", EXAMPLE]).contains(" tenant2  20.00 G  10.00 G    -10.00 G\n"));
}

#[test]
fn one_tenant_has_one_rate_at_three_gateways() {
    let plan = json_of(&[AGGREGATE]);
    assert_eq!(plan["aggregates"], json!([{ "name": "t7", "rate_bps": 300_000_000, "used_bps": 300_000_000 }]));
    assert_eq!(plan["warnings"], json!([]));
    let rows = |plan: &Value, key: &str, what: &str| -> Vec<String> {
        let rows = plan[key].as_array().unwrap().iter();
        let row = |row: &Value| {
            format!("{} {} {}", row["class"].as_str().unwrap(), row[what].as_str().unwrap(), row["rate_bps"])
        };
        rows.map(row).filter(|row| row.starts_with("t7-")).collect()
    };
    assert_eq!(
        rows(&plan, "paths", "bottleneck"),
        ["t7-gw1 t7 100000000", "t7-gw2 t7 100000000", "t7-gw3 t7 100000000"]
    );
    let at_ports = ["t7-gw1 gw1-up 100000000", "t7-gw2 gw2-up 100000000", "t7-gw3 gw3-up 100000000"];
    assert_eq!(rows(&plan, "limits", "port"), at_ports);
    // What one does not ask for the others have, and what nobody asks for may be asked for.
    let ask = |class: &str, rate: &str| format!("set demand of class {class} to {rate}");
    let (first, second, third) = (ask("t7-gw1", "20Mbit/s"), ask("t7-gw2", "40Mbit/s"), ask("t7-gw3", "0.06Gbit/s"));
    let out = fine(&[AGGREGATE, "--what-if", &first]);
    for line in [
        " t7-gw2     100.0 M  140.0 M    +40.00 M",
        " t7         300.0 M  300.0 M  100.0 %        3  t7-gw2, t7-gw3",
        " gw3-up    t7-gw3     140.0 M    16KB  320KB",
    ] {
        assert!(out.lines().any(|other| other == line), "no {line} in\n{out}");
    }
    let plan = json_of(&[AGGREGATE, "--what-if", &first, "--what-if", &second, "--what-if", &third]);
    let with_spare = ["t7-gw1 gw1-up 80000000", "t7-gw2 gw2-up 100000000", "t7-gw3 gw3-up 120000000"];
    assert_eq!(rows(&plan, "limits", "port"), with_spare);
    let plan = json_of(&[AGGREGATE, "--what-if", "set rate of aggregate t7 to 30Mbit/s", "--compare", "local,edge"]);
    assert_eq!(plan["aggregates"][0]["used_bps"], 30_000_000);
    assert_eq!(plan["warnings"], json!(["aggregate `t7`: safe rates of 100Mbit/s in all, above its rate of 30Mbit/s"]));
}

#[test]
fn limits_that_do_not_fit_are_planned_and_refused() {
    let lab = Lab::new();
    let file = written(&lab, "over.yaml", OVER);
    let said = "port `a`: hard limits of 12Gbit/s in all, above its rate of 10Gbit/s";
    let done = plan(&[&file, "--compare", "local"]);
    let lines = [
        format!("{file}:2:38: error: {said}\n"),
        format!("{file}:4:23: note: `x` has 8Gbit/s of them\n"),
        format!("{file}:5:23: note: `y` has 4Gbit/s of them\n"),
        "  help: lower them to 10Gbit/s in all, raise this rate, or make some of them `kind: soft`\n".to_owned(),
    ];
    assert!(done.code == 1 && lines.iter().all(|line| done.err.contains(line)), "{}", done.err);
    assert!(done.err.starts_with(&lines[0]) && done.err.ends_with(&lines[3]), "{}", done.err);
    assert!(done.out.contains(" x             0       1  8.00 G hard  8.00 G"), "{}", done.out);
    assert!(done.out.ends_with(&format!("warning: {said}\n")), "{}", done.out);
    // Nobody sends more than a port: 12 come, 10 flow.
    assert!(done.out.contains("\n global  10.00 G    100.0 %"), "{}", done.out);
    let done = plan(&[&file, "--json"]);
    let plan: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((done.code, &plan["warnings"]), (1, &json!([said])));
    assert_eq!(plan["limits"][1]["rate_bps"], 4_000_000_000_u64);
}

/// What a what-if makes of a network has no place in its file.
#[test]
fn a_what_if_decides_whether_limits_fit() {
    let lab = Lab::new();
    let file = written(&lab, "over.yaml", OVER);
    let done = plan(&[&file, "--what-if", "set rate of port a to 11Gbit/s"]);
    let said = format!("error: {file}: port `a`: hard limits of 12Gbit/s in all, above its rate of 11Gbit/s\n");
    assert_eq!((done.code, done.err), (1, said));
    fine(&[&file, "--what-if", "set rate of port a to 12Gbit/s"]);
    fine(&[&file, "--what-if", "set limit of class y to 4Gbit/s"]);
}

#[test]
fn bad_input_is_said_at_once_and_nothing_is_printed() {
    let lab = Lab::new();
    let bad = written(&lab, "bad.yaml", &OVER.replace("[a]", "[b, a, a]").replace("8Gbit/s", "8Gbps"));
    let done = plan(&[&bad]);
    assert_eq!((done.code, done.out.as_str()), (2, ""));
    for what in [
        "bad.yaml:4:31: error: `Gbps` is not a unit of a rate",
        "bad.yaml:4:62: error: there is no port `b`",
        "bad.yaml:4:68: error: this path meets the port `a` twice",
        "bad.yaml:5:64: error: there is no port `b`",
    ] {
        assert!(done.err.contains(what), "no {what} in\n{}", done.err);
    }
    for (arguments, what) in [
        (vec!["nowhere.yaml"], "nowhere.yaml: cannot read it"),
        (vec![EXAMPLE, "--what-if", "remove port l1-s9"], "did you mean `l1-s1`?"),
        (vec![EXAMPLE, "--what-if", "remove prot l1-s1"], "did you mean `port`?"),
        (vec![EXAMPLE, "--compare", "locl"], "'local'"),
        (vec![EXAMPLE, "--against", "nowhere.yaml"], "nowhere.yaml: cannot read it"),
        (vec!["--generate", "fat-tree:k=3"], "k is even"),
        (vec!["--generate", "fattree"], "did you mean `fat-tree`?"),
        (vec![EXAMPLE, "--generate", "fat-tree"], "cannot be used with"),
        (vec![], "--generate"),
    ] {
        let done = plan(&arguments);
        assert!((done.code, done.out.as_str()) == (2, "") && done.err.contains(what), "{arguments:?}: {}", done.err);
    }
    let latin = lab.write("latin.yaml", b"penstock-network: 1 # \xe9\n");
    assert!(plan(&[latin.to_str().unwrap()]).err.contains("latin.yaml:1:23: error: this byte is not UTF-8"));
}

#[test]
fn what_is_generated_can_be_planned_from_a_pipe() {
    for words in [
        "leaf-spine:leaves=3,tenants=2",
        "fat-tree",
        "dumbbell",
        "ixp:traffic=gravity,load=90",
        "leaf-spine:traffic=incast",
    ] {
        let network = fine(&["--generate", words]);
        assert_eq!(network, fine(&["--generate", words]));
        let output = penstock().args(["plan", "-", "--compare", "local,edge"]).write_stdin(network).output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && out.starts_with("standard input:"), "{words}: {out}");
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    }
}

fn svg_of(lab: &Lab, network: &str) -> String {
    let (file, svg) = (written(lab, "n.yaml", network), lab.path("n.svg"));
    fine(&[&file, "--svg", svg.to_str().unwrap()]);
    let text = std::fs::read_to_string(svg).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let size = |name: &str| document.root_element().attribute(name).unwrap().parse::<f64>().unwrap();
    let (width, height) = (size("width"), size("height"));
    for circle in document.descendants().filter(|node| node.has_tag_name("circle")) {
        let at = |name: &str| circle.attribute(name).unwrap().parse::<f64>().unwrap();
        assert!((0.0..width).contains(&at("cx")) && (0.0..height).contains(&at("cy")), "a dot beside the picture");
    }
    text
}

fn words_of(svg: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.map(|node| node.text().unwrap_or_default().trim().to_owned()).collect()
}

#[test]
fn the_picture_shows_switches_and_bottlenecks() {
    let lab = Lab::new();
    let svg = svg_of(&lab, &std::fs::read_to_string(EXAMPLE).unwrap());
    let words = words_of(&svg);
    for word in
        ["h1", "l1", "s1", "s2", "h4", "h6", "150.0 Gbit/s flow in 3 classes of 18 ports; 3 limits at bottlenecks"]
    {
        assert!(words.iter().any(|other| other == word), "no {word} in {words:?}");
    }
    // Two bottlenecks and the legend's, of two circles each.
    assert_eq!(svg.matches("<circle").count(), 6);
}

#[test]
fn large_networks_are_drawn_in_groups() {
    let lab = Lab::new();
    let words = words_of(&svg_of(&lab, &fine(&["--generate", "leaf-spine:leaves=10,spines=5,hosts=10"])));
    let groups: Vec<&String> = words.iter().filter(|word| word.starts_with('h') && word.ends_with(" +9")).collect();
    assert_eq!(groups.len(), 10, "{words:?}");
    let words = words_of(&svg_of(&lab, &fine(&["--generate", "leaf-spine:leaves=100,spines=3,hosts=1"])));
    assert!(words.len() < 90 && words.contains(&"l1 +2".to_owned()), "{words:?}");
}

#[test]
fn a_picture_is_whole_or_not_there() {
    let lab = Lab::new();
    let over = written(&lab, "over.yaml", OVER);
    let svg = lab.path("over.svg");
    assert_eq!(plan(&[&over, "--svg", svg.to_str().unwrap()]).code, 1);
    assert!(roxmltree::Document::parse(&std::fs::read_to_string(&svg).unwrap()).is_ok());
    let nowhere = lab.path("nowhere/n.svg");
    let done = plan(&[EXAMPLE, "--svg", nowhere.to_str().unwrap()]);
    assert!(done.code == 1 && done.err.contains("n.svg") && done.out.is_empty(), "{}", done.err);
    let left: Vec<_> = std::fs::read_dir(lab.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_pipe_that_is_closed_early_is_no_failure() {
    let lab = Lab::new();
    let network = written(&lab, "n.yaml", &fine(&["--generate", "fat-tree:k=8,traffic=random,pairs=2000"]));
    for arguments in [vec!["plan", &network, "--json"], vec!["plan", "--generate", "fat-tree:k=8,traffic=all-to-all"]] {
        let program = Path::new(assert_cmd::cargo::cargo_bin!("penstock"));
        let mut child = std::process::Command::new(program)
            .args(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut start = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut start).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    }
}
