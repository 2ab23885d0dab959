// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prometheus metrics over HTTP: `GET /metrics`, and `GET /metrics?limits=PATTERN` with series for single limits.

use crate::limits;
use crate::service::Node;
use crate::tending::Histograms;
use penstock_api::metrics::{MetricType, Source, Tell, Value, Writer, bytes_per_second, seconds};
use penstock_api::v1;
use penstock_dataplane::{LimitId, ShapingReading};
use penstock_policy::Plan;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

mod lease;
mod shaping;
mod shares;

/// Patterns whose limits are kept.
const PATTERNS_MAX: usize = 8;

/// Series for single limits: which, and how many at most.
#[derive(Debug, Clone, Default)]
pub struct LimitSeries {
    /// Always there; as `limits list` filters. None unless asked for.
    pub pattern: Option<String>,
    /// Limits in one answer.
    pub limits_max: u64,
}

/// What a daemon tells.
#[derive(Clone)]
pub struct OfNode {
    node: Node,
    series: LimitSeries,
    scraped: Arc<Scraped>,
}

impl fmt::Debug for OfNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfNode").field("series", &self.series).finish_non_exhaustive()
    }
}

impl OfNode {
    /// Of this one.
    pub fn new(node: Node, series: LimitSeries) -> Self {
        Self { node, series, scraped: Arc::default() }
    }
}

#[tonic::async_trait]
impl Source for OfNode {
    async fn read(&self, query: Option<&str>) -> Option<Box<dyn Tell>> {
        let asked = query.and_then(|query| {
            let value = query.split('&').find_map(|part| part.strip_prefix("limits="))?;
            Some(decode(value))
        });
        let pattern = asked.or_else(|| self.series.pattern.clone());
        let Self { node, series, scraped } = self.clone();
        let snapshot =
            tokio::task::spawn_blocking(move || Snapshot::take(&node, pattern.as_deref(), series.limits_max, &scraped));
        snapshot.await.ok().map(|snapshot| Box::new(snapshot) as Box<dyn Tell>)
    }

    fn usage(&self) -> &'static str {
        ", and /metrics?limits=PATTERN"
    }
}

/// What is kept from one answer to the next.
#[derive(Default)]
struct Scraped {
    left_out: AtomicU64,
    found: Mutex<Found>,
}

/// Limits that fit the patterns asked for last, newest first: millions of names are not looked through for each answer.
#[derive(Default)]
struct Found(VecDeque<Fitting>);

/// Limits that fit a pattern.
struct Fitting {
    pattern: String,
    edition: Option<(u64, usize, u64)>,
    limits: Vec<LimitId>,
    /// How many there are.
    total: u64,
}

impl Found {
    fn of(&mut self, plan: &Plan, edition: Option<(u64, usize, u64)>, pattern: &str, limits_max: u64) -> &Fitting {
        let known = self.0.iter().position(|one| one.pattern == pattern).and_then(|at| self.0.remove(at));
        let fitting = known.filter(|one| one.edition == edition).unwrap_or_else(|| {
            let (limits, total) = limits::fitting(plan, pattern, limits_max);
            Fitting { pattern: pattern.to_owned(), edition, limits, total }
        });
        self.0.truncate(PATTERNS_MAX - 1);
        self.0.push_front(fitting);
        &self.0[0]
    }
}

