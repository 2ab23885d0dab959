// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims that need no live traffic: sizes, errors, and decisions on generated packets.

use crate::LabError;
use crate::layouts::Layouts;
use crate::network::churn::{self, Churn};
use crate::network::programming::{self, Programming};
use crate::network::{self, Timeline};
use crate::quantity::{Rate, Size, Time};
use crate::results::{Metrics, Results, Row, Subject};
use crate::shaping::{self, Shaping};
use crate::shares::{self, Shares};
use crate::sketch::{self, PrefixDivide, Sketch};
use crate::stats::{self, percentile, real};
use crate::template::Values;
use crate::updates::Updates;
use penstock_algo::approx::{Adt, Axis, Tcam};
use penstock_algo::logical_meter::{Congestion, LogicalMeter, Params};
use penstock_algo::plane::Rng;
use penstock_algo::wire;
use penstock_dataplane::{Outcome, Replay, Sinks, Watch};
use penstock_packet::Progress;
use penstock_packet::workload::{Generator, Workload};
use penstock_policy::diagnostics::Source;
use penstock_policy::limits_file::LimitsText;
use penstock_policy::{Plan, Policy, compile};
use serde::Deserialize;
use std::fmt::Write;
use std::ops::RangeInclusive;

/// What is computed.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Computation {
    /// SwitchRL's approximate division table.
    DivisionTable(DivisionTable),
    /// Nimble's multiply table.
    MultiplyTable(MultiplyTable),
    /// Nimble's meter, with and without the multiply table.
    LogicalMeter(MeterRun),
    /// What the tables of many limiters take.
    Tables(Tables),
    /// Generated traffic through a policy with many limits, in virtual time.
    Replay(ReplayRun),
    /// How long the kernel programs take for packets of all lengths, each with a limit of its own.
    Latency(Latency),
    /// Many limits on a fast link, in virtual time.
    Shaping(Shaping),
    /// What limiters take in memory, in several layouts.
    Layouts(Layouts),
    /// How fast limits can be changed, and what that does to packets.
    Updates(Updates),
    /// Flows that come and go share a link, in virtual time.
    Shares(Shares),
    /// A sketch before many users.
    Sketch(Sketch),
    /// AHAB's division by table.
    PrefixDivide(PrefixDivide),
    /// A network over time, and who limits it.
    Network(Timeline),
    /// How many limits of a network change as flows come and go.
    Churn(Churn),
    /// How long it takes to change them.
    Programming(Programming),
}

/// The table for x / y, both from 1 to `most`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DivisionTable {
    /// r, in thousandths.
    pub r_thousandths: u32,
    /// Largest operand.
    pub most: u32,
}

/// The table that multiplies by an operand of which it looks at some bits.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MultiplyTable {
    /// Bits of the operand.
    pub operand_bits: u32,
    /// Bits that are looked at.
    pub significant_bits: u32,
}

/// A meter under a source that sends more than it may.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterRun {
    /// Bits that the multiply looks at; 0 for the exact form.
    pub significant_bits: u32,
    /// The limit.
    pub rate: Rate,
    /// What is offered.
    pub offered: Rate,
    /// Where yellow begins.
    pub yellow: Size,
    /// Where red begins.
    pub red: Size,
    /// How long.
    pub time: Time,
}

/// A limits file of rows that are made up.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// Rows.
    pub limits: u32,
}

/// A policy, a workload and a limits file of rows that are made up: `rows.csv`, for 10.0.0.0, 10.0.0.1, and so on.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayRun {
    /// The policy.
    pub policy: String,
    /// The workload.
    pub workload: String,
    /// Rows of `rows.csv`.
    pub limits: u32,
    /// Rate of each.
    pub rate: Rate,
}

/// Packets for the kernel programs.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// How many, each to an address of its own.
    pub packets: u32,
    /// Lengths are uniform from here
    pub shortest: Size,
    /// to here.
    pub longest: Size,
    /// How often each is judged; its time is the mean.
    pub times: u32,
}

