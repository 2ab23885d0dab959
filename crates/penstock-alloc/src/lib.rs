// SPDX-License-Identifier: MIT OR Apache-2.0
//! One policy for a whole network (Nimble, sections 3.2 and 4.2): which rate each class may have at each port.
//!
//! Pure and deterministic: a [`model::Network`] in, an [`allocation::Allocation`] out. No clock, no disk, no chance.

pub mod allocation;
pub mod allocator;
mod arena;
pub mod baselines;
pub mod changes;
pub mod compare;
pub mod delta;
pub mod demand;
pub mod file;
mod fill;
mod level;
pub mod map;
mod members;
pub mod model;
mod place;
mod terms;
pub mod topology;
mod warnings;
pub mod what_if;

pub use place::YELLOW_BYTES;
pub use warnings::problems;

use allocation::Allocation;
use model::Network;

/// Who gets what in a network.
pub fn allocate(network: &Network) -> Allocation {
    let terms = terms::Terms::new(network);
    let mut filling = fill::Filling::default();
    filling.run(&terms);
    let ids: Vec<u32> = (0..terms::to_u32(network.classes.len())).collect();
    let mut rates_bps = Vec::new();
    place::place(&terms, &filling, &mut rates_bps);
    let mut allocation = place::allocation(network, &ids, &terms, &filling, &rates_bps);
    allocation.warnings = warnings::warnings(network, &terms);
    allocation
}
