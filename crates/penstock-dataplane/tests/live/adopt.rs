// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one process leaves and another one finds, and what changes under a policy in force.

use crate::network::Network;
use crate::{bridge, down_at_the_end, flood_bps, is_rate};
use penstock_dataplane::xdp::{LoadOptions, Xdp};
use penstock_dataplane::{Dataplane, DataplaneError, Edit, LimitId};
use penstock_policy::limits_file::LimitsText;
use penstock_policy::plan::Plan;
use std::time::Duration;

fn open(network: &Network) -> Xdp {
    Xdp::open(network.pins(), LoadOptions::default()).unwrap()
}

/// A bridge with limits by destination, from rows of `name,dst,rate,burst`.
fn rows(rows: &str) -> Plan {
    let text = "penstock: 1
ports:
  left: { device: left, rate: 10Gbit/s }
  right: { device: right, rate: 10Gbit/s }
forward: [[left, right]]
links:
  - { name: down, port: right, rate: 10Gbit/s, classes: [ { name: users, limits: { file: rows.csv } } ] }
";
    let policy = penstock_policy::Policy::parse("test.yaml", text).unwrap();
    let text = format!("name,dst,rate,burst\n{rows}");
    let read = |name: &str| Ok(LimitsText { name: name.to_owned(), bytes: text.clone().into() });
    penstock_policy::compile::compile(&policy, read).unwrap()
}

const B: &str = "b,10.9.0.2,20Mbit/s,20ms\n";

#[test]
fn another_process_adopts_what_is_left() {
    let Some(network) = Network::new("adopt") else { return };
    let before = network.interfaces();
    let mut first = Xdp::open(network.pins(), LoadOptions::default()).unwrap();
    first.apply(bridge("20Mbit/s", "")).unwrap();
    flood_bps(&network, Duration::from_millis(300));
    let counted = first.readings().unwrap().classes[0];
    drop(first);

    let passed = flood_bps(&network, Duration::from_secs(1));
    assert!(is_rate(passed, 20e6), "enforced by nobody's process: {passed}");
    let mut second = Xdp::open(network.pins(), LoadOptions::default()).unwrap();
    assert_eq!(second.generation(), Some(1));
    assert!(matches!(second.readings(), Err(DataplaneError::Idle)), "not adopted yet");
    let other = bridge("20Mbit/s", "      - { name: more, match: [ { proto: tcp } ] }\n");
    assert!(matches!(second.adopt(other), Err(DataplaneError::OtherPolicy)));
    let applied = second.adopt(bridge("10Mbit/s", "")).unwrap();
    assert_eq!((applied.generation, applied.limits_kept), (1, 1));
    let now = second.readings().unwrap().classes[0];
    assert!(now.offered_packets > counted.offered_packets, "the counters went on");
    let passed = flood_bps(&network, Duration::from_secs(1));
    assert!(is_rate(passed, 10e6), "the rate of the plan was set right: {passed}");
    down_at_the_end(&mut second, &network, &before);
}

#[test]
fn a_kind_of_rows_that_went_is_no_other_policy() {
    let Some(network) = Network::new("kinds") else { return };
    let mut first = open(&network);
    first.apply(rows(&format!("net,10.9.1.0/24,1Mbit/s,50ms\n{B}slow,10.9.0.9,8kbit/s,5s\n"))).unwrap();
    network.flood(5000, 1000, Duration::from_millis(100));
    first.edit(&[Edit::Remove { row: 0 }]).unwrap();
    let offered = first.limit(LimitId::Row(1)).unwrap().counters.unwrap().offered_packets;
    drop(first);

    let mut second = open(&network);
    let applied = second.adopt(rows(&format!("{B}slow,10.9.0.9,8kbit/s,5s\n"))).unwrap();
    assert_eq!((applied.generation, applied.limits_kept), (1, 2));
    assert!(second.limit(LimitId::Row(0)).unwrap().counters.unwrap().offered_packets >= offered, "it is the same row");
    assert!(matches!(second.limit(LimitId::Row(2)), Err(DataplaneError::UnknownLimit(_))));
    second.down().unwrap();
}

#[test]
fn rows_under_other_terms_are_made_anew() {
    let Some(network) = Network::new("terms") else { return };
    let (short, long) = ("short,10.9.0.7,1Mbit/s,50ms\n", "long,10.9.0.8,1Mbit/s,90ms\n");
    let mut first = open(&network);
    first.apply(rows(&format!("{short}{long}{B}"))).unwrap();
    drop(first);
    let mut second = open(&network);
    let applied = second.adopt(rows(&format!("{}{long}{B}", short.replace("50ms", "90ms")))).unwrap();
    assert_eq!((applied.generation, applied.limits_kept), (1, 2));
    let windows = [0, 1].map(|row| second.limit(LimitId::Row(row)).unwrap().window_ns);
    assert_eq!(windows[0], windows[1]);
    second.down().unwrap();
}

#[test]
fn rules_of_other_values_are_another_policy() {
    let Some(network) = Network::new("values") else { return };
    let mut first = open(&network);
    first.apply(bridge("20Mbit/s", "")).unwrap();
    drop(first);
    let mut second = open(&network);
    let mut other = bridge("20Mbit/s", "");
    // Another port or protocol: bits that are set are under the mask.
    let values = other.rule_keys.iter_mut().flat_map(|key| &mut key.value.words);
    values.for_each(|word| *word &= word.wrapping_sub(1));
    assert!(matches!(second.adopt(other), Err(DataplaneError::OtherPolicy)));
    second.down().unwrap();
}

