// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a person may type.

use crate::live::arguments as live;
use crate::network::arguments as network;
use clap::{ArgGroup, Args, Parser, Subcommand};
use penstock_policy::diagnostics::Problem;
use penstock_policy::units::parse_time;
use std::path::PathBuf;

/// Penstock decides, for every packet that crosses a Linux box, whether its owner may send it now.
#[derive(Debug, Parser)]
#[command(name = "penstock", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Check(Check),
    Replay(Box<Replay>),
    Plan(Box<crate::plan::Plan>),
    Lab(crate::lab::Lab),
    Up(live::Up),
    Down(live::Down),
    Reload(live::Reload),
    Status(live::Status),
    Top(live::Top),
    Explain(live::Explain),
    /// List and change limits while traffic flows
    Limits {
        #[command(subcommand)]
        command: live::Limits,
    },
    Node(live::Node),
    Controller(Box<network::Controller>),
    /// Put, show and watch over the network that a controller keeps
    Network {
        #[command(subcommand)]
        command: network::Network,
    },
    /// Make certificates for nodes, people and controllers
    Ca {
        #[command(subcommand)]
        command: crate::ca::Ca,
    },
    /// Print a completion script for a shell
    #[command(after_help = "Example: penstock completions bash > /etc/bash_completion.d/penstock")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder
    #[command(after_help = "Example: penstock man /usr/local/share/man/man1")]
    Man {
        /// Folder, created if missing
        folder: PathBuf,
    },
}

/// Validate a policy; print its tree and what it compiles to
#[derive(Debug, Args)]
#[command(after_help = "Example: penstock check examples/first.yaml")]
pub struct Check {
    /// Policy file (YAML or JSON)
    pub policy: PathBuf,
    /// Print JSON instead of a tree
    #[arg(long)]
    pub json: bool,
}

/// Run a capture or generated traffic through a policy, in virtual time
///
/// Needs no root: every packet is parsed, classified, limited and counted by the code that a kernel data plane runs.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").required(true).args(["input", "workload"])), after_help = "Examples:
  penstock replay examples/first.yaml --in capture.pcap
  penstock replay examples/first.yaml --in capture.pcap.gz --out passed.pcap --plot rates.svg
  penstock replay examples/tenants.yaml --workload examples/workload.yaml --json
  penstock replay before.yaml --in capture.pcap --reload 2s=after.yaml")]
pub struct Replay {
    /// Policy file (YAML or JSON)
    pub policy: PathBuf,
    /// Capture to read: pcap or pcapng, also gzipped; `-` is standard input
    #[arg(long = "in", value_name = "CAPTURE")]
    pub input: Option<PathBuf>,
    /// Generate traffic from this workload file instead
    #[arg(long, value_name = "FILE")]
    pub workload: Option<PathBuf>,
    /// Put another policy into its place at a time since the first packet; limits keep their states. May be repeated, in order
    #[arg(long = "reload", value_name = "TIME=POLICY", value_parser = parse_reload)]
    pub reloads: Vec<Reload>,
    /// Offer packets to this link only; otherwise to all, in the policy's order, until one has a class for it
    #[arg(long, value_name = "NAME")]
    pub link: Option<String>,
    /// Write the packets that passed, marked ones marked; `-` is standard output, `.gz` is compressed
    #[arg(long, value_name = "CAPTURE")]
    pub out: Option<PathBuf>,
    /// Write one line a packet: class, limit, colour, verdict, reason, departure
    #[arg(long, value_name = "CSV")]
    pub verdicts: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Draw offered, passed, marked and dropped rates over time
    #[arg(long, value_name = "SVG")]
    pub plot: Option<PathBuf>,
    /// Draw these classes (by path) or limits (by name) instead of the busiest ones; may be repeated
    #[arg(long = "plot-only", value_name = "NAME", requires = "plot")]
    pub plot_only: Vec<String>,
    /// Limits to print in the table, most dropped first
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub top: usize,
    /// Seed of random early drop and of the tables' hashes; the same seed gives the same result
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// A policy that takes the place of the one before it.
#[derive(Debug, Clone)]
pub struct Reload {
    /// When, since the first packet.
    pub time_ns: u64,
    /// As it was written.
    pub time: String,
    pub policy: PathBuf,
}

fn parse_reload(text: &str) -> Result<Reload, String> {
    let parts = text.split_once('=').filter(|(_, policy)| !policy.is_empty());
    let (time, policy) = parts.ok_or("it takes a time and a policy, such as `2s=after.yaml`")?;
    let time_ns = parse_time(time).map_err(|Problem { message, help }| format!("{message}; {help}"))?;
    Ok(Reload { time_ns, time: time.to_owned(), policy: policy.into() })
}
