// SPDX-License-Identifier: MIT OR Apache-2.0
//! One policy for a network as a person runs it: etcd, two replicas of the controller and three nodes over loopback, with mutual TLS. Nodes have
//! the stub for a data plane: no packet is judged here, only who may do what and which rates are in force.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test may panic

mod support;

use rustix::process::Signal;
use serde_json::Value;
use std::fs::File;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Instant;
use support::Lab;
use support::process::{Done, Process, fine, free_ports, run, wait};

const MBIT: u64 = 1_000_000;

/// 300 Mbit/s over three nodes.
const NETWORK: &str = "penstock-network: 1
ports:
  - { name: gw1-up, switch: gw1, rate: 1Gbit/s }
  - { name: gw2-up, switch: gw2, rate: 1Gbit/s }
  - { name: gw3-up, switch: gw3, rate: 1Gbit/s }
classes:
  - { name: t7-gw1, paths: [[gw1-up]] }
  - { name: t7-gw2, paths: [[gw2-up]] }
  - { name: t7-gw3, paths: [[gw3-up]] }
aggregates:
  - { name: t7, rate: 300Mbit/s, classes: [t7-gw1, t7-gw2, t7-gw3] }
";

/// The policy of a node: 40 Mbit/s by itself.
fn policy(node: &str) -> String {
    format!(
        "penstock: 1\nname: {node}\nports: {{ wan: {{ device: eth0, rate: 1Gbit/s }} }}\nlinks:\n  - name: {node}-up\n    port: wan\n    classes:\n      \
         - {{ name: t7-{node}, match: [ {{ dst: 10.7.0.0/16 }} ], limit: {{ rate: 40Mbit/s }} }}\n"
    )
}

/// etcd, replicas and nodes.
struct Cluster {
    lab: Lab,
    addresses: Vec<String>,
    controllers: Vec<Process>,
    nodes: Vec<Process>,
    etcd: Process,
}

impl Cluster {
    fn start() -> Self {
        let lab = Lab::new();
        let ca = lab.path("ca").display().to_string();
        fine(&["ca", "init", &ca]);
        let who = [("--controller", "c1"), ("--controller", "c2"), ("--write", "ada"), ("--read", "rita")];
        for (role, name) in who.into_iter().chain([("--node", "gw1"), ("--node", "gw2"), ("--node", "gw3")]) {
            fine(&["ca", "issue", &ca, role, name]);
        }
        let [client, peer, first, second] = free_ports();
        let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let mut etcd = Command::new("etcd");
        etcd.args(["--data-dir", &lab.path("etcd").display().to_string()]);
        etcd.args(["--listen-client-urls", &client, "--advertise-client-urls", &client, "--listen-peer-urls", &peer]);
        etcd.args(["--initial-advertise-peer-urls", &peer, "--initial-cluster", &format!("default={peer}")]);
        let etcd = etcd.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let etcd = Process(
            etcd.expect("cannot start `etcd`; is Debian's package etcd-server there? `make setup` installs it"),
        );
        let addresses = vec![format!("127.0.0.1:{first}"), format!("127.0.0.1:{second}")];
        let mut cluster = Self { lab, addresses, controllers: Vec::new(), nodes: Vec::new(), etcd };
        for (address, name) in cluster.addresses.iter().zip(["c1", "c2"]) {
            let words = ["controller", "--etcd", &client, "--name", name, "--listen", address];
            cluster.controllers.push(cluster.spawn(name, &words, name));
        }
        for node in ["gw1", "gw2", "gw3"] {
            cluster.lab.write(&format!("{node}.yaml"), policy(node).as_bytes());
            cluster.nodes.push(cluster.node(node, node, node));
            let (socket, path) = (cluster.socket(node), cluster.lab.path(&format!("{node}.yaml")));
            wait(node, || (run(&["status", "--socket", &socket]).code == 0).then_some(()));
            fine(&["up", &path.display().to_string(), "--socket", &socket]);
        }
        cluster.wait_for_nodes(3);
        cluster
    }

