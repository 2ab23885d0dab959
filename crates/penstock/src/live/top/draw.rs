// SPDX-License-Identifier: MIT OR Apache-2.0
//! A frame of a view. 80 columns and 24 lines are enough.

use super::column::{Column, percent};
use super::history::samples_max;
use super::state::{Opened, View};
use super::table::{Kind, Row, Table};
use super::theme::Theme;
use crate::live::status::since;
use crate::units::{self, count, counted, rate, short_rate};
use penstock_api::v1;
use penstock_policy::units::{format_rate, format_time};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

/// Smallest terminal: columns, lines.
const SIZE_MIN: (u16, u16) = (72, 12);
/// A column of numbers, with the space before it.
const NUMBER_WIDTH: usize = 9;
/// Lines of reasons.
const REASON_LINES: u16 = 2;

const HELP: &str = "\
up down, j k, PgUp PgDn, Home End   choose a row
left right, < >                     choose the column to sort by
r, t                                reverse the order; a tree, or classes
/                                   filter: a part of a name, or a pattern (*)
Enter, l                            the limits of the class
Esc, Backspace                      no filter; back to the classes
? q                                 this page; quit

offered   bit/s that came
passed    bit/s that went on
demand    what it asks for; share: what it may have of its link
fair      Jain's index of what those below got by weight who want more; 1: fair
dropped   packets dropped of those that came; ~ in shadow mode: they passed
marked    packets marked of those that came
bars      passed rate over time; full: the limit, or the highest of the row
All but the bars are of the last interval. Of a class with many limits the
first 500 are shown, in the policy's order: a filter finds the others.";

/// Draws a view at a time of the clock.
pub fn draw(frame: &mut Frame, view: &View, theme: Theme, now_unix_ns: u64) {
    let area = frame.area();
    if area.width < SIZE_MIN.0 || area.height < SIZE_MIN.1 {
        let text = format!("The terminal is too small: {}x{} at least.", SIZE_MIN.0, SIZE_MIN.1);
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        return;
    }
    let information = information(view, area.width, theme);
    let lines = [1, 1, height(&information, area.width), 0, 1, REASON_LINES, 1];
    let [policy, totals, info, body, chosen, reasons, keys] =
        area.layout(&Layout::vertical(lines.map(|lines| match lines {
            0 => Constraint::Min(2),
            lines => Constraint::Length(lines),
        })));
    let every = format!("every {}", format_time(view.interval_ns));
    frame.render_widget(
        Paragraph::new(ends(&policy_line(view, now_unix_ns), &every, area.width)).style(theme.strong()),
        policy,
    );
    frame.render_widget(Paragraph::new(totals_line(view)), totals);
    frame.render_widget(Paragraph::new(information).wrap(Wrap { trim: true }), info);
    if view.is_helping {
        frame.render_widget(Paragraph::new(HELP), body);
    } else {
        frame.render_widget(Paragraph::new(table(view, body, theme)), body);
    }
    frame.render_widget(Paragraph::new(chosen_line(view.table())), chosen);
    frame.render_widget(Paragraph::new(reasons_line(view)).wrap(Wrap { trim: true }), reasons);
    frame.render_widget(Paragraph::new(keys_line(view)).style(theme.title()), keys);
}

/// What is in force, since when, by what.
pub fn policy_line(view: &View, now_unix_ns: u64) -> String {
    let status = &view.status;
    let policy = match &status.policy {
        None => "no policy".to_owned(),
        Some(policy) if policy.generation == 0 => format!("{}: not in force", policy.name),
        Some(policy) => {
            let time = units::span(since(policy.since_unix_ns, now_unix_ns));
            format!("{}: generation {}, for {time}", policy.name, policy.generation)
        }
    };
    format!("{policy}, data plane {}", status.dataplane)
}

/// Rates of all links.
pub fn totals_line(view: &View) -> String {
    let Some(totals) = view.totals else { return "measuring".to_owned() };
    // Counters are read while packets are counted: passed may be ahead.
    let dropped_bps = (totals.offered_bps - totals.passed_bps).max(0.0);
    let share = if totals.offered_bps > 0.0 {
        format!(" ({})", percent(dropped_bps / totals.offered_bps))
    } else {
        String::new()
    };
    let (offered, passed) = (rate(totals.offered_bps), rate(totals.passed_bps));
    format!("offered {offered}, passed {passed}, dropped {}{share}", rate(dropped_bps))
}

/// A reason, its packets a second and in all.
pub fn reason_text(reason: &v1::ReasonReading) -> String {
    format!("{} {}/s ({} in all)", reason.reason, short_rate(reason.packets_per_second), count(reason.packets))
}

