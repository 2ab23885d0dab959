// SPDX-License-Identifier: MIT OR Apache-2.0
//! The controller: keeps one policy for a whole network, and lends nodes their limits.
//!
//! [`core`] is what a leader knows and does, without clocks, streams or stores; [`lead`] runs it; [`replica`] campaigns to lead; [`service`]
//! is the API, [`networks`] the network read, [`store`] where it is, [`serve`] the process.

mod access;
mod change;
pub mod core;
mod lead;
mod networks;
mod replica;
mod serve;
mod service;
pub mod store;

pub use crate::core::Settings;
pub use serve::{Options, ServeError, listen, serve};
