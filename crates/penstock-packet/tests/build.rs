// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is built is what another implementation reads, checksums included.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)] // a test may fail by either

use std::net::IpAddr;

use etherparse::{NetHeaders, PacketHeaders, TransportHeader};
use penstock_packet::build::{Ip, Mac, Segment, ethernet};

const MACS: (Mac, Mac) = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]));

/// Checks lengths and checksums of an Ethernet frame; returns the transport's payload.
fn checked(frame: &[u8]) -> Vec<u8> {
    let headers = PacketHeaders::from_ethernet_slice(frame).unwrap();
    let payload = headers.payload.slice();
    match (headers.net.unwrap(), headers.transport.unwrap()) {
        (NetHeaders::Ipv4(ip, _), TransportHeader::Udp(udp)) => {
            assert_eq!(ip.header_checksum, ip.calc_header_checksum());
            assert_eq!(udp.checksum, udp.calc_checksum_ipv4(&ip, payload).unwrap());
            assert_eq!(usize::from(udp.length), 8 + payload.len());
        }
        (NetHeaders::Ipv4(ip, _), TransportHeader::Tcp(tcp)) => {
            assert_eq!(ip.header_checksum, ip.calc_header_checksum());
            assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, payload).unwrap());
        }
        (NetHeaders::Ipv6(ip, _), TransportHeader::Udp(udp)) => {
            assert_eq!(udp.checksum, udp.calc_checksum_ipv6(&ip, payload).unwrap());
        }
        (NetHeaders::Ipv6(ip, _), TransportHeader::Tcp(tcp)) => {
            assert_eq!(tcp.checksum, tcp.calc_checksum_ipv6(&ip, payload).unwrap());
        }
        other => panic!("{other:?}"),
    }
    payload.to_vec()
}

fn ips() -> [Ip; 2] {
    let v6 = |text: &str| text.parse::<IpAddr>().unwrap();
    [Ip::between([10, 0, 0, 1], [10, 255, 0, 2]), Ip::between(v6("2001:db8::1"), v6("2001:db8::ffff"))]
}

#[test]
fn checksums_and_lengths_are_right_for_every_payload() {
    for ip in ips() {
        for segment in [Segment::udp(1, 65535), Segment::tcp(443, 50000, 0x12)] {
            for length in [0usize, 1, 2, 7, 1400, 1401, 9000] {
                let payload: Vec<u8> = (0..length).map(|index| (index * 31) as u8).collect();
                let packet = ip.packet(&segment.clone().with_payload(&payload));
                assert_eq!(checked(&ethernet(MACS.0, MACS.1, &[], &packet)), payload);
            }
        }
    }
}

#[test]
fn a_checksum_of_zero_is_sent_as_ones() {
    let ip = ips()[0];
    let with = |word: u16| ip.packet(&Segment::udp(1, 2).with_payload(&word.to_be_bytes()));
    let word = (0..=u16::MAX).find(|&word| with(word)[26..28] == [0xff, 0xff]).unwrap();
    checked(&ethernet(MACS.0, MACS.1, &[], &with(word)));
    assert!((0..=u16::MAX).all(|word| with(word)[26..28] != [0, 0]));
}

#[test]
fn packets_have_the_size_that_was_asked_for() {
    for ip in ips() {
        for size in [64, 65, 1500, 9000] {
            assert_eq!(ip.packet(&Segment::udp(1, 2).padded(&ip, size)).len(), size);
        }
        // Never shorter than the headers.
        assert_eq!(ip.packet(&Segment::tcp(1, 2, 2).padded(&ip, 10)).len(), ip.header_bytes() + 20);
    }
}

#[test]
fn dscp_ecn_and_tags_are_where_they_belong() {
    for ip in ips() {
        let packet = ip.with_tos(46, 2).packet(&Segment::udp(1, 2));
        let frame = ethernet(MACS.0, MACS.1, &[100, 4095], &packet);
        let headers = PacketHeaders::from_ethernet_slice(&frame).unwrap();
        match headers.net.unwrap() {
            NetHeaders::Ipv4(ip, _) => assert_eq!((ip.dscp.value(), ip.ecn.value()), (46, 2)),
            NetHeaders::Ipv6(ip, _) => assert_eq!(ip.traffic_class, 46 << 2 | 2),
            other => panic!("{other:?}"),
        }
        assert_eq!(frame[12..20], [0x88, 0xa8, 0, 100, 0x81, 0, 0x0f, 0xff]);
    }
}

#[test]
fn tunnels_hold_what_was_put_in() {
    let [v4, v6] = ips();
    let inner = v6.packet(&Segment::tcp(1, 2, 0x10).with_payload(b"penstock"));
    let gtpu = checked(&ethernet(MACS.0, MACS.1, &[], &v4.packet(&Segment::gtpu(0x0102_0304, &inner))));
    assert_eq!(gtpu[..8], [0x30, 0xff, 0, 68, 1, 2, 3, 4]);
    assert_eq!(gtpu[8..], inner);
    let frame = ethernet(MACS.1, MACS.0, &[], &inner);
    let vxlan = checked(&ethernet(MACS.0, MACS.1, &[], &v4.packet(&Segment::vxlan(0x00ab_cdef, &frame))));
    assert_eq!(vxlan[..8], [8, 0, 0, 0, 0xab, 0xcd, 0xef, 0]);
    assert_eq!(vxlan[8..], frame);
    assert_eq!(checked(&vxlan[8..]), b"penstock");
}
