// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of a replica: over real ports, with nodes that are streams.

#![allow(clippy::unwrap_used)] // a test may panic

mod support;

use penstock_api::v1;
use penstock_controller::Settings;
use penstock_controller::store::Store;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeSet;
use support::etcd::Etcd;
use support::replica::Running;
use support::scrape::Series;
use support::world::{FAIR, SECOND, World, tenant};

const DOCS: &str = include_str!("../../../docs/howto/controller.md");
const MBIT: u64 = 1_000_000;

/// Two nodes; two aggregates at each of them, and one more than metrics tell of.
const NETWORK: &str = "penstock-network: 1
ports:
  - { name: gw1-up, switch: gw1, rate: 1Gbit/s }
  - { name: gw2-up, switch: gw2, rate: 1Gbit/s }
classes:
  - { name: t7-gw1, paths: [[gw1-up]] }
  - { name: t7-gw2, paths: [[gw2-up]] }
  - { name: t8-gw1, paths: [[gw1-up]] }
  - { name: t9-gw2, paths: [[gw2-up]] }
aggregates:
  - { name: t7, rate: 300Mbit/s, classes: [t7-gw1, t7-gw2] }
  - { name: t8, rate: 80Mbit/s, classes: [t8-gw1] }
  - { name: t9, rate: 90Mbit/s, classes: [t9-gw2] }
";

fn has(series: &Series, expected: &[(&str, u32)]) {
    for (name, value) in expected {
        assert_eq!(series.get(name), Some(f64::from(*value)), "{name} in {series:#?}");
    }
}