    fn certificate(&self, name: &str) -> Vec<String> {
        let file = |name: String| self.lab.path("ca").join(name).display().to_string();
        let (ca, certificate, key) = (file("ca.crt".into()), file(format!("{name}.crt")), file(format!("{name}.key")));
        ["--tls-ca", &ca, "--tls-cert", &certificate, "--tls-key", &key].map(str::to_owned).into()
    }

    fn socket(&self, place: &str) -> String {
        self.lab.path(&format!("{place}.sock")).display().to_string()
    }

    /// Starts the program with somebody's certificate.
    fn spawn(&self, place: &str, words: &[&str], certificate: &str) -> Process {
        let log = File::options().create(true).append(true).open(self.lab.path(&format!("{place}.log"))).unwrap();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("penstock"));
        command.args(words).args(self.certificate(certificate)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Process(command.spawn().unwrap())
    }

    /// A node at a place, with a name and a certificate.
    fn node(&self, place: &str, name: &str, certificate: &str) -> Process {
        let (state, controllers) = (self.lab.path(&format!("{place}.state")), self.addresses.join(","));
        let (state, socket) = (state.display().to_string(), self.socket(place));
        let words = ["node", "--dataplane", "stub", "--metrics", "off", "--socket", &socket, "--state", &state];
        self.spawn(place, &[words.as_slice(), &["--name", name, "--controller", &controllers]].concat(), certificate)
    }

    /// `penstock network ..` of somebody.
    fn network(&self, who: &str, words: &[&str]) -> Done {
        let mut all: Vec<String> = ["network"].iter().chain(words).map(|&word| word.to_owned()).collect();
        all.extend(["--controller".to_owned(), self.addresses.join(",")]);
        all.extend(self.certificate(who));
        run(&all)
    }

    fn asked(&self, words: &[&str]) -> String {
        let done = self.network("rita", words);
        assert_eq!(done.code, 0, "{words:?}: {}", done.err);
        done.out
    }

    fn status(&self) -> Option<Value> {
        let done = self.network("rita", &["status", "--json"]);
        (done.code == 0).then(|| serde_json::from_str(&done.out).unwrap())
    }

    fn wait_for_nodes(&self, count: u64) {
        wait("nodes attend", || self.status()?["nodes_attending"].as_u64().filter(|&attend| attend == count));
    }

    /// Puts a network; the path of its file.
    fn put(&self, who: &str, name: &str, text: &str, more: &[&str]) -> Done {
        let path = self.lab.write(name, text.as_bytes()).display().to_string();
        self.network(who, &[["put", &path].as_slice(), more].concat())
    }

    /// The rates in force at the three nodes.
    fn rates(&self) -> Vec<u64> {
        let rate = |node: &str| {
            let out = fine(&["limits", "get", &format!("t7-{node}"), "--json", "--socket", &self.socket(node)]);
            serde_json::from_str::<Value>(&out).unwrap()["rate_bps"].as_u64().unwrap()
        };
        ["gw1", "gw2", "gw3"].map(rate).into()
    }

    fn wait_for_rates(&self, rate_bps: u64) {
        wait("rates", || (self.rates() == vec![rate_bps; 3]).then_some(()));
    }

    /// Which replica leads.
    fn leader(&self) -> usize {
        let leader =
            wait("a leader", || self.status()?["leader"].as_str().map(str::to_owned).filter(|it| !it.is_empty()));
        usize::from(leader == "c2")
    }

    fn audit(&self) -> String {
        self.asked(&["audit"])
    }
}

#[test]
fn a_network_is_put_shown_and_lent() {
    let mut cluster = Cluster::start();
    assert_eq!(cluster.rates(), [40 * MBIT; 3], "nothing is lent yet");
    let none = cluster.network("rita", &["show"]);
    assert!(none.code != 0 && none.err.contains("no network yet"), "{none:?}");
    assert!(cluster.put("ada", "n.yaml", NETWORK, &["--dry-run"]).out.contains("nothing was changed"));
    assert_eq!(cluster.network("rita", &["show"]).code, none.code);

    let put = cluster.put("ada", "n.yaml", NETWORK, &[]);
    assert!(put.code == 0 && put.out.contains("is kept: revision"), "{put:?}");
    cluster.wait_for_rates(100 * MBIT);
    assert_eq!(cluster.asked(&["show"]), NETWORK);
    let status = cluster.asked(&["status"]);
    assert!(
        status.contains("3 of 3 attend")
            && status.contains(" t7 ")
            && status.lines().all(|line| line.chars().count() <= 80),
        "{status}"
    );
    assert!(cluster.audit().contains("write/ada from 127.0.0.1"), "{}", cluster.audit());

    bad_networks_change_nothing(&cluster);
    who_may_not_is_refused(&cluster);
    the_other_replica_takes_over(&mut cluster);

    // Ctrl-C ends all of them cleanly.
    for process in cluster.nodes.iter_mut().chain(&mut cluster.controllers) {
        assert!(process.0.try_wait().unwrap().is_some() || process.end(Signal::INT).success());
    }
    assert_eq!(cluster.etcd.0.try_wait().unwrap(), None);
}

