// SPDX-License-Identifier: MIT OR Apache-2.0
//! One policy for a whole network (Nimble, sections 3.2 and 4.2): which rate each class may have at each port.
//!
//! Pure and deterministic: a [`model::Network`] in, an [`allocation::Allocation`] out. No clock, no disk, no chance.

pub mod allocation;
pub mod file;
pub mod model;
pub mod topology;
