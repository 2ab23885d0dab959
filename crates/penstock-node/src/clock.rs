// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock of leases: it goes on while the machine sleeps, and starts with it.

use rustix::time::{ClockId, clock_gettime};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// CLOCK_BOOTTIME, ns.
#[must_use]
pub fn boottime_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    part(now.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(now.tv_nsec))
}

/// Another one each time that the machine starts. Empty where the kernel does not tell: a daemon that starts is then of another boot.
#[must_use]
pub fn boot_id() -> String {
    std::fs::read_to_string(BOOT_ID).map(|text| text.trim().to_owned()).unwrap_or_default()
}
