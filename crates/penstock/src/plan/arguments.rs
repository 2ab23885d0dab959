// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a person may type after `penstock plan`.

use clap::{ArgGroup, Args, ValueEnum};
use penstock_alloc::topology::Generator;
use penstock_alloc::what_if::Edit;
use penstock_policy::diagnostics::Problem;
use std::path::PathBuf;

/// Share out a whole network: which rate each class may have at which port
///
/// Reads ports, classes with their paths, priorities, weights and limits, and prints who gets what, where limits go, and which ports hold whom
/// back. Needs neither root nor switches.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").required(true).args(["network", "generate"])), after_help = "Examples:
  penstock plan examples/network.yaml
  penstock plan examples/network.yaml --compare local,edge --svg network.svg
  penstock plan examples/network.yaml --what-if \"remove port l1-s1\"
  penstock plan examples/aggregate.yaml
  penstock plan tomorrow.yaml --against today.yaml --json
  penstock plan --generate fat-tree:k=8,tenants=4 > network.yaml

Words of --what-if:
  remove port|switch|class|aggregate NAME
  add path PORT,PORT.. to class NAME      remove path PORT,PORT.. of class NAME
  set weight|priority of class NAME to NUMBER
  set limit of class NAME to RATE [hard]|none
  set demand of class NAME to RATE|none
  set rate of port|aggregate NAME to RATE

Words of --generate, KIND[:KEY=VALUE,..], with what holds when nothing is said:
  leaf-spine   leaves=4,spines=2,hosts=4 (of a leaf)
  fat-tree     k=4
  dumbbell     hosts=2 (of a side)
  ixp          members=24,edges=4,cores=2
  each         rate=100Gbit/s (ixp: 1, 10 or 100Gbit/s), uplink=100Gbit/s
               (ixp: 400Gbit/s), paths=COUNT (of a pair at most; all shortest),
               tenants=COUNT (classes that pairs are dealt to; a class each),
               weights=1-1, priorities=1, seed=1
  traffic=     permutation | all-to-all | random,pairs=COUNT
               | incast,senders=COUNT | gravity,load=70 (percent)

Exit status: 0, 1 if hard limits ask for more than a port has, 2 for bad input.")]
pub struct Plan {
    /// Network file (YAML or JSON); `-` is standard input
    pub network: Option<PathBuf>,
    /// Print a network file for experiments instead
    #[arg(long, value_name = "KIND[:KEY=VALUE,..]", value_parser = generator, conflicts_with_all =
        ["compare", "json", "edits", "against", "svg", "top"])]
    pub generate: Option<Generator>,
    /// Plan beside what switches do that know of no others, and beside limiters at the edge
    #[arg(long, value_delimiter = ',', value_name = "SCHEME,..")]
    pub compare: Vec<Baseline>,
    /// Plan what would be if, and show what changes; may be repeated, one after the other
    #[arg(long = "what-if", value_name = "WORDS", value_parser = edit)]
    pub edits: Vec<Edit>,
    /// Show what changes from this network
    #[arg(long, value_name = "NETWORK")]
    pub against: Option<PathBuf>,
    /// Draw the network: what flows where, and which ports are bottlenecks
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Rows of each table
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub top: usize,
    /// Print the plan as JSON
    #[arg(long)]
    pub json: bool,
}

/// What a plan can be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Baseline {
    /// Each port for itself.
    Local,
    /// A limiter for each pair of sender and receiver.
    Edge,
}

fn generator(text: &str) -> Result<Generator, String> {
    text.parse().map_err(sentence)
}

fn edit(text: &str) -> Result<Edit, String> {
    text.parse().map_err(sentence)
}

fn sentence(problem: Problem) -> String {
    let Problem { message, help } = problem;
    if help.is_empty() { message } else { format!("{message}; {help}") }
}
