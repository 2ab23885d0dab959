// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two hosts and a box between them, in network namespaces, for one test.

#![allow(dead_code)] // each test uses a part

use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Host, its interface of the box, its address.
const HOSTS: [(&str, &str, &str); 2] = [("a", "left", "10.9.0.1/24"), ("b", "right", "10.9.0.2/24")];

/// The thread that makes it is in the box's namespace from then on, and its children are.
pub struct Network {
    name: String,
    pins: PathBuf,
}

/// Between packets of a flood.
const FLOOD_GAP: Duration = Duration::from_micros(100);

/// What became of numbered packets.
#[derive(Debug, Default)]
pub struct Counted {
    pub sent: u64,
    pub received: u64,
    pub in_order: bool,
    /// How long they were sent: longer than was asked for where the machine is busy.
    pub time: Duration,
}

pub fn is_root() -> bool {
    // SAFETY: it asks for a number.
    unsafe { libc::geteuid() == 0 }
}

fn run(command: &[&str]) -> String {
    let output = Command::new(command[0]).args(&command[1..]).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

impl Network {
    /// None without root: then the test is skipped.
    pub fn new(name: &str) -> Option<Self> {
        if !is_root() {
            eprintln!("SKIP: network namespaces take root");
            return None;
        }
        let name = format!("pst-{name}-{}", std::process::id());
        let pins = PathBuf::from("/sys/fs/bpf").join(&name);
        let network = Self { name, pins };
        for (host, device, address) in HOSTS {
            run(&["ip", "netns", "add", &network.host(host)]);
            if host == "a" {
                // SAFETY: no memory is passed.
                assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "a namespace for the box");
            }
            network.connect(host, device, address);
        }
        network.introduce();
        // A busy machine is slow to say that a cable is plugged in.
        let is_plugged = || !network.interfaces().contains("NO-CARRIER");
        assert!((0..100).any(|_| is_plugged() || {
            std::thread::sleep(Duration::from_millis(20));
            false
        }));
        Some(network)
    }

    /// A host's cable, with its two ends.
    fn connect(&self, host: &str, device: &str, address: &str) {
        let peer = ["peer", "name", "eth0", "netns", &self.host(host)];
        run(&[&["ip", "link", "add", device, "type", "veth"][..], &peer[..]].concat());
        run(&["ip", "link", "set", device, "up"]);
        self.at(host, &["ip", "addr", "add", address, "dev", "eth0"]);
        self.at(host, &["ip", "link", "set", "eth0", "up"]);
        self.at(host, &["ip", "link", "set", "lo", "up"]);
        // A redirect loses half-made checksums, and enters a veth by its peer's NAPI, which GRO switches on.
        self.at(host, &["ethtool", "-K", "eth0", "tx", "off", "gro", "on"]);
    }

    /// Hosts know each other's link addresses.
    fn introduce(&self) {
        let neighbours = [("a", "10.9.0.2", "b"), ("b", "10.9.0.1", "a")];
        for (host, address, other) in neighbours {
            let link = self.at(other, &["cat", "/sys/class/net/eth0/address"]);
            self.at(host, &["ip", "neigh", "replace", address, "lladdr", link.trim(), "dev", "eth0"]);
        }
    }

    /// Takes a host's cable away, with the interface of the box.
    pub fn unplug(&self, host: &str) {
        let (_, device, _) = HOSTS.into_iter().find(|(name, ..)| *name == host).unwrap();
        run(&["ip", "link", "del", device]);
    }

    /// Puts another one in its place.
    pub fn plug(&self, host: &str) {
        let (_, device, address) = HOSTS.into_iter().find(|(name, ..)| *name == host).unwrap();
        self.connect(host, device, address);
        self.introduce();
    }

    fn host(&self, host: &str) -> String {
        format!("{}-{host}", self.name)
    }

    pub fn pins(&self) -> &Path {
        &self.pins
    }

    /// Runs a command on a host.
    pub fn at(&self, host: &str, command: &[&str]) -> String {
        run(&[&["ip", "netns", "exec", &self.host(host)][..], command].concat())
    }

    /// Starts a command on a host; what it says is kept for the one who waits.
    pub fn spawn_at(&self, host: &str, command: &[&str]) -> Child {
        let host = self.host(host);
        let arguments = [&["netns", "exec", &host][..], command].concat();
        Command::new("ip").args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Runs a command on the box.
    pub fn middle(&self, command: &[&str]) -> String {
        run(command)
    }

    /// All that the kernel tells of the box's interfaces, without numbers that count.
    pub fn interfaces(&self) -> String {
        run(&["ip", "-details", "link", "show"])
    }

    pub fn ping(&self) -> bool {
        let (sender, receiver) = self.sockets(7000);
        sender.send(b"ping").unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        receiver.recv(&mut [0; 16]).is_ok()
    }

    /// A socket at a, connected to one at b.
    pub fn sockets(&self, port: u16) -> (UdpSocket, UdpSocket) {
        self.sockets_between(("a", "10.9.0.1"), ("b", "10.9.0.2"), port)
    }

    /// A socket at one host, connected to one at the other.
    fn sockets_between(&self, from: (&str, &str), to: (&str, &str), port: u16) -> (UdpSocket, UdpSocket) {
        let in_host = |host: &str, address: String| {
            let path = PathBuf::from("/run/netns").join(self.host(host));
            let socket = std::thread::spawn(move || {
                let namespace = std::fs::File::open(path).unwrap();
                // SAFETY: an open file; the thread ends with this function.
                assert_eq!(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
                // A program that another test starts has our files until it runs, those of a socket just closed as well.
                let bind =
                    |_| UdpSocket::bind(&address).inspect_err(|_| std::thread::sleep(Duration::from_millis(50))).ok();
                (0..40).find_map(bind).unwrap()
            });
            socket.join().unwrap()
        };
        let receiver = in_host(to.0, format!("{}:{port}", to.1));
        // A busy machine may keep the reader waiting: what arrives must not be dropped for that.
        let bytes: libc::c_int = 16 << 20;
        // SAFETY: an open socket, and an option of the size that is told.
        let failed = unsafe {
            let (option, length) = (std::ptr::from_ref(&bytes).cast(), size_of_val(&bytes) as libc::socklen_t);
            libc::setsockopt(receiver.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, option, length)
        };
        assert_eq!(failed, 0, "room for what arrives");
        let sender = in_host(from.0, format!("{}:0", from.1));
        sender.connect((to.1, port)).unwrap();
        (sender, receiver)
    }

    /// Sends far more than any limit here passes, for a time.
    pub fn flood(&self, port: u16, payload: usize, time: Duration) -> Counted {
        self.send_while(self.sockets(port), payload, FLOOD_GAP, || std::thread::sleep(time))
    }

    /// The same while something else is done. Returns how many datagrams arrived.
    pub fn flood_while(&self, port: u16, payload: usize, done: impl FnOnce()) -> u64 {
        self.send_while(self.sockets(port), payload, FLOOD_GAP, done).received
    }

    /// The same, with all that became of them.
    pub fn flood_and_count(&self, port: u16, payload: usize, done: impl FnOnce()) -> Counted {
        self.send_while(self.sockets(port), payload, FLOOD_GAP, done)
    }

    /// Sends numbered packets a while, slowly enough that nobody has to drop one, and tells what became of them.
    pub fn count_while(&self, port: u16, payload: usize, done: impl FnOnce()) -> Counted {
        self.send_while(self.sockets(port), payload, Duration::from_micros(500), done)
    }

    /// The same from b to a.
    pub fn count_back_while(&self, port: u16, payload: usize, done: impl FnOnce()) -> Counted {
        let sockets = self.sockets_between(("b", "10.9.0.2"), ("a", "10.9.0.1"), port);
        self.send_while(sockets, payload, Duration::from_micros(500), done)
    }

    fn send_while(
        &self,
        (sender, receiver): (UdpSocket, UdpSocket),
        payload: usize,
        gap: Duration,
        done: impl FnOnce(),
    ) -> Counted {
        let (is_over, received) = (AtomicBool::new(false), AtomicU64::new(0));
        let is_in_order = AtomicBool::new(true);
        let sent = AtomicU64::new(0);
        receiver.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let time = std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut buffer, mut next) = (vec![0; 2048], 0);
                loop {
                    let Ok(length) = receiver.recv(&mut buffer) else {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        continue; // a while without packets, while some are sent
                    };
                    let number = u64::from_ne_bytes(buffer[..8].try_into().unwrap());
                    assert!(length == payload);
                    is_in_order.fetch_and(number >= next, Ordering::Relaxed);
                    next = number + 1;
                    received.fetch_add(1, Ordering::Relaxed);
                }
            });
            let sending = scope.spawn(|| {
                let mut frame = vec![0; payload];
                let start = Instant::now();
                while !is_over.load(Ordering::Relaxed) {
                    let number = sent.fetch_add(1, Ordering::Relaxed);
                    frame[..8].copy_from_slice(&number.to_ne_bytes());
                    sender.send(&frame).unwrap();
                    let due = gap * u32::try_from(number).unwrap();
                    if let Some(early) = due.checked_sub(start.elapsed()) {
                        std::thread::sleep(early);
                    }
                }
                start.elapsed()
            });
            let end = AtEnd(&is_over);
            done();
            drop(end);
            sending.join().unwrap()
        });
        Counted { sent: sent.into_inner(), received: received.into_inner(), in_order: is_in_order.into_inner(), time }
    }
}

/// Says that it is over, also when a check fails: else the one who sends never ends.
struct AtEnd<'a>(&'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in ["a", "b"] {
            let _ = Command::new("ip").args(["netns", "del", &self.host(host)]).output();
        }
        // Links go with the namespace of this thread; what a failed test left pinned goes here.
        let _ = std::fs::remove_dir_all(&self.pins);
    }
}
