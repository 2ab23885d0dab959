// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of shares: of links and classes, and of the loop that tends them.

use crate::tending::Histograms;
use penstock_api::metrics::{MetricType, Value, Writer, bytes_per_second};
use penstock_api::v1;
use std::fmt;

/// Of a link or a class: name, help, value.
type Told = (&'static str, &'static str, fn(&v1::Share) -> Option<Value>);

const TOLD: [Told; 5] = [
    ("share_demand_bytes_per_second", "What it asks for", |share| Some(bytes_per_second(share.demand_bps))),
    ("share_bytes_per_second", "What it may have of its link", |share| Some(bytes_per_second(share.share_bps))),
    ("share_users", "Users with entries that send", |share| {
        share.users.filter(|users| users.entries > 0).map(|users| Value::Count(users.active))
    }),
    ("share_user_limit_bytes_per_second", "What each user without an entry may send, for a weight of 1", |share| {
        share.users.and_then(|users| users.limit_bps).map(bytes_per_second)
    }),
    (
        "share_fairness",
        "Jain's index of what passed by weight of those below that ask for more than they get: children, or users with entries",
        |share| share.fairness.or(share.users.and_then(|users| users.fairness)).map(Value::Measure),
    ),
];

/// Of links, and of classes.
pub(super) fn encode(readings: &v1::Readings, writer: &mut Writer<'_>) -> fmt::Result {
    let of_links = readings.links.iter().map(|link| (link.name.as_str(), link.share.as_ref()));
    let of_classes = readings.classes.iter().map(|class| (class.path.as_str(), class.share.as_ref()));
    of_kind("link", of_links, writer)?;
    of_kind("class", of_classes, writer)
}

fn of_kind<'a>(
    kind: &'static str,
    things: impl Iterator<Item = (&'a str, Option<&'a v1::Share>)>,
    writer: &mut Writer<'_>,
) -> fmt::Result {
    let things: Vec<(&str, &v1::Share)> = things.filter_map(|(name, share)| Some((name, share?))).collect();
    for (name, help, value) in TOLD {
        let series: Vec<(&str, Value)> =
            things.iter().filter_map(|(thing, share)| Some((*thing, value(share)?))).collect();
        if series.is_empty() {
            continue;
        }
        let (name, help) = (format!("penstock_{kind}_{name}"), format!("{help}, by {kind}"));
        writer.metric(&name, &help, MetricType::Gauge, |metric| {
            series.iter().try_for_each(|(thing, value)| metric.write(&[(kind, thing)], *value))
        })?;
    }
    Ok(())
}

/// Of the loop.
pub(super) fn tending(tending: &v1::Tending, all: &Histograms, writer: &mut Writer<'_>) -> fmt::Result {
    let help = "Times that shares of what sends nothing any more were looked for";
    writer.counter("penstock_share_tends", help, tending.times)?;
    let help = "Classes, links and users that were looked at the last time";
    writer.gauge("penstock_share_tended_nodes", help, Value::Count(tending.nodes))?;
    let help = "From one time that shares were tended to the next";
    writer.histogram("penstock_share_tend_period_seconds", help, &all.periods.counts, all.periods.sum_ns)?;
    let help = "How long tending shares took";
    writer.histogram("penstock_share_tend_cost_seconds", help, &all.costs.counts, all.costs.sum_ns)
}
