// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is written is read again as it was.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)] // a test may fail by either

mod fixtures;

use std::path::Path;

use fixtures::{LITTLE, Outcome, Seen, drain, read, small_pcap, small_pcapng};
use penstock_packet::{CaptureReader, CaptureWriter, Format, Frame, Interface, WriteError, WriteSummary};

fn frame(seen: &Seen) -> Frame<'_> {
    let Seen { time_ns, wire_bytes, link, interface, data } = seen;
    Frame { time_ns: *time_ns, wire_bytes: *wire_bytes, link: *link, interface: *interface, data }
}

fn write(path: &Path, format: Format, outcome: &Outcome) -> WriteSummary {
    let mut writer = CaptureWriter::create(path, format, &outcome.interfaces).unwrap();
    for seen in &outcome.frames {
        writer.write(&frame(seen), seen.time_ns, &outcome.interfaces).unwrap();
    }
    writer.finish(true).unwrap()
}

fn read_file(path: &Path) -> Outcome {
    let outcome = drain(&mut CaptureReader::open(path).unwrap());
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    outcome
}

/// The names of all files in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn frames_come_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let pcap = read(&small_pcap().0);
    let pcapng = read(&small_pcapng(LITTLE).0);
    for (name, format, outcome, magic) in [
        ("a.pcap", Format::Pcap, &pcap, &[0x4d, 0x3c, 0xb2, 0xa1][..]),
        ("b.pcap.gz", Format::Pcap, &pcap, &[0x1f, 0x8b]),
        ("c.pcapng", Format::Pcap, &pcap, &[0x0a, 0x0d, 0x0d, 0x0a]),
        ("d.cap", Format::PcapNg, &pcapng, &[0x0a, 0x0d, 0x0d, 0x0a]),
        ("e.pcapng.gz", Format::PcapNg, &pcapng, &[0x1f, 0x8b]),
    ] {
        let path = folder.path().join(name);
        let summary = write(&path, format, outcome);
        let bytes: usize = outcome.frames.iter().map(|frame| frame.data.len()).sum();
        assert_eq!(summary, WriteSummary { packets: outcome.frames.len() as u64, bytes: bytes as u64 });
        assert!(std::fs::read(&path).unwrap().starts_with(magic), "{name}");
        let mut again = read_file(&path).frames;
        if format == Format::PcapNg {
            // Interfaces are described when their first frame comes: the order is the frames'.
            again.iter_mut().for_each(|frame| frame.interface = 1 - frame.interface);
        }
        assert_eq!(again, outcome.frames, "{name}");
    }
    assert_eq!(names(folder.path()), ["a.pcap", "b.pcap.gz", "c.pcapng", "d.cap", "e.pcapng.gz"]);
}

#[test]
fn interfaces_keep_name_and_link_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pcapng");
    write(&path, Format::PcapNg, &read(&small_pcapng(LITTLE).0));
    let interfaces = read_file(&path).interfaces;
    assert_eq!((interfaces[0].name.as_deref(), interfaces[0].linktype), (None, 101));
    assert_eq!((interfaces[1].name.as_deref(), interfaces[1].linktype), (Some("eth0"), 1));
}

#[test]
fn a_capture_without_frames_is_a_capture() {
    let folder = tempfile::tempdir().unwrap();
    for (name, format) in [("a.pcap", Format::Pcap), ("b.pcapng", Format::PcapNg)] {
        let path = folder.path().join(name);
        let empty = read(&LITTLE.pcap_header(0xa1b2_c3d4, 101));
        write(&path, format, &empty);
        assert!(read_file(&path).frames.is_empty());
    }
    assert_eq!(read_file(&folder.path().join("a.pcap")).interfaces[0].linktype, 101);
}

#[test]
fn an_abandoned_capture_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pcap");
    std::fs::write(&path, "old").unwrap();
    let outcome = read(&small_pcap().0);
    let mut writer = CaptureWriter::create(&path, Format::Pcap, &outcome.interfaces).unwrap();
    writer.write(&frame(&outcome.frames[0]), 0, &outcome.interfaces).unwrap();
    assert_eq!(names(folder.path()).len(), 2);
    drop(writer);
    assert_eq!(names(folder.path()), ["x.pcap"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    write(&path, Format::Pcap, &outcome);
    assert_eq!(read_file(&path).frames, outcome.frames);
}

#[test]
fn a_pcap_refuses_what_it_cannot_hold() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = read(&small_pcap().0);
    let seen = frame(&outcome.frames[0]);
    let mut writer = CaptureWriter::create(&folder.path().join("x.pcap"), Format::Pcap, &outcome.interfaces).unwrap();
    let other = [Interface { name: None, linktype: 113, snap_bytes: 0 }];
    let error = writer.write(&seen, 0, &other);
    assert!(matches!(error, Err(WriteError::MixedLinkTypes { first: 1, second: 113 })), "{error:?}");
    let error = writer.write(&seen, u64::MAX, &outcome.interfaces);
    assert!(matches!(error, Err(WriteError::Unwritable { .. })), "{error:?}");
}

#[test]
fn a_target_that_cannot_be_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_owned(), folder.path().join("no/such/x.pcap")] {
        let error = CaptureWriter::create(&path, Format::Pcap, &[]).err().unwrap();
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}
