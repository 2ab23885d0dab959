// SPDX-License-Identifier: MIT OR Apache-2.0
//! A node, as the leader knows it.

use super::Settings;
use super::lines::LineId;
use penstock_api::v1;

/// How long it is told that another box asked for a name, ns.
const RIVAL_NS: u64 = 10_000_000_000;
/// Problems of a node that are kept, and characters of each.
const PROBLEMS_MAX: usize = 20;
const PROBLEM_CHARS_MAX: usize = 300;

/// A node's words, for a terminal: short, and free of control characters.
fn plain(text: &str) -> String {
    text.chars().take(PROBLEM_CHARS_MAX).map(|char| if char.is_control() { ' ' } else { char }).collect()
}

/// A stream that a node attends on. The server numbers them.
pub type Session = u64;

/// A node of the network, or one that attends and is in no network.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// On which it attends; none while it does not.
    pub(crate) session: Option<Session>,
    pub(crate) version: String,
    /// Which box it is that has this name.
    pub(crate) machine: String,
    /// When another box asked for it last.
    pub(crate) rival_ns: Option<u64>,
    pub(crate) problems: Vec<String>,
    /// Its limits by their numbers; none where one was returned.
    pub(crate) lines: Vec<Option<LineId>>,
    /// Those whose offers differ from what it was told.
    pub(crate) stale: Vec<LineId>,
    /// Members of aggregates with orders on their way.
    pub(crate) unsettled: Vec<LineId>,
    /// Lines whose traffic moves.
    pub(crate) restless: Vec<LineId>,
    /// Reports since it has the newest limits.
    pub(crate) reports_current: u32,
    /// Numbers of limits that it was told of and that are lent no more.
    pub(crate) returned: Vec<u32>,
    /// It has reported to this leader.
    pub(crate) is_seen: bool,
    /// It has acknowledged something of this leader. What it said before may have been long on its way, from when it had something else of the
    /// leader before.
    pub(crate) is_known: bool,
    /// When its last report came.
    pub(crate) heard_ns: u64,
    /// Of that report.
    pub(crate) sequence: u64,
    /// The latest moment at which what it has of this leader, or of one before, can be over.
    pub(crate) until_ns: u64,
    /// The latest moment at which what it has of a leader before this one can be over.
    pub(crate) learned_by_ns: u64,
    /// Epochs of the first and the last order with limits that were sent on this stream, and of the last one acknowledged; 0 for none.
    pub(crate) first_sent: u64,
    pub(crate) sent: u64,
    pub(crate) applied: u64,
    pub(crate) wants_all: bool,
    /// When all limits were sent last.
    pub(crate) all_sent_ns: Option<u64>,
    /// A report is to be answered.
    pub(crate) owes_answer: bool,
    /// As it was when it was last looked at.
    pub(crate) standing: Standing,
}

/// How much is known of what a node has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A leader before this one may have lent it anything, and the lease may run.
    #[default]
    Unknown,
    /// It reports, and has acknowledged nothing yet of this leader.
    Coming,
    /// It reports: it has what it acknowledged, or what was sent since.
    Heard,
    /// It was not heard of lately: it may have that, or its safe rates already.
    Silent,
    /// Its lease is over: it has its safe rates.
    Lapsed,
}

impl Node {
    pub(crate) fn new(name: &str, until_ns: u64) -> Self {
        Self { name: name.to_owned(), until_ns, learned_by_ns: until_ns, ..Self::default() }
    }

    /// How it stands at this moment.
    pub(crate) fn standing_at(&self, now_ns: u64, settings: &Settings) -> Standing {
        let is_heard = self.is_seen && now_ns <= self.heard_ns.saturating_add(settings.silent_ns);
        // What a leader before this one has lent is over by then.
        let is_old = !self.is_known && now_ns <= self.learned_by_ns;
        match (is_heard, is_old) {
            (true, true) => Standing::Coming,
            (true, false) => Standing::Heard,
            (false, _) if now_ns > self.until_ns => Standing::Lapsed,
            (false, true) => Standing::Unknown,
            (false, false) => Standing::Silent,
        }
    }

    /// A report came on its stream.
    pub(crate) fn heard(&mut self, report: &v1::Report, now_ns: u64) {
        (self.is_seen, self.heard_ns, self.owes_answer) = (true, now_ns, true);
        self.sequence = report.sequence.max(self.sequence);
        self.problems = report.problems.iter().take(PROBLEMS_MAX).map(|problem| plain(problem)).collect();
        let more = report.problems_total.saturating_sub(self.problems.len() as u64);
        if more > 0 {
            self.problems.push(format!("and {more} more"));
        }
        if self.rival_ns.is_some_and(|rival_ns| now_ns <= rival_ns.saturating_add(RIVAL_NS)) {
            self.problems.push("another machine asks for limits under this name, and gets none".to_owned());
        }
    }

    /// Whether another box has its limits, or may have them.
    pub(crate) fn is_of_another(&self, machine: &str, now_ns: u64) -> bool {
        let differ = !self.machine.is_empty() && !machine.is_empty() && self.machine != machine;
        differ && now_ns <= self.until_ns
    }

    /// An order goes out that answers its last report: its lease may run from then on. What a clock may be slow by is added.
    pub(crate) fn lend(&mut self, lease_ns: u64) {
        self.until_ns = self.until_ns.max(self.heard_ns.saturating_add(with_drift(lease_ns)));
    }

    /// Whether it is there to be told something.
    pub(crate) fn listens(&self) -> bool {
        matches!(self.standing, Standing::Heard | Standing::Coming)
    }

    /// What people are told.
    pub(crate) fn state(&self) -> v1::node_standing::State {
        use v1::node_standing::State;
        match self.standing {
            Standing::Unknown => State::Absent,
            Standing::Lapsed if !self.is_seen => State::Absent,
            Standing::Lapsed => State::Lapsed,
            Standing::Silent => State::Silent,
            Standing::Heard | Standing::Coming if self.lines.is_empty() => State::Current,
            Standing::Heard if self.applied == self.sent && !self.wants_all && self.stale.is_empty() => State::Current,
            Standing::Heard | Standing::Coming => State::Behind,
        }
    }
}

/// A time that another clock measures: that may be slower by 1/128, far more than quartz is.
pub(crate) fn with_drift(time_ns: u64) -> u64 {
    time_ns.saturating_add(time_ns / 128)
}
