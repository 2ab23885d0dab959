// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fair shares, live: two floods of 83 Mbit/s each through 30 Mbit/s.

use super::network::Network;
use super::{HEADERS, PAYLOAD, between, down_at_the_end};
use penstock_dataplane::xdp::{LoadOptions, Xdp};
use penstock_dataplane::{Dataplane, Standing};
use penstock_policy::Plan;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn sharing(classes: &str) -> Plan {
    between(&format!("  - {{ name: down, port: right, rate: 30Mbit/s, classes: [ {classes} ] }}\n"))
}

fn weighted(one: u32, two: u32) -> Plan {
    sharing(&format!(
        "{{ name: one, weight: {one}, match: [ {{ proto: udp, dport: 5000 }} ] }}, {{ name: two, weight: {two}, match: [ {{ dport: 5001 }} ] }}"
    ))
}

fn users(fair: &str) -> Plan {
    sharing(&format!("{{ name: all, match: [ {{ proto: udp }} ], users: {{ key: five_tuple, fair: {fair} }} }}"))
}

fn open(network: &Network) -> Xdp {
    Xdp::open(network.pins(), LoadOptions::default()).unwrap()
}

/// What arrives of both floods while both last, in bits a second of what is charged.
fn floods_bps(network: &Network, time: Duration, meanwhile: impl FnOnce()) -> [f64; 2] {
    let both = [5000, 5001].map(|port| network.sockets(port));
    let is_over = AtomicBool::new(false);
    let flood = |sender: &UdpSocket| {
        let (start, mut sent) = (Instant::now(), 0);
        while !is_over.load(Ordering::Relaxed) {
            sender.send(&[0; PAYLOAD as usize]).unwrap();
            sent += 1;
            std::thread::sleep((Duration::from_micros(100) * sent).saturating_sub(start.elapsed()));
        }
        start.elapsed()
    };
    let times = std::thread::scope(|scope| {
        let floods = both.each_ref().map(|(sender, _)| scope.spawn(|| flood(sender)));
        std::thread::sleep(time);
        meanwhile();
        is_over.store(true, Ordering::Relaxed);
        floods.map(|flood| flood.join().unwrap())
    });
    let arrived = |receiver: &UdpSocket| {
        receiver.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        std::iter::from_fn(|| receiver.recv(&mut [0; 2048]).ok()).count()
    };
    let bps =
        |flood: usize| arrived(&both[flood].1) as f64 * (PAYLOAD + HEADERS) as f64 * 8.0 / times[flood].as_secs_f64();
    [bps(0), bps(1)]
}

/// Both have what is theirs. A sender that waits for its CPU asks for less, which is the other's then: so the bounds are wide.
fn assert_shares([one, two]: [f64; 2], expected: [f64; 2]) {
    let is_near = |bps: f64, expected: f64| (0.75 * expected..=1.25 * expected).contains(&bps);
    assert!(is_near(one, expected[0]) && is_near(two, expected[1]), "{one:.0} and {two:.0}, not {expected:?}");
}

#[test]
fn classes_share_by_their_weights_also_over_a_reload() {
    let Some(network) = Network::new("weights") else { return };
    let before = network.interfaces();
    let mut xdp = open(&network);
    xdp.apply(weighted(1, 2)).unwrap();
    let mut read = Vec::new();
    let passed = floods_bps(&network, Duration::from_secs(1), || read = xdp.readings().unwrap().shares);
    assert_shares(passed, [10e6, 20e6]);
    let share = |place: usize| read[place].unwrap();
    assert_eq!((share(0).standing, share(1).standing), (Standing::Unsatisfied, Standing::Unsatisfied));
    assert!((9_900_000..10_100_000).contains(&share(0).share_bps), "{read:?}");
    assert!(share(0).demand_bps > 40_000_000 && share(2).share_bps == 30_000_000, "{read:?}");
    assert_eq!((share(2).weights, share(2).taken_bps), (3, 0));

    // The share of one who floods goes on over a reload, and another process adopts it.
    let mut vft = 0;
    floods_bps(&network, Duration::from_millis(200), || {
        xdp.apply(weighted(2, 1)).unwrap();
        vft = xdp.readings().unwrap().shares[0].unwrap().share_bps;
    });
    assert!(vft > 9_000_000, "known from the policy before: {vft}");
    drop(xdp);
    let mut xdp = open(&network);
    assert_eq!(xdp.adopt(weighted(2, 1)).unwrap().warnings, [] as [String; 0]);
    assert_shares(floods_bps(&network, Duration::from_secs(1), || {}), [20e6, 10e6]);
    // Nobody sends: all are forgotten, and nothing leaks.
    std::thread::sleep(Duration::from_millis(50));
    assert!(xdp.tend() > 0);
    let idle = xdp.readings().unwrap().shares;
    assert!(idle.iter().take(2).all(|share| share.unwrap().standing == Standing::Idle), "{idle:?}");
    assert_eq!((idle[2].unwrap().weights, idle[2].unwrap().taken_bps), (0, 0));
    down_at_the_end(&mut xdp, &network, &before);
}

#[test]
fn users_with_entries_share_evenly() {
    let Some(network) = Network::new("entries") else { return };
    let mut xdp = open(&network);
    xdp.apply(users("tree")).unwrap();
    let mut read = Vec::new();
    let passed = floods_bps(&network, Duration::from_secs(1), || read = xdp.readings().unwrap().shares);
    assert_shares(passed, [15e6, 15e6]);
    assert_eq!(read[0].unwrap().users.unwrap().active, 2, "{read:?}");
    xdp.down().unwrap();
}

#[test]
fn users_without_entries_share_evenly() {
    let Some(network) = Network::new("sketch") else { return };
    let mut xdp = open(&network);
    xdp.apply(users("sketch")).unwrap();
    let mut read = Vec::new();
    let passed = floods_bps(&network, Duration::from_secs(2), || read = xdp.readings().unwrap().shares);
    assert_shares(passed, [15e6, 15e6]);
    let limit_bps = read[0].unwrap().users.unwrap().limit_bps.unwrap();
    assert!((12_000_000..18_000_000).contains(&limit_bps), "{limit_bps}");
    xdp.down().unwrap();
}
