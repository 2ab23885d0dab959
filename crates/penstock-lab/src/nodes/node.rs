// SPDX-License-Identifier: MIT OR Apache-2.0
//! A node's daemon with its kernel data plane, and a machine that loses its power.

use super::control::certificate_of;
use crate::LabError;
use crate::netns::{Namespace, pins_of};
use crate::process::{Background, Stop, run_words};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);
/// What tells one start of a machine from another.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A node. Dropping it kills its daemon; its programs go with its namespace.
pub struct Node {
    program: String,
    name: String,
    namespace: String,
    folder: PathBuf,
    /// Of all replicas; none where no controller is attended.
    controllers: Option<String>,
    certificates: PathBuf,
    boots: u32,
    daemon: Option<Background>,
}

impl Node {
    /// Starts a node's daemon and puts its policy into force.
    ///
    /// # Errors
    /// It does not start, or refuses the policy.
    pub fn start(
        program: &str,
        name: &str,
        namespace: &Namespace,
        policy: &str,
        (folder, controllers): (&Path, Option<String>),
        stop: &Stop,
    ) -> Result<Self, LabError> {
        let mut node = Self {
            program: program.to_owned(),
            name: name.to_owned(),
            namespace: namespace.name().to_owned(),
            folder: folder.join(name),
            controllers,
            certificates: folder.to_owned(),
            boots: 0,
            daemon: None,
        };
        let failed = |source| LabError::io("the folder of a node", source);
        std::fs::create_dir_all(&node.folder).map_err(failed)?;
        std::fs::write(node.path("policy.yaml"), policy).map_err(failed)?;
        node.boot()?;
        stop.wait_for("waiting for a node", PATIENCE, || Ok(node.ask(&["status"]).is_ok()))
            .map_err(|error| node.explain(error))?;
        node.ask(&["up", &node.path("policy.yaml")])?;
        Ok(node)
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Starts the daemon on a machine that has just started: its boot has a number of its own.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn boot(&mut self) -> Result<(), LabError> {
        self.boots += 1;
        let boot = self.path("boot_id");
        let text = format!("00000000-0000-4000-8000-{:012}\n", self.boots);
        std::fs::write(&boot, text).map_err(|source| LabError::io("the number of a boot", source))?;
        let bind = format!("mount --bind {boot} {BOOT_ID} && exec \"$@\"");
        let pins = pins_of(&self.namespace).display().to_string();
        let (socket, state) = (self.path("socket"), self.path("state"));
        let mut words: Vec<&str> = vec!["--mount", "sh", "-c", &bind, "sh", &self.program, "node", "--metrics", "off"];
        words.extend(["--netns", &self.namespace, "--pins", &pins, "--socket", &socket, "--state", &state]);
        let certificate = certificate_of(&self.certificates, &self.name);
        if let Some(controllers) = &self.controllers {
            words.extend(["--name", &self.name, "--controller", controllers]);
            words.extend(certificate.iter().map(String::as_str));
        }
        self.daemon = Some(Background::start_here("unshare", &words)?);
        Ok(())
    }

    /// Takes the machine's power: the daemon, its programs in the kernel and what `/run` has are gone. Its disk stays.
    ///
    /// # Errors
    /// The kernel keeps something.
    pub fn lose_power(&mut self) -> Result<(), LabError> {
        self.daemon = None;
        let failed = |source| LabError::io("the pins of a node", source);
        std::fs::remove_dir_all(pins_of(&self.namespace)).map_err(failed)?;
        for device in ["lan", "wan"] {
            // Where the pin was the link, it is gone already.
            let _ = run_words(&["ip", "-n", &self.namespace, "link", "set", "dev", device, "xdp", "off"]);
        }
        let _ = std::fs::remove_file(self.path("socket"));
        Ok(())
    }

    /// Gives a limit of the node's own policy another rate.
    ///
    /// # Errors
    /// It is refused.
    pub fn set(&self, limit: &str, rate_bps: u64) -> Result<(), LabError> {
        self.ask(&["limits", "set", limit, &format!("{rate_bps}bit/s")]).map(drop)
    }

    fn ask(&self, words: &[&str]) -> Result<String, LabError> {
        let socket = self.path("socket");
        let all: Vec<&str> =
            [self.program.as_str()].into_iter().chain(words.iter().copied()).chain(["--socket", &socket]).collect();
        run_words(&all)
    }

    fn explain(&self, error: LabError) -> LabError {
        let said = self.daemon.as_ref().and_then(|daemon| daemon.output().ok()).unwrap_or_default();
        match error {
            LabError::Command { command, output } => LabError::Command { command, output: format!("{output}; {said}") },
            other => other,
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.daemon = None;
        let _ = std::fs::remove_dir_all(pins_of(&self.namespace));
    }
}
