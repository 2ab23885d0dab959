// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock explain`: why a tenant gets what it gets.

use super::arguments::Explain;
use super::client::{ask, print_json, refused, waiting};
use super::text as words;
use crate::failure::Failure;
use crate::output::out;
use crate::units::{count, duration, held, percent, rate, short_rate};
use penstock_api::v1;
use penstock_policy::units::{RATE_MAX_BPS, format_rate};
use std::fmt::Write;

mod share;

/// Runs the command.
pub fn run(arguments: &Explain) -> Result<(), Failure> {
    let subject = arguments.subject.clone();
    let bar = waiting("measuring");
    let reply = ask(&arguments.client.socket, |mut client| async move {
        client.explain(v1::ExplainRequest { subject }).await.map(tonic::Response::into_inner).map_err(refused)
    });
    bar.finish_and_clear();
    let reply = reply?;
    if arguments.client.json {
        return print_json(&reply);
    }
    out!("{}", render(&arguments.subject, &reply));
    Ok(())
}

// Writing to a string cannot fail.
fn render(subject: &str, reply: &v1::ExplainReply) -> String {
    let mut text = String::new();
    for explanation in &reply.explanations {
        let named = explanation.levels.iter().rev().find(|level| level.kind() != v1::level::Kind::User);
        let last = named.map_or("", |level| level.name.as_str());
        if !text.is_empty() {
            text.push('\n');
        }
        match (explanation.matched_as.as_str(), explanation.certain) {
            ("name", _) => {
                let _ = writeln!(text, "{subject} is {last}");
            }
            (side, true) => {
                let _ = writeln!(text, "packets with {side} {subject}: {last}");
            }
            (side, false) => {
                let _ = writeln!(text, "packets with {side} {subject} may be of {last}");
            }
        }
        for condition in &explanation.conditions {
            let _ = writeln!(text, "  if       {condition}");
        }
        explanation.levels.iter().for_each(|level| level_lines(&mut text, level));
        if explanation.levels.iter().any(|level| level.share.is_some())
            && !explanation.levels.iter().any(|level| level.bound)
        {
            text += "  bound    nowhere: it has what it asks for\n";
        }
        samples(&mut text, explanation);
    }
    for note in &reply.notes {
        let _ = writeln!(text, "{}note: {note}", if text.is_empty() { "" } else { "\n" });
    }
    text
}

fn level_lines(text: &mut String, level: &v1::Level) {
    let (kind, rate_is) = match level.kind() {
        v1::level::Kind::Link => ("link", "rate"),
        v1::level::Kind::Class => ("class", "rate"),
        v1::level::Kind::User => ("user", "rate"),
        _ => ("limit", "limit"),
    };
    let rate_text = level.rate_bps.filter(|&rate_bps| rate_bps < RATE_MAX_BPS);
    let rate_text = rate_text.map(|rate_bps| format!(", {rate_is} {}", format_rate(rate_bps)));
    let bound = if level.bound { "  <- bound here" } else { "" };
    let _ = writeln!(text, "  {kind:8} {}{}{bound}", level.name, rate_text.unwrap_or_default());
    if let Some(share) = &level.share {
        share::lines(text, level, share);
    }
    if !level.terms.is_empty() {
        let _ = writeln!(text, "           {}", level.terms);
    }
    if let Some(lease) = &level.lease {
        let [until, then] = words::lease(lease);
        let _ = writeln!(text, "           {until}\n           {then}");
    }
    if let Some(rates) = &level.rates {
        let _ =
            writeln!(text, "           now: offered {}, passed {}", rate(rates.offered_bps), rate(rates.passed_bps));
    }
    if let Some(queue) = &level.queue {
        let full = percent(queue.queue_ns, queue.window_ns);
        let _ = writeln!(
            text,
            "           queue {} of {} ({full} full)",
            duration(queue.queue_ns),
            duration(queue.window_ns)
        );
    }
    if let Some(counters) = &level.counters {
        let of = |packets: u64| percent(packets, counters.offered_packets);
        let _ = writeln!(
            text,
            "           {} packets, {}B: dropped {}, marked {}{}",
            count(counters.offered_packets),
            short_rate_bytes(counters.offered_bytes),
            of(counters.dropped_packets),
            of(counters.marked_packets),
            held(counters.held_packets, counters.offered_packets)
        );
        if let (v1::level::Kind::Limit, Some(red)) = (level.kind(), counters.red_packets) {
            let (green, yellow) = (of(counters.green_packets), of(counters.yellow_packets));
            let _ = writeln!(text, "           green {green}, yellow {yellow}, red {}", of(red));
        }
    }
}

#[allow(clippy::cast_precision_loss)] // four digits are shown
fn short_rate_bytes(bytes: u64) -> String {
    let text = short_rate(bytes as f64);
    if text.contains(' ') { text } else { format!("{text} ") }
}

fn samples(text: &mut String, explanation: &v1::Explanation) {
    if explanation.samples.is_empty() {
        return;
    }
    let reasons = explanation.sampled_reasons.iter().map(|one| format!("{} {}", one.reason, count(one.packets)));
    let _ = writeln!(text, "  samples  {}", reasons.collect::<Vec<_>>().join(", "));
    for sample in &explanation.samples {
        let _ = writeln!(
            text,
            "           {} ago: {}, {}, {} B",
            duration(sample.age_ns),
            sample.verdict,
            sample.reason,
            sample.length_bytes
        );
        let _ = writeln!(text, "             {}", sample.packet);
    }
}
