// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data planes: whatever loads a compiled policy and judges packets by it.
//!
//! The one that exists is [`Replay`]: frames from a capture or a workload, in virtual time, through the code that every other
//! host runs too.

mod load;
mod names;
mod replay;
pub mod report;
pub mod timeline;
mod verdicts;
pub mod xdp;

pub use load::{LoadError, load};
pub use names::{reason_name, verdict_name};
pub use replay::{Outcome, Replay, ReplayError, Sinks, Watch};
pub use verdicts::VerdictWriter;