/// Computes the rows of a point. What has a length of its own does not look at `time`.
///
/// # Errors
/// The parameters are out of range.
pub fn compute(computation: &Computation, point: &Values, time: Time) -> Result<Results, LabError> {
    let metrics = match computation {
        Computation::DivisionTable(table) => division_table(*table)?,
        Computation::MultiplyTable(table) => multiply_table(*table)?,
        Computation::LogicalMeter(run) => logical_meter(run),
        Computation::Tables(tables) => table_sizes(*tables)?,
        Computation::Replay(run) => replay(run)?,
        Computation::Sketch(run) => sketch::measure(run)?,
        Computation::PrefixDivide(run) => sketch::prefix_divide(*run),
        Computation::Latency(run) => return Ok(rows(crate::latency::measure(run)?, point)),
        Computation::Layouts(run) => return Ok(rows(crate::layouts::measure(*run)?, point)),
        Computation::Updates(run) => return Ok(rows(crate::updates::measure(run)?, point)),
        Computation::Shares(run) => return shares::compute(run, point),
        Computation::Network(run) => return network::compute(run, point),
        Computation::Churn(run) => return churn::compute(run, point, time),
        Computation::Programming(run) => return programming::compute(run, point),
        Computation::Shaping(shaping) => return shaping::compute(shaping, point, time),
    };
    Ok(rows(vec![("penstock", metrics)], point))
}

