// SPDX-License-Identifier: MIT OR Apache-2.0
//! The API of a replica.

use crate::access::Caller;
use crate::change::{change, sentence};
use crate::core::Settings;
use crate::counts::Counts;
use crate::lead::{Backlog, Lead, Told};
use crate::networks::{Known, Networks};
use crate::replica::Leading;
use crate::store::{AuditEntry, Replica, Store, StoreError, Stored};
use penstock_alloc::file::{NAME_BYTES_MAX, NETWORK_BYTES_MAX};
use penstock_alloc::model::Network;
use penstock_api::controller::LEADER;
use penstock_api::{CHUNK_BYTES, v1};
use penstock_policy::diagnostics::Source;
use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Response, Status, Streaming};
use tracing::{info, warn};

/// Longest wait for a message that should be on its way.
const MESSAGE_MAX: Duration = Duration::from_secs(10);
/// The same refusal is logged once in so long, and so many different ones.
const AGAIN: Duration = Duration::from_secs(60);
const REFUSED_MAX: usize = 100;
/// Longest audit log that is told at once.
const AUDIT_DEFAULT: usize = 100;

type Reply<T> = Result<Response<T>, Status>;
type Stream<T> = ReceiverStream<Result<T, Status>>;

/// What answers.
#[derive(Clone)]
pub struct Service(Arc<Shared>);

struct Shared {
    store: Arc<Store>,
    networks: Arc<Networks>,
    replica: Replica,
    settings: Settings,
    counts: Arc<Counts>,
    leading: Leading,
    stopping: watch::Receiver<bool>,
    sessions: AtomicU64,
    /// Who was refused what lately.
    refused: Mutex<HashMap<(String, String), Instant>>,
}

impl Service {
    /// Answers for a replica.
    #[must_use]
    pub fn new(
        store: Arc<Store>,
        networks: Arc<Networks>,
        replica: Replica,
        settings: Settings,
        counts: Arc<Counts>,
        leading: Leading,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self(Arc::new(Shared {
            store,
            networks,
            replica,
            settings,
            counts,
            leading,
            stopping,
            sessions: AtomicU64::new(1),
            refused: Mutex::default(),
        }))
    }

    /// The leader, if it is here; else where it is.
    async fn lead(&self) -> Result<Lead, Status> {
        if let Some(lead) = self.0.leading.borrow().clone() {
            return Ok(lead);
        }
        let leader = self.0.counts.store(self.0.store.leader().await).ok().flatten();
        let leader = leader.filter(|leader| leader.name != self.0.replica.name);
        let (text, address) = match &leader {
            Some(leader) => (format!("{} leads, at {}", leader.name, leader.address), leader.address.as_str()),
            None => ("no replica leads at this moment".to_owned(), ""),
        };
        let mut status = Status::unavailable(text);
        if let Ok(address) = MetadataValue::try_from(address) {
            status.metadata_mut().insert(LEADER, address);
        }
        Err(status)
    }

    /// A refused attempt, for the log. That it cannot be written does not let anybody in.
    async fn refused(&self, caller: &Caller, what: String, why: &str) {
        // Whoever tries ten times a second is one entry a minute: others are not washed out of the log.
        let key = (caller.who.clone(), what.clone());
        let is_again = self.0.refused.lock().is_ok_and(|mut refused| {
            refused.retain(|_, at| at.elapsed() < AGAIN);
            refused.len() > REFUSED_MAX || refused.insert(key, Instant::now()).is_some()
        });
        if is_again {
            return;
        }
        warn!(who = caller.who, from = caller.from, "{what}: refused: {why}");
        let entry = AuditEntry { refused: why.to_owned(), ..self.entry(caller, what) };
        if let Err(error) = self.0.counts.store(self.0.store.add_audit(entry).await) {
            warn!("the audit log could not be written: {error}");
        }
    }

    fn entry(&self, caller: &Caller, what: String) -> AuditEntry {
        let (who, from) = (caller.who.clone(), caller.from.clone());
        AuditEntry { time_unix_ns: unix_ns(), who, from, what, refused: String::new() }
    }

