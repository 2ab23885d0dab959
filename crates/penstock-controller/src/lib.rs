// SPDX-License-Identifier: MIT OR Apache-2.0
//! The controller: keeps one policy for a whole network, and lends nodes their limits.
//!
//! [`core`] is what a leader knows and does, without clocks, streams or stores; [`lead`] runs it; [`replica`] campaigns to lead; [`service`]
//! is the API, [`networks`] the network read, [`store`] where it is, [`metrics`] what others see of it, [`serve`] the process.

mod access;
mod change;
pub mod core;
mod counts;
mod lead;
mod metrics;
mod networks;
mod replica;
mod serve;
mod service;
pub mod store;

pub use crate::core::Settings;
pub use metrics::{AGGREGATES_MAX, Metrics};
pub use serve::{Options, ServeError, listen, serve};
