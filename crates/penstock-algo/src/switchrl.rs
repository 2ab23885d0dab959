// SPDX-License-Identifier: MIT OR Apache-2.0
//! SwitchRL's four algorithms: `algo/include/penstock/switchrl.h`.

use crate::approx::Adt;
use crate::memory::Memory;
use crate::{Judgement, wire};
use std::ffi::c_void;
use std::marker::PhantomData;

unsafe extern "C" {
    safe fn pst_host_meterrl_bytes() -> usize;
    fn pst_host_meterrl_compile(
        out: *mut c_void,
        rate_bytes_per_second: u64,
        interval_ns: u64,
        burst_bytes: u32,
        mtu_bytes: u32,
    );
    fn pst_host_meterrl_full(profile: *const c_void) -> u64;
    fn pst_host_meterrl_refill(profile: *const c_void, tokens_nanobytes: &mut u64);
    safe fn pst_host_meterrl_take(tokens_nanobytes: &mut u64, bytes: u32) -> u32;
    safe fn pst_host_packetrl_bytes() -> usize;
    fn pst_host_packetrl_compile(out: *mut c_void, rate_bytes_per_second: u64, burst_bytes: u32, mtu_bytes: u32);
    fn pst_host_packetrl_full(profile: *const c_void) -> u64;
    fn pst_host_packetrl_take(
        profile: *const c_void,
        tokens_nanobytes: &mut u64,
        prev_ns: &mut u64,
        now_ns: u64,
        bytes: u32,
    ) -> u32;
    safe fn pst_host_switchrl_bytes() -> usize;
    fn pst_host_switchrl_compile(
        out: *mut c_void,
        rate_bytes_per_second: u64,
        ctw_ns: u64,
        etw_ns: u64,
        mtu_bytes: u32,
        drop_max_q32: u32,
    );
    safe fn pst_host_switchrl_full(now_ns: u64) -> u64;
    fn pst_host_optpacketrl_take(profile: *const c_void, accu_ticks: &mut u64, now_ns: u64, bytes: u32) -> u32;
    fn pst_host_switchrl_take(
        profile: *const c_void,
        accu_ticks: &mut u64,
        now_ns: u64,
        bytes: u32,
        random_u32: u32,
        verdict: &mut u32,
        reason: &mut u32,
    ) -> u32;
    safe fn pst_host_switchrl_adt_bytes() -> usize;
    fn pst_host_switchrl_adt_compile(
        out: *mut c_void,
        table: *const c_void,
        rate_mbps: u32,
        ctw_ns: u64,
        etw_ns: u64,
        mtu_bytes: u32,
        drop_max_q32: u32,
    );
    fn pst_host_switchrl_adt_take(
        profile: *const c_void,
        accu_ticks: &mut u64,
        now_ns: u64,
        bytes: u32,
        random_u32: u32,
        verdict: &mut u32,
        reason: &mut u32,
    ) -> u32;
}

/// Algorithm 1: tokens come by a timer.
#[derive(Debug, Clone)]
pub struct MeterRl {
    profile: Memory,
    /// The state.
    pub tokens_nanobytes: u64,
}

impl MeterRl {
    /// A full bucket; the burst is widened to an interval's tokens and two packets.
    #[must_use]
    pub fn new(rate_bytes_per_second: u64, interval_ns: u64, burst_bytes: u32, mtu_bytes: u32) -> Self {
        let mut profile = Memory::new(pst_host_meterrl_bytes());
        // SAFETY: the memory has the profile's size.
        let tokens_nanobytes = unsafe {
            pst_host_meterrl_compile(profile.write(), rate_bytes_per_second, interval_ns, burst_bytes, mtu_bytes);
            pst_host_meterrl_full(profile.read())
        };
        Self { profile, tokens_nanobytes }
    }

    /// An interval has passed.
    pub fn refill(&mut self) {
        // SAFETY: a compiled profile.
        unsafe { pst_host_meterrl_refill(self.profile.read(), &mut self.tokens_nanobytes) }
    }

    /// Green: send. Red: drop.
    pub fn take(&mut self, bytes: u32) -> wire::pst_color {
        pst_host_meterrl_take(&mut self.tokens_nanobytes, bytes)
    }
}

/// Algorithm 2: tokens come with packets.
#[derive(Debug, Clone)]
pub struct PacketRl {
    profile: Memory,
    /// The state: tokens at `prev_ns`.
    pub tokens_nanobytes: u64,
    /// The state: when tokens last came.
    pub prev_ns: u64,
}

impl PacketRl {
    /// A full bucket at `now_ns`; the burst is widened to two packets.
    #[must_use]
    pub fn new(rate_bytes_per_second: u64, burst_bytes: u32, mtu_bytes: u32, now_ns: u64) -> Self {
        let mut profile = Memory::new(pst_host_packetrl_bytes());
        // SAFETY: the memory has the profile's size.
        let tokens_nanobytes = unsafe {
            pst_host_packetrl_compile(profile.write(), rate_bytes_per_second, burst_bytes, mtu_bytes);
            pst_host_packetrl_full(profile.read())
        };
        Self { profile, tokens_nanobytes, prev_ns: now_ns }
    }

