// SPDX-License-Identifier: MIT OR Apache-2.0
//! One of the programs that are the controller together: campaigns, and leads when it is elected.

use crate::core::Settings;
use crate::lead::Lead;
use crate::store::{Replica, Store, Stored};
use penstock_alloc::model::Network;
use penstock_policy::diagnostics::Source;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tracing::{info, warn};

/// Between attempts at what the store refused.
const AGAIN: Duration = Duration::from_millis(200);

/// The leader's voice, where this replica leads.
pub type Leading = watch::Receiver<Option<Lead>>;

/// Campaigns and leads, again and again, until `stopped`.
pub async fn run(
    store: Arc<Store>,
    replica: Replica,
    settings: Settings,
    leading: watch::Sender<Option<Lead>>,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        let elected = tokio::select! {
            elected = store.campaign(&replica) => elected,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        let leadership = match elected {
            Ok(leadership) => Arc::new(leadership),
            Err(error) => {
                warn!("cannot become leader: {error}; trying again");
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        info!(term = leadership.term, "leads");
        let (lead, mut work) = Lead::begin(leadership.clone(), settings);
        leading.send_replace(Some(lead.clone()));
        let is_stopped = tokio::select! {
            () = leadership.lost() => false,
            () = follow_network(&store, &lead) => false,
            // Another replica may do better.
            _ = &mut work => false,
            _ = stopped.wait_for(|stopped| *stopped) => true,
        };
        leading.send_replace(None);
        lead.stop();
        if !work.is_finished() {
            let _ = work.await;
        }
        info!(term = leadership.term, "led");
        if let Some(leadership) = Arc::into_inner(leadership) {
            leadership.resign().await;
        }
        if is_stopped {
            return;
        }
    }
}

/// Has the leader keep whatever network is in the store. Does not end.
async fn follow_network(store: &Store, lead: &Lead) {
    let mut revisions = store.watch();
    let mut kept = 0;
    loop {
        match store.network().await {
            Ok(Some(stored)) if stored.revision != kept => {
                let revision = stored.revision;
                match tokio::task::spawn_blocking(move || parse(&stored)).await {
                    Ok(Ok(network)) => lead.keep(revision, network),
                    Ok(Err(why)) => warn!(revision, "the network of the store is not kept: {why}"),
                    Err(error) => warn!(revision, "the network of the store could not be read: {error}"),
                }
                kept = revision;
            }
            Ok(_) => {}
            Err(error) => {
                warn!("{error}; trying again");
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        }
        if revisions.wait_for(|revision| *revision > kept).await.is_err() {
            return std::future::pending().await;
        }
    }
}

/// A network of the store.
///
/// # Errors
/// What is wrong with it, as people read it. Another version of this program may have put it.
pub fn parse(stored: &Stored) -> Result<Network, String> {
    let text = std::str::from_utf8(&stored.text).map_err(|error| format!("{}: {error}", stored.name))?;
    Network::parse(&Source::new(&stored.name, text.to_owned())).map_err(|errors| errors.to_string())
}
