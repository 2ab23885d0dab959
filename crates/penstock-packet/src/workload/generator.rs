// SPDX-License-Identifier: MIT OR Apache-2.0
//! The generator: a workload's packets in time order.
//!
//! Units     time in ticks of 2^-16 ns, so that a gap of 1 ns is exact to 1/65,536; a workload lasts at most a day
//!           (2^47 ns), which is 2^63 ticks.
//! Memory    16 bytes a flow for its event, and 8 more for the end of its burst; lists grow by doubling.
//! Random    one xoshiro256++ a group, seeded by the workload's seed and the group's place.

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::template::Template;
use super::wheel::{Event, Wheel};
use super::{Arrival, ETHERNET_BYTES, FlowGroup, TimeRange, Workload};
use crate::batch::Record;
use crate::{Batch, CaptureError, Format, FrameSource, Interface, LinkType, Progress};

/// Frames that a batch holds at most.
const BATCH_FRAMES: usize = 4096;
const TICKS_PER_NSEC: u64 = 1 << 16;
const NSEC_PER_SEC: u64 = 1_000_000_000;

/// Delivers the packets of a workload: headers only, the rest of a packet is zeros that nobody writes.
///
/// Times count from the start of the workload.
pub struct Generator {
    groups: Vec<Group>,
    wheel: Wheel,
    interface: Interface,
    now_ns: u64,
    duration_ns: u64,
}

struct Group {
    template: Template,
    random: Xoshiro256PlusPlus,
    arrival: Arrival,
    sizes: Vec<Size>,
    /// Sum of the shares: sizes are drawn from 0..share_sum.
    share_sum: f64,
    mean_gap_ticks: f64,
    stop_ticks: u64,
    /// Which flow a packet belongs to, when popularity says so.
    popularity: Option<Zipf<f64>>,
    /// Of on-off sources.
    burst_ends: Vec<u64>,
}

struct Size {
    bytes: u16,
    /// Sum of the shares up to this one.
    share_end: f64,
    /// How long it takes at the source's rate.
    gap_ticks: u64,
}

impl Generator {
    /// Prepares all flows: their first packets are drawn here.
    #[must_use]
    pub fn new(workload: &Workload) -> Self {
        let mut groups: Vec<Group> = Vec::with_capacity(workload.groups.len());
        let mut sources = 0;
        let mut packets_per_tick = 0.0;
        for (index, flows) in (0u64..).zip(&workload.groups) {
            let group = Group::new(flows, workload.seed, index);
            let count = source_count(flows);
            sources += u64::from(count);
            packets_per_tick += f64::from(count) / group.mean_gap_ticks;
            groups.push(group);
        }
        // A float cast saturates; no sources give an infinite gap, which is as good as any.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let mut wheel = Wheel::new(sources, (1.0 / packets_per_tick) as u64);
        for ((index, group), flows) in (0u32..).zip(&mut groups).zip(&workload.groups) {
            group.start(flows, index, &mut wheel);
        }
        Self {
            groups,
            wheel,
            interface: Interface {
                name: Some("workload".to_owned()),
                linktype: LinkType::LINKTYPE_ETHERNET,
                snap_bytes: 0,
            },
            now_ns: 0,
            duration_ns: workload.duration_ns,
        }
    }
}

/// A group with a popularity is one source that sends for all of its flows.
fn source_count(flows: &FlowGroup) -> u32 {
    if flows.popularity.is_some() { 1 } else { flows.count }
}