    /// Green: send. Red: drop.
    pub fn take(&mut self, now_ns: u64, bytes: u32) -> wire::pst_color {
        let (tokens_nanobytes, prev_ns) = (&mut self.tokens_nanobytes, &mut self.prev_ns);
        // SAFETY: a compiled profile.
        unsafe { pst_host_packetrl_take(self.profile.read(), tokens_nanobytes, prev_ns, now_ns, bytes) }
    }
}

/// What Algorithms 3 and 4 have beside their rate.
#[derive(Debug, Clone, Copy)]
pub struct Windows {
    /// Committed time window.
    pub ctw_ns: u64,
    /// Excess time window; Algorithm 3 adds it to the other.
    pub etw_ns: u64,
    /// Largest packet: the windows are widened to two of them.
    pub mtu_bytes: u32,
    /// Largest probability of a random drop, in 2^-32, at the end of the excess window.
    pub drop_max_q32: u32,
}

/// Algorithms 3 and 4, exact: the same profile and state, judged in two ways.
#[derive(Debug, Clone)]
pub struct SwitchRl {
    profile: Memory,
    /// The state: the time up to which budget is spent.
    pub accu_ticks: u64,
}

impl SwitchRl {
    /// Full credit at `now_ns`.
    #[must_use]
    pub fn new(rate_bytes_per_second: u64, windows: &Windows, now_ns: u64) -> Self {
        let mut profile = Memory::new(pst_host_switchrl_bytes());
        let Windows { ctw_ns, etw_ns, mtu_bytes, drop_max_q32 } = *windows;
        // SAFETY: the memory has the profile's size.
        unsafe {
            pst_host_switchrl_compile(profile.write(), rate_bytes_per_second, ctw_ns, etw_ns, mtu_bytes, drop_max_q32);
        }
        Self { profile, accu_ticks: pst_host_switchrl_full(now_ns) }
    }

    /// Algorithm 3, optPacketRL. Green: send. Red: drop.
    pub fn take_opt(&mut self, now_ns: u64, bytes: u32) -> wire::pst_color {
        // SAFETY: a compiled profile.
        unsafe { pst_host_optpacketrl_take(self.profile.read(), &mut self.accu_ticks, now_ns, bytes) }
    }

    /// Algorithm 4, SwitchRL.
    pub fn take(&mut self, now_ns: u64, bytes: u32, random_u32: u32) -> Judgement {
        let (profile, accu_ticks) = (self.profile.read(), &mut self.accu_ticks);
        let (mut verdict, mut reason) = (0, 0);
        // SAFETY: a compiled profile.
        let color = unsafe {
            pst_host_switchrl_take(profile, accu_ticks, now_ns, bytes, random_u32, &mut verdict, &mut reason)
        };
        Judgement { color, verdict, reason }
    }
}

/// Algorithm 4 as a switch runs it: what a packet consumes comes out of a table.
#[derive(Debug, Clone)]
pub struct SwitchRlAdt<'a> {
    profile: Memory,
    /// The profile points to it.
    _table: PhantomData<&'a Adt>,
    /// The state: the time up to which budget is spent.
    pub accu_ticks: u64,
}

impl<'a> SwitchRlAdt<'a> {
    /// Full credit at `now_ns`. The table divides bytes by Mbit/s.
    #[must_use]
    pub fn new(rate_mbps: u32, table: &'a Adt, windows: &Windows, now_ns: u64) -> Self {
        let mut profile = Memory::new(pst_host_switchrl_adt_bytes());
        let Windows { ctw_ns, etw_ns, mtu_bytes, drop_max_q32 } = *windows;
        let (out, table) = (profile.write(), table.table());
        // SAFETY: the memory has the profile's size; the table is whole and lives as long as this struct.
        unsafe { pst_host_switchrl_adt_compile(out, table, rate_mbps, ctw_ns, etw_ns, mtu_bytes, drop_max_q32) };
        Self { profile, _table: PhantomData, accu_ticks: pst_host_switchrl_full(now_ns) }
    }

    /// Judges a packet and charges it, unless it is dropped.
    pub fn take(&mut self, now_ns: u64, bytes: u32, random_u32: u32) -> Judgement {
        let (profile, accu_ticks) = (self.profile.read(), &mut self.accu_ticks);
        let (mut verdict, mut reason) = (0, 0);
        // SAFETY: a compiled profile, whose table lives.
        let color = unsafe {
            pst_host_switchrl_adt_take(profile, accu_ticks, now_ns, bytes, random_u32, &mut verdict, &mut reason)
        };
        Judgement { color, verdict, reason }
    }
}