    /// Reads, checks, compares and stores a network.
    async fn put(&self, caller: &Caller, file: v1::NetworkFile, bytes: Vec<u8>) -> Result<v1::PutNetworkReply, Status> {
        let newest = self.0.counts.store(self.0.networks.newest().await).map_err(|error| status_of(&error))?;
        // Between the comparison and the put nobody else's comes in.
        let expected = newest.as_ref().map_or(0, |newest| newest.revision);
        if file.revision != 0 && expected != 0 && file.revision != expected {
            return Err(status_of(&StoreError::Conflict { revision: expected }));
        }
        // One that cannot be read any more is no reason not to put a better one.
        let before = newest.and_then(|newest| newest.known.ok()).unwrap_or_default();
        let name = file.name.clone();
        let checked = tokio::task::spawn_blocking(move || check(&before, &name, bytes)).await;
        let checked = checked.map_err(|error| Status::internal(format!("the network could not be read: {error}")))?;
        let (mut change, after, text) = match checked {
            Ok(checked) => checked,
            Err(text) => {
                self.refused(caller, format!("put network {}", file.name), "it is wrong").await;
                let outcome = v1::put_network_reply::Outcome::Diagnostics(v1::Diagnostics { text });
                return Ok(v1::PutNetworkReply { outcome: Some(outcome) });
            }
        };
        if !file.dry_run {
            let entry = self.entry(caller, format!("put network {}: {}", file.name, sentence(&change)));
            let expected = if file.revision == 0 { expected } else { file.revision };
            let put = self.0.networks.put(expected, (&file.name, text.as_bytes()), Arc::new(after), entry).await;
            change.revision = self.0.counts.store(put).map_err(|error| status_of(&error))?;
            info!(who = caller.who, revision = change.revision, "another network: {}", sentence(&change));
        }
        Ok(v1::PutNetworkReply { outcome: Some(v1::put_network_reply::Outcome::Change(change)) })
    }
}

/// What is wrong with a network, or what it changes of the one that is stored, it, and its text.
fn check(before: &Known, name: &str, bytes: Vec<u8>) -> Result<(v1::NetworkChange, Known, Arc<str>), String> {
    let text = String::from_utf8(bytes).map_err(|error| format!("error: {name}: {error}; a network file is UTF-8"))?;
    let source = Source::new(name, text);
    // Hard limits are installed as they are: what asks for more than a port has must not be.
    let fitting = Network::parse_checked(&source).and_then(|(network, unfit)| unfit.into_result(network));
    let after = Known::new(fitting.map_err(|errors| errors.to_string())?);
    Ok((change(before, &after), after, source.text().into()))
}

#[tonic::async_trait]
impl v1::controller_server::Controller for Service {
    type AttendStream = Stream<v1::Order>;
    type GetNetworkStream = Stream<v1::NetworkPart>;

    async fn attend(&self, request: Request<Streaming<v1::Report>>) -> Reply<Self::AttendStream> {
        let caller = Caller::of(&request);
        let streams = &self.0.counts.streams;
        let lead = self.lead().await.inspect_err(|_| streams.not_leading.one())?;
        let mut reports = request.into_inner();
        let first = in_time(reports.message()).await?.ok_or_else(|| Status::invalid_argument("a node reports"))?;
        let Some(registration) = &first.registration else {
            streams.registration.one();
            return Err(Status::invalid_argument("the first report of a stream has a registration"));
        };
        if !is_node_name(&registration.node) {
            streams.registration.one();
            return Err(Status::invalid_argument(
                "a node has a name, of at most 128 bytes and without control characters",
            ));
        }
        if let Err(status) = caller.may_attend(&registration.node) {
            streams.certificate.one();
            self.refused(&caller, format!("attend as {}", registration.node), status.message()).await;
            return Err(status);
        }
        let (name, version) = (registration.node.clone(), registration.version.clone());
        let session = self.0.sessions.fetch_add(1, Ordering::Relaxed);
        let orders = match lead.came(session, first).await {
            Ok(orders) => orders,
            Err(status) => {
                if status.code() == Code::AlreadyExists {
                    self.refused(&caller, format!("attend as {name}"), status.message()).await;
                }
                return Err(status);
            }
        };
        info!(node = name, from = caller.from, version, "attends");
        let mut stopping = self.0.stopping.clone();
        tokio::spawn(async move {
            let (backlog, mut is_heard) = (Backlog::default(), true);
            while is_heard {
                let next = tokio::select! {
                    next = reports.message() => next,
                    _ = stopping.wait_for(|stopping| *stopping) => break,
                };
                match next {
                    Ok(Some(report)) if report.registration.is_none() => {
                        is_heard = lead.said(session, report, &backlog)
                    }
                    _ => break,
                }
            }
            info!(node = name, "attends no longer");
            lead.left(session);
        });
        Ok(Response::new(orders_of(orders)))
    }

    async fn put_network(&self, request: Request<Streaming<v1::NetworkPart>>) -> Reply<v1::PutNetworkReply> {
        let caller = Caller::of(&request);
        let puts = &self.0.counts.puts;
        if let Err(status) = caller.may_write() {
            puts.certificate.one();
            self.refused(&caller, "put network".to_owned(), status.message()).await;
            return Err(status);
        }
        let (file, bytes) = upload(request.into_inner()).await.inspect_err(|status| puts.unread(status))?;
        // What was begun is done also when the client goes away: it is stored and logged, or neither.
        let this = self.clone();
        let done = tokio::spawn(async move {
            let done = this.put(&caller, file, bytes).await;
            this.0.counts.puts.done(&done);
            done
        });
        done.await
            .map_err(|error| Status::internal(format!("the network could not be put: {error}")))?
            .map(Response::new)
    }

