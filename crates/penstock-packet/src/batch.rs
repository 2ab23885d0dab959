// SPDX-License-Identifier: MIT OR Apache-2.0
//! A batch of frames: one block of bytes and an index into it.

use crate::{CaptureError, LinkType};

/// A captured or generated packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// When it was seen: ns since 1970 (captures) or since the start (generated traffic).
    pub time_ns: u64,
    /// Its length on the wire, link header included; at least `data.len()`.
    pub wire_bytes: u32,
    /// What `data` begins with.
    pub link: LinkType,
    /// Index into [`FrameSource::interfaces`].
    pub interface: u32,
    /// What was captured of it.
    pub data: &'a [u8],
}

/// A frame without its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub time_ns: u64,
    pub start: u32,
    pub captured_bytes: u32,
    pub wire_bytes: u32,
    pub interface: u32,
    pub link: LinkType,
}

/// Frames that one call of [`FrameSource::next_batch`] delivered. It owns its bytes, so it may outlive the call, and is
/// meant to be used again: after the first rounds nothing is allocated.
#[derive(Debug, Default)]
pub struct Batch {
    /// The block; what lies behind the last record is left over from earlier rounds.
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: Vec<Record>,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets all frames and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
    }

    /// Appends a copy of a frame. A batch holds 4 GiB at most; what does not fit is left out.
    pub fn push(&mut self, frame: &Frame<'_>) {
        let (Ok(start), Ok(captured_bytes)) = (u32::try_from(self.bytes.len()), u32::try_from(frame.data.len())) else {
            return;
        };
        self.bytes.extend_from_slice(frame.data);
        self.records.push(Record {
            time_ns: frame.time_ns,
            start,
            captured_bytes,
            wire_bytes: frame.wire_bytes,
            interface: frame.interface,
            link: frame.link,
        });
    }

    /// How many frames it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The frame at `index`.
    ///
    /// # Panics
    /// Like a slice, when `index` is not below [`Batch::len`].
    #[must_use]
    pub fn frame(&self, index: usize) -> Frame<'_> {
        let record = &self.records[index];
        let start = record.start as usize;
        Frame {
            time_ns: record.time_ns,
            wire_bytes: record.wire_bytes,
            link: record.link,
            interface: record.interface,
            data: &self.bytes[start..start + record.captured_bytes as usize],
        }
    }

    /// The bytes of the frame at `index`, to be changed in place (a mark is written here).
    ///
    /// # Panics
    /// Like a slice, when `index` is not below [`Batch::len`].
    #[must_use]
    pub fn data_mut(&mut self, index: usize) -> &mut [u8] {
        let record = &self.records[index];
        let start = record.start as usize;
        &mut self.bytes[start..start + record.captured_bytes as usize]
    }

    /// All frames in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Frame<'_>> {
        (0..self.len()).map(|index| self.frame(index))
    }
}

/// Where frames were seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name, when the capture tells.
    pub name: Option<String>,
    /// The link type's number in capture files (LINKTYPE_*).
    pub linktype: u16,
    /// How much of a packet was kept at most.
    pub snap_bytes: u32,
}

/// A capture file's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// pcap: one interface.
    Pcap,
    /// pcapng: any number of interfaces.
    PcapNg,
}

/// How far a source has come. Both numbers have one unit: bytes of the file, or ns of generated time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is done.
    pub done: u64,
    /// What there is, when known (a pipe has no length).
    pub total: Option<u64>,
}

/// Something that delivers frames.
pub trait FrameSource {
    /// Replaces the content of `batch` by the next frames. `Ok(false)`: there are no more, and the batch is empty.
    ///
    /// # Errors
    /// What is wrong with the input, once all whole packets before the defect were delivered.
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, CaptureError>;

    /// The interfaces seen so far; a pcapng capture may add some with every batch.
    fn interfaces(&self) -> &[Interface];

    /// The format that loses nothing when the frames are written again.
    fn format(&self) -> Format;

    /// How far it has come.
    fn progress(&self) -> Progress;
}
