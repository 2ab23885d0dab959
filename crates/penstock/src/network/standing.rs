// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock network status`, 80 columns wide.

use super::columns;
use crate::live::text;
use crate::units::{count, duration, short_rate};
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
        leader => {
            let (leads, at) = (format!("{leader} leads,"), format!("at {}", reply.leader_address));
            let is_long = leads.chars().count() + 1 + at.chars().count() > columns::WIDTH;
            format!("{leads}{}{at}", if is_long { "\n  " } else { " " })
        }
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
            "  epoch    {} of term {}, leases of {}",
            epoch.number,
            epoch.term,
            duration(reply.lease_ns)
        );
        let (limits, without) = (count(reply.limits), count(reply.limits_without_rate));
        let _ = writeln!(text, "  limits   {limits} lent with a rate, {without} without, as they need none");
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
    let row = |node: &v1::NodeStanding| {
        let is_known = node.epoch.is_some();
        [
            node.node.clone(),
            node.state().as_str_name().to_ascii_lowercase(),
            node.epoch.map_or_else(|| "-".to_owned(), |epoch| epoch.number.to_string()),
            count(node.limits),
            count(node.limits_without_rate),
            if is_known { format!("{} ago", duration(node.heard_ago_ns)) } else { "-".to_owned() },
            node.version.clone(),
        ]
    };
    let header = ["node", "state", "epoch", "with rate", "without", "heard", "version"];
    let table = columns::render(2, header, reply.nodes.iter().map(row).collect());
    let shown = reply.nodes.len() as u64;
    let more = reply.nodes_total.saturating_sub(shown);
    let rest = if more > 0 { format!("and {} more\n", count(more)) } else { String::new() };
    format!("\n{table}{rest}")
}

fn aggregates(reply: &v1::StandingReply) -> String {
    if reply.aggregates.is_empty() {
        return String::new();
    }
    let rate = |rate_bps: u64| short_rate(to_f64(rate_bps));
    let mut rows = Vec::new();
    for aggregate in &reply.aggregates {
        let sum =
            |of: fn(&v1::MemberStanding) -> u64| rate(aggregate.members.iter().map(of).fold(0, u64::saturating_add));
        rows.push([
            aggregate.name.clone(),
            String::new(),
            rate(aggregate.rate_bps),
            rate(aggregate.held_bps),
            sum(|member| member.offered_bps),
            sum(|member| member.passed_bps),
        ]);
        for member in aggregate.members.iter().take(MEMBERS_MAX) {
            rows.push([
                format!("  {}", member.class),
                member.node.clone(),
                rate(member.rate_bps),
                rate(member.held_bps),
                rate(member.offered_bps),
                rate(member.passed_bps),
            ]);
        }
    }
    let header = ["aggregate, class", "node", "rate", "at worst", "offered", "passed"];
    format!("\n{}", columns::render(2, header, rows))
}

#[allow(clippy::cast_precision_loss)] // four digits are shown
fn to_f64(rate_bps: u64) -> f64 {
    rate_bps as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, number: u64) -> v1::NodeStanding {
        v1::NodeStanding {
            node: name.to_owned(),
            state: v1::node_standing::State::Current.into(),
            epoch: Some(v1::Epoch { term: 41, number }),
            version: "0.1.0".to_owned(),
            limits: 12,
            heard_ago_ns: 1_234_000_000,
            limits_without_rate: 123,
            ..v1::NodeStanding::default()
        }
    }

    fn member(class: &str, node: &str) -> v1::MemberStanding {
        let (class, node) = (class.to_owned(), node.to_owned());
        let port = "up".to_owned();
        v1::MemberStanding {
            class,
            port,
            node,
            rate_bps: 100_000_000,
            held_bps: 100_000_000,
            offered_bps: 123_400_000,
            passed_bps: 99_900_000,
        }
    }

    fn of(nodes: [&str; 2], classes: [&str; 2]) -> v1::StandingReply {
        let members = classes.iter().zip(nodes).map(|(class, node)| member(class, node)).collect();
        let aggregate = v1::AggregateStanding {
            name: "t7".to_owned(),
            rate_bps: 300_000_000,
            held_bps: 300_000_000,
            demand_bps: 0,
            members,
        };
        v1::StandingReply {
            leader: nodes[1].to_owned(),
            leader_address: "controller.example.net:9474".to_owned(),
            store: "embedded /var/lib/penstock".to_owned(),
            revision: 7,
            is_leader: true,
            epoch: Some(v1::Epoch { term: 41, number: 123_456 }),
            lease_ns: 5_000_000_000,
            limits: 24,
            limits_without_rate: 246,
            nodes_total: 2,
            nodes_attending: 2,
            nodes: vec![node(nodes[0], 7), node(nodes[1], 123_456)],
            aggregates: vec![aggregate],
            ..v1::StandingReply::default()
        }
    }

    #[test]
    fn a_person_reads_who_attends_and_what_is_lent() {
        let text = render(&of(["gw1", "gateway2"], ["t7-gw1", "t7-gateway2"]));
        let expected = "gateway2 leads, at controller.example.net:9474
  store    embedded /var/lib/penstock
  network  revision 7
  epoch    123456 of term 41, leases of 5.000 s
  limits   24 lent with a rate, 246 without, as they need none
  nodes    2 of 2 attend

 node      state     epoch  with rate  without        heard  version
 gw1       current       7         12      123  1.234 s ago    0.1.0
 gateway2  current  123456         12      123  1.234 s ago    0.1.0

 aggregate, class  node         rate  at worst  offered   passed
 t7                          300.0 M   300.0 M  246.8 M  199.8 M
   t7-gw1          gw1       100.0 M   100.0 M  123.4 M  99.90 M
   t7-gateway2     gateway2  100.0 M   100.0 M  123.4 M  99.90 M
";
        assert_eq!(text, expected);
    }

    #[test]
    fn long_names_are_whole_within_80_columns() {
        let long = "edge-gateway-frankfurt-rack-17-position4";
        assert_eq!(long.len(), 40);
        let text = render(&of(["gw1", long], ["t7-gw1", &format!("t7-{}", &long[..37])]));
        let expected = "edge-gateway-frankfurt-rack-17-position4 leads, at controller.example.net:9474
  store    embedded /var/lib/penstock
  network  revision 7
  epoch    123456 of term 41, leases of 5.000 s
  limits   24 lent with a rate, 246 without, as they need none
  nodes    2 of 2 attend

 node  state     epoch  with rate  without        heard  version
 gw1   current       7         12      123  1.234 s ago    0.1.0
 edge-gateway-frankfurt-rack-17-position4
       current  123456         12      123  1.234 s ago    0.1.0

 aggregate, class  node     rate  at worst  offered   passed
 t7                      300.0 M   300.0 M  246.8 M  199.8 M
   t7-gw1          gw1   100.0 M   100.0 M  123.4 M  99.90 M
   t7-edge-gateway-frankfurt-rack-17-positi
                   edge-gateway-frankfurt-rack-17-position4
                         100.0 M   100.0 M  123.4 M  99.90 M
";
        assert_eq!(text, expected);
        let text = render(&of([&long.repeat(3), &long.repeat(3)], [&long.repeat(3), &long.repeat(3)]));
        assert!(text.lines().skip(1).all(|line| line.chars().count() <= 80), "{text}");
    }
}
