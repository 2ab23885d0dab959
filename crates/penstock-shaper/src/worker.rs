// SPDX-License-Identifier: MIT OR Apache-2.0
//! One worker: packets of one queue of a pair of interfaces, which each wait for their turn and leave by the other one.

use crate::queues::Queues;
use crate::schedule::{Form, Schedule};
use crate::shared::{Lane, chunks_of};
use crate::socket::{Pool, RING, Socket};
use crate::stats::Stats;
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
/// Longest sleep while the kernel has frames that it was given to send: nobody wakes us when it is done.
const REAP_NS: u64 = 200_000;
/// After so long without a sign of life the kernel program may have let packets pass in front of those that wait here.
const DEAD_NS: u64 = wire::PST_SHAPER_STALL_NSEC as u64 * 3 / 4;
/// Calls of `send` that take up to 32 frames each.
const KICKS_MAX: usize = RING as usize / 32 + 1;
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
    /// When packets that wait leave.
    pub form: Form,
}

/// A worker at work. Dropping it ends it, when what waits has left, or half a second later.
#[derive(Debug)]
pub struct Worker {
    /// Sockets of both ways, for the map that the kernel program finds them in.
    pub sockets: [OwnedFd; 2],
    /// What it did.
    pub stats: Arc<Stats>,
    /// Where packets of both ways are counted.
    pub lanes: [Lane; 2],
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
    /// The kernel has it, to send it.
    is_sending: bool,
}

