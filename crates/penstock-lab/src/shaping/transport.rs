// SPDX-License-Identifier: MIT OR Apache-2.0
//! Senders that go back N: what RDMA cards do when a packet is lost (`DragonKing`, section V-D).
//!
//! Messages come in turns to connections, in the bursts of the open loop. One card sends for all of them, in turns, as fast as it can. The
//! receiver takes packets of a connection in order alone; the first one that comes too early makes the sender begin again behind the last
//! that came in order, a round trip later. What is lost at the end of everything is sent again after a timeout. Connection i is under limit i,
//! or under the only one.

use super::system::{Fate, System, Terms};
use super::traffic::Arrivals;
use super::{Candidate, Shaping};
use crate::quantity::{Rate, Size, Time};
use crate::results::Metrics;
use crate::stats::{mean, percentile, real};
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Width of a sample of goodput.
const BIN_NS: u64 = 1_000_000;

/// Who sends.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transport {
    /// Connections.
    pub connections: u32,
    /// Length of a message.
    pub message: Size,
    /// What a connection has on its way at most.
    pub window: Size,
    /// From the receiver to the sender and back.
    pub round_trip: Time,
    /// When what is not acknowledged is sent again.
    pub timeout: Time,
    /// How fast the card sends.
    pub card: Rate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The receiver gets a packet.
    Deliver { connection: usize, sequence: u64 },
    /// The sender learns what comes next; after a gap it goes back.
    Acknowledge { connection: usize, expected: u64, has_gap: bool },
    /// The card is free.
    Send,
    /// A message comes.
    Message,
    /// Has the connection got on since then?
    Timeout { connection: usize, acknowledged: u64 },
}

#[derive(Debug, Default)]
struct Connection {
    available: u64,
    next: u64,
    acknowledged: u64,
    expected: u64,
    has_told: bool,
    has_timer: bool,
    /// Where messages end, and when they came.
    messages: VecDeque<(u64, u64)>,
}

struct Run<'a> {
    transport: &'a Transport,
    system: System,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    connections: Vec<Connection>,
    arrivals: Arrivals,
    packet_ns: u64,
    packets_per_message: u64,
    limiters: usize,
    window: u64,
    bytes: u64,
    is_idle: bool,
    turn: usize,
    message_turn: usize,
    sent: u64,
    dropped: u64,
    gaps: u64,
    useful: u64,
    /// Of packets in the system, by tag.
    inside: Vec<(usize, u64)>,
    free: Vec<u32>,
    bins: Vec<f64>,
    latencies_us: Vec<f64>,
}

/// Runs a system for a time.
pub fn run(shaping: &Shaping, transport: &Transport, candidate: &Candidate, terms: &Terms, time: Time) -> Metrics {
    let limit_bps = shaping.flow_rate.bps() * f64::from(shaping.flows());
    let packets_per_message = transport.message.0.div_ceil(u64::from(terms.bytes)).max(1);
    let message_bytes = u32::try_from(packets_per_message).unwrap_or(u32::MAX).saturating_mul(terms.bytes);
    let mean_bps = limit_bps * f64::from(shaping.load_percent) / 100.0;
    let mut run = Run {
        transport,
        system: super::run::system(candidate, terms),
        events: BinaryHeap::new(),
        connections: (0..transport.connections.max(1)).map(|_| Connection::default()).collect(),
        arrivals: Arrivals::new(mean_bps, message_bytes, shaping.bursts),
        packet_ns: u64::from(terms.bytes) * 8_000_000_000 / transport.card.0.max(1),
        packets_per_message,
        limiters: terms.limiters,
        window: (transport.window.0 / u64::from(terms.bytes)).max(1),
        bytes: u64::from(terms.bytes),
        is_idle: true,
        turn: 0,
        message_turn: 0,
        sent: 0,
        dropped: 0,
        gaps: 0,
        useful: 0,
        inside: Vec::new(),
        free: Vec::new(),
        bins: vec![0.0; usize::try_from(time.0 / BIN_NS).unwrap_or(0) + 1],
        latencies_us: Vec::new(),
    };
    run.until(time.0);
    run.metrics(time, terms)
}

