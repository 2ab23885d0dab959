// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock network status`, 80 columns wide.

use super::sheet;
use crate::live::text;
use crate::units::{count, counted, duration, short_rate};
use penstock_api::v1;
use std::fmt::Write;

/// Members of an aggregate that are printed.
const MEMBERS_MAX: usize = 20;

/// All of it.
pub fn render(reply: &v1::StandingReply) -> String {
    // Writing to a string cannot fail.
    let mut text = String::new();
    let leader = match reply.leader.as_str() {
        "" => "nobody leads".to_owned(),
        leader => format!("{leader} leads, at {}", reply.leader_address),
    };
    let network = match reply.revision {
        0 => "no network yet: `penstock network put FILE`".to_owned(),
        revision => format!("revision {revision}"),
    };
    let _ = writeln!(text, "{leader}\n  store    {}\n  network  {network}", reply.store);
    if reply.is_leader {
        let epoch = reply.epoch.unwrap_or_default();
        let _ = writeln!(
            text,
            "  epoch    {} of term {}, {} lent, leases of {}",
            epoch.number,
            epoch.term,
            counted(reply.limits, "limit", "limits"),
            duration(reply.lease_ns)
        );
        let _ = writeln!(
            text,
            "  nodes    {} of {} attend{}",
            count(reply.nodes_attending),
            count(reply.nodes_total),
            if reply.learning_ns > 0 {
                format!("; what others have is unknown for {} at most", duration(reply.learning_ns))
            } else {
                String::new()
            }
        );
        text += &nodes(reply);
        text += &aggregates(reply);
    }
    text + &text::warnings(&reply.warnings)
}

fn nodes(reply: &v1::StandingReply) -> String {
    if reply.nodes.is_empty() {
        return String::new();
    }
    let mut table = sheet(["node", "state", "epoch", "limits", "heard", "version"]);
    for node in &reply.nodes {
        let is_known = node.epoch.is_some();
        table.add_row([
            node.node.clone(),
            node.state().as_str_name().to_ascii_lowercase(),
            node.epoch.map_or_else(|| "-".to_owned(), |epoch| epoch.number.to_string()),
            count(node.limits),
            if is_known { format!("{} ago", duration(node.heard_ago_ns)) } else { "-".to_owned() },
            node.version.clone(),
        ]);
    }
    let shown = reply.nodes.len() as u64;
    let more = reply.nodes_total.saturating_sub(shown);
    let rest = if more > 0 { format!("and {} more\n", count(more)) } else { String::new() };
    format!("{table}\n{rest}")
}

fn aggregates(reply: &v1::StandingReply) -> String {
    if reply.aggregates.is_empty() {
        return String::new();
    }
    let rate = |rate_bps: u64| short_rate(to_f64(rate_bps));
    let mut table = sheet(["aggregate, class", "node", "rate", "at worst", "offered", "passed"]);
    for aggregate in &reply.aggregates {
        let sum =
            |of: fn(&v1::MemberStanding) -> u64| rate(aggregate.members.iter().map(of).fold(0, u64::saturating_add));
        table.add_row([
            aggregate.name.clone(),
            String::new(),
            rate(aggregate.rate_bps),
            rate(aggregate.held_bps),
            sum(|member| member.offered_bps),
            sum(|member| member.passed_bps),
        ]);
        for member in aggregate.members.iter().take(MEMBERS_MAX) {
            table.add_row([
                format!("  {}", member.class),
                member.node.clone(),
                rate(member.rate_bps),
                rate(member.held_bps),
                rate(member.offered_bps),
                rate(member.passed_bps),
            ]);
        }
    }
    format!("{table}\n")
}

#[allow(clippy::cast_precision_loss)] // four digits are shown
fn to_f64(rate_bps: u64) -> f64 {
    rate_bps as f64
}
