// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of a controller, as a process of its own and inside of a node, the way a scraper gets them.

#![allow(clippy::unwrap_used)] // a test may panic

mod support;

use rustix::process::Signal;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use support::Lab;
use support::process::{Process, fine, free_ports, run, wait};

const NETWORK: &str = "penstock-network: 1
ports: [ { name: gw1-up, switch: gw1, rate: 1Gbit/s } ]
classes: [ { name: t7-gw1, paths: [[gw1-up]] } ]
aggregates: [ { name: t7, rate: 80Mbit/s, classes: [t7-gw1] } ]
";

/// Starts the program; what it logs is in a file.
fn spawn(lab: &Lab, place: &str, words: &[&str]) -> Process {
    let log = File::create(lab.path(&format!("{place}.log"))).unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("penstock"));
    command.args(words).arg("--state").arg(lab.path(place)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    Process(command.spawn().unwrap())
}

fn node(lab: &Lab, more: &[&str]) -> (Process, String) {
    let socket = lab.path("node.sock").display().to_string();
    let words = ["node", "--dataplane", "stub", "--name", "gw1", "--socket", &socket];
    (spawn(lab, "node", &[&words, more].concat()), socket)
}

/// What a process that serves has logged of itself.
fn logged(lab: &Lab, place: &str, field: &str) -> String {
    let begin = format!("{field}=\"");
    wait("it serves", || {
        let log = std::fs::read_to_string(lab.path(&format!("{place}.log"))).ok()?;
        let line = log.lines().find(|line| line.contains(" serving "))?;
        Some(line.split_once(&begin)?.1.split_once('"')?.0.to_owned())
    })
}

fn get(url: &str, path: &str) -> String {
    let address = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/metrics")).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Waits until all of these lines are told.
fn wait_for(url: &str, lines: &[&str]) {
    wait(&lines.join(", "), || {
        let answer = get(url, "/metrics");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        lines.iter().all(|line| answer.lines().any(|other| other == *line)).then_some(())
    });
}

#[test]
fn a_controller_is_scraped() {
    let lab = Lab::new();
    let words = ["controller", "--name", "c1", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];
    let mut controller = spawn(&lab, "c1", &words);
    let (address, url) = (logged(&lab, "c1", "address"), logged(&lab, "c1", "metrics"));
    wait_for(&url, &["penstock_controller_leading 1", "penstock_controller_kept_revision 0"]);
    let max = "penstock_controller_aggregate_series_max 1000";
    wait_for(&url, &["penstock_controller_build_info{version=\"0.1.0\",replica=\"c1\"} 1", max]);
    let lost = get(&url, "/");
    assert!(lost.starts_with("HTTP/1.1 404") && lost.ends_with("metrics are at GET /metrics\n"), "{lost}");

    let network = lab.write("network.yaml", NETWORK.as_bytes()).display().to_string();
    fine(&["network", "put", &network, "--controller", &address]);
    let rate = "penstock_controller_aggregate_rate_bytes_per_second{aggregate=\"t7\"} 10000000.0";
    wait_for(&url, &["penstock_controller_puts_total 1", "penstock_controller_kept_revision 1", rate]);
    let _node = node(&lab, &["--controller", &address, "--metrics", "off"]);
    wait_for(&url, &["penstock_controller_attending_nodes 1", "penstock_controller_lent_limits 1"]);
    assert!(controller.end(Signal::INT).success());
}

#[test]
fn a_node_with_a_controller_inside_tells_of_both() {
    let lab = Lab::new();
    let [port] = free_ports();
    let address = format!("127.0.0.1:{port}");
    let (mut node, socket) = node(&lab, &["--with-controller", &address, "--metrics", "127.0.0.1:0"]);
    wait("the node", || (run(&["status", "--socket", &socket]).code == 0).then_some(()));
    let status: serde_json::Value = serde_json::from_str(&fine(&["status", "--json", "--socket", &socket])).unwrap();
    let url = status["metrics"].as_str().unwrap();
    let of_node = ["penstock_build_info{version=\"0.1.0\",dataplane=\"stub\"} 1", "penstock_controller_attending 1"];
    let of_controller = ["penstock_controller_leading 1", "penstock_controller_attending_nodes 1"];
    wait_for(url, &[of_node, of_controller].concat());
    let answer = get(url, "/metrics");
    let mut names: Vec<_> = answer.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() == count && answer.matches("# EOF").count() == 1, "{answer}");
    assert!(node.end(Signal::INT).success());
}

#[test]
fn an_address_that_cannot_be_had_is_named() {
    let lab = Lab::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let state = lab.path("state").display().to_string();
    for command in ["controller", "node"] {
        let words = |address| run(&[command, "--state", &state, "--metrics", address]);
        let (refused, wrong) = (words(&address), words("9475"));
        let says = format!("error: metrics cannot be served on {address}: ");
        assert!(refused.code == 2 && refused.err.contains(&says), "{command}: {refused:?}");
        assert!(refused.err.contains("`--metrics off` serves none"), "{command}: {refused:?}");
        assert!(wrong.code == 2 && wrong.err.contains("an IP address and a port"), "{command}: {wrong:?}");
    }
}
