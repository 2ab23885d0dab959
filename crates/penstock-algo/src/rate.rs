// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rate codes: `algo/include/penstock/fixed.h`.

/// Smallest rate that has a code, in bytes/s (512 bit/s).
pub const MIN_BPS: u64 = 64;
/// Largest rate that has a code, in bytes/s (1 Tbit/s).
pub const MAX_BPS: u64 = 125_000_000_000;
/// Ticks in a nanosecond.
pub const TICKS_PER_NSEC: u64 = 1024;
/// Longest burst or excess, in nanoseconds (73 minutes).
pub const WINDOW_MAX_NSEC: u64 = (1 << 52) / TICKS_PER_NSEC;

// SAFETY: pure and total functions of their arguments.
unsafe extern "C" {
    safe fn pst_host_rate_encode(rate_bytes_per_second: u64) -> u32;
    safe fn pst_host_rate_cost(rate_code: u32, bytes: u32) -> u64;
    safe fn pst_host_rate_bytes_q8(rate_code: u32, ticks: u64) -> u64;
}

/// The code of a rate in bytes/s, clamped to [`MIN_BPS`] ..= [`MAX_BPS`]. Relative error at most 2^-27.
#[must_use]
pub fn encode(rate_bytes_per_second: u64) -> u32 {
    pst_host_rate_encode(rate_bytes_per_second)
}

/// Ticks that `bytes` (below 2^30) take at the rate of this code.
#[must_use]
pub fn cost_ticks(rate_code: u32, bytes: u32) -> u64 {
    pst_host_rate_cost(rate_code, bytes)
}

/// Bytes, in 1/256, that drain in `ticks` (below 2^53) at the rate of this code, rounded down.
#[must_use]
pub fn bytes_q8(rate_code: u32, ticks: u64) -> u64 {
    pst_host_rate_bytes_q8(rate_code, ticks)
}
