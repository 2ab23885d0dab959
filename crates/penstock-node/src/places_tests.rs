// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of a network in a policy.

#![allow(clippy::unwrap_used)] // a test may panic

use super::*;
use penstock_policy::plan::{PlanClass, PlanEntry, PlanLink};

/// Two links: gold with web below it, rows with rows `a`, `b/c` and `web`; and the other one with a class of the same name.
fn plan() -> Plan {
    let none = wire::PST_NONE;
    let class = |path: &str, link_index: u16, limit_index: u32| {
        let wire = wire::Class { link_index, limit_index, ..wire::Class::default() };
        PlanClass { path: path.to_owned(), wire, ..PlanClass::default() }
    };
    let link = |name: &str| PlanLink { name: name.to_owned(), ..PlanLink::default() };
    let entry = PlanEntry { tuple: 0, rate: 1, rate_bps: 1_000_000, profile: 0, value: wire::Key::default() };
    let mut plan = Plan {
        links: vec![link("down"), link("up")],
        classes: vec![
            class("down/gold", 0, none),
            class("down/gold/web", 0, 0),
            class("down/rows", 0, none),
            class("up/gold", 1, 1),
            class("down/silver", 0, 2),
            class("down/silver/mail", 0, 3),
            class("down/gold/mail", 0, 4),
        ],
        profiles: vec![wire::Profile { class_index: 2, ..wire::Profile::default() }],
        limits: vec![wire::Limit::default(); 5],
        entries: vec![entry; 3],
        ..Plan::default()
    };
    ["a", "b/c", "web"].iter().for_each(|name| assert!(plan.names.push(name).is_ok()));
    plan
}

#[test]
fn a_class_is_found_at_any_depth_by_its_name_or_its_path_and_a_row_too() {
    let plan = plan();
    let found = |port: &str, class: &str| {
        let lent = Lent { port: port.to_owned(), class: class.to_owned(), rate_bps: None, safe_bps: None };
        find(&plan, &[(7, lent)].into()).remove(&7).unwrap()
    };
    for (port, class, expected) in [
        ("up", "gold", LimitId::Class(1)),
        ("down", "gold/web", LimitId::Class(0)),
        ("down", "silver", LimitId::Class(2)),
        ("down", "gold/mail", LimitId::Class(4)),
        ("down", "a", LimitId::Row(0)),
        ("down", "b/c", LimitId::Row(1)),
        ("down", "rows/a", LimitId::Row(0)),
        ("down", "rows/web", LimitId::Row(2)),
    ] {
        assert_eq!(found(port, class), Ok(expected), "{port} {class}");
    }
    for (port, class, expected) in [
        ("dwon", "a", "the policy has no link `dwon` (for class `a`); did you mean `down`?"),
        ("core", "a", "the policy has no link `core` (for class `a`); its links are down, up"),
        ("down", "silvr", "the link `down` has no class or row `silvr`; did you mean `silver`?"),
        (
            "up",
            "a",
            "the link `up` has no class or row `a`; a class of that name with a limit of its own, or a row of a limits file, would be right",
        ),
        ("down", "gold", "the class `down/gold` has no limit of its own; give it `limit: { rate: .. }` in the policy"),
        (
            "down",
            "mail",
            "2 limits of link `down` are called `mail`: down/silver/mail, down/gold/mail; call one of them so and no other",
        ),
        (
            "down",
            "web",
            "2 limits of link `down` are called `web`: down/gold/web, down/rows/web; call one of them so and no other",
        ),
    ] {
        assert_eq!(found(port, class), Err(expected.to_owned()), "{port} {class}");
    }
}

#[test]
fn a_limit_is_lent_once() {
    let lent = |class: &str| Lent { port: "down".to_owned(), class: class.to_owned(), rate_bps: None, safe_bps: None };
    let found = find(&plan(), &[(1, lent("rows/a")), (2, lent("a")), (3, lent("silver"))].into());
    assert_eq!((&found[&1], &found[&3]), (&Ok(LimitId::Row(0)), &Ok(LimitId::Class(2))));
    assert_eq!(found[&2], Err("`down/rows/a` is lent twice, as `rows/a` and as `a`".to_owned()));
}
