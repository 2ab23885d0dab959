// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a person may type about a controller and its network.

use clap::{ArgGroup, Args, Subcommand};
use penstock_controller::AGGREGATES_MAX;
use penstock_policy::diagnostics::Problem;
use penstock_policy::units::parse_time;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where a controller listens unless told otherwise.
pub const CONTROLLER_DEFAULT: &str = "127.0.0.1:9474";

/// Certificates, where others than this machine are spoken to.
#[derive(Debug, Clone, Args)]
pub struct Tls {
    /// Certificate of the CA that others' certificates are signed by (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["tls_cert", "tls_key"])]
    pub tls_ca: Option<PathBuf>,
    /// Own certificate (PEM); its name says who this is and what it may do
    #[arg(long, value_name = "FILE", requires_all = ["tls_ca", "tls_key"])]
    pub tls_cert: Option<PathBuf>,
    /// Key of the own certificate (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["tls_ca", "tls_cert"])]
    pub tls_key: Option<PathBuf>,
}

/// Where metrics are served.
#[derive(Debug, Clone, Copy)]
pub struct Metrics(pub Option<SocketAddr>);

/// An address, or `off`.
pub fn parse_metrics(text: &str) -> Result<Metrics, String> {
    match text {
        "off" => Ok(Metrics(None)),
        _ => text
            .parse()
            .map(|address| Metrics(Some(address)))
            .map_err(|_| "an IP address and a port, such as 127.0.0.1:9473 or [::1]:9473, or `off`".to_owned()),
    }
}

/// Run a controller: it keeps one policy for a whole network, and lends each node its limits
///
/// Several may run at once, on the same etcd: one of them leads, and another one takes over within seconds when it is gone. A node attends them
/// with `penstock node --controller`. The network is put there with `penstock network put`. Other machines than this one are only served
/// with certificates (`penstock ca`).
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("store").required(true).args(["etcd", "state"]))]
#[command(after_help = "Examples:
  penstock controller --state /var/lib/penstock/controller --metrics 127.0.0.1:9475
  penstock controller --etcd http://127.0.0.1:2379 --name c1
  penstock controller --etcd http://10.0.0.1:2379,http://10.0.0.2:2379 --listen 10.0.0.7:9474 \\
      --tls-ca ca.crt --tls-cert c1.crt --tls-key c1.key")]
pub struct Controller {
    /// Addresses of etcd, for several replicas
    #[arg(long, value_name = "URL,..", value_delimiter = ',')]
    pub etcd: Vec<String>,
    /// Folder of a store of its own, for one replica; created if missing
    #[arg(long, value_name = "FOLDER")]
    pub state: Option<PathBuf>,
    /// Name among the replicas; without this, the machine's
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Where nodes and people find it
    #[arg(long, value_name = "ADDRESS:PORT", default_value = CONTROLLER_DEFAULT)]
    pub listen: SocketAddr,
    /// Where others are told to find it, if that is not where it listens
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<String>,
    /// Which network of this etcd; each has its replicas
    #[arg(long, value_name = "NAME", default_value = "penstock", requires = "etcd")]
    pub cluster: String,
    /// How long limits are lent for; a node that has lost its controllers falls back to its safe rates then
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_lease)]
    pub lease: u64,
    /// Where Prometheus metrics are served, or `off`
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "off", value_parser = parse_metrics)]
    pub metrics: Metrics,
    /// Aggregates in one answer of metrics
    #[arg(long, value_name = "COUNT", default_value_t = AGGREGATES_MAX)]
    pub metrics_aggregates_max: usize,
    #[command(flatten)]
    pub tls: Tls,
    /// Certificate of etcd's CA (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd")]
    pub etcd_ca: Option<PathBuf>,
    /// Own certificate towards etcd (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["etcd", "etcd_key"])]
    pub etcd_cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["etcd", "etcd_cert"])]
    pub etcd_key: Option<PathBuf>,
}

/// Shortest and longest lease: nodes report every tenth of a second, and what was lent long ago holds long.
const LEASE_NS: (u64, u64) = (500_000_000, 600_000_000_000);

fn parse_lease(text: &str) -> Result<u64, String> {
    let time_ns = parse_time(text).map_err(|Problem { message, help }| format!("{message}; {help}"))?;
    match (LEASE_NS.0..=LEASE_NS.1).contains(&time_ns) {
        true => Ok(time_ns),
        false => Err("a lease is from 500ms to 600s".to_owned()),
    }
}

/// How to reach the controller.
#[derive(Debug, Args)]
pub struct Client {
    /// Addresses of its replicas; any of them knows the others
    #[arg(long, value_name = "HOST:PORT,..", value_delimiter = ',', default_value = CONTROLLER_DEFAULT)]
    pub controller: Vec<String>,
    #[command(flatten)]
    pub tls: Tls,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What to do with the network that a controller keeps.
#[derive(Debug, Subcommand)]
pub enum Network {
    Put(Put),
    Show(Show),
    Status(Status),
    Audit(Audit),
}

/// Put a network into the place of the one there is, in one step, and print the difference
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  penstock network put network.yaml --dry-run
  penstock network put network.yaml
  penstock network put network.yaml --if-revision 7")]
pub struct Put {
    /// Network file (YAML or JSON); `-` is standard input
    pub network: PathBuf,
    /// Print the difference, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Only if the one there is has this revision
    #[arg(long, value_name = "REVISION", value_parser = clap::value_parser!(u64).range(1..))]
    pub if_revision: Option<u64>,
    #[command(flatten)]
    pub client: Client,
}

/// Print the network as it was put
#[derive(Debug, Args)]
#[command(after_help = "Example: penstock network show > network.yaml")]
pub struct Show {
    #[command(flatten)]
    pub client: Client,
}

/// Who leads, which nodes attend, what is lent
#[derive(Debug, Args)]
#[command(after_help = "Example: penstock network status")]
pub struct Status {
    /// Nodes to print, by name; 0: all
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub nodes: u64,
    #[command(flatten)]
    pub client: Client,
}

/// Who changed the network, and who was refused, newest first
#[derive(Debug, Args)]
#[command(after_help = "Example: penstock network audit --count 20")]
pub struct Audit {
    /// Entries to print
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub count: u64,
    #[command(flatten)]
    pub client: Client,
}
