// SPDX-License-Identifier: MIT OR Apache-2.0
//! One worker: packets of one queue of a pair of interfaces, which each wait for their turn and leave by the other one.

use crate::queues::Queues;
use crate::shared::Lane;
use crate::socket::{Pool, RING, Socket};
use crate::stats::Stats;
use penstock_algo::wheel::Wheel;
use penstock_algo::wire;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, Result};
use rustix::net::xdp::{XdpDesc, XdpDescOptions};
use rustix::thread::{MembarrierCommand, membarrier};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::num::NonZero;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest sleep: who sleeps longer looks dead to the kernel program ([`wire::PST_SHAPER_STALL_NSEC`]).
const SLEEP_MAX_NS: u64 = 100_000_000;
/// How often a worker asks the kernel whether packets were lost.
const LOOK_NS: u64 = 100_000_000;
/// How long packets may go on leaving after the worker was told to stop.
const STOP_NS: u64 = 500_000_000;
/// Frames taken in at once, before others are released.
const BATCH: usize = 256;

/// Packets that come in by one interface.
#[derive(Debug, Clone)]
pub struct Way {
    /// Its index.
    pub ifindex: u32,
    /// Where they are counted.
    pub lane: Lane,
}

/// What a worker does.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Both directions: what comes in by one interface leaves by the other.
    pub ways: [Way; 2],
    /// Of both interfaces.
    pub queue: u32,
    /// What packets of each way may take, in pieces of [`wire::PST_HOLD_CHUNK_BYTES`].
    pub chunks: [u32; 2],
    /// How long before a packet's turn the worker stops sleeping, and looks at the clock.
    pub spin: Duration,
}

