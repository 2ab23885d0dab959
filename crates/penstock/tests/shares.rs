// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a person sees of shares: in a replay, and of a daemon whose data plane is in memory and says what the test has it say.

#![allow(clippy::unwrap_used)] // a test may panic

mod support;

use penstock_algo::wire;
use penstock_dataplane::{ShareReading, Standing, Stub, Tap, UserReading, UsersReading};
use penstock_node::{Settings, serve};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use support::{Lab, penstock};

const POLICY: &str = "penstock: 1
name: edge
ports: { lan: { rate: 1Gbit/s }, wan: { rate: 1Gbit/s } }
links:
  - name: down
    port: lan
    rate: 1Gbit/s
    unmatched: drop
    classes:
      - name: gold
        weight: 2
        guarantee: 200Mbit/s
        ceiling: 500Mbit/s
        children:
          - { name: a, match: [ { dst: 10.1.1.0/24 } ], weight: 3 }
          - { name: b, match: [ { dst: 10.1.2.0/24 } ], on_excess: mark }
      - { name: homes, weight: 2, match: [ { dst: 10.2.0.0/16 } ], users: { key: dst, fair: sketch } }
      - { name: shops, match: [ { dst: 10.3.0.0/16 } ], users: { key: dst, fair: tree, entries: 64 } }
  - { name: up, port: wan, classes: [ { name: all, match: [ { src: 10.0.0.0/8 } ], limit: { rate: 1Mbit/s } } ] }
";
const MBIT: u64 = 1_000_000;

fn flow(name: &str, count: u32, rate: &str, dst: &str) -> String {
    format!(
        "  - {{ name: {name}, count: {count}, rate: {rate}, size: 1000B, arrival: cbr, start: 0s, stop: 1s, src: 172.16.0.1, dst: {dst}, \
         proto: udp, sport: 1000, dport: 2000 }}\n"
    )
}

/// Lines from the one that starts so, up to an empty one.
fn block<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    text.lines().skip_while(|line| !line.trim_start().starts_with(start)).take_while(|line| !line.is_empty()).collect()
}

fn names<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    lines.iter().map(|line| line.split("  ").find(|part| !part.trim().is_empty()).unwrap().trim()).collect()
}

