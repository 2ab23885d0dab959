// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that a client sends in pieces.

use crate::store::{Source, SourceFile};
use penstock_api::v1;
use penstock_policy::limits_file::LIMITS_BYTES_MAX;
use penstock_policy::model::POLICY_BYTES_MAX;
use tonic::{Status, Streaming};

/// Limits files that one policy may have.
const FILES_MAX: usize = 10_000;
/// Bytes of all files together: they are held in memory.
const TOTAL_BYTES_MAX: usize = 2 << 30;

/// A policy and its limits files; whether to change nothing.
///
/// # Errors
/// The parts do not make a policy, or the client went away.
pub async fn policy(mut parts: Streaming<v1::PolicyPart>) -> Result<(Source, bool), Status> {
    let mut source: Option<(Source, bool)> = None;
    let mut total = 0_usize;
    while let Some(v1::PolicyPart { part }) = parts.message().await? {
        match (part, &mut source) {
            (Some(v1::policy_part::Part::Policy(policy)), None) => {
                if policy.text.len() > POLICY_BYTES_MAX + 1 {
                    return Err(Status::invalid_argument("the policy is too large"));
                }
                source = Some((Source { name: policy.name, text: policy.text, files: Vec::new() }, policy.dry_run));
            }
            (Some(v1::policy_part::Part::File(file)), Some((source, _))) => {
                if source.files.len() == FILES_MAX {
                    return Err(Status::invalid_argument(format!("more than {FILES_MAX} limits files")));
                }
                let bytes = if file.unreadable.is_empty() { Ok(Vec::new()) } else { Err(file.unreadable) };
                source.files.push(SourceFile { path: file.path, name: file.name, bytes });
            }
            (Some(v1::policy_part::Part::Bytes(more)), Some((source, _))) => {
                total = total.saturating_add(more.len());
                match source.files.last_mut().map(|file| &mut file.bytes) {
                    Some(Ok(bytes)) => append(bytes, &more)?,
                    _ => return Err(out_of_order()),
                }
                if total > TOTAL_BYTES_MAX {
                    return Err(Status::invalid_argument("the limits files are larger than 2 GiB together"));
                }
            }
            _ => return Err(out_of_order()),
        }
    }
    source.ok_or_else(out_of_order)
}

/// A limits file to import.
///
/// # Errors
/// The parts do not make a file, or the client went away.
pub async fn import(mut parts: Streaming<v1::ImportPart>) -> Result<(v1::ImportFile, Vec<u8>), Status> {
    let (mut file, mut bytes) = (None, Vec::new());
    while let Some(v1::ImportPart { part }) = parts.message().await? {
        match part {
            Some(v1::import_part::Part::File(named)) if file.is_none() => file = Some(named),
            Some(v1::import_part::Part::Bytes(more)) if file.is_some() => append(&mut bytes, &more)?,
            _ => return Err(out_of_order()),
        }
    }
    file.map(|file| (file, bytes)).ok_or_else(out_of_order)
}

/// One byte more than a limits file may have is kept, so that the compiler says what is wrong.
fn append(bytes: &mut Vec<u8>, more: &[u8]) -> Result<(), Status> {
    if bytes.len() > LIMITS_BYTES_MAX {
        return Err(Status::invalid_argument(format!("a limits file is larger than {} MiB", LIMITS_BYTES_MAX >> 20)));
    }
    bytes.extend_from_slice(more);
    Ok(())
}

fn out_of_order() -> Status {
    Status::invalid_argument("parts out of order: a policy or a file comes first, then its bytes")
}
