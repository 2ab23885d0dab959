// SPDX-License-Identifier: MIT OR Apache-2.0
//! A leader at work: one thread that has the [`Core`], hears what nodes say, and sends orders as long as this replica leads.
//!
//! To share out a large network takes a tenth of a second: it has a thread of its own, so that streams go on meanwhile.

use crate::core::{Core, Over, Session, Settings};
use crate::networks::Known;
use crate::store::{Leadership, boot_now_ns};
use penstock_api::v1;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;
use tracing::{info, warn};

/// Longest time between two looks at what is due.
const TURN: Duration = Duration::from_millis(20);
/// Orders on their way to one node; one that does not take them is cut off, and comes again.
const ORDERS_MAX: usize = 64;

/// An order, or why there are no more.
pub type Told = Result<v1::Order, Status>;

/// Reports of one stream that wait to be heard; one that sends more is cut off.
pub const REPORTS_MAX: usize = 64;
/// What is heard before something is said.
const HEARD_MAX: usize = 1_000;

/// How many reports of a stream wait.
pub type Backlog = Arc<AtomicUsize>;

/// What a leader hears.
enum Heard {
    Came(Session, mpsc::Sender<Told>, Box<v1::Report>, oneshot::Sender<Result<(), Status>>),
    Said(Session, Box<v1::Report>, Backlog),
    Left(Session),
    Network(u64, Arc<Known>),
    Asked(v1::GetStandingRequest, oneshot::Sender<v1::StandingReply>),
    Stop,
}

/// A leader, to be spoken to. It stops when the last of these is gone.
#[derive(Debug, Clone)]
pub struct Lead {
    ear: Sender<Heard>,
    is_stopped: Arc<AtomicBool>,
}

impl Lead {
    /// Begins to lead: who waits for its end gets the leadership back.
    pub fn begin(leadership: Arc<Leadership>, settings: Settings) -> (Self, tokio::task::JoinHandle<()>) {
        let (ear, heard) = channel();
        let term = leadership.term;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let of_work = is_stopped.clone();
        let work = tokio::task::spawn_blocking(move || {
            let core = Core::new(term, settings, boot_now_ns());
            Work { core, streams: HashMap::new(), leadership }.run(&heard, &of_work);
        });
        (Self { ear, is_stopped }, work)
    }

    /// A node has opened a stream, with its first report; its orders come out of the other end.
    ///
    /// # Errors
    /// It is refused, or nobody leads any more.
    pub async fn came(&self, session: Session, first: v1::Report) -> Result<mpsc::Receiver<Told>, Status> {
        let (orders, receiver) = mpsc::channel(ORDERS_MAX);
        let (reply, is_let_in) = oneshot::channel();
        self.tell(Heard::Came(session, orders, Box::new(first), reply));
        is_let_in.await.map_err(|_| Status::unavailable("this replica leads no longer"))??;
        Ok(receiver)
    }

    /// It has said something; whether anybody still listens, and it is not too much.
    pub fn said(&self, session: Session, report: v1::Report, backlog: &Backlog) -> bool {
        backlog.fetch_add(1, Ordering::Relaxed) < REPORTS_MAX
            && self.tell(Heard::Said(session, Box::new(report), backlog.clone()))
    }

    /// Its stream is over.
    pub fn left(&self, session: Session) {
        self.tell(Heard::Left(session));
    }

    /// Another network is to be kept.
    pub fn keep(&self, revision: u64, network: Arc<Known>) {
        self.tell(Heard::Network(revision, network));
    }

    /// How things stand; none when it leads no longer.
    pub async fn standing(&self, request: v1::GetStandingRequest) -> Option<v1::StandingReply> {
        let (reply, receiver) = oneshot::channel();
        self.tell(Heard::Asked(request, reply));
        receiver.await.ok()
    }

    /// It is over, whatever waits to be heard.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.tell(Heard::Stop);
    }

    fn tell(&self, what: Heard) -> bool {
        self.ear.send(what).is_ok()
    }
}

/// What the thread has.
struct Work {
    core: Core,
    streams: HashMap<Session, mpsc::Sender<Told>>,
    leadership: Arc<Leadership>,
}

impl Work {
    fn run(mut self, heard: &Receiver<Heard>, is_stopped: &AtomicBool) {
        loop {
            let mut next = heard.recv_timeout(TURN);
            // What waits is heard before anything is said, but nobody keeps the others from being answered.
            for _ in 0..HEARD_MAX {
                if is_stopped.load(Ordering::Relaxed) {
                    return;
                }
                match next {
                    Ok(Heard::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                    Ok(what) => self.hear(what),
                    Err(RecvTimeoutError::Timeout) => break,
                }
                next = heard.try_recv().map_err(|_| RecvTimeoutError::Timeout);
            }
            let orders = self.core.turn(boot_now_ns());
            for (session, order) in orders {
                // Asked before each one: whoever was paused here may not lead any more.
                if !self.leadership.holds() {
                    info!(term = self.leadership.term, "leads no longer");
                    return;
                }
                self.send(session, order);
            }
        }
    }

    fn hear(&mut self, what: Heard) {
        match what {
            Heard::Came(session, orders, first, reply) => {
                self.streams.insert(session, orders);
                self.core.report(session, &first, boot_now_ns());
                let refused = self.end_those_over().into_iter().find(|(over, _)| *over == session);
                // Nobody who waits for it: then it is not there any more, and the stream ends.
                let _ = reply.send(refused.map_or(Ok(()), |(_, why)| Err(why)));
            }
            Heard::Said(session, report, backlog) => {
                backlog.fetch_sub(1, Ordering::Relaxed);
                self.core.report(session, &report, boot_now_ns());
            }
            Heard::Left(session) => self.forget(session),
            Heard::Network(revision, known) => {
                let network = known.network.clone();
                let (classes, ports) = (network.classes.len(), network.ports.len());
                self.core.set_network(revision, network);
                self.end_those_over();
                info!(revision, classes, ports, "keeps another network");
            }
            Heard::Asked(request, reply) => drop(reply.send(self.core.standing(&request, boot_now_ns()))),
            Heard::Stop => {}
        }
    }

    fn send(&mut self, session: Session, order: v1::Order) {
        let is_sent = self.streams.get(&session).is_some_and(|stream| stream.try_send(Ok(order)).is_ok());
        if !is_sent {
            warn!(session, "a node does not take its orders, and is cut off");
            self.forget(session);
        }
    }

    /// Closes the streams of sessions that the core has ended: which, and what they are told.
    fn end_those_over(&mut self) -> Vec<(Session, Status)> {
        let over = self.core.take_over().into_iter().map(|(session, over)| (session, status_of(&over)));
        let over: Vec<(Session, Status)> = over.collect();
        for (session, status) in &over {
            if let Some(stream) = self.streams.remove(session) {
                let _ = stream.try_send(Err(status.clone()));
            }
        }
        over
    }

    fn forget(&mut self, session: Session) {
        self.streams.remove(&session);
        self.core.leave(session);
    }
}

fn status_of(over: &Over) -> Status {
    match over {
        Over::Taken(node) => Status::already_exists(format!(
            "another machine has limits as {node}, or had until a moment ago; each node needs a name of its own"
        )),
        Over::Replaced => Status::aborted("it attends on another stream"),
        Over::Renumbered => Status::aborted("its limits get other numbers"),
    }
}
