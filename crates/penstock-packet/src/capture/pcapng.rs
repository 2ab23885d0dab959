// SPDX-License-Identifier: MIT OR Apache-2.0
//! pcapng (draft-ietf-opsawg-pcapng): blocks. Sections of either byte order, many interfaces, enhanced, simple and obsolete
//! packet blocks; all other blocks are skipped without a look inside, so a strange one does no harm.
//!
//! Interfaces are numbered on through all sections.

use pcap_parser::nom::IResult;
use pcap_parser::{
    InterfaceDescriptionBlock, OptionCode, PcapError, parse_enhancedpacketblock_be, parse_enhancedpacketblock_le,
    parse_interfacedescriptionblock_be, parse_interfacedescriptionblock_le, parse_sectionheaderblock,
};

use super::{CAPTURED_MAX_BYTES, Defect, Step, link_of};
use crate::Interface;
use crate::batch::Record;

/// A section header's type: what a capture begins with.
pub(super) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const SECTION: u32 = 0x0a0d_0d0a; // the same in both byte orders
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Type, length, and the length again.
const FRAME_BYTES: usize = 12;
/// Where the data begins in an enhanced or obsolete packet block, and in a simple one.
const PACKET_DATA: u32 = 28;
const SIMPLE_DATA: u32 = 12;

const SECOND_NS: u64 = 1_000_000_000;

/// What a time stamp of an interface means.
#[derive(Clone, Copy)]
struct Clock {
    units_per_second: u64,
    offset_seconds: i64,
}

impl Clock {
    fn of(block: &InterfaceDescriptionBlock<'_>, big_endian: bool) -> Option<Self> {
        let exponent = u32::from(block.if_tsresol & 0x7f);
        let base: u64 = if block.if_tsresol & 0x80 == 0 { 10 } else { 2 };
        let offset = block.options.iter().find(|option| option.code == OptionCode::IfTsoffset);
        let offset = offset.and_then(|option| option.value().first_chunk::<8>());
        let read = if big_endian { i64::from_be_bytes } else { i64::from_le_bytes };
        Some(Self {
            units_per_second: base.checked_pow(exponent)?,
            offset_seconds: offset.map_or(0, |bytes| read(*bytes)),
        })
    }

    /// Nanoseconds since 1970, clamped to what a u64 can say.
    fn time_ns(self, stamp: u64) -> u64 {
        let (seconds, units) = (stamp / self.units_per_second, stamp % self.units_per_second);
        // units < units_per_second: the quotient is below 10^9, also where the product needs more than 64 bits.
        let fraction_ns = if SECOND_NS.is_multiple_of(self.units_per_second) {
            u128::from(units * (SECOND_NS / self.units_per_second))
        } else {
            u128::from(units) * u128::from(SECOND_NS) / u128::from(self.units_per_second)
        };
        let seconds = i128::from(seconds) + i128::from(self.offset_seconds);
        let time_ns = seconds * i128::from(SECOND_NS) + fraction_ns.cast_signed();
        u64::try_from(time_ns.max(0)).unwrap_or(u64::MAX)
    }
}

#[derive(Default)]
pub(super) struct PcapNgDecoder {
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// As many as `interfaces`.
    clocks: Vec<Clock>,
    /// The first interface of this section.
    section_first: usize,
    /// Simple packet blocks have no time of their own.
    last_ns: u64,
}

impl PcapNgDecoder {
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    pub fn step(&mut self, bytes: &[u8]) -> Result<Step, Defect> {
        if bytes.len() < FRAME_BYTES {
            return Ok(Step::Need(FRAME_BYTES));
        }
        let kind = self.u32_at(bytes, 0);
        if kind == SECTION {
            // The byte-order mark is the first field of the body.
            self.big_endian = bytes[8..12] == [0x1a, 0x2b, 0x3c, 0x4d];
        }
        let length = self.u32_at(bytes, 4) as usize;
        if length < FRAME_BYTES || !length.is_multiple_of(4) {
            return Err(Defect::damaged(format!(
                "a block of {length} bytes (a multiple of 4, at least {FRAME_BYTES})"
            )));
        }
        let Some(block) = bytes.get(..length) else {
            return Ok(Step::Need(length));
        };
        if self.u32_at(block, length - 4) as usize != length {
            return Err(Defect::damaged("a block whose two lengths differ"));
        }
        match kind {
            SECTION => self.begin_section(block)?,
            INTERFACE => self.add_interface(block)?,
            OBSOLETE_PACKET => return Ok(Step::Packet(self.obsolete_packet(block)?, length)),
            SIMPLE_PACKET => return Ok(Step::Packet(self.simple_packet(block)?, length)),
            ENHANCED_PACKET => return Ok(Step::Packet(self.enhanced_packet(block)?, length)),
            _ => {}
        }
        Ok(Step::Skip(length))
    }

