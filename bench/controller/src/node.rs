// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nodes without a data plane: real leases, and demands as they are told.

use penstock_api::controller::ControllerClient;
use penstock_api::v1;
use penstock_node::clock::boottime_ns;
use penstock_node::leases::{Leases, Taken};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};
use tokio_stream::wrappers::ReceiverStream;

const REPORT_EVERY: Duration = Duration::from_millis(100);

/// What all nodes share.
pub struct Load {
    /// Which node the tenant sends at, and how much, bits/s; nowhere, where it is none of them.
    at: AtomicUsize,
    demand_bps: AtomicU64,
    /// What each node's tenant may have, and when it acknowledged that.
    rates: Mutex<Vec<(u64, Instant)>>,
    changed: watch::Sender<()>,
    is_stopped: AtomicBool,
}

impl Load {
    pub fn new(nodes: usize) -> Self {
        Self {
            at: AtomicUsize::new(usize::MAX),
            demand_bps: AtomicU64::new(0),
            rates: Mutex::new(vec![(0, Instant::now()); nodes]),
            changed: watch::channel(()).0,
            is_stopped: AtomicBool::new(false),
        }
    }

    pub fn demand(&self, at: usize, demand_bps: u64) {
        self.demand_bps.store(demand_bps, Ordering::Relaxed);
        self.at.store(at, Ordering::Relaxed);
    }

    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    fn demand_of(&self, node: usize) -> u64 {
        if self.at.load(Ordering::Relaxed) == node { self.demand_bps.load(Ordering::Relaxed) } else { 0 }
    }

    fn has_now(&self, node: usize, rate_bps: u64) {
        if let Ok(mut rates) = self.rates.lock() {
            rates[node] = (rate_bps, Instant::now());
        }
        self.changed.send_replace(());
    }

    /// When the last of all nodes had this rate, from now on; rates are rounded down.
    pub async fn all_have(&self, rate_bps: u64) -> Instant {
        self.when(|rates| rates.iter().all(|(has_bps, _)| has_bps.abs_diff(rate_bps) < 16)).await
    }

    /// When a node had this rate or more.
    pub async fn has(&self, node: usize, rate_bps: u64) -> Instant {
        self.when(|rates| rates[node].0 >= rate_bps).await
    }

    async fn when(&self, is_so: impl Fn(&[(u64, Instant)]) -> bool) -> Instant {
        let mut changed = self.changed.subscribe();
        loop {
            if let Ok(rates) = self.rates.lock()
                && is_so(&rates)
            {
                return rates.iter().map(|(_, at)| *at).max().unwrap_or_else(Instant::now);
            }
            let _ = changed.changed().await;
        }
    }
}

/// Attends until the load stops.
pub async fn attend(load: std::sync::Arc<Load>, node: usize, mut client: ControllerClient) {
    let (reports, receiver) = mpsc::channel(16);
    let mut stay = Stay { leases: Leases::default(), sequence: 0, node, tenant: None };
    stay.leases.attend();
    if reports.send(stay.report(&load)).await.is_err() {
        return;
    }
    let Ok(orders) = client.attend(ReceiverStream::new(receiver)).await else { return };
    let mut orders = orders.into_inner();
    let mut ticks = interval(REPORT_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !load.is_stopped.load(Ordering::Relaxed) {
        tokio::select! {
            order = orders.message() => {
                let Ok(Some(order)) = order else { return };
                if order.report_every_ns > 0 && ticks.period() != Duration::from_nanos(order.report_every_ns) {
                    ticks = interval(Duration::from_nanos(order.report_every_ns));
                    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                }
                if stay.leases.take(&order, boottime_ns()) != Taken::Changed {
                    continue;
                }
                if reports.send(stay.report(&load)).await.is_err() {
                    return;
                }
                let tenant = stay.tenant_bps();
                load.has_now(node, tenant);
            }
            _ = ticks.tick() => {
                if reports.send(stay.report(&load)).await.is_err() {
                    return;
                }
            }
        }
    }
}

struct Stay {
    leases: Leases,
    sequence: u64,
    node: usize,
    /// The number of the tenant's limit.
    tenant: Option<u32>,
}

impl Stay {
    fn tenant_bps(&mut self) -> u64 {
        let Some(holding) = self.leases.holding() else { return 0 };
        let name = format!("t-{}", self.node);
        let found = || holding.limits.iter().find(|(_, lent)| lent.class == name).map(|(number, _)| *number);
        self.tenant = self.tenant.or_else(found);
        self.tenant.and_then(|tenant| holding.limits.get(&tenant)?.rate_bps).unwrap_or(0)
    }

    fn report(&mut self, load: &Load) -> v1::Report {
        self.sequence += 1;
        self.leases.sent(self.sequence, boottime_ns());
        let (has_bps, offered_bps) = (self.tenant_bps(), load.demand_of(self.node));
        let registration = || v1::Registration {
            node: format!("n{}", self.node),
            version: "bench".to_owned(),
            ..v1::Registration::default()
        };
        let demand = |limit| v1::Demand { limit, offered_bps, passed_bps: offered_bps.min(has_bps) };
        v1::Report {
            sequence: self.sequence,
            registration: (self.sequence == 1).then(registration),
            applied: self.leases.holding().map(|holding| holding.epoch.into()),
            demands: self.tenant.map(demand).into_iter().collect(),
            wants_all: self.leases.wants_all(),
            ..v1::Report::default()
        }
    }
}
