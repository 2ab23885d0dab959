// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel program and the engine both count, in memory that they share (`wire.h`: `pst_shaper`, and a count for each owner).

use penstock_algo::wire;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Memory that is shared with the kernel.
///
/// # Safety
/// What both functions return is valid, and of the length that they say, for as long as the one who returns it lives.
pub unsafe trait Memory: Send + Sync {
    /// Where `struct pst_shaper` by index begin: [`wire::PST_SHAPERS_MAX`] of them.
    fn shapers(&self) -> NonNull<wire::pst_shaper>;
    /// Where counts by owner begin: [`wire::PST_WAITING_MAX`] of them.
    fn waiting(&self) -> NonNull<u64>;
}

/// One part of it: that of the packets of one queue.
#[derive(Clone)]
pub struct Lane {
    memory: Arc<dyn Memory>,
    index: usize,
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Lane").field("index", &self.index).finish_non_exhaustive()
    }
}

impl Lane {
    /// The part with this index.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn new(memory: Arc<dyn Memory>, index: u32) -> Self {
        assert!(index < wire::PST_SHAPERS_MAX);
        Self { memory, index: index as usize }
    }

    /// Its index.
    #[must_use]
    pub fn index(&self) -> u32 {
        u32::try_from(self.index).unwrap_or(wire::PST_SHAPERS_MAX)
    }

    fn shaper(&self) -> *mut wire::pst_shaper {
        // SAFETY: an index below the count, as was checked.
        unsafe { self.memory.shapers().add(self.index).as_ptr() }
    }

    fn alive(&self) -> &AtomicU64 {
        // SAFETY: a word of memory that lives as long as this, and that all write by atomic operations.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.shaper()).alive_ns) }
    }

    fn chunks(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shaper()).chunks) }
    }

    fn waiting(&self, owner: u32) -> &AtomicU64 {
        let owner = (owner % wire::PST_WAITING_MAX) as usize;
        // SAFETY: as above, an index below the count.
        unsafe { AtomicU64::from_ptr(self.memory.waiting().add(owner).as_ptr()) }
    }

    /// Says that somebody is at work here.
    pub fn beat(&self, now_ns: u64) {
        self.alive().store(now_ns, Ordering::Release);
    }

    /// Says that nobody is: packets that would be held are dropped from now on.
    pub fn rest(&self) {
        self.alive().store(wire::PST_SHAPER_LEAVING.into(), Ordering::Release);
    }

    /// What packets may take in all.
    pub fn set_room(&self, chunks: u32) {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.shaper()).chunks_max) }.store(chunks, Ordering::Release);
    }

    /// What packets take now.
    #[must_use]
    pub fn taken_chunks(&self) -> u32 {
        self.chunks().load(Ordering::Acquire)
    }

    /// A packet has left: those of its limit that come from now on need not wait for it.
    pub fn left(&self, held: &wire::pst_held) {
        lower(self.waiting(held.owner), 1);
    }

    /// What it took is free.
    pub fn free(&self, held: &wire::pst_held) {
        let lowered = |chunks: u32| Some(chunks.saturating_sub(chunks_of(held)));
        let _ = self.chunks().fetch_update(Ordering::AcqRel, Ordering::Acquire, lowered);
    }

    /// Says what packets take. While nobody is said to be at work, and packets that were on their way have come.
    pub fn settle(&self, chunks: u32) {
        self.chunks().store(chunks, Ordering::Release);
    }
}

/// The memory that a packet takes, in pieces of [`wire::PST_HOLD_CHUNK_BYTES`] (`plane.h`: `pst_hold_chunks`).
pub(crate) fn chunks_of(held: &wire::pst_held) -> u32 {
    held.length.div_ceil(wire::PST_HOLD_CHUNK_ROOM).max(1)
}

/// A count that was settled meanwhile is not lowered below 0.
fn lower(count: &AtomicU64, amount: u64) {
    let _ = count.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| Some(count.saturating_sub(amount)));
}

/// Nothing waits anywhere.
pub fn forget_owners(memory: &dyn Memory) {
    for owner in 0..wire::PST_WAITING_MAX as usize {
        // SAFETY: an index below the count; written by atomic operations only.
        unsafe { AtomicU64::from_ptr(memory.waiting().add(owner).as_ptr()) }.store(0, Ordering::Release);
    }
}
