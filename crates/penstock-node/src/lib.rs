// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemon of one node: keeps a policy in force, remembers it, answers the API and serves metrics.
//!
//! [`keeper`] holds the [`store`] and the data plane and keeps the two in step; the other modules ask it. [`service`] is the API,
//! [`serve`] the process.

mod address;
mod attend;
pub mod changes;
pub mod clock;
pub mod compiled;
mod difference;
mod error;
mod explain;
pub mod keeper;
pub mod leases;
pub mod lending;
pub mod limits;
mod metrics;
mod names;
pub mod places;
pub mod readings;
pub mod recent;
pub mod rows;
mod serve;
mod service;
mod shares;
mod socket;
mod source;
pub mod store;
pub mod tending;
mod uploads;

pub use attend::Controllers;
pub use error::NodeError;
pub use keeper::Keeper;
pub use serve::{ServeError, Settings, serve};
pub use socket::SocketError;
