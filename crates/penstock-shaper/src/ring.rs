// SPDX-License-Identifier: MIT OR Apache-2.0
//! A ring of AF_XDP: one side writes entries, the kernel is the other side (Documentation/networking/af_xdp.rst).

use rustix::io::Result;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::xdp::XdpRingOffset;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

/// Entries of a ring, and the counters of both sides, in memory that is shared with the kernel.
#[derive(Debug)]
pub struct Ring<T> {
    memory: NonNull<c_void>,
    bytes: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    entries: NonNull<T>,
    mask: u32,
    /// Our own counter: of entries that we wrote, or took.
    own: u32,
    entry: PhantomData<T>,
}

// SAFETY: the memory is this ring's until it is dropped, and counters are atomic.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Maps a ring of `count` entries, a power of two.
    pub fn map(socket: BorrowedFd<'_>, offsets: &XdpRingOffset, page: u64, count: u32) -> Result<Self> {
        let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = at(offsets.desc) + count as usize * size_of::<T>();
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let memory = unsafe { mmap(null_mut(), bytes, protection, flags, socket, page) }?;
        let memory = NonNull::new(memory).ok_or(rustix::io::Errno::NOMEM)?;
        // SAFETY: the kernel gave these offsets for this mapping, which is as long as they ask for.
        let (producer, consumer, entries) = unsafe {
            (
                memory.byte_add(at(offsets.producer)).cast(),
                memory.byte_add(at(offsets.consumer)).cast(),
                memory.byte_add(at(offsets.desc)).cast(),
            )
        };
        Ok(Self { memory, bytes, producer, consumer, entries, mask: count - 1, own: 0, entry: PhantomData })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: inside of the mapping, which lives as long as this.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    /// As who writes: room for so many entries.
    pub fn room(&self) -> u32 {
        self.mask + 1 - self.own.wrapping_sub(self.consumer().load(Ordering::Acquire))
    }

    /// As who writes: one more entry. The kernel sees it after [`Ring::publish`]. False when there is no room.
    pub fn write(&mut self, entry: T) -> bool {
        if self.room() == 0 {
            return false;
        }
        // SAFETY: an index below the count of entries.
        unsafe { self.entries.add((self.own & self.mask) as usize).write_volatile(entry) };
        self.own = self.own.wrapping_add(1);
        true
    }

    /// As who writes: shows the kernel what was written.
    pub fn publish(&self) {
        self.producer().store(self.own, Ordering::Release);
    }

    /// As who reads: the next entry.
    pub fn read(&mut self) -> Option<T> {
        if self.own == self.producer().load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: an index below the count of entries, of one that the kernel has published.
        let entry = unsafe { self.entries.add((self.own & self.mask) as usize).read_volatile() };
        self.own = self.own.wrapping_add(1);
        self.consumer().store(self.own, Ordering::Release);
        Some(entry)
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: what was mapped, once. There is nothing to do about a failure.
        let _ = unsafe { munmap(self.memory.as_ptr(), self.bytes) };
    }
}
