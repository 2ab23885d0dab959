// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock replay` as a person runs it.

#![allow(clippy::unwrap_used)] // a test may panic

mod support;

use predicates::prelude::*;
use serde_json::Value;
use support::{Lab, POLICY, capture_of, penstock};

#[test]
fn json_has_the_fixed_keys_and_the_sums_agree() {
    let lab = Lab::new();
    let policy = lab.write("p.yaml", POLICY.as_bytes());
    let capture = lab.write("in.pcap", &capture_of(2000));
    let output = penstock().arg("replay").arg(&policy).arg("--in").arg(&capture).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for key in [
        "policy",
        "packets",
        "bytes",
        "duration_ns",
        "links",
        "classes",
        "limits",
        "reasons",
        "unmatched_packets",
        "malformed_packets",
    ] {
        assert!(report.get(key).is_some(), "{key} is missing");
    }
    let class = &report["classes"][0];
    assert_eq!(class["path"], "down/slow");
    let number = |value: &Value, key: &str| value[key].as_u64().unwrap_or_else(|| panic!("{key} in {value}"));
    for key in [
        "offered_packets",
        "offered_bytes",
        "passed_packets",
        "passed_bytes",
        "marked_packets",
        "dropped_packets",
        "held_packets",
        "share_bps",
    ] {
        number(class, key);
    }
    let limit = &report["limits"][0];
    assert_eq!((limit["name"].as_str(), limit["class"].as_str()), (Some("slow"), Some("down/slow")));
    assert_eq!(
        number(limit, "green_packets") + number(limit, "yellow_packets") + number(limit, "red_packets"),
        number(limit, "offered_packets")
    );
    assert_eq!(number(class, "passed_packets") + number(class, "dropped_packets"), number(class, "offered_packets"));
    assert_eq!(number(&report["reasons"], "over_rate"), number(class, "dropped_packets"));
    assert!(number(class, "dropped_packets") > 0 && number(class, "passed_packets") > 0);
    assert_eq!(number(&report, "packets"), 2000);
    assert_eq!(number(&report, "bytes"), 2000 * 1014);
    assert_eq!(number(&report["links"][0], "offered_bytes"), number(&report, "bytes"));
}

#[test]
fn outputs_agree_with_each_other() {
    let lab = Lab::new();
    let policy = lab.write("p.yaml", POLICY.as_bytes());
    let capture = lab.write("in.pcap", &capture_of(2000));
    let (out, verdicts, plot) = (lab.path("out.pcap"), lab.path("v.csv"), lab.path("p.svg"));
    let output = penstock()
        .args(["replay", "--json", "--in"])
        .args([&capture, &policy])
        .arg("--out")
        .arg(&out)
        .arg("--verdicts")
        .arg(&verdicts)
        .arg("--plot")
        .arg(&plot)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lines = std::fs::read_to_string(&verdicts).unwrap();
    let mut lines = lines.lines();
    assert_eq!(lines.next(), Some("index,time_ns,length,class,limit,color,verdict,reason,departure_ns"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 2000);
    assert_eq!(rows[0], ["0", "0", "1014", "down/slow", "slow", "green", "pass", "", "0"]);
    let passed = rows.iter().filter(|row| row[6] == "pass").count() as u64;
    assert_eq!(Some(passed), report["classes"][0]["passed_packets"].as_u64());
    let drop = rows.iter().find(|row| row[6] == "drop").unwrap();
    assert_eq!((drop[5], drop[7], drop[8]), ("red", "over_rate", ""));
    // What passed, replayed again without a limit in the way, is the same number of packets.
    let again = penstock().args(["replay", "--json", "--in"]).args([&out, &policy]).output().unwrap();
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["packets"].as_u64(), Some(passed));
    assert!(std::fs::read_to_string(&plot).unwrap().starts_with("<svg"));
}

