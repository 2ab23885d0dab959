// SPDX-License-Identifier: MIT OR Apache-2.0
//! A policy as the user wrote it, with its limits files; compressed as the store keeps it.

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use std::io::{self, Read, Write};

/// A policy as the user wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// What messages call it: the path that the user gave.
    pub name: String,
    /// The policy.
    pub text: Vec<u8>,
    /// Its limits files.
    pub files: Vec<SourceFile>,
}

/// A limits file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// As the policy writes it.
    pub path: String,
    /// What messages call it.
    pub name: String,
    /// What it holds, or why it could not be read.
    pub bytes: Result<Vec<u8>, String>,
}

/// A source, compressed. Packing takes long for millions of rows, and needs nothing that others wait for.
#[derive(Debug, Clone)]
pub struct Packed {
    /// `name` of the source.
    pub(crate) name: String,
    /// Its limits files: path and name.
    pub(crate) files: Vec<(String, String)>,
    /// The policy, then its limits files.
    pub(crate) blobs: Vec<Vec<u8>>,
}

impl Packed {
    /// Compresses a source.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(source: &Source) -> io::Result<Self> {
        let files = source.files.iter().map(|file| file.bytes.as_deref().unwrap_or_default());
        let blobs = std::iter::once(source.text.as_slice()).chain(files).map(compress);
        Ok(Self {
            name: source.name.clone(),
            files: source.files.iter().map(|file| (file.path.clone(), file.name.clone())).collect(),
            blobs: blobs.collect::<io::Result<_>>()?,
        })
    }

    /// The source.
    ///
    /// # Errors
    /// It is damaged.
    pub fn unpack(&self) -> io::Result<Source> {
        let mut plain = self.blobs.iter().map(|bytes| decompress(bytes));
        let text = plain.next().transpose()?.unwrap_or_default();
        let mut files = Vec::new();
        for ((path, name), bytes) in self.files.iter().zip(plain) {
            files.push(SourceFile { path: path.clone(), name: name.clone(), bytes: Ok(bytes?) });
        }
        Ok(Source { name: self.name.clone(), text, files })
    }
}

fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// What [`compress`] made smaller.
pub(crate) fn decompress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    ZlibDecoder::new(bytes).read_to_end(&mut plain)?;
    Ok(plain)
}
