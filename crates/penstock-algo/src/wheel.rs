// SPDX-License-Identifier: MIT OR Apache-2.0
//! A timing wheel: what waits leaves when its time has come, in constant work: `algo/include/penstock/wheel.h`.

use crate::wire;
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};

unsafe extern "C" {
    fn pst_host_wheel_start(wheel: *mut wire::pst_wheel, now_ns: u64);
    fn pst_host_wheel_put(
        wheel: *mut wire::pst_wheel,
        items: *mut wire::pst_wheel_item,
        item: u32,
        due_ns: u64,
    ) -> bool;
    fn pst_host_wheel_take(wheel: *mut wire::pst_wheel, items: *mut wire::pst_wheel_item, now_ns: u64) -> u32;
    fn pst_host_wheel_next(wheel: *const wire::pst_wheel, next_ns: *mut u64) -> bool;
}

/// Numbers that wait, each until a time of its own. They are those of the caller's things: frames, say.
#[derive(Debug)]
pub struct Wheel {
    wheel: Box<wire::pst_wheel>,
    items: Vec<wire::pst_wheel_item>,
    /// By item: whether it waits. What waits is put once.
    waits: Vec<bool>,
}

impl Wheel {
    /// An empty wheel for items below `items`, which begins at `now_ns`.
    #[must_use]
    pub fn new(items: u32, now_ns: u64) -> Self {
        let mut wheel = empty();
        // SAFETY: the wheel is live, and nothing waits in it.
        unsafe { pst_host_wheel_start(&raw mut *wheel, now_ns) };
        Self { wheel, items: vec![wire::pst_wheel_item::default(); items as usize], waits: vec![false; items as usize] }
    }

    /// Files an item until `due_ns`. False when that lies further ahead than the wheel reaches (68.7 s), when there is no such item, or
    /// when it waits already: then nothing is changed.
    pub fn put(&mut self, item: u32, due_ns: u64) -> bool {
        let Some(waits) = self.waits.get_mut(item as usize).filter(|waits| !**waits) else { return false };
        // SAFETY: the item is one of `items`, as are all that wait; it is in no list.
        *waits = unsafe { pst_host_wheel_put(&raw mut *self.wheel, self.items.as_mut_ptr(), item, due_ns) };
        *waits
    }

    /// Takes the next item whose slot has come, and when it was due: in the order of slots, and in a slot first in, first out.
    pub fn take(&mut self, now_ns: u64) -> Option<(u32, u64)> {
        // SAFETY: all that waits is one of `items`.
        let item = unsafe { pst_host_wheel_take(&raw mut *self.wheel, self.items.as_mut_ptr(), now_ns) };
        *self.waits.get_mut(item as usize)? = false;
        Some((item, self.items[item as usize].due_ns))
    }

    /// When to come next: whoever does takes everything on time. None when nothing waits.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        let mut next_ns = 0;
        // SAFETY: both pointers are live.
        unsafe { pst_host_wheel_next(&raw const *self.wheel, &raw mut next_ns) }.then_some(next_ns)
    }

    /// How many items wait.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.wheel.waiting
    }
}

/// Zeroed memory is an empty wheel. It is too large for a stack.
pub(crate) fn empty() -> Box<wire::pst_wheel> {
    let layout = Layout::new::<wire::pst_wheel>();
    // SAFETY: the layout has a size; all fields are integers, or structs of these, so zeroed memory is a value.
    unsafe {
        let memory = alloc_zeroed(layout).cast::<wire::pst_wheel>();
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        Box::from_raw(memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_item_or_waits_already_is_refused() {
        let mut wheel = Wheel::new(2, 0);
        assert_eq!(wheel.next_ns(), None);
        assert!(wheel.put(1, 5000) && !wheel.put(1, 1) && !wheel.put(2, 1));
        assert!(wheel.put(0, 4096) && !wheel.put(wire::PST_NONE, 1));
        assert_eq!((wheel.next_ns(), wheel.waiting()), (Some(4096), 2));
        assert_eq!((wheel.take(4096), wheel.take(8191)), (Some((0, 4096)), None));
        assert_eq!((wheel.take(8192), wheel.take(u64::MAX), wheel.waiting()), (Some((1, 5000)), None, 0));
        assert!(wheel.put(1, 0), "what was taken can be put again");
    }
}
