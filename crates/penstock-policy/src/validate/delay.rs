// SPDX-License-Identifier: MIT OR Apache-2.0
//! `delay`: `2ms`, or `{ time: 2ms, jitter: 200us, loss: 0.1%, seed: 7 }`.

use crate::diagnostics::{Problem, quote};
use crate::model::Delay;
use crate::reader::{Reader, get};
use crate::units::{self, format_time};
use crate::yaml::{Node, Value};

const KEYS: [&str; 4] = ["time", "jitter", "loss", "seed"];
const EXAMPLE: &str = "such as `2ms` or `{ time: 2ms, jitter: 200us, loss: 0.1%, seed: 7 }`";
/// Longer than any path; what its limit adds may still be more than can be waited for (`delay.h`).
const TIME_MAX_NS: u64 = 4_000_000_000;

/// Reads a `delay`.
pub fn delay(reader: &mut Reader<'_>, node: &Node) -> Option<Delay> {
    let mut delay = Delay::default();
    if let Value::Scalar(_) = node.value {
        delay.time_ns = time(reader, node, "`delay`")?;
        return Some(delay);
    }
    let entries = reader.map(node, "`delay`", &KEYS, EXAMPLE)?;
    let given = |key: &str| get(entries, key);
    if given("time").or_else(|| given("loss")).is_none() {
        let message = "a `delay` without `time` or `loss` does nothing";
        reader.fail(node.span, Problem::new(message, "add `time: 2ms`; `delay: 0ms` is none"));
    }
    let time_ns = given("time").map(|node| time(reader, node, "`time`"));
    delay.time_ns = time_ns.flatten().unwrap_or(0);
    if let Some(node) = given("jitter") {
        let jitter_ns = reader.value(node, "`jitter`", "such as `200us`", units::parse_time);
        delay.jitter_ns = jitter_ns.unwrap_or(0);
        let most_ns = delay.time_ns.min(u64::from(penstock_algo::wire::PST_DELAY_JITTER_MAX_NSEC));
        // Where there is no right time, that has been said.
        if delay.jitter_ns > most_ns && matches!(time_ns, Some(Some(_))) {
            let message = format!("a jitter of {} is too much here", format_time(delay.jitter_ns));
            let help = format!("at most {}: neither more than the delay itself, nor than 1s", format_time(most_ns));
            reader.fail(node.span, Problem::new(message, help));
        } else if time_ns.is_none() && given("loss").is_some() {
            reader.fail(node.span, Problem::new("a `jitter` without a `time`", "add `time: 2ms`"));
        }
    }
    if let Some(node) = given("loss") {
        let loss_q32 = reader.value(node, "`loss`", "such as `0.1%`", units::parse_percent);
        delay.loss_q32 = loss_q32.unwrap_or(0);
    }
    if let Some(node) = given("seed") {
        let seed = reader.value(node, "`seed`", "a number such as `7`", |text| {
            let help = format!("a number from 0 to {}", u64::MAX);
            text.parse().map_err(|_| Problem::new(format!("{} is not a seed", quote(text)), help))
        });
        delay.seed = seed.unwrap_or(0);
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
