// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times the live shaper: packets a second and time a packet with a few limiters and with a million, all of which have packets that wait,
//! beside HTB at the same rates. Each round measures everything once, and what is printed are medians of the rounds.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a bench prints

mod shapers;

use anyhow::{Context, Result, bail};
use penstock_bench_shaper::{cpu, network, network::Network};
use penstock_dataplane::ShapingReading;
use shapers::{Job, Ours, Qdisc, Shaper};
use std::io::Write;
use std::time::{Duration, Instant};

/// Frames are offered faster than they may leave, so that all limiters keep a queue.
const OFFERED: f64 = 1.05;
/// Queues are filled faster at the start: after two packets of a limiter it has one that waits.
const FILL: f64 = 1.5;
const FILL_LOOK: Duration = Duration::from_millis(200);
const FILL_MAX: Duration = Duration::from_secs(30);
/// From there on what was measured is left out.
const SETTLE: Duration = Duration::from_secs(1);
/// A shaper that sends less of what it should does not keep up.
const KEEPS_UP: f64 = 0.99;
/// From one try to the next.
const STEP: f64 = 1.25;

struct Arguments {
    rounds: usize,
    time: Duration,
    rate_pps: f64,
    limiters: Vec<u32>,
    classes: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Ours,
    Htb,
}

/// What one measurement gave.
#[derive(Debug, Clone, Default)]
struct Measured {
    seconds: f64,
    /// Frames that left.
    came: f64,
    /// The CPU that sends, judges, and runs qdiscs: time that it did not spin.
    sender_ns: f64,
    /// The engine's thread.
    engine_ns: f64,
    /// Ours tells.
    waiting: f64,
    lost: f64,
    lateness_us: [f64; 3],
}

fn arguments() -> Result<Arguments> {
    let mut all = Arguments {
        rounds: 3,
        time: Duration::from_secs(3),
        rate_pps: 200_000.0,
        limiters: vec![1, 1_000, 100_000, 1_000_000],
        classes: vec![1, 1_000, 10_000],
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} wants a value"))?;
        let list = |value: &str| value.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>();
        match word.as_str() {
            "--rounds" => all.rounds = value.parse()?,
            "--seconds" => all.time = Duration::from_secs(value.parse()?),
            "--pps" => all.rate_pps = value.parse()?,
            "--limiters" => all.limiters = list(&value)?,
            "--classes" => all.classes = list(&value)?,
            _ => bail!(
                "usage: penstock-bench-shaper [--rounds N] [--seconds S] [--pps N] [--limiters N,..] [--classes N,..]"
            ),
        }
    }
    Ok(all)
}

/// Lets packets come until each limiter has one that waits.
fn fill(network: &Network, shaper: &dyn Shaper, job: Job) -> Result<()> {
    let start = Instant::now();
    let is_full = || match shaper.reading() {
        Some(reading) => reading.waiting_packets >= u64::from(job.limiters),
        None => start.elapsed().as_secs_f64() >= 3.0 * job.packet_s(),
    };
    while start.elapsed() < FILL_MAX && !is_full() {
        network.flood(job.limiters, job.rate_pps * FILL, FILL_LOOK)?;
    }
    network.flood(job.limiters, job.rate_pps * OFFERED, SETTLE)
}

#[allow(clippy::cast_precision_loss)] // millions
fn number(count: u64) -> f64 {
    count as f64
}

fn measure(network: &Network, shaper: &dyn Shaper, job: Job, all: &Arguments, spin_ns: f64) -> Result<Measured> {
    let (before, engine) = (shaper.reading(), cpu::engine());
    let (came, spins, start) = (network.came()?, network.spins()?, Instant::now());
    network.flood(job.limiters, job.rate_pps * OFFERED, all.time)?;
    let seconds = start.elapsed().as_secs_f64();
    let mut measured = Measured {
        seconds,
        came: number(network.came()? - came),
        sender_ns: seconds * 1e9 - number(network.spins()? - spins) * spin_ns,
        engine_ns: (cpu::engine() - engine).as_secs_f64() * 1e9,
        ..Measured::default()
    };
    if let (Some(before), Some(after)) = (before, shaper.reading()) {
        measured.waiting = number(after.waiting_packets);
        measured.lost = number(after.lost_packets - before.lost_packets);
        measured.lateness_us = lateness_us(&before, &after);
    }
    Ok(measured)
}

/// How long the sender takes to find that nothing is due.
fn spin_ns(network: &Network) -> Result<f64> {
    let (spins, start) = (network.spins()?, Instant::now());
    network.flood(1, 0.0, SETTLE)?;
    Ok(start.elapsed().as_secs_f64() * 1e9 / number(network.spins()? - spins))
}

/// Bounds of p50, p99 and the largest, as the engine's histogram has them: powers of two.
fn lateness_us(before: &ShapingReading, after: &ShapingReading) -> [f64; 3] {
    let counts: Vec<u64> =
        after.lateness.counts.iter().zip(&before.lateness.counts).map(|(after, before)| after - before).collect();
    let all: u64 = counts.iter().sum();
    // Per mille of packets that are not later.
    [500, 990, 1000].map(|share| {
        let wanted = (all * share).div_ceil(1000);
        let mut sum = 0;
        let reached = |count: &u64| {
            sum += count;
            sum >= wanted
        };
        let bucket = counts.iter().position(reached).unwrap_or(0);
        2_f64.powi(i32::try_from(bucket).unwrap_or(0))
    })
}

