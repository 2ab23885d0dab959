// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan as tables for people, 80 columns wide.

use super::Plans;
use crate::units::{count, counted, percent, rate, short_rate};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use penstock_alloc::allocation::{Bottleneck, PathRate};
use penstock_alloc::changes::Changes;
use penstock_alloc::compare::{Planned, Scheme};
use penstock_alloc::model::{AggregateId, Class, LimitKind, Network};
use penstock_policy::units::format_size;
use std::cmp::Reverse;
use std::collections::HashMap;

const WIDTH: u16 = 80;
/// Bottlenecks of a class, and classes held back at a port, that a cell names.
const NAMED_MAX: usize = 2;
/// Less than that is rounding, bits/s.
const ROUNDING_BPS: u64 = 1_000;

/// All of it. `top` rows of each table.
pub fn render(plans: &Plans<'_>, top: usize) -> String {
    let (network, flow_bps) = (plans.now.network, plans.schemes.first().map_or(0, |(_, scheme)| scheme.flow_bps));
    let paths: usize = network.classes.iter().map(|class| class.paths.len()).sum();
    let sizes = format!(
        "{}, {}, {}; {} flow; rates in bit/s",
        counted(network.ports.len() as u64, "port", "ports"),
        counted(network.classes.len() as u64, "class", "classes"),
        counted(paths as u64, "path", "paths"),
        rate(to_f64(flow_bps))
    );
    let is_long = plans.name.chars().count() + 2 + sizes.len() > usize::from(WIDTH);
    let mut text = format!("{}:{}{sizes}\n", plans.name, if is_long { "\n  " } else { " " });
    for note in &plans.notes {
        text += &format!("  {note}\n");
    }
    if top > 0 {
        if let Some(before) = plans.before {
            text += &moved(plans.now, before, top);
        }
        text += &classes(plans.now, top);
        text += &ports(plans.now, top);
        text += &aggregates(plans.now, top);
        text += &limits(plans.now, top);
    }
    text += &changes(plans);
    text += &comparison(plans);
    for warning in &plans.now.allocation.warnings {
        text += &format!("warning: {warning}\n");
    }
    text
}

/// A table of some rows of many. Columns in front of `numbers` are text, and so is the last one if it `ends_in_text`.
struct Sheet {
    table: Table,
    numbers: usize,
    ends_in_text: bool,
}

impl Sheet {
    fn new(header: &[&str], numbers: usize, ends_in_text: bool) -> Self {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
        table.set_header(header);
        Self { table, numbers, ends_in_text }
    }

    fn row(&mut self, cells: Vec<String>) {
        self.table.add_row(cells);
    }

    /// `what` says of `total` rows which ones these are.
    fn finish(mut self, total: usize, what: &str) -> String {
        let shown = self.table.row_iter().count();
        if shown == 0 {
            return String::new();
        }
        let last = self.table.column_count() - usize::from(self.ends_in_text);
        for index in self.numbers..last {
            if let Some(column) = self.table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut text = format!("\n{}\n", self.table.trim_fmt());
        if shown < total {
            text += &format!("  {shown} of {} {what}; --top COUNT shows more\n", count(total as u64));
        }
        text
    }
}

/// The first `top` of some indices by a key, in the order of the key; all in their own order when there are no more.
fn first<K: Ord>(total: usize, top: usize, key: impl Fn(usize) -> K) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..total).collect();
    if total > top {
        indices.sort_by_key(|&index| key(index));
        indices.truncate(top);
    }
    indices
}

fn gets(paths: &[PathRate]) -> u64 {
    paths.iter().map(|path| path.rate_bps).sum()
}

fn classes(plan: Planned<'_>, top: usize) -> String {
    let Planned { network, allocation } = plan;
    let has_limits = network.classes.iter().any(|class| class.limit.is_some());
    let has_demands = network.classes.iter().any(|class| class.demand_bps.is_some());
    let mut header = vec!["class", "priority", "weight"];
    header.extend(has_limits.then_some("limit"));
    header.extend(has_demands.then_some("demand"));
    header.extend(["gets", "paths", "bottlenecks"]);
    let mut sheet = Sheet::new(&header, 1, true);
    for index in first(network.classes.len(), top, |index| gets(&allocation.paths[index])) {
        let (class, paths) = (&network.classes[index], &allocation.paths[index]);
        let mut cells = vec![class.name.clone(), class.priority.to_string(), class.weight.to_string()];
        cells.extend(has_limits.then(|| limit(class)));
        cells.extend(has_demands.then(|| class.demand_bps.map_or_else(dash, bits)));
        cells.extend([bits(gets(paths)), count(paths.len() as u64), bottlenecks(network, paths)]);
        sheet.row(cells);
    }
    sheet.finish(network.classes.len(), "classes, those that get least")
}

