// SPDX-License-Identifier: MIT OR Apache-2.0
//! `users`: who shares what a class gets, and in which form.

use super::class::find;
use crate::diagnostics::{Problem, quote};
use crate::fields;
use crate::model::{DropBy, Fair, LimitsFile, Sketch, Users};
use crate::reader::{Reader, get};
use crate::row_keys::{KEY_COLUMNS, KeyColumn, five_tuple_and_address};
use crate::terms::Terms;
use crate::units;
use crate::yaml::{Key, Node, Value};

const KEYS: [&str; 5] = ["key", "fair", "file", "entries", "drop"];
const EXAMPLE: &str = "such as `{ key: dst, fair: sketch }`";
const ENTRIES_MIN: u32 = 8;
const ENTRIES_MAX: u32 = 1 << 21;
const ENTRIES_DEFAULT: u32 = 1 << 14;
const ROWS_MAX: u32 = penstock_algo::wire::PST_SKETCH_ROWS_MAX;
const TAU_NS_MIN: u64 = 1_000_000;
const TAU_NS_MAX: u64 = 100_000_000;
const COLUMNS_MIN: u32 = 64;
const COLUMNS_MAX: u32 = 1 << penstock_algo::wire::PST_SKETCH_COLUMN_BITS_MAX;

/// Reads `users` of a class.
pub fn users(reader: &mut Reader<'_>, node: &Node, is_shadow: bool) -> Option<Users> {
    let entries = reader.map(node, "`users`", &KEYS, EXAMPLE)?;
    let key = reader.required(entries, "key", node.span, "`users`", "dst");
    let key = key.and_then(|node| key_columns(reader, node));
    let fair = reader.required(entries, "fair", node.span, "`users`", "sketch");
    let fair = fair.and_then(|node| reader.word(node, "`fair`", &[("sketch", true), ("tree", false)]));
    let file = get(entries, "file").and_then(|node| {
        let path = reader.text(node, "`file`", "such as `users.csv`")?.to_owned();
        Some(LimitsFile { path, defaults: Terms { shadow: is_shadow, ..Terms::default() }, span: node.span })
    });
    let slots = get(entries, "entries").and_then(|node| reader.value(node, "`entries`", "such as `16384`", slots));
    let words = [("limiter", DropBy::Limiter), ("chance", DropBy::Chance), ("periodic", DropBy::Periodic)];
    let drop = get(entries, "drop").and_then(|node| reader.word(node, "`drop`", &words));
    let fair = match fair? {
        true => {
            refuse(reader, entries, "entries", "users of a sketch have no entries", "remove it, or use `fair: tree`");
            Fair::Sketch { drop: drop.unwrap_or(DropBy::Limiter) }
        }
        false => {
            let help = "remove it, or use `fair: sketch`";
            refuse(reader, entries, "drop", "users with entries have limiters, whatever they send", help);
            Fair::Tree { entries: slots.unwrap_or(ENTRIES_DEFAULT) }
        }
    };
    Some(Users { key: key?, fair, file })
}

fn refuse(reader: &mut Reader<'_>, entries: &[(Key, Node)], key: &str, message: &str, help: &str) {
    if let Some((key, _)) = find(entries, key) {
        reader.fail(key.span, Problem::new(message, help));
    }
}

/// One column, or a list of them.
fn key_columns(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<KeyColumn>> {
    let nodes = match &node.value {
        Value::List(nodes) => nodes.as_slice(),
        _ => std::slice::from_ref(node),
    };
    if nodes.is_empty() {
        reader.fail(node.span, Problem::new("`key` is an empty list", "such as `key: dst` or `key: [vni, src]`"));
    }
    let mut columns: Vec<KeyColumn> = Vec::new();
    for node in nodes {
        let column = reader.word(node, "`key`", &KEY_COLUMNS)?;
        if columns.contains(&column) {
            let message = format!("the key {} is here twice", quote(column.name()));
            reader.fail(node.span, Problem::new(message, "remove one"));
        }
        columns.push(column);
    }
    if let Some(problem) = five_tuple_and_address(&columns) {
        reader.fail(node.span, problem);
    }
    Some(columns)
}

/// The next power of two.
fn slots(text: &str) -> Result<u32, Problem> {
    match fields::parse_digits(text) {
        Some(entries @ 1..=ENTRIES_MAX) => Ok(entries.next_power_of_two().max(ENTRIES_MIN)),
        _ => {
            let message = format!("{} is not a number of entries", quote(text));
            Err(Problem::new(message, format!("from {ENTRIES_MIN} to {ENTRIES_MAX}")))
        }
    }
}

/// log2 of the nearest power of two, in ns: a shift is a division.
fn tau_shift(text: &str) -> Result<u32, Problem> {
    let tau_ns = units::parse_time(text)?;
    if !(TAU_NS_MIN..=TAU_NS_MAX).contains(&tau_ns) {
        let message = format!("a sketch that looks back by {}", quote(text));
        return Err(Problem::new(message, "from 1ms to 100ms"));
    }
    // Above the square root of two times a power it is the next.
    let below = tau_ns.ilog2();
    Ok(below + u32::from(u128::from(tau_ns).pow(2) >= 1 << (2 * below + 1)))
}

/// Reads `sketch` of a policy.
pub fn sketch(reader: &mut Reader<'_>, node: &Node) -> Sketch {
    let mut sketch = Sketch::default();
    let known = ["rows", "columns", "tau"];
    let entries = reader.map(node, "`sketch`", &known, "such as `{ rows: 3, columns: 2048 }`").unwrap_or_default();
    let rows = get(entries, "rows").and_then(|node| {
        reader.value(node, "`rows`", "such as `3`", |text| match fields::parse_digits(text) {
            Some(rows @ 1..=ROWS_MAX) => Ok(rows),
            _ => Err(Problem::new(format!("{} rows of a sketch", quote(text)), format!("from 1 to {ROWS_MAX}"))),
        })
    });
    let columns = get(entries, "columns").and_then(|node| {
        reader.value(node, "`columns`", "such as `2048`", |text| match fields::parse_digits(text) {
            Some(columns @ COLUMNS_MIN..=COLUMNS_MAX) if columns.is_power_of_two() => Ok(columns),
            _ => {
                let message = format!("{} columns of a sketch", quote(text));
                Err(Problem::new(message, format!("a power of two from {COLUMNS_MIN} to {COLUMNS_MAX}")))
            }
        })
    });
    let tau = get(entries, "tau").and_then(|node| reader.value(node, "`tau`", "such as `4ms`", tau_shift));
    sketch.tau_shift = tau.unwrap_or(sketch.tau_shift);
    sketch.rows = rows.unwrap_or(sketch.rows);
    sketch.column_bits = columns.map_or(sketch.column_bits, u32::ilog2);
    sketch
}
