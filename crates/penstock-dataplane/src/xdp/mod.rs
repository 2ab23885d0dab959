// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's data plane: tables in BPF maps, and the XDP program that judges packets by them.
//!
//! A [`Generation`] is a policy in the kernel: a program and its maps. Userspace maps the limiter table, the limits of classes and the
//! states of RFC meters into its own memory, and writes there with plain stores.

mod counters;
mod fit;
mod generation;
mod in_force;
mod interface;
mod live;
mod memory;
mod object;
mod pins;
mod ports;
mod prog_run;
mod samples;
mod shaping;
mod shares;

pub use counters::COUNTED_ROWS_MAX;
pub use generation::{Generation, KernelError, LoadOptions, Port, ProgramCost};
pub use live::{PINS, Xdp};
pub use memory::SharedArray;
pub use prog_run::time_program;
