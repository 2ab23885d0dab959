// SPDX-License-Identifier: MIT OR Apache-2.0
//! The API. What changes something runs to its end on a thread of its own, even when the client goes away meanwhile.

use crate::compiled::compile;
use crate::error::NodeError;
use crate::explain::explain;
use crate::keeper::{Keeper, preview};
use crate::limits::{self, Cursor};
use crate::store::{Packed, Source, StoreError};
use crate::{names, readings, rows, uploads};
use penstock_api::{CHUNK_BYTES, v1};
use penstock_dataplane::{LimitId, is_live};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tracing::warn;

const WATCH_DEFAULT: Duration = Duration::from_secs(1);
const WATCH_MIN: Duration = Duration::from_millis(100);
const WATCH_MAX: Duration = Duration::from_secs(3600);
/// Limits that one watch may ask for.
const WATCHED_LIMITS_MAX: usize = 1000;

/// What does not change while the daemon runs.
#[derive(Debug, Clone)]
pub struct About {
    /// Name of the data plane.
    pub dataplane: &'static str,
    /// Folder of the store.
    pub state: String,
    /// Where metrics are served.
    pub metrics: String,
    /// Since when it runs.
    pub started_unix_ns: u64,
    /// Between readings of the daemon's own.
    pub sampling: Duration,
}

/// A node, shared by all who ask it.
#[derive(Clone)]
pub struct Node(Arc<Shared>);

struct Shared {
    keeper: Mutex<Keeper>,
    /// Held by whoever changes something, from the moment it looks at what there is: changes come one after the other, while
    /// readings go on.
    changing: Mutex<()>,
    about: About,
    stopping: watch::Receiver<bool>,
}

type Reply<T> = Result<Response<T>, Status>;
type Stream<T> = ReceiverStream<Result<T, Status>>;

impl Node {
    /// Shares a keeper. Streams end when `stopping` becomes true.
    #[must_use]
    pub fn new(keeper: Keeper, about: About, stopping: watch::Receiver<bool>) -> Self {
        Self(Arc::new(Shared { keeper: Mutex::new(keeper), changing: Mutex::new(()), about, stopping }))
    }

    /// The keeper, for a short time.
    pub fn keeper(&self) -> MutexGuard<'_, Keeper> {
        self.0.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        self.0.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What does not change.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.0.about
    }

    /// Tries again what could not be put into force, unless something else is being changed.
    pub fn retry(&self) {
        let Ok(_changing) = self.0.changing.try_lock() else { return };
        let stalled = self.keeper().stalled();
        let Some((packed, changes)) = stalled else { return };
        match packed.unpack() {
            Ok(source) => {
                let compiled = compile(&source, &changes);
                self.keeper().retry(compiled);
            }
            Err(error) => warn!("{}: {error}", packed.name),
        }
    }

    /// Runs something that takes long, or must not be cut short.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Node) -> Result<T, NodeError> + Send + 'static,
    ) -> Result<T, NodeError> {
        let node = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&node)).await;
        done.unwrap_or_else(|error| Err(NodeError::Stalled(format!("the daemon could not finish this: {error}"))))
    }

    /// Changes limits.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Keeper) -> Result<T, NodeError> + Send + 'static,
    ) -> Result<T, NodeError> {
        self.run(|node| {
            let _changing = node.changing();
            work(&mut node.keeper())
        })
        .await
    }

    /// A policy into force.
    async fn put(&self, parts: Streaming<v1::PolicyPart>, is_reload: bool) -> Reply<v1::ChangeReply> {
        let (source, dry_run) = uploads::policy(parts).await?;
        let result = self.run(move |node| node.put_blocking(&source, is_reload, dry_run)).await;
        let outcome = match result {
            Ok(change) => v1::change_reply::Outcome::Change(change),
            Err(NodeError::Diagnostics(errors)) => v1::change_reply::Outcome::Diagnostics(diagnostics(&errors)),
            Err(error) => return Err(error.into()),
        };
        Ok(Response::new(v1::ChangeReply { outcome: Some(outcome) }))
    }

    fn put_blocking(&self, source: &Source, is_reload: bool, dry_run: bool) -> Result<v1::Change, NodeError> {
        let _changing = self.changing();
        self.keeper().may(is_reload)?;
        let changes = self.keeper().changes().clone();
        // Takes seconds for millions of rows: readings go on meanwhile.
        let compiled = compile(source, &changes)?;
        let before = self.keeper().plan_unlent();
        let change = preview(before.as_ref(), changes.len(), &compiled);
        drop(before);
        if dry_run {
            return Ok(change);
        }
        let failed = |error| StoreError::Io { path: source.name.clone().into(), source: error };
        let packed = Packed::new(source).map_err(failed)?;
        self.keeper().replace(Some(&packed), compiled, change, &[])
    }

    fn status(&self) -> v1::StatusReply {
        let keeper = self.keeper();
        let about = self.about();
        v1::StatusReply {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            started_unix_ns: about.started_unix_ns,
            dataplane: about.dataplane.to_owned(),
            state: about.state.clone(),
            metrics: about.metrics.clone(),
            policy: policy_status(&keeper),
            warnings: keeper.warnings(),
            controller: keeper.controller_status(),
        }
    }

    fn watched(&self, watched: &mut Watched) -> Result<v1::Readings, NodeError> {
        let keeper = self.keeper();
        let mut message = keeper.readings(watched.before.as_ref())?;
        let (plan, _) = keeper.in_force()?;
        let of_plan = (message.generation, plan.entries.len());
        if watched.of_plan != Some(of_plan) {
            // Millions of names are not looked through for each reading.
            watched.limits = names::limits(plan, &watched.names);
            watched.of_plan = Some(of_plan);
        }
        for &limit in &watched.limits {
            // One that is gone is left out.
            let Ok(mut limit) = limits::with_reading(&keeper, plan, limit) else { continue };
            let was =
                watched.before.as_ref().and_then(|before| before.limits.iter().find(|one| one.name == limit.name));
            limit.rates = was
                .and_then(|one| one.counters.as_ref())
                .zip(limit.counters.as_ref())
                .and_then(|(was, counters)| readings::rates(was, counters, message.interval_ns));
            message.limits.push(limit);
        }
        watched.before = Some(message.clone());
        Ok(message)
    }
}

