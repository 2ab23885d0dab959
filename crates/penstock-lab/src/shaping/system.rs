// SPDX-License-Identifier: MIT OR Apache-2.0
//! What limits: each system judges packets as they come, and puts them on the link at once, later, or never. All decisions are `algo/`'s.

use super::traffic::whole;
use crate::stats::real;
use penstock_algo::circulation::{Circulation, Packet, Params};
use penstock_algo::limiter::{self, Limiter};
use penstock_algo::logical_meter::{Congestion, LogicalMeter, Params as MeterParams};
use penstock_algo::switchrl::{MeterRl, SwitchRl, Windows};
use penstock_algo::wheel::Wheel;
use penstock_algo::{rate, wire};
use serde::Deserialize;
use std::collections::VecDeque;

/// What a wheel reaches.
const WAIT_MAX_TICKS: u64 = 68_000_000_000 * 1024;

/// The systems that can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The limiter that shapes, and the timing wheel.
    Penstock,
    /// `DragonKing`'s circulation and its control loops.
    Dragonking,
    /// The same; what finds no room has been charged, as the order of the tables has it.
    DragonkingCharged,
    /// Without Algorithm 1.
    NoRedistribution,
    /// Without equation 6.
    NoScheduler,
    /// Nimble's meter.
    Nimble,
    /// Tokens by packets that share the link.
    Regmeter,
    /// `SwitchRL`'s Algorithm 4, which stands for the token bucket that counts time.
    Swrl,
}

impl Kind {
    pub fn circulates(self) -> bool {
        matches!(self, Self::Dragonking | Self::DragonkingCharged | Self::NoRedistribution | Self::NoScheduler)
    }
}

/// What all systems are given.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Limits of one rate.
    pub limiters: usize,
    /// Bytes a second of each.
    pub rate: u64,
    /// Bytes a second of the link.
    pub link: u64,
    /// Length of all packets.
    pub bytes: u32,
    /// The queue before the link.
    pub port_bytes: u32,
    /// What else may wait.
    pub back_bytes: u32,
    /// CBS.
    pub committed_bytes: u32,
    /// PBS of Nimble and `SwRL`.
    pub peak_bytes: u32,
    /// How often `RegMeter` refills a bucket.
    pub refill_ns: u64,
    /// Bytes a second of the packets that do it.
    pub tokens: f64,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// There was no budget, or no room.
    Dropped,
    /// It leaves the link at this time.
    Leaves(u64),
    /// [`System::run`] will tell.
    Waits,
}

/// A packet that waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The caller's.
    pub tag: u32,
    /// What came of it.
    pub fate: Fate,
}

/// The link, and the queue before it; token packets go first.
struct Link {
    byte_ns: f64,
    queue_ns: f64,
    busy_ns: f64,
    token_share: f64,
    served_ns: f64,
}

impl Link {
    fn send(&mut self, now_ns: u64, bytes: u32) -> Fate {
        let now = real(now_ns);
        // Token packets that came since the last look are on the link before this one.
        self.busy_ns = self.busy_ns.max(self.served_ns) + self.token_share * (now - self.served_ns);
        self.served_ns = now;
        self.busy_ns = self.busy_ns.max(now);
        if self.busy_ns - now > self.queue_ns {
            return Fate::Dropped;
        }
        self.busy_ns += f64::from(bytes) * self.byte_ns;
        Fate::Leaves(whole(self.busy_ns))
    }
}

enum Judge {
    Wheel(Box<Waiting>),
    Circulation(Box<Circulation>),
    Nimble(Box<LogicalMeter>),
    Regmeter(Box<MeterRl>),
    Swrl(Box<SwitchRl>),
}

/// Penstock's packets that wait, and when to look at them next.
struct Waiting {
    wheel: Wheel,
    /// By item: the caller's tag, and the limit.
    tags: Vec<(u32, usize)>,
    /// By limit: how many wait. Nobody overtakes them (hold.h, I3).
    of_limit: Vec<u32>,
    free: Vec<u32>,
    next_ns: u64,
}

/// A system with the states of all of its limits.
pub struct System {
    terms: Terms,
    charges_drops: bool,
    limiter: Limiter,
    cost_ticks: u64,
    /// Of each limit: what its algorithm keeps, one word or two.
    states: Vec<u64>,
    times: Vec<u64>,
    judge: Judge,
    link: Link,
    ready: VecDeque<Done>,
}

