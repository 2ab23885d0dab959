// SPDX-License-Identifier: MIT OR Apache-2.0
//! etcd, the controller's replicas, and what can go wrong with them.

use super::rig::{CONTROL_PREFIX, Rig};
use super::spec::Network;
use crate::LabError;
use crate::process::{Background, Stop, run_words};
use nix::sys::signal::Signal;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

const CONTROLLER_PORT: u16 = 9474;
const ETCD_PORT: u16 = 2379;
/// How long anything may take to start, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(30);

/// The part of `penstock network status --json` that the lab reads.
#[derive(Debug, Default, Deserialize)]
struct Standing {
    #[serde(default)]
    leader: String,
    #[serde(default)]
    nodes_attending: u64,
    #[serde(default)]
    nodes: Vec<NodeStanding>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
struct NodeStanding {
    #[serde(default)]
    problems: Vec<String>,
}

/// etcd and controllers in the control network's namespace.
pub struct Control {
    program: String,
    folder: PathBuf,
    namespace: String,
    lease: String,
    etcd: Vec<Option<Background>>,
    controllers: Vec<Option<Background>>,
}

/// The certificate of somebody, as arguments.
#[must_use]
pub fn certificate_of(folder: &Path, name: &str) -> Vec<String> {
    let file = |name: &str| folder.join("ca").join(name).display().to_string();
    let (ca, certificate, key) = (file("ca.crt"), file(&format!("{name}.crt")), file(&format!("{name}.key")));
    ["--tls-ca".to_owned(), ca, "--tls-cert".to_owned(), certificate, "--tls-key".to_owned(), key].into()
}

/// HOST:PORT of all replicas.
#[must_use]
pub fn addresses(controllers: usize) -> String {
    let address = |index: usize| format!("{CONTROL_PREFIX}{}:{CONTROLLER_PORT}", index + 1);
    (0..controllers).map(address).collect::<Vec<_>>().join(",")
}

impl Control {
    /// Makes certificates, and starts all of them.
    ///
    /// # Errors
    /// One does not start.
    pub fn start(program: &str, network: &Network, rig: &Rig, folder: &Path, stop: &Stop) -> Result<Self, LabError> {
        let mut control = Self {
            program: program.to_owned(),
            folder: folder.to_owned(),
            namespace: rig.control.name().to_owned(),
            lease: format!("{}ns", network.lease.0),
            etcd: (0..network.etcd).map(|_| None).collect(),
            controllers: (0..network.controllers).map(|_| None).collect(),
        };
        control.make_certificates(rig.gateways.len())?;
        (0..network.etcd).try_for_each(|member| control.start_etcd(member))?;
        (0..network.controllers).try_for_each(|replica| control.start_controller(replica))?;
        let leads = || Ok(control.standing().is_ok_and(|standing| !standing.leader.is_empty()));
        stop.wait_for("waiting for a controller to lead", PATIENCE, leads).map_err(|error| control.explain(error))?;
        Ok(control)
    }

    fn make_certificates(&self, nodes: usize) -> Result<(), LabError> {
        let ca = self.folder.join("ca").display().to_string();
        run_words(&[&self.program, "ca", "init", &ca])?;
        let issue = |role: &str, name: &str| run_words(&[&self.program, "ca", "issue", &ca, role, name]);
        issue("--write", "lab")?;
        for index in 0..self.controllers.len() {
            issue("--controller", &format!("c{}", index + 1))?;
        }
        (0..nodes).try_for_each(|node| issue("--node", &super::policy::node_name(node)).map(drop))
    }

    fn etcd_url(member: usize, is_peer: bool) -> String {
        let port = usize::from(ETCD_PORT) + 10 * member + usize::from(is_peer);
        format!("http://127.0.0.1:{port}")
    }

    /// Starts a member of etcd, with the data that it has.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_etcd(&mut self, member: usize) -> Result<(), LabError> {
        let members = 0..self.etcd.len();
        let cluster: Vec<String> =
            members.map(|member| format!("m{member}={}", Self::etcd_url(member, true))).collect();
        let (client, peer) = (Self::etcd_url(member, false), Self::etcd_url(member, true));
        let (name, data) = (format!("m{member}"), self.folder.join(format!("etcd{member}")).display().to_string());
        let cluster = cluster.join(",");
        let words = [
            ("--name", &name),
            ("--data-dir", &data),
            ("--listen-client-urls", &client),
            ("--advertise-client-urls", &client),
            ("--listen-peer-urls", &peer),
            ("--initial-advertise-peer-urls", &peer),
            ("--initial-cluster", &cluster),
        ];
        let words: Vec<&str> = words.iter().flat_map(|(key, value)| [*key, value.as_str()]).collect();
        self.etcd[member] = Some(Background::start(&self.namespace, "etcd", &words)?);
        Ok(())
    }

