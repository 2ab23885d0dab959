// SPDX-License-Identifier: MIT OR Apache-2.0
//! The capture writer: pcap with nanosecond stamps, or pcapng, gzipped when the name ends in `.gz`.
//!
//! A file is written under a temporary name beside its target and takes the target's name in [`CaptureWriter::finish`]:
//! until then nothing looks whole. Both formats are written in little-endian.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use thiserror::Error;

use crate::{Format, Frame, Interface, LinkType, OutputFile};

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 256 * 1024;
/// Announced for every capture; no frame that was read is longer.
const SNAP_BYTES: u32 = 256 * 1024;

/// Why a capture cannot be written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// Creating, writing or renaming failed.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The target.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// pcap holds one link type.
    #[error("pcap holds one link type: this one has {first}, the frame is of {second}; write pcapng instead")]
    MixedLinkTypes {
        /// The file's (LINKTYPE_*).
        first: u16,
        /// The frame's.
        second: u16,
    },
    /// A frame that pcap and pcapng have no room for (4 GiB, or 2^32 seconds).
    #[error("a frame of {bytes} bytes at {time_ns} ns does not fit the format")]
    Unwritable {
        /// Captured bytes.
        bytes: usize,
        /// Its time.
        time_ns: u64,
    },
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteSummary {
    /// Frames.
    pub packets: u64,
    /// Their captured bytes.
    pub bytes: u64,
}

/// Writes frames to a capture. Dropped without [`CaptureWriter::finish`], it leaves no file.
pub struct CaptureWriter {
    path: PathBuf,
    output: Output,
    format: Format,
    /// pcap: the link type of the file.
    linktype: u16,
    /// pcapng: the number in this file of each interface of the source, once it was described.
    described: Vec<Option<u32>>,
    described_count: u32,
    summary: WriteSummary,
}

impl CaptureWriter {
    /// Begins a capture at `path`, on standard output for `-`. The format is `format`, unless the name ends in `.pcapng` or
    /// `.pcapng.gz`. `interfaces` are those known by now: the first one says what link type a pcap has.
    ///
    /// # Errors
    /// [`WriteError::Io`] when the target or the file beside it cannot be created.
    pub fn create(path: &Path, format: Format, interfaces: &[Interface]) -> Result<Self, WriteError> {
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let (stem, gzip) = match name.strip_suffix(".gz") {
            Some(stem) => (stem, true),
            None => (name.as_str(), false),
        };
        let target = OutputFile::create(path).map_err(|source| WriteError::Io { path: path.to_owned(), source })?;
        let target = BufWriter::with_capacity(BUFFER_BYTES, target);
        let mut writer = Self {
            path: path.to_owned(),
            output: if gzip {
                Output::Gzip(Box::new(GzEncoder::new(target, Compression::fast())))
            } else {
                Output::Plain(target)
            },
            format: if stem.ends_with(".pcapng") { Format::PcapNg } else { format },
            linktype: interfaces.first().map_or(LinkType::LINKTYPE_ETHERNET, |interface| interface.linktype),
            described: Vec::new(),
            described_count: 0,
            summary: WriteSummary::default(),
        };
        match writer.format {
            Format::Pcap => writer.put(pcap_header(writer.linktype).as_flattened())?,
            Format::PcapNg => writer.put(section_header().as_flattened())?,
        }
        Ok(writer)
    }

    /// Appends a frame, with the time at which it left. `interfaces` are the source's.
    ///
    /// # Errors
    /// [`WriteError::Io`]; [`WriteError::MixedLinkTypes`] when a pcap would need a second link type;
    /// [`WriteError::Unwritable`].
    pub fn write(&mut self, frame: &Frame<'_>, time_ns: u64, interfaces: &[Interface]) -> Result<(), WriteError> {
        let Ok(captured) = u32::try_from(frame.data.len()) else {
            return Err(unwritable(frame, time_ns));
        };
        let index = frame.interface as usize;
        let interface = interfaces.get(index);
        match self.format {
            Format::Pcap => {
                let second = interface.map_or(self.linktype, |interface| interface.linktype);
                if second != self.linktype {
                    return Err(WriteError::MixedLinkTypes { first: self.linktype, second });
                }
                let seconds = u32::try_from(time_ns / 1_000_000_000).map_err(|_| unwritable(frame, time_ns))?;
                // A remainder of 10^9 fits.
                let fraction = u32::try_from(time_ns % 1_000_000_000).unwrap_or(0);
                self.put(words([seconds, fraction, captured, frame.wire_bytes]).as_flattened())?;
                self.put(frame.data)?;
            }
            Format::PcapNg => {
                let number = self.describe(index, interface)?;
                let padding = frame.data.len().next_multiple_of(4) - frame.data.len();
                let Some(length) = captured.checked_next_multiple_of(4).and_then(|data| data.checked_add(32)) else {
                    return Err(unwritable(frame, time_ns));
                };
                let [high, low] = [(time_ns >> 32) as u32, (time_ns & 0xffff_ffff) as u32];
                self.put(words([6, length, number, high, low, captured, frame.wire_bytes]).as_flattened())?;
                self.put(frame.data)?;
                self.put(&[0; 3][..padding])?;
                self.put(&length.to_le_bytes())?;
            }
        }
        self.summary.packets += 1;
        self.summary.bytes += u64::from(captured);
        Ok(())
    }

