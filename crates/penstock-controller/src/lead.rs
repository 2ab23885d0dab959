// SPDX-License-Identifier: MIT OR Apache-2.0
//! A leader at work: one thread that has the [`Core`], hears what nodes say, and sends orders as long as this replica leads.
//!
//! To share out a large network takes a tenth of a second: it has a thread of its own, so that streams go on meanwhile.

use crate::core::{Core, Over, Reading, Session, Settings};
use crate::counts::Counts;
use crate::networks::Known;
use crate::store::{Leadership, boot_now_ns};
use penstock_api::v1;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::error::TrySendError;
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
    Read(usize, oneshot::Sender<Reading>),
    Stop,
}

/// A leader, to be spoken to. It stops when the last of these is gone.
#[derive(Debug, Clone)]
pub struct Lead {
    ear: Sender<Heard>,
    is_stopped: Arc<AtomicBool>,
    counts: Arc<Counts>,
}

impl Lead {
    /// Begins to lead: who waits for its end gets the leadership back.
    pub fn begin(
        leadership: Arc<Leadership>,
        settings: Settings,
        counts: Arc<Counts>,
    ) -> (Self, tokio::task::JoinHandle<()>) {
        let (ear, heard) = channel();
        let term = leadership.term;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (of_work, counted) = (is_stopped.clone(), counts.clone());
        let work = tokio::task::spawn_blocking(move || {
            let core = Core::new(term, settings, boot_now_ns());
            Work { core, streams: HashMap::new(), leadership, counts: counted }.run(&heard, &of_work);
        });
        (Self { ear, is_stopped, counts }, work)
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
        self.counts.streams.opened.one();
        Ok(receiver)
    }

    /// It has said something; whether anybody still listens, and it is not too much.
    pub fn said(&self, session: Session, report: v1::Report, backlog: &Backlog) -> bool {
        if backlog.fetch_add(1, Ordering::Relaxed) >= REPORTS_MAX {
            self.counts.streams.reports.one();
            return false;
        }
        self.tell(Heard::Said(session, Box::new(report), backlog.clone()))
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

    /// The same in numbers, of so many aggregates at most.
    pub async fn reading(&self, aggregates_max: usize) -> Option<Reading> {
        let (reply, receiver) = oneshot::channel();
        self.tell(Heard::Read(aggregates_max, reply));
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
    counts: Arc<Counts>,
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
            let begin = Instant::now();
            if self.core.share_out(boot_now_ns()) {
                self.counts.allocations.add(begin.elapsed());
            }
            let orders = self.core.tell(boot_now_ns());
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
                self.counts.reports.one();
                let refused = self.end_those_over().into_iter().find(|(over, _)| *over == session);
                // Nobody who waits for it: then it is not there any more, and the stream ends.
                let _ = reply.send(refused.map_or(Ok(()), |(_, why)| Err(why)));
            }
            Heard::Said(session, report, backlog) => {
                backlog.fetch_sub(1, Ordering::Relaxed);
                self.counts.reports.one();
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
            Heard::Read(aggregates_max, reply) => drop(reply.send(self.core.reading(aggregates_max, boot_now_ns()))),
            Heard::Stop => {}
        }
    }

    fn send(&mut self, session: Session, order: v1::Order) {
        let limits = order.limits.len() as u64;
        let is_sent = self.streams.get(&session).is_some_and(|stream| match stream.try_send(Ok(order)) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.counts.streams.orders.one();
                false
            }
            // It has gone away by itself.
            Err(TrySendError::Closed(_)) => false,
        });
        if !is_sent {
            warn!(session, "a node does not take its orders, and is cut off");
            self.forget(session);
            return;
        }
        self.counts.orders.one();
        self.counts.limits.add(limits);
    }

    /// Closes the streams of sessions that the core has ended: which, and what they are told.
    fn end_those_over(&mut self) -> Vec<(Session, Status)> {
        let over = self.core.take_over();
        over.iter().for_each(|(_, over)| self.counts.streams.ended(over));
        let over = over.into_iter().map(|(session, over)| (session, status_of(&over)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Replica, Store};

    /// A node that is in no network comes: it is answered.
    fn first(node: &str) -> v1::Report {
        let registration = v1::Registration { node: node.to_owned(), ..v1::Registration::default() };
        v1::Report { registration: Some(registration), ..report(1) }
    }

    fn report(sequence: u64) -> v1::Report {
        v1::Report { sequence, ..v1::Report::default() }
    }

    /// Reports until that many orders were sent, or the stream is cut off.
    async fn until(lead: &Lead, session: Session, orders: u64) {
        let (counts, begin) = (lead.counts.clone(), Instant::now());
        let (before, cut_off) = (counts.orders.get(), counts.streams.orders.get());
        for sequence in 2.. {
            if counts.orders.get() >= before + orders || counts.streams.orders.get() > cut_off {
                return;
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "{counts:?}");
            assert!(lead.said(session, report(sequence), &Backlog::default()));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn streams_that_are_cut_off_are_counted_and_those_that_went_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::embedded(folder.path()).await.unwrap();
        let replica = Replica { name: "c".to_owned(), address: String::new() };
        let leadership = Arc::new(store.campaign(&replica).await.unwrap());
        let (lead, work) = Lead::begin(leadership, Settings::default(), Arc::default());
        let counts = lead.counts.clone();
        let gone = lead.came(1, first("n1")).await.unwrap();
        until(&lead, 1, 1).await;
        drop(gone);
        // It is told something, which nobody takes.
        assert!(lead.said(1, report(u64::MAX), &Backlog::default()));
        // What was sent before that is counted when this is answered.
        assert!(lead.reading(0).await.is_some());
        let before = counts.orders.get();
        let _taken_by_nobody = lead.came(2, first("n2")).await.unwrap();
        until(&lead, 2, 2 * ORDERS_MAX as u64).await;
        assert_eq!((counts.orders.get() - before, counts.streams.orders.get()), (ORDERS_MAX as u64, 1));
        assert_eq!((counts.streams.reports.get(), counts.streams.opened.get(), counts.limits.get()), (0, 2, 0));
        let full = Arc::new(AtomicUsize::new(REPORTS_MAX));
        assert!(!lead.said(2, report(u64::MAX), &full));
        assert_eq!(counts.streams.reports.get(), 1);
        lead.stop();
        work.await.unwrap();
    }
}
