// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock check` as a person runs it.

#![allow(clippy::unwrap_used)] // a test may panic

mod support;

use serde_json::Value;
use support::{Lab, penstock};

const POLICY: &str = "
penstock: 1
name: shared
ports: { lan: { rate: 1Gbit/s } }
links:
  - name: down
    port: lan
    unmatched: { class: rest }
    classes:
      - name: gold
        match: [ { dst: 10.1.0.0/16 } ]
        guarantee: 200Mbit/s
        ceiling: 500Mbit/s
        children:
          - name: apps
            children:
              - { name: web, match: [ { dst: 10.1.0.0/16, proto: tcp } ], weight: 3, on_excess: shape }
              - { name: calls, match: [ { dst: 10.1.0.0/16, proto: udp } ] }
          - { name: flows, match: [ { dst: 10.1.9.0/28 } ], users: { key: [vni, five_tuple], fair: tree, entries: 100 } }
      - { name: homes, match: [ { dst: 10.2.0.0/16 } ], users: { key: dst, fair: sketch, file: users.csv } }
      - { name: rest, limit: { rate: 100Mbit/s } }
";

const PRINTED: &str = "shared: the policy is right

down  port lan, 1.00 Gbit/s, unmatched: class rest
├─ gold  weight 200, guarantee 200.0 Mbit/s, ceiling 500.0 Mbit/s
│  ├─ apps  weight 1
│  │  ├─ web  1 match item, weight 3, burst 17.5ms, excess 25ms, shape, horizon 200ms
│  │  └─ calls  1 match item, weight 1
│  ├─ flows  1 match item, weight 1, users by vni and five_tuple, 128 entries
│  └─ other  1 match item, weight 1
├─ homes  1 match item, weight 1, users by dst, in a sketch, burst 4ms, excess 4ms, drop, 2 users from users.csv
└─ rest  weight 1, limit 100.0 Mbit/s
";

#[test]
fn a_tree_of_shares_is_printed_as_one() {
    let lab = Lab::new();
    let policy = lab.write("p.yaml", POLICY.as_bytes());
    lab.write("users.csv", b"name,dst,weight,ceiling\nalice,10.2.0.1,2,\nbob,10.2.0.2,,5Mbit/s\n");
    let output = penstock().arg("check").arg(&policy).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with(PRINTED), "{text}{}", String::from_utf8_lossy(&output.stderr));
    // Nodes of 8 classes, a link, 128 users and whoever finds no entry, of 128 bytes; places of 64, a slice of 128, words of 8: as many limiters as filters.
    assert!(text.contains("\nshares: 138 nodes, 1 slice, 12288 words of a sketch: 116 KB\n"), "{text}");
    let json = penstock().args(["check", "--json"]).arg(&policy).output().unwrap();
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let class = &json["links"][0]["classes"][2];
    assert_eq!((&class["path"], &class["parent"]), (&"down/gold/apps/web".into(), &1.into()));
    assert_eq!(class["share"]["weight"], 3);
    assert_eq!(json["shares"]["bytes"], 138 * 128 + 9 * 64 + 128 + 2 * 6144 * 8);
}
