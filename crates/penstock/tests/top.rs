// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock top` without a terminal, as a person runs it. The daemon runs in the test, over a data plane in memory whose packets
//! and whose clock the test moves.

#![allow(clippy::unwrap_used)] // a test may panic

mod support;

use penstock_algo::wire::Key;
use penstock_dataplane::{LimitId, Stub, Tap};
use penstock_node::{Settings, serve};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use support::{Lab, penstock};

const POLICY: &str = "penstock: 1
name: edge
ports: { lan: { device: eth1, rate: 1Gbit/s } }
links:
  - name: down
    port: lan
    classes:
      - { name: idle, match: [ { dst: 10.3.0.0/16 } ] }
      - { name: gold, match: [ { dst: 10.2.0.0/16 } ], limit: { rate: 10Mbit/s } }
";
/// Bytes to `gold` in each millisecond of the data plane's clock: 16 Mbit/s.
const BYTES_PER_MS: u32 = 2_000;

/// A daemon with packets.
struct Busy {
    lab: Lab,
    stop: Arc<tokio::sync::Notify>,
    is_over: Arc<AtomicBool>,
    /// Milliseconds of packets that a limit judged.
    sent: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    fn start() -> Self {
        let lab = Lab::new();
        let stub = Stub::new();
        let tap = stub.tap();
        let settings = Settings {
            socket: lab.path("node.sock"),
            state: lab.path("state"),
            metrics: None,
            metrics_limits: None,
            metrics_limits_max: 1,
            dataplane: "stub",
            counts_limits: None,
            sampling: Duration::from_secs(1),
            controllers: None,
        };
        let (stop, is_over) = (Arc::new(tokio::sync::Notify::new()), Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&stop);
        let daemon = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(serve(settings, || Ok(Box::new(stub)), told.notified())).unwrap();
        });
        let sent = Arc::new(AtomicU64::new(0));
        let (over, count) = (Arc::clone(&is_over), Arc::clone(&sent));
        let packets = std::thread::spawn(move || send(&tap, &over, &count));
        let busy = Self { lab, stop, is_over, sent, threads: vec![daemon, packets] };
        let policy = busy.lab.write("policy.yaml", POLICY.as_bytes());
        for _ in 0..1_000 {
            if busy.command(&["up", policy.to_str().unwrap()]).stderr(Stdio::null()).status().unwrap().success() {
                return busy.full();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the daemon does not start");
    }

    /// Waits until the limit's virtual queue is full and packets are dropped.
    fn full(self) -> Self {
        while self.sent.load(Ordering::Relaxed) < 200 {
            std::thread::sleep(Duration::from_millis(1));
        }
        self
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("penstock"));
        command.args(arguments).arg("--socket").arg(self.lab.path("node.sock")).stdout(Stdio::piped());
        command
    }

    fn end(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.stop.notify_one();
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.end();
        }
    }
}

/// A millisecond of packets in about a millisecond.
fn send(tap: &Tap, is_over: &AtomicBool, sent: &AtomicU64) {
    while !is_over.load(Ordering::Relaxed) {
        tap.advance(1_000_000);
        let judged = [(); 2].map(|()| tap.offer(LimitId::Class(0), &Key::default(), BYTES_PER_MS / 2));
        sent.fetch_add(u64::from(judged.iter().all(Option::is_some)), Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn gold(readings: &Value) -> &Value {
    readings["classes"].as_array().unwrap().iter().find(|class| class["path"] == "down/gold").unwrap()
}

#[test]
fn once_prints_one_table_of_one_interval_the_busiest_first() {
    let busy = Busy::start();
    // Standard output is a pipe here: `--once` goes without saying.
    for arguments in [vec!["top", "--once"], vec!["top", "--interval", "500ms"]] {
        let output = busy.command(&arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
        assert!(lines[0].starts_with("edge: generation 1, for ") && lines[0].ends_with(", data plane stub"), "{text}");
        assert!(lines[1].starts_with("offered ") && lines[3] == "rates in bit/s", "{text}");
        assert_eq!(
            lines[4].split_whitespace().collect::<Vec<_>>(),
            ["class", "limit", "offered", "passed", "dropped", "marked"]
        );
        assert!(lines[5].starts_with("down/gold  10.00 M ") && lines[5].ends_with("   0.0 %"), "{text}");
        assert!(!text.contains('\u{1b}'), "escapes where there is no terminal:\n{text}");
        let idle = lines.iter().find(|line| line.starts_with("down/idle")).unwrap();
        assert_eq!(idle.split_whitespace().collect::<Vec<_>>(), ["down/idle", "-", "0", "0", "-", "-"]);
        assert!(lines.last().unwrap().starts_with("over_rate "), "{text}");
    }
}

fn rates_fit_counters(before: &Value, after: &Value) {
    let number = |value: &Value| value.as_f64().unwrap();
    let interval_ns = number(&after["interval_ns"]);
    assert!((number(&after["now_ns"]) - number(&before["now_ns"]) - interval_ns).abs() < 1.0);
    let bytes = |readings: &Value| number(&gold(readings)["counters"]["offered_bytes"]);
    let new_bytes = bytes(after) - bytes(before);
    let offered_bps = number(&gold(after)["rates"]["offered_bps"]);
    assert!((offered_bps - new_bytes * 8e9 / interval_ns).abs() < 1e-3, "{before}\n{after}");
    // A millisecond of packets may be on its way at each reading.
    let sent_bytes = f64::from(BYTES_PER_MS) * interval_ns / 1e6;
    assert!((new_bytes - sent_bytes).abs() <= f64::from(BYTES_PER_MS), "{before}\n{after}");
}

#[test]
fn json_is_a_line_for_each_reading() {
    let mut busy = Busy::start();
    let mut top = busy.command(&["top", "--json", "--interval", "200ms"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let mut before = next();
    assert_eq!((&before["interval_ns"], &gold(&before)["rates"]), (&0.into(), &Value::Null));
    let mut with_rates = 0;
    while with_rates < 3 {
        let after = next();
        // No packet was sent meanwhile, and the clock stood still.
        if after["interval_ns"] != 0 {
            with_rates += 1;
            rates_fit_counters(&before, &after);
        }
        before = after;
    }
    // The daemon ends: so do the lines, and the command says why.
    busy.end();
    assert!(lines.all(|line| serde_json::from_str::<Value>(&line.unwrap()).is_ok()));
    let done = top.wait_with_output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.code() == Some(1) && said.contains("the daemon ended"), "{said}");

    let busy = Busy::start();
    let once = busy.command(&["top", "--json", "--once", "--interval", "200ms"]).output().unwrap();
    let readings: Value = serde_json::from_slice(&once.stdout).unwrap();
    assert!(readings["interval_ns"].as_u64().unwrap() > 0 && gold(&readings)["rates"].is_object(), "{readings}");
}

#[test]
fn what_is_wrong_is_said() {
    let lab = Lab::new();
    let run = |arguments: &[&str]| {
        let mut command = penstock();
        let output = command.arg("top").args(arguments).arg("--socket").arg(lab.path("node.sock")).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    for arguments in [&[][..], &["--once"], &["--json"]] {
        let (code, said) = run(arguments);
        assert!(code == 1 && said.contains("start one with `penstock node`"), "{said}");
    }
    for (interval, expected) in [
        ("1", "`1` has no unit"),
        ("1ms", "an interval is from 100ms to 1h"),
        ("2h", "an interval is from 100ms to 1h"),
    ] {
        let (code, said) = run(&["--interval", interval]);
        assert!(code == 2 && said.contains(expected), "{said}");
    }
}
