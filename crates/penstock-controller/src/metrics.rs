// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prometheus metrics of a replica: what it has counted, and where it leads how things stand.

use crate::core::{AggregateReading, Reading, Settings};
use crate::counts::{Count, Counts};
use crate::lead::Lead;
use crate::replica::Leading;
use crate::store::{Replica, Store};
use penstock_api::metrics::{MetricType, Source, Tell, Value, Writer, bytes_per_second, seconds};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, watch};

/// Aggregates in one answer unless told otherwise.
pub const AGGREGATES_MAX: usize = 1000;
/// How long a leader's answer is good for: whoever asks more often does not keep it from its work.
const LATELY: Duration = Duration::from_millis(250);
/// Longest wait for a leader that shares out a large network: the rest is told without it.
const LONGEST: Duration = Duration::from_secs(2);

/// What a replica tells of itself. Copies are of the same replica.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    aggregates_max: usize,
    left_out: Count,
    counts: Arc<Counts>,
    /// Since it runs.
    of: OnceLock<Of>,
    lately: Mutex<Option<(Instant, Reading)>>,
}

/// The replica that is told of.
#[derive(Debug)]
struct Of {
    replica: String,
    lease_ns: u64,
    revision: watch::Receiver<u64>,
    leading: Leading,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(AGGREGATES_MAX)
    }
}

impl Metrics {
    /// Of a replica that is to be. An answer has series of so many aggregates, the first ones of the network.
    #[must_use]
    pub fn new(aggregates_max: usize) -> Self {
        let (counts, of) = (Arc::default(), OnceLock::new());
        Self(Arc::new(Shared { aggregates_max, left_out: Count::default(), counts, of, lately: Mutex::default() }))
    }

    /// Of this replica from now on; it counts in what is returned.
    pub(crate) fn of(&self, replica: &Replica, store: &Store, settings: Settings, leading: Leading) -> Arc<Counts> {
        let (replica, lease_ns) = (replica.name.clone(), settings.lease_ns);
        // Who runs twice is told of as it ran first.
        let _ = self.0.of.set(Of { replica, lease_ns, revision: store.watch(), leading });
        self.0.counts.clone()
    }
}

#[tonic::async_trait]
impl Source for Metrics {
    async fn read(&self, _query: Option<&str>) -> Option<Box<dyn Tell>> {
        let lead = self.0.of.get().and_then(|of| of.leading.borrow().clone());
        let reading = match &lead {
            Some(lead) => self.0.reading(lead).await,
            None => None,
        };
        Some(Box::new(Snapshot { shared: self.0.clone(), is_leading: lead.is_some(), reading }))
    }
}

impl Shared {
    async fn reading(&self, lead: &Lead) -> Option<Reading> {
        let mut lately = self.lately.lock().await;
        let is_old = lately.as_ref().is_none_or(|(at, _)| at.elapsed() > LATELY);
        if is_old {
            let reading = tokio::time::timeout(LONGEST, lead.reading(self.aggregates_max)).await.ok().flatten();
            *lately = reading.map(|reading| (Instant::now(), reading));
        }
        let reading = lately.as_ref().map(|(_, reading)| reading.clone())?;
        self.left_out.add(reading.aggregates_total.saturating_sub(reading.aggregates.len() as u64));
        Some(reading)
    }
}

/// What is told in one answer.
#[derive(Debug)]
struct Snapshot {
    shared: Arc<Shared>,
    is_leading: bool,
    reading: Option<Reading>,
}

impl Tell for Snapshot {
    fn tell(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let Shared { aggregates_max, left_out, counts, of, .. } = &*self.shared;
        let help = "Whether this replica leads";
        writer.gauge("penstock_controller_leading", help, Value::Count(self.is_leading.into()))?;
        if let Some(of) = of.get() {
            of.tell(writer)?;
        }
        if let Some(reading) = &self.reading {
            standing(reading, writer)?;
            nodes(reading, writer)?;
            aggregates(&reading.aggregates, writer)?;
        }
        let help = "Aggregates in one answer";
        writer.gauge("penstock_controller_aggregate_series_max", help, Value::Count(*aggregates_max as u64))?;
        let help = "Aggregates that were left out of answers because there were more";
        writer.counter("penstock_controller_aggregate_series_left_out", help, left_out.get())?;
        let help = "Times that this replica began to lead, or ceased to";
        writer.counter("penstock_controller_leadership_changes", help, counts.leadership_changes.get())?;
        let help = "Calls of the store that came to nothing";
        writer.counter("penstock_controller_store_errors", help, counts.store_errors.get())?;
        messages(counts, writer)?;
        puts(counts, writer)?;
        let (help, (buckets, sum_ns)) = ("How long it took to share out the network", counts.allocations.get());
        writer.histogram("penstock_controller_allocation_seconds", help, &buckets, sum_ns)
    }
}

impl Of {
    fn tell(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let labels = [("version", env!("CARGO_PKG_VERSION")), ("replica", &*self.replica)];
        let help = "Version and name of the controller";
        writer.metric("penstock_controller_build_info", help, MetricType::Gauge, |metric| {
            metric.write(&labels, Value::Count(1))
        })?;
        let help = "How long limits are lent for";
        writer.gauge("penstock_controller_lease_seconds", help, seconds(self.lease_ns))?;
        let help = "Of the network in the store; 0: there is none";
        writer.gauge("penstock_controller_network_revision", help, Value::Count(*self.revision.borrow()))
    }
}

