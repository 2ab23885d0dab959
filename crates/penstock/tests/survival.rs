// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the operator's own doings cost the traffic: a policy that is reloaded ten times a second under TCP, and a daemon that is
//! killed every few seconds meanwhile. Needs root and iperf3.

#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::cast_precision_loss, clippy::cast_possible_truncation)] // a test may

#[path = "../../penstock-dataplane/tests/live/network.rs"]
mod network;
mod support;

use network::Network;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use support::Lab;

const TIME: Duration = Duration::from_secs(60);
const BETWEEN_RELOADS: Duration = Duration::from_millis(100);
const BETWEEN_KILLS: Duration = Duration::from_secs(4);
const TCP_BPS: f64 = 50e6;
const UDP_BPS: f64 = 10e6;
const UDP_WINDOW: f64 = 0.020;
const PAYLOAD: usize = 1000;
/// What a datagram is charged beside its payload: IPv4, UDP, Ethernet.
const HEADERS: usize = 20 + 8 + 14;

fn policy(more: &str) -> String {
    format!(
        "penstock: 1
name: survival
ports:
  left: {{ device: left, rate: 10Gbit/s }}
  right: {{ device: right, rate: 10Gbit/s }}
forward: [[left, right]]
links:
  - name: down
    port: right
    rate: 10Gbit/s
    classes:
{more}      - {{ name: tcp, match: [ {{ proto: tcp }} ], limit: {{ rate: 50Mbit/s, burst: 20ms }} }}
      - {{ name: udp, match: [ {{ proto: udp, dport: 5000 }} ], limit: {{ rate: 10Mbit/s, burst: 20ms, excess: 0ms }} }}
"
    )
}

/// The tests take turns: one of them would take the processors' time from the other's traffic.
static TURN: Mutex<()> = Mutex::new(());

/// A daemon that is killed and started again.
struct Daemon<'a> {
    lab: Lab,
    network: &'a Network,
    process: Mutex<Child>,
}

impl<'a> Daemon<'a> {
    fn start(network: &'a Network) -> Self {
        let lab = Lab::new();
        lab.write("a.yaml", policy("").as_bytes());
        let more = "      - { name: more, match: [ { proto: udp, dport: 9 } ], limit: { rate: 1Mbit/s } }\n";
        lab.write("b.yaml", policy(more).as_bytes());
        let process = Mutex::new(spawn(&lab, network.pins()));
        let daemon = Self { lab, network, process };
        daemon.wait();
        daemon
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let program = assert_cmd::cargo::cargo_bin!("penstock");
        Command::new(program).args(arguments).arg("--socket").arg(self.lab.path("socket")).output().unwrap()
    }

    fn wait(&self) {
        let start = Instant::now();
        while !self.run(&["status"]).status.success() {
            assert!(start.elapsed() < Duration::from_secs(20), "the daemon does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGKILL, something to do without a daemon, and a new one.
    fn kill_and_then(&self, meanwhile: impl FnOnce()) {
        let mut process = self.process.lock().unwrap();
        assert_eq!(process.try_wait().unwrap(), None, "the daemon ended by itself");
        process.kill().unwrap();
        process.wait().unwrap();
        meanwhile();
        *process = spawn(&self.lab, self.network.pins());
    }

    /// Reloads one of both policies. False when nobody listens at the moment.
    fn reload(&self, name: &str) -> bool {
        let path = self.lab.path(name);
        let output = self.run(&["reload", path.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_killed = ["the daemon ended before it answered", "start one with `penstock node`"];
        let is_killed = is_killed.iter().any(|one| said.contains(one));
        assert!(output.status.success() || is_killed, "{said}");
        output.status.success()
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        let mut process = self.process.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = process.kill();
        let _ = process.wait();
    }
}

fn spawn(lab: &Lab, pins: &Path) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin!("penstock"))
        .args(["node", "--metrics", "off", "--socket"])
        .arg(lab.path("socket"))
        .arg("--state")
        .arg(lab.path("state"))
        .arg("--pins")
        .arg(pins)
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What iperf3 tells of a connection for all of a time, while something is done: it fails when the connection is reset.
fn tcp_while(network: &Network, time: Duration, done: impl FnOnce()) -> Value {
    let mut server = network.spawn_at("b", &["iperf3", "--server", "--one-off", "--port", "5201"]);
    let listens = || network.at("b", &["ss", "--listening", "--tcp", "--no-header"]).contains("5201");
    while !listens() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let seconds = time.as_secs().to_string();
    let client =
        network.spawn_at("a", &["iperf3", "--client", "10.9.0.2", "--port", "5201", "--time", &seconds, "--json"]);
    done();
    let output = client.wait_with_output().unwrap();
    let _ = server.kill();
    server.wait().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "the connection broke: {said}");
    serde_json::from_str(&said).unwrap()
}

/// Reloads and kills for a time. How many reloads succeeded, how many found no daemon, and the longest one.
fn disturb(daemon: &Daemon<'_>) -> (u32, u32, Duration) {
    let start = Instant::now();
    let (mut done, mut unheard, mut longest) = (0, 0, Duration::ZERO);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for kill in 1.. {
                // Not in step with the reloads.
                let due = BETWEEN_KILLS * kill + Duration::from_millis(37) * kill;
                if due >= TIME {
                    break;
                }
                std::thread::sleep(due.saturating_sub(start.elapsed()));
                daemon.kill_and_then(|| {});
            }
        });
        while start.elapsed() < TIME {
            let begin = Instant::now();
            let is_done = daemon.reload(if done % 2 == 0 { "b.yaml" } else { "a.yaml" });
            *(if is_done { &mut done } else { &mut unheard }) += 1;
            longest = longest.max(begin.elapsed());
            std::thread::sleep(BETWEEN_RELOADS.saturating_sub(begin.elapsed()));
        }
    });
    (done, unheard, longest)
}