    /// Kills a member of etcd; its data stay.
    pub fn kill_etcd(&mut self, member: usize) {
        self.etcd[member] = None;
    }

    /// Starts a replica.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_controller(&mut self, replica: usize) -> Result<(), LabError> {
        let (name, listen) =
            (format!("c{}", replica + 1), format!("{CONTROL_PREFIX}{}:{CONTROLLER_PORT}", replica + 1));
        let etcd: Vec<String> = (0..self.etcd.len()).map(|member| Self::etcd_url(member, false)).collect();
        let etcd = etcd.join(",");
        let words = ["controller", "--etcd", &etcd, "--name", &name, "--listen", &listen, "--lease", &self.lease];
        let mut words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        words.extend(certificate_of(&self.folder, &name));
        self.controllers[replica] = Some(Background::start(&self.namespace, &self.program, &words)?);
        Ok(())
    }

    /// Kills a replica, as by SIGKILL.
    pub fn kill_controller(&mut self, replica: usize) {
        self.controllers[replica] = None;
    }

    /// Pauses a replica, or lets it go on.
    pub fn pause_controller(&self, replica: usize, is_paused: bool) {
        if let Some(controller) = &self.controllers[replica] {
            controller.signal(if is_paused { Signal::SIGSTOP } else { Signal::SIGCONT });
        }
    }

    /// Which replica leads.
    ///
    /// # Errors
    /// Nobody does.
    pub fn leader(&self) -> Result<usize, LabError> {
        let leader = self.standing()?.leader;
        let number = leader.strip_prefix('c').and_then(|number| number.parse::<usize>().ok());
        let none = || LabError::Output { tool: "penstock network status", what: format!("{leader:?} leads") };
        number.and_then(|number| number.checked_sub(1)).filter(|index| *index < self.controllers.len()).ok_or_else(none)
    }

    /// Puts a network, and waits until all nodes attend.
    ///
    /// # Errors
    /// It is refused, or not kept.
    pub fn put_and_wait(&self, text: &str, nodes: u64, stop: &Stop) -> Result<(), LabError> {
        self.put(text)?;
        let kept = || {
            let standing = self.standing()?;
            let problems = standing.nodes.iter().flat_map(|node| &node.problems).chain(&standing.warnings);
            if let Some(problem) = problems.into_iter().find(|problem| problem.contains("there is no")) {
                return Err(LabError::Computation(format!("the network does not fit its nodes: {problem}")));
            }
            // Where nothing asks for anything, nothing need be lent.
            Ok(standing.nodes_attending == nodes)
        };
        stop.wait_for("waiting for nodes to attend", PATIENCE, kept).map_err(|error| self.explain(error))
    }

    /// Puts a network.
    ///
    /// # Errors
    /// It is refused.
    pub fn put(&self, text: &str) -> Result<(), LabError> {
        let path = self.folder.join("network.yaml");
        std::fs::write(&path, text).map_err(|source| LabError::io("the network file", source))?;
        self.ask(&["put", &path.display().to_string()]).map(drop)
    }

    fn standing(&self) -> Result<Standing, LabError> {
        let text = self.ask(&["status", "--json"])?;
        let wrong = |error: serde_json::Error| LabError::Output {
            tool: "penstock network status",
            what: format!("{error}: {}", text.trim()),
        };
        serde_json::from_str(&text).map_err(wrong)
    }

    fn ask(&self, words: &[&str]) -> Result<String, LabError> {
        let mut all: Vec<String> =
            ["ip", "netns", "exec", &self.namespace, &self.program, "network"].map(str::to_owned).into();
        all.extend(words.iter().map(|&word| word.to_owned()));
        all.extend(["--controller".to_owned(), addresses(self.controllers.len())]);
        all.extend(certificate_of(&self.folder, "lab"));
        run_words(&all.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// What the programs said, behind an error.
    fn explain(&self, error: LabError) -> LabError {
        let all = self.controllers.iter().chain(&self.etcd).flatten();
        let said: Vec<String> = all.filter_map(|one| one.output().ok()).map(|said| tail(&said)).collect();
        match error {
            LabError::Command { command, output } => {
                LabError::Command { command, output: format!("{output}; {}", said.join("; ")) }
            }
            other => other,
        }
    }
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}
