// SPDX-License-Identifier: MIT OR Apache-2.0
//! One policy for several nodes, live: etcd, controllers, daemons with the kernel's data plane, mutual TLS between them, and real traffic.

mod control;
mod measure;
mod node;
mod policy;
mod rig;
pub mod spec;
mod traffic;
mod wrong;

pub use wrong::{names, wrong_with};

use crate::LabError;
use crate::arrivals::Arrivals;
use crate::live::Run;
use crate::process::Stop;
use crate::quantity::Rate;
use crate::results::{ALL, Metrics, Row, Sample, Subject};
use crate::scenario::{Enforce, Series};
use crate::template::Values;
use control::Control;
use measure::{Arrived, milliseconds};
use node::Node;
use rig::{Rig, place};
use spec::{Fault, Network, What};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};
use traffic::Sending;

/// Programs that a run needs beside the lab's, with Debian's names for their packages.
pub const TOOLS: [(&str, &str); 3] = [("etcd", "etcd-server"), ("unshare", "util-linux"), ("mount", "mount")];
/// Between the last preparation and the traffic.
const CALM: Duration = Duration::from_secs(1);

/// Everything that runs.
struct Live {
    // Daemons go before the namespaces that they are in.
    sending: Vec<Sending>,
    nodes: Vec<Node>,
    control: Option<Control>,
    rig: Rig,
    /// The replica that led when traffic began.
    leader: usize,
}

