// SPDX-License-Identifier: MIT OR Apache-2.0
//! One limit and its actions, from a parsed packet to its verdict: `algo/include/penstock/pipeline.h`.
//!
//! [`crate::plane`] is the form for many limits, with tables and batches.

use crate::{limiter, meter, wire};
use std::ptr;

unsafe extern "C" {
    fn pst_host_pipeline_decide(
        decision: *mut wire::Decision,
        plane: *const wire::pst_plane,
        packet: *const wire::Packet,
        now_ns: u64,
        random_u32: u32,
    );
}

/// A plane of one link and one class, which takes every packet and has this limit.
#[derive(Debug, Clone)]
pub struct SingleLimit {
    link: wire::Link,
    class: wire::Class,
    profile: wire::Profile,
    rate: u32,
    /// The state of the window meter.
    pub vft_ticks: u64,
    /// The state of an RFC meter. Both are kept, and the profile's meter says which one counts.
    pub meter: wire::MeterState,
}

impl SingleLimit {
    /// Idle at `now_ns`. The link charges `overhead_bytes` for a packet beside its own, and lets malformed ones pass.
    #[must_use]
    pub fn new(profile: &wire::Profile, rate_code: u32, overhead_bytes: u32, now_ns: u64) -> Self {
        Self {
            link: wire::Link { overhead_bytes, ..wire::Link::default() },
            class: wire::Class::default(),
            profile: wire::Profile { class_index: 0, ..*profile },
            rate: rate_code,
            vft_ticks: limiter::idle(now_ns),
            meter: meter::idle(now_ns),
        }
    }

    /// Decides for a packet, and charges it.
    pub fn decide(&mut self, packet: &wire::Packet, now_ns: u64, random_u32: u32) -> wire::Decision {
        let is_window = u32::from(self.profile.meter) == wire::PST_METER_WINDOW;
        let state = if is_window { self.vft_ticks } else { 0 };
        let mut limit = wire::Limit { state, rate: self.rate, ..wire::Limit::default() };
        let plane = wire::pst_plane {
            links: &raw const self.link,
            tuples: ptr::null(),
            rules: ptr::null(),
            classes: &raw const self.class,
            profiles: &raw const self.profile,
            tables: [wire::pst_table { buckets: ptr::null_mut(), bucket_count: 0 }; 2],
            limits: &raw mut limit,
            meters: &raw mut self.meter,
            lines: ptr::null_mut(),
            places: ptr::null(),
            nodes: ptr::null_mut(),
            slices: ptr::null_mut(),
            filters: ptr::null_mut(),
            countdowns: ptr::null_mut(),
            sketch: wire::Sketch::default(),
            secret: wire::HashSecret::default(),
            link_first: 0,
            link_count: 1,
            tuple_count: 0,
            rule_count: 0,
            class_count: 1,
            profile_count: 1,
            limit_count: 1,
            meter_count: 1,
            line_count: 0,
            place_count: 0,
            node_count: 0,
            slice_count: 0,
            filter_count: 0,
            countdown_count: 0,
            waiting: ptr::null(),
            waiting_mask: 0,
            room_chunks: u32::MAX,
            uses_random: true,
            shapes: true,
            is_holder_absent: false,
            is_holder_leaving: false,
        };
        let mut decision = wire::Decision::default();
        // SAFETY: the plane's pointers are to what is counted, and live through the call; nothing has no pointer.
        unsafe { pst_host_pipeline_decide(&raw mut decision, &raw const plane, packet, now_ns, random_u32) };
        if is_window {
            self.vft_ticks = limit.state;
        }
        decision
    }
}
