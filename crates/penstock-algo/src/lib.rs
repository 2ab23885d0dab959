// SPDX-License-Identifier: MIT OR Apache-2.0
//! Safe wrapper over the compiled headers of `algo/`: the same bits as every other host.
//!
//! [`wire`] has the structs that cross a border, generated from `algo/include/penstock/wire.h`. [`plane`] is the whole
//! packet path: tables, limiters by the million, batches of frames. The other modules are one limiter each, or what it
//! is made of, and named after their header, which has the equations, the sources and the ranges. A limiter is a
//! compiled profile and its state, and starts with full credit. Time and random numbers are arguments; every value is
//! answered.

pub mod ahab;
pub mod approx;
mod cells;
pub mod circulation;
pub mod hcsfq;
pub mod hsdba;
pub mod limiter;
pub mod logical_meter;
mod memory;
pub mod meter;
pub mod pipeline;
pub mod plane;
pub mod rate;
pub mod red;
pub mod share;
pub mod switchrl;
mod table;
pub mod wheel;
pub mod wire;

/// What a limiter says of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    /// Green, yellow or red.
    pub color: wire::pst_color,
    /// Pass, mark or drop.
    pub verdict: wire::pst_verdict,
    /// Why it does not simply pass.
    pub reason: wire::pst_reason,
}