/// What happens at a time.
enum Event<'a> {
    Flow(usize),
    Put(&'a str),
    Set(&'a BTreeMap<String, Rate>),
    Begin(&'a Fault),
    End(&'a Fault),
}

/// Runs a series at a point, for `time`.
///
/// # Errors
/// The machine refuses, a tool fails, or Ctrl-C was pressed. Everything is taken down again.
pub fn run(
    network: &Network,
    series: &Series,
    of: (&Values, u32),
    time: Duration,
    stop: &Stop,
) -> Result<Run, LabError> {
    stop.check()?;
    let folder = tempfile::tempdir().map_err(|source| LabError::io("a folder for the run", source))?;
    let program = std::env::current_exe().map_err(|source| LabError::io("this program", source))?;
    let mut live = Live::start(&program.display().to_string(), network, series, folder.path(), stop)?;
    let mut arrivals = live.count(network, time)?;
    live.play(network, series, time, stop)?;
    let receiver = |flow: &spec::Flow| flow.to.as_deref().map_or(0, |to| 1 + u32::try_from(place(to)).unwrap_or(0));
    let arrived = network.flows.iter().enumerate().map(|(index, flow)| arrivals.bytes(receiver(flow), index));
    let arrived = arrived.collect::<Result<Vec<_>, _>>()?;
    for ((bytes, flow), sending) in arrived.iter().zip(&network.flows).zip(&live.sending) {
        if flow.start.duration() < time && bytes.iter().sum::<f64>() == 0.0 {
            return Err(LabError::Output {
                tool: "iperf3",
                what: format!("{} sent nothing: {}", flow.class, sending.said()),
            });
        }
    }
    Ok(made_of(network, series, of, &arrived, milliseconds(time)))
}

fn own_of(series: &Series) -> BTreeMap<String, Rate> {
    match &series.enforce {
        Enforce::Lent(lent) => lent.own.clone(),
        Enforce::Own(own) => own.own.clone(),
        _ => BTreeMap::new(),
    }
}

impl Live {
    fn start(program: &str, network: &Network, series: &Series, folder: &Path, stop: &Stop) -> Result<Self, LabError> {
        let rig = Rig::build(network)?;
        let control = match &series.enforce {
            Enforce::Lent(_) => Some(Control::start(program, network, &rig, folder, stop)?),
            _ => None,
        };
        let (own, controllers) = (own_of(series), control.is_some().then(|| control::addresses(network.controllers)));
        let node = |(index, namespace)| {
            let name = policy::node_name(index);
            let text = policy::policy(network, &own, &name);
            Node::start(program, &name, namespace, &text, (folder, controllers.clone()), stop)
        };
        let nodes = rig.gateways.iter().enumerate().map(node).collect::<Result<Vec<_>, _>>()?;
        let mut leader = 0;
        if let (Enforce::Lent(lent), Some(control)) = (&series.enforce, &control) {
            control.put_and_wait(&lent.network, network.nodes.into(), stop)?;
            leader = control.leader()?;
        }
        let sending = network.flows.iter().enumerate().map(|(index, flow)| Sending::prepare(&rig, flow, index, stop));
        let sending = sending.collect::<Result<Vec<_>, _>>()?;
        stop.sleep_until(Instant::now() + CALM)?;
        Ok(Self { sending, nodes, control, rig, leader })
    }

    /// Counts from now on at the core and at all hosts.
    fn count(&self, network: &Network, time: Duration) -> Result<Arrivals, LabError> {
        let names = (0..self.rig.gateways.len()).map(policy::node_name).collect();
        let hosts = self.rig.hosts.iter().map(|host| (host, vec![crate::topology::HOST_DEVICE.to_owned()]));
        let places: Vec<_> = [(&self.rig.core, names)].into_iter().chain(hosts).collect();
        Arrivals::at(&places, network.flows.len(), time)
    }

    /// Does everything at its time.
    fn play(&mut self, network: &Network, series: &Series, time: Duration, stop: &Stop) -> Result<(), LabError> {
        let start = Instant::now();
        let mut events: Vec<(Duration, Event<'_>)> =
            network.flows.iter().enumerate().map(|(index, flow)| (flow.start.duration(), Event::Flow(index))).collect();
        match &series.enforce {
            Enforce::Lent(lent) => {
                events.extend(lent.changes.iter().map(|put| (put.at.duration(), Event::Put(&put.network))));
                events.extend(lent.faults.iter().map(|fault| (fault.at.duration(), Event::Begin(fault))));
                let ends = lent.faults.iter().filter_map(|fault| Some((fault.until?.duration(), Event::End(fault))));
                events.extend(ends);
            }
            Enforce::Own(own) => events.extend(own.changes.iter().map(|set| (set.at.duration(), Event::Set(&set.own)))),
            _ => {}
        }
        events.retain(|(at, _)| *at < time);
        events.sort_by_key(|(at, _)| *at);
        for (at, event) in events {
            stop.sleep_until(start + at)?;
            self.happen(network, &event)?;
        }
        stop.sleep_until(start + time)
    }

    fn happen(&mut self, network: &Network, event: &Event<'_>) -> Result<(), LabError> {
        match event {
            Event::Flow(index) => self.sending[*index].go(&self.rig, &network.flows[*index]),
            Event::Put(text) => self.control.as_ref().map_or(Ok(()), |control| control.put(text)),
            Event::Set(own) => own.iter().try_for_each(|(limit, rate)| {
                let node = limit.split('-').next().unwrap_or_default();
                self.nodes[place(node)].set(limit, rate.0)
            }),
            Event::Begin(fault) => self.fault(fault, true),
            Event::End(fault) => self.fault(fault, false),
        }
    }

    /// A fault begins, or ends.
    fn fault(&mut self, fault: &Fault, begins: bool) -> Result<(), LabError> {
        let (Some(control), node) = (&mut self.control, fault.node.as_deref().map_or(0, place)) else { return Ok(()) };
        match (fault.what, begins) {
            (What::LeaderKilled, true) => control.kill_controller(self.leader),
            (What::LeaderKilled, false) => control.start_controller(self.leader)?,
            (What::LeaderPaused, is_paused) => control.pause_controller(self.leader, is_paused),
            (What::EtcdMemberStopped, true) => control.kill_etcd(0),
            (What::EtcdMemberStopped, false) => control.start_etcd(0)?,
            (What::ControlCut, _) => self.rig.set_control(node, !begins)?,
            (What::NodeRebooted, true) => {
                // A machine without power says no goodbye.
                self.rig.set_control(node, false)?;
                self.nodes[node].lose_power()?;
            }
            (What::NodeRebooted, false) => {
                self.rig.set_control(node, true)?;
                self.nodes[node].boot()?;
            }
        }
        Ok(())
    }
}

/// Rows and samples.
fn made_of(network: &Network, series: &Series, of: (&Values, u32), arrived: &[Vec<f64>], length: usize) -> Run {
    let subject =
        |tenant: &str| Subject { series: series.name.clone(), point: of.0.clone(), tenant: tenant.to_owned() };
    let classes: BTreeSet<&String> = network.flows.iter().map(|flow| &flow.class).collect();
    let of_class = |class: &str| {
        let flows = network.flows.iter().zip(arrived).filter(|(flow, _)| class == ALL || flow.class == class);
        Arrived::sum(&flows.map(|(_, bytes)| bytes).collect::<Vec<_>>(), length)
    };
    let faults = match &series.enforce {
        Enforce::Lent(lent) => lent.faults.as_slice(),
        _ => &[],
    };
    let (mut rows, mut samples) = (Vec::new(), Vec::new());
    for name in classes.into_iter().map(String::as_str).chain([ALL]) {
        let arrived_of = of_class(name);
        let passed = |from, to| Metrics::from([("passed".to_owned(), arrived_of.rate(from, to))]);
        let mut metrics = passed(milliseconds(network.warmup.duration()), length);
        if name == ALL {
            metrics.extend(measure::of_limit(network, faults, arrived, length));
        }
        rows.push(Row { of: subject(name), run: of.1, metrics });
        for phase in &network.phases {
            let metrics = passed(milliseconds(phase.from.duration()), milliseconds(phase.to.duration()));
            rows.push(Row { of: subject(&format!("{name} {}", phase.name)), run: of.1, metrics });
        }
        let bin = milliseconds(network.bin.duration()).max(1);
        samples.extend((0..length / bin).map(|index| Sample {
            of: subject(name),
            name: "passed",
            time_s: Duration::from_millis(u64::try_from(index * bin).unwrap_or(0)).as_secs_f64(),
            value: arrived_of.rate(index * bin, (index + 1) * bin),
        }));
    }
    Run { rows, samples }
}
