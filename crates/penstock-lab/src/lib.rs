// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab: the papers' experiments, run here, each beside the paper's numbers.
//!
//! A scenario file says what is claimed, what runs, what is measured and when the claim holds. [`run()`] runs one: real hosts in network
//! namespaces, the kernel's own TCP, and Penstock or something to compare it with in the middle.

mod arrivals;
mod computation;
pub mod dctcp;
mod document;
mod enforce;
mod error;
mod experiment;
mod figure;
mod latency;
mod layouts;
mod library;
mod live;
mod load;
mod machine;
mod netns;
mod network;
mod nodes;
mod process;
mod quantity;
pub mod report;
pub mod results;
mod samples;
pub mod scenario;
mod shaping;
mod shares;
mod sketch;
pub mod stats;
pub mod template;
mod topology;
mod updates;
pub mod verdict;
mod watch;
mod wire;

pub use error::LabError;
pub use experiment::{Done, Progress, run};
pub use library::{Library, scenario_name};
pub use machine::Machine;
pub use netns::remove_stale;
pub use process::Stop;
pub use template::Template;
