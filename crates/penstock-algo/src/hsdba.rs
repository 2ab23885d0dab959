// SPDX-License-Identifier: MIT OR Apache-2.0
//! HSDBA's Algorithm 1 as published, leaves below a link: `algo/include/penstock/hsdba.h`.

use crate::memory::Memory;
use std::ffi::c_void;

unsafe extern "C" {
    safe fn pst_host_hsdba_bytes() -> usize;
    safe fn pst_host_hsdba_leaves_max() -> u32;
    fn pst_host_hsdba_start(
        link: *mut c_void,
        rate_bytes_per_second: u64,
        weights: *const u32,
        leaves: u32,
        tau_shift: u32,
    );
    fn pst_host_hsdba_take(link: *mut c_void, leaf: u32, now_ns: u64, bytes: u32, random_u32: u32) -> bool;
    fn pst_host_hsdba_leave(link: *mut c_void, leaf: u32);
    #[allow(non_snake_case)] // C's name
    fn pst_host_hsdba_alpha_Bps(link: *const c_void) -> u64;
}

/// A link and its leaves.
#[derive(Debug)]
pub struct Published {
    memory: Memory,
    leaves: u32,
}

impl Published {
    /// Leaves with these weights, 64 at most, below a link. tau is 2^`tau_shift` ns, 16 to 36.
    #[must_use]
    pub fn new(rate_bytes_per_second: u64, weights: &[u32], tau_shift: u32) -> Option<Self> {
        let leaves = u32::try_from(weights.len()).ok().filter(|leaves| *leaves <= pst_host_hsdba_leaves_max())?;
        let mut memory = Memory::new(pst_host_hsdba_bytes());
        let tau_shift = tau_shift.clamp(16, 36);
        // SAFETY: the memory has the size that C says, and is zeros; so many weights are there.
        unsafe { pst_host_hsdba_start(memory.write(), rate_bytes_per_second, weights.as_ptr(), leaves, tau_shift) };
        Some(Self { memory, leaves })
    }

    /// A packet of a leaf: whether it passes. Of a leaf that there is not, it does not.
    pub fn take(&mut self, leaf: u32, now_ns: u64, bytes: u32, random_u32: u32) -> bool {
        // SAFETY: the link was started on this memory, which does not move, and has this leaf.
        leaf < self.leaves && unsafe { pst_host_hsdba_take(self.memory.write(), leaf, now_ns, bytes, random_u32) }
    }

    /// A leaf is taken out.
    pub fn leave(&mut self, leaf: u32) {
        if leaf < self.leaves {
            // SAFETY: as above.
            unsafe { pst_host_hsdba_leave(self.memory.write(), leaf) };
        }
    }

    /// alpha: what a leaf with a weight of 1 may send, bytes a second.
    #[must_use]
    pub fn alpha(&self) -> u64 {
        // SAFETY: as above.
        unsafe { pst_host_hsdba_alpha_Bps(self.memory.read()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_share_by_weight() {
        let mut link = Published::new(12_500_000, &[1, 3], 21).unwrap();
        let mut rng = crate::plane::Rng::new(1);
        let mut passed = [0_u32; 2];
        for packet in 0..40_000_u64 {
            let leaf = u32::try_from(packet % 2).unwrap();
            passed[leaf as usize] += u32::from(link.take(leaf, packet * 50_000, 1250, rng.next_u32()));
        }
        // Two seconds of 25 and 75 Mbit/s.
        assert!((4500..5500).contains(&passed[0]) && (14_000..16_000).contains(&passed[1]), "{passed:?}");
        assert!(link.alpha().abs_diff(3_125_000) < 300_000, "{}", link.alpha());
        link.leave(1);
        link.take(0, 2_000_050_000, 1250, 0);
        assert!(link.alpha() > 10_000_000, "who is taken out has no share: {}", link.alpha());
        assert!(Published::new(1, &[1; 65], 21).is_none());
    }
}
