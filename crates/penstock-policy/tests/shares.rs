// SPDX-License-Identifier: MIT OR Apache-2.0
//! What trees of shares and their users become in a plan.

#![allow(clippy::cast_possible_truncation)] // small numbers

use penstock_algo::{rate, share, wire};
use penstock_policy::compile::compile;
use penstock_policy::limits_file::LimitsText;
use penstock_policy::summary::summarize;
use penstock_policy::terms::rate_code;
use penstock_policy::{Errors, Plan, Policy};
use proptest::prelude::*;

const NONE: u32 = wire::PST_NONE;
const MS: u64 = 1_000_000 * rate::TICKS_PER_NSEC;

fn parse(classes: &str) -> Result<Policy, Errors> {
    let head = "penstock: 1\nports: { lan: { rate: 1Gbit/s } }\nlinks:\n  - name: down\n    port: lan\n    unmatched: drop\n    classes:\n";
    Policy::parse("p.yaml", &format!("{head}{classes}\n"))
}

fn compile_policy(policy: &Policy, csv: &str) -> Result<Plan, Errors> {
    compile(policy, |name| Ok(LimitsText { name: name.to_owned(), bytes: csv.as_bytes().to_vec() }))
}

fn plan_of(classes: &str, csv: &str) -> Plan {
    let result = parse(classes).and_then(|policy| compile_policy(&policy, csv));
    result.unwrap_or_else(|errors| panic!("{errors}"))
}

fn paths(plan: &Plan) -> Vec<&str> {
    plan.classes.iter().map(|class| class.path.as_str()).collect()
}

/// Children of a place, as the lists have them.
fn children(plan: &Plan, place: u32) -> Vec<u32> {
    let next = |index: u32| plan.places.get(index as usize).map(|place| place.next_sibling);
    let first = plan.places[place as usize].first_child;
    std::iter::successors(Some(first), |&index| next(index)).take_while(|&index| index != NONE).collect()
}

