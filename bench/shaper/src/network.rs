// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two veth pairs in a namespace of our own, frames that enter by the first and are counted behind the second. All of it goes with this
//! process, however that ends.
//!
//! ```text
//! frames -> entry == left -> (shaper) -> right == finish -> counted
//! ```

use anyhow::{Context, Result, bail};
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, TC_INGRESS, TcHookBuilder, XdpFlags, libbpf_sys};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::pthread::{pthread_kill, pthread_self};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/frames.bpf.o"));
/// A frame's length. The slowest rate of a policy bounds it: a million limiters of 512 bit/s are 128,000 of these a second.
pub const FRAME_BYTES: u32 = 500;
/// How often somebody looks whether it is over.
const LOOK: Duration = Duration::from_millis(5);
/// Times that the sender looks whether a frame is due before all that it made go on.
const BATCH: u32 = 64;
/// As frames.bpf.c has them.
const MADE: u32 = 0;
const CAME: u32 = 1;
const SPINS: u32 = 2;

/// Who makes frames.
pub struct Network {
    object: Object,
    frame: Vec<u8>,
}

/// Puts this process, which must not have threads yet, into namespaces of its own.
pub fn enter() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).context("namespaces of our own (root?)")?;
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).context("mounts of our own")?;
    mount(Some("bpf"), "/sys/fs/bpf", Some("bpf"), MsFlags::empty(), Some("mode=0700")).context("a BPF file system")
}

