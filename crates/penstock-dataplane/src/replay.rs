// SPDX-License-Identifier: MIT OR Apache-2.0
//! The replay engine: frames of a capture or a workload through a policy, in virtual time.

use crate::in_force::InForce;
use crate::report::{LinkReport, ReloadReport};
use crate::timeline::Timeline;
use crate::verdicts::VerdictWriter;
use crate::{Dataplane, DataplaneError};
use counted::Counted;
use held::Held;
use penstock_algo::plane::{self, Rng, Room};
use penstock_algo::wire;
use penstock_packet::{Batch, CaptureError, CaptureWriter, FrameSource, Progress, WriteError};
use penstock_policy::plan::Plan;
use series::Series;
use std::collections::VecDeque;
use std::io::Write;

mod control;
mod counted;
mod held;
mod reporting;
mod series;

/// Virtual time at the first packet: far from 0, so that no state lies before the beginning of time.
const START_NS: u64 = 1 << 53;

/// How often shares are tended.
const TEND_NS: u64 = 16_000_000;

/// Why a replay could not go on.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// No policy is in force, or the next one does not come into force.
    #[error(transparent)]
    Dataplane(#[from] DataplaneError),
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

    /// Called with the decisions on packets that were judged together, in their order.
    fn decided(&mut self, _decisions: &[wire::Decision]) {}
}

/// Where a replay writes besides its report.
pub struct Sinks<W: Write> {
    /// Frames that passed, marked ones marked.
    pub capture: Option<CaptureWriter>,
    /// One line a packet.
    pub verdicts: Option<VerdictWriter<W>>,
    /// Rates over time.
    pub timeline: Option<Timeline>,
    /// Whose rates: a class by its path, or a row of a limits file by its name, for each series of the timeline.
    pub series: Vec<String>,
}

