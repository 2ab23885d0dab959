// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock status`: what is in force.

use super::arguments::Status;
use super::client::{ask, print_json, refused};
use super::text;
use crate::failure::Failure;
use crate::output::out;
use crate::units::{counted, duration, span};
use penstock_api::v1;
use penstock_policy::units::format_rate;
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// Runs the command.
pub fn run(arguments: &Status) -> Result<(), Failure> {
    let reply = ask(&arguments.client.socket, |mut client| async move {
        client.status(v1::StatusRequest {}).await.map(tonic::Response::into_inner).map_err(refused)
    })?;
    if arguments.client.json {
        return print_json(&reply);
    }
    out!("{}", render(&reply));
    Ok(())
}

/// Nanoseconds of Unix time, now.
pub fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// From one time to another, seconds.
pub fn since(unix_ns: u64, now_unix_ns: u64) -> u64 {
    now_unix_ns.saturating_sub(unix_ns) / 1_000_000_000
}

fn ago(unix_ns: u64) -> String {
    span(since(unix_ns, self::unix_ns()))
}

/// How the daemon keeps up with shares.
fn tended(tending: &v1::Tending) -> String {
    let v1::Tending { period_mean_ns, period_p99_ns, cost_mean_ns, cost_max_ns, nodes, times } = *tending;
    if times < 2 {
        return "tended from now on".to_owned();
    }
    let (ms, us) = (|time_ns: u64| part(time_ns, 1_000_000), |time_ns: u64| part(time_ns, 1_000));
    format!(
        "tended every {} ms (p99 {}), {} us (most {}), {}",
        ms(period_mean_ns),
        ms(period_p99_ns),
        us(cost_mean_ns),
        us(cost_max_ns),
        counted(nodes, "node", "nodes")
    )
}

/// Tenths are enough, and the line is no longer than others.
fn part(time_ns: u64, unit_ns: u64) -> String {
    let tenths = (time_ns.saturating_mul(10) + unit_ns / 2) / unit_ns;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// How the node stands with its controller.
fn controller(status: &v1::ControllerStatus) -> String {
    let v1::ControllerStatus { node, address, number, term, .. } = status;
    let mut text = match status.state() {
        v1::controller_status::State::Attending => format!("  attends  {address} as {node}\n"),
        v1::controller_status::State::Searching if address.is_empty() => format!("  attends  nobody yet, as {node}\n"),
        v1::controller_status::State::Searching => format!("  attends  nobody, as {node}\n"),
    };
    if status.state() == v1::controller_status::State::Searching && !status.trouble.is_empty() {
        text += &text::wrapped("           ", &format!("{address}: {}", status.trouble));
    }
    if (*term, *number) != (0, 0) {
        let until = match status.lapsed {
            true => "the lease is over: safe rates".to_owned(),
            false => format!("for {} from now", duration(status.lease_left_ns)),
        };
        let limits = counted(status.limits, "limit", "limits");
        let _ = writeln!(text, "  lent     {limits}, epoch {term}.{number}, {until}");
    }
    text
}

/// What of an order the node could not do.
fn problems(status: &v1::ControllerStatus) -> String {
    let more = status.problems_total.saturating_sub(status.problems.len() as u64);
    let more = (more > 0).then(|| format!("warning: {more} more limits that are lent have problems\n"));
    text::warnings(&status.problems) + &more.unwrap_or_default()
}

fn render(reply: &v1::StatusReply) -> String {
    // Writing to a string cannot fail.
    let mut text = String::new();
    match &reply.policy {
        None => text += "no policy is in force\n",
        Some(policy) if policy.generation == 0 => {
            let _ = writeln!(text, "{} is not in force", policy.source);
        }
        Some(policy) => {
            let _ = writeln!(
                text,
                "{} is in force: generation {}, for {}\n  policy   {}",
                policy.name,
                policy.generation,
                ago(policy.since_unix_ns),
                policy.source
            );
            for port in &policy.ports {
                let device = if port.device.is_empty() { "no device" } else { &port.device };
                let links = if port.links.is_empty() { "no link".to_owned() } else { port.links.join(", ") };
                let forward = if port.forward.is_empty() { String::new() } else { format!(", on to {}", port.forward) };
                let rate = format_rate(port.rate_bps);
                let _ =
                    writeln!(text, "  port     {} ({device}, {rate}): in by it, judged by {links}{forward}", port.name);
            }
            let _ = writeln!(
                text,
                "  holds    {}, {}, {}",
                counted(policy.links, "link", "links"),
                counted(policy.classes, "class", "classes"),
                counted(policy.limits, "limit", "limits")
            );
            if let Some(tending) = &policy.shares {
                let _ = writeln!(text, "  shares   {}", tended(tending));
            }
            if policy.runtime_changes > 0 {
                let changes = counted(policy.runtime_changes, "limit", "limits");
                let _ = writeln!(text, "  changed  {changes} at run time: `penstock limits list --changed`");
            }
        }
    }
    if let Some(status) = &reply.controller {
        text += &controller(status);
    }
    let _ = writeln!(
        text,
        "  daemon   {}, process {}, for {}, data plane {}",
        reply.version,
        reply.pid,
        ago(reply.started_unix_ns),
        reply.dataplane
    );
    let metrics = if reply.metrics.is_empty() { "off" } else { &reply.metrics };
    let _ = writeln!(text, "  store    {}\n  metrics  {metrics}", reply.state);
    let problems = reply.controller.as_ref().map(problems).unwrap_or_default();
    text + &text::warnings(&reply.warnings) + &problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_says_how_it_stands_with_its_controller() {
        let searching = v1::ControllerStatus { node: "sw1".to_owned(), ..v1::ControllerStatus::default() };
        assert_eq!(controller(&searching), "  attends  nobody yet, as sw1\n");
        let refused = v1::ControllerStatus {
            address: "10.0.0.1:9474".to_owned(),
            trouble: "another machine has limits as sw1, or had until a moment ago; each node needs a name of its own"
                .to_owned(),
            term: 7,
            number: 3,
            lapsed: true,
            limits: 1,
            ..searching.clone()
        };
        let expected = "  attends  nobody, as sw1\n           \
                        10.0.0.1:9474: another machine has limits as sw1, or had until a\n           \
                        moment ago; each node needs a name of its own\n  \
                        lent     1 limit, epoch 7.3, the lease is over: safe rates\n";
        assert_eq!(controller(&refused), expected);
        let attending = v1::ControllerStatus {
            state: v1::controller_status::State::Attending.into(),
            trouble: String::new(),
            lapsed: false,
            lease_left_ns: 4_900_000_000,
            problems: vec!["the policy has no link `up`".to_owned()],
            problems_total: 3,
            ..refused
        };
        let expected = "  attends  10.0.0.1:9474 as sw1\n  lent     1 limit, epoch 7.3, for 4.900 s from now\n";
        assert_eq!(controller(&attending), expected);
        let expected = "warning: the policy has no link `up`\nwarning: 2 more limits that are lent have problems\n";
        assert_eq!((problems(&attending).as_str(), problems(&searching).as_str()), (expected, ""));
    }
}