fn limit(class: &Class) -> String {
    class.limit.map_or_else(dash, |limit| {
        let kind = if limit.kind == LimitKind::Hard { " hard" } else { "" };
        format!("{}{kind}", bits(limit.rate_bps))
    })
}

fn bottlenecks(network: &Network, paths: &[PathRate]) -> String {
    let mut met: Vec<Bottleneck> = Vec::new();
    for path in paths {
        if !met.contains(&path.bottleneck) {
            met.push(path.bottleneck);
        }
        // A class of thousands of paths need not be looked through to say that there are more.
        if met.len() > 64 {
            break;
        }
    }
    names(met.iter().map(|bottleneck| bottleneck.name(network)), met.len())
}

fn names<'a>(names: impl Iterator<Item = &'a str>, total: usize) -> String {
    let named: Vec<&str> = names.take(NAMED_MAX).collect();
    let more = if total > named.len() { format!(" +{}", total - named.len()) } else { String::new() };
    format!("{}{more}", named.join(", "))
}

fn ports(plan: Planned<'_>, top: usize) -> String {
    let Planned { network, allocation } = plan;
    let mut classes = vec![0_u64; network.ports.len()];
    let mut paths = vec![0_u64; network.ports.len()];
    let mut held: Vec<Vec<&str>> = vec![Vec::new(); network.ports.len()];
    let mut last = vec![usize::MAX; network.ports.len()];
    let mut last_held = vec![usize::MAX; network.ports.len()];
    for (index, (class, rates)) in network.classes.iter().zip(&allocation.paths).enumerate() {
        for &port in class.paths.iter().flatten() {
            let port = port as usize;
            paths[port] += 1;
            classes[port] += u64::from(last[port] != index);
            last[port] = index;
        }
        for port in rates.iter().filter_map(|rate| rate.bottleneck.port()) {
            let port = port as usize;
            if last_held[port] != index {
                held[port].push(&class.name);
            }
            last_held[port] = index;
        }
    }
    let mut sheet = Sheet::new(&["port", "rate", "used", "", "classes", "paths", "bottleneck of"], 1, true);
    let part = |index: usize| {
        let used = u128::from(allocation.used_bps[index]) * 1_000_000;
        used / u128::from(network.ports[index].rate_bps.max(1))
    };
    let busiest = |index: usize| Reverse((part(index), held[index].len()));
    for index in first(network.ports.len(), top, busiest) {
        let (port, used_bps) = (&network.ports[index], allocation.used_bps[index]);
        sheet.row(vec![
            port.name.clone(),
            bits(port.rate_bps),
            bits(used_bps),
            percent(used_bps, port.rate_bps),
            count(classes[index]),
            count(paths[index]),
            names(held[index].iter().copied(), held[index].len()),
        ]);
    }
    sheet.finish(network.ports.len(), "ports, the fullest")
}

fn aggregates(plan: Planned<'_>, top: usize) -> String {
    let Planned { network, allocation } = plan;
    let part = |index: usize| {
        let used = u128::from(allocation.aggregates_used_bps[index]) * 1_000_000;
        used / u128::from(network.aggregates[index].rate_bps.max(1))
    };
    let mut sheet = Sheet::new(&["aggregate", "rate", "used", "", "classes", "bottleneck of"], 1, true);
    for index in first(network.aggregates.len(), top, |index| Reverse(part(index))) {
        let (aggregate, used_bps) = (&network.aggregates[index], allocation.aggregates_used_bps[index]);
        let own = AggregateId::try_from(index).ok().map(Bottleneck::Aggregate);
        let is_held = |class: &&u32| {
            let paths = &allocation.paths[**class as usize];
            paths.iter().any(|path| Some(path.bottleneck) == own)
        };
        let held: Vec<&u32> = aggregate.classes.iter().filter(is_held).collect();
        sheet.row(vec![
            aggregate.name.clone(),
            bits(aggregate.rate_bps),
            bits(used_bps),
            percent(used_bps, aggregate.rate_bps),
            count(aggregate.classes.len() as u64),
            names(held.iter().map(|class| network.classes[**class as usize].name.as_str()), held.len()),
        ]);
    }
    sheet.finish(network.aggregates.len(), "aggregates, the fullest")
}

fn limits(plan: Planned<'_>, top: usize) -> String {
    let Planned { network, allocation } = plan;
    let mut sheet = Sheet::new(&["limit at", "class", "rate", "yellow", "red"], 2, false);
    let mut limits: Vec<_> = allocation.limits.iter().collect();
    limits.sort_by_key(|limit| limit.port);
    for limit in limits.iter().take(top) {
        sheet.row(vec![
            network.ports[limit.port as usize].name.clone(),
            network.classes[limit.class as usize].name.clone(),
            bits(limit.rate_bps),
            format_size(limit.yellow_bytes),
            format_size(limit.red_bytes),
        ]);
    }
    sheet.finish(limits.len(), "limits, by port")
}