    async fn get_network(&self, request: Request<v1::GetNetworkRequest>) -> Reply<Self::GetNetworkStream> {
        Caller::of(&request).may_read()?;
        let stored = self.0.counts.store(self.0.store.network().await).map_err(|error| status_of(&error))?;
        let Stored { revision, name, text } =
            stored.ok_or_else(|| Status::not_found("there is no network yet; `penstock network put FILE` puts one"))?;
        let (sender, receiver) = mpsc::channel(4);
        tokio::spawn(async move {
            let file = v1::network_part::Part::File(v1::NetworkFile { name, revision, dry_run: false });
            let bytes = text.chunks(CHUNK_BYTES).map(|chunk| v1::network_part::Part::Bytes(chunk.to_vec()));
            for part in std::iter::once(file).chain(bytes) {
                if sender.send(Ok(v1::NetworkPart { part: Some(part) })).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn get_standing(&self, request: Request<v1::GetStandingRequest>) -> Reply<v1::StandingReply> {
        Caller::of(&request).may_read()?;
        let lead = self.0.leading.borrow().clone();
        let standing = match lead {
            Some(lead) => lead.standing(request.into_inner()).await,
            None => None,
        };
        let mut warnings = Vec::new();
        let mut told = |error: StoreError| warnings.push(error.to_string());
        let counts = &self.0.counts;
        let leader = counts.store(self.0.store.leader().await).map_err(&mut told).ok().flatten();
        let revision = counts.store(self.0.store.revision().await).map_err(&mut told).unwrap_or_default();
        let mut standing = standing.unwrap_or_default();
        warnings.append(&mut standing.warnings);
        let (leader, leader_address) = leader.map(|leader| (leader.name, leader.address)).unwrap_or_default();
        Ok(Response::new(v1::StandingReply {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            replica: self.0.replica.name.clone(),
            leader,
            leader_address,
            store: self.0.store.describe(),
            revision: revision.max(standing.revision),
            lease_ns: self.0.settings.lease_ns,
            warnings,
            ..standing
        }))
    }

    async fn list_audit(&self, request: Request<v1::ListAuditRequest>) -> Reply<v1::AuditReply> {
        Caller::of(&request).may_read()?;
        let count = match request.into_inner().count {
            0 => AUDIT_DEFAULT,
            count => usize::try_from(count).unwrap_or(usize::MAX),
        };
        let entries = self.0.counts.store(self.0.store.audit(count).await).map_err(|error| status_of(&error))?;
        let entry = |entry: AuditEntry| {
            let AuditEntry { time_unix_ns, who, from, what, refused } = entry;
            v1::AuditEntry { time_unix_ns, who, from, what, refused }
        };
        Ok(Response::new(v1::AuditReply { entries: entries.into_iter().map(entry).collect() }))
    }
}

fn is_node_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control)
}

fn orders_of(orders: mpsc::Receiver<Told>) -> Stream<v1::Order> {
    ReceiverStream::new(orders)
}

/// A message of a client that should be on its way: nobody holds a stream open for nothing.
async fn in_time<T>(message: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let late = || Status::deadline_exceeded(format!("nothing came for {} s", MESSAGE_MAX.as_secs()));
    tokio::time::timeout(MESSAGE_MAX, message).await.map_err(|_| late())?
}

/// A file that a client sends in pieces.
async fn upload(mut parts: Streaming<v1::NetworkPart>) -> Result<(v1::NetworkFile, Vec<u8>), Status> {
    let (mut file, mut bytes) = (None, Vec::new());
    while let Some(v1::NetworkPart { part }) = in_time(parts.message()).await? {
        match part {
            Some(v1::network_part::Part::File(one)) if file.is_none() => file = Some(one),
            Some(v1::network_part::Part::Bytes(more)) if file.is_some() => bytes.extend_from_slice(&more),
            _ => return Err(Status::invalid_argument("the parts are out of order: `file`, then `bytes`")),
        }
        if bytes.len() > NETWORK_BYTES_MAX {
            let text = format!("the network is larger than {} MiB", NETWORK_BYTES_MAX >> 20);
            return Err(Status::invalid_argument(text));
        }
    }
    let file = file.ok_or_else(|| Status::invalid_argument("there is no file"))?;
    Ok((file, bytes))
}

fn status_of(error: &StoreError) -> Status {
    let text = error.to_string();
    match error {
        StoreError::Conflict { .. } => Status::failed_precondition(text),
        StoreError::TooLarge { .. } => Status::invalid_argument(text),
        // Not UNAVAILABLE: no other replica can do better.
        _ => Status::internal(text),
    }
}

/// Now, in ns of Unix time.
fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
