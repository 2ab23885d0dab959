// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generated traffic: what a workload file says, and the packets that come of it.
//!
//! ```yaml
//! penstock-workload: 1
//! seed: 1                 # default 1; the same file gives the same packets
//! duration: 2s            # at most a day
//! flows:
//!   - { name: bulk, count: 100000, rate: 60kbit/s, size: 1500B, arrival: cbr, start: 0s, stop: 2s,
//!       src: 172.16.0.1, dst: 10.0.0.0/8, proto: udp, sport: 1000, dport: 2000 }
//!   - { name: bursts, count: 10, peak: 1Gbit/s, size: [ { bytes: 64B, share: 3 }, { bytes: 1500B, share: 1 } ],
//!       arrival: { on: 1ms-20ms, off: 50us-500us }, src: 172.16.0.2, dst: 10.0.0.0/8 }
//!   - { name: keys, count: 1000, rate: 1Mbit/s, size: 500B, arrival: poisson, popularity: { zipf: 1.2 },
//!       src: 172.16.0.3, dst: 10.0.0.0/8, vlan: 7, dscp: ef, ecn: ect0, proto: tcp }
//! ```
//!
//! - `size` is what a limit counts of a packet by default: the IP packet and the Ethernet header before it, without tags. `rate`
//!   and `peak` count the same bytes, so that a flow of 60kbit/s just fits a limit of 60kbit/s. `share`s are relative to their sum.
//! - `rate` is one flow's. `arrival: cbr` (the default) sends evenly, each flow at its own phase; `poisson` with exponential
//!   gaps around the same rate; bursts send at `peak` for a time drawn from `on`, then pause for a time drawn from `off`.
//! - `popularity` makes of a group one source at count x rate, each of whose packets is of flow k (counted from 1) with a
//!   probability that falls as k^-zipf.
//! - Flow i takes the i-th address of a prefix, from the prefix's first; a single address is taken by all flows.
//! - Defaults: `count: 1`, `start: 0s`, `stop` with the workload, `proto: udp`, `sport: 1000`, `dport: 2000`.

mod generator;
mod parse;
mod template;
mod wheel;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use generator::Generator;

/// Most flows in a workload.
pub const FLOWS_MAX: u32 = 1 << 26;
/// Longest workload.
pub const DURATION_MAX_NS: u64 = 86_400 * 1_000_000_000;

/// A workload, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// What all randomness comes from.
    pub seed: u64,
    /// When it ends.
    pub duration_ns: u64,
    /// In file order.
    pub groups: Vec<FlowGroup>,
}

/// Flows that differ in their addresses only.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowGroup {
    /// Its name.
    pub name: String,
    /// How many flows.
    pub count: u32,
    /// Rate of a flow, bits/s; of bursts: within a burst.
    pub rate_bps: u64,
    /// Packet sizes; at least one.
    pub sizes: Vec<SizeShare>,
    /// When packets are sent.
    pub arrival: Arrival,
    /// First moment.
    pub start_ns: u64,
    /// Behind the last moment; not after the workload's end.
    pub stop_ns: u64,
    /// Source addresses.
    pub source: Addresses,
    /// Destination addresses, of the same family.
    pub destination: Addresses,
    /// UDP or TCP.
    pub protocol: Protocol,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// 802.1Q tag, if any.
    pub vlan: Option<u16>,
    /// 0..=63.
    pub dscp: u8,
    /// 0..=3.
    pub ecn: u8,
    /// Zipf exponent of the flows' popularity, if any.
    pub popularity: Option<f64>,
}

/// Bytes of the Ethernet header, which a packet's size includes.
const ETHERNET_BYTES: u16 = 14;

/// A packet size and how often it comes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizeShare {
    /// Of the IP packet and its Ethernet header; at least the headers.
    pub bytes: u16,
    /// Relative to the sum of all shares; above 0.
    pub share: f64,
}

/// When a flow sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Evenly.
    Cbr,
    /// With exponential gaps.
    Poisson,
    /// Evenly in bursts, with pauses between them.
    Bursts {
        /// Length of a burst; above 0.
        on: TimeRange,
        /// Length of a pause.
        off: TimeRange,
    },
}

/// Times are drawn from here, all equally likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// Shortest.
    pub min_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

/// Transport of generated packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// UDP.
    Udp,
    /// TCP: segments with ACK set, all of sequence number 0.
    Tcp,
}

/// A single address, or a prefix from which flow i takes the i-th.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    first: u128,
    is_ipv4: bool,
    is_single: bool,
}

impl Addresses {
    /// From the prefix's first address, as a number.
    #[must_use]
    pub fn prefix(first: IpAddr, length: u8) -> Self {
        match first {
            IpAddr::V4(first) => Self { first: first.to_bits().into(), is_ipv4: true, is_single: length >= 32 },
            IpAddr::V6(first) => Self { first: first.to_bits(), is_ipv4: false, is_single: length >= 128 },
        }
    }

    /// The address of a flow.
    #[must_use]
    pub fn at(&self, flow: u32) -> IpAddr {
        let bits = self.bits_at(flow);
        if self.is_ipv4 { IpAddr::V4(ipv4(bits)) } else { IpAddr::V6(Ipv6Addr::from_bits(bits)) }
    }

    /// The address of a flow as a number; an IPv4 address in the low bits.
    fn bits_at(&self, flow: u32) -> u128 {
        if self.is_single { self.first } else { self.first.wrapping_add(u128::from(flow)) }
    }
}

/// The low bits, as an address.
fn ipv4(bits: u128) -> Ipv4Addr {
    let [.., a, b, c, d] = bits.to_be_bytes();
    Ipv4Addr::new(a, b, c, d)
}
