// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands about a live data plane as a person runs them, with a daemon of its own for each test. It has the stub for a
//! data plane: no packet is judged here.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test may panic, and says what it skips

mod support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::{Lab, penstock};

const POLICY: &str = "penstock: 1
name: edge
ports: { lan: { device: eth1, rate: 1Gbit/s } }
links:
  - name: down
    port: lan
    classes:
      - { name: gold, match: [ { dst: 10.2.0.0/16 } ], limit: { rate: 50Mbit/s } }
      - { name: tenants, limits: { file: tenants.csv } }
";
const ROWS: &str = "name,dst,rate\nacme,10.1.0.0/24,10Mbit/s\nborealis,10.1.1.0/24,20Mbit/s\n";

/// A daemon, killed at the end.
struct Daemon {
    lab: Lab,
    process: Child,
}

/// What a command did.
struct Done {
    code: i32,
    out: String,
    err: String,
}

impl Daemon {
    fn start() -> Self {
        let lab = Lab::new();
        lab.write("policy.yaml", POLICY.as_bytes());
        lab.write("tenants.csv", ROWS.as_bytes());
        let process = spawn(&lab);
        Self { lab, process }.ready()
    }

    fn ready(self) -> Self {
        for _ in 0..1_000 {
            if self.run(&["status"]).code == 0 {
                return self;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the daemon does not start");
    }

    /// Runs a command in the daemon's folder.
    fn run(&self, arguments: &[&str]) -> Done {
        run_in(&self.lab, arguments)
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments);
        assert_eq!(done.code, 0, "{arguments:?}: {}", done.err);
        assert!(done.out.lines().all(|line| line.chars().count() <= 80), "wider than 80 columns:\n{}", done.out);
        done.out
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok_wide(&[arguments, &["--json"]].concat())).unwrap()
    }

