// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process of a replica: start, serve, stop.

use crate::core::Settings;
use crate::metrics::Metrics;
use crate::networks::Networks;
use crate::replica;
use crate::service::Service;
use crate::store::{Replica, Store, StoreError};
use penstock_api::MESSAGE_BYTES_MAX;
use penstock_api::metrics::{Endpoint, ListenError};
use penstock_api::tls::Tls;
use penstock_api::v1::controller_server::ControllerServer;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tracing::info;

/// Peers that say nothing for so long are asked whether they are there, and are gone when they do not answer for as long again.
const KEEPALIVE: Duration = Duration::from_secs(2);
/// How long requests may go on after the replica was told to stop.
const GRACE: Duration = Duration::from_secs(2);

/// How a replica runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its name, and where others find it.
    pub replica: Replica,
    /// Certificates; none on this machine only.
    pub tls: Option<Tls>,
    /// How it lends when it leads.
    pub settings: Settings,
    /// What it tells of itself; where this is a source already, `endpoint` is not needed.
    pub metrics: Metrics,
    /// Where it serves metrics; none for nowhere.
    pub endpoint: Option<Endpoint>,
}

/// Why a replica does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The address.
    #[error("cannot listen on {address}: {source}; `--listen` chooses another address")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// Others would be let in unseen.
    #[error(
        "{0} can be reached from other machines: without certificates only this one is served; give --tls-ca, --tls-cert and --tls-key \
         (`penstock ca` makes some), or listen on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// The metrics' address.
    #[error(transparent)]
    Metrics(#[from] ListenError),
    /// The API.
    #[error("the API stopped: {0}")]
    Api(#[from] tonic::transport::Error),
}

/// Listens. Without certificates only where this machine alone can reach it.
///
/// # Errors
/// The address is taken, not of this machine, or open to others.
pub async fn listen(address: SocketAddr, has_certificates: bool) -> Result<TcpListener, ServeError> {
    if !has_certificates && !address.ip().is_loopback() {
        return Err(ServeError::Open(address));
    }
    TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })
}

/// Runs a replica until `stop` comes.
///
/// # Errors
/// It cannot start, or the API stops by itself.
pub async fn serve(
    options: Options,
    store: Store,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let Options { replica, tls, settings, metrics, endpoint } = options;
    let store = Arc::new(store);
    let (name, address, url) = (&replica.name, &replica.address, endpoint.as_ref().map(Endpoint::url));
    info!(replica = name, address, store = store.describe(), tls = tls.is_some(), metrics = url, "serving");
    let (stopping, stopped) = watch::channel(false);
    let (leading, is_leading) = watch::channel(None);
    let counts = metrics.of(&replica, &store, settings, is_leading.clone());
    let (end_metrics, until) = oneshot::channel::<()>();
    let of_metrics = match endpoint {
        Some(mut endpoint) => {
            endpoint.tell(Arc::new(metrics));
            Some(tokio::spawn(endpoint.serve(async { drop(until.await) })?))
        }
        None => None,
    };
    let networks = Arc::new(Networks::new(store.clone()));
    let (of_store, of_networks, who) = (store.clone(), networks.clone(), replica.clone());
    let of_replica = replica::run(of_store, of_networks, who, settings, counts.clone(), leading, stopped.clone());
    let of_replica = tokio::spawn(of_replica);
    let service = Service::new(store, networks, replica, settings, counts, is_leading, stopped.clone());
    let service = ControllerServer::new(service)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let mut server =
        Server::builder().http2_keepalive_interval(Some(KEEPALIVE)).http2_keepalive_timeout(Some(KEEPALIVE));
    if let Some(tls) = &tls {
        server = server.tls_config(tls.server())?;
    }
    let mut stopped_api = stopped.clone();
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let api = server.add_service(service).serve_with_incoming_shutdown(incoming, async move {
        let _ = stopped_api.wait_for(|stopping| *stopping).await;
    });
    let on_stop = async {
        stop.await;
        info!("stopping; nodes keep what was lent to them until their leases are over");
        stopping.send_replace(true);
        tokio::time::sleep(GRACE).await;
    };
    let result = tokio::select! {
        result = api => result.map_err(ServeError::from),
        () = on_stop => Ok(()),
    };
    stopping.send_replace(true);
    let _ = of_replica.await;
    drop(end_metrics);
    if let Some(of_metrics) = of_metrics {
        let _ = of_metrics.await;
    }
    result
}
