// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where packets wait in virtual time: how much of the memory that they may take in all is taken.

use crate::wire;

unsafe extern "C" {
    fn pst_host_room_start(room: *mut wire::pst_room, now_ns: u64);
}

/// Packets that were held and have not departed, as `wheel.h` files them. Their frames are the caller's.
#[derive(Debug)]
pub struct Room {
    wheel: Box<wire::pst_wheel>,
    items: Vec<wire::pst_wheel_item>,
    chunks: u32,
    wire: wire::pst_room,
}

// SAFETY: the pointers in `wire` are to what this owns, and set anew for each use.
unsafe impl Send for Room {}

impl Room {
    /// Room for packets of so many chunks in all ([`wire::PST_HOLD_CHUNK_BYTES`]), empty at `now_ns`.
    #[must_use]
    pub fn new(chunks: u32, now_ns: u64) -> Self {
        let mut room = Self {
            wheel: crate::wheel::empty(),
            items: Vec::new(),
            chunks: 0,
            wire: wire::pst_room {
                wheel: std::ptr::null_mut(),
                items: std::ptr::null_mut(),
                free_first: wire::PST_NONE,
                free_chunks: 0,
            },
        };
        room.resize(chunks);
        // SAFETY: the wheel is live, and nothing waits in it.
        unsafe { pst_host_room_start(room.wire_mut(), now_ns) };
        room
    }

    /// Room for none: for planes without a limit that shapes.
    #[must_use]
    pub fn none() -> Self {
        Self::new(0, 0)
    }

    /// Another size, of at most 2^31 chunks. What waits stays; while it takes more than that, nothing is let in.
    pub fn resize(&mut self, chunks: u32) {
        let known = self.items.len();
        let wanted = known.max(chunks as usize);
        self.items.resize(wanted, wire::pst_wheel_item::default());
        for index in (known..wanted).rev() {
            self.items[index].next = self.wire.free_first;
            self.wire.free_first = u32::try_from(index).unwrap_or(wire::PST_NONE);
        }
        let taken = self.taken_chunks();
        self.chunks = chunks;
        self.wire.free_chunks = i32::try_from(i64::from(chunks) - i64::from(taken)).unwrap_or(i32::MAX);
    }

    /// What packets that wait take now.
    #[must_use]
    pub fn taken_chunks(&self) -> u32 {
        u32::try_from(i64::from(self.chunks) - i64::from(self.wire.free_chunks)).unwrap_or_default()
    }

    pub(super) fn wire_mut(&mut self) -> *mut wire::pst_room {
        self.wire.wheel = &raw mut *self.wheel;
        self.wire.items = self.items.as_mut_ptr();
        &raw mut self.wire
    }
}
