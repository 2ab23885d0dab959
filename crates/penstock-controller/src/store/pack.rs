// SPDX-License-Identifier: MIT OR Apache-2.0
//! A network file as it lies in a store: compressed, with a checksum.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::io::{Error, Read, Write};

/// Compresses a file: the format has a checksum of it.
pub async fn pack(text: Vec<u8>) -> Result<Vec<u8>, Error> {
    run(move || {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&text)?;
        encoder.finish()
    })
    .await
}

/// The file again, if it has as many bytes as it should have.
pub async fn unpack(packed: Vec<u8>, bytes: usize) -> Result<Vec<u8>, Error> {
    run(move || {
        let mut text = Vec::with_capacity(bytes);
        // One more, to see what is too long, and no more: a few bytes can claim to be a lot.
        let most = u64::try_from(bytes).map_or(u64::MAX, |bytes| bytes.saturating_add(1));
        GzDecoder::new(packed.as_slice()).take(most).read_to_end(&mut text)?;
        if text.len() == bytes { Ok(text) } else { Err(Error::other("it has another length than it should have")) }
    })
    .await
}

/// Takes seconds for the largest files: not where others wait.
async fn run<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Error::other(error)))
}
