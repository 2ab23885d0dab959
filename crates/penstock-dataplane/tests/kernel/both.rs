// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel beside userspace: the same plan, the same frames, and what both made of them.

use penstock_algo::plane::{Plane, Rng, Room, Tally, frame};
use penstock_algo::wire;
use penstock_dataplane::load;
use penstock_dataplane::xdp::{Generation, LoadOptions, Port};
use penstock_packet::build::{Ip, Mac, Segment, ethernet};
use penstock_policy::limits_file::LimitsText;
use penstock_policy::{Plan, Policy};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub const START_NS: u64 = 3_600_000_000_000;
pub const LOOPBACK: u32 = 1;
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
/// What BPF_PROG_RUN takes for an Ethernet frame.
pub const FRAME_MIN_BYTES: usize = 14;

const POLICY: &str = "
penstock: 1
name: kernel
malformed: drop
ports: { lan: { rate: 10Gbit/s } }
links:
  - name: down
    port: lan
    rate: 10Gbit/s
    unmatched: drop
    classes:
      - { name: police, match: [ { dst: 10.0.0.0/24 }, { dst: '2001:db8::/48' } ], limit: { rate: 1Mbit/s, burst: 20KB } }
      - { name: early, match: [ { dst: 10.0.1.0/24, proto: udp, dport: 1000-3000 } ], limit: { rate: 1Mbit/s, early_drop: 50% } }
      - { name: mark, match: [ { dst: 10.0.2.0/24 } ], limit: { rate: 2Mbit/s, burst: 5ms, excess: 40ms, on_excess: mark } }
      - { name: shadow, match: [ { dst: 10.0.3.0/24 } ], limit: { rate: 100kbit/s }, mode: shadow }
      - { name: single, match: [ { dst: 10.0.4.0/24 } ], limit: { rate: 1Mbit/s, meter: rfc2697, burst: 10KB, excess: 20KB, yellow: { dscp: af12 } } }
      - { name: two, match: [ { vlan: 7 } ], limit: { rate: 1Mbit/s, meter: rfc2698, peak: 2Mbit/s, burst: 10KB, excess: 20KB, color_aware: true } }
      - { name: tunnel, match: [ { vni: 42 }, { teid: 7 } ], limit: { rate: 1Mbit/s } }
      - { name: rows, limits: { file: rows.csv } }
      - { name: inside, match: [ { dst: 10.0.5.128/25 } ], limits: { file: inside.csv } }
      - { name: free, match: [ { proto: tcp, tcp_flags: syn } ] }
      - { name: shape, match: [ { dst: 10.0.7.0/25 } ], limit: { rate: 1Mbit/s, on_excess: shape, horizon: 20ms } }
      - { name: wire, match: [ { dst: 10.0.7.128/25 } ], limit: { rate: 1Mbit/s, on_excess: mark }, delay: { time: 1ms, jitter: 500us, loss: 10%, seed: 3 } }
";

/// Rows of every meter and action that a file can ask for, some of them in one bucket.
fn rows() -> String {
    let row = |last: u32| {
        let rest = ["drop,", "mark,", "drop,rfc2697"][last as usize % 3];
        format!("r{last},10.0.5.{last}/32,{}kbit/s,10KB,20KB,{rest}\n", 200 + last)
    };
    let rows: String = (0..100).map(row).collect();
    format!("name,dst,rate,burst,excess,on_excess,meter\n{rows}net,10.0.5.0/25,5Mbit/s,10KB,20KB,drop,\n")
}

pub fn plan() -> Plan {
    let policy = Policy::parse("test.yaml", POLICY).unwrap_or_else(|errors| panic!("{errors}"));
    let read = |name: &str| {
        let inside = "name,dst,rate\na,10.0.5.128/26,1Mbit/s\nb,10.0.5.200,300kbit/s\n".to_owned();
        let text = if name.starts_with("rows") { rows() } else { inside };
        Ok(LimitsText { name: name.to_owned(), bytes: text.into_bytes() })
    };
    penstock_policy::compile::compile(&policy, read).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The kernel lets us in, or a word why this test proved nothing.
pub fn may_load_programs() -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root {
        assert!(std::env::var_os("CI").is_none(), "CI proves nothing here without root");
        eprintln!("SKIP: loading a program into the kernel needs root");
    }
    is_root
}

pub struct Both {
    pub plane: Plane,
    pub kernel: Generation,
    rng: Rng,
    pub now_ns: u64,
    pub tally: Tally,
    pub last_key: wire::Key,
    room: Room,
}

impl Both {
    pub fn new() -> Self {
        Self::with(LoadOptions::default())
    }

    pub fn with(options: LoadOptions) -> Self {
        Self::of(&plan(), options)
    }

    pub fn of(plan: &Plan, options: LoadOptions) -> Self {
        let plane = load(plan, 7, START_NS).unwrap();
        let links = (0..plan.links.len()).map(|link| u32::try_from(link).unwrap()).collect();
        let kernel =
            Generation::load_for_test(&plane, &[Port { ifindex: LOOPBACK, links, ..Port::default() }], options)
                .unwrap();
        let tally = plane.tally();
        let room = Room::new(1_000_000, START_NS);
        Self { plane, kernel, rng: Rng::new(11), now_ns: START_NS, tally, last_key: wire::Key::default(), room }
    }