impl System {
    /// All limits idle at time 0. `tune` changes what the control loops are told.
    pub fn new(kind: Kind, terms: &Terms, tune: impl Fn(&mut Params)) -> Self {
        let profile = wire::Profile {
            mtu_bytes: terms.bytes,
            red_action: action(wire::PST_ACTION_HOLD),
            ..wire::Profile::default()
        };
        let code = rate::encode(terms.rate);
        let judge = judge(kind, terms, tune);
        let (state, time) = match &judge {
            Judge::Wheel(_) | Judge::Circulation(_) => (limiter::idle(0), None),
            Judge::Nimble(_) => (0, Some(0)),
            Judge::Regmeter(meter) => (meter.tokens_nanobytes, Some(0)),
            Judge::Swrl(meter) => (meter.accu_ticks, None),
        };
        let tokens = if kind == Kind::Regmeter { terms.tokens } else { 0.0 };
        let byte_ns = 1e9 / real(terms.link);
        let link = Link {
            byte_ns,
            queue_ns: f64::from(terms.port_bytes) * byte_ns,
            busy_ns: 0.0,
            token_share: tokens / real(terms.link),
            served_ns: 0.0,
        };
        Self {
            terms: *terms,
            charges_drops: kind == Kind::DragonkingCharged,
            limiter: Limiter::new(&profile, code, 0),
            cost_ticks: rate::cost_ticks(code, terms.bytes),
            states: vec![state; terms.limiters],
            times: time.map(|time| vec![time; terms.limiters]).unwrap_or_default(),
            judge,
            link,
            ready: VecDeque::new(),
        }
    }

    /// Whether packets wait in pipelines, and bytes that passed each so far.
    pub fn passed_bytes(&self) -> Option<[u64; 4]> {
        match &self.judge {
            Judge::Circulation(circulation) => Some(circulation.passed_bytes()),
            _ => None,
        }
    }

    /// Share of the link that token packets take.
    pub fn token_share(&self) -> f64 {
        self.link.token_share
    }

    /// A packet of a limit comes; everything until then was run.
    pub fn offer(&mut self, now_ns: u64, limit: usize, tag: u32) -> Fate {
        let (bytes, state) = (self.terms.bytes, &mut self.states[limit]);
        let passes = match &mut self.judge {
            Judge::Wheel(_) | Judge::Circulation(_) => return self.shape(now_ns, limit, tag),
            Judge::Nimble(meter) => {
                (meter.queue_nanobytes, meter.last_ns) = (*state, self.times[limit]);
                let passes = meter.take(now_ns, bytes, false, 0).verdict == wire::PST_VERDICT_PASS;
                (*state, self.times[limit]) = (meter.queue_nanobytes, meter.last_ns);
                passes
            }
            Judge::Regmeter(meter) => {
                meter.tokens_nanobytes = *state;
                refill(meter, &self.terms, limit, &mut self.times[limit], now_ns);
                let passes = meter.take(bytes) == wire::PST_COLOR_GREEN;
                *state = meter.tokens_nanobytes;
                passes
            }
            Judge::Swrl(meter) => {
                meter.accu_ticks = *state;
                let passes = meter.take(now_ns, bytes, 0).verdict == wire::PST_VERDICT_PASS;
                *state = meter.accu_ticks;
                passes
            }
        };
        if passes { self.link.send(now_ns, bytes) } else { Fate::Dropped }
    }

    /// The limiter says when a packet's turn is, and the buffer whether it may wait for it.
    fn shape(&mut self, now_ns: u64, limit: usize, tag: u32) -> Fate {
        let before = self.states[limit];
        self.limiter.vft_ticks = before;
        let wait_ticks = self.limiter.take(now_ns, self.terms.bytes).wait_ticks;
        let vst_ns = now_ns + wait_ticks.div_ceil(1024);
        self.states[limit] = self.limiter.vft_ticks;
        let fate = match &mut self.judge {
            _ if wait_ticks > WAIT_MAX_TICKS => Fate::Dropped,
            Judge::Wheel(waiting) if wait_ticks == 0 && waiting.of_limit[limit] == 0 => {
                self.link.send(now_ns, self.terms.bytes)
            }
            Judge::Wheel(waiting) => waiting.put(vst_ns, tag, limit),
            Judge::Circulation(circulation) => {
                let vft_ns = now_ns + (wait_ticks + self.cost_ticks).div_ceil(1024);
                let packet = Packet { vst_ns, vft_ns, bytes: self.terms.bytes, tag };
                if circulation.put(now_ns, &packet) { Fate::Waits } else { Fate::Dropped }
            }
            _ => Fate::Dropped,
        };
        if fate == Fate::Dropped && !self.charges_drops {
            self.states[limit] = before;
        }
        fate
    }

