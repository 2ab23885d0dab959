// SPDX-License-Identifier: MIT OR Apache-2.0
//! An AF_XDP socket: frames of one queue of an interface come in, and go out by it. Frames lie in a pool that several sockets share.

use crate::ring::Ring;
use rustix::io::{Errno, Result};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, SocketAddrXdpWithSharedUmem, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, SendFlags, SocketType, bind, send, socket, sockopt};
use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

/// Entries of each ring.
pub const RING: u32 = 4096;

/// Memory for frames.
#[derive(Debug)]
pub struct Pool {
    memory: NonNull<c_void>,
    frame_bytes: u32,
    frames: u32,
}

// SAFETY: plain memory, which one worker has.
unsafe impl Send for Pool {}

impl Pool {
    /// Memory for so many frames.
    pub fn new(frames: u32, frame_bytes: u32) -> Result<Self> {
        let bytes = frames as usize * frame_bytes as usize;
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let memory =
            unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) }?;
        Ok(Self { memory: NonNull::new(memory).ok_or(Errno::NOMEM)?, frame_bytes, frames })
    }

    /// The frame that an address lies in.
    pub fn frame_of(&self, address: u64) -> u32 {
        u32::try_from(address / u64::from(self.frame_bytes)).unwrap_or(u32::MAX)
    }

    /// Where a frame begins.
    pub fn address_of(&self, frame: u32) -> u64 {
        u64::from(frame) * u64::from(self.frame_bytes)
    }

    /// What the kernel wrote at an address. None when that is not inside of one frame.
    pub fn bytes(&self, address: u64, length: u32) -> Option<&[u8]> {
        let within = u32::try_from(address % u64::from(self.frame_bytes)).ok()?;
        let fits = self.frame_of(address) < self.frames && within.checked_add(length)? <= self.frame_bytes;
        let start = usize::try_from(address).ok().filter(|_| fits)?;
        // SAFETY: inside of the memory; the kernel does not write to frames that it gave us.
        Some(unsafe { std::slice::from_raw_parts(self.memory.as_ptr().byte_add(start).cast(), length as usize) })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: what was mapped, once.
        let _ = unsafe { munmap(self.memory.as_ptr(), self.frames as usize * self.frame_bytes as usize) };
    }
}

/// A socket that is bound to one queue of an interface.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    pub received: Ring<XdpDesc>,
    pub to_send: Ring<XdpDesc>,
    /// Frames that the kernel may write to.
    pub fill: Ring<u64>,
    /// Frames that the kernel has sent.
    pub sent: Ring<u64>,
}

impl Socket {
    /// Binds a socket to a queue. `first` is the one that brought the pool, if this is not it.
    pub fn bind(pool: &Pool, ifindex: u32, queue: u32, first: Option<BorrowedFd<'_>>) -> Result<Self> {
        let fd = socket(AddressFamily::XDP, SocketType::RAW, None)?;
        if first.is_none() {
            let register = XdpUmemReg {
                addr: pool.memory.as_ptr() as u64,
                len: u64::from(pool.frames) * u64::from(pool.frame_bytes),
                chunk_size: pool.frame_bytes,
                headroom: 0,
                flags: XdpUmemRegFlags::empty(),
                tx_metadata_len: 0,
            };
            sockopt::set_xdp_umem_reg(&fd, register)?;
        }
        sockopt::set_xdp_umem_fill_ring_size(&fd, RING)?;
        sockopt::set_xdp_umem_completion_ring_size(&fd, RING)?;
        sockopt::set_xdp_rx_ring_size(&fd, RING)?;
        sockopt::set_xdp_tx_ring_size(&fd, RING)?;
        let offsets = sockopt::xdp_mmap_offsets(&fd)?;
        let received = Ring::map(fd.as_fd(), &offsets.rx, XDP_PGOFF_RX_RING, RING)?;
        let to_send = Ring::map(fd.as_fd(), &offsets.tx, XDP_PGOFF_TX_RING, RING)?;
        let fill = Ring::map(fd.as_fd(), &offsets.fr, XDP_UMEM_PGOFF_FILL_RING, RING)?;
        let sent = Ring::map(fd.as_fd(), &offsets.cr, XDP_UMEM_PGOFF_COMPLETION_RING, RING)?;
        match first {
            // Zero-copy would have drivers keep frames that nobody has counted, and ask both interfaces for it.
            None => bind(&fd, &SocketAddrXdp::new(SocketAddrXdpFlags::XDP_COPY, ifindex, queue))?,
            Some(shared_umem_fd) => {
                let addr = SocketAddrXdp::new(SocketAddrXdpFlags::XDP_SHARED_UMEM, ifindex, queue);
                bind(&fd, &SocketAddrXdpWithSharedUmem { addr, shared_umem_fd })?;
            }
        }
        Ok(Self { fd, received, to_send, fill, sent })
    }

    /// Has the kernel send what was written to `to_send`, a few frames of it. Returns whether there may be more to send at once.
    pub fn kick(&self) -> bool {
        matches!(send(&self.fd, &[], SendFlags::DONTWAIT), Err(Errno::AGAIN))
    }

    /// Frames that the kernel could not bring, since the beginning.
    pub fn lost(&self) -> u64 {
        sockopt::xdp_statistics(&self.fd).map_or(0, |told| told.rx_dropped + told.rx_ring_full.unwrap_or(0))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
