// SPDX-License-Identifier: MIT OR Apache-2.0
//! HCSFQ, one node before a link: `algo/include/penstock/hcsfq.h`.

use crate::memory::Memory;
use std::ffi::c_void;

/// What a node is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// Of the link.
    pub rate_bytes_per_second: u64,
    /// Of all packets: ten that wait are a congested link, and no more than a hundred wait.
    pub packet_bytes: u32,
    /// Length of a window.
    pub window_ns: u64,
    /// 3: (7 R + bytes) / 8; 1: (R + bytes) / 2.
    pub smooth_shift: u32,
    /// alpha goes down by alpha / 2^this
    pub decrease_shift: u32,
    /// and up by alpha / 2^this.
    pub increase_shift: u32,
}

unsafe extern "C" {
    safe fn pst_host_hcsfq_bytes(users: u32) -> usize;
    fn pst_host_hcsfq_start(
        link: *mut c_void,
        rate_bytes_per_second: u64,
        packet_bytes: u64,
        window_ns: u64,
        smooth_shift: u32,
        decrease_shift: u32,
        increase_shift: u32,
        now_ns: u64,
    );
    fn pst_host_hcsfq_take(
        link: *mut c_void,
        user: u32,
        weight_shift: u32,
        now_ns: u64,
        bytes: u32,
        random_u32: u32,
    ) -> bool;
    #[allow(non_snake_case)] // C's name
    fn pst_host_hcsfq_limit_Bps(link: *const c_void) -> u64;
}

/// A node, its users, and the queue of its link.
#[derive(Debug)]
pub struct Hcsfq {
    memory: Memory,
    users: u32,
}

impl Hcsfq {
    /// A node that nobody used so far.
    #[must_use]
    pub fn new(params: &Params, users: u32, now_ns: u64) -> Self {
        let mut memory = Memory::new(pst_host_hcsfq_bytes(users));
        // SAFETY: the memory has the size that C says, and is zeros.
        unsafe {
            pst_host_hcsfq_start(
                memory.write(),
                params.rate_bytes_per_second.max(1),
                params.packet_bytes.into(),
                params.window_ns,
                params.smooth_shift,
                params.decrease_shift,
                params.increase_shift,
                now_ns,
            );
        }
        Self { memory, users }
    }

    /// A packet of a user: whether it passes. Of a user that there is not, it does not.
    pub fn take(&mut self, user: u32, weight_shift: u32, now_ns: u64, bytes: u32, random_u32: u32) -> bool {
        let is_there = user < self.users;
        // SAFETY: the node was started on this memory, and has this user.
        is_there && unsafe { pst_host_hcsfq_take(self.memory.write(), user, weight_shift, now_ns, bytes, random_u32) }
    }

    /// What a user with a weight of 1 may send, bytes a second.
    #[must_use]
    pub fn limit(&self) -> u64 {
        // SAFETY: as above.
        unsafe { pst_host_hcsfq_limit_Bps(self.memory.read()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four users of a link of 100 Mbit/s that send 100 Mbit/s each, with the constants that `test_ahab.c` has.
    #[test]
    fn four_users_come_to_share_a_link() {
        let params = Params {
            rate_bytes_per_second: 12_500_000,
            packet_bytes: 1250,
            window_ns: 1_000_000,
            smooth_shift: 1,
            decrease_shift: 3,
            increase_shift: 6,
        };
        let mut link = Hcsfq::new(&params, 4, 0);
        assert!(link.limit().abs_diff(12_500_000) < 1000, "{}", link.limit());
        let mut rng = crate::plane::Rng::new(1);
        let mut passed = [0_u32; 4];
        for packet in 0..40_000_u64 {
            let user = u32::try_from(packet % 4).unwrap();
            let passes = link.take(user, 0, packet * 25_000, 1250, rng.next_u32());
            passed[user as usize] += u32::from(passes && packet >= 20_000);
        }
        // 0.5 s of 25 Mbit/s each.
        assert!(passed.iter().all(|passed| (1100..1400).contains(passed)), "{passed:?}");
        assert!((2_000_000..5_000_000).contains(&link.limit()), "{}", link.limit());
        assert!(!link.take(4, 0, 1_000_000_000, 1250, 0), "there is no fifth user");
    }
}
