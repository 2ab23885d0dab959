// SPDX-License-Identifier: MIT OR Apache-2.0
//! The headers of a group's packets: built once, then copied and completed for each packet.
//!
//! Payloads are zeros by definition, so the transport checksum is right although the payload is never materialised.

use crate::build::{self, Ip, Mac, Segment, folded, sum_of};

use super::{Addresses, ETHERNET_BYTES, FlowGroup, Protocol};

const SOURCE_MAC: Mac = Mac([0x02, 0, 0, 0, 0, 0x01]);
const DESTINATION_MAC: Mac = Mac([0x02, 0, 0, 0, 0, 0x02]);
const VLAN_BYTES: usize = 4;

pub(super) struct Template {
    /// All headers; addresses, lengths and checksums are 0.
    headers: Vec<u8>,
    network: usize,
    transport: usize,
    checksum: usize,
    is_ipv4: bool,
    is_udp: bool,
    /// Sum of the IPv4 header as in `headers`.
    network_sum: u64,
    /// Sum of the transport header as in `headers`, and of the pseudo-header's protocol.
    transport_sum: u64,
    source: Addresses,
    destination: Addresses,
}

impl Template {
    pub fn new(group: &FlowGroup) -> Self {
        let (segment, protocol, checksum) = match group.protocol {
            Protocol::Udp => (Segment::udp(group.sport, group.dport), build::UDP, 6),
            Protocol::Tcp => (Segment::tcp(group.sport, group.dport, 0x10), build::TCP, 16),
        };
        let ip = Ip::between(group.source.at(0), group.destination.at(0)).with_tos(group.dscp, group.ecn);
        let mut headers = build::ethernet(SOURCE_MAC, DESTINATION_MAC, group.vlan.as_slice(), &ip.packet(&segment));
        let network = usize::from(ETHERNET_BYTES) + if group.vlan.is_some() { VLAN_BYTES } else { 0 };
        let transport = network + ip.header_bytes();
        let is_ipv4 = ip.header_bytes() == 20;
        let is_udp = group.protocol == Protocol::Udp;
        let checksum = transport + checksum;
        let mut clear = |at: usize, bytes: usize| headers[at..at + bytes].fill(0);
        if is_ipv4 {
            clear(network + 2, 2); // length
            clear(network + 10, 10); // checksum, addresses
        } else {
            clear(network + 4, 2);
            clear(network + 8, 32);
        }
        if is_udp {
            clear(transport + 4, 2);
        }
        clear(checksum, 2);
        Self {
            network_sum: sum_of(&headers[network..transport]),
            transport_sum: sum_of(&headers[transport..]) + u64::from(protocol),
            headers,
            network,
            transport,
            checksum,
            is_ipv4,
            is_udp,
            source: group.source,
            destination: group.destination,
        }
    }

    /// Length of the headers, the link's included: what is captured of each packet.
    pub fn header_bytes(&self) -> usize {
        self.headers.len()
    }

    /// What the link adds to the IP packet.
    pub fn link_bytes(&self) -> usize {
        self.network
    }

    /// Appends the headers of a packet of a flow; the IP packet has `packet_bytes`.
    pub fn append(&self, bytes: &mut Vec<u8>, flow: u32, packet_bytes: u16) {
        let start = bytes.len();
        bytes.extend_from_slice(&self.headers);
        let frame = &mut bytes[start..];
        let (source, destination) = (self.source.bits_at(flow), self.destination.bits_at(flow));
        let mut put = |at: usize, field: &[u8]| frame[at..at + field.len()].copy_from_slice(field);
        let mut network_sum = self.network_sum;
        let address_sum = if self.is_ipv4 {
            let (source, destination) = (&source.to_be_bytes()[12..], &destination.to_be_bytes()[12..]);
            put(self.network + 2, &packet_bytes.to_be_bytes());
            put(self.network + 12, source);
            put(self.network + 16, destination);
            let address_sum = sum_of(source) + sum_of(destination);
            network_sum += address_sum + u64::from(packet_bytes);
            put(self.network + 10, &folded(network_sum).to_be_bytes());
            address_sum
        } else {
            let (source, destination) = (source.to_be_bytes(), destination.to_be_bytes());
            // No underflow: a packet is at least as long as its headers.
            let payload_bytes = packet_bytes.saturating_sub(40);
            put(self.network + 4, &payload_bytes.to_be_bytes());
            put(self.network + 8, &source);
            put(self.network + 24, &destination);
            sum_of(&source) + sum_of(&destination)
        };
        let ip_header_bytes = if self.is_ipv4 { 20 } else { 40 };
        let segment_bytes = packet_bytes.saturating_sub(ip_header_bytes);
        let mut transport_sum = self.transport_sum + address_sum + u64::from(segment_bytes);
        if self.is_udp {
            put(self.transport + 4, &segment_bytes.to_be_bytes());
            transport_sum += u64::from(segment_bytes);
        }
        let checksum = build::transport_checksum(transport_sum);
        put(self.checksum, &checksum.to_be_bytes());
    }
}
