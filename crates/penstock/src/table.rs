// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report as tables for people, 80 columns wide.

use crate::units::{bits_per_second, count, counted, duration, percent, rate, short_rate};
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use penstock_dataplane::report::{ClassReport, LimitReport, Report, UsersReport};

const WIDTH: u16 = 80;
const TREE_HEADER: [&str; 10] =
    ["class", "offered", "passed", "demand", "share", "fair", "packets", "marked", "held", "dropped"];
const HEADER: [&str; 8] = ["", "offered", "passed", "limit", "packets", "marked", "held", "dropped"];
/// Its place; it is shown where packets were held.
const HELD: usize = 6;

/// The whole report. `top` limits at most are listed, those that dropped most first.
pub fn render(report: &Report, top: usize) -> String {
    let mut text = format!(
        "{}: {}, {} over {}; rates in bit/s\n",
        report.policy,
        counted(report.packets, "packet", "packets"),
        rate(bits_per_second(report.bytes, report.duration_ns)),
        duration(report.duration_ns)
    );
    for reload in &report.reloads {
        let limits = if reload.limits_kept == 1 { "limit" } else { "limits" };
        let (at, kept) = (duration(reload.time_ns), count(reload.limits_kept));
        text += &format!("  {} from {at} on: {kept} {limits} went on\n", reload.policy);
    }
    text += &classes(report);
    text += &limits(report, top);
    text += &remarks(report);
    text
}

struct Row<'a> {
    name: &'a str,
    offered_bytes: u64,
    passed_bytes: u64,
    limit_bps: u64,
    offered_packets: u64,
    marked_packets: u64,
    held_packets: u64,
    dropped_packets: u64,
}

impl<'a> From<&'a ClassReport> for Row<'a> {
    fn from(class: &'a ClassReport) -> Self {
        Self {
            name: &class.path,
            offered_bytes: class.offered_bytes,
            passed_bytes: class.passed_bytes,
            limit_bps: class.limit_bps,
            offered_packets: class.offered_packets,
            marked_packets: class.marked_packets,
            held_packets: class.held_packets,
            dropped_packets: class.dropped_packets,
        }
    }
}

impl<'a> From<&'a LimitReport> for Row<'a> {
    fn from(limit: &'a LimitReport) -> Self {
        Self {
            name: &limit.name,
            offered_bytes: limit.offered_bytes,
            passed_bytes: limit.passed_bytes,
            limit_bps: limit.rate_bps,
            offered_packets: limit.offered_packets,
            marked_packets: limit.marked_packets,
            held_packets: limit.held_packets,
            dropped_packets: limit.dropped_packets,
        }
    }
}

/// Links that share as trees, and classes of the others.
fn classes(report: &Report) -> String {
    let link_of = |class: &ClassReport| {
        report.links.iter().find(|link| class.path.split('/').next().is_some_and(|name| name == link.name))
    };
    let (in_trees, others): (Vec<&ClassReport>, Vec<&ClassReport>) =
        report.classes.iter().partition(|class| link_of(class).is_some_and(|link| link.shares));
    let mut text = String::new();
    if !in_trees.is_empty() {
        text += &tree(report, &in_trees);
    }
    if in_trees.is_empty() || !others.is_empty() {
        text += &table("class", others.into_iter().map(Row::from), report.duration_ns);
    }
    text
}

/// Links with their classes below them; shares are those at the end.
fn tree(report: &Report, classes: &[&ClassReport]) -> String {
    let mut rows: Vec<[String; 10]> = Vec::new();
    let bps = |bytes: u64| short_rate(bits_per_second(bytes, report.duration_ns));
    let fair = |index: Option<f64>| index.map_or_else(|| "-".to_owned(), |index| format!("{index:.3}"));
    for link in report.links.iter().filter(|link| link.shares) {
        let dropped = link.offered_packets - link.passed_packets.min(link.offered_packets);
        let (offered, passed) = (bps(link.offered_bytes), bps(link.passed_bytes));
        let (demand, share) = (short_rate(to_f64(link.demand_bps)), short_rate(to_f64(link.rate_bps)));
        let (packets, dropped) = (count(link.offered_packets), percent(dropped, link.offered_packets));
        let name = link.name.clone();
        rows.push([name, offered, passed, demand, share, fair(link.fairness), packets, dash(), dash(), dropped]);
        for class in classes.iter().filter(|class| class.path.split('/').next() == Some(&link.name)) {
            let depth = class.path.matches('/').count();
            let name = class.path.rsplit('/').next().unwrap_or(&class.path);
            let of = |packets: u64| percent(packets, class.offered_packets);
            rows.push([
                format!("{:indent$}{name}", "", indent = 2 * depth),
                bps(class.offered_bytes),
                bps(class.passed_bytes),
                short_rate(to_f64(class.demand_bps)),
                short_rate(to_f64(class.share_bps)),
                fair(class.fairness),
                count(class.offered_packets),
                of(class.marked_packets),
                of(class.held_packets),
                of(class.dropped_packets),
            ]);
            rows.extend(class.users.map(|users| users_row(&users, depth + 1)));
        }
    }
    lines(&rows, classes)
}

