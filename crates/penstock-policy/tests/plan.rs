// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the words of a policy become in a plan, and reading from disk.

#![allow(clippy::cast_possible_truncation)] // small numbers

use penstock_algo::{rate, wire};
use penstock_policy::compile::compile;
use penstock_policy::limits_file::LimitsText;
use penstock_policy::summary::summarize;
use penstock_policy::{LoadError, Plan, Policy, load};
use std::path::Path;

fn plan(text: &str, csv: &str) -> Plan {
    let policy = Policy::parse("dir/edge.yaml", text).unwrap_or_else(|errors| panic!("{errors}"));
    let read = |name: &str| Ok(LimitsText { name: name.to_owned(), bytes: csv.as_bytes().to_vec() });
    compile(&policy, read).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The profile of a limit that is written so.
fn profile(limit: &str) -> wire::Profile {
    let text = format!(
        "penstock: 1\nports: {{ lan: {{ rate: 1Gbit/s, mtu: 9000 }} }}\nlinks: [ {{ name: down, port: lan, overhead: 18B, \
         classes: [ {{ name: a, match: [ {{ vlan: 1 }} ] }}, {{ name: b, match: [ {{}} ], limit: {limit} }} ] }} ]"
    );
    plan(&text, "").profiles[0]
}

const MS: u64 = 1_000_000 * rate::TICKS_PER_NSEC;

#[test]
fn a_limit_becomes_its_profile() {
    let (pass, drop, mark) = (wire::PST_ACTION_PASS as u8, wire::PST_ACTION_DROP as u8, wire::PST_ACTION_MARK as u8);
    let (red, dscp) = (wire::PST_ACTION_RED as u8, wire::PST_ACTION_DSCP as u8);
    let base = wire::Profile { mtu_bytes: 9018, class_index: 1, red_action: drop, ..wire::Profile::default() };
    let window = wire::Profile { burst_ticks: 35 * MS / 2, excess_ticks: 25 * MS, ..base };
    let tenth = u32::MAX / 10;
    let cases = [
        ("{ rate: 1Mbit/s }", window),
        ("{ rate: 1Mbit/s, on_excess: drop, mode: enforce }", window),
        ("{ rate: 1Mbit/s, mode: shadow }", wire::Profile { flags: wire::PST_PROFILE_SHADOW as u8, ..window }),
        ("{ rate: 1Mbit/s, on_excess: mark }", wire::Profile { yellow_action: mark, red_max_q32: tenth, ..window }),
        (
            "{ rate: 1Mbit/s, on_excess: mark, early_drop: 50% }",
            wire::Profile { yellow_action: mark, red_max_q32: 1 << 31, ..window },
        ),
        ("{ rate: 1Mbit/s, early_drop: 100% }", wire::Profile { yellow_action: red, red_max_q32: u32::MAX, ..window }),
        ("{ rate: 1Mbit/s, early_drop: 0% }", wire::Profile { yellow_action: pass, ..window }),
        (
            "{ rate: 1Mbit/s, burst: 64KB, excess: 1ms }",
            wire::Profile { burst_bytes: 64_000, excess_ticks: MS, ..base },
        ),
        (
            "{ rate: 1Mbit/s, meter: rfc2697, burst: 64KB, excess: 0B, color_aware: true }",
            wire::Profile { meter: 1, burst_bytes: 64_000, flags: wire::PST_PROFILE_COLOR_AWARE as u8, ..base },
        ),
        (
            "{ rate: 1Mbit/s, meter: rfc2698, burst: 64KB, excess: 128KB, peak: 2Mbit/s, yellow: { dscp: af12 }, red: mark }",
            wire::Profile {
                meter: 2,
                burst_bytes: 64_000,
                excess_bytes: 128_000,
                second_rate: rate::encode(250_000),
                yellow_action: dscp,
                yellow_dscp: 12,
                red_action: mark,
                ..base
            },
        ),
        (
            "{ rate: 1Mbit/s, meter: rfc4115, burst: 64KB, excess: 1KB, excess_rate: 80kbit/s, yellow: mark, red: \"dscp: cs1\" }",
            wire::Profile {
                meter: 3,
                burst_bytes: 64_000,
                excess_bytes: 1_000,
                second_rate: rate::encode(10_000),
                yellow_action: mark,
                red_max_q32: tenth,
                red_action: dscp,
                red_dscp: 8,
                ..base
            },
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(profile(text), expected, "{text}");
    }
}

#[test]
fn links_and_classes_are_wired_up() {
    let text = "penstock: 1\nmalformed: drop\nports: { a: { rate: 1Gbit/s }, b: { rate: 2Gbit/s } }\nlinks:\n\
        - { name: down, port: a, unmatched: drop, classes: [ { name: x, match: [ { vlan: 1-2 } ] } ] }\n\
        - name: up\n  port: b\n  unmatched: { class: rest }\n  classes:\n\
        \x20 - { name: t, match: [ { proto: tcp } ], limits: { file: t.csv } }\n\
        \x20 - { name: rest, limit: { rate: 60kbit/s, burst: 1s } }\n";
    let plan = plan(text, "name,dst,rate\nn1,10.0.0.0/8,1Mbit/s\nn2,10.0.0.1,2Mbit/s\n");
    assert_eq!(plan.policy, "edge", "a policy without a name has its file's");
    let (down, up) = (&plan.links[0].wire, &plan.links[1].wire);
    assert_eq!((u32::from(down.unmatched_action), down.unmatched_class), (wire::PST_ACTION_DROP, wire::PST_NONE));
    assert_eq!((u32::from(up.unmatched_action), up.unmatched_class), (wire::PST_ACTION_PASS, 2));
    assert_eq!(
        (u32::from(up.malformed_action), up.overhead_bytes, plan.links[1].rate_bps),
        (wire::PST_ACTION_DROP, 14, 2_000_000_000)
    );
    // vlan 1 and 2 are two keys of one tuple; the rows of `t` lie behind the links' tuples, most specific first.
    assert_eq!((down.tuple_first, down.tuple_count, up.tuple_first, up.tuple_count), (0, 1, 1, 1));
    let t = &plan.classes[1].wire;
    assert_eq!((t.tuple_first, t.tuple_count, t.limit_index, t.link_index), (2, 2, wire::PST_NONE, 1));
    assert_eq!((plan.tuples[2].specificity_q8, plan.tuples[3].specificity_q8), (33 * 256, 9 * 256));
    assert_eq!((plan.entries[0].tuple, plan.entries[1].tuple), (3, 2));
    assert_eq!((plan.entries[1].rate, plan.entries[1].rate_bps), (rate::encode(250_000), 2_000_000));
    let rest = &plan.classes[2];
    assert_eq!((rest.path.as_str(), rest.limit_bps, rest.wire.limit_index), ("up/rest", Some(60_000), 0));
    assert_eq!(plan.limits[0].rate, rate::encode(7_500));
    assert_eq!((plan.rules[0].class_index, plan.rules[0].specificity_q8), (0, 11 * 256));
}

#[test]
fn equal_terms_share_a_profile() {
    let text = "penstock: 1\nports: { a: { rate: 1Gbit/s } }\nlinks: [ { name: down, port: a, classes: [ { name: t, limits: { file: t } } ] } ]";
    let csv = "name,dst,rate,burst,on_excess\na,10.0.0.1,1Mbit/s,,\nb,10.0.0.2,2Mbit/s,17.5ms,drop\nc,10.0.0.3,1Mbit/s,5ms,\nd,10.0.0.4,1Mbit/s,,\n";
    let plan = plan(text, csv);
    let profiles: Vec<u16> = plan.entries.iter().map(|entry| entry.profile).collect();
    assert_eq!((profiles, plan.profiles.len()), (vec![0, 0, 1, 0], 2));
}

#[test]
fn more_profiles_than_two_bytes_number_are_refused() {
    let text = "penstock: 1\nports: { a: { rate: 1Gbit/s } }\nlinks: [ { name: down, port: a, classes: [ { name: t, limits: { file: t } } ] } ]";
    let row = |index: u32| format!("r{index},{index},1Mbit/s,{}us\n", 50_000 + index);
    let csv = |rows: u32| "name,teid,rate,burst\n".to_owned() + &(0..rows).map(row).collect::<String>();
    assert_eq!(plan(text, &csv(65_535)).profiles.len(), 65_535);
    let policy = Policy::parse("p.yaml", text).unwrap();
    let read = |_: &str| Ok(LimitsText { name: "t.csv".to_owned(), bytes: csv(65_536).into_bytes() });
    let errors = compile(&policy, read).unwrap_err().render(false);
    assert!(errors.starts_with("t.csv:65537:1: error: more than 65535 different combinations of terms"), "{errors}");
}

#[test]
fn more_tuples_than_a_link_may_have_are_refused() {
    let items = |count: u32| {
        // Each pair of prefix lengths is a combination of its own; dst is given, so none is as specific as another one's.
        let pairs =
            (0..count).map(|index| format!("{{ src: 0.0.0.0/{}, dst: 0.0.0.0/{} }}", index % 16, 16 + index / 16));
        let items = pairs.collect::<Vec<_>>().join(", ");
        format!(
            "penstock: 1\nports: {{ a: {{ rate: 1Gbit/s }} }}\nlinks: [ {{ name: down, port: a, classes: [ {{ name: t, match: [ {items} ] }} ] }} ]"
        )
    };
    assert_eq!(plan(&items(256), "").tuples.len(), 256);
    let errors = compile(&Policy::parse("p.yaml", &items(257)).unwrap(), |_| Ok(LimitsText::default())).unwrap_err();
    let text = errors.render(false);
    assert!(text.contains("takes 257 combinations") && text.contains("at most 256 are allowed"), "{text}");
}

#[test]
fn examples_load() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
    let mut count = 0;
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let is_yaml = path.extension().is_some_and(|ending| ending == "yaml");
        if !is_yaml || !std::fs::read_to_string(&path).unwrap().contains("\npenstock: 1\n") {
            continue; // a workload
        }
        let loaded = load(&path).unwrap_or_else(|error| panic!("{error}"));
        let summary = summarize(&loaded.policy, &loaded.plan);
        let classes = || summary.links.iter().flat_map(|link| &link.classes);
        assert_eq!((classes().count(), summary.entries), (loaded.plan.classes.len(), loaded.plan.entries.len()));
        assert_eq!(classes().map(|class| class.entries).sum::<usize>(), summary.entries);
        assert!(summary.table_bytes > 0);
        count += 1;
    }
    assert!(count >= 3, "{count} policies");
}

