// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock node`: the daemon.

use super::arguments::{Dataplane, Node};
use crate::failure::Failure;
use crate::network;
use crate::network::arguments::Metrics;
use anyhow::Context;
use nix::sched::{CloneFlags, setns};
use penstock_api::metrics::Endpoint;
use penstock_dataplane::xdp::{LoadOptions, Xdp};
use penstock_dataplane::{Dataplane as Plane, DataplaneError, Stub};
use penstock_node::{Controllers, ServeError, Settings, serve};
use std::fs::File;
use std::future::Future;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Runs the command.
pub fn run(arguments: &Node) -> Result<(), Failure> {
    log_to_stderr();
    let Metrics(metrics) = arguments.metrics;
    // Before a namespace is entered: whoever reads metrics is where this process was started.
    let metrics = metrics.map(Endpoint::listen).transpose().map_err(|error| failure_of(error.into()))?;
    if let Some(name) = &arguments.netns {
        enter(name)?;
    }
    let (name, open): (_, Opener) = match arguments.dataplane {
        Dataplane::Stub => ("stub", Box::new(|| Ok(Box::new(Stub::ticking())))),
        Dataplane::Xdp => {
            let (pins, options) = (
                arguments.pins.clone(),
                LoadOptions { counts_limits: arguments.count_limits, ..LoadOptions::default() },
            );
            ("xdp", Box::new(move || Ok(Box::new(Xdp::open(&pins, options)?))))
        }
    };
    let mut settings = Settings {
        socket: arguments.socket.clone(),
        state: arguments.state.clone(),
        metrics,
        metrics_limits: arguments.metrics_limits.clone(),
        metrics_limits_max: arguments.metrics_limits_max,
        dataplane: name,
        // The stub has no choice.
        counts_limits: arguments.count_limits.filter(|_| arguments.dataplane == Dataplane::Xdp),
        sampling: Duration::from_secs(1),
        controllers: controllers(arguments)?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(async {
        let stop = stop_signal()?;
        let Some(address) = arguments.with_controller else {
            return serve(settings, open, stop).await.map_err(failure_of);
        };
        let tls = network::tls(&arguments.tls)?;
        let (stopping, stopped) = tokio::sync::watch::channel(false);
        let wait = |mut stopped: tokio::sync::watch::Receiver<bool>| async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        let name = settings.controllers.as_ref().map(|controllers| controllers.node.clone()).unwrap_or_default();
        let folder = arguments.state.join("controller");
        let metrics = penstock_controller::Metrics::default();
        if let Some(endpoint) = &mut settings.metrics {
            endpoint.tell(Arc::new(metrics.clone()));
        }
        let stopped_too = wait(stopped.clone());
        let (bound, beside) = network::serve_beside(name, address, &folder, tls, metrics, stopped_too).await?;
        if let Some(controllers) = &mut settings.controllers {
            controllers.addresses = vec![bound];
        }
        let node = async { serve(settings, open, wait(stopped)).await.map_err(failure_of) };
        // Whichever ends first, the other one ends, too.
        let ended = async {
            stop.await;
            stopping.send_replace(true);
        };
        let both = async { tokio::try_join!(node, beside).map(drop) };
        tokio::pin!(both);
        tokio::select! {
            result = &mut both => result,
            () = ended => both.await,
        }
    })
}

/// When a person or the system wants the daemon to stop.
pub fn stop_signal() -> Result<impl Future<Output = ()> + Send, Failure> {
    let mut terminated = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    let mut interrupted = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    })
}

/// Whom this node attends, and under which name.
fn controllers(arguments: &Node) -> Result<Option<Controllers>, Failure> {
    if arguments.controllers.is_empty() && arguments.with_controller.is_none() {
        return Ok(None);
    }
    let node = arguments.name.clone().map_or_else(network::machine, Ok)?;
    Ok(Some(Controllers { node, addresses: arguments.controllers.clone(), tls: network::tls(&arguments.tls)? }))
}

fn failure_of(error: ServeError) -> Failure {
    match error {
        ServeError::Metrics { .. } => Failure::Input(format!("error: {error}")),
        // Its text has the cause already.
        error => Failure::Failed(anyhow::anyhow!("{error}")),
    }
}

type Opener = Box<dyn FnOnce() -> Result<Box<dyn Plane>, DataplaneError> + Send>;

/// Goes on in a network namespace that `ip netns` made. Files stay where they are, so that pins outlive this process.
fn enter(name: &str) -> Result<(), Failure> {
    let path = Path::new("/run/netns").join(name);
    let file = File::open(&path).map_err(|error| {
        Failure::Input(format!(
            "error: --netns {name}: {}: {error}; `ip netns list` lists what there is",
            path.display()
        ))
    })?;
    // No thread has been started yet: all that will be are in the namespace, too.
    setns(file, CloneFlags::CLONE_NEWNET).with_context(|| format!("cannot enter the network namespace {name}"))?;
    Ok(())
}

/// `RUST_LOG` chooses what is told; without it, what an operator should know.
pub fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // The journal has times of its own.
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    if std::io::stderr().is_terminal() {
        builder.init();
    } else {
        builder.without_time().with_ansi(false).init();
    }
}
