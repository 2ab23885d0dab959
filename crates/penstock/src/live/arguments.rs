// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a person may type about a live data plane.

use crate::network::arguments::{CONTROLLER_DEFAULT, Metrics, Tls, parse_metrics};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use penstock_api::SOCKET_DEFAULT;
use penstock_policy::diagnostics::Problem;
use penstock_policy::units::{parse_rate, parse_time};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Between readings, as the API has it.
const INTERVAL_MIN_NS: u64 = 100_000_000;
const INTERVAL_MAX_NS: u64 = 3_600_000_000_000;

/// How to reach the daemon.
#[derive(Debug, Args)]
pub struct Client {
    /// Socket of the daemon
    #[arg(long, value_name = "PATH", default_value = SOCKET_DEFAULT)]
    pub socket: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Run the daemon that keeps a policy in force on this machine
///
/// It answers the other commands on a unix socket, remembers the policy and what was changed at run time, and serves metrics.
/// When it stops, what is in force stays in force; when it starts, it takes that over. Only `penstock down` takes it out.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("attends").args(["controllers", "with_controller"])), after_help = "Examples:
  penstock node
  penstock node --metrics 127.0.0.1:9100 --metrics-limits 'down/vip/*'
  penstock node --name sw1 --with-controller
  penstock node --name sw1 --controller 10.0.0.1:9474,10.0.0.2:9474
  penstock node --dataplane stub --socket /tmp/p.sock --state /tmp/p   (no root)")]
pub struct Node {
    /// Where the other commands find it
    #[arg(long, value_name = "PATH", default_value = SOCKET_DEFAULT)]
    pub socket: PathBuf,
    /// Folder of its store, created if missing
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/penstock")]
    pub state: PathBuf,
    /// Where Prometheus metrics are served, or `off`
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9473", value_parser = parse_metrics)]
    pub metrics: Metrics,
    /// Limits that metrics always tell about: a part of their names, or a pattern with `*`
    #[arg(long, value_name = "PATTERN")]
    pub metrics_limits: Option<String>,
    /// Limits in one answer of metrics
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    pub metrics_limits_max: u64,
    /// Folder of a BPF file system where the kernel's part is kept, so that it goes on when the daemon stops
    #[arg(long, value_name = "FOLDER", default_value = penstock_dataplane::xdp::PINS)]
    pub pins: PathBuf,
    /// Network namespace that the policy's devices are in, as `ip netns list` names it
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Whether each limit is counted by itself; without this, up to 131,072 rows are
    #[arg(long, value_name = "BOOL")]
    pub count_limits: Option<bool>,
    /// Controllers to attend, each HOST:PORT: one of them leads, and lends this node its limits
    #[arg(long = "controller", value_name = "ADDRESS", value_delimiter = ',', value_parser = parse_controller)]
    pub controllers: Vec<String>,
    /// This node as the network file calls it; without this, the machine's name
    #[arg(long, value_name = "NAME", requires = "attends")]
    pub name: Option<String>,
    /// Run a controller inside of this daemon and attend it: for one machine. Its store is in the folder of the state
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = CONTROLLER_DEFAULT, conflicts_with = "controllers")]
    pub with_controller: Option<SocketAddr>,
    #[command(flatten)]
    pub tls: Tls,
    /// What enforces the policy; `stub` does not: it is for trying out commands without root and without packets
    #[arg(long, value_name = "NAME", default_value = "xdp", hide = true)]
    pub dataplane: Dataplane,
}

/// What enforces the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Dataplane {
    /// The kernel.
    Xdp,
    /// Nobody: everything but packets.
    Stub,
}

fn parse_controller(text: &str) -> Result<String, String> {
    let is_address =
        |(host, port): (&str, &str)| !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok();
    match text.rsplit_once(':') {
        Some(parts) if is_address(parts) => Ok(text.to_owned()),
        _ => Err("a name or an address and a port, such as 10.0.0.1:9474 or [::1]:9474".to_owned()),
    }
}

