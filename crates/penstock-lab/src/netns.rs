// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network namespaces that go away with their handles.

use crate::LabError;
use crate::process::run;
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::path::Path;

/// Names of the lab's namespaces start so; behind it stands the process that made them.
const PREFIX: &str = "pstlab";
const FOLDER: &str = "/run/netns";

/// A network namespace. Dropping it ends what runs in it and removes it with its devices.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes one, with its loopback up.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn create(role: &str) -> Result<Self, LabError> {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("{PREFIX}-{}-{count}-{role}", std::process::id());
        run(&format!("ip netns add {name}"))?;
        let namespace = Self { name };
        run(&format!("ip -n {} link set lo up", namespace.name))?;
        Ok(namespace)
    }

    /// Its name, for `ip netns exec`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` in it.
    ///
    /// # Errors
    /// `ip` says what.
    pub fn ip(&self, words: &str) -> Result<String, LabError> {
        run(&format!("ip -n {} {words}", self.name))
    }

    /// Runs a program in it to its end.
    ///
    /// # Errors
    /// It fails.
    pub fn exec(&self, words: &str) -> Result<String, LabError> {
        run(&format!("ip netns exec {} {words}", self.name))
    }

    /// Writes a number to a file of /sys as it is in this namespace.
    ///
    /// # Errors
    /// There is no such file, or it does not take the number.
    pub fn write(&self, path: &str, value: u64) -> Result<(), LabError> {
        crate::process::run_words(&["ip", "netns", "exec", &self.name, "sh", "-c", &format!("echo {value} >{path}")])?;
        Ok(())
    }

    /// Calls `work` on a thread that stands in this namespace.
    ///
    /// # Errors
    /// The kernel does not let us in, or `work` fails.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> Result<T, LabError> + Send) -> Result<T, LabError> {
        Self::enter_named(&self.name, work)
    }

    /// The same for a namespace of which only the name is at hand.
    ///
    /// # Errors
    /// As [`Namespace::enter`].
    pub fn enter_named<T: Send>(name: &str, work: impl FnOnce() -> Result<T, LabError> + Send) -> Result<T, LabError> {
        let path = Path::new(FOLDER).join(name);
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let failed = |source| LabError::io(format!("cannot enter {}", path.display()), source);
                let file = File::open(&path).map_err(failed)?;
                setns(file, CloneFlags::CLONE_NEWNET).map_err(|errno| failed(errno.into()))?;
                work()
            });
            match inside.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// Ends what runs in a namespace and removes it. What fails here, the next run's [`remove_stale`] finds.
fn remove(name: &str) {
    let processes = run(&format!("ip netns pids {name}")).unwrap_or_default();
    for process in processes.lines().filter_map(|line| line.trim().parse().ok()) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(process), nix::sys::signal::Signal::SIGKILL);
    }
    let _ = run(&format!("ip netns delete {name}"));
}

/// Removes namespaces of labs that ended without doing so (kill -9, a power cut). Returns their names.
pub fn remove_stale() -> Vec<String> {
    let names = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let stale: Vec<String> = names.filter(|name| is_stale(name)).collect();
    stale.iter().for_each(|name| remove(name));
    stale
}

fn is_stale(name: &str) -> bool {
    let mut parts = name.split('-');
    let ours = parts.next() == Some(PREFIX);
    let maker = parts.next().and_then(|maker| maker.parse::<u32>().ok());
    ours && maker.is_some_and(|maker| !Path::new("/proc").join(maker.to_string()).exists())
}
