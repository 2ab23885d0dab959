// SPDX-License-Identifier: MIT OR Apache-2.0
//! The controller: keeps one policy for a whole network, and lends nodes their limits.

pub mod store;