/// Those who share what a class gets.
fn users_row(users: &UsersReport, depth: usize) -> [String; 10] {
    let name = match users.entries {
        0 => "each user".to_owned(),
        entries => format!("{} of {entries} users", users.active),
    };
    let mut row = [(); 10].map(|()| dash());
    row[0] = format!("{:indent$}{name}", "", indent = 2 * depth);
    row[4] = users.limit_bps.map_or_else(dash, |limit_bps| short_rate(to_f64(limit_bps)));
    row
}

fn dash() -> String {
    "-".to_owned()
}

/// Columns as wide as it takes, without those that have nothing to say, and without some where 80 columns do not hold them.
fn lines(rows: &[[String; 10]], classes: &[&ClassReport]) -> String {
    let mut hidden: Vec<&str> = Vec::new();
    if classes.iter().all(|class| class.marked_packets == 0) {
        hidden.push("marked");
    }
    if classes.iter().all(|class| class.held_packets == 0) {
        hidden.push("held");
    }
    let header = TREE_HEADER.map(str::to_owned);
    let rows: Vec<&[String; 10]> = std::iter::once(&header).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    for name in ["packets", "held", "marked"] {
        let shown = (0..TREE_HEADER.len()).filter(|&column| !hidden.contains(&TREE_HEADER[column]));
        if shown.map(|column| width(column) + 2).sum::<usize>() > usize::from(WIDTH) {
            hidden.push(name);
        }
    }
    let shown: Vec<usize> = (0..TREE_HEADER.len()).filter(|&column| !hidden.contains(&TREE_HEADER[column])).collect();
    let mut text = "\n".to_owned();
    for row in &rows {
        for &column in &shown {
            let width = width(column);
            text += &match column {
                0 => format!(" {:width$}", row[column]),
                _ => format!("  {:>width$}", row[column]),
            };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// Rows of limits files; a class's own limit stands in the class's line already.
fn limits(report: &Report, top: usize) -> String {
    let own =
        |limit: &&LimitReport| !report.classes.iter().any(|class| class.path == limit.class && class.limit_bps > 0);
    let mut rows: Vec<&LimitReport> = report.limits.iter().filter(own).collect();
    let total = rows.len() as u64 + report.limits_not_listed;
    if rows.is_empty() || top == 0 {
        return String::new();
    }
    let busiest = |limit: &&LimitReport| std::cmp::Reverse((limit.dropped_packets, limit.offered_bytes));
    if rows.len() > top {
        rows.select_nth_unstable_by_key(top - 1, busiest);
        rows.truncate(top);
    }
    rows.sort_by_key(busiest);
    let shown = rows.len();
    let mut text = table("limit", rows.into_iter().map(Row::from), report.duration_ns);
    if (shown as u64) < total {
        text += &format!("  {shown} of {} limits, those that dropped most; --top COUNT shows more\n", count(total));
    }
    text
}

fn table<'a>(title: &str, rows: impl Iterator<Item = Row<'a>>, duration_ns: u64) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    let mut header = HEADER;
    header[0] = title;
    table.set_header(header.map(Cell::new));
    let mut has_held = false;
    for row in rows {
        has_held |= row.held_packets > 0;
        let limit = if row.limit_bps == 0 { "-".to_owned() } else { short_rate(to_f64(row.limit_bps)) };
        table.add_row([
            row.name.to_owned(),
            short_rate(bits_per_second(row.offered_bytes, duration_ns)),
            short_rate(bits_per_second(row.passed_bytes, duration_ns)),
            limit,
            count(row.offered_packets),
            percent(row.marked_packets, row.offered_packets),
            percent(row.held_packets, row.offered_packets),
            percent(row.dropped_packets, row.offered_packets),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    if let Some(column) = table.column_mut(HELD).filter(|_| !has_held) {
        column.set_constraint(ColumnConstraint::Hidden);
    }
    format!("\n{}\n", table.trim_fmt())
}

#[allow(clippy::cast_precision_loss)] // four digits are shown
fn to_f64(number: u64) -> f64 {
    number as f64
}

fn remarks(report: &Report) -> String {
    let mut text = String::new();
    let mut say = |number: u64, one: &str, many: &str| {
        if number > 0 {
            text += &format!("  {}\n", counted(number, one, many));
        }
    };
    say(report.unmatched_packets, "packet matched no class", "packets matched no class");
    say(report.malformed_packets, "packet was malformed", "packets were malformed");
    say(
        report.cut_packets,
        "packet was cut by the capture before its headers end",
        "packets were cut by the capture before their headers end",
    );
    say(
        report.clamped_timestamps,
        "time stamp went backwards and was clamped to the latest before it",
        "time stamps went backwards and were clamped to the latest before them",
    );
    let reasons: Vec<String> = report
        .reasons
        .iter()
        .filter(|(_, packets)| **packets > 0)
        .map(|(reason, packets)| format!("{reason} {}", count(*packets)))
        .collect();
    if !reasons.is_empty() {
        text += &format!("  reasons: {}\n", reasons.join(", "));
    }
    if !text.is_empty() {
        text.insert(0, '\n');
    }
    text
}
