// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program on one frame, by `BPF_PROG_RUN`: for tests, and to time it.

use super::KernelError;
use super::generation::refused;
use super::object::count;
use libbpf_rs::libbpf_sys;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Runs on a frame, so many times. The frame has to live as long as the options do.
pub(super) fn options(frame: &[u8], times: u32) -> libbpf_sys::bpf_test_run_opts {
    libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
        data_in: frame.as_ptr().cast(),
        data_size_in: count(frame.len()),
        repeat: i32::try_from(times).unwrap_or(i32::MAX),
        ..Default::default()
    }
}

pub(super) fn run(program: BorrowedFd<'_>, options: &mut libbpf_sys::bpf_test_run_opts) -> Result<(), KernelError> {
    loop {
        // SAFETY: the options point to buffers of our callers, which live through the call and are as long as they say.
        match unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), options) } {
            0 => return Ok(()),
            // The kernel stops a run for other work of this thread.
            code if code == -libc::EINTR => {}
            code => return Err(refused("BPF_PROG_RUN")(libbpf_rs::Error::from_raw_os_error(-code))),
        }
    }
}

/// Runs an XDP program on a frame over and over, on the CPU that calls. Returns how long once took, in the mean.
///
/// # Errors
/// When the kernel refuses the frame: it takes 14 bytes to a page, less its head room.
pub fn time_program(program: BorrowedFd<'_>, frame: &[u8], times: u32) -> Result<Duration, KernelError> {
    let mut options = options(frame, times);
    run(program, &mut options)?;
    Ok(Duration::from_nanos(options.duration.into()))
}