impl Group {
    fn new(flows: &FlowGroup, seed: u64, index: u64) -> Self {
        let rate_bps = flows.rate_bps * u64::from(flows.count / source_count(flows));
        let mut share_sum = 0.0;
        let mut mean_gap_ticks = 0.0;
        let mut sizes = Vec::with_capacity(flows.sizes.len());
        for size in &flows.sizes {
            let gap =
                u128::from(size.bytes) * 8 * u128::from(NSEC_PER_SEC * TICKS_PER_NSEC) / u128::from(rate_bps.max(1));
            let gap_ticks = u64::try_from(gap).unwrap_or(u64::MAX).max(1);
            share_sum += size.share;
            // f64 holds 53 bits: a mean needs no more.
            #[allow(clippy::cast_precision_loss)]
            let weighted = gap_ticks as f64 * size.share;
            mean_gap_ticks += weighted;
            sizes.push(Size { bytes: size.bytes, share_end: share_sum, gap_ticks });
        }
        Self {
            template: Template::new(flows),
            random: Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15))),
            arrival: flows.arrival,
            sizes,
            share_sum,
            mean_gap_ticks: mean_gap_ticks / share_sum,
            stop_ticks: flows.stop_ns.saturating_mul(TICKS_PER_NSEC),
            // Count and exponent were checked; without popularity every source is its own flow.
            popularity: flows.popularity.and_then(|exponent| Zipf::new(f64::from(flows.count), exponent).ok()),
            burst_ends: Vec::new(),
        }
    }

    /// Draws the first packet of each source, spread so that they do not all fire at once.
    fn start(&mut self, flows: &FlowGroup, index: u32, wheel: &mut Wheel) {
        let start_ticks = flows.start_ns.saturating_mul(TICKS_PER_NSEC);
        for source in 0..source_count(flows) {
            let wait_ticks = match self.arrival {
                Arrival::Cbr => {
                    let gap = self.draw_size().1;
                    self.random.random_range(0..gap)
                }
                Arrival::Poisson => self.exponential_ticks(),
                Arrival::Bursts { on, off } => {
                    let wait = self.random.random_range(0..=off.max_ns.saturating_mul(TICKS_PER_NSEC));
                    let end = start_ticks.saturating_add(wait).saturating_add(self.uniform_ticks(on));
                    self.burst_ends.push(end);
                    wait
                }
            };
            self.schedule(start_ticks.saturating_add(wait_ticks), index, source, wheel);
        }
    }

    /// When the source sends again, after a packet that takes `gap_ticks`.
    fn next_ticks(&mut self, event: Event, gap_ticks: u64) -> u64 {
        match self.arrival {
            Arrival::Cbr => event.time_ticks.saturating_add(gap_ticks),
            Arrival::Poisson => event.time_ticks.saturating_add(self.exponential_ticks()),
            Arrival::Bursts { on, off } => {
                let next = event.time_ticks.saturating_add(gap_ticks);
                let end = self.burst_ends.get(event.source as usize).copied().unwrap_or(0);
                if next < end {
                    return next;
                }
                let begin = end.saturating_add(self.uniform_ticks(off));
                let end = begin.saturating_add(self.uniform_ticks(on));
                if let Some(slot) = self.burst_ends.get_mut(event.source as usize) {
                    *slot = end;
                }
                begin
            }
        }
    }

    fn schedule(&self, time_ticks: u64, group: u32, source: u32, wheel: &mut Wheel) {
        if time_ticks < self.stop_ticks {
            wheel.push(Event { time_ticks, group, source });
        }
    }

    /// Size of a packet and how long it takes.
    fn draw_size(&mut self) -> (u16, u64) {
        let [size] = self.sizes.as_slice() else {
            let at = self.random.random::<f64>() * self.share_sum;
            let index = self.sizes.partition_point(|size| size.share_end <= at).min(self.sizes.len() - 1);
            let size = &self.sizes[index];
            return (size.bytes, size.gap_ticks);
        };
        (size.bytes, size.gap_ticks)
    }

    fn draw_flow(&mut self, source: u32) -> u32 {
        match &self.popularity {
            // Ranks are whole numbers from 1 to the count.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            Some(zipf) => zipf.sample(&mut self.random) as u32 - 1,
            None => source,
        }
    }

    /// An exponential gap by inversion; 2^-53 is the smallest u, so it is at most 37 times the mean.
    fn exponential_ticks(&mut self) -> u64 {
        let u = 1.0 - self.random.random::<f64>();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let ticks = (-u.ln() * self.mean_gap_ticks) as u64;
        ticks
    }

    fn uniform_ticks(&mut self, range: TimeRange) -> u64 {
        let ticks = range.min_ns.saturating_mul(TICKS_PER_NSEC)..=range.max_ns.saturating_mul(TICKS_PER_NSEC);
        self.random.random_range(ticks)
    }
}

impl FrameSource for Generator {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, CaptureError> {
        batch.records.clear();
        batch.bytes.clear();
        while batch.len() < BATCH_FRAMES {
            let Some(event) = self.wheel.pop() else {
                self.now_ns = self.duration_ns;
                break;
            };
            // Groups are never removed.
            let group = &mut self.groups[event.group as usize];
            let (bytes, gap_ticks) = group.draw_size();
            let packet_bytes = bytes.saturating_sub(ETHERNET_BYTES); // no size is below its headers
            let flow = group.draw_flow(event.source);
            self.now_ns = event.time_ticks / TICKS_PER_NSEC;
            // 4096 frames of at most 78 bytes, and a packet has at most 65,535: all fit u32.
            #[allow(clippy::cast_possible_truncation)]
            batch.records.push(Record {
                time_ns: self.now_ns,
                start: batch.bytes.len() as u32,
                captured_bytes: group.template.header_bytes() as u32,
                wire_bytes: group.template.link_bytes() as u32 + u32::from(packet_bytes),
                interface: 0,
                link: LinkType::Ethernet,
            });
            group.template.append(&mut batch.bytes, flow, packet_bytes);
            let next = group.next_ticks(event, gap_ticks);
            group.schedule(next, event.group, event.source, &mut self.wheel);
        }
        Ok(!batch.is_empty())
    }

    fn interfaces(&self) -> &[Interface] {
        std::slice::from_ref(&self.interface)
    }

    fn format(&self) -> Format {
        Format::Pcap
    }

    fn progress(&self) -> Progress {
        Progress { done: self.now_ns, total: Some(self.duration_ns) }
    }
}
