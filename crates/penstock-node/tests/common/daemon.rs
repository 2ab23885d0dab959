// SPDX-License-Identifier: MIT OR Apache-2.0
//! A daemon over a real unix socket and a real port, with the stub for a data plane.

use penstock_algo::wire;
use penstock_api::metrics::Endpoint;
use penstock_api::{NodeClient, v1};
use penstock_dataplane::{Stub, Tap};
use penstock_node::{Controllers, ServeError, Settings, serve};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A daemon in a folder of its own.
pub struct Daemon {
    pub folder: tempfile::TempDir,
    pub tap: Tap,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), ServeError>>,
}

pub fn settings(folder: &Path) -> Settings {
    Settings {
        socket: folder.join("run/node.sock"),
        state: folder.join("state"),
        metrics: Some(Endpoint::listen("127.0.0.1:0".parse().unwrap()).unwrap()),
        metrics_limits: None,
        metrics_limits_max: 2,
        dataplane: "stub",
        counts_limits: None,
        sampling: Duration::from_millis(20),
        controllers: None,
    }
}

impl Daemon {
    pub async fn start() -> (Self, NodeClient) {
        Self::start_in(tempfile::tempdir().unwrap(), Stub::new().tap()).await
    }

    pub async fn start_in(folder: tempfile::TempDir, tap: Tap) -> (Self, NodeClient) {
        Self::start_attending(folder, tap, None).await
    }

    pub async fn start_attending(
        folder: tempfile::TempDir,
        tap: Tap,
        controllers: Option<Controllers>,
    ) -> (Self, NodeClient) {
        let (stop, stopped) = oneshot::channel();
        let kernel = tap.clone();
        let settings = Settings { controllers, ..settings(folder.path()) };
        let socket = settings.socket.clone();
        let task = tokio::spawn(serve(settings, move || Ok(super::kernel(&kernel)), async {
            let _ = stopped.await;
        }));
        let daemon = Self { folder, tap, stop: Some(stop), task };
        for _ in 0..500 {
            if let Ok(client) = penstock_api::connect(&socket).await {
                return (daemon, client);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the daemon does not start: {:?}", daemon.task.await);
    }

    pub fn socket(&self) -> PathBuf {
        settings(self.folder.path()).socket
    }

    pub async fn stop(mut self) -> (tempfile::TempDir, Tap) {
        self.stop.take().unwrap().send(()).unwrap();
        self.task.await.unwrap().unwrap();
        assert!(!settings(self.folder.path()).socket.exists());
        (self.folder, self.tap)
    }
}

/// What came of a policy that is right.
pub fn change(outcome: v1::change_reply::Outcome) -> v1::Change {
    match outcome {
        v1::change_reply::Outcome::Change(change) => change,
        v1::change_reply::Outcome::Diagnostics(found) => panic!("{}", found.text),
    }
}

/// Of a packet from 192.0.2.1, UDP.
pub fn key(dst: [u8; 4]) -> wire::Key {
    let mut key = wire::Key::default();
    key.words[0] = u64::from(u32::from_be_bytes([192, 0, 2, 1])) << 32 | u64::from(u32::from_be_bytes(dst));
    key.words[1] = (4 | u64::from(wire::PST_KEY_HAS_PORTS)) << 56 | 17 << 48 | 1000 << 16 | 53;
    key
}

/// What the metrics' port answers.
pub async fn get(address: &str, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}
