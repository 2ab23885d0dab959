// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the reader makes of whole captures, of cut ones, and of what is none.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)] // a test may fail by either

mod fixtures;

use fixtures::{BIG, LITTLE, Order, Seen, gzip, read, read_whole, small_pcap, small_pcapng};
use penstock_packet::{CaptureError, LinkType};

fn seen(time_ns: u64, wire_bytes: u32, link: LinkType, interface: u32, data: &[u8]) -> Seen {
    Seen { time_ns, wire_bytes, link, interface, data: data.to_vec() }
}

#[test]
fn pcap_in_both_byte_orders_and_resolutions() {
    for (order, magic, fraction_ns) in
        [(LITTLE, 0xa1b2_c3d4, 1000), (BIG, 0xa1b2_c3d4, 1000), (LITTLE, 0xa1b2_3c4d, 1), (BIG, 0xa1b2_3c4d, 1)]
    {
        let mut bytes = order.pcap_header(magic, 1);
        bytes.extend(order.pcap_record(1, 999_999, 1500, &[1; 60]));
        bytes.extend(order.pcap_record(u32::MAX, 0, 60, &[2; 60]));
        let late = u64::from(u32::MAX) * 1_000_000_000;
        let expected = [
            seen(1_000_000_000 + 999_999 * fraction_ns, 1500, LinkType::Ethernet, 0, &[1; 60]),
            seen(late, 60, LinkType::Ethernet, 0, &[2; 60]),
        ];
        assert_eq!(read_whole(&bytes), expected, "magic {magic:x}, big endian {}", order.big_endian);
    }
}

#[test]
fn pcap_of_kuznetzov_has_longer_record_headers() {
    let mut bytes = LITTLE.pcap_header(0xa1b2_cd34, 1);
    for length in [4, 5] {
        bytes.extend(LITTLE.words(&[3, 0, length, length, 0xeeee_eeee, 0xeeee_eeee]));
        bytes.extend(vec![9; length as usize]);
    }
    let data: Vec<Vec<u8>> = read_whole(&bytes).into_iter().map(|frame| frame.data).collect();
    assert_eq!(data, [vec![9; 4], vec![9; 5]]);
}

#[test]
fn pcapng_in_both_byte_orders() {
    for order in [LITTLE, BIG] {
        let outcome = read(&small_pcapng(order).0);
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        let expected = [
            seen(5_000_001_000, 1400, LinkType::RawIp, 1, &[0x45; 90]),
            seen(6_000_000_123, 61, LinkType::Ethernet, 0, &[2; 61]),
            // A simple packet has no time: it takes that of the packet before it.
            seen(6_000_000_123, 10, LinkType::Ethernet, 0, &[3; 10]),
        ];
        assert_eq!(outcome.frames, expected);
        assert_eq!(outcome.interfaces[0].name.as_deref(), Some("eth0"));
        assert_eq!(outcome.interfaces[1].name, None);
        assert_eq!(outcome.interfaces[1].snap_bytes, 96);
    }
}

#[test]
fn pcapng_sections_number_their_interfaces_on_and_may_change_byte_order() {
    let mut bytes = LITTLE.section();
    bytes.extend(LITTLE.interface(1, 0, &[]));
    bytes.extend(LITTLE.enhanced(0, 1, 4, &[1; 4]));
    bytes.extend(BIG.section());
    bytes.extend(BIG.interface(113, 0, &[]));
    bytes.extend(BIG.enhanced(0, 2, 4, &[2; 4]));
    let frames = read_whole(&bytes);
    assert_eq!(frames[0], seen(1000, 4, LinkType::Ethernet, 0, &[1; 4]));
    assert_eq!(frames[1], seen(2000, 4, LinkType::LinuxSll, 1, &[2; 4]));
}

#[test]
fn pcapng_time_resolutions_and_offsets() {
    let time = |order: Order, options: &[Vec<u8>], stamp: u64| {
        let bytes = [order.section(), order.interface(1, 0, options), order.enhanced(0, stamp, 4, &[1; 4])].concat();
        read_whole(&bytes)[0].time_ns
    };
    for order in [LITTLE, BIG] {
        let resolution = |value| order.option(9, &[value]);
        let offset = |seconds: i64| order.option(14, &order.u64(seconds.cast_unsigned()));
        assert_eq!(time(order, &[resolution(3)], 1_234), 1_234_000_000);
        assert_eq!(time(order, &[resolution(12)], 1_999), 1);
        assert_eq!(time(order, &[resolution(0x80 | 10)], 1536), 1_500_000_000);
        assert_eq!(time(order, &[resolution(0x80 | 63)], 3 << 62), 1_500_000_000);
        assert_eq!(time(order, &[resolution(0)], 7), 7_000_000_000);
        assert_eq!(time(order, &[offset(5)], 1), 5_000_001_000);
        // What a u64 of nanoseconds cannot say is clamped.
        assert_eq!(time(order, &[offset(-1)], 1), 0);
        assert_eq!(time(order, &[resolution(0)], u64::MAX), u64::MAX);
    }
    let bytes = [LITTLE.section(), LITTLE.interface(1, 0, &[LITTLE.option(9, &[20])])].concat();
    assert!(matches!(read(&bytes).error, Some(CaptureError::Damaged { .. })));
}

