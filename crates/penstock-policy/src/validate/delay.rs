// SPDX-License-Identifier: MIT OR Apache-2.0
//! `delay`: `2ms`, or `{ time: 2ms, jitter: 200us, loss: 0.1%, seed: 7 }`.

use super::reader::{Reader, get};
use crate::diagnostics::Problem;
use crate::model::Delay;
use crate::units::{self, format_time};
use crate::yaml::{Node, Value};

const KEYS: [&str; 4] = ["time", "jitter", "loss", "seed"];
const EXAMPLE: &str = "such as `2ms` or `{ time: 2ms, jitter: 200us, loss: 0.1%, seed: 7 }`";
/// With the longest horizon and jitter it stays within what a timing wheel reaches (`wheel.h`).
const TIME_MAX_NS: u64 = 4_000_000_000;

/// Reads a `delay`.
pub fn delay(reader: &mut Reader<'_>, node: &Node) -> Option<Delay> {
    let mut delay = Delay::default();
    if let Value::Scalar(_) = node.value {
        delay.time_ns = time(reader, node, "`delay`")?;
        return Some(delay);
    }
    let entries = reader.map(node, "`delay`", &KEYS, EXAMPLE)?;
    if let Some(node) = get(entries, "time") {
        delay.time_ns = time(reader, node, "`time`")?;
    }
    if let Some(node) = get(entries, "jitter") {
        delay.jitter_ns = reader.value(node, "`jitter`", "such as `200us`", units::parse_time)?;
        let most_ns = delay.time_ns.min(u64::from(penstock_algo::wire::PST_DELAY_JITTER_MAX_NSEC));
        if delay.jitter_ns > most_ns {
            let message = format!("a jitter of {} is too much here", format_time(delay.jitter_ns));
            let help = format!("at most {}: neither more than the delay itself, nor than 1s", format_time(most_ns));
            reader.fail(node.span, Problem::new(message, help));
        }
    }
    if let Some(node) = get(entries, "loss") {
        delay.loss_q32 = reader.value(node, "`loss`", "such as `0.1%`", units::parse_percent)?;
    }
    if let Some(node) = get(entries, "seed") {
        delay.seed = reader.value(node, "`seed`", "a number such as `7`", |text| {
            let help = format!("a number from 0 to {}", u64::MAX);
            text.parse().map_err(|_| Problem::new(format!("{text:?} is not a seed"), help))
        })?;
    }
    Some(delay)
}

fn time(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<u64> {
    let time_ns = reader.value(node, what, EXAMPLE, units::parse_time)?;
    if time_ns > TIME_MAX_NS {
        let message = format!("a delay of {} is too long", format_time(time_ns));
        reader.fail(node.span, Problem::new(message, format!("at most {}", format_time(TIME_MAX_NS))));
    }
    Some(time_ns)
}
