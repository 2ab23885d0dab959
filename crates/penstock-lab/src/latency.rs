// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long kernel programs take for a packet, by `BPF_PROG_RUN`.

use crate::LabError;
use crate::computation::{Latency, ROWS, plan_with_rows};
use crate::enforce::{TestMeter, now_ns};
use crate::results::Metrics;
use crate::stats::percentile;
use penstock_algo::plane::Rng;
use penstock_dataplane::xdp::{Generation, Port, time_program};
use penstock_packet::build::{Ip, Mac, Segment, ethernet};
use std::net::Ipv4Addr;
use std::time::Duration;

/// Where frames of `BPF_PROG_RUN` come in.
const LOOPBACK: u32 = 1;

/// A rate of its own for each destination.
fn rate_bps(index: u32) -> u64 {
    100_000_000 + 1000 * u64::from(index)
}

/// Percentiles of the time of a packet, for Penstock and for MeterRL, over the same packets.
///
/// # Errors
/// There is no root, or the kernel refuses.
pub fn measure(run: &Latency) -> Result<Vec<(&'static str, Metrics)>, LabError> {
    crate::topology::check_machine(&[])?;
    let plan = plan_with_rows(ROWS, run.packets, |index| format!("{}bit/s", rate_bps(index)))?;
    let plane = penstock_dataplane::load(&plan, 1, now_ns()?)?;
    let penstock = Generation::load(&plane, &[Port { ifindex: LOOPBACK, links: vec![0], ..Port::default() }])?;
    let rates: Vec<(Ipv4Addr, u64)> = (0..run.packets).map(|index| (address(index), rate_bps(index))).collect();
    let mut meterrl = TestMeter::load(&rates)?;
    let frames = frames(run);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for frame in &frames {
        // In turns, so that both meet the same machine.
        ours.push(nanoseconds(time_program(penstock.program(), frame, run.times)?));
        theirs.push(nanoseconds(meterrl.time(frame, run.times)?));
    }
    Ok([("penstock", ours), ("meterrl", theirs)].map(|(series, times)| (series, metrics(&times))).into())
}

fn address(index: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits((10 << 24) + index)
}

fn frames(run: &Latency) -> Vec<Vec<u8>> {
    let bytes = |size: u64| u32::try_from(size).unwrap_or(u32::MAX);
    let (shortest, longest) = (bytes(run.shortest.0), bytes(run.longest.0.max(run.shortest.0)));
    let mut rng = Rng::new(1);
    let frame = |index: u32| {
        let length = shortest + rng.next_u32() % (longest - shortest + 1);
        let ip = Ip::between(Ipv4Addr::new(172, 16, 0, 1), address(index));
        let segment = Segment::udp(5000, 5001).padded(&ip, length as usize);
        ethernet(Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]), &[], &ip.packet(&segment))
    };
    (0..run.packets).map(frame).collect()
}

#[allow(clippy::cast_precision_loss)] // a packet takes less than a second
fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}

fn metrics(times: &[f64]) -> Metrics {
    [("latency_p50".to_owned(), percentile(times, 50.0)), ("latency_p99".to_owned(), percentile(times, 99.0))].into()
}
