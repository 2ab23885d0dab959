// SPDX-License-Identifier: MIT OR Apache-2.0
//! Knows the newest revision.
//!
//! A watch tells at once, if the connection is well and the member it is to can reach the others; it does not tell when that is not so. So
//! the revision is asked for as well, every second: that answer needs a majority, and is right whatever the watch did.

use super::Shared;
use super::network::Pointer;
use etcd_client::{EventType, WatchOptions, WatchStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch::Sender;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

/// Between questions.
const AGAIN: Duration = Duration::from_secs(1);
/// Longest wait for a watch to begin.
const BEGIN: Duration = Duration::from_secs(2);

/// The revision is `revision` or newer.
pub fn at_least(known: &Sender<u64>, revision: u64) {
    known.send_if_modified(|known| std::mem::replace(known, revision.max(*known)) < revision);
}

/// Runs until it is aborted.
pub async fn run(shared: Arc<Shared>, known: Sender<u64>) {
    let mut is_reached = true;
    let mut stream: Option<WatchStream> = None;
    loop {
        let before = *known.borrow();
        match shared.pointer().await {
            Ok(found) => {
                if !is_reached {
                    info!("{}: it answers again", shared.link.describe());
                    is_reached = true;
                }
                if *known.borrow() == before {
                    // Less than what is known: somebody put an older state of the store into its place.
                    known.send_if_modified(|known| std::mem::replace(known, found.revision()) != found.revision());
                }
                if stream.is_none() {
                    stream = begin(&shared, found.read_at + 1).await;
                }
            }
            Err(error) => {
                if is_reached {
                    warn!("{error}");
                    is_reached = false;
                }
                stream = None;
            }
        }
        match &mut stream {
            Some(watch) => {
                if !follow(watch, &known).await {
                    stream = None;
                }
            }
            None => sleep(AGAIN).await,
        }
    }
}

async fn begin(shared: &Shared, from: i64) -> Option<WatchStream> {
    let (_, mut client) = shared.link.client().await.ok()?;
    let options = WatchOptions::new().with_start_revision(from);
    timeout(BEGIN, client.watch(shared.key("network"), Some(options))).await.ok()?.ok()
}

/// Tells what the watch tells, for a while; false: it has ended.
async fn follow(stream: &mut WatchStream, known: &Sender<u64>) -> bool {
    let again = sleep(AGAIN);
    tokio::pin!(again);
    loop {
        let message = tokio::select! {
            () = &mut again => return true,
            message = stream.message() => message,
        };
        let Ok(Some(message)) = message else { return false };
        if message.canceled() {
            return false;
        }
        for event in message.events() {
            let put = event.kv().filter(|_| event.event_type() == EventType::Put);
            if let Some(pointer) = put.and_then(|kv| serde_json::from_slice::<Pointer>(kv.value()).ok()) {
                at_least(known, pointer.revision);
            }
        }
    }
}
