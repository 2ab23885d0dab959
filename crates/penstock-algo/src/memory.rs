// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory for a struct whose fields C alone knows, so that no struct is written a second time here.

use std::ffi::c_void;

/// Its words move never, and no struct of `algo/` wants to be aligned to more than one of them.
#[derive(Debug, Clone)]
pub(crate) struct Memory(Vec<u64>);

impl Memory {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(vec![0; bytes.div_ceil(size_of::<u64>())])
    }

    pub(crate) fn read(&self) -> *const c_void {
        self.0.as_ptr().cast()
    }

    pub(crate) fn write(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }
}