    fn ok_wide(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments);
        assert_eq!(done.code, 0, "{arguments:?}: {}", done.err);
        done.out
    }

    /// Ends it with a signal and starts another one.
    fn restart(mut self, signal: Signal) -> Self {
        let status = self.end(signal);
        assert_eq!(status.success(), signal != Signal::KILL, "{status}");
        self.process = spawn(&self.lab);
        self.ready()
    }

    fn end(&mut self, signal: Signal) -> std::process::ExitStatus {
        let process = Pid::from_child(&self.process);
        kill_process(process, signal).unwrap();
        self.process.wait().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn socket(lab: &Lab) -> PathBuf {
    lab.path("node.sock")
}

fn spawn(lab: &Lab) -> Child {
    spawn_with(lab, &["--metrics", "off"])
}

fn spawn_with(lab: &Lab, arguments: &[&str]) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin!("penstock"))
        .args(["node", "--dataplane", "stub"])
        .args(arguments)
        .arg("--socket")
        .arg(socket(lab))
        .arg("--state")
        .arg(lab.path("state"))
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn run_in(lab: &Lab, arguments: &[&str]) -> Done {
    let mut command = penstock();
    let output = command.args(arguments).arg("--socket").arg(socket(lab)).current_dir(lab.path("")).output().unwrap();
    Done {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn without_a_daemon_it_says_how_to_start_one() {
    let lab = Lab::new();
    lab.write("policy.yaml", POLICY.as_bytes());
    lab.write("tenants.csv", ROWS.as_bytes());
    for arguments in
        [vec!["status"], vec!["down"], vec!["up", "policy.yaml"], vec!["limits", "list"], vec!["explain", "x"]]
    {
        let done = run_in(&lab, &arguments);
        assert_eq!(done.code, 1, "{arguments:?}");
        assert!(done.err.contains("start one with `penstock node` or `systemctl start penstock`"), "{}", done.err);
    }
}

#[test]
fn up_reload_status_and_down() {
    let daemon = Daemon::start();
    assert!(daemon.ok(&["status"]).starts_with("no policy is in force\n"));
    assert_eq!(daemon.ok(&["up", "policy.yaml"]), "edge is in force: generation 1, 2 classes, 3 limits\n");
    let again = daemon.run(&["up", "policy.yaml"]);
    assert_eq!((again.code, again.out.as_str()), (1, ""));
    assert!(again.err.contains("`penstock reload POLICY` replaces it"), "{}", again.err);
    let status = daemon.ok(&["status"]);
    assert!(status.contains("  port     lan (eth1, 1Gbit/s)") && status.contains("3 limits"), "{status}");

    daemon.lab.write("tenants.csv", ROWS.replace("10Mbit/s", "15Mbit/s").as_bytes());
    let expected = "  classes  0 added, 0 removed, 0 changed, 2 unchanged\n  limits   0 added, 0 removed, 1 changed, 2 unchanged\n    \
                    ~ down/tenants/acme: 10Mbit/s -> 15Mbit/s\n";
    let dry = daemon.ok(&["reload", "policy.yaml", "--dry-run"]);
    assert_eq!(dry, format!("edge would change this; nothing was changed\n{expected}"));
    assert_eq!(daemon.json(&["status"])["policy"]["generation"], 1);
    let reload = daemon.ok(&["reload", "policy.yaml"]);
    assert_eq!(reload, format!("edge is in force: generation 2\n{expected}  3 limits went on with their state\n"));

    assert_eq!(daemon.ok(&["down"]), "edge is no longer in force\n");
    assert_eq!(daemon.ok(&["down"]), "no policy of this daemon was in force\n");
    let nothing = daemon.run(&["reload", "policy.yaml"]);
    assert!(
        nothing.code == 1 && nothing.err.contains("no policy is in force; `penstock up POLICY`"),
        "{}",
        nothing.err
    );
}

#[test]
fn mistakes_are_answered_with_their_place_and_change_nothing() {
    let daemon = Daemon::start();
    daemon.ok(&["up", "policy.yaml"]);
    daemon.lab.write("tenants.csv", ROWS.replace("20Mbit/s", "20").as_bytes());
    daemon.lab.write("typo.yaml", POLICY.replace("limit:", "limmit:").as_bytes());
    let wrong = daemon.run(&["reload", "policy.yaml"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.starts_with("tenants.csv:3:22: error: `20` has no unit\n"), "{}", wrong.err);
    let typo = daemon.run(&["reload", "typo.yaml"]);
    assert!(typo.code == 2 && typo.err.contains("help: did you mean `limit`?"), "{}", typo.err);
    let missing = daemon.run(&["reload", "nowhere.yaml"]);
    assert!(missing.code == 2 && missing.err.contains("nowhere.yaml: cannot read the policy"), "{}", missing.err);
    std::fs::remove_file(daemon.lab.path("tenants.csv")).unwrap();
    let gone = daemon.run(&["reload", "policy.yaml"]);
    assert!(
        gone.code == 2 && gone.err.starts_with("policy.yaml:9:42: error: cannot read the limits file"),
        "{}",
        gone.err
    );
    let says = [
        (vec!["limits", "set", "acme", "50"], "`50` has no unit; write a rate such as `100Mbit/s` or `12MB/s`"),
        (vec!["limits", "set", "acme", "50Mbit"], "did you mean `50Mbit/s`?"),
        (vec!["limits", "set", "acm", "50Mbit/s"], "there is no limit `acm`; did you mean `acme`?"),
        (vec!["limits", "set", "tenants", "50Mbit/s"], "the class `down/tenants` has no limit of its own"),
        (vec!["limits", "set", "acme", "5bit/s"], "is out of range"),
        (vec!["limits", "get", "down"], "`down` is a link"),
        (vec!["limits", "del", "gold"], "a class's own limit, part of the policy"),
        (
            vec!["limits", "add", "x", "--dst", "10.1.0.0/24", "--rate", "1Mbit/s"],
            "`x` has the key of down/tenants/acme",
        ),
        (vec!["limits", "add", "x", "--dst", "10.1.0.1/24", "--rate", "1Mbit/s"], "the prefix is `10.1.0.0/24`"),
        (vec!["limits", "add", "x", "--rate", "1Mbit/s"], "no key column"),
        (vec!["limits", "export", "--class", "gold"], "no class with a limits file is called `gold`"),
        (vec!["limits", "import", "nowhere.csv"], "nowhere.csv: cannot read the limits file"),
        (vec!["explain", "gould"], "there is no link, class or limit `gould`; did you mean `gold`?"),
        (vec!["limits", "lst"], "list"),
    ];
    for (arguments, expected) in says {
        let done = daemon.run(&arguments);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{arguments:?}: {}", done.err);
        assert!(done.err.contains(expected), "{arguments:?}: {}", done.err);
    }
    let status = daemon.json(&["status"]);
    assert_eq!((&status["policy"]["generation"], &status["policy"]["runtime_changes"]), (&1.into(), &0.into()));
}

#[test]
fn limits_change_and_survive_the_daemon() {
    let daemon = Daemon::start();
    daemon.ok(&["up", "policy.yaml"]);
    assert_eq!(daemon.ok(&["limits", "set", "acme", "12Mbit/s"]), "down/tenants/acme: 10Mbit/s -> 12Mbit/s\n");
    let added =
        daemon.ok(&["limits", "add", "delta", "--dst", "10.1.3.0/24", "--rate", "3Mbit/s", "--on-excess", "mark"]);
    assert_eq!(added, "down/tenants/delta: dst 10.1.3.0/24, 3Mbit/s\n");
    assert_eq!(daemon.ok(&["limits", "del", "borealis"]), "down/tenants/borealis: deleted, was 20Mbit/s\n");
    let expected = "limit                      rate  key              at run time\n\
                    down/tenants/acme      12Mbit/s  dst 10.1.0.0/24  was 10Mbit/s\n\
                    down/tenants/borealis         -                   deleted, was 20Mbit/s\n\
                    down/tenants/delta      3Mbit/s  dst 10.1.3.0/24  added\n";
    assert_eq!(daemon.ok(&["limits", "list", "--changed"]), expected);
    let daemon = daemon.restart(Signal::TERM);
    assert_eq!(daemon.ok(&["limits", "list", "--changed"]), expected);
    let daemon = daemon.restart(Signal::KILL);
    assert_eq!(daemon.ok(&["limits", "list", "--changed"]), expected);
    assert_eq!(daemon.json(&["limits", "get", "acme"])["rate_bps"], 12_000_000);
    let explained = daemon.ok(&["explain", "10.1.3.7"]);
    assert!(explained.starts_with("packets with dst 10.1.3.7: down/tenants/delta\n"), "{explained}");

    let levels = daemon.json(&["explain", "delta"])["explanations"][0]["levels"].clone();
    let kinds: Vec<&str> = levels.as_array().unwrap().iter().map(|level| level["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["link", "class", "limit"]);
    assert_eq!(levels[2]["terms"], "burst 17.5ms, excess 25ms, mark");

    let exported = "name,dst,rate,on_excess\nacme,10.1.0.0/24,12Mbit/s,\ndelta,10.1.3.0/24,3Mbit/s,mark\n";
    assert_eq!(daemon.ok(&["limits", "export"]), exported);
    daemon.lab.write("tenants.csv", exported.as_bytes());
    // The policy says all of that itself now.
    let reload = daemon.ok(&["reload", "policy.yaml"]);
    assert!(!reload.contains("dropped") && !reload.contains("run time"), "{reload}");
    assert_eq!(daemon.ok(&["limits", "list", "--changed"]), "no limit fits\n");
    daemon.ok(&["limits", "set", "delta", "5Mbit/s"]);
    daemon.lab.write("tenants.csv", b"name,dst,rate\nacme,10.1.0.0/24,12Mbit/s\n");
    let reload = daemon.ok_wide(&["reload", "policy.yaml"]);
    assert!(
        reload.contains("dropped: down/tenants/delta: set to 5Mbit/s at run time, but the policy has no such row"),
        "{reload}"
    );
    let import = "name,dst,rate\nacme,10.1.0.0/24,13Mbit/s\necho,10.1.4.0/24,4Mbit/s\n";
    daemon.lab.write("more.csv", import.as_bytes());
    let imported = daemon.ok(&["limits", "import", "more.csv"]);
    let expected = "imported\n  limits   1 added, 0 removed, 1 changed, 0 unchanged\n    + down/tenants/echo\n    \
                    ~ down/tenants/acme: 12Mbit/s -> 13Mbit/s\n";
    assert_eq!(imported, expected);
    let names: Vec<Value> = daemon.json(&["limits", "list"])["limits"].as_array().unwrap().clone();
    let names: Vec<&str> = names.iter().map(|limit| limit["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["down/gold", "down/tenants/acme", "down/tenants/echo"]);
}

#[test]
fn one_daemon_at_a_place() {
    let daemon = Daemon::start();
    let mut second = penstock();
    let output = second
        .args(["node", "--dataplane", "stub", "--metrics", "off", "--socket"])
        .arg(socket(&daemon.lab))
        .arg("--state")
        .arg(daemon.lab.path("state"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && text.contains("a daemon listens on"), "{text}");
    let bad = daemon.run(&["node", "--metrics", "9473"]);
    assert!(bad.code == 2 && bad.err.contains("an IP address and a port, such as 127.0.0.1:9473"), "{}", bad.err);
}

/// A network namespace, for as long as this lives. None without root.
struct Namespace(String);

impl Namespace {
    fn new() -> Option<Self> {
        let name = format!("penstock-{}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).output().unwrap();
        if made.status.success() {
            return Some(Self(name));
        }
        assert!(std::env::var_os("CI").is_none(), "{}", String::from_utf8_lossy(&made.stderr));
        eprintln!("SKIP: network namespaces take root");
        None
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

#[test]
fn metrics_are_where_the_daemon_was_started() {
    let Some(namespace) = Namespace::new() else { return };
    let lab = Lab::new();
    let process = spawn_with(&lab, &["--netns", &namespace.0, "--metrics", "127.0.0.1:0"]);
    let daemon = Daemon { lab, process }.ready();
    let status = daemon.json(&["status"]);
    let url = status["metrics"].as_str().unwrap();
    let address = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/metrics")).unwrap();
    let mut stream = TcpStream::connect(address).unwrap_or_else(|error| panic!("{url}: {error}"));
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("penstock_"), "{answer}");
}

#[test]
fn a_node_that_finds_no_controller_goes_on_and_says_so() {
    let lab = Lab::new();
    lab.write("policy.yaml", POLICY.as_bytes());
    lab.write("tenants.csv", ROWS.as_bytes());
    // Port 1 is nobody's.
    let process = spawn_with(&lab, &["--metrics", "off", "--name", "sw1", "--controller", "127.0.0.1:1,[::1]:1"]);
    let daemon = Daemon { lab, process }.ready();
    daemon.ok(&["up", "policy.yaml"]);
    let status = daemon.ok(&["status"]);
    assert!(status.contains("\n  attends  nobody") && status.contains(", as sw1\n"), "{status}");
    let status = daemon.json(&["status"]);
    assert_eq!((&status["controller"]["state"], &status["controller"]["node"]), (&"searching".into(), &"sw1".into()));
    assert_eq!(daemon.json(&["limits", "get", "gold"])["lease"], Value::Null);
}

#[test]
fn a_controllers_address_has_a_port() {
    for (address, name) in [("10.0.0.1", None), ("http://10.0.0.1:9474", None), (":9474", None), ("", Some("sw1"))] {
        let mut command = penstock();
        command.arg("node");
        match name {
            Some(name) => command.args(["--name", name]),
            None => command.args(["--controller", address]),
        };
        let output = command.output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{address}: {err}");
        let expected = if name.is_some() { "--controller" } else { "a name or an address and a port" };
        assert!(err.contains(expected), "{address}: {err}");
    }
}
