// SPDX-License-Identifier: MIT OR Apache-2.0
//! DragonKing as published: packets circulate until their start time, and a control loop moves the groups:
//! `algo/include/penstock/circulation.h` and `wf2q_control.h`.

use crate::memory::Memory;
use crate::wire;
use std::ffi::c_void;

/// Groups, and pipelines.
pub const GROUPS: usize = wire::PST_WF2Q_GROUPS as usize;

/// What a circulation is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// Bytes a second of each pipeline, the front first.
    pub capacity_bytes_per_second: [u64; GROUPS],
    /// `T_b`: how often bandwidths are read.
    pub monitor_ns: u64,
    /// `T_slide`.
    pub slide_ns: u64,
    /// h: a smaller beta changes nothing.
    pub h_ns: u64,
    /// From the end of a pipeline to its beginning.
    pub loop_ns: u64,
    /// Buffer of each pipeline.
    pub room_bytes: [u32; GROUPS],
    /// How far a bandwidth lies from the mean when windows are shared anew.
    pub variance_q16: u32,
    /// Of the front's delay: alpha rho / (1 - rho).
    pub alpha_ns: u32,
    /// Step of the front's window, below 0.
    pub delta_q16: i32,
    /// Whether the windows follow the bandwidths (Algorithm 1).
    pub redistributes: bool,
    /// Whether the front's window follows start times (equation 6).
    pub schedules: bool,
}

impl Params {
    /// The paper's, with pipelines of `rate` bytes a second and these buffers, a loop of 1 us.
    #[must_use]
    pub fn published(rate: u64, front_bytes: u32, back_bytes: u32) -> Self {
        let mut params = Self {
            capacity_bytes_per_second: [rate; GROUPS],
            monitor_ns: 0,
            slide_ns: 0,
            h_ns: 0,
            loop_ns: 1000,
            room_bytes: std::array::from_fn(|group| if group == 0 { front_bytes } else { back_bytes }),
            variance_q16: 0,
            alpha_ns: 0,
            delta_q16: 0,
            redistributes: true,
            schedules: true,
        };
        pst_host_circulation_published(
            &mut params.slide_ns,
            &mut params.h_ns,
            &mut params.variance_q16,
            &mut params.alpha_ns,
            &mut params.delta_q16,
        );
        params.monitor_ns = params.slide_ns;
        params
    }
}

/// A packet that comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// When it may leave.
    pub vst_ns: u64,
    /// When the next one of its limit may.
    pub vft_ns: u64,
    /// Its length, 1 at least and below 2^17.
    pub bytes: u32,
    /// The caller's.
    pub tag: u32,
}

/// A packet that left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub sent_ns: u64,
    /// When it might have.
    pub vst_ns: u64,
    /// Its length.
    pub bytes: u32,
    /// The caller's.
    pub tag: u32,
}

unsafe extern "C" {
    safe fn pst_host_circulation_bytes() -> usize;
    safe fn pst_host_circulation_packet_bytes() -> usize;
    safe fn pst_host_circulation_published(
        slide_ns: &mut u64,
        h_ns: &mut u64,
        variance_q16: &mut u32,
        alpha_ns: &mut u32,
        delta_q16: &mut i32,
    );
    fn pst_host_circulation_start(
        circulation: *mut c_void,
        packets: *mut c_void,
        packet_count: u32,
        capacity_bytes_per_second: &[u64; GROUPS],
        room_bytes: &[u32; GROUPS],
        monitor_ns: u64,
        slide_ns: u64,
        h_ns: u64,
        loop_ns: u64,
        variance_q16: u32,
        alpha_ns: u32,
        delta_q16: i32,
        redistributes: bool,
        schedules: bool,
        now_ns: u64,
    );
    fn pst_host_circulation_put(
        circulation: *mut c_void,
        packets: *mut c_void,
        now_ns: u64,
        vst_ns: u64,
        vft_ns: u64,
        bytes: u32,
        tag: u32,
    ) -> bool;
    fn pst_host_circulation_run(
        circulation: *mut c_void,
        packets: *mut c_void,
        until_ns: u64,
        sent_ns: &mut u64,
        vst_ns: &mut u64,
        bytes: &mut u32,
        tag: &mut u32,
    ) -> bool;
    fn pst_host_circulation_passed_bytes(circulation: *const c_void, group: u32) -> u64;
    fn pst_host_circulation_window_ns(circulation: *const c_void, group: u32) -> u64;
    fn pst_host_circulation_waiting(circulation: *const c_void) -> u32;
}

