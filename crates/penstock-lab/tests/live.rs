// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real traffic for a few seconds: a limit is kept, DCTCP does what RFC 8257 says, and nothing is left behind.
//!
//! Needs root and iperf3; without them these tests say so and pass, but not where CI is set.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test may panic and talk

use penstock_lab::dctcp::{Dctcp, is_registered};
use penstock_lab::{Done, LabError, Progress, Stop, Template};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// DCTCP can be registered once in a kernel.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Quiet;

impl Progress for Quiet {
    fn step(&mut self, _: usize, _: usize, _: &str) {}
}

/// A scenario of one flow through a limit of ours; `None` where it cannot run.
fn run(tcp: &str, terms: &str) -> Option<Done> {
    let enforce = format!(
        "penstock:
        policy: |
          penstock: 1
          ports: {{ left: {{ device: port0, rate: 10Gbit/s }}, right: {{ device: exit0, rate: 10Gbit/s }} }}
          forward: [ [ left, right ] ]
          links: [ {{ name: down, port: right, rate: 10Gbit/s, unmatched: pass,
            classes: [ {{ name: flow, match: [ {{ dst: $dst.flow }} ], limit: {{ rate: 100Mbit/s, {terms} }} }} ] }} ]"
    );
    run_enforced(tcp, &enforce)
}

/// The same through anybody's limit of 100 Mbit/s.
fn run_enforced(tcp: &str, enforce: &str) -> Option<Done> {
    let text = format!(
        "penstock-lab: 1
claim: A limit is kept.
paper: {{ name: none, figure: none, section: none }}
scaling: none
effort: {{ quick: {{ time: 4s, runs: 1 }}, full: {{ time: 4s, runs: 1 }} }}
traffic:
  forward: redirect
  coalesce: 200us
  warmup: 1s
  tenants: [ {{ name: flow, tcp: {tcp}, rto_min: 10ms, limit: 100Mbit/s, load: {{ tcp: {{ flows: 1, window: 64KB }} }} }} ]
series:
  - name: penstock
    enforce:
      {enforce}
holds_if: [ {{ metric: passed_share, at_least: 50, at_most: 102 }} ]
"
    );
    let template = Template::parse("test.yaml", text).unwrap_or_else(|errors| panic!("{errors}"));
    let folder = tempfile::tempdir().unwrap();
    let done = match penstock_lab::run("test", &template, false, folder.path(), &mut Quiet, &Stop::default()) {
        Ok(done) => done,
        Err(error @ (LabError::NotRoot | LabError::Missing { .. })) => {
            skip(&error.to_string());
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let report = std::fs::read_to_string(folder.path().join("report.md")).unwrap();
    assert!(report.contains("A limit is kept.") && report.contains("passed_share"), "{report}");
    assert!(std::fs::read_to_string(folder.path().join("results.csv")).unwrap().starts_with("series,tenant,run"));
    Some(done)
}

fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "CI proves nothing here: {why}");
    eprintln!("SKIP: {why}");
}

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn metric(done: &Done, name: &str) -> f64 {
    done.results.rows[0].metrics[name]
}

fn own_namespaces() -> Vec<String> {
    let prefix = format!("pstlab-{}-", std::process::id());
    let names = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name.starts_with(&prefix)).collect()
}

#[test]
fn a_limit_is_kept_and_nothing_stays() {
    let _alone = alone();
    let Some(done) = run("reno", "on_excess: drop") else { return };
    assert!(done.holds, "{:?}", done.outcomes);
    assert!(metric(&done, "dropped") > 0.0, "a flow that may send more than its limit is dropped now and then");
    assert_eq!(own_namespaces(), Vec::<String>::new());
}

#[test]
fn dctcp_answers_marks_in_proportion() {
    let _alone = alone();
    let Some(done) = run("dctcp", "on_excess: mark") else { return };
    assert!(done.holds, "{:?}", done.outcomes);
    // Some packets are marked, not all of them: the sender answers, and by less than a halving, or more would be missing.
    let marked = metric(&done, "marked_share");
    assert!(marked > 0.0 && marked < 100.0, "{marked} % were marked");
    assert!(metric(&done, "passed_share") > 90.0, "{:?}", done.results.rows);
    let totals = done.dctcp.unwrap();
    assert!(totals.windows > 10 && totals.reductions > 0, "marks were answered: {totals:?}");
    // RFC 8257, section 3.3: cwnd = cwnd * (1 - alpha / 2), at least two packets.
    let (from, alpha) = (f64::from(totals.reduced_from), f64::from(totals.reduced_by_q20) / f64::from(1 << 20));
    let expected = (from * (1.0 - alpha / 2.0)).max(2.0);
    assert!((f64::from(totals.reduced_to) - expected).abs() <= 1.0, "{expected} expected: {totals:?}");
    assert!(totals.alpha_q20 <= 1 << 20, "{totals:?}");
    // Section 3.2: the receiver began and ended to say ECE.
    assert!(totals.echoes_changed > 0, "{totals:?}");
    assert!(!is_registered(), "the run took DCTCP out again");
}

#[test]
fn what_we_compare_with_is_loaded_and_limits() {
    let _alone = alone();
    let meter = "meterrl: { rate: 100Mbit/s, burst: 100KB, excess_share: 25%, interval: 4ms, early_drop: 1%, tenants: [ flow ] }";
    let Some(done) = run_enforced("reno", meter) else { return };
    let passed = metric(&done, "passed_share");
    assert!((50.0..=102.0).contains(&passed), "{passed} % passed");
}

#[test]
fn dctcp_without_marks_answers_loss_only() {
    let _alone = alone();
    let Some(done) = run("dctcp", "on_excess: drop") else { return };
    let totals = done.dctcp.unwrap();
    assert_eq!(totals.echoes_changed, 0, "nothing was marked: {totals:?}");
    assert!(totals.losses > 0, "{totals:?}");
    // Alpha starts at 1 and loses a sixteenth with each window without a mark: after so many it is next to nothing.
    assert!(totals.windows > 1000 && totals.reduced_by_q20 < 1 << 10, "{totals:?}");
}

/// DCTCP in the kernel, or a word why not.
fn registered() -> Option<Dctcp> {
    if !nix::unistd::geteuid().is_root() {
        skip("registering a congestion control needs root");
        return None;
    }
    let dctcp = Dctcp::register().unwrap_or_else(|error| panic!("{error}"));
    assert!(is_registered());
    Some(dctcp)
}

#[test]
fn a_crash_leaves_no_registration() {
    let _alone = alone();
    let Some(dctcp) = registered() else { return };
    drop(dctcp);
    let gone = |patience: Duration| {
        let deadline = Instant::now() + patience;
        while is_registered() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        !is_registered()
    };
    assert!(gone(Duration::from_secs(5)), "dropping the handle takes it out");
    // This test again, in a process that registers and is killed.
    let own = std::env::current_exe().unwrap();
    let mut child = Command::new(own)
        .args(["--exact", "registers_and_waits_to_be_killed", "--ignored", "--nocapture"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_registered() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(is_registered(), "the other process registered it");
    assert!(Dctcp::register().is_err(), "it is registered once in a kernel");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(gone(Duration::from_secs(5)), "the kernel took it out when its process was killed");
    drop(Dctcp::register().unwrap_or_else(|error| panic!("{error}")));
}

#[test]
#[ignore = "a part of a_crash_leaves_no_registration"]
fn registers_and_waits_to_be_killed() {
    let _dctcp = Dctcp::register().unwrap();
    std::thread::sleep(Duration::from_secs(30));
}
