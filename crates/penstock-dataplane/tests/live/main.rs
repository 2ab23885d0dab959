// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's data plane on real interfaces: a box between two hosts, each a network namespace of its own.
#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::cast_possible_truncation)] // a test may fail by the one and skip by the other

mod adopt;
mod delay;
mod network;
mod shape;
mod shares;
#[path = "../common/suite.rs"]
mod suite;

use network::{Network, is_root};
use penstock_dataplane::xdp::{LoadOptions, Xdp};
use penstock_dataplane::{Dataplane, Edit, LimitId};
use penstock_policy::plan::Plan;
use std::time::{Duration, Instant};

/// What b gets of a datagram's payload is charged with these headers: IPv4, UDP, Ethernet.
const HEADERS: u64 = 20 + 8 + 14;
const PAYLOAD: u64 = 1000;
const RELOADS: u32 = 15;

fn plan(text: &str) -> Plan {
    let policy = penstock_policy::Policy::parse("test.yaml", text).unwrap();
    penstock_policy::compile::compile(&policy, |_| Err(std::io::ErrorKind::NotFound.into())).unwrap()
}

/// A bridge between both hosts, and its links.
fn between(links: &str) -> Plan {
    plan(&format!(
        "penstock: 1
ports: {{ left: {{ device: left, rate: 10Gbit/s }}, right: {{ device: right, rate: 10Gbit/s }} }}
forward: [[left, right]]
links:
{links}"
    ))
}

/// A bridge between both hosts, with a limit on what goes to b's port 5000.
fn bridge(rate: &str, more: &str) -> Plan {
    between(&format!(
        "  - name: down
    port: right
    rate: 10Gbit/s
    classes:
      - name: limited
        match: [ {{ proto: udp, dport: 5000 }} ]
        limit: {{ rate: {rate}, burst: 20ms, excess: 0ms }}
{more}"
    ))
}

/// What the limit passed of a flood, in bits a second of what it counts.
fn flood_bps(network: &Network, time: Duration) -> f64 {
    let flood = network.flood(5000, PAYLOAD as usize, time);
    flood.received as f64 * (PAYLOAD + HEADERS) as f64 * 8.0 / flood.time.as_secs_f64()
}

/// A second of a rate, and the burst of 20 ms on top. Or less: a sender that waits for its CPU longer than the burst lasts does not
/// ask for all that it may have.
fn is_rate(passed_bps: f64, rate_bps: f64) -> bool {
    (0.5 * rate_bps..=1.03 * rate_bps).contains(&passed_bps)
}

fn down_at_the_end(xdp: &mut Xdp, network: &Network, before: &str) {
    xdp.down().unwrap();
    // The kernel may still be taking down a socket on a busy machine.
    eventually(|| network.interfaces() == before);
    assert_eq!(network.interfaces(), before, "interfaces are as they were found");
    assert_eq!(std::fs::read_dir(network.pins()).unwrap().count(), 0, "no pin is left");
}

/// Waits for something to become so, a second at most.
fn eventually(is_so: impl Fn() -> bool) -> bool {
    (0..20).any(|_| {
        let so = is_so();
        if !so {
            std::thread::sleep(Duration::from_millis(50));
        }
        so
    })
}

/// Without packets: those of the suite wait for a clock that stands still.
#[test]
fn the_kernel_does_what_a_data_plane_does() {
    let Some(network) = Network::new("suite") else { return };
    let before = network.interfaces();
    let mut xdp = Xdp::open(network.pins(), LoadOptions::default()).unwrap();
    suite::suite(&mut xdp, ["left", "right"]);
    down_at_the_end(&mut xdp, &network, &before);
}

