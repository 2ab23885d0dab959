// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the benches of live packets share: frames, the way that they go, and CPUs.

pub mod cpu;
pub mod network;
