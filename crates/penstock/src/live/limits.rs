// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock limits`: list and change limits while traffic flows.

use super::arguments::{Add, Del, Export, Get, Import, Limits, List, Set};
use super::client::{ask, diagnostics, empty, print_json, refused, waiting};
use super::text;
use crate::failure::Failure;
use crate::output::{out, outln};
use crate::units::{count, counted, duration};
use anyhow::Context;
use penstock_api::{CHUNK_BYTES, v1};
use penstock_policy::units::format_rate;
use std::io::{Read, Write};
use std::path::Path;

/// Runs a command.
pub fn run(command: &Limits) -> Result<(), Failure> {
    match command {
        Limits::List(arguments) => list(arguments),
        Limits::Get(arguments) => get(arguments),
        Limits::Set(arguments) => set(arguments),
        Limits::Add(arguments) => add(arguments),
        Limits::Del(arguments) => del(arguments),
        Limits::Import(arguments) => import(arguments),
        Limits::Export(arguments) => export(arguments),
    }
}

/// A reader that stops reading, such as `head`, is no failure.
pub(super) fn written(result: std::io::Result<()>) -> Result<bool, Failure> {
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        result => result.context("cannot write").map(|()| true).map_err(Failure::from),
    }
}

fn list(arguments: &List) -> Result<(), Failure> {
    let request = v1::ListLimitsRequest {
        filter: arguments.filter.clone(),
        changed: arguments.changed,
        offset: arguments.offset,
        count: if arguments.all { 0 } else { arguments.count },
    };
    let as_json = arguments.client.json;
    ask(&arguments.client.socket, |mut client| async move {
        let mut pages = client.list_limits(request).await.map_err(refused)?.into_inner();
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        let (mut listed, mut total) = (0, 0);
        let mut layout = None;
        let mut all = Vec::new();
        while let Some(page) = pages.message().await.map_err(refused)? {
            listed += page.limits.len() as u64;
            total = page.total;
            if as_json {
                all.extend(page.limits);
            } else if !page.limits.is_empty() {
                let layout = layout.get_or_insert_with(|| Layout::new(&page.limits));
                if !written(layout.write(&mut out, &page.limits, listed == page.limits.len() as u64))? {
                    return Ok(());
                }
            }
        }
        if as_json {
            return print_json(&serde_json::json!({ "total": total, "limits": all }));
        }
        let result = match (listed, total) {
            (0, 0) => writeln!(out, "no limit fits"),
            (listed, total) if listed < total => {
                writeln!(
                    out,
                    "{listed} of {}; --count, --offset or --all list others",
                    counted(total, "limit", "limits")
                )
            }
            _ => Ok(()),
        };
        written(result.and_then(|()| out.flush())).map(|_| ())
    })
}

/// Widths of columns, by the first page.
struct Layout {
    name: usize,
    rate: usize,
    key: usize,
}

impl Layout {
    fn new(limits: &[v1::Limit]) -> Self {
        let widest = |text: &dyn Fn(&v1::Limit) -> String, least: usize| {
            limits.iter().map(|limit| text(limit).chars().count()).max().unwrap_or(0).max(least)
        };
        Self { name: widest(&|limit| limit.name.clone(), 5), rate: widest(&rate, 4), key: widest(&text::key, 3) }
    }

    fn write(&self, out: &mut impl Write, limits: &[v1::Limit], is_first: bool) -> std::io::Result<()> {
        let Self { name, rate: rate_width, key } = *self;
        let mut line = |a: &str, b: &str, c: &str, d: &str| {
            writeln!(out, "{}", format!("{a:name$}  {b:>rate_width$}  {c:key$}  {d}").trim_end())
        };
        if is_first {
            line("limit", "rate", "key", "at run time")?;
        }
        for limit in limits {
            let (change, lent) = (limit.change.as_ref().map(text::change), limit.lease.as_ref().map(text::lent));
            let notes: Vec<String> = lent.into_iter().chain(change).collect();
            line(&limit.name, &rate(limit), &text::key(limit), &notes.join("; "))?;
        }
        Ok(())
    }
}

/// A deleted limit has none.
fn rate(limit: &v1::Limit) -> String {
    if limit.rate_bps == 0 { "-".to_owned() } else { format_rate(limit.rate_bps) }
}

fn get(arguments: &Get) -> Result<(), Failure> {
    let name = arguments.name.clone();
    let reply = ask(&arguments.client.socket, |mut client| async move {
        client.get_limit(v1::GetLimitRequest { name }).await.map(tonic::Response::into_inner).map_err(refused)
    })?;
    let limit = reply.limit.ok_or_else(empty)?;
    if arguments.client.json {
        return print_json(&limit);
    }
    outln!("{}: {}", limit.name, rate(&limit));
    if !limit.key.is_empty() {
        outln!("  key      {}", text::key(&limit));
    }
    outln!("  terms    {}", limit.terms);
    if let Some(queue) = &limit.queue {
        outln!("  queue    {} of {}", duration(queue.queue_ns), duration(queue.window_ns));
    }
    if let Some(counters) = &limit.counters {
        outln!(
            "  packets  {} offered: {} green, {} yellow, {} red; {} dropped, {} marked, {} held",
            count(counters.offered_packets),
            count(counters.green_packets),
            count(counters.yellow_packets),
            count(counters.red_packets.unwrap_or_default()),
            count(counters.dropped_packets),
            count(counters.marked_packets),
            count(counters.held_packets)
        );
    }
    if let Some(lease) = &limit.lease {
        let [until, then] = text::lease(lease);
        outln!("  lease    {until}\n           {then}");
    }
    if let Some(change) = &limit.change {
        outln!("  at run time: {}", text::change(change));
    }
    Ok(())
}