fn rows(all: Vec<(&'static str, Metrics)>, point: &Values) -> Results {
    let rows = all.into_iter().map(|(series, metrics)| row(series, point, metrics)).collect();
    Results { rows, ..Results::default() }
}

fn row(series: &str, point: &Values, metrics: Metrics) -> Row {
    let of = Subject { series: series.to_owned(), point: point.clone(), tenant: String::new() };
    Row { of, run: 1, metrics }
}

fn wrong(what: impl Into<String>) -> LabError {
    LabError::Computation(what.into())
}

/// SwitchRL, section 6: entries, and the worst relative error over all corners of all pairs of intervals.
fn division_table(table: DivisionTable) -> Result<Metrics, LabError> {
    let axis = || Axis::new(1..=table.most, table.r_thousandths, 1000).ok_or_else(|| wrong("no such division table"));
    let (x, y) = (axis()?, axis()?);
    let entries = x.intervals() * y.intervals();
    let ends = intervals(&x, table.most);
    let adt = Adt::new(x, y);
    let mut worst: f64 = 0.0;
    for dividend in &ends {
        for divisor in &ends {
            let approximate = real(adt.divide_q32(*dividend.start(), *divisor.start())) / 2_f64.powi(32);
            for (x, y) in [(dividend.start(), divisor.end()), (dividend.end(), divisor.start())] {
                worst = worst.max((f64::from(*x) / f64::from(*y) / approximate - 1.0).abs());
            }
        }
    }
    Ok([("entries".to_owned(), f64::from(entries)), ("error".to_owned(), 100.0 * worst)].into())
}

fn intervals(axis: &Axis, most: u32) -> Vec<RangeInclusive<u32>> {
    let mut found = Vec::new();
    let mut next = 1;
    while next <= most {
        let interval = axis.interval(next);
        next = interval.end() + 1;
        found.push(*interval.start()..=(*interval.end()).min(most));
    }
    found
}

/// Nimble, Algorithm 1: entries, and the worst relative error over the ends of all groups of operands.
fn multiply_table(table: MultiplyTable) -> Result<Metrics, LabError> {
    const FACTOR: u64 = 1 << 24;
    let bits = table.significant_bits;
    let tcam = Tcam::new(bits).filter(|_| (bits..=32).contains(&table.operand_bits));
    let tcam = tcam.ok_or_else(|| wrong("no such multiply table"))?;
    let error = |operand: u64| (real(tcam.multiply(FACTOR, operand)) / real(FACTOR * operand) - 1.0).abs();
    let mut worst: f64 = 0.0;
    for exponent in bits..table.operand_bits {
        let width = 1_u64 << (exponent + 1 - bits);
        // Groups of one exponent err alike; the first and the last few say how much.
        let first = 1_u64 << exponent;
        let groups = (1_u64 << (bits - 1)).min(64);
        for group in (0..groups).map(|group| first + group * width) {
            worst = worst.max(error(group)).max(error(group + width - 1));
        }
    }
    Ok([("entries".to_owned(), f64::from(tcam.entries(table.operand_bits))), ("error".to_owned(), 100.0 * worst)]
        .into())
}

/// Nimble, section 6.3.4: what a meter passes of packets of mixed lengths that come at more than its rate.
fn logical_meter(run: &MeterRun) -> Metrics {
    const BINS: u64 = 50;
    const MTU_BYTES: u32 = 1514;
    let bytes = |size: Size| u32::try_from(size.0).unwrap_or(u32::MAX);
    let params = Params {
        rate_bytes_per_second: run.rate.0 / 8,
        yellow_bytes: bytes(run.yellow),
        red_bytes: bytes(run.red),
        mtu_bytes: MTU_BYTES,
        red_max_q32: 0,
        congestion: Congestion::Police,
        tcam_bits: u8::try_from(run.significant_bits).ok().filter(|bits| *bits > 0),
    };
    let mut rng = Rng::new(1);
    let mut meter = LogicalMeter::new(&params, 0);
    let mut bins = vec![0_u64; usize::try_from(BINS).unwrap_or(0)];
    let (mut now_ns, mut spent_ns) = (0_u64, 0.0);
    while now_ns < run.time.0 {
        let length = 64 + rng.next_u32() % (MTU_BYTES - 63);
        if meter.take(now_ns, length, false, 0).verdict == wire::PST_VERDICT_PASS {
            let bin = usize::try_from(now_ns * BINS / run.time.0).unwrap_or(0);
            bins[bin] += u64::from(length);
        }
        spent_ns += f64::from(length) * 8e9 / run.offered.bps();
        now_ns = nanoseconds(spent_ns);
    }
    let bin_s = run.time.duration().as_secs_f64() / real(BINS);
    // The first bin has the burst.
    let rates: Vec<f64> = bins[1..].iter().map(|&bytes| real(bytes) * 8.0 / bin_s).collect();
    [
        ("passed_share".to_owned(), 100.0 * stats::mean(&rates) / run.rate.bps()),
        ("oscillation".to_owned(), stats::oscillation(&rates)),
    ]
    .into()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a positive time of a short run
fn nanoseconds(time_ns: f64) -> u64 {
    time_ns as u64
}

/// A policy of limits alone, for those who do not bring one.
pub const ROWS: &str =
    "{ penstock: 1, ports: { lan: { rate: 10Gbit/s } }, links: [ { name: down, port: lan, rate: 10Gbit/s,
    classes: [ { name: tenants, limits: { file: rows.csv } } ] } ] }";

/// A policy with a limits file of rows for 10.0.0.0, 10.0.0.1, and so on.
pub fn plan_with_rows(policy: &str, rows: u32, rate: impl Fn(u32) -> String) -> Result<Plan, LabError> {
    let policy = Policy::parse("policy", policy)?;
    let mut text = "name,dst,rate\n".to_owned();
    for row in 0..rows {
        let address = std::net::Ipv4Addr::from_bits((10 << 24) + row);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "t{row},{address},{}", rate(row));
    }
    let bytes = text.into_bytes();
    Ok(compile::compile(&policy, |name| Ok(LimitsText { name: name.to_owned(), bytes: bytes.clone() }))?)
}

/// What the table takes with the parameters that its limiters share, and what it would if each had its own.
fn table_sizes(tables: Tables) -> Result<Metrics, LabError> {
    let plan = plan_with_rows(ROWS, tables.limits, |_| "100Mbit/s".to_owned())?;
    let plane = penstock_dataplane::load(&plan, 1, 0)?;
    let image = plane.image();
    let limits = f64::from(tables.limits);
    let profile_bytes = real(size_of::<wire::Profile>() as u64);
    let shared = real(size_of_val(image.limiter_buckets) as u64) + real(size_of_val(image.profiles) as u64);
    let unshared = shared + limits * profile_bytes;
    Ok([
        ("memory".to_owned(), shared / 1e6),
        ("bytes_each".to_owned(), shared / limits),
        ("unshared_memory".to_owned(), unshared / 1e6),
        ("shared_share".to_owned(), 100.0 * shared / unshared),
    ]
    .into())
}

