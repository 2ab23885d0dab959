// SPDX-License-Identifier: MIT OR Apache-2.0
//! pcap: a header and records. Both byte orders, micro- and nanoseconds, and Kuznetzov's variant (little-endian).

use pcap_parser::nom::{Err as NomErr, IResult, Needed};
use pcap_parser::{
    LegacyPcapBlock, PcapError, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified, parse_pcap_header,
};

use super::{CAPTURED_MAX_BYTES, Defect, Step, link_of};
use crate::batch::Record;
use crate::{Interface, LinkType};

/// Length of the file header.
pub(super) const HEADER_BYTES: usize = 24;

type ParseRecord = fn(&[u8]) -> IResult<&[u8], LegacyPcapBlock<'_>, PcapError<&[u8]>>;

pub(super) struct PcapDecoder {
    parse: ParseRecord,
    header_bytes: u32,
    fraction_ns: u64,
    link: LinkType,
    interface: Interface,
}

impl PcapDecoder {
    /// Whether a capture in this format begins so.
    pub fn is_magic(head: &[u8]) -> bool {
        // micro, nano, modified; the first two also swapped
        const MAGICS: [[u8; 4]; 5] = [
            [0xd4, 0xc3, 0xb2, 0xa1],
            [0x4d, 0x3c, 0xb2, 0xa1],
            [0x34, 0xcd, 0xb2, 0xa1],
            [0xa1, 0xb2, 0xc3, 0xd4],
            [0xa1, 0xb2, 0x3c, 0x4d],
        ];
        MAGICS.iter().any(|magic| head.starts_with(magic))
    }

    /// Takes the file header, which must be whole.
    pub fn new(bytes: &[u8]) -> Result<Self, Defect> {
        let Ok((_, header)) = parse_pcap_header(bytes) else {
            return Err(Defect::damaged("the pcap header cannot be read"));
        };
        if header.version_major != 2 {
            let (major, minor) = (header.version_major, header.version_minor);
            return Err(Defect::damaged(format!("pcap version {major}.{minor} (2.4 is supported)")));
        }
        // The upper half of the field says whether frames end with an FCS; the IP length tells them apart anyway.
        let linktype = (header.network.0 & 0xffff) as u16;
        let (parse, header_bytes): (ParseRecord, u32) = match (header.is_modified_format(), header.is_bigendian()) {
            (true, _) => (parse_pcap_frame_modified, 24),
            (false, true) => (parse_pcap_frame_be, 16),
            (false, false) => (parse_pcap_frame, 16),
        };
        Ok(Self {
            parse,
            header_bytes,
            fraction_ns: if header.is_nanosecond_precision() { 1 } else { 1000 },
            link: link_of(linktype)?,
            interface: Interface { name: None, linktype, snap_bytes: header.snaplen },
        })
    }

    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    pub fn step(&self, bytes: &[u8]) -> Result<Step, Defect> {
        let (rest, block) = match (self.parse)(bytes) {
            Ok(parsed) => parsed,
            Err(NomErr::Incomplete(Needed::Size(missing))) => return Ok(Step::Need(bytes.len() + missing.get())),
            Err(_) => return Err(Defect::damaged("the record header cannot be read")),
        };
        let captured_bytes = block.caplen;
        if captured_bytes > CAPTURED_MAX_BYTES {
            return Err(Defect::damaged(format!(
                "a packet of {captured_bytes} captured bytes (at most {CAPTURED_MAX_BYTES} are believed)"
            )));
        }
        let record = Record {
            // u32 seconds and u32 microseconds fit u64 nanoseconds.
            time_ns: u64::from(block.ts_sec) * 1_000_000_000 + u64::from(block.ts_usec) * self.fraction_ns,
            start: self.header_bytes,
            captured_bytes,
            wire_bytes: block.origlen.max(captured_bytes),
            interface: 0,
            link: self.link.of_frame(block.data),
        };
        Ok(Step::Packet(record, bytes.len() - rest.len()))
    }
}