#[test]
fn the_same_seed_gives_the_same_verdicts() {
    let lab = Lab::new();
    let policy = lab.write(
        "p.yaml",
        POLICY.replace("limit: { rate: 1Mbit/s }", "limit: { rate: 1Mbit/s, early_drop: 20% }").as_bytes(),
    );
    let capture = lab.write("in.pcap", &capture_of(2000));
    let run = |seed: &str| {
        let out = penstock()
            .args(["replay", "--verdicts", "-", "--seed", seed, "--in"])
            .args([&capture, &policy])
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        out.stdout
    };
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

#[test]
fn a_capture_cut_anywhere_is_reported_and_leaves_nothing_that_looks_whole() {
    let lab = Lab::new();
    let policy = lab.write("p.yaml", POLICY.as_bytes());
    let whole = capture_of(20);
    for cut in [0, 3, 10, 23, 25, 40, 41, 100, whole.len() - 1] {
        let capture = lab.write("in.pcap", &whole[..cut]);
        let (out, verdicts) = (lab.path("out.pcap"), lab.path("v.csv"));
        penstock()
            .args(["replay", "--in"])
            .args([&capture, &policy])
            .arg("--out")
            .arg(&out)
            .arg("--verdicts")
            .arg(&verdicts)
            .assert()
            .code(2)
            .stderr(predicate::str::contains("in.pcap").and(predicate::str::contains("panicked").not()));
        assert!(!out.exists() && !verdicts.exists(), "cut at {cut}");
    }
    // What was whole is in the report and in the partial outputs.
    lab.write("in.pcap", &whole[..whole.len() - 1]);
    penstock()
        .args(["replay", "--json", "--in"])
        .args([lab.path("in.pcap"), policy])
        .arg("--verdicts")
        .arg(lab.path("v.csv"))
        .assert()
        .code(2)
        .stdout(predicate::str::contains("\"packets\":19"));
    let partial = std::fs::read_to_string(lab.path("v.csv.partial")).unwrap();
    assert_eq!(partial.lines().count(), 20);
}

#[test]
fn bad_input_is_exit_code_2_with_a_place() {
    let lab = Lab::new();
    let good = lab.write("p.yaml", POLICY.as_bytes());
    let typo = lab.write("typo.yaml", POLICY.replace("rate: 1Mbit/s", "rat: 1Mbit/s").as_bytes());
    let capture = lab.write("in.pcap", &capture_of(2));
    let noise = lab.write("noise.pcap", &[0x5a; 4096]);
    penstock()
        .args(["replay", "--in"])
        .args([&capture, &typo])
        .assert()
        .code(2)
        .stderr(predicate::str::is_match(r"typo\.yaml:\d+:\d+").unwrap().and(predicate::str::contains("rat")));
    penstock().arg("check").arg(&typo).assert().code(2);
    penstock()
        .args(["replay", "--in"])
        .args([&noise, &good])
        .assert()
        .code(2)
        .stderr(predicate::str::contains("not a capture"));
    penstock().args(["replay", "--in"]).args([&lab.path("none.pcap"), &good]).assert().code(2);
    penstock()
        .args(["replay", "--link", "up", "--in"])
        .args([&capture, &good])
        .assert()
        .code(2)
        .stderr(predicate::str::contains("it has down"));
    penstock().arg("replay").arg(&good).assert().code(2);
}

#[test]
fn standard_input_and_output_are_streams() {
    let lab = Lab::new();
    let policy = lab.write("p.yaml", POLICY.as_bytes());
    let output = penstock()
        .arg("replay")
        .arg(&policy)
        .args(["--in", "-", "--out", "-"])
        .write_stdin(capture_of(100))
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout[..4], 0xa1b2_3c4d_u32.to_le_bytes());
    assert!(String::from_utf8_lossy(&output.stderr).contains("down/slow"), "the report goes to standard error");
}

#[test]
fn a_workload_goes_through_the_same_path() {
    let lab = Lab::new();
    let policy = lab.write("p.yaml", POLICY.as_bytes());
    let workload = lab.write(
        "w.yaml",
        b"penstock-workload: 1\nseed: 3\nduration: 2s\nflows:\n  - { name: bulk, count: 10, rate: 1Mbit/s, size: 1000B, \
          src: 172.16.0.1, dst: 10.0.0.0/8 }\n",
    );
    let output = penstock().arg("replay").arg(&policy).arg("--workload").arg(&workload).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let class = &report["classes"][0];
    let (offered, passed) = (class["offered_bytes"].as_f64().unwrap(), class["passed_bytes"].as_f64().unwrap());
    // 10 Mbit/s for two seconds, in the bytes that limits count; of which 1 Mbit/s and one window of 42.5 ms may pass.
    assert!((offered - 2_500_000.0).abs() < 12_000.0, "{offered}");
    assert!((passed - 255_312.0).abs() < 2_000.0, "{passed}");
}

