// SPDX-License-Identifier: MIT OR Apache-2.0
//! A controller that says what a test wants: each stream of a node is handed to the test.

use penstock_api::v1;
use penstock_node::Controllers;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};
use v1::controller_server::ControllerServer;

const MS: u64 = 1_000_000;
/// Tests wait so long for what should come at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// A stream of a node.
pub struct Stay {
    pub reports: Streaming<v1::Report>,
    pub orders: mpsc::Sender<Result<v1::Order, Status>>,
    /// The newest report.
    pub heard: u64,
}

type Refusal = Arc<Mutex<Option<Status>>>;

struct Scripted {
    stays: mpsc::UnboundedSender<Stay>,
    refusal: Refusal,
}

#[tonic::async_trait]
impl v1::controller_server::Controller for Scripted {
    type AttendStream = ReceiverStream<Result<v1::Order, Status>>;
    type GetNetworkStream = ReceiverStream<Result<v1::NetworkPart, Status>>;

    async fn attend(&self, request: Request<Streaming<v1::Report>>) -> Result<Response<Self::AttendStream>, Status> {
        if let Some(status) = self.refusal.lock().unwrap().clone() {
            return Err(status);
        }
        let (orders, receiver) = mpsc::channel(16);
        let _ = self.stays.send(Stay { reports: request.into_inner(), orders, heard: 0 });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn put_network(
        &self,
        _: Request<Streaming<v1::NetworkPart>>,
    ) -> Result<Response<v1::PutNetworkReply>, Status> {
        Err(Status::unimplemented("a script"))
    }

    async fn get_network(&self, _: Request<v1::GetNetworkRequest>) -> Result<Response<Self::GetNetworkStream>, Status> {
        Err(Status::unimplemented("a script"))
    }

    async fn get_standing(&self, _: Request<v1::GetStandingRequest>) -> Result<Response<v1::StandingReply>, Status> {
        Err(Status::unimplemented("a script"))
    }

    async fn list_audit(&self, _: Request<v1::ListAuditRequest>) -> Result<Response<v1::AuditReply>, Status> {
        Err(Status::unimplemented("a script"))
    }
}

pub struct Controller {
    pub address: String,
    pub refusal: Refusal,
    stays: mpsc::UnboundedReceiver<Stay>,
    task: JoinHandle<()>,
}

impl Controller {
    pub async fn start() -> Self {
        Self::start_at("127.0.0.1:0").await
    }

    pub async fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, stays) = mpsc::unbounded_channel();
        let refusal = Refusal::default();
        let scripted = Scripted { stays: sender, refusal: Arc::clone(&refusal) };
        let server = tonic::transport::Server::builder()
            .add_service(ControllerServer::new(scripted))
            .serve_with_incoming(TcpListenerStream::new(listener));
        let task = tokio::spawn(async move { server.await.unwrap() });
        Self { address, refusal, stays, task }
    }

    /// Says who leads, instead.
    pub fn refuse(&self, leader: &str) {
        let mut status = Status::unavailable("not the leader");
        status.metadata_mut().insert("penstock-leader", leader.parse().unwrap());
        *self.refusal.lock().unwrap() = Some(status);
    }

    /// The next stream of a node, with its registration.
    pub async fn stay(&mut self) -> (Stay, v1::Report) {
        let mut stay = tokio::time::timeout(PATIENCE, self.stays.recv()).await.unwrap().unwrap();
        let first = stay.report().await;
        (stay, first)
    }

    pub async fn end(self) -> String {
        self.task.abort();
        let _ = self.task.await;
        self.address
    }
}

/// Attends these, as `sw1`.
pub fn controllers(addresses: &[&str]) -> Option<Controllers> {
    let addresses = addresses.iter().map(|&address| address.to_owned()).collect();
    Some(Controllers { node: "sw1".to_owned(), addresses, tls: None })
}

impl Stay {
    pub async fn report(&mut self) -> v1::Report {
        let report = tokio::time::timeout(PATIENCE, self.reports.message()).await.unwrap().unwrap().unwrap();
        self.heard = report.sequence;
        report
    }

    /// The first report that is as it should be.
    pub async fn report_with(&mut self, is_it: impl Fn(&v1::Report) -> bool) -> v1::Report {
        for _ in 0..200 {
            let report = self.report().await;
            if is_it(&report) {
                return report;
            }
        }
        panic!("no report is as it should be");
    }

    /// Sends an order that answers the newest report.
    pub async fn order(&self, order: v1::Order) {
        self.orders.send(Ok(v1::Order { answers: self.heard, ..order })).await.unwrap();
    }
}

pub fn epoch(term: u64, number: u64) -> Option<v1::Epoch> {
    Some(v1::Epoch { term, number })
}

/// A limit of the link `down`.
pub fn lent(limit: u32, class: &str, rate_bps: u64, safe_bps: Option<u64>) -> v1::Lent {
    v1::Lent { limit, port: "down".to_owned(), class: class.to_owned(), rate_bps: Some(rate_bps), safe_bps }
}

/// All limits, for five seconds.
pub fn all(number: u64, limits: Vec<v1::Lent>) -> v1::Order {
    v1::Order { epoch: epoch(1, number), is_all: true, limits, lease_ns: 5000 * MS, ..v1::Order::default() }
}

/// What follows on an epoch.
pub fn delta(number: u64, base: u64, limits: Vec<v1::Lent>) -> v1::Order {
    v1::Order { base: epoch(1, base), is_all: false, ..all(number, limits) }
}