#[test]
fn one_process_at_a_time_has_the_pins() {
    let Some(network) = Network::new("lock") else { return };
    let mut first = open(&network);
    first.apply(bridge("20Mbit/s", "")).unwrap();
    let second = Xdp::open(network.pins(), LoadOptions::default()).unwrap_err();
    assert!(matches!(second, DataplaneError::Locked { .. }) && second.to_string().contains("--pins"), "{second}");
    drop(first);
    let pins = network.pins().to_owned();
    let elsewhere = std::thread::spawn(move || {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        Xdp::open(&pins, LoadOptions::default()).map(drop).unwrap_err()
    });
    let elsewhere = elsewhere.join().unwrap();
    assert!(matches!(elsewhere, DataplaneError::OtherNamespace { .. }), "{elsewhere}");
    open(&network).down().unwrap();
}

#[test]
fn an_interface_that_is_made_anew_is_judged_again() {
    let Some(network) = Network::new("anew") else { return };
    let mut xdp = open(&network);
    xdp.apply(rows(B)).unwrap();
    assert_eq!(xdp.repair().unwrap(), Vec::<String>::new());
    network.unplug("a");
    let said = xdp.repair().unwrap();
    assert!(said.len() == 1 && said[0].contains("port left: there is no interface left"), "{said:?}");
    assert_eq!(xdp.generation(), Some(1));
    network.plug("a");
    assert_eq!(xdp.repair().unwrap(), Vec::<String>::new());
    assert_eq!(xdp.generation(), Some(2));
    assert!(network.ping(), "both directions are forwarded");
    let passed = flood_bps(&network, Duration::from_secs(1));
    assert!((10e6..=21.1e6).contains(&passed), "{passed}");

    // The same while no process looks.
    drop(xdp);
    network.unplug("b");
    let mut second = open(&network);
    assert_eq!(second.adopt(rows(B)).unwrap().limits_kept, 1);
    assert_eq!(second.repair().unwrap().len(), 1, "an interface is missing");
    drop(second);
    network.plug("b");
    let mut third = open(&network);
    assert_eq!(third.adopt(rows(B)).unwrap().limits_kept, 1);
    assert_eq!((third.repair().unwrap(), third.generation()), (Vec::<String>::new(), Some(3)));
    let before = network.interfaces();
    assert!(network.ping() && before.contains("PROMISC"));
    assert!(third.limit(LimitId::Row(0)).unwrap().counters.unwrap().offered_packets > 0, "all goes on");
    third.down().unwrap();
    assert!(!network.interfaces().contains("PROMISC"));
}

#[test]
fn a_batch_without_room_is_made_whole_or_not_at_all() {
    let Some(network) = Network::new("batch") else { return };
    let before = network.interfaces();
    let mut xdp = open(&network);
    xdp.apply(rows(B)).unwrap();
    let plan = xdp.plan().unwrap().clone();
    let entry = plan.entries[0];
    let mut batch = vec![Edit::SetRate { limit: LimitId::Row(0), rate_bps: 30_000_000 }, Edit::Remove { row: 0 }];
    batch.push(Edit::Add { name: "again".to_owned(), entry });
    batch.extend((0..500_u64).map(|row| {
        let mut entry = entry;
        entry.value.words.iter_mut().filter(|word| **word != 0).for_each(|word| *word += row + 1);
        Edit::Add { name: format!("more{row}"), entry }
    }));
    // The next generation finds its place taken.
    let taken = network.pins().join("g2");
    std::fs::create_dir(&taken).unwrap();
    network.flood(5000, 1000, Duration::from_millis(50));
    assert!(matches!(xdp.edit(&batch), Err(DataplaneError::Io { .. })));
    assert_eq!((xdp.generation(), xdp.plan().unwrap().entries.len()), (Some(1), 1));
    let reading = xdp.limit(LimitId::Row(0)).unwrap();
    assert!(reading.rate_bps == 20_000_000 && reading.counters.unwrap().offered_packets > 0, "{reading:?}");

    std::fs::remove_dir(&taken).unwrap();
    xdp.edit(&batch).unwrap();
    assert_eq!((xdp.generation(), xdp.plan().unwrap().entries.len()), (Some(2), 502));
    assert!(matches!(xdp.limit(LimitId::Row(0)), Err(DataplaneError::UnknownLimit(_))), "it was removed");
    for row in [1, 2, 501] {
        assert_eq!(xdp.limit(LimitId::Row(row)).unwrap().rate_bps, entry.rate_bps);
    }
    down_at_the_end(&mut xdp, &network, &before);
}

#[test]
fn a_pair_is_in_generic_mode_together() {
    let Some(network) = Network::new("pair") else { return };
    // A bridge has no driver for XDP.
    for command in ["link add br0 type bridge", "link set right master br0", "link set br0 up"] {
        let command: Vec<&str> = ["ip"].into_iter().chain(command.split(' ')).collect();
        network.middle(&command);
    }
    let mut plan = bridge("20Mbit/s", "");
    plan.ports[1].device = Some("br0".to_owned());
    let mut xdp = open(&network);
    let applied = xdp.apply(plan).unwrap();
    assert!(applied.warnings.len() == 2 && applied.warnings[1].contains("left: in generic mode, too"), "{applied:?}");
    assert_eq!(network.interfaces().matches("xdpgeneric").count(), 2);
    assert!(network.ping());
    xdp.down().unwrap();
}
