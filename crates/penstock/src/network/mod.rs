// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock controller`, and `penstock network`, which speaks to one.

pub mod arguments;
mod columns;
mod controller;
mod standing;

pub use controller::{machine, run as controller, serve_beside, tls};

use crate::failure::Failure;
use crate::live::{client as live, text};
use crate::output::{out, outln, print};
use anyhow::{Context, anyhow};
use arguments::{Audit, Client, Network, Put, Show, Status};
use penstock_alloc::file::NETWORK_BYTES_MAX;
use penstock_api::controller::{AskError, ControllerClient, Controllers};
use penstock_api::{CHUNK_BYTES, v1};
use std::future::Future;
use std::io::Write;

/// Runs `penstock network`.
pub fn run(command: &Network) -> Result<(), Failure> {
    match command {
        Network::Put(arguments) => put(arguments),
        Network::Show(arguments) => show(arguments),
        Network::Status(arguments) => status(arguments),
        Network::Audit(arguments) => audit(arguments),
    }
}

/// Asks one of the replicas.
fn ask<T, F: Future<Output = Result<T, tonic::Status>>>(
    client: &Client,
    question: impl Fn(ControllerClient) -> F,
) -> Result<T, Failure> {
    let controllers = Controllers::new(&client.controller, tls(&client.tls)?.as_ref()).map_err(failure_of)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(controllers.ask(question)).map_err(failure_of)
}

fn failure_of(error: AskError) -> Failure {
    match error {
        AskError::Refused(status) => live::refused(*status),
        AskError::Address(_) | AskError::Nowhere => Failure::Input(format!("error: --controller: {error}")),
        error => Failure::Failed(anyhow!("{error}")),
    }
}

fn put(arguments: &Put) -> Result<(), Failure> {
    // What is wrong with it is said by the controller, which may know more than this version.
    let source = penstock_policy::read_source(&arguments.network, NETWORK_BYTES_MAX).map_err(|error| match error {
        penstock_policy::LoadError::Invalid(errors) => Failure::Input(errors.to_string()),
        error @ penstock_policy::LoadError::Read { .. } => Failure::Input(format!("error: {error}")),
    })?;
    let file = v1::NetworkFile {
        name: source.name().to_owned(),
        dry_run: arguments.dry_run,
        revision: arguments.if_revision.unwrap_or(0),
    };
    let bytes = source.text().as_bytes().chunks(CHUNK_BYTES).map(|chunk| v1::network_part::Part::Bytes(chunk.to_vec()));
    let parts: Vec<v1::NetworkPart> = std::iter::once(v1::network_part::Part::File(file))
        .chain(bytes)
        .map(|part| v1::NetworkPart { part: Some(part) })
        .collect();
    let bar = live::waiting("checking and putting the network");
    let reply = ask(&arguments.client, |mut client| {
        let parts = tokio_stream::iter(parts.clone());
        async move { client.put_network(parts).await.map(tonic::Response::into_inner) }
    });
    bar.finish_and_clear();
    let change = match reply?.outcome {
        Some(v1::put_network_reply::Outcome::Change(change)) => change,
        Some(v1::put_network_reply::Outcome::Diagnostics(found)) => return Err(live::diagnostics(found.text)),
        None => return Err(live::empty()),
    };
    if arguments.client.json {
        return live::print_json(&change);
    }
    print(format_args!("{}", render(source.name(), &change)))?;
    Ok(())
}

fn render(name: &str, change: &v1::NetworkChange) -> String {
    let mut text = match change.revision {
        0 => format!("{name} would change this; nothing was changed\n"),
        revision => format!("{name} is kept: revision {revision}\n"),
    };
    let parts = [
        ("ports", &change.ports),
        ("classes", &change.classes),
        ("aggregates", &change.aggregates),
        ("limits", &change.limits),
    ];
    for (what, difference) in parts {
        text += &text::difference(what, &difference.clone().unwrap_or_default());
    }
    text + &text::warnings(&change.warnings)
}

fn show(arguments: &Show) -> Result<(), Failure> {
    let (file, bytes) = ask(&arguments.client, |mut client| async move {
        let mut parts = client.get_network(v1::GetNetworkRequest {}).await?.into_inner();
        let (mut file, mut bytes) = (v1::NetworkFile::default(), Vec::new());
        while let Some(v1::NetworkPart { part }) = parts.message().await? {
            match part {
                Some(v1::network_part::Part::File(one)) => file = one,
                Some(v1::network_part::Part::Bytes(more)) => bytes.extend(more),
                None => {}
            }
        }
        Ok((file, bytes))
    })?;
    if arguments.client.json {
        let text = String::from_utf8_lossy(&bytes);
        return live::print_json(&serde_json::json!({ "revision": file.revision, "name": file.name, "text": text }));
    }
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&bytes).and_then(|()| stdout.flush()).context("standard output")?;
    Ok(())
}

fn status(arguments: &Status) -> Result<(), Failure> {
    let request = v1::GetStandingRequest { offset: 0, count: arguments.nodes, with_rates: true };
    let here = |client: &Client| {
        ask(client, |mut client| async move { client.get_standing(request).await.map(tonic::Response::into_inner) })
    };
    let mut reply = here(&arguments.client)?;
    if !reply.is_leader && !reply.leader_address.is_empty() {
        // Where it cannot be reached, what this replica knows is better than nothing.
        let leader = vec![reply.leader_address.clone()];
        let client = Client { controller: leader, tls: arguments.client.tls.clone(), json: false };
        match here(&client) {
            Ok(of_leader) => reply = of_leader,
            Err(_) => reply.warnings.push(format!("{}, which leads, does not answer", reply.leader_address)),
        }
    }
    if arguments.client.json {
        return live::print_json(&reply);
    }
    out!("{}", standing::render(&reply));
    Ok(())
}

fn audit(arguments: &Audit) -> Result<(), Failure> {
    let request = v1::ListAuditRequest { count: arguments.count };
    let reply = ask(&arguments.client, |mut client| async move {
        client.list_audit(request).await.map(tonic::Response::into_inner)
    })?;
    if arguments.client.json {
        return live::print_json(&reply);
    }
    if reply.entries.is_empty() {
        out!("nobody has changed anything yet\n");
        return Ok(());
    }
    for v1::AuditEntry { time_unix_ns, who, from, what, refused } in reply.entries {
        let refused = if refused.is_empty() { String::new() } else { format!("\n  refused: {refused}") };
        outln!("{} UTC  {who} from {from}\n  {what}{refused}", utc(time_unix_ns));
    }
    Ok(())
}

/// A moment for people: `2026-11-23 04:05:06`.
fn utc(unix_ns: u64) -> String {
    let at = time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(unix_ns));
    let Ok(at) = at else { return unix_ns.to_string() };
    let (date, (hour, minute, second)) = (at.date(), at.time().as_hms());
    format!("{date} {hour:02}:{minute:02}:{second:02}")
}
