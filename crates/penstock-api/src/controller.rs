// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asking a controller, which is several replicas of which one leads.

use crate::tls::Tls;
use crate::{MESSAGE_BYTES_MAX, causes, v1};
use std::future::Future;
use std::time::{Duration, Instant};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

/// A client of one replica.
pub type ControllerClient = v1::controller_client::ControllerClient<Channel>;

/// In a replica's refusal: where the leader is. Empty while there is none.
pub const LEADER: &str = "penstock-leader";
/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_millis(500);
/// Between pings of a connection, and for an answer to one: a peer that is gone without a word is noticed after both.
const PING: Duration = Duration::from_secs(2);
/// How long to ask on while nobody leads: an election takes about as long as a leader's lease.
const PATIENCE: Duration = Duration::from_secs(6);
/// Between rounds.
const PAUSE: Duration = Duration::from_millis(200);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nowhere to ask.
    #[error("no address of a controller; one is 192.0.2.1:9474")]
    Nowhere,
    /// It has no port, or is no address.
    #[error("{0}: this is no address; one is 192.0.2.1:9474 or controller.example:9474")]
    Address(String),
    /// Nobody answers.
    #[error("no controller answers: {0}")]
    Unreachable(String),
    /// They answer, and none of them leads.
    #[error("no controller leads: {0}; can they reach their store?")]
    NoLeader(String),
    /// The answer is a no.
    #[error("{}", .0.message())]
    Refused(Box<Status>),
}

/// Where the replicas of a controller are, and how to speak to them.
#[derive(Debug, Clone)]
pub struct Controllers {
    addresses: Vec<String>,
    tls: Option<Tls>,
}

/// Connects to the first replica that answers.
///
/// # Errors
/// None does.
pub async fn connect_controller(addresses: &[String], tls: Option<&Tls>) -> Result<ControllerClient, AskError> {
    Controllers::new(addresses, tls)?.connect().await
}

impl Controllers {
    /// Addresses are host and port; without TLS nothing is encrypted, and everybody there may do everything.
    ///
    /// # Errors
    /// There is no address, or one is none.
    pub fn new(addresses: &[String], tls: Option<&Tls>) -> Result<Self, AskError> {
        let controllers = Self { addresses: addresses.to_vec(), tls: tls.cloned() };
        if addresses.is_empty() {
            return Err(AskError::Nowhere);
        }
        addresses.iter().try_for_each(|address| controllers.endpoint(address).map(drop))?;
        Ok(controllers)
    }

    /// Connects to the first replica that answers.
    ///
    /// # Errors
    /// None does.
    pub async fn connect(&self) -> Result<ControllerClient, AskError> {
        let mut why = Vec::new();
        for address in &self.addresses {
            match self.connect_to(address).await {
                Ok(client) => return Ok(client),
                Err(error) => why.push(told(address, error)),
            }
        }
        Err(AskError::Unreachable(why.join("; ")))
    }

    /// Connects to one replica.
    ///
    /// # Errors
    /// It does not answer, or is not whom the CA says it is.
    pub async fn connect_to(&self, address: &str) -> Result<ControllerClient, AskError> {
        // The handshake of TLS counts, too: the endpoint's own limit is for that of TCP alone.
        let connecting = tokio::time::timeout(CONNECT, self.endpoint(address)?.connect()).await;
        let connected =
            connecting.map_err(|_| AskError::Unreachable("no connection within half a second".to_owned()))?;
        let channel = connected.map_err(|error| AskError::Unreachable(last_cause(&error)))?;
        Ok(ControllerClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX))
    }

    /// Asks the replicas in turn until one answers. Who does not lead says who does, and that one is asked next; while nobody leads, they
    /// are asked again for some seconds. A question whose answer got lost is asked twice.
    ///
    /// # Errors
    /// Nobody answers, nobody leads, or the answer is a no.
    pub async fn ask<T, F>(&self, question: impl Fn(ControllerClient) -> F) -> Result<T, AskError>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let begin = Instant::now();
        loop {
            let (mut why, mut any_answers) = (Vec::new(), false);
            let mut next: Vec<String> = self.addresses.iter().rev().cloned().collect();
            let mut asked = Vec::new();
            while let Some(address) = next.pop() {
                if asked.contains(&address) {
                    continue;
                }
                asked.push(address.clone());
                let client = match self.connect_to(&address).await {
                    Ok(client) => client,
                    Err(error) => {
                        why.push(told(&address, error));
                        continue;
                    }
                };
                let status = match question(client).await {
                    Ok(answer) => return Ok(answer),
                    Err(status) => status,
                };
                match status.metadata().get(LEADER).map(|leader| leader.to_str().unwrap_or_default().to_owned()) {
                    Some(leader) if status.code() == Code::Unavailable => {
                        any_answers = true;
                        why.push(format!("{address}: {}", status.message()));
                        next.extend(Some(leader).filter(|leader| !leader.is_empty()));
                    }
                    _ if is_broken(&status) => why.push(format!("{address}: {}{}", reason(&status), self.hint())),
                    _ => return Err(AskError::Refused(Box::new(status))),
                }
            }
            let why = why.join("; ");
            if !any_answers {
                return Err(AskError::Unreachable(why));
            }
            if begin.elapsed() > PATIENCE {
                return Err(AskError::NoLeader(why));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// What to think of when a connection breaks: a controller with certificates hangs up on who shows none.
    fn hint(&self) -> &'static str {
        if self.tls.is_some() { "" } else { " (does it want certificates?)" }
    }

    fn endpoint(&self, address: &str) -> Result<Endpoint, AskError> {
        let wrong = || AskError::Address(address.to_owned());
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        if host.is_empty() || host.contains('/') || port.parse::<u16>().is_err() {
            return Err(wrong());
        }
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
            .map_err(|_| wrong())?
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(PING)
            .keep_alive_timeout(PING)
            .keep_alive_while_idle(true);
        if let Some(tls) = &self.tls {
            endpoint = endpoint.tls_config(tls.client()).map_err(|_| wrong())?;
        }
        Ok(endpoint)
    }
}

/// The connection is what failed, not what was asked.
fn is_broken(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal)
        && std::error::Error::source(status).is_some()
}

/// What happened, with its causes.
fn reason(status: &Status) -> String {
    let cause = std::error::Error::source(status).map(causes);
    cause.unwrap_or_else(|| status.message().to_owned())
}

/// The innermost reason: the outer ones say `transport error`.
fn last_cause(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// Without the words before it, as one of several.
fn told(address: &str, error: AskError) -> String {
    match error {
        AskError::Unreachable(why) => format!("{address}: {why}"),
        error => error.to_string(),
    }
}
