// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that wait in a replay, for the capture of what left: in the order in which they depart.

use penstock_packet::{CaptureWriter, Frame, Interface, LinkType, WriteError};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Frames that were held, and have not departed.
#[derive(Default)]
pub(super) struct Held {
    frames: BinaryHeap<Reverse<Waiting>>,
    /// Frames that came so far: of two that depart together, the first that came goes first.
    count: u64,
}

struct Waiting {
    departure_ns: u64,
    number: u64,
    /// What the capture says of it, with the time at which it leaves.
    time_ns: u64,
    wire_bytes: u32,
    link: LinkType,
    interface: u32,
    data: Box<[u8]>,
}

impl Held {
    /// Keeps a frame until its departure, which lies `wait_ns` after it came.
    pub fn push(&mut self, frame: &Frame<'_>, departure_ns: u64, wait_ns: u64) {
        self.count += 1;
        self.frames.push(Reverse(Waiting {
            departure_ns,
            number: self.count,
            time_ns: frame.time_ns.saturating_add(wait_ns),
            wire_bytes: frame.wire_bytes,
            link: frame.link,
            interface: frame.interface,
            data: frame.data.into(),
        }));
    }

    /// Writes what departs at `until_ns` or before.
    pub fn release(
        &mut self,
        until_ns: u64,
        writer: &mut CaptureWriter,
        interfaces: &[Interface],
    ) -> Result<(), WriteError> {
        while self.frames.peek().is_some_and(|Reverse(next)| next.departure_ns <= until_ns) {
            let Some(Reverse(next)) = self.frames.pop() else { break };
            let frame = Frame {
                time_ns: next.time_ns,
                wire_bytes: next.wire_bytes,
                link: next.link,
                interface: next.interface,
                data: &next.data,
            };
            writer.write(&frame, next.time_ns, interfaces)?;
        }
        Ok(())
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.departure_ns, self.number).cmp(&(other.departure_ns, other.number))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}