#[test]
fn a_limit_holds_and_down_restores() {
    let Some(network) = Network::new("up") else { return };
    let before = network.interfaces();
    let mut xdp = Xdp::open(network.pins(), LoadOptions::default()).unwrap();
    let applied = xdp.apply(bridge("20Mbit/s", "")).unwrap();
    assert_eq!((applied.generation, applied.warnings), (1, vec![]), "native, so no warning");
    assert!(network.ping(), "what no class takes is bridged");

    let passed = flood_bps(&network, Duration::from_secs(1));
    assert!(is_rate(passed, 20e6), "{passed}");
    let readings = xdp.readings().unwrap();
    let class = readings.classes[0];
    assert!(class.offered_packets > class.dropped_packets && class.dropped_packets > 0, "{class:?}");
    let limit = xdp.limit(LimitId::Class(0)).unwrap();
    assert_eq!(limit.counters.unwrap().dropped_packets, class.dropped_packets);
    assert_eq!((limit.rate_bps, limit.window_ns), (20_000_000, 20_000_000));
    let samples = xdp.samples().unwrap();
    assert!(!samples.is_empty() && samples.iter().all(|sample| sample.decision.class_index == 0));
    down_at_the_end(&mut xdp, &network, &before);
}

#[test]
fn tags_stay_in_their_frames() {
    let Some(network) = Network::new("tags") else { return };
    let offloads = || network.middle(&["ethtool", "-k", "left"]);
    let before = offloads();
    assert!(before.contains("rx-vlan-offload: on"), "{before}");
    let mut xdp = Xdp::open(network.pins(), LoadOptions::default()).unwrap();
    let mut plan = bridge("20Mbit/s", "");
    xdp.apply(plan.clone()).unwrap();
    assert!(offloads().contains("rx-vlan-offload: off"));
    plan.policy = "again".to_owned();
    xdp.apply(plan).unwrap();
    assert!(offloads().contains("rx-vlan-offload: off"));
    xdp.down().unwrap();
    assert_eq!(offloads(), before);
}

#[test]
fn what_no_link_leads_to_is_left_alone() {
    let Some(network) = Network::new("back") else { return };
    let mut xdp = Xdp::open(network.pins(), LoadOptions::default()).unwrap();
    xdp.apply(bridge("1Mbit/s", "")).unwrap();
    // Nothing is said of what leaves by `left`, whatever its port is, and however busy the limit of the other direction is.
    let mut back = network::Counted::default();
    let passed = network.flood_while(5000, PAYLOAD as usize, || {
        back = network.count_back_while(5000, 500, || std::thread::sleep(Duration::from_secs(1)));
    });
    assert!(back.sent > 200 && back.received == back.sent && back.in_order, "{back:?}");
    let class = xdp.readings().unwrap().classes[0];
    assert_eq!(class.offered_packets - class.dropped_packets, passed, "only what came in by the one port was counted");
    xdp.down().unwrap();
}

#[test]
fn a_reload_loses_no_packet_and_forgets_no_limit() {
    let Some(network) = Network::new("reload") else { return };
    let mut xdp = Xdp::open(network.pins(), LoadOptions::default()).unwrap();
    xdp.apply(bridge("20Mbit/s", "")).unwrap();
    let more = "      - { name: more, match: [ { proto: tcp } ], limit: { rate: 1Gbit/s } }\n";
    let start = Instant::now();
    let mut reloads = 0;
    let limited = network.flood_while(5000, PAYLOAD as usize, || {
        // Port 6000 is in no class: each of its packets must arrive, in order.
        let counted = network.count_while(6000, 500, || {
            while reloads < RELOADS {
                let generation = xdp.apply(bridge("20Mbit/s", if reloads % 2 == 0 { more } else { "" })).unwrap();
                assert_eq!(generation.limits_kept, 1);
                reloads += 1;
            }
        });
        assert!(counted.sent > 1000 && counted.received == counted.sent && counted.in_order, "{counted:?}");
    });
    let took = start.elapsed().as_secs_f64();
    let passed = limited as f64 * (PAYLOAD + HEADERS) as f64 * 8.0 / took;
    // One burst of 20 ms; a limit that started anew would pass one for each reload.
    let most = 20e6 * (took + 0.02) / took * 1.01;
    assert!((10e6..=most).contains(&passed), "{passed} over {took} s, at most {most}");
    xdp.down().unwrap();
}