/// Put a policy into force where none is
#[derive(Debug, Args)]
#[command(after_help = "Example: penstock up /etc/penstock/policy.yaml")]
pub struct Up {
    /// Policy file (YAML or JSON)
    pub policy: PathBuf,
    #[command(flatten)]
    pub client: Client,
}

/// Take the policy out of force and leave the interfaces as they were found
///
/// The daemon forgets the policy and what was changed at run time.
#[derive(Debug, Args)]
#[command(after_help = "Example: penstock down")]
pub struct Down {
    #[command(flatten)]
    pub client: Client,
}

/// Put a policy into the place of the one in force, in one step, and print the difference
///
/// What stays keeps its state: the queue of a limit goes on, also at another rate. When anything fails, the old policy stays in
/// force. Limits that were changed at run time stay changed as long as the policy has them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  penstock reload /etc/penstock/policy.yaml --dry-run
  penstock reload /etc/penstock/policy.yaml")]
pub struct Reload {
    /// Policy file (YAML or JSON)
    pub policy: PathBuf,
    /// Print the difference, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub client: Client,
}

/// Print what is in force
#[derive(Debug, Args)]
#[command(after_help = "Example: penstock status")]
pub struct Status {
    #[command(flatten)]
    pub client: Client,
}

/// Watch what classes get, in the terminal
///
/// `?` lists the keys. Where standard output is no terminal it prints one table and ends. With --json it prints every reading
/// as a line of JSON; the first one has counters and no rates.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  penstock top
  penstock top --once --interval 5s
  penstock top --json | jq '.classes[] | [.path, .rates.passed_bps]'")]
pub struct Top {
    /// Between readings, from 100ms to 1h
    #[arg(long = "interval", value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval_ns: u64,
    /// Print the rates of one interval and end
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub client: Client,
}

/// Print why a tenant gets what it gets: link, class and limit, level by level
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  penstock explain acme
  penstock explain 10.1.0.9
  penstock explain down/tenants/acme --json")]
pub struct Explain {
    /// Name of a link, a class or a limit, or an address
    #[arg(value_name = "NAME-OR-ADDRESS")]
    pub subject: String,
    #[command(flatten)]
    pub client: Client,
}

/// List and change limits while traffic flows
///
/// A limit is a class's own, LINK/CLASS, or a row of its limits file, LINK/CLASS/ROW; the last part alone will do when only
/// one limit is called so. Changes survive a restart of the daemon, and a reload as long as their row exists.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  penstock limits list acme
  penstock limits set acme 50Mbit/s
  penstock limits export > tenants.csv")]
pub enum Limits {
    List(List),
    Get(Get),
    Set(Set),
    Add(Box<Add>),
    Del(Del),
    Import(Import),
    Export(Export),
}

/// List limits
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  penstock limits list
  penstock limits list 'down/tenants/a*' --count 1000
  penstock limits list --changed")]
pub struct List {
    /// Part of the name, or a pattern with `*`
    #[arg(value_name = "PART", default_value = "", hide_default_value = true)]
    pub filter: String,
    /// Only what was changed at run time
    #[arg(long)]
    pub changed: bool,
    /// How many to list at most
    #[arg(long, default_value_t = 100, conflicts_with = "all")]
    pub count: u64,
    /// How many to leave out at the beginning
    #[arg(long, default_value_t = 0)]
    pub offset: u64,
    /// List all of them
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub client: Client,
}

/// Print one limit as it is now
#[derive(Debug, Args)]
#[command(after_help = "Example: penstock limits get acme")]
pub struct Get {
    /// Name of the limit
    pub name: String,
    #[command(flatten)]
    pub client: Client,
}

/// Give a limit another rate
#[derive(Debug, Args)]
#[command(after_help = "Example: penstock limits set acme 50Mbit/s")]
pub struct Set {
    /// Name of the limit
    pub name: String,
    /// Its rate from now on
    #[arg(value_parser = rate)]
    pub rate: u64,
    #[command(flatten)]
    pub client: Client,
}

