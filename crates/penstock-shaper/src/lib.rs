// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine that holds packets until their turn. The kernel program decides who waits, and until when (`hold.h`); such packets come here
//! by AF_XDP with that time in front of them, wait in a timing wheel (`wheel.h`) or in DragonKing's groups (`circulation.h`), and leave by AF_XDP.
//!
//! A [`Worker`] has one queue of a pair of interfaces, both directions. What waits is counted in memory that the kernel program looks at
//! ([`Lane`]); a worker that does not move for half a second is no worker to it, and what would wait is dropped.

mod queues;
mod ring;
mod schedule;
mod shared;
mod socket;
mod stats;
mod worker;

pub use schedule::Form;
pub use shared::{Lane, Memory, forget_owners};
pub use stats::{BUCKETS, Histogram, Stats};
pub use worker::{Settings, Way, Worker};
