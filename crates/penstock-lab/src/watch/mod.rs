// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast limits in the kernel follow a change of who sends: they are looked at many times a millisecond.

mod follow;
#[cfg(test)]
mod tests;

use crate::LabError;
use crate::enforce::Watched;
use crate::process::run;
use crate::results::Metrics;
use crate::scenario::{Load, Tenant};
use crate::stats::{mean, percentile, real};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between the end of a look and the start of the next one.
const PAUSE: Duration = Duration::from_micros(30);

/// What one look saw.
#[derive(Debug, Clone, PartialEq)]
pub struct Poll {
    /// When it was over.
    pub time_ns: u64,
    /// What had come by then, by tenant; where packets are not counted, looks that found more than the one before.
    pub packets: Vec<u64>,
    /// By tenant, bit/s. None where nobody says so.
    pub limits_bps: Vec<Option<f64>>,
}

/// All looks, and what was looked at.
type Looked = Result<(Vec<Poll>, Watched), LabError>;

/// A thread that looks.
pub struct Watcher {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Looked>>,
}

impl Watcher {
    /// Looks from now on.
    pub fn start(mut watched: Watched) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            // Senders that start must not keep it from looking. Where the machine refuses, the gaps say so.
            let _ = run(&format!("chrt --fifo --pid 1 {}", nix::unistd::gettid()));
            let mut polls = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                polls.push(watched.look()?);
                std::thread::sleep(PAUSE);
            }
            Ok((polls, watched))
        });
        Self { stop, thread: Some(thread) }
    }

    /// Stops looking. Numbers of all changes, of joins, and of leaves.
    ///
    /// # Errors
    /// A look failed, or a tenant sent nothing.
    pub fn finish(mut self, tenants: &[Tenant]) -> Result<Vec<(&'static str, Metrics)>, LabError> {
        self.stop.store(true, Ordering::Relaxed);
        let joined = self.thread.take().map(JoinHandle::join).transpose();
        let (polls, watched) = match joined {
            Ok(Some(done)) => done?,
            Ok(None) => return Ok(Vec::new()),
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let asked_bps: Vec<f64> = tenants.iter().map(asked_bps).collect();
        let followed = follow::followed(&polls, watched.tree(), &asked_bps).map_err(|silent| {
            let name = tenants.get(silent).map_or("", |tenant| tenant.name.as_str());
            LabError::Computation(format!("`watch_shares` saw no packets of {name:?}"))
        })?;
        let mut by_kind = crate::shares::changes::metrics_by_kind(&followed.changes);
        if !watched.counts_packets() {
            by_kind.iter_mut().for_each(|(_, metrics)| metrics.retain(|name, _| !name.starts_with("newcomers_")));
        }
        if let Some((_, of_all)) = by_kind.first_mut() {
            of_all.extend(gaps(&polls));
            of_all.extend(followed.right_share.map(|share| ("right_share".to_owned(), share)));
            of_all.insert("pause_most".to_owned(), real(followed.pause_ns) / 1e6);
        }
        Ok(by_kind)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // It holds the policy: what is to be taken down waits for it.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What a tenant asks for, headers included.
fn asked_bps(tenant: &Tenant) -> f64 {
    match tenant.load {
        Load::Udp(load) => load.wire_bps(),
        _ => f64::MAX,
    }
}

/// Times between looks, ms: how far off times can be.
fn gaps(polls: &[Poll]) -> Metrics {
    let gaps: Vec<f64> = polls.windows(2).map(|pair| real(pair[1].time_ns - pair[0].time_ns) / 1e6).collect();
    Metrics::from([
        ("watch_gap_mean".to_owned(), mean(&gaps)),
        ("watch_gap_p99".to_owned(), percentile(&gaps, 99.0)),
        ("watch_gap_most".to_owned(), gaps.iter().copied().fold(0.0, f64::max)),
    ])
}
