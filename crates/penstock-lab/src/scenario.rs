// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a scenario file says. `docs/howto/lab.md` explains it to those who write one.

use crate::computation::Computation;
use crate::nodes::spec::{Lent, Network, Own};
use crate::quantity::{Percent, Rate, Size, Time};
use crate::stats::real;
use crate::verdict::Rule;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The version of the format that this lab reads.
pub const VERSION: u32 = 1;
/// Most hosts on a side, and most tenants: their addresses have one octet each.
pub const HOSTS_MAX: u32 = 32;

/// One claim of a paper, and how it is tried here. All of its `$names` are replaced: it is one point of the sweep.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct Scenario {
    /// Version of the format.
    #[serde(rename = "penstock-lab")]
    pub penstock_lab: u32,
    /// What is claimed, in one sentence.
    pub claim: String,
    /// Where it is claimed.
    pub paper: Paper,
    /// What differs from the paper's experiment, and how rates, times and buffers were scaled.
    pub scaling: String,
    /// What is varied; the first one is the x axis.
    #[serde(default)]
    pub sweep: Vec<Variable>,
    /// What is compared.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Real traffic.
    pub traffic: Option<Traffic>,
    /// Or something that is computed.
    pub compute: Option<Computation>,
    /// Or several nodes with one policy.
    pub network: Option<Network>,
    /// How long, and how often.
    #[serde(default)]
    pub effort: Efforts,
    /// The paper's numbers.
    #[serde(default)]
    pub paper_says: Vec<PaperNumber>,
    /// When the claim holds.
    pub holds_if: Vec<Rule>,
    /// What is drawn.
    #[serde(default)]
    pub figure: Option<Figure>,
}

/// A place in a paper.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Its name.
    pub name: String,
    /// The figure or table.
    pub figure: String,
    /// The section.
    pub section: String,
}

/// A variable and its values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    /// Used as `$name`.
    pub name: String,
    /// As they stand in the file.
    pub values: Vec<String>,
}

/// One of the things that are compared.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// What limits the traffic.
    pub enforce: Enforce,
}

/// What limits the traffic.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforce {
    /// Nothing: packets are only forwarded.
    Nothing,
    /// Penstock, by a policy.
    Penstock(Penstock),
    /// MeterRL.
    Meterrl(Meter),
    /// Linux's token bucket filter, a shaper, for all that goes to a receiver.
    Tbf(Queue),
    /// Linux's hierarchical token bucket, a shaper with a class a tenant.
    Htb(Htb),
    /// In a network: limits that controllers lend.
    Lent(Lent),
    /// In a network: what nodes have by themselves.
    Own(Own),
}

/// Penstock's part.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Penstock {
    /// The policy.
    pub policy: String,
    /// Other policies that take its place while traffic flows.
    #[serde(default)]
    pub changes: Vec<Change>,
}

/// A policy that takes the place of another.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Since the traffic's start.
    pub at: Time,
    /// The policy.
    pub policy: String,
}

/// MeterRL's parameters.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct Meter {
    /// CIR, the same for each of `tenants`.
    pub rate: Rate,
    /// CBS.
    pub burst: Size,
    /// EBS as a share of CBS; without it, Algorithm 1.
    pub excess_share: Option<Percent>,
    /// When tokens come.
    pub interval: Time,
    /// The largest probability of the random drop of yellow packets.
    #[serde(default)]
    pub early_drop: Option<Percent>,
    /// Who has a limit of this kind.
    pub tenants: Vec<String>,
}

/// A queue that drains at a rate.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// How fast.
    pub rate: Rate,
    /// How much it holds.
    pub queue: Size,
}

/// HTB's parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Htb {
    /// Rate and ceiling of each tenant's class, and its queue.
    pub tenants: BTreeMap<String, Queue>,
}

/// Hosts, and what they send.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct Traffic {
    /// Hosts that send.
    #[serde(default = "one")]
    pub senders: u32,
    /// Hosts that receive.
    #[serde(default = "one")]
    pub receivers: u32,
    /// How the middle forwards.
    pub forward: Forward,
    /// The link to each receiver: a rate and the queue before it. Without it, as fast as the machine goes.
    pub link: Option<Queue>,
    /// What the round trip is longer by, for a wire between the middle and each receiver; none at 0.
    pub round_trip: Option<Time>,
    /// How long a receiver collects packets before it looks at them, as network cards moderate their interrupts: it makes the
    /// round trip longer. At once without it.
    pub coalesce: Option<Time>,
    /// Width of the bins of throughput.
    #[serde(default = "second")]
    pub bin: Time,
    /// What is left out of all numbers at the start.
    #[serde(default)]
    pub warmup: Time,
    /// How often congestion windows are looked at; never without it.
    pub sample_windows: Option<Time>,
    /// How often the queue before the receivers is looked at; never without it.
    pub sample_queue: Option<Time>,
    /// Whether what arrives at the receivers is counted, a millisecond exactly.
    #[serde(default)]
    pub sample_arrivals: bool,
    /// Whether Penstock's shares are looked at all the time: how long after a change of who sends they are right.
    #[serde(default)]
    pub watch_shares: bool,
    /// Who sends.
    pub tenants: Vec<Tenant>,
    /// Parts of the time that get lines of their own in the results.
    #[serde(default)]
    pub phases: Vec<Phase>,
}

