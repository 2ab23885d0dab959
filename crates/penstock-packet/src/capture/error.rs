// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a capture.

use std::fmt::Write;
use std::io;

use thiserror::Error;

/// Why a capture cannot be read, or not any further. Offsets count bytes of the unpacked capture.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The file cannot be opened.
    #[error("cannot open: {0}")]
    Open(#[source] io::Error),
    /// Reading failed.
    #[error("reading failed at byte {offset}, after {packets} packets: {source}")]
    Read {
        /// Where.
        offset: u64,
        /// Packets delivered before.
        packets: u64,
        /// What the system, or the gzip decoder, said.
        source: io::Error,
    },
    /// The first bytes are of no known format.
    #[error("not a capture: expected pcap, pcapng or gzip of either, found {found}")]
    NotACapture {
        /// The first bytes, for people.
        found: String,
    },
    /// The input ends inside a record.
    #[error("the capture is cut off inside the record at byte {offset}; {packets} whole packets come before it")]
    Truncated {
        /// Where the record that is not whole begins.
        offset: u64,
        /// Packets delivered before.
        packets: u64,
    },
    /// A record cannot be what it says.
    #[error("damaged capture: {what} at byte {offset}, after {packets} packets")]
    Damaged {
        /// Where the record begins.
        offset: u64,
        /// Packets delivered before.
        packets: u64,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// Packets of a link type that the parser does not know.
    #[error(
        "link type {linktype} is not supported (record at byte {offset}, after {packets} packets); supported: Ethernet 1, \
         raw IP 12, 14, 101, 228, 229, Linux cooked 113, 276, loopback 0, 108, PPP 9, 50, Cisco HDLC 104"
    )]
    UnknownLinkType {
        /// Its number (LINKTYPE_*).
        linktype: u16,
        /// Where the first such packet is.
        offset: u64,
        /// Packets delivered before.
        packets: u64,
    },
}

impl CaptureError {
    pub(super) fn not_a_capture(head: &[u8]) -> Self {
        let mut found = String::new();
        for byte in head.iter().take(4) {
            // Writing to a string cannot fail.
            let _ = write!(found, "{byte:02x} ");
        }
        let found = match found.trim_end() {
            "" => "no bytes at all".to_owned(),
            bytes => format!("the bytes {bytes}"),
        };
        Self::NotACapture { found }
    }
}

/// What is wrong with a record; the reader knows where it is.
#[derive(Debug)]
pub(super) enum Defect {
    Damaged(String),
    UnknownLinkType(u16),
}

impl Defect {
    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }

    pub(super) fn too_long(bytes: usize) -> Self {
        Self::Damaged(format!("a record of {bytes} bytes (at most {} are believed)", super::RECORD_MAX_BYTES))
    }

    pub(super) fn at(self, offset: u64, packets: u64) -> CaptureError {
        match self {
            Self::Damaged(what) => CaptureError::Damaged { offset, packets, what },
            Self::UnknownLinkType(linktype) => CaptureError::UnknownLinkType { linktype, offset, packets },
        }
    }
}
