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
    safe fn pst_host_meter_used_ns(
        profile: &wire::Profile,
        rate: u32,
        state: &wire::MeterState,
        now_ns: u64,
        holds_ns: &mut u64,
    ) -> u64;
    safe fn pst_host_meter_convert(
        before: &wire::Profile,
        before_rate: u32,
        after: &wire::Profile,
        after_rate: u32,
        state: &wire::MeterState,
        now_ns: u64,
    ) -> wire::MeterState;
}

/// How much of the committed bucket is used, and how much it holds, as time at the CIR, ns.
#[must_use]
pub fn used_ns(terms: Terms<'_>, state: &wire::MeterState, now_ns: u64) -> (u64, u64) {
    let mut holds_ns = 0;
    (pst_host_meter_used_ns(terms.profile, terms.rate_code, state, now_ns, &mut holds_ns), holds_ns)
}

/// What a meter goes by: a shared profile, at one CIR.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// Bursts, second rate, and which RFC.
    pub profile: &'a wire::Profile,
    /// Code of the CIR.
    pub rate_code: u32,
}

/// The state after a meter went over to other terms: what is used of each bucket stays, in bytes, as far as the bucket holds it. Full
/// buckets when the terms are of another RFC.
#[must_use]
pub fn convert(before: Terms<'_>, after: Terms<'_>, state: &wire::MeterState, now_ns: u64) -> wire::MeterState {
    pst_host_meter_convert(before.profile, before.rate_code, after.profile, after.rate_code, state, now_ns)
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

    /// Goes on by other terms; each bucket keeps what is used of it.
    pub fn change(&mut self, profile: &wire::Profile, rate_code: u32, now_ns: u64) {
        let before = Terms { profile: &self.profile, rate_code: self.rate };
        self.state = convert(before, Terms { profile, rate_code }, &self.state, now_ns);
        self.profile = *profile;
        self.rate = rate_code;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::rate;

    const NOW_NS: u64 = 1 << 50;

    fn profile(meter: wire::pst_meter) -> wire::Profile {
        wire::Profile {
            meter: u8::try_from(meter).unwrap(),
            burst_bytes: 30_000,
            excess_bytes: 60_000,
            mtu_bytes: 1_500,
            second_rate: rate::encode(2_000_000),
            ..wire::Profile::default()
        }
    }

    /// Packets of 1000 bytes that pass at one moment, by colour.
    fn passing(meter: &mut Meter) -> [u32; 2] {
        let mut passed = [0, 0];
        loop {
            match meter.take(NOW_NS, 1_000, wire::PST_COLOR_GREEN) {
                wire::PST_COLOR_GREEN => passed[0] += 1,
                wire::PST_COLOR_YELLOW => passed[1] += 1,
                _ => return passed,
            }
        }
    }

    #[test]
    fn a_meter_that_changes_keeps_what_is_used() {
        for kind in [wire::PST_METER_RFC2697, wire::PST_METER_RFC4115] {
            let wider = wire::Profile { burst_bytes: 40_500, excess_bytes: 80_500, ..profile(kind) };
            let mut meter = Meter::new(&profile(kind), rate::encode(1_000_000), NOW_NS).unwrap();
            (0..45).for_each(|_| assert_ne!(meter.take(NOW_NS, 1_000, wire::PST_COLOR_GREEN), wire::PST_COLOR_RED));
            meter.change(&wider, rate::encode(7_000_000), NOW_NS);
            // 30 green and 15 yellow went before; RFC 4115's buckets never become empty.
            let used = if kind == wire::PST_METER_RFC2697 { [30, 15] } else { [29, 16] };
            assert_eq!(passing(&mut meter), [40 - used[0], 80 - used[1]], "{kind}");
        }
    }

    #[test]
    fn another_rfc_starts_full() {
        let mut meter = Meter::new(&profile(wire::PST_METER_RFC2697), rate::encode(1_000_000), NOW_NS).unwrap();
        passing(&mut meter);
        meter.change(&profile(wire::PST_METER_RFC2698), rate::encode(1_000_000), NOW_NS);
        assert_eq!(passing(&mut meter), [30, 30]);
    }
}
