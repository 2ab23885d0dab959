// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who shares out a link: each is asked about packets in the order of time, and says what a flow may send.

use super::fill::Node;
use super::flows::Flows;
use super::{Ahab, Fifo, Hcsfq, Hsdba, Kind};
use crate::LabError;
use crate::stats::real;
use penstock_algo::plane::Rng;
use penstock_algo::{ahab, hcsfq, hsdba, wire};
use penstock_dataplane::{Dataplane, Outcome, Replay, Sinks, Watch};
use penstock_packet::{Batch, CaptureError, Format, FrameSource, Interface, Progress};
use penstock_policy::limits_file::LimitsText;
use penstock_policy::{Plan, Policy, compile};

/// A packet that comes.
#[derive(Debug, Clone, Copy)]
pub struct Packet {
    /// Whose.
    pub flow: usize,
    /// When.
    pub time_ns: u64,
    /// As a workload counts it.
    pub bytes: u32,
}

/// Who shares out a link.
pub trait System {
    /// Whether packets pass, in order; `batch` has their frames.
    fn judge(&mut self, batch: Batch, packets: &[Packet], passes: &mut Vec<bool>) -> Result<(), LabError>;

    /// What a flow may send now, bit/s. Nothing where nobody says so.
    fn limit_bps(&mut self, flow: usize) -> Option<f64>;

    /// A flow has sent its last packet.
    fn leave(&mut self, _flow: usize) {}

    /// The tree that the link is, and the place of each flow in it.
    fn tree(&self) -> (Vec<Node>, Vec<usize>);
}

/// Makes what a scenario names.
pub fn make(kind: &Kind, flows: &Flows) -> Result<Box<dyn System>, LabError> {
    Ok(match kind {
        Kind::Policy(text) => Box::new(PolicySystem::new(text, flows)?),
        Kind::Fifo(fifo) => Box::new(Single::new(Queue::new(*fifo), real(fifo.rate.0), flows)),
        Kind::Hsdba(it) => Box::new(Single::new(published(it, flows)?, real(it.rate.0), flows)),
        Kind::Ahab(it) => Box::new(Single::new(slice(it), real(it.rate.0), flows)),
        Kind::Hcsfq(it) => Box::new(Single::new(node(it, flows), real(it.rate.0), flows)),
    })
}

/// Virtual time of the first packet of those that have none of their own.
const START_NS: u64 = 1_000_000_000;

/// One level, one packet after the other.
trait One {
    fn passes(&mut self, packet: &Packet, weight: u32, random_u32: u32) -> bool;

    /// For a weight of 1, bytes a second.
    fn limit(&self) -> Option<u64>;

    fn leave(&mut self, _flow: usize) {}
}

struct Single<T> {
    one: T,
    rate_bps: f64,
    weights: Vec<u32>,
    rng: Rng,
}

impl<T: One> Single<T> {
    fn new(one: T, rate_bps: f64, flows: &Flows) -> Self {
        let weights = flows.flows.iter().map(|flow| flow.weight).collect();
        Self { one, rate_bps, weights, rng: Rng::new(1) }
    }
}

impl<T: One> System for Single<T> {
    fn judge(&mut self, _: Batch, packets: &[Packet], passes: &mut Vec<bool>) -> Result<(), LabError> {
        for packet in packets {
            let (weight, random_u32) = (self.weights[packet.flow], self.rng.next_u32());
            passes.push(self.one.passes(packet, weight, random_u32));
        }
        Ok(())
    }

    fn limit_bps(&mut self, flow: usize) -> Option<f64> {
        self.one.limit().map(|limit| 8.0 * real(limit) * f64::from(self.weights[flow]))
    }

    fn leave(&mut self, flow: usize) {
        self.one.leave(flow);
    }

    fn tree(&self) -> (Vec<Node>, Vec<usize>) {
        let root = Node { parent: None, weight: 1.0, guarantee: 0.0, ceiling: self.rate_bps, demand: 0.0 };
        let leaf = |&weight: &u32| Node {
            parent: Some(0),
            weight: weight.into(),
            guarantee: 0.0,
            ceiling: f64::INFINITY,
            demand: 0.0,
        };
        let nodes: Vec<Node> = [root].into_iter().chain(self.weights.iter().map(leaf)).collect();
        let places = (1..nodes.len()).collect();
        (nodes, places)
    }
}

/// A queue that drains at the link's rate.
struct Queue {
    rate: f64,
    room: f64,
    waiting: f64,
    at_ns: u64,
}

