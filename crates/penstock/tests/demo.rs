// SPDX-License-Identifier: MIT OR Apache-2.0
//! End to end: `examples/first.yaml` holds on real traffic, recorded now between two namespaces, and on the shipped
//! recording; and `demo/live.yaml` on live interfaces.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // what is missing fails the test, or skips it

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Class, rate in bit/s, burst and excess in seconds: as in the example.
const LIMITS: [(&str, f64, f64); 3] =
    [("down/gold", 50e6, 0.0425), ("down/silver", 20e6, 0.0425), ("down/voice", 5e6, 0.030)];

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn class<'a>(report: &'a Value, path: &str) -> &'a Value {
    report["classes"].as_array().unwrap().iter().find(|class| class["path"] == path).unwrap()
}

/// Replays `capture` under the example: no class may pass more than its limit allows. Returns the report.
fn limits_hold(capture: &Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_penstock"))
        .args(["replay", "examples/first.yaml", "--json", "--in"])
        .arg(capture)
        .current_dir(project())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let seconds = number(&report["duration_ns"]) / 1e9;
    for (path, rate, window) in LIMITS {
        let passed_bits = number(&class(&report, path)["passed_bytes"]) * 8.0;
        let most = rate * (seconds + window) + 1514.0 * 8.0;
        assert!(passed_bits > 0.0, "{path} passed nothing");
        assert!(passed_bits <= most, "{path}: {passed_bits} bits passed in {seconds} s, {most} allowed");
    }
    assert!(number(&report["unmatched_packets"]) > 0.0, "the tenant without a limit was not seen");
    assert_eq!(report["malformed_packets"], 0);
    report
}

#[test]
fn limits_hold_on_the_shipped_recording() {
    let report = limits_hold(&project().join("demo/recording.pcap.gz"));
    let seconds = number(&report["duration_ns"]) / 1e9;
    for (path, rate, _) in LIMITS {
        let class = class(&report, path);
        // Each tenant offers twice its limit, from a moment after the recording's start to one before its end.
        let passed_bits = number(&class["passed_bytes"]) * 8.0;
        assert!(passed_bits >= 0.95 * rate * seconds, "{path}: only {passed_bits} bits passed in {seconds} s");
        assert!(number(&class["dropped_packets"]) > 0.0, "{path} dropped nothing");
        let marks = number(&class["marked_packets"]);
        assert_eq!(marks > 0.0, path == "down/silver", "{path} marked {marks}");
    }
}

#[test]
fn limits_hold_on_traffic_of_now() {
    let capture = Path::new(env!("CARGO_TARGET_TMPDIR")).join("demo.pcap");
    let output = Command::new(project().join("demo/record")).arg(&capture).arg("2").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(3) {
        // Not eprintln!, which the test runner keeps to itself.
        writeln!(std::io::stderr(), "SKIP limits_hold_on_traffic_of_now: {said}").unwrap();
        assert!(std::env::var_os("CI").is_none(), "CI skips nothing: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
    limits_hold(&capture);
}

/// Namespaces and pins that a live demo made.
fn left_behind() -> Vec<String> {
    let names = |folder: &str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let mut all = [names("/run/netns"), names("/sys/fs/bpf")].concat();
    all.retain(|name| name.starts_with("penstock-demo-"));
    all
}

/// Runs the live demo for some seconds. None where it is not possible.
fn live_demo(seconds: &str, interrupt_after: Option<std::time::Duration>) -> Option<std::process::Output> {
    let mut command = Command::new(project().join("demo/live"));
    command.arg(env!("CARGO_BIN_EXE_penstock")).arg(seconds);
    // A group of its own, so that what it leaves running can be found.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    if let Some(wait) = interrupt_after {
        std::thread::sleep(wait);
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    }
    let group = rustix::process::Pid::from_child(&child);
    let output = child.wait_with_output().unwrap();
    assert!(rustix::process::test_kill_process_group(group).is_err(), "something that it started still runs");
    if output.status.code() == Some(3) {
        assert!(std::env::var_os("CI").is_none(), "CI can: {}", String::from_utf8_lossy(&output.stderr));
        eprintln!("SKIP: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(output)
}

/// One after the other: both look at what is left behind.
#[test]
fn limits_hold_live_and_nothing_is_left_behind() {
    let Some(output) = live_demo("4", None) else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let goodput = |tenant: &str| -> f64 {
        let line = text.lines().find(|line| line.trim_start().starts_with(tenant)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    // Payload of 4 s: the rate, and a window on top; at least half of it, however busy the machine is.
    for (tenant, rate, window_s) in [("policed", 50.0, 0.0425), ("marked", 50.0, 0.042), ("voice", 10.0, 0.0425)] {
        let most = rate * (4.0 + window_s) / 4.0;
        assert!((rate / 2.0..=most).contains(&goodput(tenant)), "{tenant}: {}\n{text}", goodput(tenant));
    }
    assert!(goodput("free") > 100.0, "{text}");
    assert_eq!(left_behind(), Vec::<String>::new());

    let Some(output) = live_demo("30", Some(std::time::Duration::from_secs(4))) else { return };
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(left_behind(), Vec::<String>::new());
}