/// Add a row to the limits of a class
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  penstock limits add delta --dst 10.1.3.0/24 --rate 50Mbit/s
  penstock limits add dns --five-tuple 'udp 10.0.0.1:53 -> 10.1.2.3:1000' --rate 1Mbit/s --class down/flows")]
pub struct Add {
    /// Name of the row
    pub name: String,
    /// Its rate
    #[arg(long)]
    pub rate: String,
    /// Class, when several have limits files
    #[arg(long, default_value = "", hide_default_value = true)]
    pub class: String,
    /// Destination: address or prefix
    #[arg(long)]
    pub dst: Option<String>,
    /// Source: address or prefix
    #[arg(long)]
    pub src: Option<String>,
    /// One direction of a connection
    #[arg(long)]
    pub five_tuple: Option<String>,
    /// VLAN identifier
    #[arg(long)]
    pub vlan: Option<String>,
    /// VXLAN or GENEVE network identifier
    #[arg(long)]
    pub vni: Option<String>,
    /// GTP-U tunnel endpoint
    #[arg(long)]
    pub teid: Option<String>,
    /// Green depth, such as 17.5ms or 64KB
    #[arg(long)]
    pub burst: Option<String>,
    /// Yellow depth
    #[arg(long)]
    pub excess: Option<String>,
    /// drop, mark or shape
    #[arg(long)]
    pub on_excess: Option<String>,
    /// window, rfc2697, rfc2698 or rfc4115
    #[arg(long)]
    pub meter: Option<String>,
    /// Peak rate of rfc2698
    #[arg(long)]
    pub peak: Option<String>,
    /// Excess rate of rfc4115
    #[arg(long)]
    pub excess_rate: Option<String>,
    /// shape: the longest wait
    #[arg(long)]
    pub horizon: Option<String>,
    /// shape: the most bytes that wait
    #[arg(long)]
    pub backlog: Option<String>,
    /// shape: who waits longer gets ECN CE
    #[arg(long)]
    pub ce_threshold: Option<String>,
    #[command(flatten)]
    pub client: Client,
}

/// Take a row away
#[derive(Debug, Args)]
#[command(after_help = "Example: penstock limits del delta")]
pub struct Del {
    /// Name of the row
    pub name: String,
    #[command(flatten)]
    pub client: Client,
}

/// Set and add rows as a limits file says, all or none; rows that it does not have stay as they are
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  penstock limits import tenants.csv --dry-run
  penstock limits import - --class down/tenants < tenants.csv")]
pub struct Import {
    /// Limits file: name, key columns, rate; `-` is standard input
    pub file: PathBuf,
    /// Class, when several have limits files
    #[arg(long, default_value = "", hide_default_value = true)]
    pub class: String,
    /// Print the difference, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub client: Client,
}

/// Print the rows of a class as a limits file, as they are now
#[derive(Debug, Args)]
#[command(after_help = "Example: penstock limits export > tenants.csv")]
pub struct Export {
    /// Class, when several have limits files
    #[arg(long, default_value = "", hide_default_value = true)]
    pub class: String,
    /// Socket of the daemon
    #[arg(long, value_name = "PATH", default_value = SOCKET_DEFAULT)]
    pub socket: PathBuf,
}

/// A rate as in a policy: a bare number is an error.
fn rate(text: &str) -> Result<u64, String> {
    parse_rate(text).map_err(|Problem { message, help }| format!("{message}; {help}"))
}

/// A time that readings may be apart, ns.
fn interval(text: &str) -> Result<u64, String> {
    let time_ns = parse_time(text).map_err(|Problem { message, help }| format!("{message}; {help}"))?;
    if (INTERVAL_MIN_NS..=INTERVAL_MAX_NS).contains(&time_ns) {
        return Ok(time_ns);
    }
    Err("an interval is from 100ms to 1h".to_owned())
}
