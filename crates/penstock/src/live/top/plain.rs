// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readings without a terminal: one table, or JSON lines.

use super::column::{COLUMNS, Column};
use super::draw::{policy_line, reason_text, totals_line};
use super::feed::watch;
use super::state::{News, View};
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

/// Names are never cut: they may be what somebody looks for.
fn render(view: &View, now_unix_ns: u64) -> String {
    let columns = || COLUMNS.into_iter().filter(|&column| column != Column::Trend);
    let title = |column| if column == Column::Name { "class" } else { Column::title(column) };
    let rows = view.classes.shown();
    let names = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).max(title(Column::Name).len());
    let mut text = format!("{}\n{}\n\nrates in bit/s\n", policy_line(view, now_unix_ns), totals_line(view));
    let mut line = |cell: &dyn Fn(Column) -> String| {
        let cells: String = columns().skip(1).map(|column| format!(" {:>8}", cell(column))).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:names$}{cells}", cell(Column::Name));
    };
    line(&|column| title(column).to_owned());
    for row in rows {
        line(&|column| column.text(row));
    }
    text.push('\n');
    for reason in &view.reasons {
        let _ = writeln!(text, "{}", reason_text(reason));
    }
    text.trim_end().to_owned() + "\n"
}
