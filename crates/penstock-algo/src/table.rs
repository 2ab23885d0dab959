// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table of limiters or of rules, from its one writer's side: `algo/include/penstock/table.h`.

use crate::cells::Cells;
use crate::plane::{BuildError, Entry};
use crate::wire;

#[repr(C, align(64))]
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct AlignedBucket(wire::Bucket);

unsafe extern "C" {
    fn pst_host_buckets_for(keys: u32) -> u32;
    fn pst_host_table_insert(
        buckets: *mut wire::Bucket,
        bucket_count: u32,
        secret: *const wire::HashSecret,
        tuple: *const wire::Tuple,
        value: *const wire::Key,
        profile: u16,
        rate: u32,
        state: u64,
        owners: *mut u32,
        insertion: *mut wire::pst_table_insertion,
    ) -> u32;
    fn pst_host_table_find(
        buckets: *mut wire::Bucket,
        bucket_count: u32,
        secret: *const wire::HashSecret,
        tuple: *const wire::Tuple,
        value: *const wire::Key,
    ) -> u32;
    fn pst_host_table_remove(buckets: *mut wire::Bucket, bucket_count: u32, slot: u32);
    fn pst_host_table_heal(buckets: *mut wire::Bucket, bucket_count: u32);
    fn pst_host_table_change(
        buckets: *mut wire::Bucket,
        bucket_count: u32,
        slot: u32,
        profile: *const wire::Profile,
        rate: u32,
        meter: *mut wire::MeterState,
        now_ns: u64,
    );
}

/// Buckets that a table for so many keys takes. 64 bytes each.
#[must_use]
pub fn buckets_for(keys: u32) -> u32 {
    // SAFETY: a pure function of its argument.
    unsafe { pst_host_buckets_for(keys) }
}

/// Buckets, and who owns each of their slots.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) buckets: Cells<AlignedBucket>,
    /// By slot: an index among the entries, or `PST_NONE`.
    pub(crate) owners: Vec<u32>,
}

/// An entry as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// A profile's index, or a rule's.
    pub target: u16,
    /// Rate code.
    pub rate: u32,
    /// The virtual finish time, or the index of an RFC meter's state.
    pub state: u64,
}

impl Table {
    /// An empty table for so many keys.
    pub(crate) fn for_keys(keys: usize) -> Self {
        let count = buckets_for(u32::try_from(keys).unwrap_or(u32::MAX)) as usize;
        Self { buckets: Cells::new(count), owners: vec![wire::PST_NONE; count * wire::PST_BUCKET_SLOTS as usize] }
    }

    fn count(&self) -> u32 {
        u32::try_from(self.buckets.len()).unwrap_or(0)
    }

    pub(crate) fn view(&mut self) -> wire::pst_table {
        wire::pst_table { buckets: self.buckets.as_mut_ptr().cast(), bucket_count: self.count() }
    }

    pub(crate) fn image(&self) -> &[wire::Bucket] {
        let buckets = self.buckets.as_slice();
        // SAFETY: an AlignedBucket is a Bucket of the same size, at an address that suits a Bucket.
        unsafe { std::slice::from_raw_parts(buckets.as_ptr().cast(), buckets.len()) }
    }

    /// Adds an entry. Returns its slot, and what moved to make room.
    pub(crate) fn insert(
        &mut self,
        tuples: &[wire::Tuple],
        secret: &wire::HashSecret,
        entry: &Entry<'_>,
        state: u64,
        owner: u32,
    ) -> Result<wire::pst_table_insertion, BuildError> {
        let index = owner as usize;
        let tuple = tuples.get(entry.tuple as usize).ok_or(BuildError::UnknownTuple(index))?;
        let mut insertion = wire::pst_table_insertion::default();
        // SAFETY: `buckets` has `count` buckets (AlignedBucket is a Bucket), `owners` one element a slot.
        let result = unsafe {
            pst_host_table_insert(
                self.buckets.as_mut_ptr().cast(),
                self.count(),
                secret,
                tuple,
                entry.value,
                entry.target,
                entry.rate,
                state,
                self.owners.as_mut_ptr(),
                &raw mut insertion,
            )
        };
        match result {
            0 => {
                self.owners[insertion.slot as usize] = owner;
                Ok(insertion)
            }
            1 => Err(BuildError::Full(index)),
            _ => Err(BuildError::Taken(index)),
        }
    }

    /// The slot of a key.
    pub(crate) fn find(&self, secret: &wire::HashSecret, tuple: &wire::Tuple, value: &wire::Key) -> Option<u32> {
        // SAFETY: the buckets are `count`, and a find only reads them.
        let slot =
            unsafe { pst_host_table_find(self.buckets.as_ptr().cast_mut().cast(), self.count(), secret, tuple, value) };
        (slot != wire::PST_NONE).then_some(slot)
    }

    /// The entry in a slot.
    pub(crate) fn slot(&self, slot: u32) -> Option<Slot> {
        let (bucket, index) = (slot / wire::PST_BUCKET_SLOTS, (slot % wire::PST_BUCKET_SLOTS) as usize);
        let bucket = self.buckets.get(bucket as usize)?.0;
        #[allow(clippy::cast_possible_truncation)] // the low 16 bits are the target
        let target = bucket.keys[index] as u16;
        Some(Slot { target, rate: bucket.rates[index], state: bucket.states[index] })
    }

    /// The state in a slot.
    pub(crate) fn state_mut(&mut self, slot: u32) -> Option<*mut u64> {
        let (bucket, index) = (slot / wire::PST_BUCKET_SLOTS, (slot % wire::PST_BUCKET_SLOTS) as usize);
        let bucket = self.buckets.at_mut(bucket as usize)?.cast::<wire::Bucket>();
        // SAFETY: inside of a bucket.
        Some(unsafe { (&raw mut (*bucket).states).cast::<u64>().add(index) })
    }

    /// Takes an entry away.
    pub(crate) fn remove(&mut self, slot: u32) {
        assert!((slot as usize) < self.owners.len());
        // SAFETY: the slot is one of this table's.
        unsafe { pst_host_table_remove(self.buckets.as_mut_ptr().cast(), self.count(), slot) };
        self.owners[slot as usize] = wire::PST_NONE;
    }

    /// Makes whole what a writer that was killed left half done.
    pub(crate) fn heal(&mut self) {
        // SAFETY: the buckets are `count`.
        unsafe { pst_host_table_heal(self.buckets.as_mut_ptr().cast(), self.count()) };
    }

    /// Gives a limiter another rate; a window meter's virtual queue keeps its bytes, and so do the buckets of an RFC meter.
    ///
    /// # Safety
    /// `meter` is the state of the RFC meter in this slot, which others change by compare-and-swap only; null for a window.
    pub(crate) unsafe fn set_rate(
        &mut self,
        slot: u32,
        profile: &wire::Profile,
        rate: u32,
        meter: *mut wire::MeterState,
        now_ns: u64,
    ) {
        assert!((slot as usize) < self.owners.len());
        // SAFETY: the slot is one of this table's; `meter` by this function's contract.
        unsafe {
            pst_host_table_change(self.buckets.as_mut_ptr().cast(), self.count(), slot, profile, rate, meter, now_ns);
        }
    }
}
