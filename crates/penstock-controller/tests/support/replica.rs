// SPDX-License-Identifier: MIT OR Apache-2.0
//! A replica over real ports, with its metrics, and a node that attends it.

use super::scrape::Series;
use penstock_api::controller::{ControllerClient, connect_controller};
use penstock_api::metrics::Endpoint;
use penstock_api::v1;
use penstock_controller::store::{Replica, Store};
use penstock_controller::{Metrics, Options, ServeError, Settings, listen, serve};
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;

/// Long enough for anything that happens at all.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between reports of a node, and between looks.
const PAUSE: Duration = Duration::from_millis(20);

pub struct Running {
    pub client: ControllerClient,
    address: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), ServeError>>,
}

impl Running {
    pub async fn start(name: &str, store: Store, aggregates_max: usize) -> Self {
        let any = "127.0.0.1:0".parse().unwrap();
        let (listener, endpoint) = (listen(any, false).await.unwrap(), Endpoint::listen(any).unwrap());
        let own = listener.local_addr().unwrap().to_string();
        let address = endpoint.url().strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap().to_owned();
        let options = Options {
            replica: Replica { name: name.to_owned(), address: own.clone() },
            tls: None,
            settings: Settings::default(),
            metrics: Metrics::new(aggregates_max),
            endpoint: Some(endpoint),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(serve(options, store, listener, async { drop(stopped.await) }));
        Self { client: connect_controller(&[own], None).await.unwrap(), address, stop, task }
    }

    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
    }

    pub async fn scrape(&self) -> Series {
        Series::scrape(&self.address).await
    }

    /// Waits until metrics are as they should be.
    pub async fn wait(&self, what: &str, ready: impl Fn(&Series) -> bool) -> Series {
        let begin = Instant::now();
        loop {
            let series = self.scrape().await;
            if ready(&series) {
                return series;
            }
            assert!(begin.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}\n{series:#?}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Puts a network.
    pub async fn put(
        &mut self,
        text: &str,
        revision: u64,
        dry_run: bool,
    ) -> Result<v1::put_network_reply::Outcome, tonic::Status> {
        let file = v1::NetworkFile { name: "n.yaml".to_owned(), dry_run, revision };
        let parts = [v1::network_part::Part::File(file), v1::network_part::Part::Bytes(text.as_bytes().to_vec())];
        let parts = parts.map(|part| v1::NetworkPart { part: Some(part) });
        Ok(self.client.put_network(tokio_stream::iter(parts)).await?.into_inner().outcome.unwrap())
    }

    /// The first report of a stream, of a node and its machine.
    pub async fn attend(&mut self, who: Option<(&str, &str)>) -> Result<Stay, tonic::Status> {
        let registration = who.map(|(node, machine)| v1::Registration {
            node: node.to_owned(),
            machine: machine.to_owned(),
            ..Default::default()
        });
        let (reports, stream) = mpsc::channel(1);
        let first = v1::Report { sequence: 1, registration, wants_all: true, ..Default::default() };
        reports.send(first).await.unwrap();
        let orders = self.client.attend(ReceiverStream::new(stream)).await?.into_inner();
        Ok(Stay { reports, orders })
    }
}

/// A stream.
pub struct Stay {
    reports: mpsc::Sender<v1::Report>,
    orders: tonic::Streaming<v1::Order>,
}

impl Stay {
    /// Makes each order its own and reports of all its limits, what comes and what passes, until this is dropped.
    pub fn go_on(mut self, offered_bps: u64, passed_bps: u64) -> impl Future<Output = ()> + Send {
        let (mut report, mut limits) = (v1::Report { sequence: 1, ..Default::default() }, Vec::new());
        async move {
            loop {
                tokio::select! {
                    order = self.orders.message() => {
                        let Ok(Some(order)) = order else { return };
                        report.applied = order.epoch;
                        limits.extend(order.limits.iter().map(|lent| lent.limit));
                        limits.sort_unstable();
                        limits.dedup();
                    }
                    () = tokio::time::sleep(PAUSE) => {}
                }
                report.sequence += 1;
                let demand = |&limit: &u32| v1::Demand { limit, offered_bps, passed_bps };
                report.demands = limits.iter().map(demand).collect();
                if self.reports.send(report.clone()).await.is_err() {
                    return;
                }
            }
        }
    }
}