#[derive(Debug)]
struct Engine {
    ways: [Way; 2],
    sockets: [Socket; 2],
    pool: Pool,
    /// By frame.
    packets: Vec<Packet>,
    free: Vec<u32>,
    form: Form,
    waiting: Schedule,
    queues: Queues,
    /// By the interface that they leave by: packets whose turn has come.
    ready: [VecDeque<u32>; 2],
    /// Frames that the kernel has, to send them.
    sending: usize,
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
        let lanes = settings.ways.clone().map(|way| way.lane);
        Ok(Self { sockets, stats, lanes, stop, thread: Some(thread) })
    }

    /// Tells it to end, without waiting for that.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Whether it goes on.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
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
            form: settings.form,
            waiting: Schedule::new(settings.form, frames, now_ns()),
            queues: Queues::with_room_for(frames as usize),
            ready: Default::default(),
            sending: 0,
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
        let mut seen_ns = looked_ns;
        while !stop.load(Ordering::Acquire) {
            let mut now = now_ns();
            if now - looked_ns >= LOOK_NS {
                looked_ns = now;
                if self.has_lost() {
                    self.settle();
                    now = now_ns();
                }
            }
            if now - seen_ns >= DEAD_NS {
                // To the kernel program we were dead: what waits must not come behind what has passed since.
                self.rest();
                self.drop_all(|packet| !packet.is_sending);
                now = now_ns();
            }
            seen_ns = now;
            self.ways.iter().for_each(|way| way.lane.beat(now));
            if !self.turn(now) {
                self.sleep(now);
            }
        }
        self.rest();
        let start = now_ns();
        let mut now = start;
        while now - start < STOP_NS && (self.turn(now) || self.is_busy()) {
            self.sleep(now);
            now = now_ns();
        }
        // Also what the kernel has not sent by now: an interface that is gone never will.
        self.drop_all(|_| true);
    }

    /// Takes no more packets: the kernel program drops them from now on, and none is on its way any more.
    fn rest(&self) {
        self.ways.iter().for_each(|way| way.lane.rest());
        // A global barrier is a grace period of RCU, under which programs run. A kernel that does not answer: far longer than a packet
        // takes.
        if membarrier(MembarrierCommand::Global).is_err() {
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Forgets packets, all but those that the kernel has to send or, in the end, these as well.
    fn drop_all(&mut self, is_over: impl Fn(&Packet) -> bool) {
        while (0..2).map(|way| self.receive(way)).sum::<usize>() > 0 {}
        let is_ours = |packet: &Packet| packet.is_here && is_over(packet);
        let frames: Vec<u32> =
            (0..).zip(&self.packets).filter(|(_, packet)| is_ours(packet)).map(|(frame, _)| frame).collect();
        self.stats.lost.fetch_add(frames.len() as u64, Ordering::Relaxed);
        frames.into_iter().for_each(|frame| self.forget(frame));
        self.ready = Default::default();
        self.waiting = Schedule::new(self.form, narrow(self.packets.len()), now_ns());
    }

    /// A packet is not here any more.
    fn forget(&mut self, frame: u32) {
        let Some(packet) = self.packets.get_mut(frame as usize).filter(|packet| packet.is_here) else { return };
        packet.is_here = false;
        let lane = &self.ways[packet.way].lane;
        lane.left(&packet.held);
        lane.free(&packet.held);
        self.queues.left(packet.held.owner);
        self.free.push(frame);
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
    /// lost: these limits go on to send everything here, and let nothing pass while a worker leaves, until the policy stops to hold packets.
    fn settle(&mut self) {
        self.rest();
        while self.turn(now_ns()) {}
        for (index, way) in self.ways.iter().enumerate() {
            let here = self.packets.iter().filter(|packet| packet.is_here && packet.way == index);
            way.lane.settle(here.map(|packet| chunks_of(&packet.held)).sum());
        }
    }

    fn is_busy(&self) -> bool {
        self.waiting.waiting() > 0 || self.sending > 0 || self.ready.iter().any(|frames| !frames.is_empty())
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
        self.stats.waiting.store(self.waiting.waiting(), Ordering::Relaxed);
        received > 0
    }

    /// Packets that the kernel has sent have left. Not before: who passes without waiting takes another way out.
    fn reap(&mut self, out: usize) {
        while let Some(address) = self.sockets[out].sent.read() {
            self.sending = self.sending.saturating_sub(1);
            self.stats.sent.fetch_add(1, Ordering::Relaxed);
            self.forget(self.pool.frame_of(address));
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
            let size = narrow(size_of::<wire::pst_held>());
            let address = entry.addr + u64::from(size);
            self.packets[frame as usize] =
                Packet { held, address, length: entry.len - size, way, is_here: true, is_sending: false };
            if !self.waiting.put(frame, &held, self.queues.join(held.owner, held.due_ns)) {
                // There is no place for it, which the kernel program should have known: before its turn it may not leave.
                self.stats.lost.fetch_add(1, Ordering::Relaxed);
                self.forget(frame);
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
        while let Some((frame, due_ns)) = self.waiting.take(now) {
            let packet = &self.packets[frame as usize];
            self.stats.lateness.add(now.saturating_sub(due_ns));
            self.stats.delay.add(now.saturating_sub(packet.held.came_ns));
            self.ready[1 - packet.way].push_back(frame);
        }
    }

    fn send(&mut self, out: usize) {
        let socket = &mut self.sockets[out];
        let before = self.sending;
        while let Some(&frame) = self.ready[out].front() {
            let packet = &mut self.packets[frame as usize];
            let entry = XdpDesc { addr: packet.address, len: packet.length, options: XdpDescOptions::empty() };
            if !socket.to_send.write(entry) {
                break;
            }
            packet.is_sending = true;
            self.ready[out].pop_front();
            self.sending += 1;
        }
        socket.to_send.publish();
        // What the kernel does not take now it takes the next time.
        let is_new = self.sending > before;
        if self.sending > 0 && (is_new || socket.to_send.room() < RING) {
            let _ = (0..KICKS_MAX).take_while(|_| socket.kick()).count();
        }
    }

    /// Until a packet comes, or the next turn is near.
    fn sleep(&self, now: u64) {
        let is_stuck = self.sending > 0 || self.ready.iter().any(|frames| !frames.is_empty());
        let next = self.waiting.next_ns().unwrap_or(u64::MAX).min(if is_stuck { now + REAP_NS } else { u64::MAX });
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

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// What the kernel program wrote in front of a frame.
fn header(bytes: &[u8]) -> Option<wire::pst_held> {
    let bytes = bytes.get(..size_of::<wire::pst_held>())?;
    // SAFETY: as many bytes as the struct has, which is integers only.
    Some(unsafe { bytes.as_ptr().cast::<wire::pst_held>().read_unaligned() })
}
