// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same tree, ours and HTB's, between two interfaces: UDP that one CPU sends, judges and counts.

use crate::tree::Node;
use crate::{Arguments, number, spread};
use anyhow::Result;
use penstock_bench_shaper::network::{FRAME_BYTES, Network, run};
use penstock_dataplane::Dataplane;
use penstock_dataplane::xdp::{LoadOptions, Xdp};
use penstock_policy::limits_file::LimitsText;
use penstock_policy::{Plan, Policy, compile};
use std::path::Path;
use std::time::{Duration, Instant};

const PINS: &str = "/sys/fs/bpf/bench";
const LEAVES: u32 = 8;
const SETTLE: Duration = Duration::from_millis(500);
/// More than anybody can send.
const FLOOD_PPS: f64 = 1e9;
/// What is offered in all, of the link's rate: some leaves ask for less than their shares; nobody does.
const OFFERED: [f64; 2] = [1.2, 4.0];
const BITS: f64 = FRAME_BYTES as f64 * 8.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Wire,
    Ours,
    NoQdisc,
    Htb,
}

const KINDS: [(Kind, &str); 4] =
    [(Kind::Wire, "no shares (XDP)"), (Kind::Ours, "shares (XDP)"), (Kind::NoQdisc, "no qdisc"), (Kind::Htb, "HTB")];

fn name_of(ceiling: f64, rate: f64) -> String {
    if ceiling.is_finite() { format!(", ceiling: {:.0}bit/s", ceiling * rate) } else { String::new() }
}

fn plan(rate: f64, shares: bool) -> Result<Plan> {
    let tree = Node::link(1.0, 1.0);
    let mut leaf = 0;
    let mut classes = Vec::new();
    for (inner, index) in tree.children.iter().zip(0..) {
        let children: Vec<String> = inner
            .children
            .iter()
            .map(|child| {
                leaf += 1;
                let ceiling = name_of(child.ceiling, rate);
                format!(
                    "{{ name: l{leaf}, match: [ {{ dst: 10.0.0.{} }} ], weight: {}{ceiling} }}",
                    leaf - 1,
                    child.weight
                )
            })
            .collect();
        classes.push(format!("{{ name: i{index}, weight: {}, children: [ {} ] }}", inner.weight, children.join(", ")));
    }
    let classes = if shares { classes.join(", ") } else { "{ name: none, match: [ { dst: 1.1.1.1 } ] }".to_owned() };
    let text = format!(
        "penstock: 1
ports: {{ left: {{ device: left, rate: 100Gbit/s }}, right: {{ device: right, rate: 100Gbit/s }} }}
forward: [ [ left, right ] ]
links: [ {{ name: down, port: right, rate: {rate:.0}bit/s, unmatched: pass, classes: [ {classes} ] }} ]
"
    );
    let none = |name: &str| Ok(LimitsText { name: name.to_owned(), ..LimitsText::default() });
    Ok(compile::compile(&Policy::parse("policy", &text)?, none)?)
}

/// Rates are what weights make of the link's; what is left over goes by quanta, which are as the weights.
fn add_htb(rate: f64) -> Result<()> {
    let tree = Node::link(1.0, 1.0);
    run("tc qdisc add dev right root handle 1: htb default ffff")?;
    let add = |parent: &str, minor: &str, rate_bps: f64, ceiling: f64, weight: f64| {
        let (ceil, quantum) = (if ceiling.is_finite() { ceiling * rate } else { rate }, 1000.0 * weight);
        let burst = |rate: f64| (rate / 8e3).max(2.0 * f64::from(FRAME_BYTES));
        run(&format!(
            "tc class add dev right parent 1:{parent} classid 1:{minor} htb rate {:.0}bit ceil {ceil:.0}bit burst {:.0} cburst {:.0} quantum {quantum:.0}",
            rate_bps.min(ceil),
            burst(rate_bps),
            burst(ceil)
        ))
    };
    add("", "100", rate, f64::INFINITY, 1.0)?;
    let mut leaf = 0;
    let weights = |node: &Node| node.children.iter().map(|child| child.weight).sum::<f64>();
    for (inner, index) in tree.children.iter().zip(1..) {
        let of_inner = rate * inner.weight / weights(&tree);
        let parent = format!("10{index}");
        add("100", &parent, of_inner, f64::INFINITY, inner.weight)?;
        for child in &inner.children {
            leaf += 1; // class_frame: the destination's lowest bits and one
            let minor = format!("{leaf:x}");
            add(&parent, &minor, of_inner * child.weight / weights(inner), child.ceiling, child.weight)?;
            run(&format!("tc qdisc add dev right parent 1:{minor} pfifo limit 100"))?;
        }
    }
    Ok(())
}

/// What stands between `left` and `right`, until it is dropped.
struct Between<'a> {
    network: &'a Network,
    xdp: Option<Xdp>,
    kind: Kind,
}

impl<'a> Between<'a> {
    fn start(network: &'a Network, kind: Kind, rate: f64) -> Result<Self> {
        let mut xdp = None;
        if matches!(kind, Kind::Wire | Kind::Ours) {
            let mut ours = Xdp::open(Path::new(PINS), LoadOptions::default())?;
            ours.apply(plan(rate, kind == Kind::Ours)?)?;
            xdp = Some(ours);
        } else {
            if kind == Kind::Htb {
                add_htb(rate)?;
            }
            network.route(true)?;
        }
        Ok(Self { network, xdp, kind })
    }
}