#[test]
fn files_are_read_from_the_policys_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.yaml");
    assert!(matches!(load(&path), Err(LoadError::Read { .. })));
    let text = "penstock: 1\nports: { a: { rate: 1Gbit/s } }\nlinks: [ { name: down, port: a, classes: [ { name: t, limits: { file: sub/t.csv } } ] } ]";
    std::fs::write(&path, text).unwrap();
    let error = load(&path).unwrap_err().to_string();
    assert!(error.contains("p.yaml:3:71: error: cannot read the limits file: No such file"), "{error}");
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    std::fs::write(folder.path().join("sub/t.csv"), "\u{feff}name,dst,rate\na,10.0.0.1,fast\n").unwrap();
    let error = load(&path).unwrap_err().to_string();
    assert!(error.contains("sub/t.csv:2:12: error: `fast` is not a rate"), "{error}");
    std::fs::write(folder.path().join("sub/t.csv"), "name,dst,rate\na,10.0.0.1,1Mbit/s\n").unwrap();
    assert_eq!(load(&path).unwrap().plan.entries.len(), 1);
    std::fs::write(&path, b"penstock: 1\nname: \xff\n").unwrap();
    let error = load(&path).unwrap_err().to_string();
    assert!(error.contains("p.yaml:2:7: error: this byte is not UTF-8"), "{error}");
}
