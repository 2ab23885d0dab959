// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements at an address that does not change.

use std::ffi::c_void;
use std::ptr::NonNull;

unsafe extern "C" {
    fn pst_host_advise_huge(memory: *mut c_void, bytes: usize);
}

/// Allocated here, or lent by someone else whose memory a kernel program uses too. Elements are plain memory.
#[derive(Debug)]
pub(crate) enum Cells<T> {
    Owned(Vec<T>),
    Lent { start: NonNull<T>, length: usize },
}

// SAFETY: elements are plain numbers, and what is lent may be used from any thread (contract of `lend`).
unsafe impl<T: Send> Send for Cells<T> {}

impl<T: Copy + Default> Cells<T> {
    /// Defaults, in 2 MB pages where the kernel has them: for what packets touch at random.
    pub(crate) fn new(length: usize) -> Self {
        Self::Owned(large_vec(length))
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Owned(items) => items.len(),
            Self::Lent { length, .. } => *length,
        }
    }

    pub(crate) fn as_ptr(&self) -> *const T {
        match self {
            Self::Owned(items) => items.as_ptr(),
            Self::Lent { start, .. } => start.as_ptr(),
        }
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        match self {
            Self::Owned(items) => items.as_mut_ptr(),
            Self::Lent { start, .. } => start.as_ptr(),
        }
    }

    /// A copy of one element as it is now: others may write it meanwhile.
    pub(crate) fn get(&self, index: usize) -> Option<T> {
        // SAFETY: inside of the memory; any bits make a valid element.
        (index < self.len()).then(|| unsafe { self.as_ptr().add(index).read_volatile() })
    }

    pub(crate) fn at_mut(&mut self, index: usize) -> Option<*mut T> {
        // SAFETY: inside of the memory.
        (index < self.len()).then(|| unsafe { self.as_mut_ptr().add(index) })
    }

    /// All elements, while nobody else writes them.
    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: the memory holds that many elements.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len()) }
    }

    /// Goes on in memory that is lent, which has what is here already and perhaps more behind it.
    ///
    /// # Safety
    /// `start` points to `length` elements which outlive this, and which are changed by whole words only.
    pub(crate) unsafe fn lend(&mut self, start: NonNull<T>, length: usize) {
        assert!(length >= self.len());
        *self = Self::Lent { start, length: self.len() };
    }
}

/// Defaults, in 2 MB pages where the kernel has them.
pub(crate) fn large_vec<T: Clone + Default>(length: usize) -> Vec<T> {
    let mut items: Vec<T> = Vec::with_capacity(length);
    let bytes = length * size_of::<T>();
    // SAFETY: the allocation has room for `length` elements; advice changes no contents.
    unsafe { pst_host_advise_huge(items.as_mut_ptr().cast(), bytes) };
    items.resize(length, T::default());
    items
}