#[test]
fn a_reload_costs_a_flow_that_keeps_its_limit_nothing() {
    let Some(network) = Network::new("keeps") else { return };
    let mut xdp = Xdp::open(network.pins(), LoadOptions::default()).unwrap();
    // 8.7 Mbit/s, with a window of 20 ms: far less than a reload takes.
    xdp.apply(bridge("20Mbit/s", "")).unwrap();
    let counted = network.count_while(5000, 500, || {
        for reload in 0..6 {
            xdp.apply(bridge(["15Mbit/s", "20Mbit/s"][reload % 2], "")).unwrap();
        }
    });
    assert!(counted.sent > 500 && counted.received == counted.sent && counted.in_order, "{counted:?}");
    let class = xdp.readings().unwrap().classes[0];
    assert_eq!((class.offered_packets, class.dropped_packets), (counted.sent, 0), "each was counted once");
    xdp.down().unwrap();
}

#[test]
fn an_edit_changes_a_rate_at_once() {
    let Some(network) = Network::new("edit") else { return };
    let mut xdp = Xdp::open(network.pins(), LoadOptions::default()).unwrap();
    xdp.apply(bridge("20Mbit/s", "")).unwrap();
    flood_bps(&network, Duration::from_millis(100));
    xdp.edit(&[Edit::SetRate { limit: LimitId::Class(0), rate_bps: 5_000_000 }]).unwrap();
    let passed = flood_bps(&network, Duration::from_secs(1));
    assert!(is_rate(passed, 5e6), "{passed}");
    assert_eq!(xdp.limit(LimitId::Class(0)).unwrap().rate_bps, 5_000_000);
    xdp.down().unwrap();
}

#[test]
fn an_interface_that_cannot_be_had_is_named_with_what_to_do() {
    let Some(network) = Network::new("errors") else { return };
    let before = network.interfaces();
    let mut xdp = Xdp::open(network.pins(), LoadOptions::default()).unwrap();
    let mut refused = |device: &str| {
        let mut plan = bridge("20Mbit/s", "");
        plan.ports[1].device = Some(device.to_owned());
        let error = xdp.apply(plan).unwrap_err().to_string();
        assert_eq!(network.interfaces(), before, "nothing was changed");
        error
    };
    let error = refused("rigth");
    assert!(error.contains("rigth") && error.contains("port right") && error.contains("no such interface"), "{error}");
    assert!(refused("left").contains("is the device of port left already"));
    network.middle(&["ip", "link", "add", "spare", "type", "veth", "peer", "name", "spare1"]);
    let before = network.interfaces();
    let plan_of = |device: &str| {
        let mut plan = bridge("20Mbit/s", "");
        plan.ports[1].device = Some(device.to_owned());
        plan
    };
    let error = xdp.apply(plan_of("spare")).unwrap_err().to_string();
    assert!(error.contains("is down") && error.contains("ip link set spare up"), "{error}");
    assert_eq!(network.interfaces(), before);

    let mut other = Xdp::open(&network.pins().join("other"), LoadOptions::default()).unwrap();
    other.apply(bridge("20Mbit/s", "")).unwrap();
    let error = xdp.apply(bridge("20Mbit/s", "")).unwrap_err().to_string();
    assert!(error.contains("has an XDP program already") && error.contains("xdp off"), "{error}");
    assert!(network.ping(), "the other one goes on");
    other.down().unwrap();
    let mut offline = bridge("20Mbit/s", "");
    offline.ports.iter_mut().for_each(|port| port.device = None);
    let error = xdp.apply(offline).unwrap_err().to_string();
    assert!(error.contains("port left names no device"), "{error}");
}

#[test]
fn skips_are_loud() {
    assert!(is_root() || std::env::var_os("CI").is_none(), "CI has root");
}