    /// What waited and is done by `until_ns`, one at a time.
    pub fn run(&mut self, until_ns: u64) -> Option<Done> {
        match &mut self.judge {
            Judge::Circulation(circulation) => {
                let sent = circulation.run(until_ns)?;
                Some(Done { tag: sent.tag, fate: Fate::Leaves(sent.sent_ns) })
            }
            Judge::Wheel(waiting) => {
                while self.ready.is_empty() && waiting.next_ns <= until_ns {
                    let now_ns = waiting.next_ns;
                    while let Some((item, _)) = waiting.wheel.take(now_ns) {
                        let (tag, limit) = waiting.tags[item as usize];
                        waiting.of_limit[limit] -= 1;
                        let fate = self.link.send(now_ns, self.terms.bytes);
                        waiting.free.push(item);
                        self.ready.push_back(Done { tag, fate });
                    }
                    waiting.next_ns = waiting.wheel.next_ns().map_or(u64::MAX, |next| next.max(now_ns + 1));
                }
                self.ready.pop_front()
            }
            _ => None,
        }
    }
}

impl Waiting {
    fn put(&mut self, due_ns: u64, tag: u32, limit: usize) -> Fate {
        let Some(item) = self.free.pop() else { return Fate::Dropped };
        if !self.wheel.put(item, due_ns) {
            self.free.push(item);
            return Fate::Dropped;
        }
        self.tags[item as usize] = (tag, limit);
        self.of_limit[limit] += 1;
        self.next_ns = self.wheel.next_ns().map_or(self.next_ns, |next| next.min(self.next_ns));
        Fate::Waits
    }
}

fn judge(kind: Kind, terms: &Terms, tune: impl Fn(&mut Params)) -> Judge {
    if kind.circulates() {
        let mut params = Params::published(terms.link, terms.port_bytes, terms.back_bytes / 3);
        params.redistributes = kind != Kind::NoRedistribution;
        params.schedules = kind != Kind::NoScheduler;
        tune(&mut params);
        let places = (terms.port_bytes + terms.back_bytes) / terms.bytes;
        return Judge::Circulation(Box::new(Circulation::new(&params, places, 0)));
    }
    let (mtu_bytes, drop_max_q32) = (terms.bytes, 0);
    let window_ns = |bytes: u32| whole(f64::from(bytes) * 1e9 / real(terms.rate));
    match kind {
        Kind::Nimble => Judge::Nimble(Box::new(LogicalMeter::new(
            &MeterParams {
                rate_bytes_per_second: terms.rate,
                yellow_bytes: terms.committed_bytes,
                red_bytes: terms.peak_bytes,
                mtu_bytes,
                red_max_q32: 0,
                congestion: Congestion::Police,
                tcam_bits: None,
            },
            0,
        ))),
        Kind::Regmeter => {
            Judge::Regmeter(Box::new(MeterRl::new(terms.rate, terms.refill_ns, terms.committed_bytes, mtu_bytes)))
        }
        Kind::Swrl => {
            let (ctw_ns, etw_ns) =
                (window_ns(terms.committed_bytes), window_ns(terms.peak_bytes - terms.committed_bytes));
            Judge::Swrl(Box::new(SwitchRl::new(terms.rate, &Windows { ctw_ns, etw_ns, mtu_bytes, drop_max_q32 }, 0)))
        }
        _ => {
            let items = terms.back_bytes / terms.bytes;
            let (tags, free) = (vec![(0, 0); items as usize], (0..items).collect());
            let of_limit = vec![0; terms.limiters];
            Judge::Wheel(Box::new(Waiting { wheel: Wheel::new(items, 0), tags, of_limit, free, next_ns: u64::MAX }))
        }
    }
}

/// The token packets of a limit that came since the last look: they come in turns, one a limit in each interval.
fn refill(meter: &mut MeterRl, terms: &Terms, limit: usize, refilled: &mut u64, now_ns: u64) {
    let phase_ns = terms.refill_ns * limit as u64 / terms.limiters as u64;
    let due = (now_ns + terms.refill_ns).saturating_sub(phase_ns) / terms.refill_ns;
    while *refilled < due {
        let before = meter.tokens_nanobytes;
        meter.refill();
        // A full bucket stays full.
        *refilled = if meter.tokens_nanobytes == before { due } else { *refilled + 1 };
    }
}

#[allow(clippy::cast_possible_truncation)] // an enum of a few values
fn action(action: u32) -> u8 {
    action as u8
}