/// The most packets a second that a shaper keeps up with, in steps.
fn most_pps(network: &Network, all: &Arguments, kind: Kind, limiters: u32) -> Result<f64> {
    let (mut most, mut rate_pps) = (0.0, all.rate_pps);
    loop {
        let job = Job { limiters, rate_pps };
        let shaper = start(network, kind, job)?;
        fill(network, &*shaper, job)?;
        let measured = measure(network, &*shaper, job, all, 0.0)?;
        let pps = measured.came / measured.seconds;
        if pps < KEEPS_UP * rate_pps || measured.lost > 0.0 {
            return Ok(most);
        }
        most = pps;
        rate_pps *= STEP;
    }
}

fn start<'a>(network: &'a Network, kind: Kind, job: Job) -> Result<Box<dyn Shaper + 'a>> {
    Ok(match kind {
        Kind::Ours => Box::new(Ours::shaping(job)?),
        Kind::Htb => Box::new(Qdisc::htb(network, job)?),
    })
}

/// The same packets without a limit: what the sending CPU takes for each, ns.
fn without(network: &Network, all: &Arguments, kind: Kind, spin_ns: f64) -> Result<f64> {
    let job = Job { limiters: 1, rate_pps: all.rate_pps / OFFERED };
    let wire: Box<dyn Shaper> = match kind {
        Kind::Ours => Box::new(Ours::wire()?),
        Kind::Htb => Box::new(Qdisc::none(network)?),
    };
    let measured = measure(network, &*wire, job, all, spin_ns)?;
    Ok(measured.sender_ns / measured.came)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// A line of the table: the medians of all rounds.
#[derive(Default)]
struct Line {
    rounds: Vec<(Measured, f64)>,
    most_pps: f64,
}

impl Line {
    fn print(&self, kind: Kind, limiters: u32, rate_pps: f64) {
        let of = |what: &dyn Fn(&Measured, f64) -> f64| median(self.rounds.iter().map(|(one, base)| what(one, *base)));
        let pps = of(&|one, _| one.came / one.seconds);
        let name = if kind == Kind::Ours { "penstock" } else { "htb" };
        print!("{limiters:>9}  {name:<9} {:>7.1} {:>6.1} %", pps / 1e3, 100.0 * pps / rate_pps);
        let more = of(&|one, base| (one.sender_ns + one.engine_ns) / one.came - base);
        let engine = of(&|one, _| one.engine_ns / one.came);
        print!(" {:>8.2} {more:>9.0} {engine:>7.0}", self.most_pps / 1e6);
        if kind == Kind::Ours {
            let late = |index: usize| of(&|one, _| one.lateness_us[index]);
            let (waiting, lost) = (of(&|one, _| one.waiting), self.rounds.iter().map(|(one, _)| one.lost).sum::<f64>());
            print!(" {waiting:>9.0} {:>7.0} {:>7.0} {:>8.0} {lost:>6.0}", late(0), late(1), late(2));
        }
        println!();
    }
}

fn main() -> Result<()> {
    let all = arguments()?;
    network::enter()?;
    cpu::pin(0)?;
    cpu::hurry()?;
    let network = Network::new()?;
    let ours = all.limiters.iter().map(|&limiters| (Kind::Ours, limiters));
    let htb = all.classes.iter().map(|&classes| (Kind::Htb, classes));
    let mut lines: Vec<(Kind, u32, Line)> =
        ours.chain(htb).map(|(kind, limiters)| (kind, limiters, Line::default())).collect();
    for round in 0..all.rounds {
        eprintln!("round {} of {}", round + 1, all.rounds);
        let spin_ns = spin_ns(&network)?;
        let base = [without(&network, &all, Kind::Ours, spin_ns)?, without(&network, &all, Kind::Htb, spin_ns)?];
        for (kind, limiters, line) in &mut lines {
            let job = Job { limiters: *limiters, rate_pps: all.rate_pps };
            let shaper = start(&network, *kind, job)?;
            fill(&network, &*shaper, job)?;
            line.rounds.push((measure(&network, &*shaper, job, &all, spin_ns)?, base[*kind as usize]));
            drop(shaper);
            if round == 0 {
                line.most_pps = most_pps(&network, &all, *kind, *limiters)?;
            }
        }
    }
    let (rate, frame, rounds) = (all.rate_pps / 1e3, network::FRAME_BYTES, all.rounds);
    println!(
        "live frames of {frame} B, limited to {rate:.0} k/s in all and offered 5 % faster; medians of {rounds} rounds"
    );
    println!(
        "{:>9}  {:<9} {:>7} {:>8} {:>8} {:>9} {:>7} {:>9} {:>24} {:>6}",
        "", "", "", "", "most", "ns more", "engine", "packets", "late by at most, us", "lost"
    );
    println!(
        "{:>9}  {:<9} {:>7} {:>8} {:>8} {:>9} {:>7} {:>9} {:>7} {:>7} {:>8} {:>6}",
        "limiters", "shaper", "k/s", "of rate", "M/s", "than none", "alone", "that wait", "p50", "p99", "all", ""
    );
    lines.iter().for_each(|(kind, limiters, line)| line.print(*kind, *limiters, all.rate_pps));
    Ok(std::io::stdout().flush()?)
}
