// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures that were changed at random: reading ends, with frames that are in bounds, and never panics.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)] // a test may fail by either

mod fixtures;

use fixtures::{BIG, LITTLE, gzip, read, small_pcap, small_pcapng};
use proptest::prelude::*;

/// Every kind of input, whole.
fn capture() -> impl Strategy<Value = Vec<u8>> {
    let plain = prop_oneof![
        Just(small_pcap().0),
        Just(small_pcapng(LITTLE).0),
        Just(small_pcapng(BIG).0),
        Just([small_pcapng(BIG).0, small_pcapng(LITTLE).0].concat()),
    ];
    (plain, any::<bool>()).prop_map(|(bytes, packed)| if packed { gzip(&bytes) } else { bytes })
}

/// A change: at a place, to a byte that is often a length's.
fn change() -> impl Strategy<Value = (prop::sample::Index, u8)> {
    (any::<prop::sample::Index>(), prop_oneof![any::<u8>(), Just(0), Just(0xff), Just(0x80)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_changed_capture_is_read_to_some_end(
        mut bytes in capture(),
        changes in prop::collection::vec(change(), 0..6),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        for (place, byte) in changes {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let outcome = read(&bytes);
        // The longest of these captures, unpacked, has no more than this in it.
        prop_assert!(outcome.frames.len() <= 200);
        for frame in &outcome.frames {
            prop_assert!(frame.wire_bytes as usize >= frame.data.len());
            prop_assert!(frame.data.len() <= 2000);
        }
    }

    #[test]
    fn random_bytes_are_refused(
        magic in prop::sample::select(vec![
            &b"\xd4\xc3\xb2\xa1"[..], b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\x0a\x0d\x0d\x0a", b"\x1f\x8b\x08\x00", b"",
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        // 600 bytes with a magic in front of them: nearly always an error, and always an end.
        let bytes = [magic, &rest].concat();
        prop_assert!(read(&bytes).frames.len() <= 600 / 16);
    }
}