/// What the leader alone knows.
fn standing(reading: &Reading, writer: &mut Writer<'_>) -> fmt::Result {
    let mut gauge = |name: &str, help: &str, value: Value| writer.gauge(name, help, value);
    let help = "Of the network that the leader keeps; 0: none";
    gauge("penstock_controller_kept_revision", help, Value::Count(reading.revision))?;
    gauge("penstock_controller_epoch_term", "Of the leader", Value::Count(reading.term))?;
    let help = "Counts up with limits, within the term";
    gauge("penstock_controller_epoch_number", help, Value::Count(reading.number))?;
    let help = "Until the leader knows what all nodes have, at most; 0: it does";
    gauge("penstock_controller_learning_seconds", help, seconds(reading.learning_ns))?;
    let help = "Limits lent to nodes that attend, with a rate";
    gauge("penstock_controller_lent_limits", help, Value::Count(reading.limits))?;
    let help = "Limits of nodes that attend which need no rate: the node's own policy holds";
    gauge("penstock_controller_rateless_limits", help, Value::Count(reading.limits_without_rate))?;
    let help = "Aggregates of the network";
    gauge("penstock_controller_aggregates", help, Value::Count(reading.aggregates_total))
}

fn nodes(reading: &Reading, writer: &mut Writer<'_>) -> fmt::Result {
    let help = "Nodes of the network, and others that attend";
    writer.gauge("penstock_controller_nodes", help, Value::Count(reading.nodes))?;
    let help = "Nodes that the leader hears";
    writer.gauge("penstock_controller_attending_nodes", help, Value::Count(reading.attending))?;
    let help = "Nodes by state, as `penstock network status` has it";
    writer.metric("penstock_controller_state_nodes", help, MetricType::Gauge, |metric| {
        reading.states.iter().try_for_each(|(state, count)| {
            metric.write(&[("state", &state.as_str_name().to_ascii_lowercase())], Value::Count(*count))
        })
    })
}

/// What is told of aggregates: name, help, value.
type Told = (&'static str, &'static str, fn(&AggregateReading) -> u64);

const TOLD: [Told; 4] = [
    ("rate", "What the members of an aggregate may send together", |aggregate| aggregate.rate_bps),
    ("held", "What members may have at this moment, in the worst case", |aggregate| aggregate.held_bps),
    ("demand", "What came to members, as nodes reported it last", |aggregate| aggregate.demand_bps),
    ("passed", "What passed of that", |aggregate| aggregate.passed_bps),
];

fn aggregates(aggregates: &[AggregateReading], writer: &mut Writer<'_>) -> fmt::Result {
    for (name, help, value) in TOLD {
        let name = format!("penstock_controller_aggregate_{name}_bytes_per_second");
        writer.metric(&name, help, MetricType::Gauge, |metric| {
            aggregates.iter().try_for_each(|aggregate| {
                metric.write(&[("aggregate", &aggregate.name)], bytes_per_second(value(aggregate)))
            })
        })?;
    }
    Ok(())
}

/// Between nodes and the leader.
fn messages(counts: &Counts, writer: &mut Writer<'_>) -> fmt::Result {
    let streams = &counts.streams;
    writer.counter("penstock_controller_reports", "Reports of nodes", counts.reports.get())?;
    writer.counter("penstock_controller_orders", "Orders to nodes", counts.orders.get())?;
    writer.counter("penstock_controller_order_limits", "Limits in orders to nodes", counts.limits.get())?;
    let help = "Streams of nodes that were let in";
    writer.counter("penstock_controller_streams", help, streams.opened.get())?;
    let help = "Streams of nodes that were refused: another replica leads or none, a registration that is none, another one's certificate or name";
    let refused = [
        ("not_leading", &streams.not_leading),
        ("registration", &streams.registration),
        ("certificate", &streams.certificate),
        ("name", &streams.name),
    ];
    by_reason("penstock_controller_refused_streams", help, &refused, writer)?;
    let help = "Streams of nodes that were ended: nobody took orders, reports came too fast, the node has another one, its limits get other numbers";
    let cut_off = [
        ("orders", &streams.orders),
        ("reports", &streams.reports),
        ("replaced", &streams.replaced),
        ("renumbered", &streams.renumbered),
    ];
    by_reason("penstock_controller_cut_off_streams", help, &cut_off, writer)
}

fn puts(counts: &Counts, writer: &mut Writer<'_>) -> fmt::Result {
    let puts = &counts.puts;
    writer.counter("penstock_controller_puts", "Networks that were put and are kept", puts.kept.get())?;
    let help = "Networks that were refused: a certificate without the role, a file that is wrong, another revision than was expected, the store";
    let refused = [
        ("certificate", &puts.certificate),
        ("file", &puts.file),
        ("revision", &puts.revision),
        ("store", &puts.store),
    ];
    by_reason("penstock_controller_refused_puts", help, &refused, writer)
}

fn by_reason(name: &str, help: &str, all: &[(&str, &Count)], writer: &mut Writer<'_>) -> fmt::Result {
    writer.metric(name, help, MetricType::Counter, |metric| {
        all.iter().try_for_each(|(reason, count)| metric.write(&[("reason", reason)], Value::Count(count.get())))
    })
}
