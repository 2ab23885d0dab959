// SPDX-License-Identifier: MIT OR Apache-2.0
//! A node attends a controller: it finds the leader, reports, and takes orders. Leases lapse on time whether anybody is there or not.
//!
//! Silence  of a second, and the stream is given up: a cut network tells nothing by itself.
//! Return   each controller in turn, then a pause, from 50 ms up to half a second: a node is back within a second of a fault's end.

use crate::clock::boottime_ns;
use crate::error::NodeError;
use crate::keeper::{Attending, Keeper, unix_ns};
use crate::leases::Taken;
use crate::service::Node;
use penstock_algo::plane::Rng;
use penstock_api::controller::{AskError, Controllers as Replicas, LEADER};
use penstock_api::tls::Tls;
use penstock_api::v1;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, sleep, sleep_until, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};
use tracing::{debug, info, warn};

/// Without an order for so long, the stream is given up.
const SILENCE_MAX: Duration = Duration::from_secs(1);
/// Between reports, unless an order says otherwise.
const REPORT_EVERY: Duration = Duration::from_millis(100);
const REPORT_EVERY_MIN: Duration = Duration::from_millis(10);
/// A second of silence ends a stream on the other side, too.
const REPORT_EVERY_MAX: Duration = Duration::from_millis(500);
/// After all controllers were tried: doubles up to the second one.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));
/// Reasons that are logged while nobody is attended.
const TOLD_MAX: usize = 20;
/// Leaders that are followed one after the other, without a pause.
const HOPS_MAX: usize = 3;
/// Reports that wait to be sent: when there are more, the connection is stuck.
const QUEUE: usize = 16;
/// Between looks at the lease.
const LOOK_EVERY: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));

/// Whom a node attends.
#[derive(Debug, Clone)]
pub struct Controllers {
    /// As the network file calls this node.
    pub node: String,
    /// HOST:PORT of each replica.
    pub addresses: Vec<String>,
    /// Who this node is, and whom it trusts; none for loopback without either.
    pub tls: Option<Tls>,
}

/// How a stay ended.
#[derive(Debug)]
enum Ended {
    /// The daemon stops.
    Stopped,
    /// The policy has other links: the node comes anew.
    OtherPorts,
    /// It does not lead; who does, if it knows.
    NoLeader(Option<String>),
    /// Something failed, before any order was heard or after.
    Failed { why: String, was_heard: bool },
}

/// Goes to safe rates when the lease is over.
pub async fn watch_lease(node: Node, mut stopped: watch::Receiver<bool>) {
    loop {
        let looking = node.clone();
        let left = tokio::task::spawn_blocking(move || looking.keeper().lapse(boottime_ns())).await;
        let left = left.ok().flatten().map_or(LOOK_EVERY.1, Duration::from_nanos);
        tokio::select! {
            () = sleep(left.clamp(LOOK_EVERY.0, LOOK_EVERY.1)) => {}
            _ = stopped.wait_for(|stopping| *stopping) => break,
        }
    }
    let _ = tokio::task::spawn_blocking(move || node.keeper().save_lease(boottime_ns(), true)).await;
}

/// Attends one of the controllers until the daemon stops.
pub async fn attend(node: Node, controllers: Controllers, stopped: watch::Receiver<bool>) {
    let mut attendant = Attendant {
        rng: Rng::new(unix_ns() ^ u64::from(std::process::id())),
        status: Attending { node: controllers.node.clone(), ..Attending::default() },
        node,
        controllers,
        stopped,
        told: BTreeSet::new(),
    };
    attendant.run().await;
}

struct Attendant {
    node: Node,
    controllers: Controllers,
    stopped: watch::Receiver<bool>,
    rng: Rng,
    status: Attending,
    /// Reasons that were logged.
    told: BTreeSet<String>,
}

