// SPDX-License-Identifier: MIT OR Apache-2.0
//! The terms of a limit: everything but its rate. A class and a row of a limits file write them under the same names.
//!
//! What the words become (`wire.h`: `pst_profile`):
//!
//! | meter     | burst        | excess        | also          | green | yellow                 | red  |
//! |-----------|--------------|---------------|---------------|-------|------------------------|------|
//! | `window`  | green depth  | yellow depth  |               | pass  | by `on_excess`         | drop |
//! | `rfc2697` | CBS, bytes   | EBS, bytes    |               | pass  | `yellow`, default pass | `red`, default drop |
//! | `rfc2698` | CBS, bytes   | PBS, bytes    | `peak`        | pass  | `yellow`, default pass | `red`, default drop |
//! | `rfc4115` | CBS, bytes   | EBS, bytes    | `excess_rate` | pass  | `yellow`, default pass | `red`, default drop |
//!
//! `on_excess: drop` passes yellow; `on_excess: mark` marks it: CE for packets that can carry it, early drop for the rest.
//! `on_excess: shape` passes yellow and holds red until its turn: at most for `horizon`, at most `backlog` bytes of a limit, and with CE
//! where a packet waits longer than `ce_threshold`.
//! `early_drop` is the probability at the end of yellow: 10 % where yellow marks, none where it passes, unless given.

use crate::diagnostics::Problem;
use crate::units::{Depth, format_rate, format_size, format_time};
use penstock_algo::{rate, wire};

/// Default green depth of the window meter.
pub const BURST_DEFAULT_NS: u64 = 17_500_000;
/// Default yellow depth of the window meter.
pub const EXCESS_DEFAULT_NS: u64 = 25_000_000;
/// Default early-drop probability where yellow marks: 10 %.
pub const EARLY_DROP_DEFAULT_Q32: u32 = u32::MAX / 10;
/// Default of the longest wait.
pub const HORIZON_DEFAULT_NS: u64 = 200_000_000;
/// Longest wait (`wheel.h`: `PST_WHEEL_AHEAD_NSEC` is 68.7 s).
pub const HORIZON_MAX_NS: u64 = 60_000_000_000;
/// Longest CE threshold: four bytes of nanoseconds.
pub const CE_THRESHOLD_MAX_NS: u64 = 4_000_000_000;
/// Largest depth in bytes (`fixed.h`: `PST_COST_BYTES_MAX`).
pub const DEPTH_BYTES_MAX: u64 = (1 << 30) - 1;

/// How a limit measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Meter {
    /// The one-number limiter.
    Window,
    /// Single rate, three colours.
    Rfc2697,
    /// Two rates, three colours.
    Rfc2698,
    /// Two rates that do not share tokens.
    Rfc4115,
}

/// Meters under their names.
pub const METERS: [(&str, Meter); 4] =
    [("window", Meter::Window), ("rfc2697", Meter::Rfc2697), ("rfc2698", Meter::Rfc2698), ("rfc4115", Meter::Rfc4115)];

/// What happens to a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Pass.
    Pass,
    /// Drop.
    Drop,
    /// CE for packets that can carry it, early drop for the rest.
    Mark,
    /// Pass with this DSCP.
    Dscp(u8),
}

/// What happens above the burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnExcess {
    /// Police.
    Drop,
    /// Mark, then police.
    Mark,
    /// Hold back until the packet's turn.
    Shape,
}

/// Words of `on_excess`.
pub const ON_EXCESS: [(&str, OnExcess); 3] =
    [("drop", OnExcess::Drop), ("mark", OnExcess::Mark), ("shape", OnExcess::Shape)];