/// A part of the time, the same for all tenants.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Follows the tenant's name in the results.
    pub name: String,
    /// When it begins.
    pub from: Time,
    /// When it ends.
    pub to: Time,
    /// What saturation is a share of, in the place of the tenant's limit.
    pub limit: Option<Rate>,
}

fn one() -> u32 {
    1
}

fn second() -> Time {
    Time(1_000_000_000)
}

/// How the middle forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forward {
    /// The program redirects from a sender's device to its receiver's: a wire. Needs as many receivers as senders.
    Redirect,
    /// The kernel routes; there may be queues.
    Route,
}

/// Who sends, what, and under which limit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Also the name of its class in a policy.
    pub name: String,
    /// Its host, from 0.
    #[serde(default)]
    pub sender: u32,
    /// Whom it sends to, from 0.
    #[serde(default)]
    pub receiver: u32,
    /// Congestion control of both ends: reno, cubic, bbr, or dctcp.
    #[serde(default = "reno")]
    pub tcp: String,
    /// Whether its connections may use ECN. DCTCP always does.
    #[serde(default)]
    pub ecn: bool,
    /// The least time until TCP sends again what was not acknowledged; the kernel's 200 ms without it.
    pub rto_min: Option<Time>,
    /// What saturation is a share of.
    pub limit: Option<Rate>,
    /// When it starts.
    #[serde(default)]
    pub start: Time,
    /// When it ends, of iperf3's loads; with the traffic without it.
    pub stop: Option<Time>,
    /// What it sends.
    pub load: Load,
}

fn reno() -> String {
    "reno".to_owned()
}

/// What is sent.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// iperf3 over TCP.
    Tcp(TcpLoad),
    /// iperf3 over UDP, which does not care.
    Udp(UdpLoad),
    /// redis-benchmark at the receiver asks a Redis server at the sender.
    Redis(RedisLoad),
    /// ab at the receiver asks an Apache server at the sender.
    Apache(ApacheLoad),
    /// sockperf sends a message to the receiver and back, and then the next.
    Sockperf(SockperfLoad),
}

/// sockperf. There is nothing to choose.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SockperfLoad {}

/// iperf3 over TCP.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpLoad {
    /// Connections.
    #[serde(default = "one")]
    pub flows: u32,
    /// Socket buffers of each, and so the largest window; the kernel's choice without it.
    pub window: Option<Size>,
}

/// iperf3 over UDP.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpLoad {
    /// Flows.
    #[serde(default = "one")]
    pub flows: u32,
    /// Of all flows together.
    pub rate: Rate,
    /// How much more than that, of it.
    pub over: Option<Percent>,
    /// Payload of a packet.
    pub size: Size,
    /// Whether packets come evenly: its sender's device spaces them, and not iperf3, which sends what a millisecond has at once.
    #[serde(default)]
    pub even: bool,
}

/// Of Ethernet, IPv4 and UDP.
const UDP_HEADERS_BYTES: u64 = 42;

impl UdpLoad {
    /// What is offered, headers included, bit/s.
    #[must_use]
    pub fn wire_bps(&self) -> f64 {
        real(self.offered_bps()) * real(self.size.0 + UDP_HEADERS_BYTES) / real(self.size.0)
    }

    /// What is offered, payload, bit/s.
    #[must_use]
    pub fn offered_bps(&self) -> u64 {
        let over = self.over.map_or(0, |share| (u128::from(self.rate.0) * u128::from(share.0)) >> 32);
        self.rate.0 + u64::try_from(over).unwrap_or(0)
    }
}

/// redis-benchmark.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedisLoad {
    /// Connections.
    pub clients: u32,
    /// Requests in all.
    pub requests: u32,
    /// Bytes of a value.
    pub size: Size,
}

/// ab.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApacheLoad {
    /// Instances of ab.
    pub instances: u32,
    /// Connections of each.
    pub connections: u32,
    /// Bytes of the page.
    pub size: Size,
}

/// How long, and how often: in a normal run and with `--full`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Efforts {
    /// A normal run.
    pub quick: Effort,
    /// As in the paper.
    pub full: Effort,
}

impl Default for Efforts {
    fn default() -> Self {
        let once = Effort { time: second(), runs: 1 };
        Self { quick: once, full: once }
    }
}

/// How long, and how often.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effort {
    /// How long traffic flows, warm-up included.
    pub time: Time,
    /// How often each point is run.
    pub runs: u32,
}

/// A number of the paper, to stand beside ours.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperNumber {
    /// What was measured.
    pub metric: String,
    /// Of which series; all without it.
    pub series: Option<String>,
    /// Whose; all without it.
    pub tenant: Option<String>,
    /// At which point; all without it.
    #[serde(default)]
    pub at: BTreeMap<String, String>,
    /// As people read it: `95.2` or `91.4 to 95.2`.
    pub says: String,
}

/// What is drawn.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// A metric over the first variable, with the spread of a second metric as bars.
    Sweep(SweepFigure),
    /// What was sampled, over time, a panel a series.
    Time(TimeFigure),
}

/// A metric over the sweep.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepFigure {
    /// What is drawn.
    pub metric: String,
    /// Half of the bars' length, if there are bars.
    pub spread: Option<String>,
}

/// Samples over time.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeFigure {
    /// What is drawn.
    pub samples: String,
}
