// SPDX-License-Identifier: MIT OR Apache-2.0
//! What limiters take in memory, in the layouts that DragonKing compares (Fig. 5) and in ours.

use crate::LabError;
use crate::computation::{ROWS, plan_with_rows};
use crate::results::Metrics;
use crate::stats::real;
use penstock_algo::plane::Rng;
use penstock_algo::wire;
use serde::Deserialize;

/// A five-tuple of IPv4.
const KEY_BYTES: usize = 13;
const PAGE_BYTES: usize = 4096;

/// Limiters, in all layouts.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layouts {
    /// How many.
    pub limiters: u32,
}

/// Nimble: the meter of a switch, with its four parameters (DragonKing, footnote 3).
#[repr(C, packed)]
#[derive(Clone, Copy)]
struct Nimble {
    key: [u8; KEY_BYTES],
    cir: u64,
    cbs: u64,
    pir: u64,
    pbs: u64,
}

/// `RegMeter`: two counters of tokens in registers; bursts are shared (section III-B).
#[repr(C, packed)]
#[derive(Clone, Copy)]
struct RegMeter {
    key: [u8; KEY_BYTES],
    committed_tokens: u64,
    peak_tokens: u64,
}

/// `SwRL`: what makes time into tokens, and the tokens (footnote 5).
#[repr(C, packed)]
#[derive(Clone, Copy)]
struct SwRl {
    key: [u8; KEY_BYTES],
    cir: u64,
    pir: u64,
    tokens: u64,
}

/// A layout as a table without gaps: entries, what each has in a meter or in registers, and how one is made.
trait Layout: Copy {
    const NAME: &'static str;
    /// Bytes that a switch has in a meter or in registers, and so in MAP RAM: what packets change of all but Nimble's. Of its meter the paper
    /// lists the four parameters and not what packets change, so these stand for it.
    const STATE_BYTES: usize;
    fn made(key: [u8; KEY_BYTES], number: u64) -> Self;
}

impl Layout for Nimble {
    const NAME: &'static str = "nimble";
    const STATE_BYTES: usize = 32;
    fn made(key: [u8; KEY_BYTES], number: u64) -> Self {
        Self { key, cir: number, cbs: number, pir: number, pbs: number }
    }
}

impl Layout for RegMeter {
    const NAME: &'static str = "regmeter";
    const STATE_BYTES: usize = 16;
    fn made(key: [u8; KEY_BYTES], number: u64) -> Self {
        Self { key, committed_tokens: number, peak_tokens: number }
    }
}

impl Layout for SwRl {
    const NAME: &'static str = "swrl";
    const STATE_BYTES: usize = 8;
    fn made(key: [u8; KEY_BYTES], number: u64) -> Self {
        Self { key, cir: number, pir: number, tokens: number }
    }
}

impl Layout for wire::pst_compact_entry {
    const NAME: &'static str = "dragonking";
    const STATE_BYTES: usize = 4;
    fn made(key: [u8; KEY_BYTES], number: u64) -> Self {
        Self { key, rate_code: 1, lft: u32::try_from(number >> 32).unwrap_or(0) }
    }
}

/// Each layout with its numbers.
///
/// # Errors
/// The kernel does not tell what is resident.
pub fn measure(run: Layouts) -> Result<Vec<(&'static str, Metrics)>, LabError> {
    Ok(vec![
        table::<Nimble>(run.limiters)?,
        table::<RegMeter>(run.limiters)?,
        table::<SwRl>(run.limiters)?,
        table::<wire::pst_compact_entry>(run.limiters)?,
        ("penstock", ours(run.limiters)?),
    ])
}

fn table<L: Layout>(limiters: u32) -> Result<(&'static str, Metrics), LabError> {
    let mut rng = Rng::new(1);
    let entry = |_| {
        let (low, high) = (rng.next_u64(), rng.next_u64());
        let mut key = [0; KEY_BYTES];
        key[..8].copy_from_slice(&low.to_ne_bytes());
        key[8..].copy_from_slice(&high.to_ne_bytes()[..KEY_BYTES - 8]);
        L::made(key, high)
    };
    let entries: Vec<L> = (0..limiters).map(entry).collect();
    let state = limiters as usize * L::STATE_BYTES;
    Ok((L::NAME, metrics(limiters, real(size_of::<L>() as u64), resident_bytes(&entries)?, state)))
}

/// The table as the data planes have it, with its spare room.
fn ours(limiters: u32) -> Result<Metrics, LabError> {
    let plan = plan_with_rows(ROWS, limiters, |_| "60kbit/s".to_owned())?;
    let plane = penstock_dataplane::load(&plan, 1, 0)?;
    let buckets = plane.image().limiter_buckets;
    let slots = size_of_val(&wire::Bucket::default().states) / size_of::<u64>();
    let entry = real(size_of::<wire::Bucket>() as u64) / real(slots as u64);
    Ok(metrics(limiters, entry, resident_bytes(buckets)?, buckets.len() * slots * size_of::<u64>()))
}

fn metrics(limiters: u32, entry: f64, resident: usize, state: usize) -> Metrics {
    [
        ("entry_bytes".to_owned(), entry),
        ("memory".to_owned(), real(resident as u64) / 1e6),
        ("bytes_each".to_owned(), real(resident as u64) / f64::from(limiters)),
        ("state_memory".to_owned(), real(state as u64) / 1e6),
    ]
    .into()
}

/// What the kernel has given for a slice, in whole pages.
fn resident_bytes<T>(slice: &[T]) -> Result<usize, LabError> {
    let first = slice.as_ptr().addr() / PAGE_BYTES * PAGE_BYTES;
    let end = slice.as_ptr().addr() + size_of_val(slice);
    let mut pages = vec![0_u8; (end - first).div_ceil(PAGE_BYTES)];
    // SAFETY: it reads no memory of ours, and writes a byte for each page from the first one on.
    let failed = unsafe { nix::libc::mincore(first as *mut _, end - first, pages.as_mut_ptr()) };
    if failed != 0 {
        return Err(LabError::io("asking what memory is resident", std::io::Error::last_os_error()));
    }
    Ok(pages.iter().filter(|page| **page & 1 == 1).count() * PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_as_long_as_the_paper_says() {
        let all = measure(Layouts { limiters: 20_000 }).unwrap();
        let bytes = |name: &str, metric: &str| all.iter().find(|(series, _)| *series == name).unwrap().1[metric];
        for (name, length) in [("nimble", 45.0), ("regmeter", 29.0), ("swrl", 37.0), ("dragonking", 19.0)] {
            assert_eq!(bytes(name, "entry_bytes"), length);
            assert!((length..=length * 1.05).contains(&bytes(name, "bytes_each")), "{name}: {all:?}");
        }
        assert!((21.0..30.0).contains(&bytes("penstock", "bytes_each")), "{all:?}");
    }
}