    fn begin_section(&mut self, block: &[u8]) -> Result<(), Defect> {
        let section = parsed(parse_sectionheaderblock(block), "section header")?;
        if section.major_version != 1 {
            let (major, minor) = (section.major_version, section.minor_version);
            return Err(Defect::damaged(format!("pcapng version {major}.{minor} (1.x is supported)")));
        }
        self.section_first = self.interfaces.len();
        Ok(())
    }

    fn add_interface(&mut self, block: &[u8]) -> Result<(), Defect> {
        let parse =
            if self.big_endian { parse_interfacedescriptionblock_be } else { parse_interfacedescriptionblock_le };
        let interface = parsed(parse(block), "interface description")?;
        let Some(clock) = Clock::of(&interface, self.big_endian) else {
            return Err(Defect::damaged(format!("time resolution {:#04x} of an interface", interface.if_tsresol)));
        };
        self.clocks.push(clock);
        self.interfaces.push(Interface {
            name: interface.if_name().and_then(Result::ok).map(|name| name.trim_end_matches('\0').to_owned()),
            linktype: (interface.linktype.0 & 0xffff) as u16,
            snap_bytes: interface.snaplen,
        });
        Ok(())
    }

    fn enhanced_packet(&mut self, block: &[u8]) -> Result<Record, Defect> {
        let parse = if self.big_endian { parse_enhancedpacketblock_be } else { parse_enhancedpacketblock_le };
        let packet = parsed(parse(block), "packet")?;
        let stamp = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
        self.record(block, packet.if_id, Some(stamp), packet.caplen, packet.origlen)
    }

    /// As an enhanced packet, but the interface has 16 bits and the next 16 count drops. The library does not know it.
    fn obsolete_packet(&mut self, block: &[u8]) -> Result<Record, Defect> {
        if block.len() < PACKET_DATA as usize + 4 {
            return Err(Defect::damaged("a packet block that is too short"));
        }
        let interface = [block[8], block[9]];
        let interface = if self.big_endian { u16::from_be_bytes(interface) } else { u16::from_le_bytes(interface) };
        let stamp = u64::from(self.u32_at(block, 12)) << 32 | u64::from(self.u32_at(block, 16));
        let (captured, wire) = (self.u32_at(block, 20), self.u32_at(block, 24));
        if captured as usize > block.len() - PACKET_DATA as usize - 4 {
            return Err(Defect::damaged("a packet block that is too short for its data"));
        }
        self.record(block, u32::from(interface), Some(stamp), captured, wire)
    }

    /// Only the length on the wire is told: the data is as long as that, the snap length and the block allow.
    fn simple_packet(&mut self, block: &[u8]) -> Result<Record, Defect> {
        let room = u32::try_from(block.len()).unwrap_or(u32::MAX);
        let Some(room) = room.checked_sub(SIMPLE_DATA + 4) else {
            return Err(Defect::damaged("a simple packet block that is too short"));
        };
        let wire = self.u32_at(block, 8);
        let snap = self.interfaces.get(self.section_first).map_or(0, |interface| interface.snap_bytes);
        let captured = wire.min(if snap == 0 { u32::MAX } else { snap });
        if captured > room {
            return Err(Defect::damaged("a simple packet block that is too short for its data"));
        }
        self.record(block, 0, None, captured, wire)
    }

    /// A packet of `block`, whose captured bytes are known to lie in it. Only simple packets have no time stamp.
    fn record(
        &mut self,
        block: &[u8],
        interface: u32,
        stamp: Option<u64>,
        captured_bytes: u32,
        wire_bytes: u32,
    ) -> Result<Record, Defect> {
        let index = self.section_first + interface as usize;
        let (Some(described), Some(clock)) = (self.interfaces.get(index), self.clocks.get(index)) else {
            let known = self.interfaces.len() - self.section_first;
            return Err(Defect::damaged(format!("a packet of interface {interface}, where {known} are described")));
        };
        if captured_bytes > CAPTURED_MAX_BYTES {
            return Err(Defect::damaged(format!(
                "a packet of {captured_bytes} captured bytes (at most {CAPTURED_MAX_BYTES} are believed)"
            )));
        }
        let link = link_of(described.linktype)?;
        let start = if stamp.is_some() { PACKET_DATA } else { SIMPLE_DATA };
        if let Some(stamp) = stamp {
            self.last_ns = clock.time_ns(stamp);
        }
        Ok(Record {
            time_ns: self.last_ns,
            start,
            captured_bytes,
            wire_bytes: wire_bytes.max(captured_bytes),
            interface: u32::try_from(index).unwrap_or(u32::MAX),
            link: link.of_frame(&block[start as usize..]),
        })
    }

    /// Callers have checked that `bytes` is long enough.
    fn u32_at(&self, bytes: &[u8], at: usize) -> u32 {
        let field = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self.big_endian { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) }
    }
}

/// The block was whole, so whatever the library finds missing is a defect.
fn parsed<'a, T>(result: IResult<&'a [u8], T, PcapError<&'a [u8]>>, what: &str) -> Result<T, Defect> {
    match result {
        Ok((_, block)) => Ok(block),
        Err(_) => Err(Defect::damaged(format!("a {what} block that cannot be read"))),
    }
}
