// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readings without a terminal: one table, or JSON lines.

use super::column::Column;
use super::draw::{policy_line, reason_text, totals_line};
use super::feed::watch;
use super::state::{News, View};
use super::table::{Kind, Row, Table};
use crate::failure::Failure;
use crate::live::client::{empty, refused, waiting};
use crate::live::limits::written;
use crate::live::status::unix_ns;
use anyhow::Context;
use penstock_api::{NodeClient, v1};
use std::fmt::Write as _;
use std::io::Write as _;

/// Prints one table of the rates over one interval.
#[allow(clippy::print_stdout)] // the command line's own output
pub async fn once(mut client: NodeClient, interval_ns: u64) -> Result<(), Failure> {
    let status = client.status(v1::StatusRequest {}).await.map_err(refused)?.into_inner();
    let bar = waiting("measuring");
    let readings = first_with_rates(&mut client, interval_ns).await;
    bar.finish_and_clear();
    let mut view = View::new(interval_ns);
    view.take(News::Status(Box::new(status)));
    view.take(News::Readings(Box::new(readings?)));
    written(std::io::stdout().lock().write_all(render(&view, unix_ns()).as_bytes())).map(|_| ())
}

/// Prints readings as they come, a line each; the first one has no rates. Only one, with rates, if `once`.
pub async fn json_lines(mut client: NodeClient, interval_ns: u64, once: bool) -> Result<(), Failure> {
    let line = |readings: &v1::Readings| -> Result<bool, Failure> {
        let text = serde_json::to_string(readings).context("the readings as JSON")?;
        let mut out = std::io::stdout().lock();
        written(writeln!(out, "{text}").and_then(|()| out.flush()))
    };
    if once {
        return line(&first_with_rates(&mut client, interval_ns).await?).map(|_| ());
    }
    let mut readings = watch(&mut client, interval_ns, Vec::new()).await.map_err(refused)?;
    while let Some(message) = readings.message().await.map_err(refused)? {
        if !line(&message)? {
            return Ok(());
        }
    }
    Err(anyhow::anyhow!("the daemon ended").into())
}

async fn first_with_rates(client: &mut NodeClient, interval_ns: u64) -> Result<v1::Readings, Failure> {
    let mut readings = watch(client, interval_ns, Vec::new()).await.map_err(refused)?;
    while let Some(message) = readings.message().await.map_err(refused)? {
        if message.interval_ns > 0 {
            return Ok(message);
        }
    }
    Err(empty())
}

/// The columns of a table, without what is drawn.
const PLAIN: [Column; 6] =
    [Column::Name, Column::Limit, Column::Offered, Column::Passed, Column::Dropped, Column::Marked];
/// Those of a tree of shares.
const PLAIN_TREE: [Column; 7] =
    [Column::Name, Column::Offered, Column::Demand, Column::Share, Column::Passed, Column::Dropped, Column::Fair];

fn render(view: &View, now_unix_ns: u64) -> String {
    let mut text = format!("{}\n{}\n\nrates in bit/s\n", policy_line(view, now_unix_ns), totals_line(view));
    let (tree, rest) = parts(&view.classes);
    if !tree.is_empty() {
        let names = |(depth, row): &(usize, &Row)| format!("{:indent$}{}", "", row.label(), indent = 2 * depth);
        text += &table(&PLAIN_TREE, tree.iter().map(|at| (names(at), at.1)).collect());
    }
    if tree.is_empty() || !rest.is_empty() {
        text += if tree.is_empty() { "" } else { "\n" };
        text += &table(&PLAIN, rest.iter().map(|row| (row.name.clone(), *row)).collect());
    }
    text.push('\n');
    for reason in &view.reasons {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", reason_text(reason));
    }
    text.trim_end().to_owned() + "\n"
}

/// Links that share, with all that is below them; and classes of the others, the busiest first.
fn parts(classes: &Table) -> (Vec<(usize, &Row)>, Vec<&Row>) {
    if !classes.is_tree() {
        return (Vec::new(), classes.shown());
    }
    let (mut tree, mut rest, mut shares) = (Vec::new(), Vec::new(), false);
    for (depth, row) in classes.shown_deep() {
        shares = if row.kind == Kind::Link { row.share.is_some() } else { shares };
        match (shares, row.kind) {
            (true, _) => tree.push((depth, row)),
            (false, Kind::Class) => rest.push(row),
            _ => {}
        }
    }
    rest.sort_by(|one, other| Column::Offered.compare(other, one));
    (tree, rest)
}

/// Names are never cut: they may be what somebody looks for.
fn table(columns: &[Column], rows: Vec<(String, &Row)>) -> String {
    let title = |column| if column == Column::Name { "class" } else { Column::title(column) };
    let names = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(title(Column::Name).len());
    let mut text = String::new();
    let mut line = |name: &str, cell: &dyn Fn(Column) -> String| {
        let cells: String = columns.iter().skip(1).map(|&column| format!(" {:>8}", cell(column))).collect();
        let _ = writeln!(text, "{name:names$}{cells}");
    };
    line(title(Column::Name), &|column| title(column).to_owned());
    for (name, row) in rows {
        line(&name, &|column| column.text(row));
    }
    text
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;
