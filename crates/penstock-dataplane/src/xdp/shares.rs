// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trees of shares, slices and the sketch of their users, in memory that the kernel's program shares.

use super::generation::{Generation, KernelError};
use super::memory::SharedArray;
use super::pins::Maps;
use penstock_algo::plane::LentShares;
use penstock_algo::wire;

/// Sections of the program that are mapped here.
#[derive(Debug)]
pub(super) struct SharedShares {
    nodes: SharedArray<wire::TreeNode>,
    slices: SharedArray<wire::Slice>,
    filters: SharedArray<u64>,
}

impl SharedShares {
    pub fn map(maps: &Maps) -> Result<Self, KernelError> {
        Ok(Self {
            nodes: section(maps, ".data.nodes")?,
            slices: section(maps, ".data.slices")?,
            filters: section(maps, ".data.filters")?,
        })
    }

    pub fn lent(&self) -> LentShares {
        LentShares { nodes: self.nodes.lent(), slices: self.slices.lent(), filters: self.filters.lent() }
    }
}

impl Generation {
    /// The states of classes, links and users' entries in their trees of shares, shared with the kernel.
    #[must_use]
    pub fn nodes(&self) -> &SharedArray<wire::TreeNode> {
        &self.shares.nodes
    }

    /// Classes whose users have no entries, shared with the kernel.
    #[must_use]
    pub fn slices(&self) -> &SharedArray<wire::Slice> {
        &self.shares.slices
    }

    /// The words of these users' sketch, shared with the kernel.
    #[must_use]
    pub fn filters(&self) -> &SharedArray<u64> {
        &self.shares.filters
    }
}

fn section<T: Copy>(maps: &Maps, name: &'static str) -> Result<SharedArray<T>, KernelError> {
    SharedArray::map_section(maps.get(name)?).map_err(|source| KernelError::Unmapped { map: name, source })
}
