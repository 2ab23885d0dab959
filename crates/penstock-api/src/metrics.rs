// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prometheus metrics over HTTP, `GET /metrics`: whoever has something to tell is a [`Source`], and an [`Endpoint`] asks its sources with each answer.

mod write;

pub use prometheus_client::metrics::MetricType;
pub use write::{Labels, Metric, Tell, Value, Writer, bytes_per_second, seconds, text};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Before another connection is taken after one could not be: out of file descriptors, perhaps, and others will be closed.
const PAUSE: Duration = Duration::from_millis(100);

/// Whoever has something to tell.
#[tonic::async_trait]
pub trait Source: std::fmt::Debug + Send + Sync {
    /// What is known at this moment; none: it cannot be told. `query` is what follows the `?` of the request.
    async fn read(&self, query: Option<&str>) -> Option<Box<dyn Tell>>;

    /// What may be asked for beside `/metrics` itself, as the sentence that says so goes on; empty for nothing.
    fn usage(&self) -> &'static str {
        ""
    }
}

/// The address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error(
    "metrics cannot be served on {address}: {source}; `--metrics off` serves none, `--metrics ADDRESS:PORT` elsewhere"
)]
pub struct ListenError {
    /// What was asked for.
    pub address: SocketAddr,
    /// Why not.
    pub source: std::io::Error,
}

/// Where metrics are asked for, and what is told there.
#[derive(Debug, Clone)]
pub struct Endpoint {
    address: SocketAddr,
    listener: Arc<std::net::TcpListener>,
    sources: Vec<Arc<dyn Source>>,
}

impl Endpoint {
    /// Listens. Apart from [`Endpoint::serve`], because a daemon that works in another network namespace is asked in the one that it was
    /// started in.
    ///
    /// # Errors
    /// The address is taken, or not of this machine.
    pub fn listen(address: SocketAddr) -> Result<Self, ListenError> {
        let listen = || {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, Arc::new(listener)))
        };
        let (address, listener) = listen().map_err(|source| ListenError { address, source })?;
        Ok(Self { address, listener, sources: Vec::new() })
    }

    /// Where to ask, for people.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    /// Tells what this source knows, after what is told already.
    pub fn tell(&mut self, source: Arc<dyn Source>) {
        self.sources.push(source);
    }

    /// Answers until `stop` comes. No connection is left then. To be called where there is a runtime.
    ///
    /// # Errors
    /// The listener cannot be used.
    pub fn serve<S>(&self, stop: S) -> Result<impl Future<Output = ()> + Send + use<S>, ListenError>
    where
        S: Future<Output = ()> + Send,
    {
        let listener = self.listener.try_clone().and_then(TcpListener::from_std);
        let listener = listener.map_err(|source| ListenError { address: self.address, source })?;
        let sources: Arc<[Arc<dyn Source>]> = self.sources.clone().into();
        Ok(async move {
            let mut connections = JoinSet::new();
            tokio::select! {
                () = accept(&listener, &sources, &mut connections) => {}
                () = stop => {}
            }
            connections.shutdown().await;
        })
    }
}

/// Takes connections. Does not end.
async fn accept(listener: &TcpListener, sources: &Arc<[Arc<dyn Source>]>, connections: &mut JoinSet<()>) {
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let sources = Arc::clone(sources);
        connections.spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&sources), request));
            // A scraper that goes away is nothing to tell.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

type Answer = Response<Full<Bytes>>;

async fn answer(sources: Arc<[Arc<dyn Source>]>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    if request.method() != Method::GET || request.uri().path() != "/metrics" {
        let more: String = sources.iter().map(|source| source.usage()).collect();
        return Ok(plain(StatusCode::NOT_FOUND, format!("metrics are at GET /metrics{more}\n")));
    }
    let mut all = Vec::new();
    for source in sources.iter() {
        all.extend(source.read(request.uri().query()).await);
    }
    if all.len() < sources.len() {
        return Ok(unwritten());
    }
    // Thousands of series take their time.
    let text = tokio::task::spawn_blocking(move || text(all)).await;
    Ok(match text {
        Ok(Ok(text)) => {
            let mut answer = Response::new(Full::new(Bytes::from(text)));
            answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(CONTENT_TYPE));
            answer
        }
        _ => unwritten(),
    })
}

fn unwritten() -> Answer {
    plain(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written\n".to_owned())
}

fn plain(status: StatusCode, text: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    answer
}