/// What is wrong, what is being typed, or what is shown.
fn information(view: &View, width: u16, theme: Theme) -> Line<'static> {
    let table = view.table();
    if let Some(why) = &view.trouble {
        return Line::styled(format!("No readings: {why}. Trying again; what is below is old."), theme.notable());
    }
    if view.is_typing {
        return Line::styled(format!("filter: {}_", table.filter), theme.strong());
    }
    let filter = if table.filter.is_empty() { String::new() } else { format!(" with `{}`", table.filter) };
    let what = match &view.opened {
        None => {
            let shown = table.shown().iter().filter(|row| row.kind == Kind::Class).count();
            format!("{}{filter}", of(shown, table.len() as u64, "class", "classes"))
        }
        Some(Opened { class, total: None, .. }) => format!("{class}: asking for its limits"),
        Some(Opened { class, total: Some(total), .. }) => {
            format!("{class}: {}{filter}", of(table.shown().len(), *total, "limit", "limits"))
        }
    };
    let warnings = match view.status.warnings.len() {
        0 => String::new(),
        number => format!("{}: `penstock status`; ", counted(number as u64, "warning", "warnings")),
    };
    Line::from(ends(&what, &format!("{warnings}rates in bit/s"), width))
}

/// "3 classes", "3 of 12 classes".
fn of(shown: usize, total: u64, one: &str, many: &str) -> String {
    let shown = shown as u64;
    if shown >= total { counted(shown, one, many) } else { format!("{shown} of {}", counted(total, one, many)) }
}

fn height(line: &Line, width: u16) -> u16 {
    // A line more than it takes without words: words do not break.
    let lines = line.width().div_ceil(usize::from(width).max(1));
    u16::try_from(if lines > 1 { lines + 1 } else { 1 }).unwrap_or(1).min(4)
}

/// Text at both ends of a line; the right one gives way.
fn ends(left: &str, right: &str, width: u16) -> String {
    let room = usize::from(width).saturating_sub(left.chars().count());
    if room > right.chars().count() { format!("{left}{right:>room$}") } else { left.to_owned() }
}

/// Widths of the name and of the bars.
fn widths(width: u16) -> (usize, usize) {
    let rest = usize::from(width).saturating_sub(5 * NUMBER_WIDTH + 1);
    let bars = (rest / 3).clamp(10, 60);
    (rest.saturating_sub(bars), bars)
}

/// The page that the chosen row is on.
fn table<'a>(view: &'a View, area: Rect, theme: Theme) -> Vec<Line<'a>> {
    let table = view.table();
    let shown = table.shown_deep();
    let chosen = table.chosen_index(&shown);
    let page = usize::from(area.height.saturating_sub(1)).max(1);
    let first = chosen / page * page;
    let mut lines = vec![titles(view, area.width, theme)];
    for (index, (depth, row)) in shown.iter().enumerate().skip(first).take(page) {
        let line = row_line(table, (*depth, row), area.width, samples_max(view.interval_ns), theme);
        lines.push(if index == chosen { line.patch_style(theme.chosen()) } else { line });
    }
    if shown.is_empty() && view.trouble.is_none() {
        let is_waiting = view.opened.as_ref().map_or(view.totals.is_none(), |opened| opened.total.is_none());
        lines.push(Line::from(match (is_waiting, table.filter.is_empty()) {
            (true, _) => "measuring",
            (false, true) => "none",
            (false, false) => "nothing fits",
        }));
    }
    lines
}

fn titles(view: &View, width: u16, theme: Theme) -> Line<'static> {
    let table = view.table();
    let (name, bars) = widths(width);
    let span_s = (samples_max(view.interval_ns) as u64).saturating_mul(view.interval_ns) / 1_000_000_000;
    let mut spans = Vec::new();
    for &column in table.columns() {
        let title = match column {
            Column::Name if view.opened.is_some() => "limit of".to_owned(),
            Column::Name => "class".to_owned(),
            Column::Trend => format!("last {}", units::span(span_s)),
            _ => column.title().to_owned(),
        };
        let is_sorting = column == table.sort;
        let arrow = match (is_sorting, column.is_ascending() != table.is_reversed) {
            (false, _) => "",
            (true, true) => "▲",
            (true, false) => "▼",
        };
        let (title, style) = (format!("{title}{arrow}"), if is_sorting { theme.sorting() } else { theme.title() });
        let pad = |width: usize| " ".repeat(width.saturating_sub(title.chars().count()));
        match column {
            Column::Name => spans.extend([Span::styled(title.clone(), style), Span::raw(pad(name))]),
            Column::Trend => spans.extend([Span::raw(" "), Span::styled(cut(&title, bars), style)]),
            _ => spans.extend([Span::raw(pad(NUMBER_WIDTH)), Span::styled(title.clone(), style)]),
        }
    }
    Line::from(spans)
}

