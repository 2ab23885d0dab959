// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets in and out: captures, generated traffic, packet building.
//!
//! Everything that has packets is a [`FrameSource`]: a capture ([`CaptureReader`]) or generated traffic
//! ([`workload::Generator`]). It fills a [`Batch`] with [`Frame`]s; a [`CaptureWriter`] takes frames back to a file.
//! A batch owns one block of bytes and an index into it, so a packet is never copied on its own.

mod batch;
pub mod build;
mod capture;
mod link;
mod output;
pub mod workload;
mod writer;

pub use batch::{Batch, Format, Frame, FrameSource, Interface, Progress};
pub use capture::{CaptureError, CaptureReader, RECORD_MAX_BYTES};
pub use link::LinkType;
pub use output::OutputFile;
pub use writer::{CaptureWriter, WriteError, WriteSummary};
