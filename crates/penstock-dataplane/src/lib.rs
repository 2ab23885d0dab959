// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data planes: whatever loads a compiled policy and judges packets by it.
//!
//! [`Replay`] takes frames from a capture or a workload, in virtual time. [`xdp`] has the same tables and the same code in the
//! kernel, on live interfaces. [`Dataplane`] is what any of them can do; [`Stub`] does it in memory, without packets, and [`Chaos`]
//! makes another one fail.

mod chaos;
mod counters;
mod dataplane;
mod edits;
mod in_force;
mod load;
mod names;
mod replay;
pub mod report;
mod same;
mod samples;
mod shares;
mod stub;
mod succession;
pub mod timeline;
mod verdicts;
pub mod xdp;

pub use chaos::{Chaos, Dial};
pub use dataplane::{
    Applied, Dataplane, DataplaneError, Edit, LimitId, LimitReading, Readings, ShapingReading, ShareReading, Standing,
    Times, UserReading, UsersReading,
};
pub use edits::{check_edits, edit_plan, is_live};
pub use load::{LoadError, load};
pub use names::{reason_name, verdict_name};
pub use replay::{Outcome, Replay, ReplayError, Sinks, Watch};
pub use same::{Same, class_of};
pub use shares::Jain;
pub use stub::{Stub, Tap};
pub use verdicts::VerdictWriter;