impl Drop for Between<'_> {
    fn drop(&mut self) {
        if let Some(xdp) = &mut self.xdp {
            let _ = xdp.down();
            return;
        }
        let _ = self.network.route(false);
        if self.kind == Kind::Htb {
            let _ = run("tc qdisc del dev right root");
        }
    }
}

/// What one measurement gave.
#[derive(Debug, Default, Clone)]
struct Measured {
    /// Of its CPU, for each frame that was sent.
    ns: f64,
    offered_pps: f64,
    /// Bits a second, by leaf.
    passed: Vec<f64>,
}

fn measure(network: &Network, pps: f64, time: Duration, spin_ns: f64) -> Result<Measured> {
    network.flood(LEAVES, pps, SETTLE)?;
    let (arrived, made, spins, start) = (network.arrived(LEAVES)?, network.made()?, network.spins()?, Instant::now());
    network.flood(LEAVES, pps, time)?;
    let seconds = start.elapsed().as_secs_f64();
    let made = number(network.made()? - made);
    let after = network.arrived(LEAVES)?;
    Ok(Measured {
        ns: (seconds * 1e9 - number(network.spins()? - spins) * spin_ns) / made,
        offered_pps: made / seconds,
        passed: after.iter().zip(&arrived).map(|(after, before)| number(after - before) * BITS / seconds).collect(),
    })
}

/// How long the sender takes to find that nothing is due.
fn spin_ns(network: &Network) -> Result<f64> {
    let (spins, start) = (network.spins()?, Instant::now());
    network.flood(1, 0.0, SETTLE)?;
    Ok(start.elapsed().as_secs_f64() * 1e9 / number(network.spins()? - spins))
}

/// How far leaves are from what is theirs, %: in the mean, and the furthest.
fn errors(exact: &Node, passed: &[f64]) -> [f64; 2] {
    let off: Vec<f64> =
        exact.leaves().iter().zip(passed).map(|(leaf, passed)| 100.0 * (passed / leaf.share - 1.0).abs()).collect();
    [off.iter().sum::<f64>() / number(off.len() as u64), off.iter().copied().fold(0.0, f64::max)]
}

pub fn beside_htb(all: &Arguments) -> Result<()> {
    let network = Network::new()?;
    let rate = all.link_pps * BITS;
    // By how much is offered, and kind.
    let mut paced = vec![vec![Vec::new(); KINDS.len()]; OFFERED.len()];
    let mut most = vec![Vec::new(); KINDS.len()];
    for round in 0..all.rounds {
        eprintln!("round {} of {}", round + 1, all.rounds);
        let spin_ns = spin_ns(&network)?;
        for (index, (kind, _)) in KINDS.iter().enumerate() {
            let between = Between::start(&network, *kind, rate)?;
            for (offered, rounds) in OFFERED.iter().zip(&mut paced) {
                rounds[index].push(measure(&network, offered * all.link_pps, all.time, spin_ns)?);
            }
            most[index].push(measure(&network, FLOOD_PPS, SETTLE, spin_ns)?.offered_pps / 1e6);
            drop(between);
        }
    }
    print(all, rate, &paced, most);
    Ok(())
}

fn print(all: &Arguments, rate: f64, paced: &[Vec<Vec<Measured>>], most: Vec<Vec<f64>>) {
    println!(
        "live: 2 classes of 4 leaves, {:.0} Mbit/s, frames of {FRAME_BYTES} B; errors are of leaves, against max-min of what was offered; medians of {} rounds",
        rate / 1e6,
        all.rounds
    );
    println!(
        "{:<16} {:>8} {:>8} {:>9} {:>11} {:>9} {:>9} {:>12}",
        "", "offered", "ns sent", "x HTB's", "of what can", "mean", "largest", "M/s at most"
    );
    println!(
        "{:<16} {:>8} {:>8} {:>9} {:>11} {:>9} {:>9} {:>12}",
        "", "x link", "at least", "", "pass", "error", "error", ""
    );
    let most: Vec<f64> = most.into_iter().map(|rounds| spread(rounds)[2]).collect();
    for kinds in paced {
        let least: Vec<f64> = kinds.iter().map(|rounds| spread(rounds.iter().map(|one| one.ns).collect())[0]).collect();
        for (index, (kind, name)) in KINDS.iter().enumerate() {
            let of = |what: &dyn Fn(&Measured) -> f64| spread(kinds[index].iter().map(what).collect())[1];
            let exact = |one: &Measured| Node::link(rate, one.offered_pps * BITS / f64::from(LEAVES));
            let usable = |one: &Measured| exact(one).leaves().iter().map(|leaf| leaf.share).sum::<f64>();
            print!("{name:<16} {:>8.2} {:>8.0}", of(&|one| one.offered_pps * BITS / rate), least[index]);
            if matches!(kind, Kind::Ours | Kind::Htb) {
                print!(" {:>9.2}", least[index] / least[KINDS.len() - 1]);
                print!(" {:>9.1} %", of(&|one| 100.0 * one.passed.iter().sum::<f64>() / usable(one)));
                let [mean, largest] = [0, 1].map(|which| of(&|one| errors(&exact(one), &one.passed)[which]));
                print!(" {mean:>7.2} % {largest:>7.2} %");
            } else {
                print!("{:42}", "");
            }
            println!(" {:>12.2}", most[index]);
        }
    }
}
