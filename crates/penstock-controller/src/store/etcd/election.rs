// SPDX-License-Identifier: MIT OR Apache-2.0
//! One leader at a time: whoever made the key `leader`, for as long as its lease lasts.

use super::super::leadership::{Hold, Keeper, Leadership, boot_now_ns, to_ns};
use super::super::{Replica, Result, StoreError, to_json};
use super::{CALL, Shared};
use etcd_client::{Compare, CompareOp, EventType, GetOptions, PutOptions, Txn, TxnOp, TxnOpResponse, WatchOptions};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

/// Between questions whether somebody leads, beside the watch that tells.
const AGAIN: Duration = Duration::from_secs(1);
/// Between attempts to renew a lease.
const RETRY: Duration = Duration::from_millis(50);

/// The leader's key: etcd's revisions when it was made and when it was read, and its lease.
struct Lead {
    made_at: i64,
    read_at: i64,
    lease: i64,
}

impl Shared {
    pub async fn campaign(shared: &Arc<Self>, replica: &Replica) -> Result<Leadership> {
        let mut is_reached = true;
        loop {
            match Self::attempt(shared, replica).await {
                Ok(Some(leadership)) => return Ok(leadership),
                Ok(None) => is_reached = true,
                Err(StoreError::Unreachable { store, why }) => {
                    if is_reached {
                        warn!("{store}: {why}; it is asked again until it answers");
                        is_reached = false;
                    }
                    sleep(AGAIN / 4).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits while somebody leads, then tries to. None: somebody else was faster, or it took too long.
    async fn attempt(shared: &Arc<Self>, replica: &Replica) -> Result<Option<Leadership>> {
        while let Some(lead) = shared.lead().await? {
            shared.wait(lead.read_at).await;
        }
        let sent_ns = boot_now_ns();
        let lease = shared.grant(shared.ttl).await?;
        let made_at = match shared.lead_with(lease, replica).await {
            Ok(Some(made_at)) => made_at,
            Ok(None) => {
                shared.revoke(lease).await;
                return Ok(None);
            }
            Err(error) => {
                // It may have been done. Nobody waits for this: there is nobody who answers.
                let shared = shared.clone();
                tokio::spawn(async move { shared.revoke(lease).await });
                return Err(error);
            }
        };
        let hold = Hold::until(shared.deadline_ns(sent_ns));
        let (stop, stopped) = oneshot::channel();
        let term = u64::try_from(made_at).unwrap_or_default();
        let keeper = Lessee { shared: shared.clone(), lease, made_at, sent_ns, hold: hold.clone() };
        let task = tokio::spawn(keeper.run(stopped));
        let leadership = Leadership::new(term, hold, Some(Keeper { stop, task }));
        if !leadership.holds() {
            return Ok(None);
        }
        let tidier = shared.clone();
        tokio::spawn(async move { tidier.tidy().await });
        Ok(Some(leadership))
    }

    /// Until when a leader may lead whose lease was renewed by a question that it sent at `sent_ns`. The store counts from when it was
    /// asked, which is later; a part less, since clocks differ in how fast they go.
    fn deadline_ns(&self, sent_ns: u64) -> u64 {
        sent_ns + to_ns(self.ttl - self.ttl / 5)
    }

    async fn lead(&self) -> Result<Option<Lead>> {
        let found = self.get(self.key("leader"), GetOptions::new(), CALL).await?;
        let read_at = found.header().map_or(0, |header| header.revision());
        let lead = found.kvs().first();
        Ok(lead.map(|kv| Lead { made_at: kv.create_revision(), read_at, lease: kv.lease() }))
    }

    /// Makes the key, if there is none. Returns etcd's revision when it was made.
    async fn lead_with(&self, lease: i64, replica: &Replica) -> Result<Option<i64>> {
        let key = self.key("leader");
        let nobody = Compare::create_revision(key.clone(), CompareOp::Equal, 0);
        let lead = TxnOp::put(key.clone(), to_json(replica), Some(PutOptions::new().with_lease(lease)));
        let look = TxnOp::get(key, None);
        let done = self.txn(Txn::new().when([nobody]).and_then([lead]).or_else([look])).await?;
        if done.succeeded() {
            return Ok(done.header().map(|header| header.revision()));
        }
        // An answer may have got lost, and the question been asked again.
        let found = done.op_responses().into_iter().find_map(|response| match response {
            TxnOpResponse::Get(found) => found.kvs().first().map(|kv| (kv.lease(), kv.create_revision())),
            _ => None,
        });
        Ok(found.filter(|(its, _)| *its == lease).map(|(_, made_at)| made_at))
    }

    /// Does something if the leader of that term leads still; whether it does.
    pub async fn as_leader(&self, term: u64, operation: TxnOp) -> Result<bool> {
        let made_at = i64::try_from(term).unwrap_or(i64::MAX);
        let leads = Compare::create_revision(self.key("leader"), CompareOp::Equal, made_at);
        Ok(self.txn(Txn::new().when([leads]).and_then([operation])).await?.succeeded())
    }

    /// Waits until the leader's key may be gone.
    async fn wait(&self, read_at: i64) {
        let gone = async {
            let (_, mut client) = self.link.client().await.ok()?;
            let options = WatchOptions::new().with_start_revision(read_at + 1);
            let mut stream = client.watch(self.key("leader"), Some(options)).await.ok()?;
            while let Some(message) = stream.message().await.ok()? {
                if message.events().iter().any(|event| event.event_type() == EventType::Delete) {
                    return Some(());
                }
                if message.canceled() {
                    break;
                }
            }
            None
        };
        if let Ok(None) = timeout(AGAIN, gone).await {
            sleep(AGAIN / 4).await;
        }
    }
}

/// Keeps a lease, and with it the leader's key.
struct Lessee {
    shared: Arc<Shared>,
    lease: i64,
    made_at: i64,
    /// When the question was sent that renewed it last.
    sent_ns: u64,
    hold: Arc<Hold>,
}

impl Lessee {
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        tokio::select! {
            // Told to stop, or nobody is left who would.
            _ = &mut stopped => {}
            () = self.keep() => info!("{}: this replica leads no longer", self.shared.link.describe()),
        }
        self.hold.end();
        // So that nobody has to wait until the lease is over.
        self.shared.revoke(self.lease).await;
    }

    /// Returns when it is over.
    async fn keep(&mut self) {
        let every_ns = to_ns(self.shared.ttl / 3);
        loop {
            let rest_ns = (self.sent_ns + every_ns).saturating_sub(boot_now_ns());
            sleep(Duration::from_nanos(rest_ns.min(self.hold.left_ns()))).await;
            let left_ns = self.hold.left_ns();
            if left_ns == 0 {
                return;
            }
            let sent_ns = boot_now_ns();
            match timeout(Duration::from_nanos(left_ns), self.renew()).await {
                Ok(Ok(true)) if self.hold.renew(self.shared.deadline_ns(sent_ns)) => self.sent_ns = sent_ns,
                Ok(Err(_)) => sleep(RETRY).await,
                _ => return,
            }
        }
    }

    /// Renews the lease; false: it is gone, or the key is.
    ///
    /// The key is read afterwards, which takes a majority of the members: one that is cut off from the others and does not know yet that it
    /// does not lead them any more renews leases as if it did in some versions of etcd, while theirs runs out.
    async fn renew(&self) -> Result<bool> {
        // Long enough for one member to hang and another one to answer.
        let longest = self.shared.ttl / 2;
        if !self.shared.renew(self.lease, longest).await? {
            return Ok(false);
        }
        let lead = self.shared.lead().await?;
        Ok(lead.is_some_and(|lead| lead.made_at == self.made_at && lead.lease == self.lease))
    }
}
