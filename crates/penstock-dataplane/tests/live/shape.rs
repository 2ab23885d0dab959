// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits that shape, live: packets wait with the engine, leave at the rate and in order, whatever is done to the policy meanwhile.

use super::network::{Counted, Network};
use super::{HEADERS, PAYLOAD, between, down_at_the_end, eventually};
use penstock_dataplane::xdp::{LoadOptions, Xdp};
use penstock_dataplane::{Dataplane, ShapingReading};
use penstock_policy::Plan;
use std::time::Duration;

/// Everything to b's port 5000 at a rate, without a burst.
fn shaped(rate: &str, terms: &str) -> Plan {
    between(&format!(
        "  - name: down
    port: right
    rate: 10Gbit/s
    classes:
      - name: shaped
        match: [ {{ proto: udp, dport: 5000 }} ]
        limit: {{ rate: {rate}, burst: 0s, excess: 0s, on_excess: shape{terms} }}
"
    ))
}

fn open(network: &Network) -> Xdp {
    Xdp::open(network.pins(), LoadOptions::default()).unwrap()
}

/// What the engine did when it has come to all that was held: a busy machine may keep it from counting what it sent.
fn settled(xdp: &Xdp, held_packets: u64) -> ShapingReading {
    let read = || xdp.shaping().unwrap();
    eventually(|| read().sent_packets + read().lost_packets == held_packets && read().waiting_packets == 0);
    read()
}

/// Packets that arrived, in bits of what the limit counts.
fn bits(counted: &Counted) -> f64 {
    counted.received as f64 * (PAYLOAD + HEADERS) as f64 * 8.0
}

/// 10,000 packets a second are 83 Mbit/s; the limit is 20.
fn flood(network: &Network, done: impl FnOnce()) -> Counted {
    network.flood_and_count(5000, PAYLOAD as usize, done)
}

#[test]
fn what_waits_leaves_at_the_rate_and_in_order() {
    let Some(network) = Network::new("shape") else { return };
    let before = network.interfaces();
    let mut xdp = open(&network);
    let applied = xdp.apply(shaped("20Mbit/s", ", horizon: 100ms")).unwrap();
    assert_eq!(applied.warnings, [] as [String; 0]);
    let counted = flood(&network, || std::thread::sleep(Duration::from_secs(1)));
    // What waits when the flood ends leaves as well.
    let most = 20e6 * (counted.time.as_secs_f64() + 0.1) + 1e5;
    assert!(counted.in_order && bits(&counted) <= most && bits(&counted) > most / 2.0, "{counted:?}");
    let class = xdp.readings().unwrap().classes[0];
    assert!(class.held_packets > 1000 && class.dropped_packets > 1000, "{class:?}");
    let shaping = settled(&xdp, class.held_packets);
    assert_eq!((shaping.sent_packets + shaping.lost_packets, shaping.waiting_packets), (class.held_packets, 0));
    assert_eq!(shaping.delay.counts.iter().sum::<u64>(), shaping.sent_packets);
    assert!(shaping.delay.sum_ns / class.held_packets > 50_000_000, "most wait for nearly the horizon: {shaping:?}");
    assert_eq!(
        class.offered_packets - class.dropped_packets,
        counted.received + shaping.lost_packets,
        "what was not dropped arrived: {class:?}"
    );
    down_at_the_end(&mut xdp, &network, &before);
}

/// DragonKing's form: packets circulate until their turn, under a control loop every 5 us.
#[test]
fn groups_keep_the_rate_as_the_wheel_does() {
    let Some(network) = Network::new("groups") else { return };
    let mut xdp = open(&network);
    let mut plan = shaped("20Mbit/s", ", horizon: 20ms");
    plan.holds_in_groups = true;
    xdp.apply(plan).unwrap();
    let counted = flood(&network, || std::thread::sleep(Duration::from_secs(1)));
    let most = 20e6 * (counted.time.as_secs_f64() + 0.02) + 1e5;
    assert!(bits(&counted) <= most && bits(&counted) > most / 2.0, "{counted:?}");
    let class = xdp.readings().unwrap().classes[0];
    assert!(class.held_packets > 1000, "{class:?}");
    let shaping = settled(&xdp, class.held_packets);
    assert_eq!((shaping.sent_packets + shaping.lost_packets, shaping.waiting_packets), (class.held_packets, 0));
    xdp.down().unwrap();
}

#[test]
fn below_the_horizon_nothing_is_lost() {
    let Some(network) = Network::new("lossless") else { return };
    let mut xdp = open(&network);
    xdp.apply(shaped("20Mbit/s", ", horizon: 2s")).unwrap();
    // A fifth of a second of flood is 0.8 s of waiting.
    let counted = flood(&network, || {
        std::thread::sleep(Duration::from_millis(200));
    });
    // An engine that gets no CPU for half a second drops what it has, rather than send it behind what has passed.
    let lost = xdp.shaping().unwrap().lost_packets;
    assert!(counted.in_order && counted.received + lost == counted.sent, "{lost} lost, {counted:?}");
    assert_eq!(xdp.readings().unwrap().classes[0].dropped_packets, 0);
    xdp.down().unwrap();
}

