// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program as processes of its own.

use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpListener;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long anything may take on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process, killed at the end.
pub struct Process(pub Child);

impl Process {
    pub fn end(&mut self, signal: Signal) -> std::process::ExitStatus {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
        let start = Instant::now();
        while self.0.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        self.0.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a command did.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

pub fn run<S: AsRef<std::ffi::OsStr>>(words: &[S]) -> Done {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("penstock")).args(words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

pub fn fine<S: AsRef<std::ffi::OsStr> + std::fmt::Debug>(words: &[S]) -> String {
    let done = run(words);
    assert_eq!(done.code, 0, "{words:?}: {}", done.err);
    done.out
}

/// Ports that nobody has; all at once, so that none is chosen twice.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

pub fn wait<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(done) = ready() {
            return done;
        }
        assert!(start.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