struct Unwatched;

impl Watch for Unwatched {
    fn goes_on(&mut self, _: u64, _: Progress) -> bool {
        true
    }
}

/// Shares of their limits that tenants got.
fn replay(run: &ReplayRun) -> Result<Metrics, LabError> {
    let plan = plan_with_rows(&run.policy, run.limits, |_| format!("{}bit/s", run.rate.0))?;
    let workload = Workload::parse(&Source::new("workload", run.workload.clone()))?;
    let mut replay = Replay::new(plan, None, 1).map_err(|error| wrong(error.to_string()))?;
    let mut sinks: Sinks<Vec<u8>> = Sinks::default();
    let outcome = replay.run(&mut Generator::new(&workload), &mut sinks, &mut Unwatched);
    if let Outcome::Failed(error) = outcome {
        return Err(wrong(error.to_string()));
    }
    let report = replay.report();
    let seconds = real(workload.duration_ns) / 1e9;
    let of_limit = 100.0 * 8.0 / seconds / run.rate.bps();
    let shares: Vec<f64> = report.limits.iter().map(|limit| real(limit.passed_bytes) * of_limit).collect();
    if shares.len() != run.limits as usize {
        return Err(wrong(format!("{} of {} limits are in the report", shares.len(), run.limits)));
    }
    let at = |name: &str, percent: f64| (name.to_owned(), percentile(&shares, percent));
    Ok([
        at("share_least", 0.0),
        at("share_p1", 1.0),
        at("share_p50", 50.0),
        at("share_p99", 99.0),
        at("share_most", 100.0),
    ]
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_table_has_the_papers_entries() {
        let metrics = division_table(DivisionTable { r_thousandths: 20, most: 10_000 }).unwrap();
        assert_eq!(metrics["entries"], 87_025.0);
        assert!((metrics["error"] - 1.98).abs() < 0.001, "{}", metrics["error"]);
    }

    #[test]
    fn a_table_of_fewer_bits_errs_more() {
        let of = |significant_bits| multiply_table(MultiplyTable { operand_bits: 32, significant_bits }).unwrap();
        assert_eq!(of(4)["entries"], 240.0);
        assert!((of(4)["error"] - 6.25).abs() < 0.01, "{}", of(4)["error"]);
        assert!(of(5)["error"] < of(4)["error"]);
        assert!(multiply_table(MultiplyTable { operand_bits: 32, significant_bits: 25 }).is_err());
    }

    #[test]
    fn a_meter_passes_its_rate() {
        let run = MeterRun {
            significant_bits: 0,
            rate: Rate(1_000_000_000),
            offered: Rate(2_000_000_000),
            yellow: Size(16_000),
            red: Size(80_000),
            time: Time(100_000_000),
        };
        let share = logical_meter(&run)["passed_share"];
        assert!((share - 100.0).abs() < 1.0, "{share}");
        let coarse = logical_meter(&MeterRun { significant_bits: 1, ..run })["passed_share"];
        assert!((coarse - 100.0).abs() > 2.0, "a table of one bit shows: {coarse}");
    }

    #[test]
    fn many_limits_are_kept_at_once() {
        let workload =
            "{ penstock-workload: 1, duration: 2s, flows: [ { name: t, count: 20, rate: 2Mbit/s, size: 1000B,
            src: 172.16.0.1, dst: 10.0.0.0/8 } ] }";
        let (policy, workload) = (ROWS.to_owned(), workload.to_owned());
        let metrics = replay(&ReplayRun { policy, workload, limits: 20, rate: Rate(1_000_000) }).unwrap();
        assert!(metrics["share_least"] > 99.0 && metrics["share_most"] < 104.0, "{metrics:?}");
    }
}