const TREE: &str = "
      - name: gold
        match: [ { dst: 10.1.0.0/16 }, { dst: \"2001:db8:1::/48\" } ]
        weight: 2
        guarantee: 200Mbit/s
        ceiling: 500Mbit/s
        children:
          - { name: web, match: [ { dst: 10.1.0.0/16, proto: tcp, dport: 443 } ], guarantee: 50400kbit/s }
          - name: rest
            children:
              - { name: mail, match: [ { dst: 10.1.0.0/16, proto: tcp, dport: 25 } ], weight: 7, ceiling: 8Mbit/s }
      - { name: web, match: [ { dst: 10.2.0.0/16 } ], limit: { rate: 10Mbit/s } }
      - { name: small, match: [ { dst: 10.3.0.0/16 } ], guarantee: 100kbit/s }";

#[test]
fn a_tree_becomes_places() {
    let plan = plan_of(TREE, "");
    let expected = [
        "down/gold",
        "down/gold/web",
        "down/gold/rest",
        "down/gold/rest/mail",
        "down/gold/other",
        "down/web",
        "down/small",
    ];
    assert_eq!(paths(&plan), expected);
    let parents: Vec<Option<u32>> = plan.classes.iter().map(|class| class.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(0), Some(2), Some(0), None, None]);
    assert_eq!(plan.places.len(), 8, "seven classes and a link");
    let of_places: Vec<u32> = plan.places.iter().map(|place| place.parent).collect();
    assert_eq!(of_places, [7, 0, 0, 2, 0, 7, 7, NONE]);
    assert_eq!(plan.places.iter().map(|place| place.link).collect::<Vec<_>>(), [7; 8]);
    assert_eq!((children(&plan, 7), children(&plan, 0), children(&plan, 2)), (vec![0, 5, 6], vec![1, 2, 4], vec![3]));
    assert!([1, 3, 4, 5, 6].iter().all(|&leaf| children(&plan, leaf).is_empty()));
    // Bytes a second; the weight is the guarantee in Mbit/s, to the nearest and 1 at least, unless it is given.
    let terms =
        plan.places.iter().map(|place| (place.terms.guarantee_Bps, place.terms.ceiling_Bps, place.terms.weight));
    let free = 1 << 36;
    let expected = [
        (25_000_000, 62_500_000, 2),
        (6_300_000, free, 50),
        (0, free, 1),
        (0, 1_000_000, 7),
        (0, free, 1),
        (0, free, 1),
        (12_500, free, 1),
        (0, 125_000_000, 1),
    ];
    assert_eq!(terms.collect::<Vec<_>>(), expected);
    // A leaf has a profile, with its class and the packets of its port; nobody else has one.
    for (index, place) in plan.places.iter().enumerate() {
        let is_leaf = [1, 3, 4, 5, 6].contains(&index);
        assert_eq!(place.profile != NONE, is_leaf, "{index}");
        assert_eq!((place.users, place.slice, place.first_user, place.user_count), (NONE, NONE, NONE, 0));
        let Some(profile) = plan.profiles.get(place.profile as usize) else { continue };
        let written = (profile.class_index, profile.mtu_bytes, profile.burst_ticks, profile.excess_ticks);
        assert_eq!(written, (index as u32, 1514, 35 * MS / 2, 25 * MS));
        assert_eq!(u32::from(profile.red_action), wire::PST_ACTION_DROP);
    }
    // Classes of one name are other classes: their packets wait apart.
    assert_ne!(plan.places[1].owner, plan.places[5].owner);
    assert_eq!(plan.classes[5].limit_bps, Some(10_000_000), "a limit stands in front of the share");
    assert_eq!((plan.user_count, plan.slices.len(), plan.sketch.rows), (0, 0, 0));
}

#[test]
fn what_no_child_takes_is_others() {
    let plan = plan_of(TREE, "");
    let other = plan.rules.iter().filter(|rule| rule.class_index == 4).count();
    assert_eq!((other, plan.rules.len()), (2, 6));
    assert!(plan.rules.iter().all(|rule| rule.class_index != 0), "a class with children takes nothing itself");
    // What a child says in the same words is the child's; when it says all of it there is no other.
    let classes =
        "      - { name: a, match: [ { vlan: 1 }, { vlan: 2 } ], children: [ { name: x, match: [ { vlan: 2 } ] } ] }";
    let plan = plan_of(classes, "");
    assert_eq!((paths(&plan), plan.rules.len()), (vec!["down/a", "down/a/x", "down/a/other"], 2));
    let plan = plan_of(&classes.replace("{ vlan: 1 }, ", ""), "");
    assert_eq!(paths(&plan), ["down/a", "down/a/x"]);
}

#[test]
fn a_link_that_shares_nothing_has_no_places() {
    let plan = plan_of("      - { name: a, match: [ {} ], limit: { rate: 1Mbit/s } }", "");
    assert!(plan.places.is_empty());
    let text = "penstock: 1\nports: { a: { rate: 1Gbit/s }, b: { rate: 1Gbit/s } }\nlinks:\n\
        - { name: plain, port: a, classes: [ { name: x, match: [ {} ], limit: { rate: 1Mbit/s } } ] }\n\
        - { name: shared, port: b, classes: [ { name: y, match: [ {} ], weight: 1 }, { name: z, match: [ { vlan: 1 } ] } ] }\n";
    let plan = Policy::parse("p.yaml", text).and_then(|policy| compile_policy(&policy, "")).unwrap();
    // x, y, z, plain, shared
    let places: Vec<_> = plan.places.iter().map(|place| (place.parent, place.link, place.profile != NONE)).collect();
    assert_eq!(places, [(NONE, NONE, false), (4, 4, true), (4, 4, true), (NONE, NONE, false), (NONE, 4, false)]);
    assert_eq!((children(&plan, 4), plan.places[3].first_child), (vec![1, 2], NONE));
}

#[test]
fn terms_hold_below_until_another_class_says_otherwise() {
    let plan = plan_of(
        "
      - name: a
        on_excess: shape
        horizon: 50ms
        burst: 5ms
        children:
          - { name: x, match: [ { vlan: 1 } ], backlog: 64KB }
          - { name: y, match: [ { vlan: 2 } ], on_excess: mark, early_drop: 50% }
          - name: b
            mode: shadow
            horizon: 70ms
            children:
              - { name: u, match: [ { vlan: 3 } ] }
              - { name: v, match: [ { vlan: 4 } ], mode: enforce, excess: 1KB, ce_threshold: 2ms }
      - { name: c, match: [ {} ] }",
        "",
    );
    let profile = |path: &str| {
        let index = paths(&plan).iter().position(|known| *known == path).unwrap();
        plan.profiles[plan.places[index].profile as usize]
    };
    let (x, y) = (profile("down/a/x"), profile("down/a/y"));
    let of_x = (u32::from(x.red_action), x.hold_ticks, x.burst_ticks, x.excess_ticks, x.hold_bytes);
    assert_eq!(of_x, (wire::PST_ACTION_HOLD, 50 * MS, 5 * MS, 25 * MS, 64_000));
    let of_y = (u32::from(y.yellow_action), u32::from(y.red_action), y.hold_ticks, y.burst_ticks, y.red_max_q32);
    assert_eq!(of_y, (wire::PST_ACTION_MARK, wire::PST_ACTION_DROP, 0, 5 * MS, 1 << 31));
    let (u, v) = (profile("down/a/b/u"), profile("down/a/b/v"));
    assert_eq!((u.hold_ticks, u32::from(u.flags)), (70 * MS, wire::PST_PROFILE_SHADOW));
    assert_eq!((v.hold_ticks, v.flags, v.excess_bytes, v.ce_ns), (70 * MS, 0, 1_000, 2_000_000));
    assert_eq!(profile("down/c").burst_ticks, 35 * MS / 2);
}

#[test]
fn a_delay_holds_below() {
    let plan = plan_of(
        "
      - name: a
        delay: 1ms
        children:
          - { name: x, match: [ { vlan: 1 } ] }
          - { name: y, match: [ { vlan: 2 } ], delay: 0ms }
          - { name: b, children: [ { name: u, match: [ { vlan: 3 } ] }, { name: v, match: [ { vlan: 4 } ], delay: 3ms } ] }
      - { name: c, match: [ {} ] }",
        "",
    );
    let delays = plan.classes.iter().map(|class| plan.lines[usize::from(class.wire.line)].delay_ns / 1_000_000);
    assert_eq!(delays.collect::<Vec<_>>(), [1, 1, 0, 1, 1, 3, 0]);
}

/// Bits of a mask that belong to the family of addresses: those of the other must not be among them.
fn address_words(mask: &wire::Key) -> (u64, u64) {
    (mask.words[0], mask.words[2] | mask.words[3] | mask.words[4])
}

#[test]
fn users_have_two_tuples_a_slice_or_entries() {
    let policy = parse(
        "
      - name: a
        ceiling: 400Mbit/s
        children:
          - { name: homes, match: [ { vlan: 1 } ], users: { key: dst, fair: sketch } }
          - { name: flows, match: [ { vlan: 2 } ], users: { key: five_tuple, fair: tree, entries: 9 } }
          - { name: lanes, match: [ { vlan: 3 } ], ceiling: 40Mbit/s, users: { key: [vni, src], fair: sketch, drop: periodic } }
      - { name: b, match: [ { dst: 10.0.0.0/8 } ], limits: { file: rows.csv } }
      - { name: c, match: [ {} ], users: { key: teid, fair: tree } }",
    );
    let policy = policy.unwrap_or_else(|errors| panic!("{errors}"));
    let plan = compile_policy(&policy, "name,dst,rate\nx,10.0.0.1,1Mbit/s\n").unwrap();
    // a, homes, flows, lanes, b, c, the link
    let place = |index: usize| plan.places[index];
    let first = place(1).users;
    assert_eq!(plan.tuples.len() - 8, summarize(&policy, &plan).tuples, "none of them is looked at");
    assert_eq!([2, 3, 5].map(|index| place(index).users), [first + 2, first + 4, first + 6]);
    assert_eq!([0, 4, 6].map(|index| place(index).users), [NONE; 3]);
    assert_eq!(plan.tuples.len() as u32, first + 8);
    let links = plan.links.iter().map(|link| link.wire.tuple_first + link.wire.tuple_count);
    let classes = plan.classes.iter().map(|class| class.wire.tuple_first + class.wire.tuple_count);
    assert!(links.chain(classes).all(|end| end <= first), "nobody looks a packet up by them");
    let mask = |tuple: u32| plan.tuples[tuple as usize].mask;
    let low = u64::from(u32::MAX);
    assert_eq!(address_words(&mask(first)), (low, 0), "an IPv4 destination, and nothing of an IPv6 source");
    assert_eq!((mask(first + 1).words[0], mask(first + 1).words[2]), (0, 0));
    assert_eq!((mask(first + 1).words[3], mask(first + 1).words[4]), (u64::MAX, u64::MAX));
    assert_eq!(address_words(&mask(first + 2)), (u64::MAX, 0));
    assert_eq!([0, 2, 3, 4].map(|word| mask(first + 3).words[word]), [u64::MAX; 4]);
    let transport = u64::from(wire::PST_KEY_HAS_PORTS | wire::PST_KEY_FAMILY) << 56 | 0xff << 48 | low;
    assert_eq!((mask(first + 2).words[1], mask(first + 3).words[1]), (transport, transport));
    let vni = 0x00ff_ffff << 32;
    assert_eq!((mask(first + 4).words[0], mask(first + 4).words[7]), (low << 32, vni));
    assert_eq!([0, 2, 3, 7].map(|word| mask(first + 5).words[word]), [u64::MAX, u64::MAX, 0, vni]);
    assert_eq!(mask(first + 6), mask(first + 7), "what has no addresses has one tuple, twice");
    for tuple in &plan.tuples[first as usize..] {
        let words = (0..8).filter(|&word| tuple.mask.words[word] != 0).fold(0, |bits, word| bits | 1 << word);
        assert_eq!((tuple.words, tuple.salt, u32::from(tuple.kind)), (words, 0, wire::PST_TUPLE_LIMITS));
    }
    // Entries lie behind the places, each class's with one more node.
    let entries = [2, 5].map(|index| (place(index).first_user, place(index).user_count, place(index).slice));
    assert_eq!(entries, [(7, 16, NONE), (24, 16_384, NONE)]);
    assert_eq!(plan.user_count, 17 + 16_385);
    // Slices: what the class can get at most.
    assert_eq!([1, 3].map(|index| (place(index).slice, place(index).user_count)), [(0, 0), (1, 0)]);
    let slice = |index: usize| (plan.slices[index].nominal_Bps, plan.slices[index].flags, plan.slices[index].scale);
    assert_eq!(slice(0), (50_000_000, wire::PST_SLICE_LIMITERS, share::slice_scale(50_000_000, 23)));
    assert_eq!(slice(1), (5_000_000, wire::PST_SLICE_PERIODIC, share::slice_scale(5_000_000, 23)));
    assert!(plan.slices.iter().all(|slice| (slice.tau_shift, slice.epoch_shift) == (23, 20)));
    assert!(plan.slices.iter().all(|slice| slice.threshold == wire::pst_threshold_state::default()));
    assert_eq!((plan.sketch.rows, plan.sketch.column_bits, plan.sketch.seeds), (3, 11, [0; 4]));
}

#[test]
fn a_policy_may_have_another_sketch() {
    let text = "penstock: 1\nsketch: { rows: 4, columns: 65536, tau: 1.5ms }\nports: { a: { rate: 1Gbit/s } }\nlinks: [ { name: down, port: a, classes: \
                [ { name: x, match: [ {} ], users: { key: dst, fair: sketch } } ] } ]";
    let policy = Policy::parse("p.yaml", text).unwrap();
    let plan = compile_policy(&policy, "").unwrap();
    assert_eq!((plan.sketch.rows, plan.sketch.column_bits), (4, 16));
    let shares = summarize(&policy, &plan).shares.unwrap();
    // As many limiters as filters.
    assert_eq!((shares.nodes, shares.slices, shares.sketch_words), (2, 1, 8 << 16));
    assert_eq!(shares.bytes, 2 * 128 + 2 * 64 + 128 + (8 << 16) * 8);
    // 1.5 ms are nearer to 2^21 ns than to 2^20, as powers go.
    assert_eq!((plan.slices[0].tau_shift, plan.slices[0].scale), (21, share::slice_scale(125_000_000, 21)));
}

#[test]
fn users_of_a_sketch_may_be_dropped_by_chance_and_cannot_wait() {
    let plan = plan_of(
        "      - { name: x, match: [ { vlan: 1 } ], users: { key: dst, fair: sketch, drop: chance } }
      - { name: y, match: [ { vlan: 2 } ], on_excess: shape, horizon: 50ms, users: { key: dst, fair: sketch } }
      - { name: z, match: [ { vlan: 3 } ], burst: 9ms, excess: 1ms, users: { key: dst, fair: sketch, drop: limiter } }
",
        "",
    );
    assert_eq!(plan.slices.iter().map(|slice| slice.flags).collect::<Vec<_>>(), [0, 2, 2]);
    let profile = |class: usize| &plan.profiles[plan.places[class].profile as usize];
    let windows = [0, 1, 2]
        .map(|class| [profile(class).burst_ticks, profile(class).excess_ticks].map(|ticks| ticks / 1_024_000_000));
    assert_eq!(windows, [[4, 4], [4, 4], [9, 1]]);
    assert!(
        (0..3).all(
            |class| u32::from(profile(class).red_action) == wire::PST_ACTION_DROP && profile(class).hold_ticks == 0
        )
    );
}

#[test]
fn rows_of_a_users_file_are_entries_with_weights() {
    let csv = "ceiling,name,dst,weight\n5Mbit/s,a,10.0.0.1,\n,b,2001:db8::1,3\n,c,10.0.0.2,3\n";
    let plan = plan_of(
        "      - { name: big, match: [ { vlan: 1 } ] }
      - { name: homes, match: [ { dst: 10.0.0.0/8 }, { dst: \"2001:db8::/32\" } ], users: { key: dst, fair: sketch, file: u.csv }, mode: shadow }",
        csv,
    );
    let rows: Vec<_> = plan.entries.iter().map(|entry| (entry.rate_bps, entry.rate)).collect();
    let largest = rate::MAX_BPS * 8;
    let expected = [5_000_000, largest, largest].map(|rate_bps| (rate_bps, rate_code(rate_bps)));
    assert_eq!(rows, expected);
    let profile = |index: usize| plan.profiles[usize::from(plan.entries[index].profile)];
    assert_eq!([0, 1, 2].map(|index| profile(index).weight), [1, 3, 3]);
    assert_eq!(plan.entries[1].profile, plan.entries[2].profile);
    let one = profile(0);
    assert_eq!((one.class_index, one.burst_ticks, one.excess_ticks, one.meter), (1, 35 * MS / 2, 25 * MS, 0));
    assert_eq!((u32::from(one.red_action), u32::from(one.flags)), (wire::PST_ACTION_DROP, wire::PST_PROFILE_SHADOW));
    // They are looked up after the class, by the bits that tell users apart.
    let (class, users) = (plan.classes[1].wire, plan.places[1].users as usize);
    let own = class.tuple_first as usize..(class.tuple_first + class.tuple_count) as usize;
    assert!(plan.entries.iter().all(|entry| own.contains(&(entry.tuple as usize))));
    assert_eq!(plan.tuples[plan.entries[0].tuple as usize].mask, plan.tuples[users].mask);
    assert_eq!(plan.tuples[plan.entries[1].tuple as usize].mask, plan.tuples[users + 1].mask);
    assert!(!plan.warnings.iter().any(|warning| warning.contains("add up")), "ceilings may be as many as they like");
}

#[test]
fn users_of_what_no_class_takes() {
    let text = "penstock: 1\nports: { a: { rate: 1Gbit/s } }\nlinks: [ { name: down, port: a, unmatched: { class: rest/homes }, classes: \
                [ { name: x, match: [ { vlan: 1 } ] }, { name: rest, children: [ { name: homes, users: { key: dst, fair: tree, file: u.csv } } ] } ] } ]";
    let plan = Policy::parse("p.yaml", text)
        .and_then(|policy| compile_policy(&policy, "name,dst,weight\na,10.0.0.1,2\n"))
        .unwrap();
    assert_eq!((plan.links[0].wire.unmatched_class, plan.classes[2].wire.tuple_count), (2, 1));
    assert_eq!(plan.links[0].wire.tuple_count, 1, "a user's row is no match");
}

#[test]
fn more_entries_than_memory_are_refused() {
    let classes = |count: u32| {
        let of = |index: u32| {
            format!(
                "      - {{ name: c{index}, match: [ {{ vlan: {index} }} ], users: {{ key: dst, fair: tree, entries: 2097152 }} }}\n"
            )
        };
        parse(&(1..=count).map(of).collect::<String>()).and_then(|policy| compile_policy(&policy, ""))
    };
    assert_eq!(classes(1).unwrap().user_count, 2_097_153);
    let errors = classes(2).unwrap_err().render(false);
    assert!(
        errors.starts_with("p.yaml:9:17: error: the users of all classes up to here have 4194306 entries"),
        "{errors}"
    );
}

/// The example of the format's description, whole.
#[test]
fn shares_users_limits_and_rows_on_one_link() {
    let text = r#"
penstock: 1
name: edge-1
ports:
  wan: { device: eth0, rate: 10Gbit/s }
  lan: { device: eth1, rate: 10Gbit/s, mtu: 9000 }
forward: [[wan, lan]]
links:
  - name: down
    port: lan
    rate: 10Gbit/s
    unmatched: pass
    classes:
      - name: gold
        match: [ { dst: 10.1.0.0/16 }, { dst: "2001:db8:1::/48" } ]
        weight: 2
        guarantee: 2Gbit/s
        ceiling: 5Gbit/s
        children: [ { name: web, match: [ { dst: 10.1.0.0/16, proto: tcp } ], weight: 3 } ]
      - name: homes
        match: [ { dst: 10.2.0.0/16 } ]
        users: { key: dst, fair: sketch }
      - name: tenants
        limits: { file: tenants.csv }
      - name: voice
        match: [ { proto: udp, dport: 5060-5070, dscp: ef } ]
        limit: { rate: 100Mbit/s, burst: 17.5ms, excess: 25ms, on_excess: drop }
"#;
    let policy = Policy::parse("edge.yaml", text).unwrap_or_else(|errors| panic!("{errors}"));
    let plan = compile_policy(&policy, "name,dst,rate\na,10.3.0.0/16,1Gbit/s\n").unwrap();
    let expected = ["down/gold", "down/gold/web", "down/gold/other", "down/homes", "down/tenants", "down/voice"];
    assert_eq!(paths(&plan), expected);
    assert_eq!(children(&plan, 6), [0, 3, 4, 5]);
    assert_eq!((plan.slices.len(), plan.entries.len(), plan.limits.len()), (1, 1, 1));
    let summary = summarize(&policy, &plan);
    let shares: Vec<_> = summary.links[0].classes.iter().map(|class| class.share.clone().unwrap()).collect();
    assert_eq!((shares[0].weight, shares[0].ceiling_bps, &shares[0].terms), (2, Some(5_000_000_000), &None));
    assert_eq!(shares[3].users.as_deref(), Some("by dst, in a sketch"));
    assert_eq!(shares[5].terms.as_deref(), Some("burst 17.5ms, excess 25ms, drop"));
}

/// A class's children, each with children of its own.
#[derive(Debug, Clone)]
struct Node(Vec<Node>);

fn node() -> impl Strategy<Value = Node> {
    let leaf = Just(Node(Vec::new()));
    leaf.prop_recursive(7, 40, 4, |inner| proptest::collection::vec(inner, 0..4).prop_map(Node))
}

fn write(nodes: &[Node], path: &str, vlan: &mut u32, leaves: &mut Vec<String>) -> String {
    let one = |(index, Node(children)): (usize, &Node)| {
        let path = format!("{path}/c{index}");
        if children.is_empty() {
            *vlan += 1;
            leaves.push(path);
            return format!("{{ name: c{index}, match: [ {{ vlan: {vlan} }} ], weight: {vlan} }}");
        }
        format!("{{ name: c{index}, children: [ {} ] }}", write(children, &path, vlan, leaves))
    };
    nodes.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
}

proptest! {
    #[test]
    fn every_way_up_ends_at_the_link(links in proptest::collection::vec(proptest::collection::vec(node(), 1..4), 1..3)) {
        let (mut text, mut leaves) = ("penstock: 1\nports: { ".to_owned(), Vec::new());
        let ports: Vec<String> = (0..links.len()).map(|link| format!("p{link}: {{ rate: 1Gbit/s }}")).collect();
        text += &format!("{} }}\nlinks:\n", ports.join(", "));
        for (link, classes) in links.iter().enumerate() {
            let classes = write(classes, &format!("l{link}"), &mut 0, &mut leaves);
            text += &format!("  - {{ name: l{link}, port: p{link}, unmatched: drop, classes: [ {classes} ] }}\n");
        }
        let plan = Policy::parse("p.yaml", &text).and_then(|policy| compile_policy(&policy, "")).unwrap();
        prop_assert_eq!(plan.places.len(), plan.classes.len() + plan.links.len());
        let mut seen = vec![0; plan.places.len()];
        for parent in 0..plan.places.len() {
            let below = children(&plan, parent as u32);
            prop_assert!(below.is_sorted(), "in file order");
            for child in below {
                seen[child as usize] += 1;
                prop_assert_eq!(plan.places[child as usize].parent, parent as u32);
            }
        }
        for (index, class) in plan.classes.iter().enumerate() {
            let place = &plan.places[index];
            let link = (plan.classes.len() + usize::from(class.wire.link_index)) as u32;
            prop_assert_eq!((place.link, seen[index]), (link, 1), "in one list of its link");
            let above = |&at: &u32| plan.places.get(at as usize).map(|place| place.parent);
            let up: Vec<u32> =
                std::iter::successors(Some(index as u32), above).take_while(|&at| at != NONE).collect();
            prop_assert_eq!(up.last().copied(), Some(link));
            prop_assert!(up.len() <= share::DEPTH_MAX + 1, "{} levels", up.len());
            prop_assert_eq!(up.len(), class.path.split('/').count(), "its path goes the same way");
            let parent = class.parent.map(|parent| plan.classes[parent as usize].path.as_str());
            let above = class.path.rsplit_once('/').map(|(above, _)| above);
            prop_assert_eq!(parent.or(Some(plan.links[usize::from(class.wire.link_index)].name.as_str())), above);
            prop_assert_eq!(place.profile == NONE, place.first_child != NONE);
        }
        let found: Vec<&str> = (0..plan.classes.len()).filter(|&class| plan.places[class].profile != NONE).map(|class| plan.classes[class].path.as_str()).collect();
        prop_assert_eq!(found, leaves);
    }
}
