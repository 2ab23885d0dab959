// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many limits a second can be given other rates while the kernel program judges packets, and what that does to the packets.

use crate::LabError;
use crate::computation::plan_with_rows;
use crate::netns::{Namespace, pins_of};
use crate::quantity::Time;
use crate::results::Metrics;
use crate::stats;
use libbpf_rs::Program;
use penstock_algo::plane::Rng;
use penstock_dataplane::xdp::{LoadOptions, Xdp, time_program};
use penstock_dataplane::{Dataplane, Edit, LimitId};
use penstock_packet::build::{Ip, Mac, Segment, ethernet};
use serde::Deserialize;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Limits that are changed while packets are judged.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Updates {
    /// How many limits there are.
    pub limiters: u32,
    /// Changes a second that are asked for.
    pub per_second: u32,
    /// How long.
    pub time: Time,
}

/// Frames of `BPF_PROG_RUN` come in by the loopback interface.
const POLICY: &str = "{ penstock: 1, ports: { lan: { device: lo, rate: 100Gbit/s } }, links: [ { name: down, port: lan,
    rate: 100Gbit/s, classes: [ { name: tenants, limits: { file: rows.csv } } ] } ] }";
/// Changes that are handed over at once.
const BATCH: u32 = 500;
/// Frames to take turns, and how often each is judged in a call.
const FRAMES: u32 = 4096;
const TIMES: u32 = 64;
const RATES_BPS: [u64; 2] = [60_000, 120_000];

/// Changes alone, packets alone, and both.
///
/// # Errors
/// There is no root, or the kernel refuses.
pub fn measure(run: &Updates) -> Result<Vec<(&'static str, Metrics)>, LabError> {
    crate::topology::check_machine(&[])?;
    let host = Namespace::create("updates")?;
    let pins = pins_of(host.name());
    let measured = host.enter(|| {
        let mut xdp = Xdp::open(&pins, LoadOptions::default())?;
        let measured = measure_in(run, &mut xdp, &pins);
        xdp.down()?;
        measured
    });
    let _ = std::fs::remove_dir_all(&pins);
    measured
}

fn measure_in(run: &Updates, xdp: &mut Xdp, pins: &std::path::Path) -> Result<Vec<(&'static str, Metrics)>, LabError> {
    let applied = xdp.apply(plan_with_rows(POLICY, run.limiters, |_| format!("{}bit/s", RATES_BPS[0]))?)?;
    let pin = pins.join(format!("g{}", applied.generation)).join("penstock");
    let program = Program::fd_from_pinned_path(&pin).map_err(LabError::bpf("the program"))?;
    let frames = frames(run.limiters);
    let idle = update(run, xdp)?;
    let sleep = || {
        std::thread::sleep(run.time.duration());
        Ok(())
    };
    let ((), alone) = under_load(&program, &frames, sleep)?;
    let (mut full, judged) = under_load(&program, &frames, || update(run, xdp))?;
    full.extend(judged);
    Ok(vec![("idle", idle), ("full", full), ("alone", alone)])
}

/// Does something while packets are judged.
fn under_load<T>(
    program: &OwnedFd,
    frames: &[Vec<u8>],
    work: impl FnOnce() -> Result<T, LabError>,
) -> Result<(T, Metrics), LabError> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let judging = scope.spawn(|| judge(program, frames, &stop));
        let done = work();
        stop.store(true, Ordering::Relaxed);
        match judging.join() {
            Ok(judged) => Ok((done?, judged?)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Gives limits other rates, one after the other, as fast as asked for or as fast as it goes.
fn update(run: &Updates, xdp: &mut Xdp) -> Result<Metrics, LabError> {
    let (start, time) = (Instant::now(), run.time.duration());
    let (mut made, mut busy) = (0_u32, Duration::ZERO);
    while start.elapsed() < time {
        let due = Duration::from_secs_f64(f64::from(made) / f64::from(run.per_second));
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        let rate = |number: u32| RATES_BPS[(number / run.limiters + 1) as usize % 2];
        let edit = |number: u32| Edit::SetRate { limit: LimitId::Row(number % run.limiters), rate_bps: rate(number) };
        let began = Instant::now();
        let edits: Vec<Edit> = (made..made + BATCH).map(edit).collect();
        xdp.edit(&edits)?;
        busy += began.elapsed();
        made += BATCH;
    }
    let per_second = f64::from(made) / start.elapsed().as_secs_f64();
    Ok([
        ("updates".to_owned(), per_second / 1e6),
        ("updates_share".to_owned(), 100.0 * per_second / f64::from(run.per_second)),
        ("update_cpu".to_owned(), 100.0 * busy.as_secs_f64() / start.elapsed().as_secs_f64()),
    ]
    .into())
}

/// Judges packets of all limits until it is told to stop: millions a second while the program ran, by the median of its runs.
fn judge(program: &OwnedFd, frames: &[Vec<u8>], stop: &AtomicBool) -> Result<Metrics, LabError> {
    let mut times = Vec::new();
    for frame in frames.iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
        times.push(time_program(program.as_fd(), frame, TIMES)?.as_secs_f64() * 1e9);
    }
    let median = stats::percentile(&times, 50.0).max(1.0);
    Ok([("judged".to_owned(), 1e3 / median), ("judged_ns".to_owned(), median)].into())
}

fn frames(limiters: u32) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(1);
    let frame = |_| {
        let ip = Ip::between(Ipv4Addr::new(172, 16, 0, 1), Ipv4Addr::from_bits((10 << 24) + rng.next_u32() % limiters));
        let segment = Segment::udp(5000, 5001).padded(&ip, 100);
        ethernet(Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]), &[], &ip.packet(&segment))
    };
    (0..FRAMES).map(frame).collect()
}
