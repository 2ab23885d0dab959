// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a policy's shares are compiled with: `algo/include/penstock/lpf.h`, `threshold.h`, `tree.h`.

use crate::wire;

/// log2 of tau, ns, of slices and their users, where the policy does not say: AHAB has half of it (`PST_LPF_TAU_SHIFT`), which holds TCP less well.
pub const TAU_SHIFT: u32 = 23;
/// log2 of an epoch, ns (`threshold.h`: `PST_THRESHOLD_EPOCH_SHIFT`).
pub const EPOCH_SHIFT: u32 = 20;
/// Classes below a link, one in the other (`tree.h`: `PST_TREE_DEPTH_MAX`).
pub const DEPTH_MAX: usize = 8;

// SAFETY: a pure and total function of its argument.
unsafe extern "C" {
    safe fn pst_host_slice_scale(nominal_bytes_per_second: u64, tau_shift: u32) -> wire::pst_lpf_scale;
}

/// What a byte is, in parts of a rate in bytes/s, at a weight of 1 and with this tau.
#[must_use]
pub fn slice_scale(nominal_bytes_per_second: u64, tau_shift: u32) -> wire::pst_lpf_scale {
    pst_host_slice_scale(nominal_bytes_per_second, tau_shift)
}

/// How many words a sketch has: filters, and behind them as many limiters, where a slice has such.
#[must_use]
pub fn sketch_words(sketch: &wire::Sketch, slices: &[wire::Slice]) -> usize {
    let filters = (sketch.rows as usize) << sketch.column_bits;
    match slices {
        [] => 0,
        _ if slices.iter().any(|slice| slice.flags & wire::PST_SLICE_LIMITERS != 0) => 2 * filters,
        _ => filters,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever sends at the nominal rate has 2^24 parts: a byte is 2^24 / (rate tau) of them.
    #[test]
    fn a_byte_is_its_part_of_what_the_rate_moves_in_tau() {
        let rates = [64, 12_500, 1_250_000, 1_250_000_000, 125_000_000_000_u64];
        for (rate, tau_shift) in rates.into_iter().flat_map(|rate| [(rate, 20), (rate, TAU_SHIFT), (rate, 27)]) {
            let scale = slice_scale(rate, tau_shift);
            // factor / 2^shift, in 2^-40; shift may be negative in 32 bits.
            let shift = i64::from(scale.shift.cast_signed());
            let part_q40 = (u128::from(scale.factor) << 80) >> (40 + shift);
            let exact_q40 = (1_000_000_000_u128 << (24 + 40 - tau_shift)) / u128::from(rate);
            assert!(part_q40.abs_diff(exact_q40) <= exact_q40 >> 30, "{rate}: {part_q40} {exact_q40}");
        }
    }
}