fn set(arguments: &Set) -> Result<(), Failure> {
    let request = v1::SetLimitRequest { name: arguments.name.clone(), rate_bps: arguments.rate };
    let reply = ask(&arguments.client.socket, |mut client| async move {
        client.set_limit(request).await.map(tonic::Response::into_inner).map_err(refused)
    })?;
    if arguments.client.json {
        return print_json(&reply);
    }
    let (before, after) = (format_rate(reply.before_bps), format_rate(reply.rate_bps));
    match &reply.lease {
        None => outln!("{}: {before} -> {after}", reply.name),
        Some(lease) => {
            outln!("{}: {before} -> {after}, when it is lent no more", reply.name);
            let [until, then] = text::lease(lease);
            outln!("  lease    {until}\n           {then}");
        }
    }
    Ok(())
}

fn add(arguments: &Add) -> Result<(), Failure> {
    let rate = Some(arguments.rate.clone());
    let given = [
        ("dst", &arguments.dst),
        ("src", &arguments.src),
        ("five_tuple", &arguments.five_tuple),
        ("vlan", &arguments.vlan),
        ("vni", &arguments.vni),
        ("teid", &arguments.teid),
        ("rate", &rate),
        ("burst", &arguments.burst),
        ("excess", &arguments.excess),
        ("on_excess", &arguments.on_excess),
        ("meter", &arguments.meter),
        ("peak", &arguments.peak),
        ("excess_rate", &arguments.excess_rate),
        ("horizon", &arguments.horizon),
        ("backlog", &arguments.backlog),
        ("ce_threshold", &arguments.ce_threshold),
    ];
    let column =
        |(name, value): (&str, &Option<String>)| Some(v1::Column { name: name.to_owned(), value: value.clone()? });
    let request = v1::AddLimitRequest {
        row: arguments.name.clone(),
        class: arguments.class.clone(),
        columns: given.into_iter().filter_map(column).collect(),
    };
    let reply = ask(&arguments.client.socket, |mut client| async move {
        client.add_limit(request).await.map(tonic::Response::into_inner).map_err(refused)
    })?;
    let limit = match reply.outcome.ok_or_else(empty)? {
        v1::add_limit_reply::Outcome::Limit(limit) => limit,
        v1::add_limit_reply::Outcome::Diagnostics(found) => return Err(diagnostics(found.text)),
    };
    if arguments.client.json {
        return print_json(&limit);
    }
    outln!("{}: {}, {}", limit.name, text::key(&limit), format_rate(limit.rate_bps));
    Ok(())
}

fn del(arguments: &Del) -> Result<(), Failure> {
    let name = arguments.name.clone();
    let reply = ask(&arguments.client.socket, |mut client| async move {
        client.delete_limit(v1::DeleteLimitRequest { name }).await.map(tonic::Response::into_inner).map_err(refused)
    })?;
    if arguments.client.json {
        return print_json(&reply);
    }
    outln!("{}: deleted, was {}", reply.name, format_rate(reply.rate_bps));
    Ok(())
}

fn import(arguments: &Import) -> Result<(), Failure> {
    let (name, bytes) = read(&arguments.file)?;
    let file = v1::ImportFile { name, class: arguments.class.clone(), dry_run: arguments.dry_run };
    let mut parts = vec![v1::ImportPart { part: Some(v1::import_part::Part::File(file)) }];
    let chunk = |chunk: &[u8]| v1::ImportPart { part: Some(v1::import_part::Part::Bytes(chunk.to_vec())) };
    parts.extend(bytes.chunks(CHUNK_BYTES).map(chunk));
    let bar = waiting("importing");
    let reply = ask(&arguments.client.socket, |mut client| async move {
        client.import_limits(tokio_stream::iter(parts)).await.map(tonic::Response::into_inner).map_err(refused)
    });
    bar.finish_and_clear();
    let difference = match reply?.outcome.ok_or_else(empty)? {
        v1::import_reply::Outcome::Limits(difference) => difference,
        v1::import_reply::Outcome::Diagnostics(found) => return Err(diagnostics(found.text)),
    };
    if arguments.client.json {
        return print_json(&difference);
    }
    outln!("{}", if arguments.dry_run { "this would change; nothing was changed" } else { "imported" });
    out!("{}", text::difference("limits", &difference));
    Ok(())
}

fn read(path: &Path) -> Result<(String, Vec<u8>), Failure> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
        return Ok(("standard input".to_owned(), bytes));
    }
    let name = path.display().to_string();
    let bytes =
        std::fs::read(path).map_err(|error| Failure::input(&name, format!("cannot read the limits file: {error}")))?;
    Ok((name, bytes))
}

fn export(arguments: &Export) -> Result<(), Failure> {
    let request = v1::ExportLimitsRequest { class: arguments.class.clone() };
    ask(&arguments.socket, |mut client| async move {
        let mut parts = client.export_limits(request).await.map_err(refused)?.into_inner();
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        while let Some(part) = parts.message().await.map_err(refused)? {
            if !written(out.write_all(&part.bytes))? {
                return Ok(());
            }
        }
        written(out.flush()).map(|_| ())
    })
}