async fn embedded(folder: &tempfile::TempDir) -> Store {
    Store::embedded(folder.path()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_leader_knows_and_does_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let mut replica = Running::start("c1", embedded(&folder).await, 2).await;
    let series = replica.wait("it leads", |series| series.get("epoch_term") == Some(1.0)).await;
    has(&series, &[("leading", 1), ("leadership_changes_total", 1), ("lease_seconds", 5), ("nodes", 0)]);
    has(&series, &[("build_info{version=\"0.1.0\",replica=\"c1\"}", 1), ("aggregate_series_max", 2)]);
    has(&series, &[("network_revision", 0), ("kept_revision", 0), ("allocation_seconds_count", 0)]);

    puts_are_counted(&mut replica).await;
    let series = replica.wait("it is kept", |series| series.get("kept_revision") == Some(1.0)).await;
    has(&series, &[("network_revision", 1), ("nodes", 2), ("state_nodes{state=\"absent\"}", 2), ("aggregates", 3)]);
    assert!(series.get("learning_seconds").unwrap() > 0.0, "neither has come");

    nodes_are_counted(&mut replica).await;
    replica.stop().await;
    // Whoever comes after it finds the store free.
    let next = Running::start("c1", embedded(&folder).await, 2).await;
    let series = next.wait("it leads", |series| series.get("kept_revision") == Some(1.0)).await;
    has(&series, &[("epoch_term", 2), ("puts_total", 0), ("leadership_changes_total", 1)]);
    next.stop().await;
}

async fn puts_are_counted(replica: &mut Running) {
    use v1::put_network_reply::Outcome;
    let is_change = |outcome: &Outcome| matches!(outcome, Outcome::Change(_));
    assert!(is_change(&replica.put(NETWORK, 0, true).await.unwrap()));
    let series = replica.scrape().await;
    has(&series, &[("puts_total", 0), ("refused_puts_total{reason=\"file\"}", 0)]);
    assert!(!is_change(&replica.put("penstock-network: 1\nports: nobody\n", 0, false).await.unwrap()));
    assert!(is_change(&replica.put(NETWORK, 0, false).await.unwrap()));
    assert_eq!(replica.put(NETWORK, 9, false).await.unwrap_err().code(), tonic::Code::FailedPrecondition);
    let series = replica.scrape().await;
    has(&series, &[("puts_total", 1), ("store_errors_total", 0)]);
    let refused = [("file", 1), ("revision", 1), ("certificate", 0), ("store", 0)];
    for (reason, count) in refused {
        has(&series, &[(&format!("refused_puts_total{{reason=\"{reason}\"}}"), count)]);
    }
}

async fn nodes_are_counted(replica: &mut Running) {
    assert!(replica.attend(None).await.is_err() && replica.attend(Some(("", ""))).await.is_err());
    let mut nodes = Vec::new();
    for (node, offered_bps, passed_bps) in [("gw1", 40 * MBIT, 24 * MBIT), ("gw2", 0, 0)] {
        nodes.push(tokio::spawn(replica.attend(Some((node, node))).await.unwrap().go_on(offered_bps, passed_bps)));
    }
    let is_settled = |series: &Series| {
        series.get("state_nodes{state=\"current\"}") == Some(2.0)
            && series.get("learning_seconds") == Some(0.0)
            && series.get("aggregate_demand_bytes_per_second{aggregate=\"t7\"}") == Some(5e6)
            && series.get("aggregate_held_bytes_per_second{aggregate=\"t8\"}") == Some(1e7)
    };
    let series = replica.wait("both have what they are lent", is_settled).await;
    has(&series, &[("nodes", 2), ("attending_nodes", 2), ("state_nodes{state=\"absent\"}", 0), ("lent_limits", 4)]);
    has(&series, &[("streams_total", 2), ("refused_streams_total{reason=\"registration\"}", 2)]);
    has(&series, &[("refused_streams_total{reason=\"not_leading\"}", 0)]);
    has(&series, &[("cut_off_streams_total{reason=\"orders\"}", 0), ("cut_off_streams_total{reason=\"reports\"}", 0)]);
    has(&series, &[("aggregate_rate_bytes_per_second{aggregate=\"t7\"}", 37_500_000)]);
    has(&series, &[("aggregate_passed_bytes_per_second{aggregate=\"t7\"}", 3_000_000)]);
    let held = series.get("aggregate_held_bytes_per_second{aggregate=\"t7\"}").unwrap();
    assert!(held > 1e7 && held <= 3.75e7, "{held}");
    assert_eq!(series.count("aggregate_rate_bytes_per_second"), 2, "t9 is left out");
    assert!(series.get("aggregate_series_left_out_total").unwrap() > 0.0);
    let counted = ["reports_total", "orders_total", "order_limits_total", "allocation_seconds_count"];
    let [reports, orders, limits, allocations] = counted.map(|name| series.get(name).unwrap());
    assert!(reports >= 4.0 && orders >= 4.0 && limits >= 4.0 && allocations >= 1.0, "{series:#?}");
    assert!(series.get("allocation_seconds_sum").unwrap() > 0.0 && series.get("epoch_number").unwrap() >= 2.0);
    let request = v1::GetStandingRequest { with_rates: true, ..Default::default() };
    let standing = replica.client.get_standing(request).await.unwrap().into_inner();
    assert_eq!((standing.limits, standing.nodes_attending), (4, 2), "as `network status` has it");
    let in_docs = DOCS.split('`').map(|code| code.split('{').next().unwrap()).filter(|name| {
        // Of a node: whether a controller hears it.
        name.starts_with("penstock_controller_") && *name != "penstock_controller_attending"
    });
    let told: BTreeSet<&str> = series.names.iter().map(String::as_str).collect();
    assert_eq!(in_docs.collect::<BTreeSet<_>>(), told, "all that is told is in the docs, and nothing else");

    names_are_counted(replica).await;

    // One goes; the other one goes on.
    nodes.pop().unwrap().abort();
    let later = replica.wait("it is missed", |series| series.get("attending_nodes") == Some(1.0)).await;
    has(&later, &[("nodes", 2), ("state_nodes{state=\"silent\"}", 1)]);
    assert!(later.get("reports_total").unwrap() > reports && later.get("orders_total").unwrap() > orders);
    nodes.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Another machine with gw1's name, then gw1 with another stream.
async fn names_are_counted(replica: &mut Running) {
    has(&replica.scrape().await, &[("cut_off_streams_total{reason=\"replaced\"}", 0)]);
    assert!(replica.attend(Some(("gw1", "other"))).await.is_err());
    has(&replica.scrape().await, &[("refused_streams_total{reason=\"name\"}", 1), ("streams_total", 2)]);
    tokio::spawn(replica.attend(Some(("gw1", "gw1"))).await.unwrap().go_on(0, 0));
    has(&replica.scrape().await, &[("cut_off_streams_total{reason=\"replaced\"}", 1), ("streams_total", 3)]);
    has(&replica.scrape().await, &[("refused_streams_total{reason=\"name\"}", 1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_lead_tells_what_it_counts_alone() {
    let mut etcd = Etcd::one().await;
    let first = Running::start("c1", etcd.store().await, 10).await;
    first.wait("it leads", |series| series.get("epoch_term").is_some()).await;
    let mut second = Running::start("c2", etcd.store().await, 10).await;
    assert!(second.attend(Some(("gw1", "gw1"))).await.is_err());
    second.put(NETWORK, 0, false).await.unwrap();
    let series = second.wait("it has heard of it", |series| series.get("network_revision") == Some(1.0)).await;
    has(&series, &[("leading", 0), ("leadership_changes_total", 0), ("puts_total", 1), ("streams_total", 0)]);
    has(&series, &[("refused_streams_total{reason=\"not_leading\"}", 1)]);
    let of_leaders = ["epoch_term", "kept_revision", "nodes", "lent_limits", "learning_seconds", "aggregates"];
    of_leaders.iter().for_each(|name| assert_eq!(series.get(name), None, "{name}"));
    has(&first.wait("it is kept", |series| series.get("kept_revision") == Some(1.0)).await, &[("puts_total", 0)]);

    first.stop().await;
    let series = second.wait("it leads", |series| series.get("kept_revision") == Some(1.0)).await;
    has(&series, &[("leading", 1), ("leadership_changes_total", 1)]);
    etcd.kill(0);
    let is_lost = |series: &Series| {
        series.get("leading") == Some(0.0) && series.get("store_errors_total").is_some_and(|count| count > 0.0)
    };
    second.client.get_network(v1::GetNetworkRequest {}).await.unwrap_err();
    has(&second.wait("it leads no longer", is_lost).await, &[("leadership_changes_total", 2)]);
    second.stop().await;
}

#[test]
fn a_reading_is_what_the_standing_says() {
    let mut world = World::new(tenant(3, 300 * MBIT), Settings::default(), FAIR, Xoshiro256PlusPlus::seed_from_u64(1));
    world.nodes[1].demand_bps = 200 * MBIT;
    let (mut is_learning, mut silent) = (false, 0);
    let mut step = 0;
    world.run(12 * SECOND, |world| {
        step += 1;
        world.nodes[2].is_cut = step > 400;
        let (leader, now_ns) = (world.leader.as_ref().unwrap(), world.now_ns);
        let request = v1::GetStandingRequest { with_rates: true, ..Default::default() };
        let (standing, reading) = (leader.standing(&request, now_ns), leader.reading(1, now_ns));
        let epoch = standing.epoch.unwrap();
        assert_eq!((reading.term, reading.number, reading.revision), (epoch.term, epoch.number, standing.revision));
        assert_eq!((reading.nodes, reading.attending), (standing.nodes_total, standing.nodes_attending));
        assert_eq!((reading.limits, reading.learning_ns), (standing.limits, standing.learning_ns));
        assert_eq!(reading.limits_without_rate, standing.limits_without_rate);
        for (state, count) in reading.states {
            assert_eq!(standing.nodes.iter().filter(|node| node.state() == state).count() as u64, count, "{state:?}");
        }
        let (of, told) = (&reading.aggregates, &standing.aggregates);
        assert_eq!((of[0].name.as_str(), of[0].rate_bps), (told[0].name.as_str(), told[0].rate_bps));
        assert_eq!((of[0].held_bps, of[0].demand_bps), (told[0].held_bps, told[0].demand_bps));
        assert_eq!(of[0].passed_bps, told[0].members.iter().map(|member| member.passed_bps).sum::<u64>());
        is_learning |= reading.learning_ns > 0;
        silent = silent.max(reading.states[3].1);
        assert_eq!((leader.reading(0, now_ns).aggregates.len(), reading.aggregates_total), (0, 1));
    });
    assert!(is_learning && silent == 1, "{silent}");
}
