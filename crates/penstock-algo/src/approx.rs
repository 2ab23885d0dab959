// SPDX-License-Identifier: MIT OR Apache-2.0
//! Multiplication and division by table, as a switch does them: `algo/include/penstock/approx.h`.

use crate::memory::Memory;
use std::ffi::c_void;
use std::ops::RangeInclusive;

unsafe extern "C" {
    safe fn pst_host_approx_starts_max() -> u32;
    fn pst_host_approx_cut(low: u32, high: u32, r_numerator: u32, r_denominator: u32, starts: *mut u32) -> u32;
    fn pst_host_approx_index(starts: *const u32, count: u32, value: u32) -> u32;
    safe fn pst_host_approx_table_bytes() -> usize;
    fn pst_host_approx_table(out: *mut c_void, x_starts: *const u32, x_count: u32, y_starts: *const u32, y_count: u32);
    fn pst_host_adt_build(table: *mut c_void, values: *mut u64);
    fn pst_host_amt_build(table: *mut c_void, values: *mut u64);
    fn pst_host_adt_divide_q32(table: *const c_void, x: u32, y: u32) -> u64;
    fn pst_host_amt_multiply_x2(table: *const c_void, x: u32, y: u32) -> u64;
    safe fn pst_host_tcam_bits_max() -> u32;
    fn pst_host_tcam_entries(operand_bits: u32, b: u32) -> u32;
    fn pst_host_tcam_multiply(factor: u64, operand: u64, b: u32) -> u64;
}

/// One operand's range, cut into intervals.
#[derive(Debug, Clone)]
pub struct Axis {
    /// Where intervals start; the last element is where the next one would.
    starts: Vec<u32>,
    count: u32,
}

impl Axis {
    /// Cuts `range` into intervals that reach from x to x (1 + r), r = numerator / denominator. None unless
    /// 1 <= low <= high < 2^30, 0 < r < 1, and there are at most 2^16 of them.
    #[must_use]
    pub fn new(range: RangeInclusive<u32>, r_numerator: u32, r_denominator: u32) -> Option<Self> {
        let mut starts = vec![0; pst_host_approx_starts_max() as usize];
        // SAFETY: `starts` has the length that C asks for.
        let count = unsafe {
            pst_host_approx_cut(*range.start(), *range.end(), r_numerator, r_denominator, starts.as_mut_ptr())
        };
        starts.truncate(count as usize + 1);
        starts.shrink_to_fit();
        (count > 0).then_some(Self { starts, count })
    }

    /// Number of intervals.
    #[must_use]
    pub fn intervals(&self) -> u32 {
        self.count
    }

    /// The interval of a value; the nearest one of a value outside the range.
    #[must_use]
    pub fn interval(&self, value: u32) -> RangeInclusive<u32> {
        // SAFETY: `starts` has `count` + 1 elements.
        let index = unsafe { pst_host_approx_index(self.starts.as_ptr(), self.count, value) } as usize;
        self.starts[index]..=self.starts[index + 1] - 1
    }
}

/// What C's table points into, and the table. None of it changes once it is built.
#[derive(Debug)]
struct Table {
    memory: Memory,
    _x: Axis,
    _y: Axis,
    _values: Vec<u64>,
}

impl Table {
    /// # Safety
    /// `build` fills as many values as the table has.
    unsafe fn new(x: Axis, y: Axis, build: unsafe extern "C" fn(*mut c_void, *mut u64)) -> Self {
        let mut memory = Memory::new(pst_host_approx_table_bytes());
        let mut values = vec![0; x.count as usize * y.count as usize];
        // SAFETY: the axes have their count + 1 elements, `memory` the size of a table, `values` one element a pair.
        // All are on the heap, where they stay when this struct moves.
        unsafe {
            pst_host_approx_table(memory.write(), x.starts.as_ptr(), x.count, y.starts.as_ptr(), y.count);
            build(memory.write(), values.as_mut_ptr());
        }
        Self { memory, _x: x, _y: y, _values: values }
    }
}

/// Approximate division table (SwitchRL, section 6). Takes 8 bytes for each pair of intervals.
#[derive(Debug)]
pub struct Adt(Table);

impl Adt {
    /// The table for x / y.
    #[must_use]
    pub fn new(x: Axis, y: Axis) -> Self {
        // SAFETY: C fills one value a pair.
        Self(unsafe { Table::new(x, y, pst_host_adt_build) })
    }

    /// x / y in 2^-32.
    #[must_use]
    pub fn divide_q32(&self, x: u32, y: u32) -> u64 {
        // SAFETY: a whole table; the lookup is total.
        unsafe { pst_host_adt_divide_q32(self.table(), x, y) }
    }

    pub(crate) fn table(&self) -> *const c_void {
        self.0.memory.read()
    }
}

/// Approximate multiplication table (SwitchRL, appendix A). Takes 8 bytes for each pair of intervals.
#[derive(Debug)]
pub struct Amt(Table);

impl Amt {
    /// The table for x * y.
    #[must_use]
    pub fn new(x: Axis, y: Axis) -> Self {
        // SAFETY: C fills one value a pair.
        Self(unsafe { Table::new(x, y, pst_host_amt_build) })
    }

    /// Twice x * y.
    #[must_use]
    pub fn multiply_x2(&self, x: u32, y: u32) -> u64 {
        // SAFETY: a whole table; the lookup is total.
        unsafe { pst_host_amt_multiply_x2(self.0.memory.read(), x, y) }
    }
}

/// Multiplication by an operand that is known by its most significant bits (Nimble, Algorithm 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcam {
    bits: u32,
}

impl Tcam {
    /// Looks at `bits` bits: 1 to 24, else None.
    #[must_use]
    pub fn new(bits: u32) -> Option<Self> {
        (1..=pst_host_tcam_bits_max()).contains(&bits).then_some(Self { bits })
    }

    /// Entries that operands of so many bits take.
    #[must_use]
    pub fn entries(self, operand_bits: u32) -> u32 {
        // SAFETY: the number of bits is one that C takes.
        unsafe { pst_host_tcam_entries(operand_bits, self.bits) }
    }

    /// factor * operand; below 2^63 or it wraps.
    #[must_use]
    pub fn multiply(self, factor: u64, operand: u64) -> u64 {
        // SAFETY: the number of bits is one that C takes.
        unsafe { pst_host_tcam_multiply(factor, operand, self.bits) }
    }
}
