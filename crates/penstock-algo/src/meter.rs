// SPDX-License-Identifier: MIT OR Apache-2.0
//! The meters of RFC 2697, RFC 2698 and RFC 4115: `algo/include/penstock/srtcm.h` and `trtcm.h`.

use crate::wire;

// SAFETY: total functions of their arguments; they write where an exclusive reference points to, and keep none.
unsafe extern "C" {
    fn pst_host_meter_idle(now_ns: u64) -> wire::MeterState;
    safe fn pst_host_meter_depths(
        profile: &wire::Profile,
        rate: u32,
        committed_ticks: &mut u64,
        excess_ticks: &mut u64,
    );
    safe fn pst_host_meter_take(
        profile: &wire::Profile,
        rate: u32,
        state: &mut wire::MeterState,
        now_ns: u64,
        bytes: u32,
        color_in: u32,
    ) -> u32;
}

/// A shared profile at one CIR, and the state.
#[derive(Debug, Clone)]
pub struct Meter {
    profile: wire::Profile,
    rate: u32,
    /// The state: when each bucket would be full.
    pub state: wire::MeterState,
}

/// The state of a meter that is idle at `now_ns`: full buckets, whatever the profile.
#[must_use]
pub fn idle(now_ns: u64) -> wire::MeterState {
    // SAFETY: a pure function of its argument.
    unsafe { pst_host_meter_idle(now_ns) }
}

impl Meter {
    /// Full buckets at `now_ns`. Of the profile, the meter, burst, excess, MTU, second rate and colour-awareness count.
    /// None when its meter is not one of the three.
    #[must_use]
    pub fn new(profile: &wire::Profile, rate_code: u32, now_ns: u64) -> Option<Self> {
        let rfcs = [wire::PST_METER_RFC2697, wire::PST_METER_RFC2698, wire::PST_METER_RFC4115];
        let is_known = rfcs.contains(&u32::from(profile.meter));
        is_known.then(|| Self { profile: *profile, rate: rate_code, state: idle(now_ns) })
    }

    /// Depths of the buckets in ticks, each at its own rate: C, and the one beside it (E, or P of RFC 2698).
    #[must_use]
    pub fn depths_ticks(&self) -> (u64, u64) {
        let (mut committed, mut excess) = (0, 0);
        pst_host_meter_depths(&self.profile, self.rate, &mut committed, &mut excess);
        (committed, excess)
    }

    /// Colours a packet (below 2^30 bytes) and charges it. `color_in` counts when the profile is colour-aware.
    pub fn take(&mut self, now_ns: u64, bytes: u32, color_in: wire::pst_color) -> wire::pst_color {
        pst_host_meter_take(&self.profile, self.rate, &mut self.state, now_ns, bytes, color_in)
    }
}