/// `%2F` and `+` of a query.
fn decode(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(byte);
            rest = tail.get(2..).unwrap_or_default();
        } else {
            bytes.push(if *first == b'+' { b' ' } else { *first });
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What is told in one answer.
#[derive(Debug, Default)]
struct Snapshot {
    version: &'static str,
    dataplane: &'static str,
    readings: Option<v1::Readings>,
    runtime_changes: u64,
    limits: Option<Vec<v1::Limit>>,
    limits_max: u64,
    left_out: u64,
    shaping: Option<ShapingReading>,
    tending: Option<(v1::Tending, Histograms)>,
    controller: Option<v1::ControllerStatus>,
}

impl Snapshot {
    fn take(node: &Node, pattern: Option<&str>, limits_max: u64, scraped: &Scraped) -> Self {
        let mut found = scraped.found.lock().unwrap_or_else(PoisonError::into_inner);
        let keeper = node.keeper();
        let mut snapshot = Self {
            version: env!("CARGO_PKG_VERSION"),
            dataplane: node.about().dataplane,
            readings: keeper.readings_lately().ok(),
            runtime_changes: keeper.changes().len() as u64,
            limits_max,
            controller: keeper.controller_status(),
            shaping: keeper.dataplane().shaping(),
            tending: keeper.recent.tended.message().map(|told| (told, keeper.recent.tended.histograms().clone())),
            ..Self::default()
        };
        if let (Some(pattern), Ok((plan, _))) = (pattern, keeper.in_force()) {
            let Fitting { limits, total, .. } = found.of(plan, keeper.edition(), pattern, limits_max);
            scraped.left_out.fetch_add(total.saturating_sub(limits.len() as u64), Ordering::Relaxed);
            let read = limits.iter().filter_map(|&limit| limits::with_reading(&keeper, plan, limit).ok());
            snapshot.limits = Some(read.collect());
        }
        snapshot.left_out = scraped.left_out.load(Ordering::Relaxed);
        snapshot
    }
}

impl Tell for Snapshot {
    fn tell(&self, writer: &mut Writer<'_>) -> fmt::Result {
        writer.metric("penstock_build_info", "Version and data plane of the daemon", MetricType::Gauge, |metric| {
            metric.write(&[("version", self.version), ("dataplane", self.dataplane)], Value::Count(1))
        })?;
        let help = "Limits that were changed at run time";
        writer.gauge("penstock_runtime_changes", help, Value::Count(self.runtime_changes))?;
        let help = "Limits in one answer to /metrics?limits=PATTERN";
        writer.gauge("penstock_limit_series_max", help, Value::Count(self.limits_max))?;
        let help = "Limits that were left out of answers because there were more";
        writer.counter("penstock_limit_series_left_out", help, self.left_out)?;
        if let Some(readings) = &self.readings {
            policy(readings, writer)?;
            classes(readings, writer)?;
            shares::encode(readings, writer)?;
        }
        if let Some(limits) = &self.limits {
            of_limits(limits, writer)?;
        }
        if let Some(controller) = &self.controller {
            lease::encode(controller, writer)?;
        }
        if let Some((told, all)) = &self.tending {
            shares::tending(told, all, writer)?;
        }
        match &self.shaping {
            Some(shaping) => shaping::encode(shaping, writer),
            None => Ok(()),
        }
    }
}

fn policy(readings: &v1::Readings, writer: &mut Writer<'_>) -> fmt::Result {
    let gauge = MetricType::Gauge;
    writer.metric("penstock_policy_info", "Name of the policy in force", gauge, |metric| {
        metric.write(&[("policy", &readings.policy)], Value::Count(1))
    })?;
    let help = "Counts up with every policy";
    writer.gauge("penstock_policy_generation", help, Value::Count(readings.generation))?;
    writer.metric("penstock_link_rate_bytes_per_second", "Rate of a link", gauge, |metric| {
        readings
            .links
            .iter()
            .try_for_each(|link| metric.write(&[("link", &link.name)], bytes_per_second(link.rate_bps)))
    })?;
    let help = "Packets by reason, in all classes";
    writer.metric("penstock_reason_packets", help, MetricType::Counter, |metric| {
        let mut reasons = readings.reasons.iter();
        reasons.try_for_each(|reason| metric.write(&[("reason", &reason.reason)], Value::Count(reason.packets)))
    })
}

/// What is told of counters: name, help, value.
type Told = (&'static str, &'static str, fn(&v1::Counters) -> u64);

const TOLD: [Told; 8] = [
    ("offered_packets", "Packets offered", |counters| counters.offered_packets),
    ("offered_bytes", "Bytes offered", |counters| counters.offered_bytes),
    ("passed_packets", "Packets passed, marked ones included", |counters| counters.passed_packets),
    ("passed_bytes", "Bytes passed", |counters| counters.passed_bytes),
    ("dropped_packets", "Packets dropped (in shadow mode: that would have been)", |counters| counters.dropped_packets),
    ("dropped_bytes", "Bytes dropped (in shadow mode: that would have been)", |counters| counters.dropped_bytes),
    ("marked_packets", "Packets passed with a mark", |counters| counters.marked_packets),
    ("held_packets", "Packets that waited", |counters| counters.held_packets),
];

/// Who adds up classes must not count packets twice.
const CLASS_SUMS: &str =
    "; of a class with children the sum of theirs: add up those of a link that have no children, or no parent";

/// Series of one kind of thing: its labels and its counters.
fn counted(
    prefix: &str,
    what: &str,
    things: &[(Vec<(&'static str, &str)>, &v1::Counters)],
    writer: &mut Writer<'_>,
) -> fmt::Result {
    let sums = if what == "class" { CLASS_SUMS } else { "" };
    for (name, help, value) in TOLD {
        let (name, help) = (format!("{prefix}_{name}"), format!("{help}, by {what}{sums}"));
        writer.metric(&name, &help, MetricType::Counter, |metric| {
            for (labels, counters) in things {
                metric.write(labels, Value::Count(value(counters)))?;
            }
            Ok(())
        })?;
    }
    let (name, help) =
        (format!("{prefix}_color_packets"), format!("Packets that a limit judged, by {what} and colour{sums}"));
    writer.metric(&name, &help, MetricType::Counter, |metric| {
        for (labels, counters) in things {
            let colors = [
                ("green", Some(counters.green_packets)),
                ("yellow", Some(counters.yellow_packets)),
                ("red", counters.red_packets),
            ];
            for (color, packets) in colors {
                let mut labels = labels.clone();
                labels.push(("color", color));
                if let Some(packets) = packets {
                    metric.write(&labels, Value::Count(packets))?;
                }
            }
        }
        Ok(())
    })
}

fn classes(readings: &v1::Readings, writer: &mut Writer<'_>) -> fmt::Result {
    let gauge = MetricType::Gauge;
    let help = "Rate of a class's own limit";
    writer.metric("penstock_class_limit_bytes_per_second", help, gauge, |metric| {
        for class in &readings.classes {
            if let Some(limit_bps) = class.limit_bps {
                metric.write(&[("class", &class.path)], bytes_per_second(limit_bps))?;
            }
        }
        Ok(())
    })?;
    writer.metric("penstock_class_rows", "Rows of a class's limits file", gauge, |metric| {
        for class in &readings.classes {
            metric.write(&[("class", &class.path)], Value::Count(class.rows))?;
        }
        Ok(())
    })?;
    let of_class = |class: &'_ v1::ClassReading| Some((class.path.clone(), class.counters?));
    let owned: Vec<(String, v1::Counters)> = readings.classes.iter().filter_map(of_class).collect();
    let things: Vec<_> = owned.iter().map(|(path, counters)| (vec![("class", path.as_str())], counters)).collect();
    counted("penstock_class", "class", &things, writer)
}

fn of_limits(limits: &[v1::Limit], writer: &mut Writer<'_>) -> fmt::Result {
    let labels = |limit: &'_ v1::Limit| [("class", limit.class.clone()), ("limit", limit.name.clone())];
    let mut gauge = |name: &str, help: &str, value: &dyn Fn(&v1::Limit) -> Option<Value>| {
        writer.metric(name, help, MetricType::Gauge, |metric| {
            for limit in limits {
                let [class, name] = labels(limit);
                if let Some(value) = value(limit) {
                    metric.write(&[(class.0, &class.1), (name.0, &name.1)], value)?;
                }
            }
            Ok(())
        })
    };
    gauge("penstock_limit_rate_bytes_per_second", "Rate of a limit", &|limit| Some(bytes_per_second(limit.rate_bps)))?;
    let help = "Depth of a limit's virtual queue: how long it takes to drain";
    gauge("penstock_limit_queue_seconds", help, &|limit| limit.queue.map(|queue| seconds(queue.queue_ns)))?;
    let help = "How deep a limit's virtual queue may get: burst and excess";
    gauge("penstock_limit_window_seconds", help, &|limit| limit.queue.map(|queue| seconds(queue.window_ns)))?;
    let things: Vec<_> = limits
        .iter()
        .filter_map(|limit| {
            Some((vec![("class", limit.class.as_str()), ("limit", limit.name.as_str())], limit.counters.as_ref()?))
        })
        .collect();
    counted("penstock_limit", "limit", &things, writer)
}

#[cfg(test)]
mod tests {
    use super::{Found, PATTERNS_MAX, decode};
    use penstock_dataplane::LimitId;
    use penstock_policy::Plan;
    use penstock_policy::plan::PlanClass;

    #[test]
    fn limits_are_looked_for_once_as_long_as_none_comes_or_goes() {
        let class = |path: &str| PlanClass { path: path.to_owned(), ..PlanClass::default() };
        let plan = Plan { classes: vec![class("down/a")], limits: vec![Default::default()], ..Plan::default() };
        let nothing = Plan::default();
        let mut found = Found::default();
        let first = Some((1, 5, 5));
        assert_eq!(found.of(&plan, first, "down/*", 10).limits, [LimitId::Class(0)]);
        // It is not looked at again: nothing would be found in this one.
        assert_eq!(found.of(&nothing, first, "down/*", 10).total, 1);
        assert_eq!(found.of(&nothing, Some((1, 5, 4)), "down/*", 10).total, 0);
        assert_eq!(found.of(&plan, first, "up/*", 10).total, 0);
        for index in 0..2 * PATTERNS_MAX {
            assert_eq!(found.of(&plan, first, &format!("x{index}"), 10).total, 0);
        }
        assert_eq!(found.0.len(), PATTERNS_MAX);
    }

    #[test]
    fn queries_are_decoded() {
        assert_eq!(decode("down%2Ftenants%2F*"), "down/tenants/*");
        assert_eq!(decode("a+b%zz%"), "a b%zz%");
    }
}
