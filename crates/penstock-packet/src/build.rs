// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packet building, inside out: a [`Segment`] (UDP, TCP, a tunnel's UDP), in an [`Ip`] packet, in an Ethernet frame.
//!
//! ```
//! use penstock_packet::build::{Ip, Mac, Segment, ethernet};
//!
//! let inner = Ip::between([10, 0, 0, 1], [10, 0, 0, 2]).packet(&Segment::tcp(443, 40000, 0x10).with_payload(b"hello"));
//! let outer = Ip::between([192, 0, 2, 1], [192, 0, 2, 2]).packet(&Segment::gtpu(0x1234, &inner));
//! let frame = ethernet(Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]), &[], &outer);
//! assert_eq!(frame.len(), 14 + 20 + 8 + 8 + 20 + 20 + 5);
//! ```
//!
//! Lengths and checksums are right whatever the layers (RFC 768, 791, 8200, 9293; VXLAN RFC 7348; GTP-U TS 29.281). What is
//! longer than its length field is cut there: a packet of over 65,535 bytes cannot be built.

use std::net::IpAddr;

/// IP protocol numbers.
pub const TCP: u8 = 6;
/// UDP.
pub const UDP: u8 = 17;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_VLAN: u16 = 0x8100;
const ETHERTYPE_QINQ: u16 = 0x88a8;
const VXLAN_PORT: u16 = 4789;
const GTPU_PORT: u16 = 2152;

/// A MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

/// What an IP packet carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    protocol: u8,
    /// Header, with checksum 0, and payload.
    bytes: Vec<u8>,
}

impl Segment {
    /// UDP without payload.
    #[must_use]
    pub fn udp(source: u16, destination: u16) -> Self {
        let mut bytes = Vec::with_capacity(8);
        bytes.extend(source.to_be_bytes());
        bytes.extend(destination.to_be_bytes());
        bytes.extend([0; 4]);
        Self { protocol: UDP, bytes }
    }

