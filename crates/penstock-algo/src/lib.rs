// SPDX-License-Identifier: MIT OR Apache-2.0
//! Safe wrapper over the compiled headers of `algo/`: the same bits as every other host.
//!
//! [`wire`] has the structs that cross a border, generated from `algo/include/penstock/wire.h`.

pub mod rate;
pub mod wire;