impl Queue {
    fn new(fifo: Fifo) -> Self {
        Self { rate: real(fifo.rate.0) / 8e9, room: real(fifo.queue.0), waiting: 0.0, at_ns: 0 }
    }
}

impl One for Queue {
    fn passes(&mut self, packet: &Packet, _: u32, _: u32) -> bool {
        self.waiting = (self.waiting - self.rate * real(packet.time_ns - self.at_ns)).max(0.0);
        self.at_ns = packet.time_ns;
        let fits = self.waiting + f64::from(packet.bytes) <= self.room;
        self.waiting += if fits { f64::from(packet.bytes) } else { 0.0 };
        fits
    }

    fn limit(&self) -> Option<u64> {
        None
    }
}

fn published(it: &Hsdba, flows: &Flows) -> Result<hsdba::Published, LabError> {
    let weights: Vec<u32> = flows.flows.iter().map(|flow| flow.weight).collect();
    let none = || LabError::Computation("the published HSDBA has 64 flows at most here".to_owned());
    hsdba::Published::new(it.rate.0 / 8, &weights, it.tau_shift).ok_or_else(none)
}

fn index(flow: usize) -> u32 {
    u32::try_from(flow).unwrap_or(u32::MAX)
}

impl One for hsdba::Published {
    fn passes(&mut self, packet: &Packet, _: u32, random_u32: u32) -> bool {
        self.take(index(packet.flow), START_NS + packet.time_ns, packet.bytes, random_u32)
    }

    fn limit(&self) -> Option<u64> {
        Some(self.alpha())
    }

    fn leave(&mut self, flow: usize) {
        Self::leave(self, index(flow));
    }
}

fn slice(it: &Ahab) -> ahab::Slice {
    let params = ahab::Params {
        rate_bytes_per_second: it.rate.0 / 8,
        column_bits: it.column_bits,
        tau_shift: it.tau_shift,
        epoch_shift: it.epoch_shift,
        divide_bits: it.divide_bits,
        seed: 1,
    };
    ahab::Slice::new(&params, START_NS)
}

impl One for ahab::Slice {
    fn passes(&mut self, packet: &Packet, weight: u32, random_u32: u32) -> bool {
        let user = u64::from(index(packet.flow)) * 521 + 7; // as in test_ahab.c
        self.take(user, weight, START_NS + packet.time_ns, packet.bytes, random_u32).passes
    }

    fn limit(&self) -> Option<u64> {
        Some(Self::limit(self))
    }
}

fn node(it: &Hcsfq, flows: &Flows) -> hcsfq::Hcsfq {
    let params = hcsfq::Params {
        rate_bytes_per_second: it.rate.0 / 8,
        packet_bytes: u32::try_from(it.packet.0).unwrap_or(u32::MAX),
        window_ns: it.window.0,
        smooth_shift: it.smooth_shift,
        decrease_shift: it.decrease_shift,
        increase_shift: it.increase_shift,
    };
    hcsfq::Hcsfq::new(&params, index(flows.flows.len()), START_NS)
}

impl One for hcsfq::Hcsfq {
    fn passes(&mut self, packet: &Packet, weight: u32, random_u32: u32) -> bool {
        self.take(index(packet.flow), weight.ilog2(), START_NS + packet.time_ns, packet.bytes, random_u32)
    }

    fn limit(&self) -> Option<u64> {
        Some(Self::limit(self))
    }
}

/// A policy, replayed.
struct PolicySystem {
    plan: Plan,
    replay: Replay,
    /// Of each flow.
    classes: Vec<u32>,
    weights: Vec<u32>,
}

/// One batch.
struct Given(Option<Batch>);

impl FrameSource for Given {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, CaptureError> {
        let given = self.0.take();
        let is_there = given.is_some();
        *batch = given.unwrap_or_default();
        Ok(is_there)
    }

    fn interfaces(&self) -> &[Interface] {
        &[]
    }

    fn format(&self) -> Format {
        Format::Pcap
    }

    fn progress(&self) -> Progress {
        Progress { done: 0, total: None }
    }
}

struct Decided<'a>(&'a mut dyn FnMut(&wire::Decision));

impl Watch for Decided<'_> {
    fn goes_on(&mut self, _: u64, _: Progress) -> bool {
        true
    }

    fn decided(&mut self, decisions: &[wire::Decision]) {
        decisions.iter().for_each(&mut *self.0);
    }
}