fn bad_networks_change_nothing(cluster: &Cluster) {
    let replaced = |from: &str, to: &str| NETWORK.replacen(from, to, 1);
    let hard = "limit: { rate: 700Mbit/s, kind: hard }, paths: [[gw1-up]] }";
    let hard = format!("  - {{ name: x, {hard}\n  - {{ name: y, {hard}\naggregates:");
    let members = NETWORK.replace("paths", "limit: { rate: 101Mbit/s, kind: hard }, paths");
    let bad = [
        ("unknown port", replaced("[[gw1-up]]", "[[gw9-up]]"), "bad.yaml:7:", "gw9-up"),
        ("cycle", replaced("[[gw1-up]]", "[[gw1-up, gw2-up, gw1-up]]"), "bad.yaml:7:", "twice"),
        ("empty path", replaced("[[gw1-up]]", "[[]]"), "bad.yaml:7:", "this path is empty"),
        ("zero weight", replaced("t7-gw2, ", "t7-gw2, weight: 0, "), "bad.yaml:8:", "is not a weight"),
        ("hard limits", replaced("aggregates:", &hard), "bad.yaml:3:40: error: port", "gw1-up"),
        ("hard limits of an aggregate", members, "bad.yaml:11:23: error: aggregate", "lower them to 300Mbit/s in all"),
    ];
    let before = cluster.status().unwrap();
    for (what, text, place, says) in bad {
        let done = cluster.put("ada", "bad.yaml", &text, &[]);
        assert!(done.code == 2 && done.err.contains(place) && done.err.contains(says), "{what}: {done:?}");
        assert_eq!(cluster.asked(&["show"]), NETWORK, "{what}");
        // Whoever plans it first reads the same.
        let planned = run(&["plan".into(), cluster.lab.path("bad.yaml")]);
        assert_eq!(planned.err, done.err, "{what}");
    }
    assert_eq!(cluster.status().unwrap()["revision"], before["revision"]);
    assert_eq!(cluster.rates(), [100 * MBIT; 3]);
    let stale = cluster.put("ada", "n.yaml", &replaced("300", "150"), &["--if-revision", "7"]);
    assert!(stale.code != 0 && cluster.asked(&["show"]) == NETWORK, "{stale:?}");
}

fn who_may_not_is_refused(cluster: &Cluster) {
    let other = NETWORK.replacen("300", "150", 1);
    let read = cluster.put("rita", "n.yaml", &other, &[]);
    assert!(read.code != 0 && read.err.contains("takes a certificate with the role write"), "{read:?}");
    let node = cluster.put("gw1", "n.yaml", &other, &[]);
    assert!(node.code != 0 && node.err.contains("role write"), "{node:?}");
    let node = cluster.network("gw1", &["show"]);
    assert!(node.code != 0 && node.err.contains("role read or write"), "{node:?}");
    let nobody = run(&["network", "show", "--controller", &cluster.addresses.join(",")]);
    assert!(nobody.code != 0 && nobody.out.is_empty(), "{nobody:?}");

    // gw1's certificate, gw2's name; then another machine with both of gw2.
    for (place, certificate, says) in [("liar", "gw1", "role node and that name"), ("twin", "gw2", "a name of its own")]
    {
        let _node = cluster.node(place, "gw2", certificate);
        wait("it is refused", || {
            let done = run(&["status", "--json", "--socket", &cluster.socket(place)]);
            let status: Value = serde_json::from_str(&done.out).ok()?;
            status["controller"]["trouble"].as_str().filter(|trouble| trouble.contains(says)).map(drop)
        });
    }
    assert!(cluster.asked(&["status"]).contains("another machine asks for limits under this name"));
    let audit = cluster.audit();
    let refused = ["read/rita from", "node/gw1 from", "attend as gw2", "refused: to change the network takes"];
    assert!(refused.iter().all(|one| audit.contains(one)), "{audit}");
    assert_eq!(cluster.asked(&["show"]), NETWORK);
    assert_eq!(cluster.status().unwrap()["nodes_attending"], 3, "the one that has this name still attends");
}

