// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who attends under which name, and under which numbers its limits go.

#![allow(clippy::unwrap_used)]

mod support;

use penstock_api::v1;
use penstock_controller::Settings;
use penstock_controller::core::{Core, Over, Session};
use support::world::{MS, SECOND, tenant};

fn leader() -> Core {
    let mut core = Core::new(1, Settings::default(), SECOND);
    core.set_network(1, tenant(2, 1_000_000));
    core
}

fn report(sequence: u64, machine: Option<&str>) -> v1::Report {
    let registration =
        |machine: &str| v1::Registration { node: "gw0".into(), machine: machine.into(), ..v1::Registration::default() };
    v1::Report {
        sequence,
        registration: machine.map(registration),
        wants_all: machine.is_some(),
        ..v1::Report::default()
    }
}

/// Where orders go at this moment.
fn told(core: &mut Core, now_ns: u64) -> Vec<Session> {
    core.turn(now_ns).into_iter().map(|(session, _)| session).collect()
}

fn problems(core: &Core, now_ns: u64) -> Vec<String> {
    let standing = core.standing(&v1::GetStandingRequest::default(), now_ns);
    standing.nodes.into_iter().find(|node| node.node == "gw0").unwrap().problems
}

#[test]
fn a_second_machine_of_one_name_is_refused_until_the_first_ones_lease_is_over() {
    let mut core = leader();
    core.report(1, &report(1, Some("a")), SECOND);
    assert_eq!(told(&mut core, SECOND), [1]);
    core.report(2, &report(1, Some("b")), 2 * SECOND);
    assert_eq!(core.take_over(), [(2, Over::Taken("gw0".to_owned()))]);
    core.report(2, &report(2, None), 2 * SECOND);
    assert!(told(&mut core, 2 * SECOND).is_empty());
    core.report(1, &report(2, None), 2 * SECOND);
    assert_eq!(told(&mut core, 2 * SECOND), [1]);
    assert!(problems(&core, 2 * SECOND)[0].contains("another machine"));
    // The first one, on another stream.
    core.report(3, &report(1, Some("a")), 2 * SECOND + MS);
    assert_eq!(core.take_over(), [(1, Over::Replaced)]);
    assert_eq!(told(&mut core, 2 * SECOND + MS), [3]);
    // It leaves; what it has it may have for a lease.
    core.leave(3);
    core.report(4, &report(1, Some("b")), 7 * SECOND);
    assert_eq!(core.take_over(), [(4, Over::Taken("gw0".to_owned()))]);
    core.report(5, &report(1, Some("b")), 7 * SECOND + 100 * MS);
    assert_eq!(core.take_over(), []);
    assert_eq!(told(&mut core, 7 * SECOND + 100 * MS), [5]);
    assert!(problems(&core, 7 * SECOND + 100 * MS).is_empty());
}

#[test]
fn numbers_are_used_again_when_many_are_out_of_use() {
    let mut core = leader();
    core.report(1, &report(1, Some("a")), SECOND);
    core.turn(SECOND);
    core.report(1, &report(2, None), 3 * SECOND);
    core.turn(3 * SECOND);
    let mut ended = Vec::new();
    let mut sequence = 2;
    for round in 0..3_000 {
        let mut network = tenant(2, 1_000_000);
        network.classes[0].name = format!("t{round}");
        core.set_network(round + 2, network);
        // When it has learned what nodes have.
        let now_ns = 3 * SECOND + round * MS;
        let over = core.take_over();
        let session = 1 + ended.len() as u64;
        if over.is_empty() {
            sequence += 1;
            core.report(session, &report(sequence, None), now_ns);
        } else {
            ended.extend(over);
            sequence = 1;
            core.report(session + 1, &report(1, Some("a")), now_ns);
        }
        for (_, order) in core.turn(now_ns) {
            assert!(order.limits.iter().all(|lent| lent.limit <= 1_002), "{order:?}");
            assert!(order.limits.iter().any(|lent| lent.class == format!("t{round}")), "{order:?}");
        }
    }
    assert_eq!(ended, [(1, Over::Renumbered), (2, Over::Renumbered)]);
}
