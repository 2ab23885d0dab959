// SPDX-License-Identifier: MIT OR Apache-2.0
//! A real etcd on loopback, with one member or more, that can be hurt.

use etcd_client::Client;
use penstock_controller::store::{EtcdOptions, Store};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long etcd may take to answer at first, on a machine that has other things to do.
const START: Duration = Duration::from_secs(60);

/// A cluster. It is gone with its data when this is dropped.
pub struct Etcd {
    members: Vec<Member>,
    folder: tempfile::TempDir,
    extra: Vec<String>,
}

struct Member {
    name: String,
    client: String,
    peer: String,
    child: Option<Child>,
}

impl Etcd {
    /// One member.
    pub async fn one() -> Self {
        Self::of(1).await
    }

    /// As many members as asked for; all answer when this returns.
    pub async fn of(members: usize) -> Self {
        Self::with(members, "http", &[]).await
    }

    /// With more arguments, and clients that come by `scheme`. Who comes by `https` waits for it with a certificate of its own.
    pub async fn with(members: usize, scheme: &str, extra: &[&str]) -> Self {
        // All at once, so that no port is chosen twice.
        let sockets: Vec<_> = (0..2 * members).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let port = |index: usize| sockets[index].local_addr().unwrap().port();
        let member = |index: usize| Member {
            name: format!("m{index}"),
            client: format!("{scheme}://127.0.0.1:{}", port(2 * index)),
            peer: format!("http://127.0.0.1:{}", port(2 * index + 1)),
            child: None,
        };
        let members = (0..members).map(member).collect();
        let extra = extra.iter().map(|&argument| argument.to_owned()).collect();
        let mut etcd = Self { members, folder: tempfile::tempdir().unwrap(), extra };
        drop(sockets);
        (0..etcd.members.len()).for_each(|index| etcd.start(index));
        if scheme == "http" {
            for index in 0..etcd.members.len() {
                etcd.answers(index).await;
            }
        }
        etcd
    }

    /// The addresses of all members.
    pub fn addresses(&self) -> Vec<String> {
        self.members.iter().map(|member| member.client.clone()).collect()
    }

    /// A store in it.
    pub async fn store(&self) -> Store {
        Store::etcd(&self.options()).await.unwrap()
    }

    pub fn options(&self) -> EtcdOptions {
        EtcdOptions { endpoints: self.addresses(), ..EtcdOptions::default() }
    }

    /// A client of one member.
    pub async fn client(&self, index: usize) -> Client {
        Client::connect([&self.members[index].client], None).await.unwrap()
    }

    /// Which member leads the others.
    pub async fn leader(&self) -> usize {
        for index in 0..self.members.len() {
            let status = self.client(index).await.status().await.unwrap();
            if status.leader() == status.header().unwrap().member_id() {
                return index;
            }
        }
        panic!("no member of etcd leads");
    }

    /// Starts a member with the data it has.
    pub fn start(&mut self, index: usize) {
        let cluster: Vec<_> = self.members.iter().map(|member| format!("{}={}", member.name, member.peer)).collect();
        let member = &mut self.members[index];
        let folder = self.folder.path().join(&member.name);
        let log = File::options().create(true).append(true).open(folder.with_extension("log")).unwrap();
        let child = Command::new("etcd")
            .args(["--name", &member.name, "--data-dir"])
            .arg(&folder)
            .args(["--listen-client-urls", &member.client, "--advertise-client-urls", &member.client])
            .args(["--listen-peer-urls", &member.peer, "--initial-advertise-peer-urls", &member.peer])
            .args(["--initial-cluster", &cluster.join(",")])
            .args(&self.extra)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        member.child =
            Some(child.expect("cannot start `etcd`; is Debian's package etcd-server there? `make setup` installs it"));
    }

    /// Waits until a member answers.
    pub async fn answers(&mut self, index: usize) {
        let begin = Instant::now();
        while begin.elapsed() < START {
            let mut client = self.client(index).await;
            if let Ok(Ok(_)) = tokio::time::timeout(Duration::from_secs(1), client.get("x", None)).await {
                return;
            }
            let ended = self.members[index].child.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "etcd ended: {}", self.log(index));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("etcd does not answer: {}", self.log(index));
    }

    fn log(&self, index: usize) -> String {
        let path: PathBuf = self.folder.path().join(&self.members[index].name).with_extension("log");
        std::fs::read_to_string(path).unwrap()
    }

    /// Ends a member, as by SIGKILL; its data stay.
    pub fn kill(&mut self, index: usize) {
        if let Some(mut child) = self.members[index].child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Halts a member: it keeps its connections and says nothing.
    pub fn pause(&self, index: usize) {
        self.signal(index, Signal::STOP);
    }

    /// A member goes on.
    pub fn resume(&self, index: usize) {
        self.signal(index, Signal::CONT);
    }

    fn signal(&self, index: usize, signal: Signal) {
        signal_to(self.members[index].child.as_ref().unwrap(), signal);
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        (0..self.members.len()).for_each(|index| self.kill(index));
    }
}

/// Sends a signal to a process that was started here; one that is to halt has halted when this returns.
pub fn signal_to(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
    while signal == Signal::STOP && !has_halted(child.id()) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// All of its threads.
fn has_halted(process: u32) -> bool {
    let mut threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    threads.all(|thread| {
        let stat = std::fs::read_to_string(thread.unwrap().path().join("stat"));
        stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T')))
    })
}