impl Attendant {
    async fn run(&mut self) {
        let (mut turn, mut hops, mut pause) = (0, 0, PAUSE.0);
        let mut leader: Option<String> = None;
        let status = self.status.clone();
        let _ = self.keep(move |keeper| keeper.set_attending(status)).await;
        while !*self.stopped.borrow() && !self.controllers.addresses.is_empty() {
            let address = leader.take().unwrap_or_else(|| {
                let addresses = &self.controllers.addresses;
                turn += 1;
                addresses[(turn - 1) % addresses.len()].clone()
            });
            match self.stay(&address).await {
                Ended::Stopped => return,
                // The same one, at once.
                Ended::OtherPorts => {
                    leader = Some(address);
                    continue;
                }
                Ended::NoLeader(Some(other)) if hops < HOPS_MAX && other != address => {
                    debug!("{address} does not lead; {other} does");
                    (leader, hops) = (Some(other), hops + 1);
                    continue;
                }
                Ended::NoLeader(_) => self.tell(&address, "it does not lead, and knows nobody who does").await,
                Ended::Failed { why, was_heard } => {
                    if was_heard {
                        warn!("{address}: {why}; looking for a controller");
                        pause = PAUSE.0;
                    }
                    self.tell(&address, &why).await;
                }
            }
            hops = 0;
            if turn % self.controllers.addresses.len() == 0 {
                // Many nodes lose one controller at the same time.
                let part = 500 + self.rng.next_u32() % 501;
                let jittered = pause * part / 1000;
                let mut stopped = self.stopped.clone();
                tokio::select! {
                    () = sleep(jittered) => {}
                    _ = stopped.wait_for(|stopping| *stopping) => return,
                }
                pause = (pause * 2).min(PAUSE.1);
            }
        }
    }

    /// Keeps why nobody is attended for who asks.
    async fn tell(&mut self, address: &str, why: &str) {
        // Once for each reason, until somebody is attended again.
        if self.told.len() < TOLD_MAX && self.told.insert(format!("{address}: {why}")) {
            warn!("cannot attend {address}: {why}");
        }
        self.set_status(address, false, why).await;
    }

    async fn set_status(&mut self, address: &str, attends: bool, trouble: &str) {
        let status = Attending {
            node: self.status.node.clone(),
            address: address.to_owned(),
            attends,
            trouble: trouble.to_owned(),
        };
        if attends {
            self.told.clear();
        }
        if self.status != status {
            self.status = status.clone();
            let _ = self.keep(move |keeper| keeper.set_attending(status)).await;
        }
    }

