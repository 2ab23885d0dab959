// SPDX-License-Identifier: MIT OR Apache-2.0
//! What shapes: ours, HTB, or nothing.

use anyhow::{Context, Result, bail};
use penstock_bench_shaper::cpu::pin;
use penstock_bench_shaper::network::{FRAME_BYTES, Network, run};
use penstock_dataplane::xdp::{LoadOptions, Xdp};
use penstock_dataplane::{Dataplane, ShapingReading};
use penstock_policy::limits_file::LimitsText;
use penstock_policy::{Plan, Policy, compile};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where what is pinned lies, in a file system of our own.
const PINS: &str = "/sys/fs/bpf/bench";
/// A limiter's packets wait so long at least: one limiter alone has a queue, too.
const HORIZON_MIN_S: f64 = 0.02;
/// Frames that wait take pieces of it.
const FRAME_MEMORY: f64 = 2048.0;
/// The CPU that sends, judges, and runs qdiscs; and the engine's.
const CPUS: [usize; 2] = [0, 1];

/// What a shaper is to do.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    pub limiters: u32,
    /// Of all limiters together, packets a second.
    pub rate_pps: f64,
}

impl Job {
    fn rate_bps(&self) -> f64 {
        self.rate_pps * f64::from(FRAME_BYTES) * 8.0 / f64::from(self.limiters)
    }

    /// How long a packet of a limiter takes. Each has one that waits, and one more while it does.
    pub fn packet_s(&self) -> f64 {
        f64::from(self.limiters) / self.rate_pps
    }

    fn horizon_s(&self) -> f64 {
        self.packet_s().max(HORIZON_MIN_S)
    }

    /// The most packets that wait.
    fn backlog(&self) -> f64 {
        self.rate_pps * self.horizon_s() + f64::from(self.limiters)
    }
}

/// Something that shapes what comes to `left`, and sends it out by `right`.
pub trait Shaper {
    /// What packets did that waited. None where nobody tells.
    fn reading(&self) -> Option<ShapingReading>;
}

/// Penstock: with limits that shape, or as a wire between two interfaces.
pub struct Ours(Xdp);

const POLICY: &str = "penstock: 1
ports: { left: { device: left, rate: 100Gbit/s }, right: { device: right, rate: 100Gbit/s } }
forward: [ [ left, right ] ]
";

impl Ours {
    pub fn wire() -> Result<Self> {
        let unlimited = "links: [ { name: down, port: right, rate: 100Gbit/s, unmatched: pass, classes: [ { name: none, match: [ { dst: 1.1.1.1 } ] } ] } ]";
        Self::start(plan(&format!("{POLICY}{unlimited}\n"), String::new())?)
    }

    pub fn shaping(job: Job) -> Result<Self> {
        let mut rows = "name,dst,rate\n".to_owned();
        for row in 0..job.limiters {
            writeln!(rows, "t{row},{},{:.0}bit/s", Ipv4Addr::from_bits((10 << 24) + row), job.rate_bps())?;
        }
        let memory_mib = (job.backlog() * 1.1 * FRAME_MEMORY / 1_048_576.0).max(64.0);
        let policy = format!(
            "{POLICY}shaper: {{ memory: {memory_mib:.0}MiB }}
links:
  - name: down
    port: right
    rate: 100Gbit/s
    classes:
      - name: limiters
        limits: {{ file: rows.csv, on_excess: shape, burst: 0s, excess: 0s, horizon: {:.0}ms }}
",
            job.horizon_s() * 1e3
        );
        Self::start(plan(&policy, rows)?)
    }

    fn start(plan: Plan) -> Result<Self> {
        let mut xdp = Xdp::open(Path::new(PINS), LoadOptions::default())?;
        pin(CPUS[1])?; // the engine's thread begins where this one is
        let applied = xdp.apply(plan);
        pin(CPUS[0])?;
        applied?;
        Ok(Self(xdp))
    }
}

fn plan(policy: &str, rows: String) -> Result<Plan> {
    let bytes = rows.into_bytes();
    let rows = |name: &str| Ok(LimitsText { name: name.to_owned(), bytes: bytes.clone() });
    Ok(compile::compile(&Policy::parse("policy", policy)?, rows)?)
}

impl Shaper for Ours {
    fn reading(&self) -> Option<ShapingReading> {
        self.0.shaping()
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.0.down(); // what is left goes with the process
    }
}

/// The kernel's way, with a class of HTB a limiter, or without a queueing discipline.
pub struct Qdisc<'a>(&'a Network);

impl<'a> Qdisc<'a> {
    pub fn none(network: &'a Network) -> Result<Self> {
        network.route(true)?;
        Ok(Self(network))
    }

    /// Bursts are what a class may send in a millisecond, two frames at least; queues are as long in all as ours.
    pub fn htb(network: &'a Network, job: Job) -> Result<Self> {
        let queue = (job.backlog() / f64::from(job.limiters)).ceil();
        run(&format!("ip link set right txqueuelen {queue}"))?;
        let mut tc = Command::new("tc").args(["-batch", "-"]).stdin(Stdio::piped()).spawn().context("tc")?;
        {
            let mut words = std::io::BufWriter::new(tc.stdin.take().context("tc")?);
            writeln!(words, "qdisc add dev right root handle 1: htb default ffff")?;
            for class in 1..=job.limiters {
                let burst = (job.rate_bps() / 8e3).max(2.0 * f64::from(FRAME_BYTES));
                let rate = format!(
                    "rate {0:.0}bit ceil {0:.0}bit burst {burst:.0} cburst {burst:.0} quantum 1514",
                    job.rate_bps()
                );
                writeln!(words, "class add dev right parent 1: classid 1:{class:x} htb {rate}")?;
            }
        }
        if !tc.wait()?.success() {
            bail!("tc could not make {} classes", job.limiters);
        }
        Self::none(network)
    }
}

impl Shaper for Qdisc<'_> {
    fn reading(&self) -> Option<ShapingReading> {
        None
    }
}

impl Drop for Qdisc<'_> {
    fn drop(&mut self) {
        let _ = self.0.route(false);
        let _ = run("tc qdisc del dev right root");
    }
}
