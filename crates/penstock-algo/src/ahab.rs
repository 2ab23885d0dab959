// SPDX-License-Identifier: MIT OR Apache-2.0
//! One slice of AHAB alone, in the form of the planes or as published: `algo/include/penstock/sketch.h`, `threshold.h`, `fairdrop.h`.

use crate::memory::Memory;
use std::ffi::c_void;

/// What a user sends in parts of a slice's rate: 2^24 is all of it (`lpf.h`).
pub const NOMINAL_BITS: u32 = 24;

/// What a slice is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// What its users share.
    pub rate_bytes_per_second: u64,
    /// log2 of the sketch's columns; it has three rows.
    pub column_bits: u32,
    /// log2 of tau, ns.
    pub tau_shift: u32,
    /// log2 of an epoch, ns.
    pub epoch_shift: u32,
    /// Bits of the published divide; 0 is the form that the planes have.
    pub divide_bits: u32,
    /// Of the sketch's rows.
    pub seed: u64,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Whether it passes.
    pub passes: bool,
    /// What the sketch reads of its user, in 2^-24 of the slice's rate.
    pub user_parts: u32,
}

unsafe extern "C" {
    safe fn pst_host_ahab_bytes(column_bits: u32) -> usize;
    fn pst_host_ahab_start(
        slice: *mut c_void,
        rate_bytes_per_second: u64,
        column_bits: u32,
        tau_shift: u32,
        epoch_shift: u32,
        divide_bits: u32,
        seed: u64,
        now_ns: u64,
    );
    fn pst_host_ahab_take(
        slice: *mut c_void,
        user: u64,
        weight: u32,
        now_ns: u64,
        bytes: u32,
        random_u32: u32,
        user_parts: &mut u32,
    ) -> bool;
    #[allow(non_snake_case)] // C's name
    fn pst_host_ahab_limit_Bps(slice: *const c_void) -> u64;
    safe fn pst_host_ahab_divide_q12(part: u32, whole: u32, bits: u32) -> u32;
    safe fn pst_host_ahab_divide_entries(bits: u32) -> u32;
    safe fn pst_host_ahab_times(part_q12: u32, shift: u32) -> u32;
}

/// A slice, with a sketch of its own.
#[derive(Debug)]
pub struct Slice(Memory);

impl Slice {
    /// A slice that nobody used so far. Columns are 2^1 to 2^20.
    #[must_use]
    pub fn new(params: &Params, now_ns: u64) -> Self {
        let column_bits = params.column_bits.clamp(1, 20);
        let mut memory = Memory::new(pst_host_ahab_bytes(column_bits));
        // SAFETY: the memory has the size that C says, and is zeros.
        unsafe {
            pst_host_ahab_start(
                memory.write(),
                params.rate_bytes_per_second,
                column_bits,
                params.tau_shift,
                params.epoch_shift,
                params.divide_bits,
                params.seed,
                now_ns,
            );
        }
        Self(memory)
    }

    /// A packet of a user.
    pub fn take(&mut self, user: u64, weight: u32, now_ns: u64, bytes: u32, random_u32: u32) -> Taken {
        let mut user_parts = 0;
        // SAFETY: the slice was started on this memory, which does not move.
        let passes =
            unsafe { pst_host_ahab_take(self.0.write(), user, weight, now_ns, bytes, random_u32, &mut user_parts) };
        Taken { passes, user_parts }
    }

    /// T: what a user with a weight of 1 may send, bytes a second.
    #[must_use]
    pub fn limit(&self) -> u64 {
        // SAFETY: as above.
        unsafe { pst_host_ahab_limit_Bps(self.0.read()) }
    }
}

/// `part / whole` in 2^-12, of which the table looks at some bits.
#[must_use]
pub fn divide_q12(part: u32, whole: u32, bits: u32) -> u32 {
    pst_host_ahab_divide_q12(part, whole, bits)
}

/// Entries of that table, for 1 to 15 bits.
#[must_use]
pub fn divide_entries(bits: u32) -> u32 {
    pst_host_ahab_divide_entries(bits.clamp(1, 15))
}

/// That times 2^shift.
#[must_use]
pub fn times(part_q12: u32, shift: u32) -> u32 {
    pst_host_ahab_times(part_q12, shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_users_share_a_slice_and_chance_decides() {
        for divide_bits in [0, 6] {
            let params = Params {
                rate_bytes_per_second: 12_500_000,
                column_bits: 11,
                tau_shift: 22,
                epoch_shift: 20,
                divide_bits,
                seed: 1,
            };
            let mut slice = Slice::new(&params, 0);
            let mut rng = crate::plane::Rng::new(2);
            let mut passed = [0_u32; 2];
            for packet in 0..20_000_u64 {
                let taken = slice.take(packet % 2, 1, packet * 50_000, 1250, rng.next_u32());
                passed[usize::try_from(packet % 2).unwrap()] += u32::from(taken.passes);
            }
            // Each sends 100 Mbit/s for a second, and may send half of it.
            assert!(passed.iter().all(|passed| (4700..5300).contains(passed)), "{divide_bits}: {passed:?}");
            assert!((5_000_000..7_500_000).contains(&slice.limit()), "{divide_bits}: {}", slice.limit());
        }
    }

    /// AHAB, Figure 7: 1012 / 1690 is read as 2396 / 2^12, and with a step of 2^14 as 9584.
    #[test]
    fn figure_7_is_what_the_table_says() {
        let part = divide_q12(1012, 1690, 5);
        assert_eq!((part, divide_entries(5)), (2396, 392));
        assert_eq!(times(2396, 14), 9584);
    }
}