    /// Something with the keeper, for a short time.
    async fn keep<T: Send + 'static>(&self, work: impl FnOnce(&mut Keeper) -> T + Send + 'static) -> Result<T, String> {
        let node = self.node.clone();
        let done = tokio::task::spawn_blocking(move || work(&mut node.keeper())).await;
        done.map_err(|error| format!("the daemon could not finish this: {error}"))
    }

    /// One stream, from its beginning to its end.
    async fn stay(&mut self, address: &str) -> Ended {
        let mut stopped = self.stopped.clone();
        let mut was_heard = false;
        let ended = tokio::select! {
            ended = self.attend(address, &mut was_heard) => ended,
            _ = stopped.wait_for(|stopping| *stopping) => Ok(Ended::Stopped),
        };
        ended.unwrap_or_else(|why| Ended::Failed { why, was_heard })
    }

    async fn attend(&mut self, address: &str, was_heard: &mut bool) -> Result<Ended, String> {
        let connected = match Replicas::new(&[address.to_owned()], self.controllers.tls.as_ref()) {
            Ok(replica) => replica.connect_to(address).await,
            Err(error) => Err(error),
        };
        let mut client = connected.map_err(|error| match error {
            AskError::Unreachable(why) => why,
            error => error.to_string(),
        })?;
        let (sender, receiver) = mpsc::channel(QUEUE);
        let name = self.controllers.node.clone();
        let registration = self.keep(move |keeper| keeper.register(&name)).await?;
        let mut reports = Reports { sender, sequence: 0, ports: registration.ports.clone() };
        reports.send(self, true, Some(registration)).await?;
        let answer = timeout(SILENCE_MAX, client.attend(ReceiverStream::new(receiver))).await;
        let orders = match answer.map_err(|_| "it does not answer".to_owned())? {
            Ok(answer) => answer.into_inner(),
            Err(status) => return refused(&status),
        };
        self.obey(address, reports, orders, was_heard).await
    }

    /// Reports and takes orders until something is wrong.
    async fn obey(
        &mut self,
        address: &str,
        mut reports: Reports,
        mut orders: Streaming<v1::Order>,
        was_heard: &mut bool,
    ) -> Result<Ended, String> {
        let mut every = REPORT_EVERY;
        let mut ticks = ticking(every);
        let mut silent_at = Instant::now() + SILENCE_MAX;
        loop {
            tokio::select! {
                () = sleep_until(silent_at) => return Err("nothing was heard for a second".to_owned()),
                _ = ticks.tick() => {
                    if reports.ports_changed(self).await? {
                        return Ok(Ended::OtherPorts);
                    }
                    reports.send(self, true, None).await?;
                }
                order = orders.message() => {
                    let order = match order {
                        Ok(Some(order)) => order,
                        Ok(None) => return Err("it ended the stream".to_owned()),
                        Err(status) => return refused(&status),
                    };
                    silent_at = Instant::now() + SILENCE_MAX;
                    if !*was_heard {
                        *was_heard = true;
                        info!("attending {address} as {}", self.controllers.node);
                        self.set_status(address, true, "").await;
                    }
                    let asked = Duration::from_nanos(order.report_every_ns).clamp(REPORT_EVERY_MIN, REPORT_EVERY_MAX);
                    if order.report_every_ns > 0 && asked != every {
                        every = asked;
                        ticks = ticking(every);
                    }
                    if self.take(order).await? {
                        reports.send(self, false, None).await?;
                    }
                }
            }
        }
    }

    /// Takes an order; whether that is to be reported at once.
    async fn take(&self, order: v1::Order) -> Result<bool, String> {
        let taken: Result<Taken, NodeError> = self.keep(move |keeper| keeper.take_order(&order, boottime_ns())).await?;
        match taken {
            Ok(Taken::Changed) => Ok(true),
            Ok(taken) => {
                debug!("an order: {taken:?}");
                Ok(false)
            }
            Err(error) => {
                warn!("an order was refused: {error}");
                Ok(false)
            }
        }
    }
}

/// The reports of one stream.
struct Reports {
    sender: mpsc::Sender<v1::Report>,
    sequence: u64,
    /// As they were registered.
    ports: Vec<v1::NodePort>,
}

impl Reports {
    /// Sends one. The lease runs from before it is made.
    async fn send(
        &mut self,
        attendant: &Attendant,
        with_demands: bool,
        registration: Option<v1::Registration>,
    ) -> Result<(), String> {
        let permit = self.sender.try_reserve().map_err(|_| "reports do not get through".to_owned())?;
        self.sequence += 1;
        let sequence = self.sequence;
        let report = attendant.keep(move |keeper| keeper.report(sequence, with_demands, boottime_ns())).await?;
        permit.send(v1::Report { registration, ..report });
        Ok(())
    }

    async fn ports_changed(&self, attendant: &Attendant) -> Result<bool, String> {
        Ok(attendant.keep(|keeper| keeper.node_ports()).await? != self.ports)
    }
}

fn ticking(every: Duration) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// What a no means: another one leads, or it failed.
fn refused(status: &Status) -> Result<Ended, String> {
    let leader = status.metadata().get(LEADER).map(|leader| leader.to_str().unwrap_or_default().to_owned());
    match (status.code(), leader) {
        (Code::Unavailable, Some(leader)) => Ok(Ended::NoLeader(Some(leader).filter(|leader| !leader.is_empty()))),
        _ => Err(status.message().to_owned()),
    }
}
