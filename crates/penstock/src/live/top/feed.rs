// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the daemon to the view, over and over: when the daemon goes away it is looked for until it is back.

use super::state::{Limits, News, Wanted};
use crate::failure::Failure;
use crate::live::client::refused;
use penstock_api::{NodeClient, v1};
use penstock_node::limits::fits;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tonic::Streaming;

/// Limits that are watched at a time. The API takes more; nobody reads more.
pub const LIMITS_MAX: usize = 500;
/// Between attempts to reach the daemon.
const RETRY: Duration = Duration::from_secs(1);

/// What a feed needs.
pub struct Feed {
    pub socket: PathBuf,
    pub interval_ns: u64,
    pub wanted: watch::Receiver<Option<Wanted>>,
    pub news: mpsc::Sender<News>,
}

/// Why a connection is not used any more.
enum End {
    /// Nobody listens to the news.
    Unheard,
    Trouble(String),
}

impl From<mpsc::error::SendError<News>> for End {
    fn from(_: mpsc::error::SendError<News>) -> Self {
        Self::Unheard
    }
}

impl From<tonic::Status> for End {
    fn from(status: tonic::Status) -> Self {
        Self::Trouble(match refused(status) {
            Failure::Input(text) | Failure::Refused(text) => text,
            Failure::Failed(error) => format!("{error:#}"),
            Failure::Interrupted => String::new(),
        })
    }
}

impl Feed {
    /// Tells until nobody listens; begins with a connection that is there.
    pub async fn run(mut self, first: NodeClient) {
        let mut connected = Ok(first);
        loop {
            let end = match connected {
                Ok(client) => self.tell(client).await,
                Err(error) => End::Trouble(format!("{error}")),
            };
            match end {
                End::Unheard => return,
                End::Trouble(why) => {
                    if self.news.send(News::Trouble(why)).await.is_err() {
                        return;
                    }
                }
            }
            tokio::time::sleep(RETRY).await;
            connected = penstock_api::connect(&self.socket).await;
        }
    }

    async fn tell(&mut self, client: NodeClient) -> End {
        match self.tell_readings(client).await {
            Ok(()) => End::Trouble("the daemon ended".to_owned()),
            Err(end) => end,
        }
    }

    /// Readings of classes until the daemon ends them; limits beside them, as a person wants.
    async fn tell_readings(&mut self, mut client: NodeClient) -> Result<(), End> {
        let mut readings = watch(&mut client, self.interval_ns, Vec::new()).await;
        self.tell_status(&mut client).await?;
        let readings = readings.as_mut().map_err(|status| status.clone())?;
        let mut generation = None;
        let mut limits: Option<Watched> = None;
        let mut rows = None;
        loop {
            let is_new = tokio::select! {
                message = readings.message() => {
                    let Some(message) = message? else { return Ok(()) };
                    let now = (message.generation, self.rows(&message));
                    let is_new = generation.replace(now.0) != Some(now.0);
                    if is_new {
                        self.tell_status(&mut client).await?;
                    }
                    // None before: the list is of this class's rows already, or about to be.
                    let is_other = std::mem::replace(&mut rows, now.1).is_some_and(|before| Some(before) != now.1);
                    self.news.send(News::Readings(Box::new(message))).await?;
                    is_new || is_other
                }
                message = next(&mut limits) => {
                    match message? {
                        Some(news) => self.news.send(News::Limits(news)).await?,
                        None => limits = None,
                    }
                    false
                }
                changed = self.wanted.changed() => {
                    changed.map_err(|_| End::Unheard)?;
                    rows = None;
                    true
                }
            };
            if is_new {
                let wanted = self.wanted.borrow_and_update().clone();
                limits = match wanted {
                    Some(wanted) => Some(Watched::open(&mut client, wanted, self.interval_ns).await?),
                    None => None,
                };
            }
        }
    }

    /// Rows of the class whose limits are wanted.
    fn rows(&self, readings: &v1::Readings) -> Option<u64> {
        let wanted = self.wanted.borrow();
        let class = &wanted.as_ref()?.class;
        readings.classes.iter().find(|one| one.path == *class).map(|one| one.rows)
    }

    async fn tell_status(&self, client: &mut NodeClient) -> Result<(), End> {
        let status = client.status(v1::StatusRequest {}).await?.into_inner();
        Ok(self.news.send(News::Status(Box::new(status))).await?)
    }
}

/// Readings of all classes and of some limits.
pub async fn watch(
    client: &mut NodeClient,
    interval_ns: u64,
    limits: Vec<String>,
) -> Result<Streaming<v1::Readings>, tonic::Status> {
    client.watch(v1::WatchRequest { interval_ns, limits }).await.map(tonic::Response::into_inner)
}

/// Limits that are being watched.
struct Watched {
    wanted: Wanted,
    total: u64,
    readings: Streaming<v1::Readings>,
}

impl Watched {
    /// The first limits by the policy's order that fit: the API has names, and no order by rates.
    async fn open(client: &mut NodeClient, wanted: Wanted, interval_ns: u64) -> Result<Self, tonic::Status> {
        let (mut names, mut total) = (Vec::new(), 0);
        let request =
            v1::ListLimitsRequest { filter: pattern(&wanted), count: LIMITS_MAX as u64, ..Default::default() };
        let mut pages = client.list_limits(request).await?.into_inner();
        while let Some(page) = pages.message().await? {
            names.extend(page.limits.into_iter().map(|limit| limit.name));
            total = page.total;
        }
        // The class's own limit; a class without one has none that is left out.
        if fits(&wanted.filter, &wanted.class) {
            names.push(wanted.class.clone());
        }
        let readings = watch(client, interval_ns, names).await?;
        Ok(Self { wanted, total, readings })
    }
}

/// A pattern of rows' full names.
fn pattern(wanted: &Wanted) -> String {
    let Wanted { class, filter } = wanted;
    if filter.contains('*') { format!("{class}/{filter}") } else { format!("{class}/*{filter}*") }
}

/// The next reading of limits; never if none are watched.
async fn next(watched: &mut Option<Watched>) -> Result<Option<Limits>, tonic::Status> {
    let Some(Watched { wanted, total, readings }) = watched else { return std::future::pending().await };
    let message = readings.message().await?;
    Ok(message.map(|message| {
        let own = message.limits.iter().filter(|limit| limit.row.is_empty()).count() as u64;
        Limits { wanted: wanted.clone(), total: *total + own, limits: message.limits }
    }))
}

#[cfg(test)]
#[path = "feed_tests.rs"]
mod tests;