#[test]
fn a_simple_packet_is_cut_by_the_snap_length() {
    let bytes = [LITTLE.section(), LITTLE.interface(1, 8, &[]), LITTLE.simple(1500, &[1; 8])].concat();
    assert_eq!(read_whole(&bytes), [seen(0, 1500, LinkType::Ethernet, 0, &[1; 8])]);
}

#[test]
fn gzip_of_one_or_several_members() {
    for bytes in [small_pcap().0, small_pcapng(BIG).0] {
        let plain = read_whole(&bytes);
        assert_eq!(read_whole(&gzip(&bytes)), plain);
        let (first, second) = bytes.split_at(100);
        assert_eq!(read_whole(&[gzip(first), gzip(second)].concat()), plain);
    }
}

#[test]
fn records_that_straddle_blocks_are_whole() {
    let mut bytes = LITTLE.pcap_header(0xa1b2_3c4d, 1);
    let lengths: Vec<usize> = (0..400).map(|index| (index * 7919) % 9001).chain([262_144, 3]).collect();
    for (index, &length) in lengths.iter().enumerate() {
        bytes.extend(LITTLE.pcap_record(0, index as u32, length as u32, &vec![index as u8; length]));
    }
    for bytes in [gzip(&bytes), bytes] {
        let frames = read_whole(&bytes);
        assert_eq!(frames.len(), lengths.len());
        for (index, (frame, &length)) in frames.iter().zip(&lengths).enumerate() {
            assert_eq!((frame.time_ns, frame.data.len()), (index as u64, length));
            assert!(frame.data.iter().all(|&byte| byte == index as u8));
        }
    }
}

#[test]
fn a_pcap_cut_anywhere_delivers_all_whole_packets_first() {
    let (bytes, ends) = small_pcap();
    for cut in 4..bytes.len() {
        let outcome = read(&bytes[..cut]);
        let whole = ends.iter().filter(|&&end| end <= cut).count();
        assert_eq!(outcome.frames.len(), whole, "cut at {cut}");
        let boundary = ends.iter().copied().chain([24]).filter(|&end| end <= cut).max();
        match (outcome.error, boundary) {
            (None, Some(boundary)) => assert_eq!(boundary, cut),
            (Some(CaptureError::Truncated { offset, packets }), boundary) => {
                assert_ne!(boundary, Some(cut));
                assert_eq!((offset, packets), (boundary.unwrap_or(0) as u64, whole as u64), "cut at {cut}");
            }
            (other, _) => panic!("cut at {cut}: {other:?}"),
        }
    }
}

#[test]
fn a_pcapng_cut_anywhere_delivers_all_whole_packets_first() {
    let (bytes, packet_ends, block_ends) = small_pcapng(LITTLE);
    for cut in 4..bytes.len() {
        let outcome = read(&bytes[..cut]);
        let whole = packet_ends.iter().filter(|&&end| end <= cut).count();
        assert_eq!(outcome.frames.len(), whole, "cut at {cut}");
        match outcome.error {
            None => assert!(block_ends.contains(&cut), "cut at {cut}"),
            Some(CaptureError::Truncated { packets, .. }) => {
                assert!(!block_ends.contains(&cut));
                assert_eq!(packets, whole as u64);
            }
            other => panic!("cut at {cut}: {other:?}"),
        }
    }
}

#[test]
fn a_gzip_cut_anywhere_is_truncated() {
    let bytes = gzip(&small_pcap().0);
    for cut in 2..bytes.len() {
        let error = read(&bytes[..cut]).error;
        assert!(matches!(error, Some(CaptureError::Truncated { .. })), "cut at {cut}: {error:?}");
    }
}

#[test]
fn what_is_no_capture_is_told() {
    for (bytes, found) in [
        (&b""[..], "no bytes at all"),
        (b"\xa1", "the bytes a1"),
        (b"penstock: 1\n", "the bytes 70 65 6e 73"),
        (&gzip(b"penstock"), "the bytes 70 65 6e 73"),
    ] {
        let error = read(bytes).error.unwrap();
        assert!(matches!(error, CaptureError::NotACapture { .. }), "{error:?}");
        assert!(error.to_string().contains("expected pcap, pcapng or gzip"), "{error}");
        assert!(error.to_string().ends_with(found), "{error}");
    }
}