/// Who waited and has left is forgotten: below the rate no packet takes the longer way.
#[test]
fn below_the_rate_nobody_waits_after_a_flood() {
    let Some(network) = Network::new("direct") else { return };
    let mut xdp = open(&network);
    xdp.apply(shaped("20Mbit/s", ", horizon: 100ms")).unwrap();
    flood(&network, || std::thread::sleep(Duration::from_millis(300)));
    let held = || xdp.readings().unwrap().classes[0].held_packets;
    assert!(held() > 100);
    // 2000 packets a second of 542 bytes are 9 Mbit/s. Where the engine waits for a CPU one that is late has the next ones wait, too.
    let is_direct = (0..5).any(|_| {
        let before = held();
        let counted = network.count_while(5000, 500, || std::thread::sleep(Duration::from_millis(300)));
        assert!(counted.in_order);
        held() - before < counted.sent / 2
    });
    assert!(is_direct, "most packets were held, each time; {:?}", xdp.shaping());
    xdp.down().unwrap();
}

#[test]
fn a_refused_reload_leaves_those_who_hold_packets() {
    let Some(network) = Network::new("refused") else { return };
    let mut xdp = open(&network);
    xdp.apply(shaped("20Mbit/s", ", horizon: 100ms")).unwrap();
    let mut greedy = shaped("30Mbit/s", ", horizon: 100ms");
    greedy.hold_chunks = u32::MAX - (1 << 20); // of 2 KB: no machine has that
    let refused = xdp.apply(greedy).unwrap_err().to_string();
    assert!(refused.contains("`shaper: { memory }`") && refused.contains("left"), "{refused}");
    let counted = flood(&network, || std::thread::sleep(Duration::from_millis(300)));
    let class = xdp.readings().unwrap().classes[0];
    assert!(counted.in_order && counted.received > 100 && class.held_packets > 100, "{counted:?} {class:?}");
    xdp.down().unwrap();
}

#[test]
fn interfaces_that_are_made_anew_get_workers() {
    let Some(network) = Network::new("anew") else { return };
    let mut xdp = open(&network);
    xdp.apply(shaped("20Mbit/s", ", horizon: 100ms")).unwrap();
    let mut before = 0;
    for hosts in [&["b"][..], &["a", "b"]] {
        for host in hosts {
            network.unplug(host);
            network.plug(host);
        }
        let warnings = xdp.repair().unwrap();
        assert_eq!(warnings, [] as [String; 0]);
        let counted = flood(&network, || std::thread::sleep(Duration::from_millis(300)));
        let class = xdp.readings().unwrap().classes[0];
        let held = class.held_packets - before;
        assert!(counted.in_order && counted.received > 100 && held > 100, "{hosts:?}: {counted:?} {class:?}");
        before = class.held_packets;
    }
    xdp.down().unwrap();
}

#[test]
fn order_holds_over_reloads_and_a_new_engine() {
    let Some(network) = Network::new("order") else { return };
    let before = network.interfaces();
    let mut xdp = Some(open(&network));
    xdp.as_mut().unwrap().apply(shaped("20Mbit/s", ", horizon: 50ms")).unwrap();
    let rates = ["40Mbit/s", "10Mbit/s", "30Mbit/s", "20Mbit/s"];
    let counted = flood(&network, || {
        for (index, rate) in rates.into_iter().cycle().take(12).enumerate() {
            std::thread::sleep(Duration::from_millis(60));
            if index % 4 == 3 {
                // The engine goes, and what waits with it; the next process has one of its own.
                let plan = xdp.take().unwrap().plan().unwrap().clone();
                let mut next = open(&network);
                next.adopt(plan).unwrap();
                xdp = Some(next);
            }
            xdp.as_mut().unwrap().apply(shaped(rate, ", horizon: 50ms")).unwrap();
        }
    });
    let most = 40e6 * (counted.time.as_secs_f64() + 0.1);
    assert!(counted.in_order && bits(&counted) <= most && bits(&counted) > most / 16.0, "{counted:?}");
    down_at_the_end(&mut xdp.unwrap(), &network, &before);
}

#[test]
fn what_the_kernel_routes_cannot_wait() {
    let Some(network) = Network::new("routed") else { return };
    let mut xdp = open(&network);
    let mut plan = shaped("20Mbit/s", "");
    plan.ports.iter_mut().for_each(|port| port.forward = None);
    let error = xdp.apply(plan).unwrap_err().to_string();
    assert!(error.contains("down/shaped") && error.contains("`forward`"), "{error}");
    assert_eq!(xdp.generation(), None);
}
