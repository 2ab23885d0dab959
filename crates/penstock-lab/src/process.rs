// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that the lab runs. None of them outlives its handle.

use crate::LabError;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often something that should come is looked for.
const POLL: Duration = Duration::from_millis(10);

/// Debian keeps tools of root in folders that are not on everyone's path.
const FOLDERS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Where a program is.
#[must_use]
pub fn find(tool: &str) -> Option<PathBuf> {
    let on_path = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let folders: Vec<PathBuf> = on_path;
    folders.into_iter().chain(FOLDERS.map(PathBuf::from)).map(|folder| folder.join(tool)).find(|path| path.is_file())
}

fn command(tool: &str) -> Command {
    Command::new(find(tool).unwrap_or_else(|| tool.into()))
}

/// Runs a program to its end and returns what it printed. The words are those of a shell's command without quotes.
///
/// # Errors
/// It cannot be started, or says that it failed.
pub fn run(words: &str) -> Result<String, LabError> {
    run_words(&words.split_whitespace().collect::<Vec<_>>())
}

/// The same for words that may have spaces in them.
///
/// # Errors
/// As [`run`].
pub fn run_words(words: &[&str]) -> Result<String, LabError> {
    let mut command = command(words.first().copied().unwrap_or_default());
    let output = command.args(words.iter().skip(1)).stdin(Stdio::null()).output();
    let words = words.join(" ");
    let output = output.map_err(|source| LabError::io(format!("cannot run `{words}`"), source))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LabError::Command { command: words, output: said })
}

/// A program that runs beside us. Dropping it kills it.
#[derive(Debug)]
pub struct Background {
    name: String,
    child: Child,
    output: File,
}

impl Background {
    /// Starts a program in a namespace; what it prints is kept.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start<I: AsRef<OsStr>>(namespace: &str, tool: &str, arguments: &[I]) -> Result<Self, LabError> {
        let program = find(tool).unwrap_or_else(|| tool.into());
        let mut command = command("ip");
        command.args(["netns", "exec", namespace]).arg(program).args(arguments);
        Self::spawn(Self::name(tool, arguments), command)
    }

    /// Starts a program where this one runs. The kernel's file systems are as they are here: behind `ip netns exec` no pins can be seen.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_here<I: AsRef<OsStr>>(tool: &str, arguments: &[I]) -> Result<Self, LabError> {
        let mut command = command(tool);
        command.args(arguments);
        Self::spawn(Self::name(tool, arguments), command)
    }

    fn name<I: AsRef<OsStr>>(tool: &str, arguments: &[I]) -> String {
        let words: Vec<_> = arguments.iter().map(|word| word.as_ref().to_string_lossy().into_owned()).collect();
        format!("{tool} {}", words.join(" "))
    }

    fn spawn(name: String, mut command: Command) -> Result<Self, LabError> {
        let failed = |source| LabError::io(format!("cannot start `{name}`"), source);
        let output = tempfile::tempfile().map_err(failed)?;
        let (stdout, stderr) = (output.try_clone().map_err(failed)?, output.try_clone().map_err(failed)?);
        let child = command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).spawn().map_err(failed)?;
        Ok(Self { name, child, output })
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        // One that has ended and was not waited for is still there: no other process has its number.
        let process = i32::try_from(self.child.id()).unwrap_or(i32::MAX);
        let _ = kill(Pid::from_raw(process), signal);
    }

    /// What it printed so far.
    ///
    /// # Errors
    /// The file system.
    pub fn output(&self) -> Result<String, LabError> {
        let failed = |source| LabError::io(format!("the output of `{}`", self.name), source);
        let length = self.output.metadata().map_err(failed)?.len();
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        // Not from where the file stands: the child shares that place, and writes there.
        self.output.read_exact_at(&mut bytes, 0).map_err(failed)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until it ends, or until `patience` is over: then it is killed. Returns what it printed.
    ///
    /// # Errors
    /// It failed, it took too long, or Ctrl-C was pressed.
    pub fn finish(mut self, patience: Duration, stop: &Stop) -> Result<String, LabError> {
        let deadline = Instant::now() + patience;
        while !self.has_ended() {
            stop.check()?;
            if Instant::now() > deadline {
                let output = format!("it did not end within {patience:?}: {}", tail(&self.output()?));
                return Err(LabError::Command { command: self.name.clone(), output });
            }
            std::thread::sleep(POLL);
        }
        let output = self.output()?;
        match self.child.wait() {
            Ok(status) if status.success() => Ok(output),
            _ => Err(LabError::Command { command: self.name.clone(), output: tail(&output) }),
        }
    }
}

fn tail(text: &str) -> String {
    let text = text.trim();
    let skip = text.chars().count().saturating_sub(400);
    text.chars().skip(skip).collect()
}

impl Drop for Background {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Whether someone wants us to stop.
#[derive(Debug, Clone, Default)]
pub struct Stop(std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Stop {
    /// Asks everyone who has a copy to stop.
    pub fn ask(&self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// Whether someone asked.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// [`LabError::Interrupted`] when someone asked.
    ///
    /// # Errors
    /// Someone asked.
    pub fn check(&self) -> Result<(), LabError> {
        if self.is_asked() { Err(LabError::Interrupted) } else { Ok(()) }
    }

    /// Sleeps, but not on when someone asks.
    ///
    /// # Errors
    /// Someone asked.
    pub fn sleep_until(&self, moment: Instant) -> Result<(), LabError> {
        loop {
            self.check()?;
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(POLL));
        }
    }

    /// Waits until `ready` says so.
    ///
    /// # Errors
    /// Someone asked, `ready` failed, or it took longer than `patience`.
    pub fn wait_for(
        &self,
        what: &str,
        patience: Duration,
        mut ready: impl FnMut() -> Result<bool, LabError>,
    ) -> Result<(), LabError> {
        let deadline = Instant::now() + patience;
        while !ready()? {
            self.check()?;
            if Instant::now() > deadline {
                let output = format!("nothing after {patience:?}");
                return Err(LabError::Command { command: what.to_owned(), output });
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}