    /// TCP without options and payload; `flags` as in the header (SYN 0x02, ACK 0x10).
    #[must_use]
    pub fn tcp(source: u16, destination: u16, flags: u8) -> Self {
        let mut bytes = Vec::with_capacity(20);
        bytes.extend(source.to_be_bytes());
        bytes.extend(destination.to_be_bytes());
        bytes.extend([0; 8]); // sequence and acknowledgement numbers
        bytes.extend([5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        Self { protocol: TCP, bytes }
    }

    /// Any other protocol: the bytes are the payload.
    #[must_use]
    pub fn other(protocol: u8) -> Self {
        Self { protocol, bytes: Vec::new() }
    }

    /// VXLAN with an Ethernet frame inside.
    #[must_use]
    pub fn vxlan(vni: u32, frame: &[u8]) -> Self {
        let [_, high, middle, low] = vni.to_be_bytes();
        Self::udp(49152, VXLAN_PORT).with_payload(&[0x08, 0, 0, 0, high, middle, low, 0]).with_payload(frame)
    }

    /// GTP-U (a G-PDU without extensions) with an IP packet inside.
    #[must_use]
    pub fn gtpu(teid: u32, packet: &[u8]) -> Self {
        let length = u16::try_from(packet.len()).unwrap_or(u16::MAX);
        let mut header = vec![0x30, 0xff];
        header.extend(length.to_be_bytes());
        header.extend(teid.to_be_bytes());
        Self::udp(GTPU_PORT, GTPU_PORT).with_payload(&header).with_payload(packet)
    }

    /// Appends to the payload.
    #[must_use]
    pub fn with_payload(mut self, payload: &[u8]) -> Self {
        self.bytes.extend_from_slice(payload);
        self
    }

    /// Appends zeros until the packet that `ip` makes of it has `packet_bytes`, if it is shorter.
    #[must_use]
    pub fn padded(mut self, ip: &Ip, packet_bytes: usize) -> Self {
        let segment_bytes = packet_bytes.saturating_sub(ip.header_bytes());
        self.bytes.resize(self.bytes.len().max(segment_bytes), 0);
        self
    }

    /// Where the checksum field is.
    fn checksum_offset(&self) -> Option<usize> {
        match self.protocol {
            UDP => Some(6),
            TCP => Some(16),
            _ => None,
        }
    }
}

/// An IP header without options. Addresses must be of one family: [`Ip::between`] is the way to make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip {
    addresses: Addresses,
    /// DSCP and ECN.
    tos: u8,
    /// TTL or hop limit.
    ttl: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Addresses {
    V4([u8; 4], [u8; 4]),
    V6([u8; 16], [u8; 16]),
}

impl Ip {
    /// IPv4 or IPv6, as the addresses are; of a mixed pair, the IPv4 address becomes the mapped IPv6 one.
    #[must_use]
    pub fn between(source: impl Into<IpAddr>, destination: impl Into<IpAddr>) -> Self {
        let v6 = |address: IpAddr| match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        let addresses = match (source.into(), destination.into()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Addresses::V4(source.octets(), destination.octets()),
            (source, destination) => Addresses::V6(v6(source), v6(destination)),
        };
        Self { addresses, tos: 0, ttl: 64 }
    }

    /// With DSCP (0..=63) and ECN (0..=3).
    #[must_use]
    pub fn with_tos(mut self, dscp: u8, ecn: u8) -> Self {
        self.tos = dscp << 2 | ecn & 3;
        self
    }

    /// The header's length.
    #[must_use]
    pub fn header_bytes(&self) -> usize {
        match self.addresses {
            Addresses::V4(..) => 20,
            Addresses::V6(..) => 40,
        }
    }

    /// The packet with this segment in it.
    #[must_use]
    pub fn packet(&self, segment: &Segment) -> Vec<u8> {
        let segment_bytes = u16::try_from(segment.bytes.len()).unwrap_or(u16::MAX);
        let mut packet = self.header(segment.protocol, segment_bytes);
        let start = packet.len();
        packet.extend_from_slice(&segment.bytes);
        let bytes = &mut packet[start..];
        if segment.protocol == UDP {
            bytes[4..6].copy_from_slice(&segment_bytes.to_be_bytes());
        }
        if let Some(at) = segment.checksum_offset() {
            let sum = self.pseudo_header_sum(segment.protocol, segment_bytes) + sum_of(bytes);
            bytes[at..at + 2].copy_from_slice(&transport_checksum(sum).to_be_bytes());
        }
        packet
    }

    fn header(&self, protocol: u8, segment_bytes: u16) -> Vec<u8> {
        let mut header = Vec::with_capacity(40 + usize::from(segment_bytes));
        match &self.addresses {
            Addresses::V4(source, destination) => {
                let total = segment_bytes.saturating_add(20).to_be_bytes();
                header.extend([0x45, self.tos, total[0], total[1]]);
                header.extend([0, 0, 0x40, 0]); // no identification: may not be fragmented (RFC 6864)
                header.extend([self.ttl, protocol, 0, 0]);
                header.extend(source);
                header.extend(destination);
                let checksum = folded(sum_of(&header)).to_be_bytes();
                header[10..12].copy_from_slice(&checksum);
            }
            Addresses::V6(source, destination) => {
                header.extend([0x60 | self.tos >> 4, self.tos << 4, 0, 0]);
                header.extend(segment_bytes.to_be_bytes());
                header.extend([protocol, self.ttl]);
                header.extend(source);
                header.extend(destination);
            }
        }
        header
    }

    fn pseudo_header_sum(&self, protocol: u8, segment_bytes: u16) -> u64 {
        let addresses = match &self.addresses {
            Addresses::V4(source, destination) => sum_of(source) + sum_of(destination),
            Addresses::V6(source, destination) => sum_of(source) + sum_of(destination),
        };
        addresses + u64::from(protocol) + u64::from(segment_bytes)
    }
}

/// An Ethernet frame with an IP packet in it; `vlans` from the outermost (802.1ad when there are several, then 802.1Q).
#[must_use]
pub fn ethernet(source: Mac, destination: Mac, vlans: &[u16], packet: &[u8]) -> Vec<u8> {
    let ethertype = match packet.first().map(|byte| byte >> 4) {
        Some(6) => ETHERTYPE_IPV6,
        _ => ETHERTYPE_IPV4,
    };
    let mut frame = Vec::with_capacity(14 + 4 * vlans.len() + packet.len());
    frame.extend(destination.0);
    frame.extend(source.0);
    for (index, vlan) in vlans.iter().enumerate() {
        let tag = if index + 1 < vlans.len() { ETHERTYPE_QINQ } else { ETHERTYPE_VLAN };
        frame.extend(tag.to_be_bytes());
        frame.extend(vlan.to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend_from_slice(packet);
    frame
}

/// Sum of big-endian 16-bit words (RFC 1071), not folded: 2^48 words fit.
pub(crate) fn sum_of(bytes: &[u8]) -> u64 {
    let (words, odd) = bytes.as_chunks::<2>();
    let sum: u64 = words.iter().map(|&word| u64::from(u16::from_be_bytes(word))).sum();
    sum + odd.first().map_or(0, |&byte| u64::from(byte) << 8)
}

/// The one's complement of a sum.
pub(crate) fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(u16::MAX)
}

/// The checksum field of UDP and TCP: UDP has ffff for 0, as 0 says "none" there; to TCP both are the same number.
pub(crate) fn transport_checksum(sum: u64) -> u16 {
    match folded(sum) {
        0 => 0xffff,
        checksum => checksum,
    }
}
