// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock up`, `reload` and `down`. The policy and its limits files are read here: the daemon needs no access to them.

use super::arguments::{Client, Down, Reload, Up};
use super::client::{ask, diagnostics, empty, print_json, refused, waiting};
use super::text;
use crate::failure::Failure;
use crate::output::{out, outln};
use crate::units::{count, counted};
use penstock_api::{CHUNK_BYTES, v1};
use penstock_policy::Policy;
use std::path::Path;

/// Runs `penstock up`.
pub fn up(arguments: &Up) -> Result<(), Failure> {
    put(&arguments.policy, &arguments.client, Kind::Up)
}

/// Runs `penstock reload`.
pub fn reload(arguments: &Reload) -> Result<(), Failure> {
    put(&arguments.policy, &arguments.client, Kind::Reload { dry_run: arguments.dry_run })
}

/// Runs `penstock down`.
pub fn down(arguments: &Down) -> Result<(), Failure> {
    let reply = ask(&arguments.client.socket, |mut client| async move {
        client.down(v1::DownRequest {}).await.map(tonic::Response::into_inner).map_err(refused)
    })?;
    match (arguments.client.json, reply.policy.as_str()) {
        (true, _) => return print_json(&reply),
        (false, "") => outln!("no policy of this daemon was in force"),
        (false, policy) => outln!("{policy} is no longer in force"),
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Kind {
    Up,
    Reload { dry_run: bool },
}

fn put(path: &Path, client: &Client, kind: Kind) -> Result<(), Failure> {
    let dry_run = matches!(kind, Kind::Reload { dry_run: true });
    let parts = parts(path, dry_run)?;
    let bar = waiting("compiling and loading the policy");
    let reply = ask(&client.socket, |mut client| async move {
        let parts = tokio_stream::iter(parts);
        let reply = match kind {
            Kind::Up => client.up(parts).await,
            Kind::Reload { .. } => client.reload(parts).await,
        };
        reply.map(tonic::Response::into_inner).map_err(refused)
    });
    bar.finish_and_clear();
    let change = match reply?.outcome {
        Some(v1::change_reply::Outcome::Change(change)) => change,
        Some(v1::change_reply::Outcome::Diagnostics(found)) => return Err(diagnostics(found.text)),
        None => return Err(empty()),
    };
    if client.json {
        return print_json(&change);
    }
    out!("{}", render(&change, kind));
    Ok(())
}

/// A policy and its limits files in pieces. What is wrong with the policy itself is said here already.
fn parts(path: &Path, dry_run: bool) -> Result<Vec<v1::PolicyPart>, Failure> {
    let name = path.display().to_string();
    let text =
        std::fs::read(path).map_err(|error| Failure::input(&name, format!("cannot read the policy: {error}")))?;
    let mut parts = Vec::new();
    let mut push = |part| parts.push(v1::PolicyPart { part: Some(part) });
    let files = match std::str::from_utf8(&text) {
        Ok(text) => limits_files(&Policy::parse(&name, text).map_err(|errors| diagnostics(errors.to_string()))?),
        // The daemon says where.
        Err(_) => Vec::new(),
    };
    push(v1::policy_part::Part::Policy(v1::PolicyText { name, text, dry_run }));
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    for relative in files {
        let file = folder.join(&relative);
        let (bytes, unreadable) = match std::fs::read(&file) {
            Ok(bytes) => (bytes, String::new()),
            Err(error) => (Vec::new(), error.to_string()),
        };
        let name = file.display().to_string();
        push(v1::policy_part::Part::File(v1::LimitsFile { path: relative, name, unreadable }));
        bytes.chunks(CHUNK_BYTES).for_each(|chunk| push(v1::policy_part::Part::Bytes(chunk.to_vec())));
    }
    Ok(parts)
}

/// Paths of the limits files and users files that a policy names, each once.
fn limits_files(policy: &Policy) -> Vec<String> {
    let mut paths = Vec::new();
    for file in policy.files() {
        if !paths.contains(&file.path) {
            paths.push(file.path.clone());
        }
    }
    paths
}

fn render(change: &v1::Change, kind: Kind) -> String {
    let (classes, limits) = (change.classes.clone().unwrap_or_default(), change.limits.clone().unwrap_or_default());
    let mut text = match kind {
        Kind::Up => format!(
            "{} is in force: generation {}, {}, {}\n",
            change.policy,
            change.generation,
            counted(classes.added, "class", "classes"),
            counted(limits.added, "limit", "limits"),
        ),
        Kind::Reload { dry_run: true } => format!("{} would change this; nothing was changed\n", change.policy),
        Kind::Reload { dry_run: false } => format!("{} is in force: generation {}\n", change.policy, change.generation),
    };
    if let Kind::Reload { dry_run } = kind {
        text += &text::difference("classes", &classes);
        text += &text::difference("limits", &limits);
        if !dry_run {
            text += &format!("  {} went on with their state\n", counted(change.limits_kept, "limit", "limits"));
        }
        if change.runtime_changes_kept > 0 {
            let kept = counted(change.runtime_changes_kept, "change", "changes");
            text += &format!("  {kept} made at run time kept: `penstock limits list --changed`\n");
        }
    }
    for dropped in &change.runtime_changes_dropped {
        text += &format!("dropped: {dropped}\n");
    }
    let more = change.runtime_changes_dropped_total.saturating_sub(change.runtime_changes_dropped.len() as u64);
    if more > 0 {
        text += &format!("dropped: and {} more\n", count(more));
    }
    text + &text::warnings(&change.warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_changes_that_a_policy_drops_those_that_are_not_listed_are_counted() {
        let mut change = v1::Change {
            runtime_changes_dropped: vec!["down/rows/a: deleted at run time, but ..".to_owned()],
            runtime_changes_dropped_total: 31,
            ..v1::Change::default()
        };
        let reload = Kind::Reload { dry_run: false };
        let text = render(&change, reload);
        assert!(text.ends_with("dropped: down/rows/a: deleted at run time, but ..\ndropped: and 30 more\n"), "{text}");
        change.runtime_changes_dropped_total = 1;
        assert!(!render(&change, reload).contains("more"));
    }
}
