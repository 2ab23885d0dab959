// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets by hand for the replay engine.
#![allow(clippy::unwrap_used, dead_code)] // a test may panic; each test file uses a part

use penstock_dataplane::{Outcome, Replay, Sinks, VerdictWriter, Watch};
use penstock_packet::build::{Ip, Mac, Segment, ethernet};
use penstock_packet::{Batch, CaptureError, Format, Frame, FrameSource, Interface, LinkType, Progress};
use std::net::Ipv4Addr;

const ETHERNET_BYTES: usize = 14;

/// A packet to an address: when it comes, and what a limit charges for it.
#[derive(Debug, Clone, Copy)]
pub struct Packet {
    pub time_ns: u64,
    pub to: [u8; 4],
    pub bytes: usize,
    pub ecn: u8,
}

impl Packet {
    fn frame(&self) -> Vec<u8> {
        let ip = Ip::between(Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::from(self.to)).with_tos(0, self.ecn);
        let segment = Segment::udp(5000, 5001).padded(&ip, self.bytes - ETHERNET_BYTES);
        ethernet(Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]), &[], &ip.packet(&segment))
    }
}

/// Delivers packets in batches of a few.
struct Source<'a>(std::slice::Chunks<'a, Packet>, Vec<Interface>);

impl FrameSource for Source<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, CaptureError> {
        batch.clear();
        for packet in self.0.next().unwrap_or_default() {
            let data = packet.frame();
            let (time_ns, wire_bytes) = (packet.time_ns, u32::try_from(data.len()).unwrap());
            batch.push(&Frame { time_ns, wire_bytes, link: LinkType::Ethernet, interface: 0, data: &data });
        }
        Ok(!batch.is_empty())
    }

    fn interfaces(&self) -> &[Interface] {
        &self.1
    }

    fn format(&self) -> Format {
        Format::Pcap
    }

    fn progress(&self) -> Progress {
        Progress { done: 0, total: None }
    }
}

struct Patient;

impl Watch for Patient {
    fn goes_on(&mut self, _: u64, _: Progress) -> bool {
        true
    }
}

/// Runs packets, and writes what `sinks` ask for.
pub fn try_run(replay: &mut Replay, packets: &[Packet], sinks: &mut Sinks<Vec<u8>>) -> Outcome {
    let interface = Interface { name: None, linktype: 1, snap_bytes: 65_535 };
    replay.run(&mut Source(packets.chunks(100), vec![interface]), sinks, &mut Patient)
}

/// The same, where nothing fails.
pub fn run_into(replay: &mut Replay, packets: &[Packet], sinks: &mut Sinks<Vec<u8>>) {
    let outcome = try_run(replay, packets, sinks);
    assert!(matches!(outcome, Outcome::Whole), "{outcome:?}");
}

/// Runs packets. Returns what became of each: a line of `--verdicts`.
pub fn run(replay: &mut Replay, packets: &[Packet]) -> Vec<String> {
    let verdicts = Some(VerdictWriter::new(Vec::new()).unwrap());
    let mut sinks = Sinks { verdicts, ..Sinks::default() };
    run_into(replay, packets, &mut sinks);
    let text = String::from_utf8(sinks.verdicts.unwrap().finish().unwrap()).unwrap();
    text.lines().skip(1).map(str::to_owned).collect()
}