    /// Completes the capture and gives it its name, or, when it is not `is_whole`, that of [`OutputFile::finish`].
    ///
    /// # Errors
    /// [`WriteError::Io`]; then there is no file at the target, or the one that was there before.
    pub fn finish(self, is_whole: bool) -> Result<WriteSummary, WriteError> {
        let Self { path, output, summary, .. } = self;
        let finished = match output {
            Output::Plain(buffer) => Ok(buffer),
            Output::Gzip(encoder) => encoder.finish(),
        };
        finished
            .and_then(|buffer| buffer.into_inner().map_err(io::IntoInnerError::into_error))
            .and_then(|file| file.finish(is_whole))
            .map_err(|source| WriteError::Io { path, source })?;
        Ok(summary)
    }

    /// The number of an interface in this file; its first frame brings its description.
    fn describe(&mut self, index: usize, interface: Option<&Interface>) -> Result<u32, WriteError> {
        if let Some(&Some(number)) = self.described.get(index) {
            return Ok(number);
        }
        let linktype = interface.map_or(self.linktype, |interface| interface.linktype);
        let name = interface.and_then(|interface| interface.name.as_deref());
        self.put(&interface_description(linktype, name))?;
        if self.described.len() <= index {
            self.described.resize(index + 1, None);
        }
        let number = self.described_count;
        self.described[index] = Some(number);
        self.described_count += 1;
        Ok(number)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        let result = match &mut self.output {
            Output::Plain(buffer) => buffer.write_all(bytes),
            Output::Gzip(encoder) => encoder.write_all(bytes),
        };
        result.map_err(|source| WriteError::Io { path: self.path.clone(), source })
    }
}

fn unwritable(frame: &Frame<'_>, time_ns: u64) -> WriteError {
    WriteError::Unwritable { bytes: frame.data.len(), time_ns }
}

fn words<const COUNT: usize>(values: [u32; COUNT]) -> [[u8; 4]; COUNT] {
    values.map(u32::to_le_bytes)
}

/// Version 2.4, nanoseconds.
fn pcap_header(linktype: u16) -> [[u8; 4]; 6] {
    words([0xa1b2_3c4d, 4 << 16 | 2, 0, 0, SNAP_BYTES, u32::from(linktype)])
}

/// Version 1.0, a section of unknown length.
fn section_header() -> [[u8; 4]; 7] {
    words([0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28])
}

/// With the options if_name (2) and if_tsresol (9: nanoseconds).
fn interface_description(linktype: u16, name: Option<&str>) -> Vec<u8> {
    let mut options = Vec::new();
    // A name that an option has no room for was not read from one.
    if let Some(name) = name
        && let Ok(length) = u16::try_from(name.len())
    {
        options.extend(2u16.to_le_bytes());
        options.extend(length.to_le_bytes());
        options.extend(name.as_bytes());
        options.resize(options.len().next_multiple_of(4), 0);
    }
    options.extend(words([1 << 16 | 9, 9, 0]).as_flattened());
    let length = u32::try_from(options.len() + 20).unwrap_or(u32::MAX);
    let mut block = words([1, length, u32::from(linktype), SNAP_BYTES]).as_flattened().to_vec();
    block.extend(options);
    block.extend(length.to_le_bytes());
    block
}

enum Output {
    Plain(BufWriter<OutputFile>),
    Gzip(Box<GzEncoder<BufWriter<OutputFile>>>),
}