#[test]
fn reloads_and_kills_cost_no_connection_no_packet_and_no_limit() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(network) = Network::new("survive") else { return };
    let before = network.interfaces();
    // A round trip takes microseconds here: TCP that waits 200 ms for a lost tail would mostly wait.
    network.at("a", &["ip", "route", "change", "10.9.0.0/24", "dev", "eth0", "rto_min", "10ms"]);
    let daemon = Daemon::start(&network);
    let up = daemon.run(&["up", daemon.lab.path("a.yaml").to_str().unwrap()]);
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));

    let start = Instant::now();
    let mut took = Duration::ZERO;
    let (mut counted, mut said) = (network::Counted::default(), Value::Null);
    let mut disturbed = (0, 0, Duration::ZERO);
    let flooded = network.flood_while(5000, PAYLOAD, || {
        // Port 6000 is in no class: each of its packets must arrive, in order.
        counted = network.count_while(6000, 500, || {
            said = tcp_while(&network, TIME, || disturbed = disturb(&daemon));
        });
        took = start.elapsed();
    });
    let (reloads, unheard, longest) = disturbed;
    let goodput = said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    let udp = flooded as f64 * (PAYLOAD + HEADERS) as f64 * 8.0;
    eprintln!(
        "{reloads} reloads, {unheard} found no daemon, the longest took {longest:?}; TCP {goodput:.0} bit/s; {counted:?}"
    );
    daemon.wait();
    assert!(reloads > TIME.as_secs() as u32, "{reloads} reloads");
    assert!(counted.sent > 10_000 && counted.received == counted.sent && counted.in_order, "{counted:?}");
    // What TCP loses to policing itself is TCP's; a limit that is forgotten would let it pass more, one that is stuck nothing.
    assert!((0.5 * TCP_BPS..=TCP_BPS).contains(&goodput), "{goodput} bit/s of {TCP_BPS}");
    // A daemon that dies while an interface changes over forgets what was charged in these milliseconds.
    let most = 1.0015 * UDP_BPS * (took.as_secs_f64() + UDP_WINDOW);
    assert!(udp <= most && udp >= 0.98 * UDP_BPS * TIME.as_secs_f64(), "{udp} bits passed, at most {most}");

    assert!(daemon.run(&["down"]).status.success());
    assert_eq!(network.interfaces(), before, "interfaces are as they were found");
}

/// The engine that holds packets goes with the daemon: within a second its limits police, and nobody is overtaken, then or when the next one
/// holds packets again.
#[test]
fn a_limit_that_shapes_polices_while_there_is_no_engine_and_keeps_the_order() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(network) = Network::new("engine") else { return };
    let daemon = Daemon::start(&network);
    let limit = "limit: { rate: 20Mbit/s, burst: 0s, excess: 0s, on_excess: shape, horizon: 100ms }";
    let class = format!("      - {{ name: shaped, match: [ {{ proto: udp, dport: 6001 }} ], {limit} }}\n");
    daemon.lab.write("shaped.yaml", policy(&class).as_bytes());
    let up = daemon.run(&["up", daemon.lab.path("shaped.yaml").to_str().unwrap()]);
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));

    let arrived =
        || -> u64 { network.at("b", &["cat", "/sys/class/net/eth0/statistics/rx_packets"]).trim().parse().unwrap() };
    let packets = |seconds: f64| (20e6 * seconds / 8.0 / (PAYLOAD + HEADERS) as f64) as u64;
    let mut policed = 0;
    // 10,000 packets a second are 83 Mbit/s.
    let counted = network.flood_and_count(6001, PAYLOAD, || {
        std::thread::sleep(Duration::from_secs(1));
        daemon.kill_and_then(|| {
            std::thread::sleep(Duration::from_secs(1));
            let before = arrived();
            std::thread::sleep(Duration::from_secs(1));
            policed = arrived() - before;
        });
        daemon.wait();
        std::thread::sleep(Duration::from_secs(1));
    });
    assert!(counted.in_order, "{counted:?}");
    let most = packets(1.0) + packets(0.1);
    assert!(
        (packets(0.5)..=most).contains(&policed),
        "{policed} packets in a second without an engine, at most {most}"
    );
    let most = packets(counted.time.as_secs_f64() + 0.2);
    assert!((most / 2..=most).contains(&counted.received), "{counted:?}, at most {most}");
    assert!(daemon.run(&["down"]).status.success());
}
