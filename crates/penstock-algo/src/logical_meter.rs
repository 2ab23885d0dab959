// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nimble's logical meter and its congestion manager: `algo/include/penstock/logical_meter.h`.

use crate::Judgement;
use crate::memory::Memory;
use std::ffi::c_void;

unsafe extern "C" {
    safe fn pst_host_logical_meter_bytes() -> usize;
    fn pst_host_logical_meter_compile(
        out: *mut c_void,
        rate_bytes_per_second: u64,
        yellow_bytes: u32,
        red_bytes: u32,
        mtu_bytes: u32,
        red_max_q32: u32,
        congestion: u8,
        tcam_bits: u8,
    );
    fn pst_host_logical_meter_take(
        profile: *const c_void,
        is_tcam: bool,
        queue_nanobytes: &mut u64,
        last_ns: &mut u64,
        now_ns: u64,
        bytes: u32,
        is_ect: bool,
        random_u32: u32,
        verdict: &mut u32,
        reason: &mut u32,
    ) -> u32;
    fn pst_host_logical_meter_convert(
        before: *const c_void,
        after: *const c_void,
        queue_nanobytes: &mut u64,
        last_ns: &mut u64,
        now_ns: u64,
    );
}

/// What becomes of a yellow packet (`enum pst_congestion`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Congestion {
    /// It passes.
    Police = 0,
    /// It is marked if it is ECN-capable, else dropped with RED's probability.
    Dctcp = 1,
    /// It is marked, or dropped if it is not ECN-capable, with RED's probability.
    Dcqcn = 2,
}

/// A limit as it is written.
#[derive(Debug, Clone, Copy)]
pub struct Params {
    /// Rate.
    pub rate_bytes_per_second: u64,
    /// Where yellow begins; at least one packet.
    pub yellow_bytes: u32,
    /// Where red begins; at least two packets, three with early drop.
    pub red_bytes: u32,
    /// Largest packet.
    pub mtu_bytes: u32,
    /// Largest probability of early drop or marking, in 2^-32, where red begins.
    pub red_max_q32: u32,
    /// What becomes of a yellow packet.
    pub congestion: Congestion,
    /// Bits of a gap that a switch's multiply looks at (clamped to 1 ..= 24); None for the exact form.
    pub tcam_bits: Option<u8>,
}

/// A limit, and its virtual queue.
#[derive(Debug, Clone)]
pub struct LogicalMeter {
    params: Params,
    profile: Memory,
    /// The state: bytes in the queue at `last_ns`.
    pub queue_nanobytes: u64,
    /// The state: when the queue last drained.
    pub last_ns: u64,
}

fn compile(params: &Params) -> Memory {
    let mut profile = Memory::new(pst_host_logical_meter_bytes());
    // SAFETY: the memory has the profile's size.
    unsafe {
        pst_host_logical_meter_compile(
            profile.write(),
            params.rate_bytes_per_second,
            params.yellow_bytes,
            params.red_bytes,
            params.mtu_bytes,
            params.red_max_q32,
            params.congestion as u8,
            params.tcam_bits.unwrap_or_default(),
        );
    }
    profile
}

impl LogicalMeter {
    /// An empty queue at `now_ns`.
    #[must_use]
    pub fn new(params: &Params, now_ns: u64) -> Self {
        Self { params: *params, profile: compile(params), queue_nanobytes: 0, last_ns: now_ns }
    }

    /// Judges a packet, and counts it unless it is dropped.
    pub fn take(&mut self, now_ns: u64, bytes: u32, is_ect: bool, random_u32: u32) -> Judgement {
        let (mut verdict, mut reason) = (0, 0);
        // SAFETY: a compiled profile.
        let color = unsafe {
            pst_host_logical_meter_take(
                self.profile.read(),
                self.params.tcam_bits.is_some(),
                &mut self.queue_nanobytes,
                &mut self.last_ns,
                now_ns,
                bytes,
                is_ect,
                random_u32,
                &mut verdict,
                &mut reason,
            )
        };
        Judgement { color, verdict, reason }
    }

    /// Goes on with another limit; the queue keeps its bytes, up to where red begins.
    pub fn change(&mut self, now_ns: u64, params: &Params) {
        let after = compile(params);
        let (queue_nanobytes, last_ns) = (&mut self.queue_nanobytes, &mut self.last_ns);
        // SAFETY: two compiled profiles.
        unsafe {
            pst_host_logical_meter_convert(self.profile.read(), after.read(), queue_nanobytes, last_ns, now_ns);
        }
        self.params = *params;
        self.profile = after;
    }

    /// The limit as it is written.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.params
    }
}