/// Runs a program to its end. Its words have no spaces.
pub fn run(words: &str) -> Result<()> {
    let mut parts = words.split_whitespace();
    let output = Command::new(parts.next().unwrap_or_default()).args(parts).output().context(words.to_owned())?;
    if !output.status.success() {
        bail!("{words}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn index(device: &str) -> Result<u32> {
    nix::net::if_::if_nametoindex(device).with_context(|| device.to_owned())
}

impl Network {
    /// Interfaces, and programs that make frames and count them.
    ///
    /// # Errors
    /// When the kernel refuses one.
    pub fn new() -> Result<Self> {
        for (one, other) in [("entry", "left"), ("right", "finish")] {
            let queues = "numtxqueues 1 numrxqueues 1";
            run(&format!("ip link add {one} {queues} type veth peer name {other} {queues}"))?;
            for device in [one, other] {
                // Nobody but us sends here.
                let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"), "1");
                run(&format!("ip link set {device} up"))?;
            }
            // A redirect enters a veth by its peer's NAPI, which GRO switches on, if it is up.
            for device in [one, other] {
                run(&format!("ethtool -K {device} gro on"))?;
            }
        }
        let object = ObjectBuilder::default().open_memory(OBJECT)?.load().context("the programs of the bench")?;
        // It only has to end a call of the kernel.
        let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler does nothing.
        unsafe { sigaction(Signal::SIGUSR1, &action) }?;
        let network = Self { object, frame: frame() };
        network.hook("finish", "count_frame")?;
        Ok(network)
    }

    /// Frames are for so many limiters from now on, and so many come a second.
    fn set(&self, limiters: u32, rate_pps: f64) -> Result<()> {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most 2^32 - 1, as casts are
        let gap_q4 = if rate_pps > 0.0 { (1e9 * 16.0 / rate_pps) as u32 } else { 0 };
        let words = [limiters, index("entry")?, index("right")?, gap_q4];
        let value: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        Ok(self.map("settings")?.update(&0_u32.to_ne_bytes(), &value, MapFlags::ANY)?)
    }

    /// Whether frames that come to `left` go on as packets of the kernel, each with its class, out by `right`.
    pub fn route(&self, does: bool) -> Result<()> {
        let flags = XdpFlags::DRV_MODE;
        let program = self.program("pass_frame")?;
        let xdp = libbpf_rs::Xdp::new(program.as_fd());
        let left = i32::try_from(index("left")?)?;
        if does {
            xdp.attach(left, flags)?;
            self.hook("left", "class_frame")
        } else {
            xdp.detach(left, flags)?;
            run("tc qdisc del dev left clsact")
        }
    }

    fn hook(&self, device: &str, program: &str) -> Result<()> {
        let program = self.program(program)?;
        let mut hook = TcHookBuilder::new(program.as_fd());
        let mut hook = hook.ifindex(i32::try_from(index(device)?)?).handle(1).priority(1).hook(TC_INGRESS);
        hook.create()?;
        hook.attach()?;
        Ok(())
    }

    fn program(&self, name: &str) -> Result<libbpf_rs::Program<'_>> {
        self.object.progs().find(|program| program.name() == name).with_context(|| name.to_owned())
    }

    fn map(&self, name: &str) -> Result<libbpf_rs::Map<'_>> {
        self.object.maps().find(|map| map.name() == name).with_context(|| name.to_owned())
    }

    /// Frames that came out at the other end so far.
    pub fn came(&self) -> Result<u64> {
        self.count(CAME)
    }

    /// How often the sender had nothing to do so far.
    pub fn spins(&self) -> Result<u64> {
        self.count(SPINS)
    }

    /// Frames that were sent so far.
    pub fn made(&self) -> Result<u64> {
        self.count(MADE)
    }

    /// Frames that came out so far, by the lowest bits of their destinations.
    pub fn arrived(&self, leaves: u32) -> Result<Vec<u64>> {
        (0..leaves).map(|leaf| self.sum("arrived", leaf)).collect()
    }

    fn count(&self, what: u32) -> Result<u64> {
        self.sum("counts", what)
    }

    fn sum(&self, map: &str, what: u32) -> Result<u64> {
        let of_cpu = self.map(map)?.lookup_percpu(&what.to_ne_bytes(), MapFlags::ANY)?.context("counts")?;
        let number = |bytes: &Vec<u8>| bytes.as_slice().try_into().map(u64::from_ne_bytes).unwrap_or(0);
        Ok(of_cpu.iter().map(number).sum())
    }

    /// Sends at a rate to so many limiters until the time is over. All of it is one call: each takes a grace period of RCU at its end.
    pub fn flood(&self, limiters: u32, rate_pps: f64, time: Duration) -> Result<()> {
        self.set(limiters, rate_pps)?;
        let (start, has_ended, sender) = (Instant::now(), AtomicBool::new(false), pthread_self());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !has_ended.load(Ordering::Acquire) {
                    std::thread::sleep(LOOK.min(time.saturating_sub(start.elapsed())));
                    if start.elapsed() >= time {
                        let _ = pthread_kill(sender, Signal::SIGUSR1);
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            });
            let sent = self.send();
            has_ended.store(true, Ordering::Release);
            sent
        })
    }

    /// Sends until a signal comes.
    fn send(&self) -> Result<()> {
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>().try_into()?,
            data_in: self.frame.as_ptr().cast(),
            data_size_in: FRAME_BYTES,
            repeat: i32::MAX,
            flags: libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES,
            batch_size: BATCH,
            ..Default::default()
        };
        let program = self.program("send_frame")?;
        // SAFETY: the frame lives through the call, and is as long as the options say.
        match unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_fd().as_raw_fd(), &raw mut options) } {
            0 => Ok(()),
            code if code == -libc::EINTR => Ok(()),
            code => Err(std::io::Error::from_raw_os_error(-code)).context("sending frames"),
        }
    }
}

extern "C" fn nothing(_: libc::c_int) {}

/// UDP over IPv4; the destination is written when it is sent.
pub fn frame() -> Vec<u8> {
    let mut frame = vec![0; FRAME_BYTES as usize];
    let [high, low] = u16::try_from(FRAME_BYTES - 14).unwrap_or(0).to_be_bytes();
    frame[12..18].copy_from_slice(&[0x08, 0x00, 0x45, 0, high, low]);
    (frame[22], frame[23]) = (64, 17);
    frame[26..30].copy_from_slice(&[172, 16, 0, 1]);
    let [high, low] = u16::try_from(FRAME_BYTES - 34).unwrap_or(0).to_be_bytes();
    frame[34..40].copy_from_slice(&[0x13, 0x88, 0x13, 0x88, high, low]);
    frame
}