/// A policy with the limit at another rate, and one more class.
fn second_policy() -> String {
    POLICY.replace("name: test", "name: second").replace("1Mbit/s", "2Mbit/s")
        + "      - name: free\n        match: [ { dst: 10.0.0.0/24 } ]\n"
}

#[test]
fn a_reload_takes_effect_at_its_time_and_verdicts_go_on() {
    let lab = Lab::new();
    let first = lab.write("first.yaml", POLICY.as_bytes());
    lab.write("second.yaml", second_policy().as_bytes());
    let capture = lab.write("in.pcap", &capture_of(2000));
    let (verdicts, plot) = (lab.path("v.csv"), lab.path("p.svg"));
    let output = penstock()
        .current_dir(lab.path("."))
        .args(["replay", "--json", "--reload", "0.5s=second.yaml", "--reload", "1500ms=first.yaml", "--in"])
        .args([&capture, &first])
        .arg("--verdicts")
        .arg(&verdicts)
        .arg("--plot")
        .arg(&plot)
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = std::fs::read_to_string(&verdicts).unwrap();
    let rows: Vec<Vec<&str>> = lines.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 2000);
    // A packet a millisecond: those of the second in the middle are in the class that only the second policy has.
    for (index, row) in rows.iter().enumerate() {
        let class = if (500..1500).contains(&index) { "down/free" } else { "down/slow" };
        let time_ns = (index as u64 * 1_000_000).to_string();
        assert_eq!([row[0], row[1], row[3]], [index.to_string().as_str(), time_ns.as_str(), class]);
    }
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let reloads = &report["reloads"];
    assert_eq!((reloads[0]["time_ns"].as_u64(), reloads[0]["policy"].as_str()), (Some(500_000_000), Some("second")));
    assert_eq!((reloads[1]["time_ns"].as_u64(), reloads[1]["limits_kept"].as_u64()), (Some(1_500_000_000), Some(1)));
    let offered = |index: usize| {
        let class = &report["classes"][index];
        (class["path"].as_str(), class["offered_packets"].as_u64())
    };
    assert_eq!((report["policy"].as_str(), offered(0)), (Some("test"), (Some("down/slow"), Some(1000))));
    assert_eq!(offered(1), (Some("down/free"), Some(1000)), "what is gone is in the report");
    let svg = std::fs::read_to_string(&plot).unwrap();
    assert!(svg.contains("down/slow") && svg.contains("down/free"));
}

#[test]
fn a_reload_that_cannot_be_made_is_said_before_the_work_begins() {
    let lab = Lab::new();
    let policy = lab.write("p.yaml", POLICY.as_bytes());
    lab.write("second.yaml", second_policy().as_bytes());
    lab.write("typo.yaml", POLICY.replace("rate: 1Mbit/s", "rat: 1Mbit/s").as_bytes());
    lab.write("up.yaml", POLICY.replace("name: down", "name: up").as_bytes());
    let capture = lab.write("in.pcap", &capture_of(20));
    let replay = |more: &[&str]| {
        let mut command = penstock();
        command.current_dir(lab.path(".")).args(["replay", "--verdicts", "v.csv", "--in"]).args([&capture, &policy]);
        command.args(more).assert()
    };
    let wrong = [
        (&["--reload", "second.yaml"][..], "a time and a policy, such as `2s=after.yaml`"),
        (&["--reload", "1s="], "a time and a policy"),
        (&["--reload", "soon=second.yaml"], "`soon`"),
        (&["--reload", "5=second.yaml"], "has no unit"),
        (&["--reload", "2s=second.yaml", "--reload", "2000ms=p.yaml"], "2000ms does not come after 2s"),
        (&["--reload", "1s=none.yaml"], "none.yaml"),
        (&["--reload", "1s=typo.yaml"], "typo.yaml:11:"),
        (&["--link", "down", "--reload", "1s=up.yaml"], "up.yaml: the policy has no link \"down\"; it has up"),
    ];
    for (arguments, what) in wrong {
        replay(arguments).code(2).stderr(predicate::str::contains(what));
        assert!(!lab.path("v.csv").exists(), "{what}");
    }
    let late = "warning: no packet came at 1s or later: second.yaml was not put into force";
    replay(&["--reload", "5ms=p.yaml", "--reload", "1s=second.yaml"])
        .success()
        .stdout(predicate::str::contains("test from 5.00 ms on: 1 limit went on"))
        .stderr(predicate::str::contains(late));
}