    /// Judges a frame twice and compares all that can be seen. Returns the decision.
    pub fn judge(&mut self, data: &[u8], gap_ns: u64) -> wire::Decision {
        self.now_ns += gap_ns;
        let mut draw = self.rng;
        let random_u32 = draw.next_u32();
        let (mut packets, mut decisions) = (Vec::new(), Vec::new());
        let wire_bytes = u32::try_from(data.len()).unwrap();
        let frames = [frame(data, wire_bytes, wire::PST_LINK_ETHERNET, self.now_ns)];
        // SAFETY: the frame points into `data`, which lives through the call.
        unsafe {
            self.plane.run(&frames, &mut self.rng, &mut self.tally, &mut self.room, &mut packets, &mut decisions)
        };
        let expected = decisions[0];
        self.last_key = packets[0].key;
        let mut marked = data.to_vec();
        if expected.shadow == 0 && u32::from(expected.verdict) == wire::PST_VERDICT_MARK {
            penstock_algo::plane::mark(&mut marked, &packets[0], &expected);
        }
        let (action, left, decision) = self.kernel.test_run(data, self.now_ns, random_u32).unwrap();
        assert_eq!(decision, expected, "{data:02x?}");
        let drops = expected.shadow == 0 && u32::from(expected.verdict) == wire::PST_VERDICT_DROP;
        assert_eq!(action, if drops { XDP_DROP } else { XDP_PASS });
        assert_eq!(left, marked, "the frame that goes on");
        decision
    }

    /// Both counted the same at each limit.
    pub fn compare_counters(&self) {
        for (limit, counters) in (0..).zip(&self.tally.limits) {
            assert_eq!(self.kernel.limit_counters(limit), Some(*counters), "limit {limit}");
        }
        for (slot, counters) in (0..).zip(&self.tally.slots) {
            assert_eq!(self.kernel.slot_counters(slot), Some(*counters), "slot {slot}");
        }
        let offered = |counters: &[wire::pst_counters]| counters.iter().map(|one| one.offered_packets).sum::<u64>();
        let tally = [&self.tally.classes, &self.tally.limits, &self.tally.slots].map(|counters| offered(counters));
        assert!(tally[1] > 100 && tally[2] > 100, "{tally:?}");
        assert_eq!(offered(&self.kernel.class_counters().unwrap()), tally.iter().sum(), "by class, all are counted");
    }

    /// All states are the same bits, too.
    pub fn compare_states(&self) {
        let image = self.plane.image();
        for (index, limit) in image.limits.iter().enumerate() {
            assert_eq!(self.kernel.limits().get(index), *limit, "limit {index}");
        }
        for (index, meter) in image.meters.iter().enumerate() {
            assert_eq!(self.kernel.meters().get(index), *meter, "meter {index}");
        }
        for (index, bucket) in image.limiter_buckets.iter().enumerate() {
            assert_eq!(self.kernel.limiter_buckets().get(index).states, bucket.states, "bucket {index}");
        }
    }
}

pub fn v4(third: u8, last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, third, last).into()
}

pub fn udp_frame(ip: &Ip, port: u16, bytes: usize, vlans: &[u16]) -> Vec<u8> {
    let segment = Segment::udp(5000, port).padded(ip, bytes);
    ethernet(Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]), vlans, &ip.packet(&segment))
}

/// Frames of all classes, in every encapsulation that the parser opens.
pub fn some_frame(rng: &mut Rng) -> Vec<u8> {
    let mut draw = |bound: u32| rng.next_u32() % bound;
    let (third, last) = (u8::try_from(draw(8)).unwrap(), u8::try_from(draw(250)).unwrap());
    let (bytes, ecn, dscp) =
        (64 + draw(1300) as usize, u8::try_from(draw(4)).unwrap(), u8::try_from(draw(64)).unwrap());
    let ip = Ip::between(v4(100, 1), v4(third, last)).with_tos(dscp, ecn);
    let port = u16::try_from(draw(4000)).unwrap();
    match draw(9) {
        0 => {
            let ip = Ip::between(Ipv6Addr::LOCALHOST, Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, last.into()));
            udp_frame(&ip.with_tos(dscp, ecn), port, bytes, &[])
        }
        1 => udp_frame(&ip, port, bytes, &[7]),
        2 => udp_frame(&ip, port, bytes, &[7, 8]),
        3 => {
            let inner = udp_frame(&ip, port, bytes, &[]);
            let outer = Ip::between(v4(101, 1), v4(101, 2)).with_tos(0, ecn);
            let segment = Segment::vxlan(40 + draw(4), &inner);
            ethernet(Mac([2; 6]), Mac([4; 6]), &[], &outer.packet(&segment))
        }
        4 => {
            let inner = ip.packet(&Segment::udp(1, port).padded(&ip, bytes));
            let outer = Ip::between(v4(101, 1), v4(101, 2));
            ethernet(Mac([2; 6]), Mac([4; 6]), &[], &outer.packet(&Segment::gtpu(6 + draw(3), &inner)))
        }
        5 => {
            let segment = Segment::tcp(80, port, if draw(2) == 0 { 0x02 } else { 0x10 }).padded(&ip, bytes);
            ethernet(Mac([2; 6]), Mac([4; 6]), &[], &ip.packet(&segment))
        }
        _ => udp_frame(&ip, port, bytes, &[]),
    }
}