/// What a watch remembers from one reading to the next.
#[derive(Default)]
struct Watched {
    /// Full names of limits.
    names: Vec<String>,
    limits: Vec<LimitId>,
    /// Generation and rows that `limits` were found in.
    of_plan: Option<(u64, usize)>,
    before: Option<v1::Readings>,
}

fn policy_status(keeper: &Keeper) -> Option<v1::PolicyStatus> {
    let held = keeper.held()?;
    let record = &held.record;
    let mut status = v1::PolicyStatus {
        name: held.policy.as_ref().map_or_else(String::new, |policy| policy.name.clone()),
        source: record.name.clone(),
        generation: record.generation,
        since_unix_ns: record.since_unix_ns,
        runtime_changes: keeper.changes().len() as u64,
        ..v1::PolicyStatus::default()
    };
    let Ok((plan, _)) = keeper.in_force() else { return Some(v1::PolicyStatus { generation: 0, ..status }) };
    let port_name = |index: u32| plan.ports.get(index as usize).map_or(String::new(), |port| port.name.clone());
    let link_name = |index: &u32| plan.links.get(*index as usize).map_or(String::new(), |link| link.name.clone());
    let ports = plan.ports.iter().map(|port| v1::PortStatus {
        name: port.name.clone(),
        device: port.device.clone().unwrap_or_default(),
        rate_bps: port.rate_bps,
        links: port.links.iter().map(link_name).collect(),
        forward: port.forward.map(port_name).unwrap_or_default(),
    });
    status.ports = ports.collect();
    status.shares = keeper.recent.tended.message();
    status.links = plan.links.len() as u64;
    status.classes = plan.classes.len() as u64;
    status.limits = (plan.limits.len() + plan.entries.iter().filter(|entry| is_live(entry)).count()) as u64;
    Some(status)
}

fn diagnostics(errors: &penstock_policy::Errors) -> v1::Diagnostics {
    v1::Diagnostics { text: errors.render(false) }
}

#[tonic::async_trait]
impl v1::node_server::Node for Node {
    type WatchStream = Stream<v1::Readings>;
    type ListLimitsStream = Stream<v1::LimitsPage>;
    type ExportLimitsStream = Stream<v1::ExportPart>;

    async fn up(&self, request: Request<Streaming<v1::PolicyPart>>) -> Reply<v1::ChangeReply> {
        self.put(request.into_inner(), false).await
    }

    async fn reload(&self, request: Request<Streaming<v1::PolicyPart>>) -> Reply<v1::ChangeReply> {
        self.put(request.into_inner(), true).await
    }

    async fn down(&self, _: Request<v1::DownRequest>) -> Reply<v1::DownReply> {
        let policy = self.change(Keeper::down).await?;
        Ok(Response::new(v1::DownReply { policy: policy.unwrap_or_default() }))
    }