/// Packets in pipelines, and the control loop around them.
#[derive(Debug)]
pub struct Circulation {
    state: Memory,
    packets: Memory,
}

impl Circulation {
    /// Empty, with places for `packets`, from `now_ns` on.
    #[must_use]
    pub fn new(params: &Params, packets: u32, now_ns: u64) -> Self {
        let mut state = Memory::new(pst_host_circulation_bytes());
        let mut places = Memory::new(pst_host_circulation_packet_bytes() * packets as usize);
        // SAFETY: both memories have the sizes that C says.
        unsafe {
            pst_host_circulation_start(
                state.write(),
                places.write(),
                packets,
                &params.capacity_bytes_per_second,
                &params.room_bytes,
                params.monitor_ns,
                params.slide_ns,
                params.h_ns,
                params.loop_ns,
                params.variance_q16,
                params.alpha_ns,
                params.delta_q16,
                params.redistributes,
                params.schedules,
                now_ns,
            );
        }
        Self { state, packets: places }
    }

    /// A packet comes. False when it finds no room. `now_ns` is not before what was run to.
    pub fn put(&mut self, now_ns: u64, packet: &Packet) -> bool {
        let Packet { vst_ns, vft_ns, bytes, tag } = *packet;
        let (state, packets) = (self.state.write(), self.packets.write());
        // SAFETY: the circulation was started on this memory.
        unsafe { pst_host_circulation_put(state, packets, now_ns, vst_ns, vft_ns, bytes, tag) }
    }

    /// Lets time go on to `until_ns`, or until a packet leaves before: call again then.
    pub fn run(&mut self, until_ns: u64) -> Option<Sent> {
        let mut sent = Sent { sent_ns: 0, vst_ns: 0, bytes: 0, tag: 0 };
        let Sent { sent_ns, vst_ns, bytes, tag } = &mut sent;
        let (state, packets) = (self.state.write(), self.packets.write());
        // SAFETY: as above; the rest is borrowed for the call.
        unsafe { pst_host_circulation_run(state, packets, until_ns, sent_ns, vst_ns, bytes, tag) }.then_some(sent)
    }

    /// Bytes that passed each pipeline so far.
    #[must_use]
    pub fn passed_bytes(&self) -> [u64; GROUPS] {
        // SAFETY: the state is live, and the groups are those that there are.
        std::array::from_fn(|group| unsafe { pst_host_circulation_passed_bytes(self.state.read(), index(group)) })
    }

    /// T of each group.
    #[must_use]
    pub fn windows_ns(&self) -> [u64; GROUPS] {
        // SAFETY: as above.
        std::array::from_fn(|group| unsafe { pst_host_circulation_window_ns(self.state.read(), index(group)) })
    }

    /// Packets inside.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        // SAFETY: the state is live.
        unsafe { pst_host_circulation_waiting(self.state.read()) }
    }
}

#[allow(clippy::cast_possible_truncation)] // there are four
fn index(group: usize) -> u32 {
    group as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_leaves_at_its_time_and_what_has_no_room_is_refused() {
        let params = Params::published(12_500_000_000, 3000, 3000);
        let mut circulation = Circulation::new(&params, 8, 0);
        let packet = |tag, vst_ns| Packet { vst_ns, vft_ns: vst_ns + 120, bytes: 1500, tag };
        assert!(circulation.put(0, &packet(1, 0)) && circulation.put(0, &packet(2, 3000)));
        assert!(!circulation.put(0, &packet(3, 3000)), "the front's buffer is full");
        let first = circulation.run(50_000).unwrap();
        assert_eq!((first.tag, first.sent_ns, first.vst_ns, first.bytes), (1, 1120, 0, 1500));
        let second = circulation.run(50_000).unwrap();
        assert!(second.tag == 2 && (3000..5000).contains(&second.sent_ns), "{second:?}");
        assert_eq!((circulation.run(50_000), circulation.waiting()), (None, 0));
        assert!(circulation.passed_bytes()[0] >= 3000 && circulation.passed_bytes()[1] == 0);
        assert!(circulation.windows_ns().iter().all(|&window| window > 0));
    }
}