impl Run<'_> {
    fn at(&mut self, time_ns: u64, event: Event) {
        self.events.push(Reverse((time_ns, event)));
    }

    fn until(&mut self, end_ns: u64) {
        let first = self.arrivals.next_ns();
        self.at(first, Event::Message);
        while let Some(&Reverse((now_ns, event))) = self.events.peek() {
            if let Some(done) = self.system.run(now_ns.min(end_ns)) {
                let (connection, sequence) = self.inside[done.tag as usize];
                self.free.push(done.tag);
                self.done(done.fate, connection, sequence);
                continue;
            }
            if now_ns >= end_ns {
                break;
            }
            self.events.pop();
            match event {
                Event::Message => self.message(now_ns),
                Event::Send => self.send(now_ns),
                Event::Deliver { connection, sequence } => self.deliver(now_ns, connection, sequence),
                Event::Acknowledge { connection, expected, has_gap } => {
                    self.acknowledge(now_ns, connection, expected, has_gap);
                }
                Event::Timeout { connection, acknowledged } => self.timeout(now_ns, connection, acknowledged),
            }
        }
    }

    fn message(&mut self, now_ns: u64) {
        let one = &mut self.connections[self.message_turn];
        one.available += self.packets_per_message;
        one.messages.push_back((one.available, now_ns));
        self.message_turn = (self.message_turn + 1) % self.connections.len();
        let next_ns = self.arrivals.next_ns();
        self.at(next_ns, Event::Message);
        self.wake(now_ns);
    }

    fn wake(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.is_idle) {
            self.at(now_ns, Event::Send);
        }
    }

    /// One packet of the next connection that has one.
    fn send(&mut self, now_ns: u64) {
        let count = self.connections.len();
        let turns = (0..count).map(|step| (self.turn + step) % count);
        let may_send = |one: &Connection| one.next < one.available && one.next < one.acknowledged + self.window;
        let Some(index) = { turns }.find(|&index| may_send(&self.connections[index])) else {
            self.is_idle = true;
            return;
        };
        self.turn = (index + 1) % count;
        let sequence = self.connections[index].next;
        self.connections[index].next += 1;
        self.sent += 1;
        let tag = self.free.pop().unwrap_or_else(|| {
            self.inside.push((0, 0));
            u32::try_from(self.inside.len() - 1).unwrap_or(u32::MAX)
        });
        self.inside[tag as usize] = (index, sequence);
        let fate = self.system.offer(now_ns, index % self.limiters, tag);
        if fate != Fate::Waits {
            self.free.push(tag);
        }
        self.done(fate, index, sequence);
        if !std::mem::replace(&mut self.connections[index].has_timer, true) {
            let acknowledged = self.connections[index].acknowledged;
            self.at(now_ns + self.transport.timeout.0, Event::Timeout { connection: index, acknowledged });
        }
        self.at(now_ns + self.packet_ns, Event::Send);
    }

    fn done(&mut self, fate: Fate, connection: usize, sequence: u64) {
        match fate {
            Fate::Leaves(left_ns) => self.at(left_ns, Event::Deliver { connection, sequence }),
            Fate::Dropped => self.dropped += 1,
            Fate::Waits => (),
        }
    }

    fn deliver(&mut self, now_ns: u64, connection: usize, sequence: u64) {
        let one = &mut self.connections[connection];
        let has_gap = sequence > one.expected;
        if has_gap && std::mem::replace(&mut one.has_told, true) {
            return;
        }
        self.gaps += u64::from(has_gap);
        if sequence == one.expected {
            one.expected += 1;
            one.has_told = false;
            self.useful += 1;
            let last = self.bins.len() - 1;
            self.bins[usize::try_from(now_ns / BIN_NS).unwrap_or(last).min(last)] += real(self.bytes) * 8.0;
            while one.messages.front().is_some_and(|&(end, _)| end <= one.expected) {
                let came_ns = one.messages.pop_front().map_or(now_ns, |(_, came_ns)| came_ns);
                self.latencies_us.push(real(now_ns - came_ns) / 1000.0);
            }
        }
        let expected = one.expected;
        self.at(now_ns + self.transport.round_trip.0, Event::Acknowledge { connection, expected, has_gap });
    }

    fn acknowledge(&mut self, now_ns: u64, connection: usize, expected: u64, has_gap: bool) {
        let one = &mut self.connections[connection];
        one.acknowledged = one.acknowledged.max(expected);
        if has_gap {
            one.next = expected.max(one.acknowledged);
        }
        self.wake(now_ns);
    }

    fn timeout(&mut self, now_ns: u64, connection: usize, acknowledged: u64) {
        let one = &mut self.connections[connection];
        if one.acknowledged == one.next {
            one.has_timer = false;
            return;
        }
        if one.acknowledged == acknowledged {
            one.next = acknowledged;
            one.has_told = false;
        }
        let acknowledged = one.acknowledged;
        self.at(now_ns + self.transport.timeout.0, Event::Timeout { connection, acknowledged });
        self.wake(now_ns);
    }

    fn metrics(&self, time: Time, terms: &Terms) -> Metrics {
        let seconds = real(time.0) / 1e9;
        let bits = |packets: u64| real(packets * self.bytes) * 8.0;
        let share = |packets: u64| real(packets) / real(self.sent.max(1));
        let tokens = self.system.token_share() * real(terms.link) * 8.0 * seconds;
        // What still waits at the end is late by what it waited so far: to leave it out would flatter who is slowest.
        let waiting = self.connections.iter().flat_map(|one| one.messages.iter());
        let waited = waiting.map(|&(_, came_ns)| real(time.0.saturating_sub(came_ns)) / 1000.0);
        let latencies: Vec<f64> = self.latencies_us.iter().copied().chain(waited).collect();
        let full_bins = &self.bins[..self.bins.len() - 1];
        let rates: Vec<f64> = full_bins.iter().map(|bits| bits * 1e9 / real(BIN_NS) / 1e6).collect();
        Metrics::from([
            ("goodput".to_owned(), bits(self.useful) / seconds / 1e6),
            ("goodput_share".to_owned(), 100.0 * bits(self.useful) / (bits(self.sent) + tokens)),
            ("dropped_share".to_owned(), 100.0 * share(self.dropped)),
            ("gap_share".to_owned(), 100.0 * share(self.gaps)),
            ("goodput_p10".to_owned(), percentile(&rates, 10.0)),
            ("goodput_p50".to_owned(), percentile(&rates, 50.0)),
            ("goodput_p90".to_owned(), percentile(&rates, 90.0)),
            ("message_mean".to_owned(), mean(&latencies)),
            ("message_p50".to_owned(), percentile(&latencies, 50.0)),
            ("message_p99".to_owned(), percentile(&latencies, 99.0)),
        ])
    }
}