/// Terms as they were written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Terms {
    /// `meter`; window if not given.
    pub meter: Option<Meter>,
    /// `burst`.
    pub burst: Option<Depth>,
    /// `excess`.
    pub excess: Option<Depth>,
    /// `on_excess`.
    pub on_excess: Option<OnExcess>,
    /// `peak`, bit/s.
    pub peak_bps: Option<u64>,
    /// `excess_rate`, bit/s.
    pub excess_rate_bps: Option<u64>,
    /// `color_aware`.
    pub color_aware: Option<bool>,
    /// `yellow`.
    pub yellow: Option<Action>,
    /// `red`.
    pub red: Option<Action>,
    /// `early_drop`, 1/2^32.
    pub early_drop_q32: Option<u32>,
    /// `horizon`, ns.
    pub horizon_ns: Option<u64>,
    /// `backlog`, bytes.
    pub backlog_bytes: Option<u64>,
    /// `ce_threshold`, ns.
    pub ce_threshold_ns: Option<u64>,
    /// `mode: shadow`.
    pub shadow: bool,
    /// `weight` of a user's row; 0: it is none.
    pub weight: u16,
}

/// A key of the terms, and what is wrong with it.
pub type TermProblem = (&'static str, Problem);

impl Terms {
    /// These terms with those of a row, or of a class below, laid over them. A row with another meter takes nothing that depends on the meter, and one that does
    /// not shape nothing that is about shaping.
    #[must_use]
    pub fn with_row(&self, row: &Terms) -> Terms {
        let mut base = *self;
        if row.meter.is_some() && row.meter != Some(self.meter()) {
            base = Terms { on_excess: self.on_excess, shadow: self.shadow, ..Terms::default() };
        }
        if row.on_excess.is_some() {
            (base.yellow, base.red) = (None, None);
        }
        if row.on_excess.is_some_and(|word| word != OnExcess::Shape) {
            (base.horizon_ns, base.backlog_bytes, base.ce_threshold_ns) = (None, None, None);
        }
        if row.on_excess == Some(OnExcess::Shape) {
            base.early_drop_q32 = None;
        }
        Terms {
            meter: row.meter.or(base.meter),
            burst: row.burst.or(base.burst),
            excess: row.excess.or(base.excess),
            on_excess: row.on_excess.or(base.on_excess),
            horizon_ns: row.horizon_ns.or(base.horizon_ns),
            backlog_bytes: row.backlog_bytes.or(base.backlog_bytes),
            ce_threshold_ns: row.ce_threshold_ns.or(base.ce_threshold_ns),
            peak_bps: row.peak_bps.or(base.peak_bps),
            excess_rate_bps: row.excess_rate_bps.or(base.excess_rate_bps),
            early_drop_q32: row.early_drop_q32.or(base.early_drop_q32),
            weight: row.weight,
            ..base
        }
    }

    /// The meter that applies.
    #[must_use]
    pub fn meter(&self) -> Meter {
        self.meter.unwrap_or(Meter::Window)
    }

    /// The profile that says the same, without class, packet size and flags of its place.
    ///
    /// # Errors
    /// All terms that are missing, do not belong to the meter, or are out of range.
    pub fn profile(&self) -> Result<wire::Profile, Vec<TermProblem>> {
        let mut problems = Vec::new();
        self.check_belonging(&mut problems);
        self.check_shaping(&mut problems);
        let (burst, excess) = self.depths(&mut problems);
        let (yellow, red) = self.actions();
        let early_drop_q32 = match (yellow, self.early_drop_q32) {
            (Action::Mark, given) => given.unwrap_or(EARLY_DROP_DEFAULT_Q32),
            (Action::Pass, Some(given)) => given,
            (_, Some(_)) => {
                let message = "`early_drop` is for yellow packets that pass or are marked";
                problems.push(("early_drop", Problem::new(message, "remove it, or use `yellow: pass`")));
                0
            }
            (_, None) => 0,
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        let second_bps = self.peak_bps.or(self.excess_rate_bps);
        let (yellow_action, yellow_dscp) = wire_action(yellow);
        let (red_action, red_dscp) = wire_action(red);
        let early = yellow == Action::Pass && early_drop_q32 > 0;
        let shapes = self.on_excess == Some(OnExcess::Shape);
        let when_shaping = |given: Option<u64>, otherwise: u64| if shapes { given.unwrap_or(otherwise) } else { 0 };
        Ok(wire::Profile {
            burst_ticks: depth_ticks(burst),
            excess_ticks: depth_ticks(excess),
            burst_bytes: depth_bytes(burst),
            excess_bytes: depth_bytes(excess),
            second_rate: second_bps.map_or(0, rate_code),
            red_max_q32: early_drop_q32,
            meter: wire_meter(self.meter()),
            flags: flag(self.color_aware == Some(true), wire::PST_PROFILE_COLOR_AWARE)
                | flag(self.shadow, wire::PST_PROFILE_SHADOW),
            yellow_action: if early { narrow(wire::PST_ACTION_RED) } else { yellow_action },
            red_action: if shapes { narrow(wire::PST_ACTION_HOLD) } else { red_action },
            yellow_dscp,
            red_dscp,
            weight: self.weight,
            hold_ticks: when_shaping(self.horizon_ns, HORIZON_DEFAULT_NS) * rate::TICKS_PER_NSEC,
            hold_bytes: u32::try_from(when_shaping(self.backlog_bytes, 0)).unwrap_or(u32::MAX),
            ce_ns: u32::try_from(when_shaping(self.ce_threshold_ns, 0)).unwrap_or(u32::MAX),
            ..wire::Profile::default()
        })
    }

    /// What is wrong with these terms at one rate.
    #[must_use]
    pub fn problem_at(&self, rate_bps: u64) -> Option<TermProblem> {
        if let Some(peak_bps) = self.peak_bps
            && peak_bps < rate_bps
        {
            let message = format!("the peak {} is below the rate {}", format_rate(peak_bps), format_rate(rate_bps));
            return Some(("peak", Problem::new(message, "a peak is at least the rate (RFC 2698)")));
        }
        for (key, depth) in [("burst", self.burst), ("excess", self.excess)] {
            let Some(Depth::Bytes(bytes)) = depth else { continue };
            let bytes = u32::try_from(bytes.min(DEPTH_BYTES_MAX)).unwrap_or(u32::MAX);
            let window_ns = rate::cost_ticks(rate_code(rate_bps), bytes) / rate::TICKS_PER_NSEC;
            if window_ns > rate::WINDOW_MAX_NSEC {
                let seconds = window_ns / 1_000_000_000;
                let message = format!("`{key}` of {bytes}B takes {seconds}s at {}", format_rate(rate_bps));
                return Some((key, Problem::new(message, format!("at most {}", longest_window()))));
            }
        }
        None
    }

    /// Terms that only some meters know.
    fn check_belonging(&self, problems: &mut Vec<TermProblem>) {
        let meter = self.meter();
        let mut belongs = |key, given: bool, right: bool, help: &str| {
            if given && !right {
                let message = format!("`{key}` does not go with `meter: {}`", meter_name(meter));
                problems.push((key, Problem::new(message, help)));
            }
        };
        let window = meter == Meter::Window;
        belongs("peak", self.peak_bps.is_some(), meter == Meter::Rfc2698, "only `meter: rfc2698` has a peak rate");
        let right = meter == Meter::Rfc4115;
        belongs("excess_rate", self.excess_rate_bps.is_some(), right, "only `meter: rfc4115` has an excess rate");
        let help = "the window meter is colour-blind: use rfc2697, rfc2698 or rfc4115";
        belongs("color_aware", self.color_aware == Some(true), !window, help);
        let help = "use `on_excess: drop`, `mark` or `shape`, or an RFC meter";
        belongs("yellow", self.yellow.is_some(), !window, help);
        belongs("red", self.red.is_some(), !window, help);
        if meter == Meter::Rfc2698 && self.peak_bps.is_none() {
            problems.push(("peak", Problem::new("`meter: rfc2698` needs `peak`", "such as `peak: 200Mbit/s`")));
        }
        if meter == Meter::Rfc4115 && self.excess_rate_bps.is_none() {
            let help = "such as `excess_rate: 50Mbit/s`";
            problems.push(("excess_rate", Problem::new("`meter: rfc4115` needs `excess_rate`", help)));
        }
        for (key, given) in [("yellow", self.yellow), ("red", self.red)] {
            if given.is_some() && self.on_excess.is_some() && !window {
                let message = format!("`on_excess` and `{key}` both say what happens to packets above the burst");
                problems.push((key, Problem::new(message, "keep one of them")));
            }
        }
    }

    /// Terms of holding packets.
    fn check_shaping(&self, problems: &mut Vec<TermProblem>) {
        let shapes = self.on_excess == Some(OnExcess::Shape);
        if shapes && self.meter() != Meter::Window {
            let message = format!("`on_excess: shape` does not go with `meter: {}`", meter_name(self.meter()));
            problems.push(("on_excess", Problem::new(message, "only the window meter knows when a packet's turn is")));
        }
        if shapes && self.early_drop_q32.is_some() {
            let message = "`early_drop` does not go with `on_excess: shape`";
            problems.push(("early_drop", Problem::new(message, "`ce_threshold` marks what waits long")));
        }
        let bounds = [
            ("horizon", self.horizon_ns, HORIZON_MAX_NS, format_time as fn(u64) -> String),
            ("backlog", self.backlog_bytes, DEPTH_BYTES_MAX, format_size),
            ("ce_threshold", self.ce_threshold_ns, CE_THRESHOLD_MAX_NS, format_time),
        ];
        for (key, given, most, format) in bounds {
            let Some(given) = given else { continue };
            if !shapes {
                let message = format!("`{key}` is about packets that wait, and these do not");
                problems.push((key, Problem::new(message, "add `on_excess: shape`, or remove it")));
            } else if given == 0 || given > most {
                let message = format!("`{key}` of {} is out of range", format(given));
                problems.push((key, Problem::new(message, format!("more than 0, at most {}", format(most)))));
            }
        }
    }

    fn depths(&self, problems: &mut Vec<TermProblem>) -> (Depth, Depth) {
        if self.meter() == Meter::Window {
            let burst = self.burst.unwrap_or(Depth::Time(BURST_DEFAULT_NS));
            let excess = self.excess.unwrap_or(Depth::Time(EXCESS_DEFAULT_NS));
            check_depth("burst", burst, problems);
            check_depth("excess", excess, problems);
            return (burst, excess);
        }
        let name = meter_name(self.meter());
        let mut bytes = |key, depth| match depth {
            Some(Depth::Bytes(0)) if self.meter() == Meter::Rfc2698 => {
                let problem =
                    Problem::new(format!("`{key}` is 0 bytes"), "RFC 2698 needs at least one packet, as `1514B`");
                problems.push((key, problem));
                Depth::Bytes(0)
            }
            Some(depth @ Depth::Bytes(_)) => {
                check_depth(key, depth, problems);
                depth
            }
            Some(Depth::Time(_)) => {
                let message = format!("`{key}` is a time; `meter: {name}` counts bytes");
                problems.push((key, Problem::new(message, format!("such as `{key}: 64KB`"))));
                Depth::Bytes(0)
            }
            None => {
                let message = format!("`meter: {name}` needs `{key}` in bytes");
                problems.push((key, Problem::new(message, format!("such as `{key}: 64KB`"))));
                Depth::Bytes(0)
            }
        };
        let (burst, excess) = (bytes("burst", self.burst), bytes("excess", self.excess));
        if self.burst == Some(Depth::Bytes(0)) && self.excess == Some(Depth::Bytes(0)) {
            let message = "`burst` and `excess` are both 0 bytes: no packet could pass";
            problems.push(("burst", Problem::new(message, "such as `burst: 64KB`")));
        }
        (burst, excess)
    }

    /// (yellow, red)
    fn actions(&self) -> (Action, Action) {
        let yellow = match self.on_excess {
            Some(OnExcess::Mark) => Action::Mark,
            _ => Action::Pass,
        };
        (self.yellow.unwrap_or(yellow), self.red.unwrap_or(Action::Drop))
    }
}

/// What is wrong with a rate for a limit of this profile: the same that [`Terms::problem_at`] says of terms.
#[must_use]
pub fn problem_of_rate(profile: &wire::Profile, rate_bps: u64) -> Option<Problem> {
    let code = rate_code(rate_bps);
    let sample_bytes = 1 << 20;
    let is_below = rate::cost_ticks(profile.second_rate, sample_bytes) > rate::cost_ticks(code, sample_bytes);
    if u32::from(profile.meter) == wire::PST_METER_RFC2698 && is_below {
        let message = format!("the rate {} is above the limit's peak", format_rate(rate_bps));
        return Some(Problem::new(message, "a peak is at least the rate (RFC 2698)"));
    }
    let is_too_long = |bytes| rate::cost_ticks(code, bytes) / rate::TICKS_PER_NSEC > rate::WINDOW_MAX_NSEC;
    (is_too_long(profile.burst_bytes) || is_too_long(profile.excess_bytes)).then(|| {
        let message = format!("at {} the limit's burst or excess would take too long", format_rate(rate_bps));
        Problem::new(message, format!("at most {}", longest_window()))
    })
}

/// The code of a rate in bit/s; to the nearest byte/s.
#[must_use]
pub fn rate_code(rate_bps: u64) -> u32 {
    rate::encode((rate_bps + 4) / 8)
}

fn meter_name(meter: Meter) -> &'static str {
    METERS.iter().find(|&&(_, known)| known == meter).map_or("", |&(name, _)| name)
}

pub(crate) fn wire_meter(meter: Meter) -> u8 {
    narrow(match meter {
        Meter::Window => wire::PST_METER_WINDOW,
        Meter::Rfc2697 => wire::PST_METER_RFC2697,
        Meter::Rfc2698 => wire::PST_METER_RFC2698,
        Meter::Rfc4115 => wire::PST_METER_RFC4115,
    })
}

fn wire_action(action: Action) -> (u8, u8) {
    match action {
        Action::Pass => (narrow(wire::PST_ACTION_PASS), 0),
        Action::Drop => (narrow(wire::PST_ACTION_DROP), 0),
        Action::Mark => (narrow(wire::PST_ACTION_MARK), 0),
        Action::Dscp(dscp) => (narrow(wire::PST_ACTION_DSCP), dscp),
    }
}

/// An enumerator of `wire.h` in the byte that holds it.
pub(crate) fn narrow(enumerator: u32) -> u8 {
    u8::try_from(enumerator).unwrap_or(u8::MAX)
}

fn flag(set: bool, bit: u32) -> u8 {
    if set { narrow(bit) } else { 0 }
}

fn depth_ticks(depth: Depth) -> u64 {
    match depth {
        Depth::Time(ns) => ns * rate::TICKS_PER_NSEC,
        Depth::Bytes(_) => 0,
    }
}

fn depth_bytes(depth: Depth) -> u32 {
    match depth {
        Depth::Time(_) => 0,
        Depth::Bytes(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
    }
}

fn check_depth(key: &'static str, depth: Depth, problems: &mut Vec<TermProblem>) {
    let most = match depth {
        Depth::Time(ns) if ns > rate::WINDOW_MAX_NSEC => longest_window(),
        Depth::Bytes(bytes) if bytes > DEPTH_BYTES_MAX => "1GiB".to_owned(),
        _ => return,
    };
    problems.push((key, Problem::new(format!("`{key}` of {depth} is too long"), format!("at most {most}"))));
}

fn longest_window() -> String {
    format_time(rate::WINDOW_MAX_NSEC / 1_000_000_000 * 1_000_000_000)
}