fn replay_batch(replay: &mut Replay, batch: Batch, each: &mut dyn FnMut(&wire::Decision)) -> Result<(), LabError> {
    let mut sinks: Sinks<Vec<u8>> = Sinks::default();
    match replay.run(&mut Given(Some(batch)), &mut sinks, &mut Decided(each)) {
        Outcome::Failed(error) => Err(LabError::Computation(error.to_string())),
        _ => Ok(()),
    }
}

impl PolicySystem {
    fn new(text: &str, flows: &Flows) -> Result<Self, LabError> {
        let policy = Policy::parse("policy", text)?;
        let users = flows.users_csv().into_bytes();
        let file = |name: &str| Ok(LimitsText { name: name.to_owned(), bytes: users.clone() });
        let plan = compile::compile(&policy, file)?;
        let replay = Replay::new(plan.clone(), None, 1)?;
        let weights = flows.flows.iter().map(|flow| flow.weight).collect();
        Ok(Self { classes: classes(&plan, flows)?, plan, replay, weights })
    }
}

/// The class that each flow's packets are in.
fn classes(plan: &Plan, flows: &Flows) -> Result<Vec<u32>, LabError> {
    let mut once = flows.workload.clone();
    let mut classes = vec![None; flows.flows.len()];
    for group in &mut once.groups {
        // Everybody sends at once, so that a moment shows all of them.
        (group.start_ns, group.stop_ns) = (0, u64::MAX);
    }
    let mut source = penstock_packet::workload::Generator::new(&once);
    let mut replay = Replay::new(plan.clone(), None, 1)?;
    while classes.contains(&None) {
        let mut batch = Batch::new();
        let more = source.next_batch(&mut batch).map_err(|error| LabError::Computation(error.to_string()))?;
        if !more {
            break;
        }
        let owners: Vec<Option<usize>> = batch.iter().map(|frame| flows.of_frame(frame.data)).collect();
        let mut owners = owners.into_iter();
        replay_batch(&mut replay, batch, &mut |decision| {
            if let Some(flow) = owners.next().flatten() {
                classes[flow] = Some(decision.class_index);
            }
        })?;
    }
    let known = classes.into_iter().enumerate().map(|(flow, class)| {
        let name = &flows.groups[flows.flows[flow].group];
        let none = || LabError::Computation(format!("a flow of {name:?} is in no class of the policy"));
        class.filter(|class| *class != wire::PST_NONE).ok_or_else(none)
    });
    known.collect()
}

impl System for PolicySystem {
    fn judge(&mut self, batch: Batch, _: &[Packet], passes: &mut Vec<bool>) -> Result<(), LabError> {
        replay_batch(&mut self.replay, batch, &mut |decision| {
            passes.push(u32::from(decision.verdict) != wire::PST_VERDICT_DROP);
        })
    }

    fn limit_bps(&mut self, flow: usize) -> Option<f64> {
        let readings = self.replay.readings().ok()?;
        let share = readings.shares.get(self.classes[flow] as usize)?.as_ref()?;
        match share.users.and_then(|users| users.limit_bps) {
            Some(limit) => Some(real(limit) * f64::from(self.weights[flow])),
            None => Some(real(share.share_bps)),
        }
    }

    fn tree(&self) -> (Vec<Node>, Vec<usize>) {
        tree_of(&self.plan, &self.classes, &self.weights)
    }
}

/// The tree of a plan, and in it the places of flows that are in these classes.
pub fn tree_of(plan: &Plan, classes: &[u32], weights: &[u32]) -> (Vec<Node>, Vec<usize>) {
    let none = |index: u32| (index != wire::PST_NONE).then_some(index as usize);
    let node = |place: &wire::TreePlace| Node {
        parent: none(place.parent),
        weight: place.terms.weight.max(1).into(),
        guarantee: 8.0 * real(place.terms.guarantee_Bps),
        ceiling: 8.0 * real(place.terms.ceiling_Bps),
        demand: 0.0,
    };
    let mut nodes: Vec<Node> = plan.places.iter().map(node).collect();
    let mut places = Vec::new();
    for (&class, &weight) in classes.iter().zip(weights) {
        // A user, or one of those that a class's limit does not tell apart: there they are to be of one kind.
        let (parent, weight) = (Some(class as usize), weight.into());
        nodes.push(Node { parent, weight, guarantee: 0.0, ceiling: f64::INFINITY, demand: 0.0 });
        places.push(nodes.len() - 1);
    }
    (nodes, places)
}
