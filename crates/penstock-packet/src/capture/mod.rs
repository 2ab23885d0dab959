// SPDX-License-Identifier: MIT OR Apache-2.0
//! The capture reader: pcap and pcapng, plain or gzipped, from a file or a pipe.
//!
//! The input is read in blocks straight into the caller's batch; whole records are indexed where they lie, and the
//! beginning of a record that is cut off by the block's end waits in `tail` for the next block. `pcap-parser` decodes
//! headers and records; what is ours is the block, the bounds on lengths, and the fate of defects.

mod error;
mod pcap;
mod pcapng;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use crate::batch::Record;
use crate::{Batch, Format, FrameSource, Interface, LinkType, Progress};
pub use error::CaptureError;
use error::Defect;
use pcap::PcapDecoder;
use pcapng::PcapNgDecoder;

/// Bytes that are read at a time.
const BLOCK_BYTES: usize = 256 * 1024;
/// Longest captured packet that is believed (libpcap's bound).
const CAPTURED_MAX_BYTES: u32 = 256 * 1024;
/// Longest record or block that is believed: a damaged length must not become an allocation.
pub const RECORD_MAX_BYTES: usize = 16 * 1024 * 1024;

/// What a decoder makes of the bytes at a record's start.
enum Step {
    /// A packet in a record of so many bytes; `start` counts from the record's start.
    Packet(Record, usize),
    /// Nothing for us, so many bytes long.
    Skip(usize),
    /// The record has at least so many bytes in all; there are fewer.
    Need(usize),
}

enum Decoder {
    Pcap(PcapDecoder),
    PcapNg(PcapNgDecoder),
}

impl Decoder {
    fn step(&mut self, bytes: &[u8]) -> Result<Step, Defect> {
        match self {
            Self::Pcap(decoder) => decoder.step(bytes),
            Self::PcapNg(decoder) => decoder.step(bytes),
        }
    }
}

/// Reads a capture.
pub struct CaptureReader {
    input: Box<dyn Read + Send>,
    decoder: Decoder,
    /// Read, but not yet part of a batch.
    tail: Vec<u8>,
    /// Where `tail` begins in the (unpacked) capture.
    offset: u64,
    packets: u64,
    /// Set once the input has no more blocks: how it ended.
    end: Option<Result<(), CaptureError>>,
    raw_bytes: Arc<AtomicU64>,
    total_bytes: Option<u64>,
}

impl CaptureReader {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// When it cannot be read, is no capture, or has a link type that is not supported. Errors do not name the file: the
    /// caller knows it.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        if path.as_os_str() == "-" {
            return Self::from_reader(io::stdin(), None);
        }
        let file = File::open(path).map_err(CaptureError::Open)?;
        let metadata = file.metadata().map_err(CaptureError::Open)?;
        if metadata.is_dir() {
            return Err(CaptureError::Open(io::ErrorKind::IsADirectory.into()));
        }
        let total_bytes = metadata.is_file().then_some(metadata.len());
        Self::from_reader(file, total_bytes)
    }

    /// Reads from anything; `total_bytes` is its length, if known, for [`FrameSource::progress`].
    ///
    /// # Errors
    /// As [`CaptureReader::open`].
    pub fn from_reader(input: impl Read + Send + 'static, total_bytes: Option<u64>) -> Result<Self, CaptureError> {
        let raw_bytes = Arc::new(AtomicU64::new(0));
        let mut counted = Counted { input, bytes: Arc::clone(&raw_bytes) };
        let mut head =
            read_block(&mut counted, 4).map_err(|source| CaptureError::Read { offset: 0, packets: 0, source })?;
        let mut input: Box<dyn Read + Send> = Box::new(counted);
        if head.starts_with(&[0x1f, 0x8b]) {
            let packed = io::BufReader::with_capacity(BLOCK_BYTES, io::Cursor::new(head).chain(input));
            input = Box::new(MultiGzDecoder::new(packed));
            head = Vec::new();
        }
        let mut reader = Self {
            input,
            decoder: Decoder::PcapNg(PcapNgDecoder::default()),
            tail: head,
            offset: 0,
            packets: 0,
            end: None,
            raw_bytes,
            total_bytes,
        };
        reader.read_header()?;
        Ok(reader)
    }

    /// Packets delivered so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Chooses the decoder by the first four bytes and takes a pcap's header.
    fn read_header(&mut self) -> Result<(), CaptureError> {
        self.fill_tail(4)?;
        if self.tail.starts_with(&pcapng::MAGIC) {
            return Ok(());
        }
        if self.tail.len() < 4 || !PcapDecoder::is_magic(&self.tail) {
            return Err(CaptureError::not_a_capture(&self.tail));
        }
        self.fill_tail(pcap::HEADER_BYTES)?;
        if self.tail.len() < pcap::HEADER_BYTES {
            return Err(CaptureError::Truncated { offset: 0, packets: 0 });
        }
        let decoder = PcapDecoder::new(&self.tail).map_err(|defect| defect.at(0, 0))?;
        self.tail.drain(..pcap::HEADER_BYTES);
        self.offset = pcap::HEADER_BYTES as u64;
        self.decoder = Decoder::Pcap(decoder);
        Ok(())
    }

    /// Reads until `tail` has `bytes`, or the input ends.
    fn fill_tail(&mut self, bytes: usize) -> Result<(), CaptureError> {
        let missing = bytes.saturating_sub(self.tail.len());
        let more = read_block(&mut self.input, missing).map_err(|source| self.failed_read(0, source))?;
        self.tail.extend(more);
        Ok(())
    }

    /// Puts the tail and a block of input into `bytes`; returns how many bytes are there and how the input ended, if so.
    fn fill(&mut self, bytes: &mut Vec<u8>, need: usize) -> (usize, Option<io::Result<()>>) {
        let size = BLOCK_BYTES.max(need).max(self.tail.len() + 1);
        if bytes.len() < size {
            bytes.resize(size, 0);
        }
        let mut filled = self.tail.len();
        bytes[..filled].copy_from_slice(&self.tail);
        self.tail.clear();
        while filled < size {
            match self.input.read(&mut bytes[filled..size]) {
                Ok(0) => return (filled, Some(Ok(()))),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (filled, Some(Err(error))),
            }
        }
        (filled, None)
    }

    /// Indexes all whole records of `batch.bytes[..filled]`; returns where the first one that is not whole begins, and how
    /// many bytes it needs at least.
    fn index(&mut self, batch: &mut Batch, filled: usize) -> (usize, Result<usize, Defect>) {
        let mut at = 0;
        while at < filled {
            match self.decoder.step(&batch.bytes[at..filled]) {
                Ok(Step::Packet(mut record, length)) => {
                    // A block has at most RECORD_MAX_BYTES, so this cannot fail.
                    record.start += u32::try_from(at).unwrap_or(u32::MAX);
                    batch.records.push(record);
                    at += length;
                }
                Ok(Step::Skip(length)) => at += length,
                Ok(Step::Need(length)) if length <= RECORD_MAX_BYTES => return (at, Ok(length)),
                Ok(Step::Need(length)) => return (at, Err(Defect::too_long(length))),
                Err(defect) => return (at, Err(defect)),
            }
        }
        (at, Ok(0))
    }

    fn failed_read(&self, unread: usize, source: io::Error) -> CaptureError {
        let (offset, packets) = (self.offset + unread as u64, self.packets);
        // A gzip stream that stops in the middle is a truncated capture like any other.
        if source.kind() == io::ErrorKind::UnexpectedEof {
            return CaptureError::Truncated { offset, packets };
        }
        CaptureError::Read { offset, packets, source }
    }
}

