// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who runs on which CPU, and for how long.

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::time::Duration;

/// What the engine calls its thread.
const ENGINE: &str = "shaper";

/// Has this thread, and those that it starts, run on one CPU.
pub fn pin(cpu: usize) -> Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu)?;
    sched_setaffinity(Pid::from_raw(0), &cpus).context("choosing a CPU")
}

/// Goes before what others run here.
pub fn hurry() -> Result<()> {
    // SAFETY: no memory is passed.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()).context("a priority"),
    }
}

/// What the engine's threads were on a CPU for so far.
pub fn engine() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten().map(|entry| entry.path());
    let ours = tasks.filter(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == ENGINE));
    let on_cpu = |task: std::path::PathBuf| {
        let text = std::fs::read_to_string(task.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    };
    ours.filter_map(on_cpu).sum()
}
