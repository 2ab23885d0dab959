// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading a policy and its limits files from disk: the only I/O of this crate.

use crate::compile::compile;
use crate::diagnostics::{Errors, Source};
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
    /// The file cannot be read.
    #[error("{}: cannot read it: {source}", path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file, or a limits file that it names, is wrong.
    #[error(transparent)]
    Invalid(#[from] Errors),
}

/// Reads, checks and compiles a policy. Paths of limits files are relative to its folder.
///
/// # Errors
/// The file cannot be read, or everything that is wrong with it and its limits files.
pub fn load(path: &Path) -> Result<Loaded, LoadError> {
    let source = read_source(path, POLICY_BYTES_MAX)?;
    let policy = Policy::parse(source.name(), source.text())?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let plan = compile(&policy, |relative| {
        let path = folder.join(relative);
        let bytes = read(&path, LIMITS_BYTES_MAX)?;
        Ok(LimitsText { name: path.display().to_string(), bytes })
    })?;
    Ok(Loaded { policy, plan })
}

/// Reads a text of at most so many bytes, and one byte of what is larger: whoever parses it refuses that. `-` is standard input.
///
/// # Errors
/// The file cannot be read, or is not UTF-8.
pub fn read_source(path: &Path, most: usize) -> Result<Source, LoadError> {
    let is_standard = path.as_os_str() == "-";
    let name = if is_standard { "standard input".to_owned() } else { path.display().to_string() };
    let bytes = if is_standard { read_standard(most) } else { read(path, most) };
    let bytes = bytes.map_err(|source| LoadError::Read { path: PathBuf::from(&name), source })?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source::new(&name, text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))),
        Err(error) => {
            let mut errors = Errors::default();
            errors.push(not_utf8(&name, error.as_bytes(), error.utf8_error()));
            Err(errors.into())
        }
    }
}

fn read_standard(most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The bytes of a file; one more than `most` when there are more.
fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0).min(most) + 1);
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