#[allow(clippy::cast_precision_loss)] // an eighth of a line is shown
fn row_line(table: &Table, (depth, row): (usize, &Row), width: u16, samples_max: usize, theme: Theme) -> Line<'static> {
    let (name, bars) = widths(width);
    let full_bps = row.limit_bps.map_or_else(|| row.history.highest_bps(), |rate_bps| rate_bps as f64);
    let mut spans = Vec::new();
    for &column in table.columns() {
        let text = column.text(row);
        spans.push(match column {
            Column::Name if table.is_tree() => {
                let indent = (2 * depth).min(name / 2);
                Span::raw(format!("{:indent$}{:rest$}", "", cut(&row.label(), name - indent), rest = name - indent))
            }
            Column::Name => Span::raw(format!("{:name$}", cut(&text, name))),
            Column::Trend => {
                Span::styled(format!(" {:>bars$}", row.history.bars(bars, samples_max, full_bps)), theme.trend())
            }
            Column::Dropped if row.dropped_share().is_some_and(|share| share > 0.0) => {
                Span::styled(format!("{text:>NUMBER_WIDTH$}"), theme.notable())
            }
            _ => Span::raw(format!("{text:>NUMBER_WIDTH$}")),
        });
    }
    Line::from(spans)
}

/// The end of a long name tells more than its beginning.
fn cut(text: &str, width: usize) -> String {
    let surplus = text.chars().count().saturating_sub(width);
    if surplus == 0 {
        return text.to_owned();
    }
    let end: String = text.chars().skip(surplus + 1).collect();
    format!("…{end}")
}

/// The chosen row in full, since it came into force.
fn chosen_line(table: &Table) -> String {
    let Some(row) = table.chosen() else { return String::new() };
    let is = if row.kind == Kind::Link { "rate" } else { "limit" };
    let limit = row.limit_bps.map(|rate_bps| format!(", {is} {}", format_rate(rate_bps))).unwrap_or_default();
    let rows = if row.rows == 0 { String::new() } else { format!(", {}", counted(row.rows, "row", "rows")) };
    if row.kind == Kind::Users {
        return format!("{}: those of {}", row.label(), row.parent);
    }
    let what = format!("{}{limit}{rows}{}", row.name, terms(row));
    let Some(counters) = &row.counters else { return format!("{what}: not counted on its own") };
    let of = |packets| units::percent(packets, counters.offered_packets);
    let packets = counted(counters.offered_packets, "packet", "packets");
    let (dropped, marked) = (of(counters.dropped_packets), of(counters.marked_packets));
    let held = units::held(counters.held_packets, counters.offered_packets);
    format!("{what}: {packets}, dropped {dropped}, marked {marked}{held}")
}

/// What a policy says of its share.
fn terms(row: &Row) -> String {
    let Some(share) = row.share.filter(|_| row.kind == Kind::Class) else { return String::new() };
    let rate = |name: &str, rate_bps: Option<u64>| {
        rate_bps.map(|rate_bps| format!(", {name} {}", format_rate(rate_bps))).unwrap_or_default()
    };
    let (guarantee, ceiling) = (rate("guarantee", share.guarantee_bps), rate("ceiling", share.ceiling_bps));
    format!(", weight {}{guarantee}{ceiling}", share.weight)
}

fn reasons_line(view: &View) -> String {
    if view.reasons.is_empty() {
        return "no packet was dropped, marked or held".to_owned();
    }
    view.reasons.iter().map(reason_text).collect::<Vec<_>>().join(", ")
}

fn keys_line(view: &View) -> &'static str {
    match (view.is_typing, view.is_helping, view.opened.is_some()) {
        (true, _, _) => "Enter: keep the filter  Esc: no filter",
        (_, true, _) => "any key: back  q: quit",
        (_, _, true) => "? help  / filter  < > sort  r reverse  Esc back to the classes  q quit",
        _ if view.classes.is_tree() => "? help  / filter  < > sort  r reverse  t classes  Enter limits  q quit",
        _ if view.has_shares => "? help  / filter  < > sort  r reverse  t tree  Enter limits  q quit",
        _ => "? help  / filter  < > sort  r reverse  Enter limits of the class  q quit",
    }
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