/// Who gets something else than before, those whose rates move most first.
fn moved(now: Planned<'_>, before: Planned<'_>, top: usize) -> String {
    let of = |plan: Planned<'_>| -> HashMap<String, u64> {
        let classes = plan.network.classes.iter().zip(&plan.allocation.paths);
        classes.map(|(class, paths)| (class.name.clone(), gets(paths))).collect()
    };
    let (old, new) = (of(before), of(now));
    let mut rows: Vec<(&str, Option<u64>, Option<u64>)> = Vec::new();
    let names = before.network.classes.iter().chain(&now.network.classes);
    for (index, class) in names.enumerate() {
        let name = class.name.as_str();
        let is_again = index >= before.network.classes.len() && old.contains_key(name);
        let (was, is) = (old.get(name).copied(), new.get(name).copied());
        let difference = was.unwrap_or(0).abs_diff(is.unwrap_or(0));
        if !is_again && (difference > ROUNDING_BPS || was.is_some() != is.is_some()) {
            rows.push((name, was, is));
        }
    }
    let total = rows.len();
    if total == 0 {
        return "\nno class gets more or less than before\n".to_owned();
    }
    rows.sort_by_key(|(_, was, is)| Reverse(was.unwrap_or(0).abs_diff(is.unwrap_or(0))));
    let mut sheet = Sheet::new(&["class", "got", "gets", "difference"], 1, false);
    for (name, was, is) in rows.into_iter().take(top) {
        let (old, new) = (was.unwrap_or(0), is.unwrap_or(0));
        let sign = if new < old { "-" } else { "+" };
        let cell = |rate: Option<u64>| rate.map_or_else(dash, bits);
        sheet.row(vec![name.to_owned(), cell(was), cell(is), format!("{sign}{}", bits(old.abs_diff(new)))]);
    }
    sheet.finish(total, "classes that get something else, those that change most")
}

fn changes(plans: &Plans<'_>) -> String {
    let Some(scheme) = plans.schemes.first().map(|(_, scheme)| scheme) else { return String::new() };
    let limits = counted(scheme.limits as u64, "limit", "limits");
    match scheme.changes {
        Some(Changes { added, removed, changed, unchanged }) => {
            format!("\n{limits}: {added} added, {removed} removed, {changed} changed, {unchanged} as before\n")
        }
        None => format!("\n{limits}\n"),
    }
}

fn comparison(plans: &Plans<'_>) -> String {
    let [(_, global), others @ ..] = plans.schemes.as_slice() else { return String::new() };
    if others.is_empty() {
        return String::new();
    }
    let capacity_bps: u128 = plans.now.network.ports.iter().map(|port| u128::from(port.rate_bps)).sum();
    let header = ["", "flows", "of global", "ports used", "limits", "updates", "short", "over"];
    let mut sheet = Sheet::new(&header, 1, false);
    for (name, scheme) in &plans.schemes {
        let updates = scheme.changes.map_or_else(dash, |changes| count(changes.updates() as u64));
        sheet.row(vec![
            (*name).to_owned(),
            short_rate(to_f64(scheme.flow_bps)),
            part(scheme.flow_bps, global.flow_bps),
            part(scheme.used_bps, capacity_bps),
            count(scheme.limits as u64),
            updates,
            count(scheme.short.len() as u64),
            count(scheme.over.len() as u64),
        ]);
    }
    let mut text = sheet.finish(plans.schemes.len(), "");
    text += "  short: classes that get less than policy; over: ports to which more comes\n  than they send\n";
    for (name, scheme) in &plans.schemes {
        text += &violations(plans.now.network, name, scheme);
    }
    text
}

/// The worst of them.
fn violations(network: &Network, name: &str, scheme: &Scheme) -> String {
    let mut text = String::new();
    for short in scheme.short.iter().take(NAMED_MAX) {
        let class = &network.classes[short.class as usize].name;
        text += &format!("  {name}: {class} gets {} of {}\n", bits(short.gets_bps), bits(short.due_bps));
    }
    for over in scheme.over.iter().take(NAMED_MAX) {
        let port = &network.ports[over.port as usize].name;
        text += &format!("  {name}: {} come to {port} of {}\n", bits(over.offered_bps), bits(over.rate_bps));
    }
    text
}

fn part(part: u128, whole: u128) -> String {
    if whole == 0 { dash() } else { format!("{:.1} %", 100.0 * to_f64(part) / to_f64(whole)) }
}

fn dash() -> String {
    "-".to_owned()
}

fn bits(rate_bps: u64) -> String {
    short_rate(to_f64(u128::from(rate_bps)))
}

#[allow(clippy::cast_precision_loss)] // four digits are shown
fn to_f64(number: u128) -> f64 {
    number as f64
}