/// A worker at work. Dropping it ends it, when what waits has left, or half a second later.
#[derive(Debug)]
pub struct Worker {
    /// Sockets of both ways, for the map that the kernel program finds them in.
    pub sockets: [OwnedFd; 2],
    /// What it did.
    pub stats: Arc<Stats>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A packet in a frame.
#[derive(Debug, Clone, Copy, Default)]
struct Packet {
    held: wire::pst_held,
    address: u64,
    length: u32,
    /// The way that it came.
    way: usize,
    /// It is in this frame still.
    is_here: bool,
}

#[derive(Debug)]
struct Engine {
    ways: [Way; 2],
    sockets: [Socket; 2],
    pool: Pool,
    /// By frame.
    packets: Vec<Packet>,
    free: Vec<u32>,
    wheel: Wheel,
    queues: Queues,
    /// By the interface that they leave by: packets whose turn has come.
    ready: [VecDeque<u32>; 2],
    /// Those that were written to its socket, and not taken yet.
    sending: [VecDeque<u32>; 2],
    taken: [u32; 2],
    /// Packets that the kernel said it had lost, by socket.
    lost: [u64; 2],
    stats: Arc<Stats>,
    spin_ns: u64,
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

impl Worker {
    /// Binds to both interfaces, and begins. Nothing comes before its sockets are in the program's map.
    ///
    /// # Errors
    /// The kernel refuses: `EINVAL` where there is no such queue, `EBUSY` where somebody else has it.
    pub fn start(settings: &Settings) -> Result<Self> {
        let stats = Arc::new(Stats::default());
        let engine = Engine::new(settings, Arc::clone(&stats))?;
        let clone = |socket: &Socket| socket.as_fd().try_clone_to_owned().map_err(|_| Errno::MFILE);
        let sockets = [clone(&engine.sockets[0])?, clone(&engine.sockets[1])?];
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let run = move || engine.run(&told);
        let thread = std::thread::Builder::new().name("shaper".to_owned()).spawn(run).map_err(|_| Errno::AGAIN)?;
        Ok(Self { sockets, stats, stop, thread: Some(thread) })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Engine {
    fn new(settings: &Settings, stats: Arc<Stats>) -> Result<Self> {
        let frames = settings.chunks.iter().sum::<u32>() + 2 * RING;
        let pool = Pool::new(frames, wire::PST_HOLD_CHUNK_BYTES)?;
        let [one, other] = [settings.ways[0].ifindex, settings.ways[1].ifindex];
        let first = Socket::bind(&pool, one, settings.queue, None)?;
        let second = Socket::bind(&pool, other, settings.queue, Some(first.as_fd()))?;
        let mut engine = Self {
            ways: settings.ways.clone(),
            sockets: [first, second],
            pool,
            packets: vec![Packet::default(); frames as usize],
            free: (0..frames).rev().collect(),
            wheel: Wheel::new(frames, now_ns()),
            queues: Queues::default(),
            ready: Default::default(),
            sending: Default::default(),
            taken: [0; 2],
            lost: [0; 2],
            stats,
            spin_ns: u64::try_from(settings.spin.as_nanos()).unwrap_or(0),
        };
        for (way, &chunks) in engine.ways.iter().zip(&settings.chunks) {
            way.lane.settle(0);
            way.lane.set_room(chunks);
        }
        engine.refill();
        Ok(engine)
    }

    fn run(mut self, stop: &AtomicBool) {
        // Else the kernel adds 50 us to each sleep. Without it packets are late, not lost.
        let _ = rustix::thread::set_current_timer_slack(NonZero::new(1));
        let mut looked_ns = now_ns();
        while !stop.load(Ordering::Acquire) {
            let mut now = now_ns();
            if now - looked_ns >= LOOK_NS {
                looked_ns = now;
                if self.has_lost() {
                    self.settle();
                    now = now_ns();
                }
            }
            self.ways.iter().for_each(|way| way.lane.beat(now));
            if !self.turn(now) {
                self.sleep(now);
            }
        }
        self.ways.iter().for_each(|way| way.lane.rest());
        let start = now_ns();
        let mut now = start;
        while now - start < STOP_NS && (self.turn(now) || self.is_busy()) {
            self.sleep(now);
            now = now_ns();
        }
    }

    /// Whether the kernel could not bring packets that the program had counted. They are nowhere now.
    fn has_lost(&mut self) -> bool {
        let lost = self.sockets.each_ref().map(Socket::lost);
        let more: u64 = lost.iter().zip(&self.lost).map(|(now, before)| now.saturating_sub(*before)).sum();
        self.lost = lost;
        self.stats.lost.fetch_add(more, Ordering::Relaxed);
        more > 0
    }

    /// Counts anew what waits. Meanwhile the kernel program takes nobody to be at work. Counts by owner stay too high where a packet was
    /// lost: these limits go on to send everything here, which costs time and no order.
    fn settle(&mut self) {
        self.ways.iter().for_each(|way| way.lane.rest());
        // A global barrier is a grace period of RCU, under which programs run.
        let _ = membarrier(MembarrierCommand::Global);
        while self.turn(now_ns()) {}
        for (index, way) in self.ways.iter().enumerate() {
            let here = self.packets.iter().filter(|packet| packet.is_here && packet.way == index);
            way.lane.settle(here.map(|packet| packet.held.chunks).sum());
        }
    }

    fn is_busy(&self) -> bool {
        self.wheel.waiting() > 0 || self.ready.iter().chain(&self.sending).any(|frames| !frames.is_empty())
    }

    /// Everything that there is to do now. Returns whether there may be more at once.
    fn turn(&mut self, now: u64) -> bool {
        let mut received = 0;
        for way in 0..2 {
            self.reap(way);
            received += self.receive(way);
        }
        self.refill();
        self.release(now);
        (0..2).for_each(|out| self.send(out));
        self.stats.waiting.store(self.wheel.waiting(), Ordering::Relaxed);
        received > 0
    }

    /// Frames that the kernel has sent are free.
    fn reap(&mut self, out: usize) {
        while let Some(address) = self.sockets[out].sent.read() {
            let frame = self.pool.frame_of(address);
            let Some(packet) = self.packets.get_mut(frame as usize) else { continue };
            packet.is_here = false;
            self.ways[packet.way].lane.free(&packet.held);
            self.free.push(frame);
        }
    }

    fn receive(&mut self, way: usize) -> usize {
        for count in 0..BATCH {
            let Some(entry) = self.sockets[way].received.read() else { return count };
            let frame = self.pool.frame_of(entry.addr);
            let Some(held) = self.pool.bytes(entry.addr, entry.len).and_then(header) else {
                self.stats.lost.fetch_add(1, Ordering::Relaxed);
                self.free.push(frame);
                continue;
            };
            let size = wire_bytes(size_of::<wire::pst_held>());
            let address = entry.addr + u64::from(size);
            self.packets[frame as usize] = Packet { held, address, length: entry.len - size, way, is_here: true };
            if !self.wheel.put(frame, self.queues.join(held.owner, held.due_ns)) {
                self.ready[1 - way].push_back(frame); // further ahead than any horizon is
            }
        }
        BATCH
    }

    /// Gives the kernel frames to write to.
    fn refill(&mut self) {
        for socket in &mut self.sockets {
            while socket.fill.room() > 0
                && let Some(frame) = self.free.pop()
            {
                socket.fill.write(self.pool.address_of(frame));
            }
            socket.fill.publish();
        }
    }

    /// Packets whose turn has come go to where they leave.
    fn release(&mut self, now: u64) {
        while let Some((frame, due_ns)) = self.wheel.take(now) {
            let packet = &self.packets[frame as usize];
            self.stats.lateness.add(now.saturating_sub(due_ns));
            self.stats.delay.add(now.saturating_sub(packet.held.came_ns));
            self.ready[1 - packet.way].push_back(frame);
        }
    }

    fn send(&mut self, out: usize) {
        let socket = &mut self.sockets[out];
        while let Some(&frame) = self.ready[out].front() {
            let packet = &self.packets[frame as usize];
            let entry = XdpDesc { addr: packet.address, len: packet.length, options: XdpDescOptions::empty() };
            if !socket.to_send.write(entry) {
                break;
            }
            self.ready[out].pop_front();
            self.sending[out].push_back(frame);
        }
        socket.to_send.publish();
        // The kernel takes a few at a time.
        while !self.sending[out].is_empty() {
            let before = self.sending[out].len();
            // What it does not take now it takes the next time.
            let _ = self.sockets[out].kick();
            let taken = self.sockets[out].to_send.taken();
            for _ in 0..taken.wrapping_sub(self.taken[out]) {
                let Some(frame) = self.sending[out].pop_front() else { break };
                let packet = &self.packets[frame as usize];
                self.ways[packet.way].lane.left(&packet.held);
                self.queues.left(packet.held.owner);
                self.stats.sent.fetch_add(1, Ordering::Relaxed);
            }
            self.taken[out] = taken;
            if self.sending[out].len() == before {
                break;
            }
        }
    }

    /// Until a packet comes, or the next turn is near.
    fn sleep(&self, now: u64) {
        let is_stuck = self.ready.iter().chain(&self.sending).any(|frames| !frames.is_empty());
        let next = if is_stuck { now + 50_000 } else { self.wheel.next_ns().unwrap_or(u64::MAX) };
        let wait_ns = next.saturating_sub(now).saturating_sub(self.spin_ns).min(SLEEP_MAX_NS);
        if wait_ns == 0 {
            return;
        }
        let time = Timespec { tv_sec: 0, tv_nsec: i64::try_from(wait_ns).unwrap_or(0) };
        let mut fds = self.sockets.each_ref().map(|socket| PollFd::new(socket, PollFlags::IN));
        // A signal ends it early. An interface that is gone says so at once, each time.
        let _ = poll(&mut fds, Some(&time));
        if fds.iter().any(|fd| fd.revents().contains(PollFlags::ERR)) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn wire_bytes(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(0)
}

/// What the kernel program wrote in front of a frame.
fn header(bytes: &[u8]) -> Option<wire::pst_held> {
    let bytes = bytes.get(..size_of::<wire::pst_held>())?;
    // SAFETY: as many bytes as the struct has, which is integers only.
    Some(unsafe { bytes.as_ptr().cast::<wire::pst_held>().read_unaligned() })
}
