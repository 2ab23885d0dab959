// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that the program tells of: some of those that it dropped or marked.

use super::generation::{KernelError, refused};
use super::object::value_of;
use libbpf_rs::{MapCore, MapFlags, RingBufferBuilder};
use penstock_algo::wire;

/// Takes all that lies in the ring, oldest first.
pub(super) fn drain(ring: &dyn MapCore) -> Result<Vec<wire::pst_sample>, KernelError> {
    let mut samples = Vec::new();
    let mut builder = RingBufferBuilder::new();
    let take = |bytes: &[u8]| {
        samples.push(value_of(bytes));
        0
    };
    builder.add(ring, take).map_err(refused("reading samples"))?;
    let ring = builder.build().map_err(refused("reading samples"))?;
    ring.consume().map_err(refused("reading samples"))?;
    drop(ring);
    Ok(samples)
}

/// Samples that found the ring full, on all CPUs.
pub(super) fn lost(works: &dyn MapCore) -> Result<u64, KernelError> {
    let cpus = works.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY).map_err(refused("reading samples"))?;
    // `samples_lost` is the last word of `struct work` (bpf/penstock.bpf.c).
    let last_word = |bytes: &[u8]| bytes.last_chunk().map_or(0, |word| u64::from_ne_bytes(*word));
    Ok(cpus.unwrap_or_default().iter().map(|bytes| last_word(bytes)).sum())
}