#[test]
fn a_replay_prints_links_that_share_as_trees() {
    let lab = Lab::new();
    let policy = lab.write("p.yaml", POLICY.as_bytes());
    let flows = [
        flow("a", 4, "100Mbit/s", "10.1.1.0/24"),
        flow("b", 4, "100Mbit/s", "10.1.2.0/24"),
        flow("h", 10, "80Mbit/s", "10.2.0.0/24"),
        flow("s", 6, "80Mbit/s", "10.3.0.0/24"),
    ];
    let workload = format!("penstock-workload: 1\nseed: 1\nduration: 1s\nflows:\n{}", flows.concat());
    let workload = lab.write("w.yaml", workload.as_bytes());
    let run = |arguments: &[&str]| {
        let mut command = penstock();
        let output =
            command.arg("replay").arg(&policy).arg("--workload").arg(&workload).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = run(&[]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let tree = block(&text, "class  ");
    assert_eq!(
        names(&tree),
        ["class", "down", "gold", "a", "b", "homes", "each user", "shops", "6 of 64 users"],
        "{text}"
    );
    assert!(tree[0].contains("demand") && tree[0].contains("share") && tree[0].contains("fair"), "{text}");
    assert!(tree[2].starts_with("   gold ") && tree[3].starts_with("     a "), "{text}");
    // Its link shares nothing: as it always was.
    let flat = text.lines().find(|line| line.trim_start().starts_with("up/all")).unwrap();
    assert!(flat.contains("1.00 M") && text.contains(" class   offered  passed"), "{text}");

    let report: serde_json::Value = serde_json::from_str(&run(&["--json"])).unwrap();
    let class =
        |path: &str| report["classes"].as_array().unwrap().iter().find(|class| class["path"] == path).unwrap().clone();
    assert_eq!(class("down/gold/a")["parent"], "down/gold");
    assert!(class("down/gold")["parent"].is_null() && class("up/all")["users"].is_null());
    assert_eq!(class("down/shops")["users"]["entries"], 64);
    let fairness = class("down/gold")["fairness"].as_f64().unwrap();
    assert!(fairness > 0.98 && class("down/shops")["fairness"].as_f64().unwrap() > 0.98, "{report}");
    assert!(
        report["links"][0]["fairness"].as_f64().unwrap() > 0.98 && report["links"][1]["shares"] == false,
        "{report}"
    );
    let limit_bps = class("down/homes")["users"]["limit_bps"].as_u64().unwrap();
    assert!((30 * MBIT..=50 * MBIT).contains(&limit_bps), "ten users of 400 Mbit/s: {limit_bps}");
}

/// A daemon that ends with the test.
struct Daemon {
    lab: Lab,
    tap: Tap,
    stop: Arc<tokio::sync::Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Daemon {
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
            sampling: Duration::from_millis(50),
            controllers: None,
        };
        let stop = Arc::new(tokio::sync::Notify::new());
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(serve(settings, || Ok(Box::new(stub)), told.notified())).unwrap();
        });
        let daemon = Self { lab, tap, stop, thread: Some(thread) };
        while !daemon.run(&["status"]).status.success() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let policy = daemon.lab.write("policy.yaml", POLICY.as_bytes());
        daemon.ok(&["up", policy.to_str().unwrap()]);
        daemon
    }

    fn run(&self, arguments: &[&str]) -> std::process::Output {
        penstock().args(arguments).arg("--socket").arg(self.lab.path("node.sock")).output().unwrap()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(arguments[0] == "up" || text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text
    }

    /// Without counters, which none of these places has.
    fn explain(&self, subject: &str) -> String {
        let text = self.ok(&["explain", subject]);
        let told = text.lines().filter(|line| !line.contains(" 0 packets") && !line.contains("now: offered"));
        told.map(|line| format!("{line}\n")).collect()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop.notify_one();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn reading(demand: u64, share: u64, standing: Standing) -> ShareReading {
    ShareReading { demand_bps: demand * MBIT, share_bps: share * MBIT, standing, ..ShareReading::default() }
}

/// Places: down/gold, down/gold/a, down/gold/b, down/homes, down/shops, up/all, down, up.
fn say(tap: &Tap) {
    use Standing::Unsatisfied;
    tap.set_share(0, ShareReading { weights: 4, ..reading(800, 400, Unsatisfied) });
    tap.set_share(1, reading(400, 300, Unsatisfied));
    tap.set_share(2, reading(400, 100, Unsatisfied));
    let users = UsersReading { limit_bps: Some(40 * MBIT), ..UsersReading::default() };
    tap.set_share(3, ShareReading { users: Some(users), ..reading(900, 400, Unsatisfied) });
    let users = UsersReading { active: 6, entries: 64, limit_bps: None, fairness: Some(0.99) };
    tap.set_share(4, ShareReading { users: Some(users), weights: 5, ..reading(480, 200, Unsatisfied) });
    tap.set_share(6, ShareReading { weights: 5, ..reading(2180, 1000, Standing::Idle) });
}

#[test]
fn top_shows_a_tree_and_status_how_it_is_tended() {
    let daemon = Daemon::start();
    say(&daemon.tap);
    // A reading without an interval has no rates: the clock is the test's.
    let (tap, is_over) = (daemon.tap.clone(), Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let over = Arc::clone(&is_over);
    let packets = std::thread::spawn(move || {
        while !over.load(std::sync::atomic::Ordering::Relaxed) {
            (0..3).for_each(|_| tap.count(1, 1000, wire::PST_COLOR_GREEN));
            tap.count(2, 1000, wire::PST_COLOR_GREEN);
            tap.advance(1_000_000);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let text = daemon.ok(&["top", "--once", "--interval", "500ms"]);
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    packets.join().unwrap();
    let tree = block(&text, "class  ");
    assert_eq!(
        names(&tree),
        ["class", "down", "gold", "a", "b", "homes", "each user", "shops", "6 of 64 users"],
        "{text}"
    );
    let cells = |line: usize| tree[line].split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>();
    assert_eq!(cells(0), ["class", "offered", "demand", "share", "passed", "dropped", "fair"]);
    let gold = cells(2);
    assert_eq!((gold[2], gold[3]), ("800.0 M", "400.0 M"), "{text}");
    assert!(gold[6].parse::<f64>().unwrap() > 0.99, "3 for a weight of 3, 1 for one of 1: {text}");
    assert_eq!((cells(6)[3], cells(7)[6]), ("40.00 M", "0.990"), "{text}");
    assert_eq!(names(&block(&text, "class     limit")), ["class", "up/all"], "{text}");

    let status = loop {
        let status = daemon.ok(&["status"]);
        if status.contains("  shares   tended every ") {
            break status;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let line = status.lines().find(|line| line.starts_with("  shares")).unwrap();
    assert!(line.contains(" (p99 ") && line.ends_with(", 73 nodes"), "{line}");
}

#[test]
fn explain_says_why_it_is_not_more() {
    let daemon = Daemon::start();
    say(&daemon.tap);
    let expected = "\
packets with dst 10.1.1.7: down/gold/a
  link     down, rate 1Gbit/s
           asks for 2.18 Gbit/s
  class    down/gold
           asks for 800.0 Mbit/s: more than its fair share
           share 400.0 Mbit/s = weight 2 of 5 of 1.00 Gbit/s that others leave
             at least its guarantee of 200Mbit/s
             at most its ceiling of 500Mbit/s
  class    down/gold/a  <- bound here
           asks for 400.0 Mbit/s: more than its fair share
           share 300.0 Mbit/s = weight 3 of 4 of 400.0 Mbit/s that others leave
";
    let text = daemon.explain("10.1.1.7");
    assert_eq!(text.split("\npackets with src").next().unwrap(), expected);
    let by_name = daemon.explain("gold");
    assert!(by_name.starts_with("gold is down/gold\n") && by_name.contains("down/gold  <- bound here"), "{by_name}");

    let mut key = wire::Key::default();
    key.words[0] = u64::from(u32::from_be_bytes([10, 3, 0, 1]));
    key.words[1] = 4 << wire::PST_KEY_FAMILY_SHIFT;
    let user = UserReading {
        demand_bps: 80 * MBIT,
        share_bps: 40 * MBIT,
        weight: Some(1),
        standing: Standing::Unsatisfied,
        has_entry: true,
    };
    daemon.tap.set_user(4, key, user);
    let text = daemon.explain("10.3.0.1");
    assert!(text.contains("           6 of 64 users' entries in use, fairness 0.990\n"), "{text}");
    let expected = "  user     dst 10.3.0.1  <- bound here
           it has an entry
           asks for 80.00 Mbit/s: more than its fair share
           share 40.00 Mbit/s = weight 1 of 5 of 200.0 Mbit/s that others leave
";
    assert!(text.contains(expected), "{text}");
    daemon.tap.set_user(4, key, UserReading::default());
    let text = daemon.explain("10.3.0.1");
    assert!(text.contains("it sends nothing, or found no entry free\n  bound    nowhere"), "{text}");
    // What shares nothing is explained as it always was.
    let text = daemon.explain("up/all");
    assert!(!text.contains("share") && !text.contains("bound"), "{text}");
}
