// SPDX-License-Identifier: MIT OR Apache-2.0
//! The replay engine: frames of a capture or a workload through a policy, in virtual time.

use crate::load::{LoadError, load};
use crate::names::reason_name;
use crate::report::{ClassReport, LISTED_LIMITS_MAX, LimitReport, LinkReport, Report};
use crate::timeline::Timeline;
use crate::verdicts::VerdictWriter;
use penstock_algo::plane::{self, Plane, Rng, Tally};
use penstock_algo::wire;
use penstock_packet::{Batch, CaptureError, CaptureWriter, FrameSource, Progress, WriteError};
use penstock_policy::plan::Plan;
use std::io::Write;

/// Virtual time at the first packet: far from 0, so that no state lies before the beginning of time.
const START_NS: u64 = 1 << 53;

/// Why a replay could not begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The tables.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// `--link` names none.
    #[error("the policy has no link {name:?}; it has {}", .known.join(", "))]
    UnknownLink {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The input.
    #[error("{0}")]
    Input(#[source] CaptureError),
    /// The output capture.
    #[error("{0}")]
    Output(#[from] WriteError),
    /// The verdicts.
    #[error("cannot write verdicts: {0}")]
    Verdicts(#[from] csv::Error),
}

/// Who looks on while a replay runs.
pub trait Watch {
    /// Called after each batch. `false` ends the replay after it.
    fn goes_on(&mut self, packets: u64, progress: Progress) -> bool;
}

/// Where a replay writes besides its report.
pub struct Sinks<W: Write> {
    /// Frames that passed, marked ones marked.
    pub capture: Option<CaptureWriter>,
    /// One line a packet.
    pub verdicts: Option<VerdictWriter<W>>,
    /// Rates over time: series 0.. are the classes of the plan, then `limits` in order.
    pub timeline: Option<Timeline>,
    /// Limits with a series of their own, as indices into [`Plan::entries`].
    pub timeline_limits: Vec<usize>,
}

impl<W: Write> Default for Sinks<W> {
    fn default() -> Self {
        Self { capture: None, verdicts: None, timeline: None, timeline_limits: Vec::new() }
    }
}

impl<W: Write> Sinks<W> {
    fn is_empty(&self) -> bool {
        self.capture.is_none() && self.verdicts.is_none() && self.timeline.is_none()
    }
}

/// How a replay ended.
#[derive(Debug)]
pub enum Outcome {
    /// All packets were judged.
    Whole,
    /// The one who watches ended it.
    Interrupted,
    /// Input or output failed; the report counts what came before.
    Failed(ReplayError),
}

/// One run of a policy.
pub struct Replay<'a> {
    plan: &'a Plan,
    plane: Plane,
    tally: Tally,
    rng: Rng,
    seed: u64,
    clock: Clock,
    totals: Totals,
    packets: Vec<wire::Packet>,
    decisions: Vec<wire::Decision>,
    frames: Vec<wire::pst_frame>,
}

/// Virtual time: counts from the first packet and never goes back.
#[derive(Debug, Default)]
struct Clock {
    first_ns: Option<u64>,
    latest_ns: u64,
    clamped: u64,
}

impl Clock {
    /// Time of a packet since the first one.
    fn advance(&mut self, time_ns: u64) -> u64 {
        let first = *self.first_ns.get_or_insert(time_ns);
        match time_ns.checked_sub(first).filter(|since| *since >= self.latest_ns) {
            Some(since) => self.latest_ns = since,
            None => self.clamped += 1,
        }
        self.latest_ns
    }
}

#[derive(Debug, Default)]
struct Totals {
    packets: u64,
    bytes: u64,
    cut: u64,
    unmatched: u64,
    links: Vec<LinkReport>,
}

impl<'a> Replay<'a> {
    /// Builds the tables of `plan`. `link` restricts the replay to one link.
    ///
    /// # Errors
    /// When there is no such link, or the tables cannot be built.
    pub fn new(plan: &'a Plan, link: Option<&str>, seed: u64) -> Result<Self, ReplayError> {
        let mut plane = load(plan, seed, START_NS)?;
        if let Some(name) = link {
            let index = plan.links.iter().position(|link| link.name == name);
            let known = || plan.links.iter().map(|link| link.name.clone()).collect();
            let index = index.ok_or_else(|| ReplayError::UnknownLink { name: name.to_owned(), known: known() })?;
            plane.select_link(u32::try_from(index).unwrap_or(0));
        }
        let links = plan
            .links
            .iter()
            .map(|link| LinkReport { name: link.name.clone(), rate_bps: link.rate_bps, ..Default::default() })
            .collect();
        Ok(Self {
            plan,
            tally: plane.tally(),
            plane,
            rng: Rng::new(seed),
            seed,
            clock: Clock::default(),
            totals: Totals { links, ..Default::default() },
            packets: Vec::new(),
            decisions: Vec::new(),
            frames: Vec::new(),
        })
    }

    /// Judges every frame of `source`.
    pub fn run<W: Write>(
        &mut self,
        source: &mut dyn FrameSource,
        sinks: &mut Sinks<W>,
        watch: &mut dyn Watch,
    ) -> Outcome {
        let mut batch = Batch::new();
        loop {
            match source.next_batch(&mut batch) {
                Ok(true) => {}
                Ok(false) => return Outcome::Whole,
                Err(error) => return Outcome::Failed(ReplayError::Input(error)),
            }
            let first_index = self.totals.packets;
            self.judge(&batch);
            if !sinks.is_empty()
                && let Err(error) = self.deliver(&mut batch, source, sinks, first_index)
            {
                return Outcome::Failed(error);
            }
            if !watch.goes_on(self.totals.packets, source.progress()) {
                return Outcome::Interrupted;
            }
        }
    }

    fn judge(&mut self, batch: &Batch) {
        self.frames.clear();
        for frame in batch.iter() {
            let now_ns = START_NS + self.clock.advance(frame.time_ns);
            self.frames.push(plane::frame(frame.data, frame.wire_bytes, frame.link.wire(), now_ns));
        }
        // SAFETY: the frames point into `batch`, which is borrowed for this call.
        unsafe {
            self.plane.run(&self.frames, &mut self.rng, &mut self.tally, &mut self.packets, &mut self.decisions);
        }
        let totals = &mut self.totals;
        totals.packets += batch.len() as u64;
        for (packet, decision) in self.packets.iter().zip(&self.decisions) {
            let bytes = u64::from(decision.length);
            let passes = u32::from(decision.verdict) != wire::PST_VERDICT_DROP || decision.shadow != 0;
            totals.bytes += bytes;
            totals.cut += u64::from(u32::from(packet.flags) & wire::PST_PACKET_IS_CUT != 0);
            totals.unmatched += u64::from(decision.class_index == wire::PST_NONE && !is_malformed(packet.reason));
            let link = &mut totals.links[usize::from(decision.link)];
            link.offered_packets += 1;
            link.offered_bytes += bytes;
            link.passed_packets += u64::from(passes);
            link.passed_bytes += if passes { bytes } else { 0 };
        }
    }

    fn deliver<W: Write>(
        &mut self,
        batch: &mut Batch,
        source: &dyn FrameSource,
        sinks: &mut Sinks<W>,
        first_index: u64,
    ) -> Result<(), ReplayError> {
        for (index, decision) in self.decisions.iter().enumerate() {
            let time_ns = self.frames[index].now_ns - START_NS;
            let entry = self.plane.owner(decision.slot as usize);
            if let Some(writer) = &mut sinks.verdicts {
                let class = self.plan.classes.get(decision.class_index as usize).map_or("", |class| &class.path);
                let limit = match entry {
                    Some(entry) => self.plan.names.get(entry),
                    None if decision.limit_index != wire::PST_NONE => last_name(class),
                    None => "",
                };
                let departure_ns = decision.departure_ns - START_NS;
                writer.write(first_index + index as u64, time_ns, departure_ns, class, limit, decision)?;
            }
            if let Some(timeline) = &mut sinks.timeline {
                if decision.class_index != wire::PST_NONE {
                    timeline.add(decision.class_index as usize, time_ns, decision);
                }
                if let Some(series) = entry.and_then(|entry| sinks.timeline_limits.iter().position(|one| *one == entry))
                {
                    timeline.add(self.plan.classes.len() + series, time_ns, decision);
                }
            }
            if let Some(writer) = &mut sinks.capture {
                let passes = u32::from(decision.verdict) != wire::PST_VERDICT_DROP || decision.shadow != 0;
                if !passes {
                    continue;
                }
                if u32::from(decision.verdict) == wire::PST_VERDICT_MARK && decision.shadow == 0 {
                    plane::mark(batch.data_mut(index), &self.packets[index], decision);
                }
                let frame = batch.frame(index);
                writer.write(&frame, frame.time_ns, source.interfaces())?;
            }
        }
        Ok(())
    }

    /// The report of what was judged so far.
    #[must_use]
    pub fn report(&self) -> Report {
        let malformed = &self.tally.reasons[wire::PST_REASON_SHORT_ETHERNET as usize..];
        let mut report = Report {
            policy: self.plan.policy.clone(),
            packets: self.totals.packets,
            bytes: self.totals.bytes,
            duration_ns: self.clock.latest_ns,
            links: self.totals.links.clone(),
            unmatched_packets: self.totals.unmatched,
            malformed_packets: malformed.iter().sum(),
            cut_packets: self.totals.cut,
            clamped_timestamps: self.clock.clamped,
            seed: self.seed,
            ..Default::default()
        };
        report.reasons.insert(reason_name(over_rate()), 0);
        for (reason, count) in (0_u8..).zip(&self.tally.reasons) {
            if *count > 0 && u32::from(reason) != wire::PST_REASON_NONE {
                report.reasons.insert(reason_name(reason), *count);
            }
        }
        self.report_classes(&mut report);
        self.report_rows(&mut report);
        report
    }

    fn report_classes(&self, report: &mut Report) {
        for (class, counters) in self.plan.classes.iter().zip(&self.tally.classes) {
            let rate_bps = class.limit_bps.unwrap_or(0);
            let mut of_class = ClassReport { path: class.path.clone(), limit_bps: rate_bps, ..ClassReport::default() };
            of_class.add(counters, false);
            let index = class.wire.limit_index as usize;
            if let (Some(limit), Some(counters)) = (self.plan.limits.get(index), self.tally.limits.get(index)) {
                let shadow = self.is_shadow(limit.profile);
                of_class.add(counters, shadow);
                report.limits.push(LimitReport::new(last_name(&class.path), &class.path, rate_bps, counters, shadow));
            }
            report.classes.push(of_class);
        }
    }

    fn report_rows(&self, report: &mut Report) {
        let mut slots = vec![usize::MAX; self.plan.entries.len()];
        for slot in 0..self.tally.slots.len() {
            if let Some(entry) = self.plane.owner(slot) {
                slots[entry] = slot;
            }
        }
        let list_all = self.plan.entries.len() <= LISTED_LIMITS_MAX;
        for (index, (entry, slot)) in self.plan.entries.iter().zip(slots).enumerate() {
            let counters = self.tally.slots.get(slot).copied().unwrap_or_default();
            let shadow = self.is_shadow(entry.profile);
            let class_index = self.plane.profiles().get(usize::from(entry.profile)).map_or(0, |one| one.class_index);
            if let Some(class) = report.classes.get_mut(class_index as usize) {
                class.add(&counters, shadow);
            }
            if !list_all && counters.offered_packets == 0 {
                report.limits_not_listed += 1;
                continue;
            }
            let class = self.plan.classes.get(class_index as usize).map_or("", |class| &class.path);
            let name = self.plan.names.get(index);
            report.limits.push(LimitReport::new(name, class, entry.rate_bps, &counters, shadow));
        }
    }

    fn is_shadow(&self, profile: u16) -> bool {
        let flags = self.plane.profiles().get(usize::from(profile)).map_or(0, |profile| profile.flags);
        u32::from(flags) & wire::PST_PROFILE_SHADOW != 0
    }
}

fn is_malformed(reason: u8) -> bool {
    u32::from(reason) >= wire::PST_REASON_SHORT_ETHERNET
}

fn over_rate() -> u8 {
    u8::try_from(wire::PST_REASON_OVER_RATE).unwrap_or(0)
}

/// `gold` of `down/gold`: the name of a class's own limit.
fn last_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
