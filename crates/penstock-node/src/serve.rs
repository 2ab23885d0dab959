// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process: start, serve, stop. Stopping leaves enforcement as it is.

use crate::attend::{self, Controllers};
use crate::error::NodeError;
use crate::keeper::{Keeper, unix_ns};
use crate::metrics::{LimitSeries, OfNode};
use crate::service::{About, Node};
use crate::socket::{Socket, SocketError};
use crate::store::{Store, StoreError};
use crate::tending::{IDLE_PERIOD, PERIOD};
use penstock_api::MESSAGE_BYTES_MAX;
use penstock_api::metrics::{Endpoint, ListenError};
use penstock_api::v1::node_server::NodeServer;
use penstock_dataplane::{Dataplane, DataplaneError};
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio_stream::wrappers::UnixListenerStream;
use tracing::{info, warn};

/// Ticks between attempts to put a policy into force that could not be: doubles up to the second number.
const RETRY_TICKS: (u32, u32) = (5, 60);
/// How long requests may go on after the daemon was told to stop.
const GRACE: Duration = Duration::from_secs(30);

/// How a daemon runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the API is.
    pub socket: PathBuf,
    /// Folder of the store.
    pub state: PathBuf,
    /// Where metrics are, with what others than this daemon tell there; none for nowhere.
    pub metrics: Option<Endpoint>,
    /// Limits that metrics always tell about, as `limits list` filters them.
    pub metrics_limits: Option<String>,
    /// Limits in one answer of metrics.
    pub metrics_limits_max: u64,
    /// Name of the data plane.
    pub dataplane: &'static str,
    /// Whether the data plane was asked to count each limit, or not to.
    pub counts_limits: Option<bool>,
    /// Between readings of the daemon's own.
    pub sampling: Duration,
    /// Whom it attends; none for nobody.
    pub controllers: Option<Controllers>,
}

/// Why a daemon does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The socket.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was left to do.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The data plane.
    #[error("the data plane cannot be opened: {0}")]
    Dataplane(#[from] DataplaneError),
    /// The metrics' address.
    #[error(transparent)]
    Metrics(#[from] ListenError),
    /// The API.
    #[error("the API stopped: {0}")]
    Api(#[from] tonic::transport::Error),
}

/// Runs a daemon until `stop` comes. `open` opens the data plane, once no other daemon can be using it.
///
/// # Errors
/// It cannot start, or the API stops by itself.
pub async fn serve(
    settings: Settings,
    open: impl FnOnce() -> Result<Box<dyn Dataplane>, DataplaneError> + Send + 'static,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let (_socket, listener) = Socket::listen(&settings.socket)?;
    let (state, attends) = (settings.state.clone(), settings.controllers.is_some());
    let started = tokio::task::spawn_blocking(move || -> Result<Keeper, ServeError> {
        let mut store = Store::open(&state)?;
        if !attends {
            forget_lent(&mut store)?;
        }
        let mut keeper = Keeper::start(store, open()?)?;
        keeper.check_counting(settings.counts_limits);
        Ok(keeper)
    });
    let keeper = started.await.map_err(|error| NodeError::Stalled(format!("the start failed: {error}")))??;
    let about = About {
        dataplane: settings.dataplane,
        state: settings.state.display().to_string(),
        metrics: settings.metrics.as_ref().map(Endpoint::url).unwrap_or_default(),
        started_unix_ns: unix_ns(),
        sampling: settings.sampling,
    };
    info!(socket = %settings.socket.display(), metrics = about.metrics, "serving");
    let (stopping, stopped) = watch::channel(false);
    let node = Node::new(keeper, about, stopped.clone());
    let series = LimitSeries { pattern: settings.metrics_limits, limits_max: settings.metrics_limits_max };
    let (end_metrics, until) = oneshot::channel::<()>();
    let of_metrics = match settings.metrics {
        Some(mut endpoint) => {
            endpoint.tell(Arc::new(OfNode::new(node.clone(), series)));
            Some(tokio::spawn(endpoint.serve(async { drop(until.await) })?))
        }
        None => None,
    };
    let of_ticks = tokio::spawn(tick(node.clone(), settings.sampling, stopped.clone()));
    let of_tending = tokio::spawn(tend(node.clone(), stopped.clone()));
    let of_controllers = settings.controllers.map(|controllers| {
        let attending = tokio::spawn(attend::attend(node.clone(), controllers, stopped.clone()));
        (attending, tokio::spawn(attend::watch_lease(node.clone(), stopped.clone())))
    });

    let server =
        NodeServer::new(node).max_decoding_message_size(MESSAGE_BYTES_MAX).max_encoding_message_size(MESSAGE_BYTES_MAX);
    let mut stopped_api = stopped.clone();
    let api = tonic::transport::Server::builder().serve_with_incoming_shutdown(
        server,
        UnixListenerStream::new(listener),
        async move {
            let _ = stopped_api.wait_for(|stopping| *stopping).await;
        },
    );
    let on_stop = async {
        stop.await;
        info!("stopping; what is in force stays in force");
        stopping.send_replace(true);
        tokio::time::sleep(GRACE).await;
        warn!("requests did not end in time");
    };
    let result = tokio::select! {
        result = api => result.map_err(ServeError::from),
        () = on_stop => Ok(()),
    };
    // The store is free for another daemon when this returns.
    drop(end_metrics);
    if let Some(of_metrics) = of_metrics {
        let _ = of_metrics.await;
    }
    stopping.send_replace(true);
    let _ = of_ticks.await;
    let _ = of_tending.await;
    if let Some((attending, watching)) = of_controllers {
        let _ = attending.await;
        let _ = watching.await;
    }
    result
}

/// A daemon that attends nobody has what its policy says.
fn forget_lent(store: &mut Store) -> Result<(), StoreError> {
    if let Some(record) = store.lent()? {
        store.lend(None)?;
        info!(
            limits = record.holding.limits.len(),
            "no controller is attended any more: what one had lent is forgotten"
        );
    }
    Ok(())
}

/// What the daemon does by itself.
async fn tick(node: Node, sampling: Duration, mut stopped: watch::Receiver<bool>) {
    let mut ticks = tokio::time::interval(sampling);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut until_retry, mut pause) = (RETRY_TICKS.0, RETRY_TICKS.0);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stopped.wait_for(|stopping| *stopping) => return,
        }
        let ticked = node.clone();
        let is_stalled = tokio::task::spawn_blocking(move || {
            let mut keeper = ticked.keeper();
            keeper.tick();
            keeper.held().is_some_and(|held| held.stalled.is_some())
        });
        if !is_stalled.await.unwrap_or(false) {
            (until_retry, pause) = (RETRY_TICKS.0, RETRY_TICKS.0);
            continue;
        }
        until_retry = until_retry.saturating_sub(1);
        if until_retry == 0 {
            pause = (pause * 2).min(RETRY_TICKS.1);
            until_retry = pause;
            let retried = node.clone();
            let _ = tokio::task::spawn_blocking(move || retried.retry()).await;
        }
    }
}

/// Tends shares while the policy in force has any. The keeper is held for that call only.
async fn tend(node: Node, mut stopped: watch::Receiver<bool>) {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stopped.wait_for(|stopping| *stopping) => return,
        }
        let tended = node.clone();
        if !tokio::task::spawn_blocking(move || tended.keeper().tend()).await.unwrap_or(false) {
            ticks.reset_after(IDLE_PERIOD);
        }
    }
}
