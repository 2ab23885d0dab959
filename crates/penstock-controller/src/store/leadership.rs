// SPDX-License-Identifier: MIT OR Apache-2.0
//! To lead, and to know until when.
//!
//! What the store promises to a leader is counted from when the leader *sent* what renewed it, by the clock that also runs while a machine
//! sleeps. So a leader that was paused or cut off finds that it leads no longer before the store lets another one lead.

use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// Over: it never comes back.
const LOST_NS: u64 = 0;
/// Longest wait until somebody who resigns has told the store.
const RESIGN: Duration = Duration::from_secs(2);

/// ns of the clock that also counts what a machine slept.
pub fn boot_now_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let part = |value: i64| u64::try_from(value).unwrap_or_default();
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}

/// `Duration` as ns; longer ones than 584 years as that.
pub fn to_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Until when somebody leads. Once it is over it stays so.
#[derive(Debug)]
pub struct Hold {
    deadline_ns: AtomicU64,
    ended: Notify,
}

impl Hold {
    pub fn until(deadline_ns: u64) -> Arc<Self> {
        Arc::new(Self { deadline_ns: AtomicU64::new(deadline_ns), ended: Notify::new() })
    }

    /// ns that are left; 0: it is over.
    pub fn left_ns(&self) -> u64 {
        loop {
            let deadline_ns = self.deadline_ns.load(Ordering::SeqCst);
            let left_ns = deadline_ns.saturating_sub(boot_now_ns());
            if left_ns > 0 || deadline_ns == LOST_NS {
                return left_ns;
            }
            // Whoever has heard that it is over must not hear the contrary from an answer that comes after.
            if self.deadline_ns.compare_exchange(deadline_ns, LOST_NS, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                self.ended.notify_waiters();
                return 0;
            }
        }
    }

    /// The store renewed it, unless it was over by then.
    pub fn renew(&self, deadline_ns: u64) -> bool {
        let later = |before: u64| (before != LOST_NS && boot_now_ns() < before).then_some(before.max(deadline_ns));
        self.deadline_ns.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later).is_ok()
    }

    /// It is over now.
    pub fn end(&self) {
        self.deadline_ns.store(LOST_NS, Ordering::SeqCst);
        self.ended.notify_waiters();
    }

    async fn over(&self) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            // From here on nothing is missed.
            ended.as_mut().enable();
            let left_ns = self.left_ns();
            if left_ns == 0 {
                return;
            }
            // Timers do not run while a machine sleeps.
            let wait = Duration::from_nanos(left_ns).min(Duration::from_secs(1));
            let _ = tokio::time::timeout(wait, ended).await;
        }
    }
}

/// What keeps a leadership alive, until it is told to stop or nobody is left who would.
#[derive(Debug)]
pub struct Keeper {
    pub stop: oneshot::Sender<()>,
    pub task: JoinHandle<()>,
}

/// This replica leads, while it [holds](Leadership::holds). To drop it is to resign.
#[derive(Debug)]
pub struct Leadership {
    /// Larger than that of each leader before.
    pub term: u64,
    hold: Arc<Hold>,
    keeper: Option<Keeper>,
}

impl Leadership {
    pub(super) fn new(term: u64, hold: Arc<Hold>, keeper: Option<Keeper>) -> Self {
        Self { term, hold, keeper }
    }

    /// It leads at this moment, and nobody else does.
    pub fn holds(&self) -> bool {
        self.hold.left_ns() > 0
    }

    /// Until when it leads if nothing renews it. In the past when it leads no longer.
    pub fn deadline(&self) -> Instant {
        // A year is as good as for ever.
        let left = Duration::from_nanos(self.hold.left_ns()).min(Duration::from_secs(365 * 86_400));
        Instant::now() + left
    }

    /// Waits until it leads no longer.
    pub async fn lost(&self) {
        self.hold.over().await;
    }

    /// Leads no longer, and lets another replica lead at once.
    pub async fn resign(mut self) {
        self.hold.end();
        if let Some(Keeper { stop, task }) = self.keeper.take() {
            let _ = stop.send(());
            let _ = tokio::time::timeout(RESIGN, task).await;
        }
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        self.hold.end();
    }
}
