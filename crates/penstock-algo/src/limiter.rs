// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limiter whose whole state is one virtual finish time: `algo/include/penstock/limiter.h`.

use crate::wire;

// SAFETY: total functions of their arguments; they write where an exclusive reference points to, and keep none.
unsafe extern "C" {
    fn pst_host_limiter_idle(now_ns: u64) -> u64;
    safe fn pst_host_limiter_depths(profile: &wire::Profile, rate: u32, green_ticks: &mut u64, window_ticks: &mut u64);
    safe fn pst_host_limiter_take(
        profile: &wire::Profile,
        rate: u32,
        vft_ticks: &mut u64,
        now_ns: u64,
        bytes: u32,
        depth_ticks: &mut u64,
        wait_ticks: &mut u64,
    ) -> u32;
    safe fn pst_host_limiter_packets(profile: &wire::Profile) -> u32;
    safe fn pst_host_drops_early(profile: &wire::Profile) -> bool;
    safe fn pst_host_limiter_convert(
        profile: &wire::Profile,
        before_rate: u32,
        after_rate: u32,
        vft_ticks: u64,
        now_ns: u64,
    ) -> u64;
}

/// A shared profile at one rate, and the state.
#[derive(Debug, Clone)]
pub struct Limiter {
    profile: wire::Profile,
    rate: u32,
    /// The state: the virtual finish time.
    pub vft_ticks: u64,
}

/// What the limiter says of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Red is not charged, unless the profile shapes.
    pub color: wire::pst_color,
    /// Of the virtual queue, this packet included.
    pub depth_ticks: u64,
    /// Until the packet's turn; 0 unless it is red and the profile shapes.
    pub wait_ticks: u64,
}

/// The state of a limiter that is idle at `now_ns`: full credit, whatever the profile.
#[must_use]
pub fn idle(now_ns: u64) -> u64 {
    // SAFETY: a pure function of its argument.
    unsafe { pst_host_limiter_idle(now_ns) }
}

/// The packets of the profile's MTU that a window holds at least.
#[must_use]
pub fn packets(profile: &wire::Profile) -> u32 {
    pst_host_limiter_packets(profile)
}

/// Whether yellow drops at random, and a host must draw numbers for it.
#[must_use]
pub fn drops_early(profile: &wire::Profile) -> bool {
    pst_host_drops_early(profile)
}

/// Whether packets above the burst wait for their turn.
#[must_use]
pub fn holds(profile: &wire::Profile) -> bool {
    u32::from(profile.red_action) == wire::PST_ACTION_HOLD
}

impl Limiter {
    /// Idle at `now_ns`. Of the profile, burst, excess and MTU count, and whether its red action is to hold.
    #[must_use]
    pub fn new(profile: &wire::Profile, rate_code: u32, now_ns: u64) -> Self {
        Self { profile: *profile, rate: rate_code, vft_ticks: idle(now_ns) }
    }

    /// How deep green, and green and yellow, reach in ticks, after slow limits got their two packets.
    #[must_use]
    pub fn depths_ticks(&self) -> (u64, u64) {
        let (mut green, mut window) = (0, 0);
        pst_host_limiter_depths(&self.profile, self.rate, &mut green, &mut window);
        (green, window)
    }

    /// Judges a packet (below 2^30 bytes) and charges it. A profile that shapes has no end: when the wait is above 2^48
    /// ticks (275 s), drop the packet and put the old `vft_ticks` back, or the state reads as idle.
    pub fn take(&mut self, now_ns: u64, bytes: u32) -> Taken {
        let (mut depth_ticks, mut wait_ticks) = (0, 0);
        let vft_ticks = &mut self.vft_ticks;
        let color = pst_host_limiter_take(
            &self.profile,
            self.rate,
            vft_ticks,
            now_ns,
            bytes,
            &mut depth_ticks,
            &mut wait_ticks,
        );
        Taken { color, depth_ticks, wait_ticks }
    }

    /// Goes on at another rate; the virtual queue keeps its bytes.
    pub fn change_rate(&mut self, now_ns: u64, rate_code: u32) {
        self.vft_ticks = pst_host_limiter_convert(&self.profile, self.rate, rate_code, self.vft_ticks, now_ns);
        self.rate = rate_code;
    }
}
