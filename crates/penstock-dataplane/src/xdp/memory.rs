// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrays that the kernel and this process share.

use libbpf_rs::MapCore;
use memmap2::{MmapOptions, MmapRaw};
use std::marker::PhantomData;
use std::mem::size_of;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// A BPF array that is mapped here, as elements of plain memory. The kernel changes it meanwhile.
#[derive(Debug)]
pub struct SharedArray<T> {
    map: MmapRaw,
    length: usize,
    elements: PhantomData<T>,
}

impl<T: Copy> SharedArray<T> {
    /// Maps all of an array whose values are `T`.
    ///
    /// # Errors
    /// When the kernel refuses to map it, or its values are not of this size.
    pub fn map<M: MapCore>(map: &M) -> std::io::Result<Self> {
        let length = map.max_entries() as usize;
        if map.value_size() as usize != size_of::<T>() || !size_of::<T>().is_multiple_of(8) {
            return Err(std::io::Error::other(format!("values of {} bytes", map.value_size())));
        }
        let mapped = MmapOptions::new().len(length * size_of::<T>()).map_raw(&map.as_fd())?;
        Ok(Self { map: mapped, length, elements: PhantomData })
    }

    /// Maps a section that holds elements side by side in one value.
    ///
    /// # Errors
    /// When the kernel refuses to map it, or it does not hold whole `T`s.
    pub fn map_section<M: MapCore>(map: &M) -> std::io::Result<Self> {
        let bytes = map.value_size() as usize;
        if !bytes.is_multiple_of(size_of::<T>()) || !size_of::<T>().is_multiple_of(8) {
            return Err(std::io::Error::other(format!("a section of {bytes} bytes")));
        }
        let mapped = MmapOptions::new().len(bytes).map_raw(&map.as_fd())?;
        Ok(Self { map: mapped, length: bytes / size_of::<T>(), elements: PhantomData })
    }

    /// How many elements it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Where it begins, and how many elements it holds.
    #[must_use]
    pub(super) fn lent(&self) -> (NonNull<T>, usize) {
        (NonNull::new(self.map.as_mut_ptr().cast()).unwrap_or(NonNull::dangling()), self.length)
    }

    /// Copies elements to its beginning.
    ///
    /// # Panics
    /// When there are more than it holds.
    pub fn fill(&mut self, values: &[T]) {
        assert!(values.len() <= self.length);
        // SAFETY: both hold at least `values.len()` elements, and T is plain memory.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.map.as_mut_ptr().cast(), values.len()) };
    }

    /// Overwrites one element, by one plain store a word.
    ///
    /// # Panics
    /// When there is no such element.
    pub fn set(&mut self, index: usize, value: T) {
        assert!(index < self.length);
        // SAFETY: inside of the map; volatile, because the kernel reads it.
        unsafe { self.map.as_mut_ptr().cast::<T>().add(index).write_volatile(value) };
    }

    /// A copy of one element.
    ///
    /// # Panics
    /// When there is no such element.
    #[must_use]
    pub fn get(&self, index: usize) -> T {
        assert!(index < self.length);
        // SAFETY: inside of the map; volatile, because the kernel writes it.
        unsafe { self.map.as_ptr().cast::<T>().add(index).read_volatile() }
    }

    /// The words of one element, for changes in one step each.
    ///
    /// # Panics
    /// When there is no such element.
    #[must_use]
    pub fn words(&self, index: usize) -> &[AtomicU64] {
        assert!(index < self.length);
        let words = size_of::<T>() / size_of::<AtomicU64>();
        // SAFETY: inside of the map, which is aligned to a page; elements are whole words (see `map`), and the kernel changes
        // them word by word.
        unsafe { std::slice::from_raw_parts(self.map.as_mut_ptr().cast::<AtomicU64>().add(index * words), words) }
    }
}
