// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading a policy and its limits files from disk: the only I/O of this crate.

use crate::compile::compile;
use crate::diagnostics::Errors;
use crate::limits_file::{LIMITS_BYTES_MAX, LimitsText, not_utf8};
use crate::model::{POLICY_BYTES_MAX, Policy};
use crate::plan::Plan;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A policy that was read, checked and compiled.
#[derive(Debug)]
pub struct Loaded {
    /// As it was written.
    pub policy: Policy,
    /// As a data plane takes it.
    pub plan: Plan,
}

/// Why there is no policy.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The policy file cannot be read.
    #[error("{}: cannot read the policy: {source}", path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The policy or a limits file is wrong.
    #[error(transparent)]
    Invalid(#[from] Errors),
}

/// Reads, checks and compiles a policy. Paths of limits files are relative to its folder.
///
/// # Errors
/// The file cannot be read, or everything that is wrong with it and its limits files.
pub fn load(path: &Path) -> Result<Loaded, LoadError> {
    let bytes = read(path, POLICY_BYTES_MAX).map_err(|source| LoadError::Read { path: path.to_owned(), source })?;
    let name = path.display().to_string();
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        Err(error) => {
            let mut errors = Errors::default();
            errors.push(not_utf8(&name, &bytes, error));
            return Err(errors.into());
        }
    };
    let policy = Policy::parse(&name, text)?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let plan = compile(&policy, |relative| {
        let path = folder.join(relative);
        let bytes = read(&path, LIMITS_BYTES_MAX)?;
        Ok(LimitsText { name: path.display().to_string(), bytes })
    })?;
    Ok(Loaded { policy, plan })
}

/// The bytes of a file; one more than `most` when there are more.
fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0).min(most) + 1);
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
