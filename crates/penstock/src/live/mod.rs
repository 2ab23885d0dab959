// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands about a live data plane: the daemon, and those that ask it.

pub mod arguments;
pub(crate) mod client;
mod explain;
mod limits;
mod node;
mod policy;
mod status;
pub(crate) mod text;
mod top;

pub use explain::run as explain;
pub use limits::run as limits;
pub use node::run as node;
pub(crate) use node::{log_to_stderr, stop_signal};
pub use policy::{down, reload, up};
pub use status::run as status;
pub use top::run as top;