impl FrameSource for CaptureReader {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, CaptureError> {
        batch.records.clear();
        let mut need = 0;
        while batch.is_empty() && self.end.is_none() {
            let (filled, input_end) = self.fill(&mut batch.bytes, need);
            let (at, outcome) = self.index(batch, filled);
            self.packets += batch.len() as u64;
            self.offset += at as u64;
            let rest = filled - at;
            match (outcome, input_end) {
                (Err(defect), _) => self.end = Some(Err(defect.at(self.offset, self.packets))),
                (Ok(_), Some(Err(error))) => self.end = Some(Err(self.failed_read(rest, error))),
                (Ok(_), Some(Ok(()))) if rest > 0 => {
                    self.end = Some(Err(CaptureError::Truncated { offset: self.offset, packets: self.packets }));
                }
                (Ok(_), Some(Ok(()))) => self.end = Some(Ok(())),
                (Ok(length), None) => {
                    need = length;
                    self.tail.extend_from_slice(&batch.bytes[at..filled]);
                }
            }
        }
        if !batch.is_empty() {
            return Ok(true);
        }
        // The error is told once; asking again finds the end.
        match self.end.replace(Ok(())) {
            Some(Err(error)) => Err(error),
            _ => Ok(false),
        }
    }

    fn interfaces(&self) -> &[Interface] {
        match &self.decoder {
            Decoder::Pcap(decoder) => std::slice::from_ref(decoder.interface()),
            Decoder::PcapNg(decoder) => decoder.interfaces(),
        }
    }

    fn format(&self) -> Format {
        match self.decoder {
            Decoder::Pcap(_) => Format::Pcap,
            Decoder::PcapNg(_) => Format::PcapNg,
        }
    }

    fn progress(&self) -> Progress {
        Progress { done: self.raw_bytes.load(Ordering::Relaxed), total: self.total_bytes }
    }
}

/// The link type of an interface, or why its packets cannot be read.
fn link_of(linktype: u16) -> Result<LinkType, Defect> {
    LinkType::from_linktype(linktype).ok_or(Defect::UnknownLinkType(linktype))
}

/// Reads up to `bytes` bytes; fewer only at the input's end.
fn read_block(input: &mut impl Read, bytes: usize) -> io::Result<Vec<u8>> {
    let mut block = Vec::with_capacity(bytes);
    input.take(bytes as u64).read_to_end(&mut block)?;
    Ok(block)
}

/// Counts what was read from the file itself, packed or not.
struct Counted<R> {
    input: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