fn the_other_replica_takes_over(cluster: &mut Cluster) {
    let leader = cluster.leader();
    let before = cluster.status().unwrap()["epoch"]["term"].clone();
    cluster.controllers[leader].end(Signal::KILL);
    let start = Instant::now();
    let is_led = |status: &Value| status["epoch"]["term"] != before && status["nodes_attending"] == 3;
    wait("the other one leads", || {
        assert_eq!(cluster.rates(), [100 * MBIT; 3], "after {:?}", start.elapsed());
        cluster.status().filter(is_led)
    });
    assert_eq!(cluster.leader(), 1 - leader);
    // It follows.
    assert_eq!(cluster.put("ada", "n.yaml", &NETWORK.replacen("300", "150", 1), &[]).code, 0);
    cluster.wait_for_rates(50 * MBIT);
}

#[test]
fn a_controller_inside_of_a_node() {
    let lab = Lab::new();
    let [port] = free_ports();
    let (address, socket) = (format!("127.0.0.1:{port}"), lab.path("socket").display().to_string());
    let words = ["node", "--dataplane", "stub", "--metrics", "off", "--name", "gw1", "--with-controller", &address];
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("penstock"));
    command.args(words).args(["--socket", &socket]).arg("--state").arg(lab.path("state")).stderr(Stdio::null());
    let mut node = Process(command.spawn().unwrap());
    wait("the node", || (run(&["status", "--socket", &socket]).code == 0).then_some(()));
    let policy = lab.write("gw1.yaml", policy("gw1").as_bytes()).display().to_string();
    fine(&["up", &policy, "--socket", &socket]);
    let text = "penstock-network: 1
ports: [ { name: gw1-up, switch: gw1, rate: 1Gbit/s } ]
classes: [ { name: t7-gw1, paths: [[gw1-up]] } ]
aggregates: [ { name: t7, rate: 90Mbit/s, classes: [t7-gw1] } ]
";
    let network = lab.write("network.yaml", text.as_bytes()).display().to_string();
    fine(&["network", "put", &network, "--controller", &address]);
    let lent = || {
        let out = run(&["limits", "get", "t7-gw1", "--json", "--socket", &socket]).out;
        let limit: Value = serde_json::from_str(&out).ok()?;
        (limit["rate_bps"] == 90 * MBIT && limit["lease"]["lent_bps"] == 90 * MBIT).then_some(())
    };
    wait("the limit is lent", lent);
    assert!(node.end(Signal::INT).success(), "Ctrl-C is no failure");
    assert!(TcpListener::bind(&address).is_ok(), "nobody listens any more");
}

#[test]
fn what_is_typed_wrong_says_so() {
    let cases: [(&[&str], &str); 7] = [
        (&["controller", "--etdc", "http://127.0.0.1:1"], "--etcd"),
        (&["controller"], "--etcd <URL,..>|--state <FOLDER>"),
        (&["controller", "--state", "x", "--etcd", "http://127.0.0.1:1"], "cannot be used with"),
        (&["controller", "--state", "x", "--lease", "5"], "--lease"),
        (&["controller", "--state", "x", "--listen", "0.0.0.0:0"], "without certificates only this one is served"),
        (&["network", "puts", "n.yaml"], "put"),
        (&["node", "--with-controller", "127.0.0.1:1", "--controller", "127.0.0.1:1"], "cannot be used with"),
    ];
    for (words, says) in cases {
        let done = run(words);
        assert!(done.code == 2 && done.err.contains(says), "{words:?}: {done:?}");
    }
}