impl<W: Write> Default for Sinks<W> {
    fn default() -> Self {
        Self { capture: None, verdicts: None, timeline: None, series: Vec::new() }
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

/// A data plane in virtual time: time is that of the packets that [`Replay::run`] judges, or that [`Replay::advance_to`] moves on.
#[derive(Debug)]
pub struct Replay {
    in_force: Option<InForce<Counted>>,
    /// Of the last policy.
    generation: u64,
    /// Policies that will take the place of the one in force, and when.
    reloads: VecDeque<(u64, Plan)>,
    /// The only link that packets are offered to, by its name.
    link: Option<String>,
    /// What packets that wait take, whatever policies come and go.
    room: Room,
    rng: Rng,
    seed: u64,
    clock: Clock,
    /// When shares are tended next, since the first packet.
    tend_ns: u64,
    totals: Totals,
}

/// Virtual time: counts from the first packet and never goes back.
#[derive(Debug, Default)]
struct Clock {
    first_ns: Option<u64>,
    latest_ns: u64,
    clamped: u64,
}

impl Clock {
    /// When a packet comes, if it is the next one: since the first one, and not before the latest.
    fn time_of(&self, time_ns: u64) -> u64 {
        self.first_ns.map_or(0, |first| time_ns.saturating_sub(first)).max(self.latest_ns)
    }

    /// Time of a packet since the first one.
    fn advance(&mut self, time_ns: u64) -> u64 {
        let latest = self.latest_ns;
        let first = *self.first_ns.get_or_insert_with(|| time_ns.saturating_sub(latest));
        match time_ns.checked_sub(first).filter(|since| *since >= self.latest_ns) {
            Some(since) => self.latest_ns = since,
            None => self.clamped += 1,
        }
        self.latest_ns
    }
}

/// What goes on whatever policies come and go.
#[derive(Debug, Default)]
struct Totals {
    packets: u64,
    bytes: u64,
    cut: u64,
    unmatched: u64,
    /// Those of the policy in force, in its order, then those that are gone.
    links: Vec<LinkReport>,
    reloads: Vec<ReloadReport>,
    gone: reporting::Gone,
}

/// Packets that are judged together, with memory that is used again.
#[derive(Default)]
struct Round {
    frames: Vec<wire::pst_frame>,
    packets: Vec<wire::Packet>,
    decisions: Vec<wire::Decision>,
    series: Series,
    held: Held,
}

impl Replay {
    /// Puts a plan into force. `link` restricts the replay to one link, also of the plans that follow.
    ///
    /// # Errors
    /// When there is no such link, or the tables cannot be built.
    pub fn new(plan: Plan, link: Option<&str>, seed: u64) -> Result<Self, DataplaneError> {
        let mut replay = Self { link: link.map(str::to_owned), ..Self::idle(seed) };
        replay.apply(plan)?;
        Ok(replay)
    }

    /// Without a policy: [`Dataplane::apply`] brings it.
    #[must_use]
    pub fn idle(seed: u64) -> Self {
        Self {
            in_force: None,
            generation: 0,
            reloads: VecDeque::new(),
            link: None,
            room: Room::new(0, START_NS),
            rng: Rng::new(seed),
            seed,
            clock: Clock::default(),
            tend_ns: TEND_NS,
            totals: Totals::default(),
        }
    }

    /// Has [`Replay::run`] put a plan into force at a time since the first packet, before the first packet that comes then or
    /// later. To be called in the order of time.
    ///
    /// # Errors
    /// When the plan does not have the link that the replay is restricted to.
    pub fn reload_at(&mut self, time_ns: u64, plan: Plan) -> Result<(), DataplaneError> {
        self.link_of(&plan)?;
        self.reloads.push_back((time_ns, plan));
        Ok(())
    }

    /// Moves time on to a time since the first packet, as when no packet comes for a while. It never goes back.
    pub fn advance_to(&mut self, time_ns: u64) {
        self.clock.latest_ns = self.clock.latest_ns.max(time_ns);
    }

    fn now_ns(&self) -> u64 {
        START_NS + self.clock.latest_ns
    }

    /// Judges every frame of `source`.
    pub fn run<W: Write>(
        &mut self,
        source: &mut dyn FrameSource,
        sinks: &mut Sinks<W>,
        watch: &mut dyn Watch,
    ) -> Outcome {
        let mut round = Round::default();
        let outcome = self.run_batches(source, sinks, watch, &mut round);
        let Some(writer) = &mut sinks.capture else { return outcome };
        // What waits still leaves after the last packet has come.
        match (round.held.release(u64::MAX, writer, source.interfaces()), outcome) {
            (Err(error), Outcome::Whole | Outcome::Interrupted) => Outcome::Failed(error.into()),
            (_, outcome) => outcome,
        }
    }

    fn run_batches<W: Write>(
        &mut self,
        source: &mut dyn FrameSource,
        sinks: &mut Sinks<W>,
        watch: &mut dyn Watch,
        round: &mut Round,
    ) -> Outcome {
        let mut batch = Batch::new();
        loop {
            match source.next_batch(&mut batch) {
                Ok(true) => {}
                Ok(false) => return Outcome::Whole,
                Err(error) => return Outcome::Failed(ReplayError::Input(error)),
            }
            let mut first = 0;
            while first < batch.len() {
                let judged = self.judge(&batch, first, round).map_err(ReplayError::from);
                let judged = judged.inspect(|()| watch.decided(&round.decisions));
                let delivered = judged.and_then(|()| self.deliver(&mut batch, first, round, source, sinks));
                if let Err(error) = delivered {
                    return Outcome::Failed(error);
                }
                first += round.frames.len();
            }
            if !watch.goes_on(self.totals.packets, source.progress()) {
                return Outcome::Interrupted;
            }
        }
    }

    /// Puts policies into force whose time has come when a packet comes at `time_ns`.
    fn reload_before(&mut self, time_ns: u64) -> Result<(), DataplaneError> {
        let now_ns = self.clock.time_of(time_ns);
        while self.reloads.front().is_some_and(|(due_ns, _)| *due_ns <= now_ns) {
            if let Some((due_ns, plan)) = self.reloads.pop_front() {
                self.advance_to(due_ns);
                self.apply(plan)?;
            }
        }
        Ok(())
    }

    /// Tends shares if it is time when a packet comes at `time_ns`. Returns when it is the next time.
    fn tend_before(&mut self, time_ns: u64) -> u64 {
        if self.plan().is_none_or(|plan| plan.places.is_empty()) {
            return u64::MAX;
        }
        let now_ns = self.clock.time_of(time_ns);
        if now_ns >= self.tend_ns {
            // Once, however long nobody came: what is to be forgotten is.
            self.tend_ns += (now_ns - self.tend_ns) / TEND_NS * TEND_NS;
            self.advance_to(self.tend_ns);
            self.tend();
            self.tend_ns += TEND_NS;
        }
        self.tend_ns
    }

    /// Judges the frames of a batch from `first` on, as far as the policy is the same.
    fn judge(&mut self, batch: &Batch, first: usize, round: &mut Round) -> Result<(), DataplaneError> {
        self.reload_before(batch.frame(first).time_ns)?;
        let tend_ns = self.tend_before(batch.frame(first).time_ns);
        let in_force = self.in_force.as_mut().ok_or(DataplaneError::Idle)?;
        let until_ns = self.reloads.front().map_or(u64::MAX, |(due_ns, _)| *due_ns).min(tend_ns);
        round.frames.clear();
        for frame in (first..batch.len()).map(|index| batch.frame(index)) {
            if self.clock.time_of(frame.time_ns) >= until_ns {
                break;
            }
            let now_ns = START_NS + self.clock.advance(frame.time_ns);
            round.frames.push(plane::frame(frame.data, frame.wire_bytes, frame.link.wire(), now_ns));
        }
        let (plane, host) = (&mut in_force.plane, &mut in_force.host);
        // SAFETY: the frames point into `batch`, which is borrowed for this call.
        unsafe {
            plane.run(
                &round.frames,
                &mut self.rng,
                &mut host.tally,
                &mut self.room,
                &mut round.packets,
                &mut round.decisions,
            );
        }
        let totals = &mut self.totals;
        totals.packets += round.frames.len() as u64;
        for ((packet, decision), frame) in round.packets.iter().zip(&round.decisions).zip(&round.frames) {
            let bytes = u64::from(decision.length);
            let passes = u32::from(decision.verdict) != wire::PST_VERDICT_DROP || decision.shadow != 0;
            totals.bytes += bytes;
            totals.cut += u64::from(u32::from(packet.flags) & wire::PST_PACKET_IS_CUT != 0);
            totals.unmatched += u64::from(decision.class_index == wire::PST_NONE && !wire::is_malformed(packet.reason));
            let link = &mut totals.links[usize::from(decision.link)];
            link.offered_packets += 1;
            link.offered_bytes += bytes;
            link.passed_packets += u64::from(passes);
            link.passed_bytes += if passes { bytes } else { 0 };
            if host.is_told(frame.now_ns, decision) {
                host.tell(frame.now_ns, packet, decision);
            }
        }
        Ok(())
    }

    fn deliver<W: Write>(
        &self,
        batch: &mut Batch,
        first: usize,
        round: &mut Round,
        source: &dyn FrameSource,
        sinks: &mut Sinks<W>,
    ) -> Result<(), ReplayError> {
        let Some(in_force) = self.in_force.as_ref().filter(|_| !sinks.is_empty()) else { return Ok(()) };
        if sinks.timeline.is_some() {
            round.series.follow(self.generation, &in_force.plan, &sinks.series);
        }
        let first_packet = self.totals.packets - round.frames.len() as u64;
        for (index, decision) in round.decisions.iter().enumerate() {
            let (time_ns, departure_ns) = (round.frames[index].now_ns - START_NS, decision.departure_ns - START_NS);
            let row = in_force.plane.owner(decision.slot as usize);
            if let Some(writer) = &mut sinks.verdicts {
                let (class, limit) = names(&in_force.plan, row, decision);
                writer.write(first_packet + index as u64, time_ns, departure_ns, class, limit, decision)?;
            }
            if let Some(timeline) = &mut sinks.timeline {
                for series in round.series.of(decision.class_index, row) {
                    timeline.add(series, time_ns, departure_ns, decision);
                }
            }
            if let Some(writer) = &mut sinks.capture {
                round.held.release(time_ns, writer, source.interfaces())?;
                let verdict = if decision.shadow == 0 { decision.verdict.into() } else { wire::PST_VERDICT_PASS };
                if verdict == wire::PST_VERDICT_DROP {
                    continue;
                }
                if verdict != wire::PST_VERDICT_PASS {
                    plane::mark(batch.data_mut(first + index), &round.packets[index], decision);
                }
                let frame = batch.frame(first + index);
                if verdict == wire::PST_VERDICT_HOLD {
                    round.held.push(&frame, departure_ns, departure_ns - time_ns);
                } else {
                    writer.write(&frame, frame.time_ns, source.interfaces())?;
                }
            }
        }
        Ok(())
    }
}

/// The class and the limit of a packet.
fn names<'a>(plan: &'a Plan, row: Option<usize>, decision: &wire::Decision) -> (&'a str, &'a str) {
    let class = plan.classes.get(decision.class_index as usize).map_or("", |class| &class.path);
    let limit = match row {
        Some(row) => plan.names.get(row),
        None if decision.limit_index != wire::PST_NONE => last_name(class),
        None => "",
    };
    (class, limit)
}

/// `gold` of `down/gold`: the name of a class's own limit.
fn last_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
