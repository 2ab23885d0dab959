// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times a controller: so many nodes with so many classes each attend it over gRPC on loopback; a tenant has a class at each of them, and one rate.
//!
//! Names a controller's binary, and all rows or one: `penstock-bench-controller PENSTOCK [NODES CLASSES]`.
//!
//! Change   another rate of the tenant is put: until the last node has it, and has acknowledged it.
//! Move     all of the tenant's demand moves from one node to another: until that one has 95 % of the rate.
//! Idle     what the controller takes of a core while nodes report and nothing changes.
//!
//! The controller is the one of the command line, in a process of its own. Nodes have real leases and no data plane, and share the machine.
#![allow(clippy::print_stdout)] // It prints a table.

mod node;

use anyhow::{Context, bail};
use node::{Load, attend};
use penstock_api::controller::ControllerClient;
use penstock_api::{CHUNK_BYTES, v1};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

const CHANGES: usize = 11;
const MOVES: usize = 7;
/// Of the tenant, bits/s.
const RATE_BPS: u64 = 1_000_000_000;
const LONGEST: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let binary = PathBuf::from(words.first().context("which penstock? give its path")?);
    println!(
        "| nodes | classes each | first, ms | change, ms: median, longest | move, ms: median, longest | idle, % of a core | MB |"
    );
    println!("|---|---|---|---|---|---|---|");
    let rows = match words.get(1..) {
        Some([nodes, classes]) => vec![(nodes.parse()?, classes.parse()?)],
        _ => vec![(3, 10), (10, 1_000), (100, 100), (100, 1_000), (1_000, 10), (1_000, 100)],
    };
    for (nodes, classes) in rows {
        row(&binary, nodes, classes).await?;
    }
    Ok(())
}

async fn row(binary: &Path, nodes: usize, classes: usize) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let (controller, mut client) = start(binary, folder.path()).await?;
    let load = Arc::new(Load::new(nodes));
    for node in 0..nodes {
        tokio::spawn(attend(load.clone(), node, client.clone()));
    }
    // Until all attend, and the leader has learned what they have.
    sleep(Duration::from_millis(1_500)).await;
    let mut times = Vec::new();
    for turn in 0..=CHANGES {
        let rate_bps = RATE_BPS - u64::try_from(turn)? * 10_000_000;
        let text = network(nodes, classes, rate_bps);
        let begin = Instant::now();
        let seen = load.all_have(rate_bps / u64::try_from(nodes)?);
        put(&mut client, text).await?;
        let last = timeout(LONGEST, seen).await.context("not all nodes had it in time")?;
        times.push(last.duration_since(begin));
        // Not in step with reports.
        sleep(Duration::from_millis(200 + 37 * u64::try_from(turn)?)).await;
    }
    let first = times.remove(0);
    let mut moves = Vec::new();
    for turn in 0..=MOVES {
        let begin = Instant::now();
        let final_bps = RATE_BPS - u64::try_from(CHANGES)? * 10_000_000;
        load.demand(turn % nodes, 2 * RATE_BPS);
        let served = timeout(LONGEST, load.has(turn % nodes, final_bps * 95 / 100)).await;
        moves.push(served.context("the demand was not served in time")?.duration_since(begin));
        sleep(Duration::from_millis(1_000)).await;
    }
    moves.remove(0);
    let id = controller.id().context("the controller ended")?;
    let (from, busy) = (Instant::now(), cpu(id)?);
    sleep(Duration::from_secs(5)).await;
    let percent = (cpu(id)? - busy).as_secs_f64() / from.elapsed().as_secs_f64() * 100.0;
    println!(
        "| {nodes} | {classes} | {} | {} | {} | {percent:.0} | {} |",
        first.as_millis(),
        spread(times),
        spread(moves),
        resident_mb(id)?
    );
    load.stop();
    Ok(())
}

fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    format!("{}, {}", times[times.len() / 2].as_millis(), times[times.len() - 1].as_millis())
}

/// A controller of its own, and a client of it.
async fn start(binary: &Path, folder: &Path) -> anyhow::Result<(Child, ControllerClient)> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let address = format!("127.0.0.1:{port}");
    let mut command = Command::new(binary);
    command.arg("controller").arg("--state").arg(folder).arg("--listen").arg(&address).kill_on_drop(true);
    let child = command.stderr(Stdio::null()).spawn().with_context(|| binary.display().to_string())?;
    for _ in 0..100 {
        if let Ok(mut client) = penstock_api::controller::connect_controller(std::slice::from_ref(&address), None).await
            && client.get_standing(v1::GetStandingRequest::default()).await?.into_inner().is_leader
        {
            return Ok((child, client));
        }
        sleep(Duration::from_millis(50)).await;
    }
    bail!("the controller does not answer, or does not lead")
}

/// Nodes with a port each; a tenant with a class at each, and classes that have no limit.
fn network(nodes: usize, classes: usize, rate_bps: u64) -> String {
    // Writing to a string cannot fail.
    let mut text = String::from("penstock-network: 1\nports:\n");
    for node in 0..nodes {
        let _ = writeln!(text, "  - {{ name: p{node}, switch: n{node}, rate: 10Gbit/s }}");
    }
    text += "classes:\n";
    for node in 0..nodes {
        let _ = writeln!(text, "  - {{ name: t-{node}, paths: [[p{node}]] }}");
        for class in 1..classes {
            let _ = writeln!(text, "  - {{ name: c-{node}-{class}, weight: {}, paths: [[p{node}]] }}", 1 + class % 5);
        }
    }
    let members: Vec<String> = (0..nodes).map(|node| format!("t-{node}")).collect();
    let _ = writeln!(text, "aggregates:\n  - {{ name: t, rate: {rate_bps}bit/s, classes: [{}] }}", members.join(", "));
    text
}

async fn put(client: &mut ControllerClient, text: String) -> anyhow::Result<()> {
    let file = v1::NetworkFile { name: "bench".to_owned(), dry_run: false, revision: 0 };
    let bytes = text.as_bytes().chunks(CHUNK_BYTES).map(|chunk| v1::network_part::Part::Bytes(chunk.to_vec()));
    let parts: Vec<_> = std::iter::once(v1::network_part::Part::File(file)).chain(bytes).collect();
    let parts = tokio_stream::iter(parts.into_iter().map(|part| v1::NetworkPart { part: Some(part) }));
    match client.put_network(parts).await?.into_inner().outcome {
        Some(v1::put_network_reply::Outcome::Change(_)) => Ok(()),
        Some(v1::put_network_reply::Outcome::Diagnostics(found)) => bail!("{}", found.text),
        None => bail!("an empty answer"),
    }
}

/// What a process has taken of processors; the kernel counts in 10 ms.
fn cpu(id: u32) -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().map(|at| fields[*at].parse::<u64>().unwrap_or(0)).sum();
    Ok(Duration::from_millis(ticks * 10))
}

fn resident_mb(id: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? / 1_000)
}