    async fn status(&self, _: Request<v1::StatusRequest>) -> Reply<v1::StatusReply> {
        Ok(Response::new(self.run(|node| Ok(node.status())).await?))
    }

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Reply<Self::WatchStream> {
        let request = request.into_inner();
        let interval = match request.interval_ns {
            0 => WATCH_DEFAULT,
            time_ns => Duration::from_nanos(time_ns),
        };
        if !(WATCH_MIN..=WATCH_MAX).contains(&interval) || request.limits.len() > WATCHED_LIMITS_MAX {
            let text =
                format!("an interval is from 100 ms to an hour; at most {WATCHED_LIMITS_MAX} limits are watched");
            return Err(Status::invalid_argument(text));
        }
        let (sender, receiver) = mpsc::channel(1);
        let (node, mut stopping) = (self.clone(), self.0.stopping.clone());
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(interval);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            let mut watched = Watched { names: request.limits, ..Watched::default() };
            loop {
                tokio::select! {
                    _ = ticks.tick() => {}
                    _ = stopping.wait_for(|stopping| *stopping) => return,
                    () = sender.closed() => return,
                }
                let work = move |node: &Node| {
                    let result = node.watched(&mut watched);
                    Ok((watched, result))
                };
                let result;
                match node.run(work).await {
                    Ok((back, told)) => (watched, result) = (back, told),
                    Err(_) => return,
                }
                let is_last = result.is_err();
                if sender.send(result.map_err(Status::from)).await.is_err() || is_last {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn explain(&self, request: Request<v1::ExplainRequest>) -> Reply<v1::ExplainReply> {
        let subject = request.into_inner().subject;
        let again = subject.clone();
        let (reply, earlier) = self.run(move |node| explain(&mut node.keeper(), &subject, None)).await?;
        if !earlier.has_counters() {
            return Ok(Response::new(reply));
        }
        tokio::time::sleep(self.about().sampling).await;
        let (reply, _) = self.run(move |node| explain(&mut node.keeper(), &again, Some(&earlier))).await?;
        Ok(Response::new(reply))
    }

    async fn list_limits(&self, request: Request<v1::ListLimitsRequest>) -> Reply<Self::ListLimitsStream> {
        let request = request.into_inner();
        let (sender, receiver) = mpsc::channel(4);
        self.run(|node| node.keeper().in_force().map(|_| ())).await?;
        let node = self.clone();
        tokio::task::spawn_blocking(move || {
            let mut cursor = Cursor::default();
            loop {
                let result = limits::page(&node.keeper(), &request, &mut cursor);
                let is_last = result.as_ref().map_or(true, |(_, is_last)| *is_last);
                if !is_last && result.as_ref().is_ok_and(|(page, _)| page.limits.is_empty()) && !sender.is_closed() {
                    continue;
                }
                let sent = sender.blocking_send(result.map(|(page, _)| page).map_err(Status::from));
                if is_last || sent.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn get_limit(&self, request: Request<v1::GetLimitRequest>) -> Reply<v1::GetLimitReply> {
        let name = request.into_inner().name;
        let limit = self.run(move |node| limits::get(&node.keeper(), &name)).await?;
        Ok(Response::new(v1::GetLimitReply { limit: Some(limit) }))
    }

    async fn set_limit(&self, request: Request<v1::SetLimitRequest>) -> Reply<v1::SetLimitReply> {
        let v1::SetLimitRequest { name, rate_bps } = request.into_inner();
        Ok(Response::new(self.change(move |keeper| limits::set(keeper, &name, rate_bps)).await?))
    }

    async fn add_limit(&self, request: Request<v1::AddLimitRequest>) -> Reply<v1::AddLimitReply> {
        let request = request.into_inner();
        let outcome = match self.change(move |keeper| rows::add(keeper, &request)).await {
            Ok(limit) => v1::add_limit_reply::Outcome::Limit(limit),
            Err(NodeError::Diagnostics(errors)) => v1::add_limit_reply::Outcome::Diagnostics(diagnostics(&errors)),
            Err(error) => return Err(error.into()),
        };
        Ok(Response::new(v1::AddLimitReply { outcome: Some(outcome) }))
    }

    async fn delete_limit(&self, request: Request<v1::DeleteLimitRequest>) -> Reply<v1::DeleteLimitReply> {
        let name = request.into_inner().name;
        Ok(Response::new(self.change(move |keeper| limits::delete(keeper, &name)).await?))
    }

    async fn import_limits(&self, request: Request<Streaming<v1::ImportPart>>) -> Reply<v1::ImportReply> {
        let (file, bytes) = uploads::import(request.into_inner()).await?;
        let outcome = match self.change(move |keeper| rows::import(keeper, &file, bytes)).await {
            Ok(limits) => v1::import_reply::Outcome::Limits(limits),
            Err(NodeError::Diagnostics(errors)) => v1::import_reply::Outcome::Diagnostics(diagnostics(&errors)),
            Err(error) => return Err(error.into()),
        };
        Ok(Response::new(v1::ImportReply { outcome: Some(outcome) }))
    }

    async fn export_limits(&self, request: Request<v1::ExportLimitsRequest>) -> Reply<Self::ExportLimitsStream> {
        let class = request.into_inner().class;
        let bytes = self.change(move |keeper| rows::export(keeper, &class)).await?;
        let (sender, receiver) = mpsc::channel(4);
        tokio::spawn(async move {
            for chunk in bytes.chunks(CHUNK_BYTES) {
                if sender.send(Ok(v1::ExportPart { bytes: chunk.to_vec() })).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
