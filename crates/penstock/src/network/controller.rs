// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock controller`: the daemon, and the same inside of `penstock node`.

use super::arguments::{Controller, Metrics as MetricsArgument, Tls as TlsArguments};
use crate::failure::Failure;
use crate::live::{log_to_stderr, stop_signal};
use anyhow::{Context, anyhow};
use penstock_api::metrics::Endpoint;
use penstock_api::tls::{Tls, TlsFiles};
use penstock_controller::store::{EtcdOptions, EtcdTls, Replica, Store, StoreError};
use penstock_controller::{Metrics, Options, ServeError, Settings, listen, serve};
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;

/// Where the machine's name is.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";

/// Runs the command.
pub fn run(arguments: &Controller) -> Result<(), Failure> {
    log_to_stderr();
    let tls = tls(&arguments.tls)?;
    let name = arguments.name.clone().map_or_else(machine, Ok)?;
    let MetricsArgument(endpoint) = arguments.metrics;
    let endpoint = endpoint.map(Endpoint::listen).transpose().map_err(|error| failure_of(error.into()))?;
    let metrics = Metrics::new(arguments.metrics_aggregates_max);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(async {
        let stop = stop_signal()?;
        let listener = listen(arguments.listen, tls.is_some()).await.map_err(failure_of)?;
        let bound = listener.local_addr().map_or(arguments.listen, |bound| bound).to_string();
        let store = store(arguments).await.map_err(|error| failure_of(error.into()))?;
        let replica = Replica { name, address: arguments.advertise.clone().unwrap_or(bound) };
        let settings = Settings { lease_ns: arguments.lease, ..Settings::default() };
        let options = Options { replica, tls, settings, metrics, endpoint };
        serve(options, store, listener, stop).await.map_err(failure_of)
    })
}

/// Runs a controller of its own beside a node, with its store in a folder; the node serves its metrics. Where it listens, and what to wait for.
pub async fn serve_beside(
    name: String,
    address: SocketAddr,
    folder: &Path,
    tls: Option<Tls>,
    metrics: Metrics,
    stop: impl Future<Output = ()> + Send,
) -> Result<(String, impl Future<Output = Result<(), Failure>>), Failure> {
    let listener = listen(address, tls.is_some()).await.map_err(failure_of)?;
    let bound = listener.local_addr().unwrap_or(address).to_string();
    let store = Store::embedded(folder).await.map_err(|error| failure_of(error.into()))?;
    let replica = Replica { name, address: bound.clone() };
    let options = Options { replica, tls, settings: Settings::default(), metrics, endpoint: None };
    Ok((bound, async move { serve(options, store, listener, stop).await.map_err(failure_of) }))
}

async fn store(arguments: &Controller) -> Result<Store, StoreError> {
    if let Some(folder) = &arguments.state {
        return Store::embedded(folder).await;
    }
    let identity = arguments.etcd_cert.clone().zip(arguments.etcd_key.clone());
    let tls = arguments.etcd_ca.clone().map(|ca| EtcdTls { ca, identity });
    let (endpoints, cluster) = (arguments.etcd.clone(), arguments.cluster.clone());
    Store::etcd(&EtcdOptions { endpoints, cluster, tls, ..EtcdOptions::default() }).await
}

/// Certificates, if they are asked for.
pub fn tls(arguments: &TlsArguments) -> Result<Option<Tls>, Failure> {
    let TlsArguments { tls_ca: Some(ca), tls_cert: Some(certificate), tls_key: Some(key) } = arguments.clone() else {
        // Clap has seen to it that there are all or none.
        return Ok(None);
    };
    let tls = Tls::load(&TlsFiles { ca, certificate, key });
    tls.map(Some).map_err(|error| Failure::Input(format!("error: {error}")))
}

/// The machine's name.
pub fn machine() -> Result<String, Failure> {
    let name = std::fs::read_to_string(HOSTNAME).context("the machine's name; give one with --name")?;
    Ok(name.trim().to_owned())
}

fn failure_of(error: ServeError) -> Failure {
    match error {
        ServeError::Listen { .. }
        | ServeError::Open(_)
        | ServeError::Metrics(_)
        | ServeError::Store(StoreError::Options(_)) => Failure::Input(format!("error: {error}")),
        error => Failure::Failed(anyhow!("{error}")),
    }
}
