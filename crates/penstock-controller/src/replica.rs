// SPDX-License-Identifier: MIT OR Apache-2.0
//! One of the programs that are the controller together: campaigns, and leads when it is elected.

use crate::core::Settings;
use crate::counts::Counts;
use crate::lead::Lead;
use crate::networks::{Networks, Newest};
use crate::store::{Leadership, Replica, Store, StoreError, boot_now_ns};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tracing::{info, warn};

/// Between attempts at what the store refused.
const AGAIN: Duration = Duration::from_millis(200);
/// Between looks whether longer leases are over.
const SHORTEN_EVERY: Duration = Duration::from_secs(1);

/// The leader's voice, where this replica leads.
pub type Leading = watch::Receiver<Option<Lead>>;

/// Campaigns and leads, again and again, until `stopped`.
pub async fn run(
    store: Arc<Store>,
    networks: Arc<Networks>,
    replica: Replica,
    settings: Settings,
    counts: Arc<Counts>,
    leading: watch::Sender<Option<Lead>>,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        let elected = tokio::select! {
            elected = store.campaign(&replica) => counts.store(elected),
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
        let lease_before_ns = match counts.store(note_lease(&store, &leadership, settings.lease_ns).await) {
            Ok(before_ns) => before_ns,
            Err(error) => {
                warn!("cannot lead: {error}; trying again");
                resign(leadership).await;
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        let settings = Settings { lease_before_ns, ..settings };
        info!(term = leadership.term, "leads");
        counts.leadership_changes.one();
        let (lead, mut work) = Lead::begin(leadership.clone(), settings, counts.clone());
        leading.send_replace(Some(lead.clone()));
        let is_stopped = tokio::select! {
            () = leadership.lost() => false,
            () = follow_network(&store, &networks, &lead, &counts) => false,
            () = shorten_lease(&store, &leadership, settings, &counts) => false,
            // Another replica may do better.
            _ = &mut work => false,
            _ = stopped.wait_for(|stopped| *stopped) => true,
        };
        counts.leadership_changes.one();
        leading.send_replace(None);
        lead.stop();
        if !work.is_finished() {
            let _ = work.await;
        }
        info!(term = leadership.term, "led");
        resign(leadership).await;
        if is_stopped {
            return;
        }
    }
}

async fn resign(leadership: Arc<Leadership>) {
    if let Some(leadership) = Arc::into_inner(leadership) {
        leadership.resign().await;
    }
}

/// Before it lends anything a leader says for how long, so that the next one waits as long, whatever its own lease is. Returns how long leaders
/// before it may have lent for, ns.
async fn note_lease(store: &Store, leadership: &Leadership, lease_ns: u64) -> Result<u64, StoreError> {
    let noted_ns = store.lease_ns().await?;
    let lease_before_ns = noted_ns.unwrap_or(lease_ns);
    let settings = Settings { lease_ns, lease_before_ns, ..Settings::default() };
    if noted_ns != Some(settings.lease_noted_ns(0)) {
        store.set_lease_ns(leadership, settings.lease_noted_ns(0)).await?;
    }
    Ok(lease_before_ns)
}

/// Says so once longer leases of leaders before are over. Does not end.
async fn shorten_lease(store: &Store, leadership: &Leadership, settings: Settings, counts: &Counts) {
    let began_ns = boot_now_ns();
    let mut noted_ns = settings.lease_noted_ns(0);
    loop {
        tokio::time::sleep(SHORTEN_EVERY).await;
        let now_ns = settings.lease_noted_ns(boot_now_ns() - began_ns);
        if now_ns == noted_ns {
            continue;
        }
        match counts.store(store.set_lease_ns(leadership, now_ns).await) {
            Ok(()) => noted_ns = now_ns,
            Err(error) => warn!("the next leader will wait longer than it has to: {error}; trying again"),
        }
    }
}

/// Has the leader keep whatever network is in the store. Does not end.
async fn follow_network(store: &Store, networks: &Networks, lead: &Lead, counts: &Counts) {
    let mut revisions = store.watch();
    let mut kept = 0;
    loop {
        match counts.store(networks.newest().await) {
            Ok(Some(Newest { revision, known })) if revision != kept => {
                match known {
                    Ok(known) => lead.keep(revision, known),
                    Err(why) => warn!(revision, "the network of the store is not kept: {why}"),
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
