// SPDX-License-Identifier: MIT OR Apache-2.0
//! One policy for a whole network (Nimble, sections 3.2 and 4.2): which rate each class may have at each port.
//!
//! Pure and deterministic: a [`model::Network`] in, an [`allocation::Allocation`] out. No clock, no disk, no chance.

pub mod allocation;
mod arena;
pub mod baselines;
pub mod changes;
pub mod compare;
pub mod file;
mod fill;
mod level;
pub mod map;
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
    let mut allocation = place::place(network, &terms, &filling);
    allocation.warnings = warnings::warnings(network, &terms);
    allocation
}
