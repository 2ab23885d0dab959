// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delay lines, live: a link that is longer than the cable, loses packets, and keeps their order.

use super::network::Network;
use super::{PAYLOAD, between, down_at_the_end, eventually};
use penstock_algo::wire;
use penstock_dataplane::xdp::{LoadOptions, Xdp};
use penstock_dataplane::{Dataplane, DataplaneError};
use penstock_policy::Plan;
use std::time::{Duration, Instant};

/// Both directions, with a delay for each; what goes right is limited to 20 Mbit/s as well.
fn lines(right: &str, left: &str) -> Plan {
    between(&format!(
        "  - name: down
    port: right
    delay: {right}
    classes:
      - {{ name: udp, match: [ {{ proto: udp, dport: 5000 }} ], limit: {{ rate: 20Mbit/s }} }}
  - {{ name: up, port: left, delay: {left}, classes: [] }}
"
    ))
}

fn open(network: &Network) -> Xdp {
    Xdp::open(network.pins(), LoadOptions::default()).unwrap()
}

/// Of some packets.
fn least_round_trip(network: &Network) -> Duration {
    let (near, far) = network.sockets(7000);
    near.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let echo = std::thread::spawn(move || {
        for _ in 0..50 {
            let (_, from) = far.recv_from(&mut [0; 16]).unwrap();
            far.send_to(b"pong", from).unwrap();
        }
    });
    let times: Vec<Duration> = (0..50)
        .map(|_| {
            let sent = Instant::now();
            near.send(b"ping").unwrap();
            near.recv(&mut [0; 16]).unwrap();
            sent.elapsed()
        })
        .collect();
    echo.join().unwrap();
    times.into_iter().min().unwrap()
}

#[test]
fn a_round_trip_takes_both_delays() {
    let Some(network) = Network::new("delay") else { return };
    let before = network.interfaces();
    let mut xdp = open(&network);
    let applied = xdp.apply(lines("5ms", "3ms")).unwrap();
    assert_eq!(applied.warnings, [] as [String; 0]);
    let least = least_round_trip(&network);
    assert!(least >= Duration::from_millis(8), "{least:?}");
    let reasons = xdp.readings().unwrap().reasons;
    assert!(reasons[wire::PST_REASON_DELAYED as usize] >= 100, "{reasons:?}");
    xdp.apply(lines("1ms", "0ms")).unwrap();
    let least = least_round_trip(&network);
    assert!(
        (Duration::from_millis(1)..Duration::from_millis(8)).contains(&least),
        "one in fifty is in time: {least:?}"
    );
    down_at_the_end(&mut xdp, &network, &before);
}

/// 10,000 packets a second are 83 Mbit/s: the limit passes 20, of which the line loses a tenth.
#[test]
fn a_line_loses_its_share_and_keeps_the_order() {
    let Some(network) = Network::new("loss") else { return };
    let mut xdp = open(&network);
    xdp.apply(lines("{ time: 4ms, jitter: 3ms, loss: 10%, seed: 1 }", "0ms")).unwrap();
    let counted = network.flood_and_count(5000, PAYLOAD as usize, || std::thread::sleep(Duration::from_secs(1)));
    let readings = xdp.readings().unwrap();
    let lost = readings.reasons[wire::PST_REASON_LOST as usize];
    let shaping = xdp.shaping().unwrap();
    let came = shaping.sent_packets + shaping.lost_packets + lost;
    assert!(counted.in_order && counted.received > 1000, "{counted:?}");
    assert!(lost * 100 > came * 7 && lost * 100 < came * 13, "{lost} of {came} were lost");
    assert!(readings.reasons[wire::PST_REASON_OVER_RATE as usize] > 1000, "{:?}", readings.reasons);
    // The engine says how many wait when it comes to it.
    eventually(|| xdp.shaping().unwrap().waiting_packets == 0);
    assert_eq!(xdp.shaping().unwrap().waiting_packets, 0);
    xdp.down().unwrap();
}

#[test]
fn packets_that_the_kernel_routes_are_not_delayed() {
    let Some(network) = Network::new("routed") else { return };
    let mut xdp = open(&network);
    let mut routed = lines("5ms", "0ms");
    routed.ports.iter_mut().for_each(|port| port.forward = None);
    let refused = xdp.apply(routed).unwrap_err();
    assert!(matches!(&refused, DataplaneError::Delays { name } if name == "down"), "{refused}");
}
