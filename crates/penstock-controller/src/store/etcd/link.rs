// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls to etcd that end in time, by whichever member answers.

use super::super::{Result, StoreError};
use etcd_client::{Client, ConnectOptions, Error};
use penstock_api::causes;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tonic::Code;

/// Longest wait for an answer that has little to carry.
pub const CALL: Duration = Duration::from_secs(2);
/// Longest wait for one that carries a chunk.
pub const CHUNK_CALL: Duration = Duration::from_secs(4);
/// Between attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// Attempts at each member.
const ROUNDS: usize = 3;

/// A connection to one of the members, and to another one when that does not answer.
#[derive(Debug)]
pub struct Link {
    addresses: Vec<String>,
    options: ConnectOptions,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    /// Counts up with each member that is given up.
    attempt: usize,
    client: Option<Client>,
}

impl std::fmt::Debug for Current {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Current").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

impl Link {
    pub fn new(addresses: Vec<String>, options: ConnectOptions) -> Self {
        Self { addresses, options, current: Mutex::default() }
    }

    pub fn describe(&self) -> String {
        format!("etcd at {}", self.addresses.join(", "))
    }

    /// Calls, and again at another member, for as long as that may help and the time lasts. What is called may be done twice.
    pub async fn call<T, F>(&self, longest: Duration, call: impl Fn(Client) -> F) -> Result<T>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let end = Instant::now() + longest;
        // A member that hangs must leave time for another one.
        let share = u32::try_from(self.addresses.len()).unwrap_or(u32::MAX).clamp(1, 3);
        let mut why = String::from("no answer in time");
        for round in 0..ROUNDS * self.addresses.len() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let (attempt, client) = self.client().await?;
            match timeout(left.min(longest / share), call(client)).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(error)) => {
                    if let Some(refused) = self.refused(&error) {
                        return Err(refused);
                    }
                    why = describe(&error);
                }
                Err(_) => why = format!("{} gave no answer in time", self.address(attempt)),
            }
            self.give_up(attempt);
            if (round + 1) % self.addresses.len() == 0 {
                sleep(PAUSE).await;
            }
        }
        Err(StoreError::Unreachable { store: self.describe(), why })
    }

    /// A connection for something that lasts: a watch.
    pub async fn client(&self) -> Result<(usize, Client)> {
        let (attempt, client) = {
            let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
            (current.attempt, current.client.clone())
        };
        if let Some(client) = client {
            return Ok((attempt, client));
        }
        // This connects when it is first used.
        let client = Client::connect([self.address(attempt)], Some(self.options.clone())).await;
        let client = client.map_err(|error| StoreError::Options(format!("{}: {error}", self.describe())))?;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.attempt == attempt {
            current.client = Some(client.clone());
        }
        Ok((attempt, client))
    }

    /// Goes on with another member, unless somebody has done so since `attempt`.
    pub fn give_up(&self, attempt: usize) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.attempt == attempt {
            *current = Current { attempt: attempt.wrapping_add(1), client: None };
        }
    }

    fn address(&self, attempt: usize) -> &str {
        self.addresses.get(attempt % self.addresses.len().max(1)).map_or("", String::as_str)
    }

    /// A no that stays one whoever is asked.
    fn refused(&self, error: &Error) -> Option<StoreError> {
        let (store, why) = (self.describe(), describe(error));
        match error {
            Error::GRpcStatus(status) => match status.code() {
                // Clients of gRPC call what went wrong with the connection by these names.
                Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown | Code::Internal => None,
                Code::ResourceExhausted if status.message().contains("space exceeded") => {
                    Some(StoreError::Full { store, why })
                }
                Code::ResourceExhausted if status.message().contains("too many requests") => None,
                _ => Some(StoreError::Refused { store, why }),
            },
            Error::TransportError(_) | Error::IoError(_) | Error::WatchError(_) => None,
            _ => Some(StoreError::Refused { store, why }),
        }
    }
}

/// An error with its causes.
fn describe(error: &Error) -> String {
    match error {
        // Its own text is that of a person who looks for a bug.
        Error::GRpcStatus(status) => match std::error::Error::source(status) {
            Some(cause) => format!("{}: {}", status.message(), causes(cause)),
            None => status.message().to_owned(),
        },
        error => causes(error),
    }
}
