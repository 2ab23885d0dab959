// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fair shares cost in the kernel: the shipped program by `BPF_PROG_RUN`, on one CPU and on two at once; and how evenly two CPUs share. Then
//! live beside HTB, with the same tree. Nothing is asserted: machines are noisy, and ratios of one run are what counts.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a bench prints

mod kernel;
mod live;
mod tree;

use anyhow::{Context, Result, bail};
use penstock_bench_shaper::{cpu, network};
use std::time::Duration;

const USAGE: &str = "usage: penstock-bench-shares [--rounds N] [--seconds S] [--pps N] [--parts run,cpus,live]";

/// What is asked for.
pub struct Arguments {
    rounds: usize,
    time: Duration,
    link_pps: f64,
    parts: String,
}

fn arguments() -> Result<Arguments> {
    let mut all =
        Arguments { rounds: 7, time: Duration::from_secs(2), link_pps: 100_000.0, parts: "run,cpus,live".to_owned() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--help" {
            println!("{USAGE}");
            std::process::exit(0);
        }
        let value = words.next().with_context(|| format!("{word} wants a value"))?;
        match word.as_str() {
            "--rounds" => all.rounds = value.parse()?,
            "--seconds" => all.time = Duration::from_secs(value.parse()?),
            "--pps" => all.link_pps = value.parse()?,
            "--parts" => all.parts = value,
            _ => bail!("{USAGE}"),
        }
    }
    Ok(all)
}

/// The least, the middle and the largest.
pub fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or_default();
    [at(0), at(values.len() / 2), at(values.len().saturating_sub(1))]
}

/// A count, to be reckoned with.
#[allow(clippy::cast_precision_loss)] // millions
pub fn number(count: u64) -> f64 {
    count as f64
}

fn main() -> Result<()> {
    let all = arguments()?;
    network::enter()?;
    cpu::pin(0)?;
    cpu::hurry()?;
    if all.parts.contains("run") {
        kernel::costs(&all)?;
    }
    if all.parts.contains("cpus") {
        kernel::two_cpus(&all)?;
    }
    if all.parts.contains("live") {
        live::beside_htb(&all)?;
    }
    Ok(())
}