#[test]
fn link_types_are_folded_or_refused() {
    for (linktype, link) in [
        (0, LinkType::Null),
        (1, LinkType::Ethernet),
        (9, LinkType::Ppp),
        (12, LinkType::RawIp),
        (14, LinkType::RawIp),
        (50, LinkType::Ppp),
        (101, LinkType::RawIp),
        (104, LinkType::CiscoHdlc),
        (108, LinkType::Null),
        (113, LinkType::LinuxSll),
        (228, LinkType::RawIp),
        (229, LinkType::RawIp),
        (276, LinkType::LinuxSll2),
    ] {
        let bytes =
            [LITTLE.pcap_header(0xa1b2_c3d4, linktype), LITTLE.pcap_record(0, 0, 4, &[0xff, 3, 0, 0x21])].concat();
        assert_eq!(read_whole(&bytes)[0].link, link, "{linktype}");
        // With a note on the FCS in the upper half.
        let bytes = [LITTLE.pcap_header(0xa1b2_c3d4, linktype | 0x2400_0000), bytes[24..].to_vec()].concat();
        assert_eq!(read_whole(&bytes)[0].link, link, "{linktype}");
    }
    let error = read(&LITTLE.pcap_header(0xa1b2_c3d4, 105)).error;
    assert!(matches!(error, Some(CaptureError::UnknownLinkType { linktype: 105, .. })), "{error:?}");
}

#[test]
fn ppp_captures_hold_cisco_hdlc_too() {
    let mut bytes = LITTLE.pcap_header(0xa1b2_c3d4, 9);
    for data in [[0x0f, 0, 8, 0], [0x8f, 0, 0x80, 0x35], [0xff, 3, 0, 0x21], [0, 0x21, 0x45, 0]] {
        bytes.extend(LITTLE.pcap_record(0, 0, 4, &data));
    }
    let links: Vec<LinkType> = read_whole(&bytes).iter().map(|frame| frame.link).collect();
    assert_eq!(links, [LinkType::CiscoHdlc, LinkType::CiscoHdlc, LinkType::Ppp, LinkType::Ppp]);
}

#[test]
fn an_unknown_link_type_of_a_pcapng_matters_with_its_first_packet() {
    let mut bytes = [LITTLE.section(), LITTLE.interface(1, 0, &[]), LITTLE.interface(105, 0, &[])].concat();
    bytes.extend(LITTLE.enhanced(0, 1, 4, &[1; 4]));
    assert_eq!(read_whole(&bytes).len(), 1);
    bytes.extend(LITTLE.enhanced(1, 1, 4, &[1; 4]));
    let outcome = read(&bytes);
    assert_eq!(outcome.frames.len(), 1);
    assert!(matches!(outcome.error, Some(CaptureError::UnknownLinkType { linktype: 105, packets: 1, .. })));
}

#[test]
fn impossible_lengths_are_damage_after_the_packets_before() {
    let (pcap, _) = small_pcap();
    let (pcapng, _, _) = small_pcapng(LITTLE);
    for (what, bytes) in [
        ("captured bytes", [pcap.clone(), LITTLE.words(&[0, 0, 300_000, 60]), vec![0; 300_000]].concat()),
        ("record", [pcap.clone(), LITTLE.words(&[0, 0, u32::MAX, 60])].concat()),
        ("record", [pcapng.clone(), LITTLE.words(&[6, 0xffff_fff0, 0])].concat()),
        ("multiple of 4", [pcapng.clone(), LITTLE.words(&[6, 33, 0])].concat()),
        ("multiple of 4", [pcapng.clone(), LITTLE.words(&[6, 8, 0])].concat()),
        ("lengths differ", [pcapng.clone(), LITTLE.words(&[0xcafe, 16, 0, 20])].concat()),
        ("cannot be read", [pcapng.clone(), LITTLE.block(6, &LITTLE.words(&[0, 0, 0, 400, 400]))].concat()),
        ("too short", [pcapng.clone(), LITTLE.block(2, &LITTLE.words(&[0, 0, 0, 400, 400]))].concat()),
        ("too short", [pcapng.clone(), LITTLE.block(3, &LITTLE.words(&[400, 0]))].concat()),
        ("too short", [pcapng.clone(), LITTLE.block(3, &[])].concat()),
        ("interface 2", [pcapng.clone(), LITTLE.enhanced(2, 0, 4, &[0; 4])].concat()),
        ("interface 0", [LITTLE.section(), LITTLE.simple(4, &[0; 4])].concat()),
    ] {
        let whole = match &bytes {
            bytes if bytes.starts_with(&pcap) => 4,
            bytes if bytes.starts_with(&pcapng) => 3,
            _ => 0,
        };
        let outcome = read(&bytes);
        assert_eq!(outcome.frames.len(), whole, "{what}");
        let error = outcome.error.unwrap();
        assert!(matches!(error, CaptureError::Damaged { packets, .. } if packets == whole as u64), "{error:?}");
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn the_length_on_the_wire_is_never_below_what_was_captured() {
    let bytes = [LITTLE.pcap_header(0xa1b2_c3d4, 1), LITTLE.pcap_record(0, 0, 3, &[0; 60])].concat();
    assert_eq!(read_whole(&bytes)[0].wire_bytes, 60);
}
