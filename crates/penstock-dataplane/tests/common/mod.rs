// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests of the replay engine share.
#![allow(clippy::unwrap_used)] // a test may panic

use penstock_dataplane::{Outcome, Replay, Sinks, Watch};
use penstock_packet::{Batch, CaptureError, Format, Frame, FrameSource, Interface, LinkType, Progress};
use penstock_policy::{Plan, Policy};

/// The plan of a policy that has no limits files.
pub fn plan_of(text: &str) -> Plan {
    let policy = Policy::parse("test.yaml", text).unwrap_or_else(|errors| panic!("{errors}"));
    penstock_policy::compile::compile(&policy, |path| panic!("no file {path}"))
        .unwrap_or_else(|errors| panic!("{errors}"))
}

/// Lets everything run to its end.
pub struct Patient;

impl Watch for Patient {
    fn goes_on(&mut self, _packets: u64, _progress: Progress) -> bool {
        true
    }
}

/// UDP frames of one size at a constant rate. `packet_bytes` is the charged length: IP packet and Ethernet header.
pub struct Saturating {
    frame: Vec<u8>,
    packet_bytes: u32,
    offered_bps: u64,
    index: u64,
    end_ns: u64,
    interfaces: Vec<Interface>,
}

impl Saturating {
    pub fn new(packet_bytes: u32, offered_bps: u64, end_ns: u64) -> Self {
        let mut frame = vec![0; 42];
        frame[12] = 0x08;
        frame[14] = 0x45;
        let ip_bytes = u16::try_from(packet_bytes - 14).unwrap();
        frame[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
        frame[22] = 64;
        frame[23] = 17;
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        frame[38..40].copy_from_slice(&(ip_bytes - 20).to_be_bytes());
        let interface = Interface { name: None, linktype: 1, snap_bytes: 65_535 };
        Self { frame, packet_bytes, offered_bps, index: 0, end_ns, interfaces: vec![interface] }
    }

    fn time_ns(&self, index: u64) -> u64 {
        let bits = u128::from(index) * u128::from(self.packet_bytes) * 8_000_000_000;
        u64::try_from(bits / u128::from(self.offered_bps)).unwrap()
    }
}

impl FrameSource for Saturating {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, CaptureError> {
        batch.clear();
        while batch.len() < 512 {
            let time_ns = self.time_ns(self.index);
            if time_ns >= self.end_ns {
                break;
            }
            self.index += 1;
            let link = LinkType::Ethernet;
            batch.push(&Frame { time_ns, wire_bytes: self.packet_bytes, link, interface: 0, data: &self.frame });
        }
        Ok(!batch.is_empty())
    }

    fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    fn format(&self) -> Format {
        Format::Pcap
    }

    fn progress(&self) -> Progress {
        Progress { done: self.time_ns(self.index), total: Some(self.end_ns) }
    }
}

/// Replays a source in two stretches of one run and returns the bytes that pass after `settle_ns`.
pub fn run(plan: &Plan, source: &mut Saturating, settle_ns: u64) -> u64 {
    let end_ns = source.end_ns;
    let mut replay = Replay::new(plan.clone(), None, 1).unwrap();
    let mut sinks = Sinks::<Vec<u8>>::default();
    source.end_ns = settle_ns;
    let outcome = replay.run(source, &mut sinks, &mut Patient);
    assert!(matches!(outcome, Outcome::Whole), "{outcome:?}");
    let before = replay.report().classes[0].passed_bytes;
    source.end_ns = end_ns;
    let outcome = replay.run(source, &mut sinks, &mut Patient);
    assert!(matches!(outcome, Outcome::Whole), "{outcome:?}");
    replay.report().classes[0].passed_bytes - before
}
