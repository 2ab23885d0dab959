// SPDX-License-Identifier: MIT OR Apache-2.0
//! Early drop and early marking in the yellow zone: `algo/include/penstock/red.h`.

// SAFETY: pure and total functions of their arguments.
unsafe extern "C" {
    safe fn pst_host_red_probability(depth: u64, green: u64, window: u64, max_q32: u32) -> u32;
    safe fn pst_host_red_drops(probability_q32: u32, random_u32: u32) -> bool;
}

/// The probability, in 2^-32, at this depth: 0 up to `green`, `max_q32` from `window` on, between them in proportion.
/// The depths are in any one unit.
#[must_use]
pub fn probability_q32(depth: u64, green: u64, window: u64, max_q32: u32) -> u32 {
    pst_host_red_probability(depth, green, window, max_q32)
}

/// Whether a uniform random number says that the packet is dropped (or marked).
#[must_use]
pub fn drops(probability_q32: u32, random_u32: u32) -> bool {
    pst_host_red_drops(probability_q32, random_u32)
}
