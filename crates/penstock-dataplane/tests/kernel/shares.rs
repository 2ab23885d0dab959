// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fair shares: decisions and all memory, bit for bit.

use crate::both::{Both, START_NS, may_load_programs};
use penstock_algo::plane::Rng;
use penstock_algo::wire;
use penstock_dataplane::xdp::{LoadOptions, SharedArray};
use penstock_packet::build::{Ip, Mac, Segment, ethernet};
use penstock_policy::limits_file::LimitsText;
use penstock_policy::{Plan, Policy};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const POLICY: &str = "
penstock: 1
name: shares
ports: { lan: { rate: 10Gbit/s } }
links:
  - name: down
    port: lan
    rate: 100Mbit/s
    unmatched: drop
    classes:
      - name: deep
        weight: 2
        ceiling: 60Mbit/s
        children:
          - name: in
            guarantee: 10Mbit/s
            children:
              - { name: police, match: [ { dst: 10.0.0.0/24 } ], ceiling: 20Mbit/s, early_drop: 30% }
              - { name: mark, match: [ { dst: 10.0.1.0/24 } ], weight: 3, on_excess: mark }
          - { name: shape, match: [ { dst: 10.0.2.0/24 } ], on_excess: shape, horizon: 30ms, ce_threshold: 5ms }
          - { name: limited, match: [ { dst: 10.0.3.0/24 } ], limit: { rate: 5Mbit/s, on_excess: mark }, on_excess: shape }
      - { name: rows, limits: { file: rows.csv, on_excess: shape } }
      - { name: few, match: [ { dst: 10.0.5.0/24 }, { dst: '2001:db8::/48' } ], users: { key: dst, fair: tree, entries: 16, file: few.csv } }
      - { name: many, match: [ { dst: 10.0.6.0/24 } ], users: { key: dst, fair: sketch, file: many.csv }, on_excess: mark }
      - { name: tcp, match: [ { dst: 10.0.7.0/24 } ], users: { key: five_tuple, fair: sketch, drop: periodic } }
      - { name: chance, match: [ { dst: 10.0.10.0/24 } ], users: { key: dst, fair: sketch, drop: chance }, on_excess: mark }
      - { name: shadow, match: [ { dst: 10.0.8.0/24 } ], mode: shadow }
sketch: { rows: 3, columns: 64 }
";

fn plan() -> Plan {
    let policy = Policy::parse("shares.yaml", POLICY).unwrap_or_else(|errors| panic!("{errors}"));
    let read = |name: &str| {
        let text = match name {
            "rows.csv" => "name,dst,rate\na,10.0.4.0/26,2Mbit/s\nb,10.0.4.200,8Mbit/s\n",
            "few.csv" => "name,dst,weight,ceiling\na,10.0.5.3,5,\nb,10.0.5.4,,1Mbit/s\n",
            _ => "name,dst,weight\na,10.0.6.1,4\n",
        };
        Ok(LimitsText { name: name.to_owned(), bytes: text.into() })
    };
    penstock_policy::compile::compile(&policy, read).unwrap_or_else(|errors| panic!("{errors}"))
}

/// A packet of a class: few users send much, many little.
fn some_frame(rng: &mut Rng) -> Vec<u8> {
    let (class, user) = (rng.next_u32() % 11, (rng.next_u32() % 32).saturating_sub(rng.next_u32() % 40));
    let (class, user) = (u8::try_from(class).unwrap(), u8::try_from(user).unwrap());
    let (source, destination) = if class == 9 {
        let host = |last: u8| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()));
        (host(200), host(user))
    } else {
        (IpAddr::V4(Ipv4Addr::new(172, 16, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, class, user)))
    };
    let ip = Ip::between(source, destination).with_tos(0, u8::try_from(rng.next_u32() % 4).unwrap());
    let segment = if rng.next_u32().is_multiple_of(2) { Segment::tcp(1000, 80, 0x10) } else { Segment::udp(1000, 80) };
    let segment = segment.padded(&ip, 100 + rng.next_u32() as usize % 1300);
    ethernet(Mac([2; 6]), Mac([4; 6]), &[], &ip.packet(&segment))
}

fn same<T: Copy + PartialEq + std::fmt::Debug>(what: &str, kernel: &SharedArray<T>, userspace: &[T]) {
    for (index, expected) in userspace.iter().enumerate() {
        assert_eq!(kernel.get(index), *expected, "{what} {index}");
    }
}

#[test]
fn the_kernel_shares_as_userspace_does() {
    if !may_load_programs() {
        return;
    }
    let mut both = Both::of(&plan(), LoadOptions::default());
    let mut rng = Rng::new(4);
    let mut seen = vec![0_u32; wire::PST_REASON_COUNT as usize];
    let mut shadowed = 0;
    for round in 0..40_000_u64 {
        // Three times what the link has; then a pause, after which all are gone.
        let gap_ns = if round % 10_000 == 9_999 { 500_000_000 } else { u64::from(rng.next_u32() % 40_000) };
        let decision = both.judge(&some_frame(&mut rng), gap_ns);
        seen[usize::from(decision.reason)] += 1;
        shadowed += u32::from(decision.shadow);
    }
    let image = both.plane.image();
    same("node", both.kernel.nodes(), image.nodes);
    same("slice", both.kernel.slices(), image.slices);
    same("filter", both.kernel.filters(), image.filters);
    let wanted = [
        wire::PST_REASON_NONE,
        wire::PST_REASON_OVER_RATE,
        wire::PST_REASON_EARLY_DROP,
        wire::PST_REASON_CE_MARK,
        wire::PST_REASON_HELD,
        wire::PST_REASON_HELD_CE,
        wire::PST_REASON_OVER_SHARE,
        wire::PST_REASON_NO_ENTRY,
    ];
    let missing: Vec<u32> = wanted.into_iter().filter(|reason| seen[*reason as usize] <= 10).collect();
    assert!(missing.is_empty(), "{missing:?} of {seen:?}");
    assert!(shadowed > 10, "{shadowed}");
    assert!(both.now_ns > START_NS + 2_000_000_000);
}
