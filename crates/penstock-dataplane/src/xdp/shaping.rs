// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who holds packets for the kernel program: the workers of the shaper, and the maps that all generations share with them.

use super::generation::{Generation, KernelError, Port, refused};
use super::interface::Interface;
use super::pins::Maps;
use crate::{DataplaneError, ShapingReading, Times};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use memmap2::{MmapOptions, MmapRaw};
use penstock_algo::wire;
use penstock_policy::Plan;
use penstock_policy::units::format_size;
use penstock_shaper::{Form, Histogram, Lane, Memory, Settings, Stats, Way, Worker, forget_owners};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Maps that go on from one generation to the next: what waits belongs to all of them.
pub(super) const SHARED: [&str; 3] = ["shapers", "waiting", "sockets"];
/// How long a queue that somebody had is waited for: the kernel gives it back when all that was sent by it is gone.
const BUSY_TRIES: u32 = 40;
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// Mapped arrays of the kernel, as workers see them.
struct Mapped {
    shapers: MmapRaw,
    waiting: MmapRaw,
}

// SAFETY: both are mapped as long as this lives, and `map_of` has looked at their lengths; a mapping does not begin at 0.
unsafe impl Memory for Mapped {
    fn shapers(&self) -> NonNull<wire::pst_shaper> {
        // SAFETY: as above.
        unsafe { NonNull::new_unchecked(self.shapers.as_mut_ptr().cast()) }
    }

    fn waiting(&self) -> NonNull<u64> {
        // SAFETY: as above.
        unsafe { NonNull::new_unchecked(self.waiting.as_mut_ptr().cast()) }
    }
}

/// What a policy asks of the workers of one pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    ifindices: [u32; 2],
    /// Places of the first queue ([`wire::pst_port`]: `shaper_first`).
    firsts: [u32; 2],
    queues: u32,
    chunks: [u32; 2],
    spin: Duration,
    form: Form,
}

impl Wanted {
    /// Of each pair of a policy's ports.
    fn all(plan: &Plan, ports: &[Port]) -> Vec<Self> {
        let found: Vec<([&Port; 2], u32)> = pairs(ports).into_iter().map(|pair| (pair, queues(pair))).collect();
        let ways: u32 = found.iter().map(|(pair, queues)| queues * count(judged(pair))).sum();
        let share = plan.hold_chunks / ways.max(1);
        let wanted = |(pair, queues): ([&Port; 2], u32)| Self {
            ifindices: pair.map(|port| port.ifindex),
            firsts: pair.map(|port| port.shaper_first),
            queues,
            chunks: pair.map(|port| if port.links.is_empty() { 0 } else { share }),
            spin: Duration::from_nanos(plan.spin_ns),
            form: if plan.holds_in_groups { Form::Groups } else { Form::Wheel },
        };
        found.into_iter().map(wanted).collect()
    }

    /// Whether both want a queue, or a place, that only one can have.
    fn is_in_the_way_of(&self, other: &Self) -> bool {
        let shares = |ours: &[u32; 2], theirs: &[u32; 2]| ours.iter().any(|one| theirs.contains(one));
        shares(&self.ifindices, &other.ifindices) || shares(&self.firsts, &other.firsts)
    }

    /// Why a worker does not start, in the words of who wrote the policy.
    fn cannot_start(&self, queue: u32, error: std::io::Error) -> DataplaneError {
        let [one, other] = self.ifindices.map(|ifindex| {
            Interface::at(ifindex).map_or_else(|| format!("interface {ifindex}"), |interface| interface.device)
        });
        let bytes = u64::from(self.chunks.iter().sum::<u32>()) * u64::from(wire::PST_HOLD_CHUNK_BYTES);
        let what = format!("holding packets on queue {queue} of {one} and {other}");
        let what = match error.kind() {
            std::io::ErrorKind::OutOfMemory => {
                format!("{what}: its part of `shaper: {{ memory }}` is {}, more than there is", format_size(bytes))
            }
            _ => what,
        };
        DataplaneError::Io { what, source: error }
    }
}

/// Those of one pair.
#[derive(Debug)]
struct Pair {
    as_wanted: Wanted,
    workers: Vec<Worker>,
}

impl Pair {
    fn is_alive(&self) -> bool {
        self.workers.iter().all(Worker::is_alive)
    }
}

/// Workers at work.
pub(super) struct Shaping {
    maps: Vec<(&'static str, MapHandle)>,
    memory: Arc<Mapped>,
    pairs: Vec<Pair>,
    /// By the policy in force.
    wanted: Vec<Wanted>,
    /// What those did that are gone.
    gone: ShapingReading,
}

impl std::fmt::Debug for Shaping {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Shaping").field("pairs", &self.pairs).finish_non_exhaustive()
    }
}

fn map_of(name: &'static str, map: &MapHandle, entries: u32, value_bytes: usize) -> Result<MmapRaw, KernelError> {
    let length = entries as usize * value_bytes;
    if map.max_entries() != entries || map.value_size() as usize != value_bytes || !value_bytes.is_multiple_of(8) {
        return Err(KernelError::NoMap(name));
    }
    let mapped = MmapOptions::new().len(length).map_raw(map.as_fd().as_raw_fd());
    mapped.map_err(|source| KernelError::Unmapped { map: name, source })
}

impl Shaping {
    /// Nobody works yet. The maps are those of a generation that was just loaded.
    pub fn over(maps: &Maps) -> Result<Self, KernelError> {
        let handle = |name| {
            let map = maps.get(name)?;
            let copy = MapHandle::from_map_id(map.info().map_err(refused("looking at a map"))?.info.id);
            Ok((name, copy.map_err(refused("keeping a map open"))?))
        };
        let maps = SHARED.into_iter().map(handle).collect::<Result<Vec<_>, KernelError>>()?;
        let memory = Arc::new(Mapped {
            shapers: map_of(maps[0].0, &maps[0].1, wire::PST_SHAPERS_MAX, size_of::<wire::pst_shaper>())?,
            waiting: map_of(maps[1].0, &maps[1].1, wire::PST_WAITING_MAX, size_of::<u64>())?,
        });
        forget_owners(&*memory);
        Ok(Self { maps, memory, pairs: Vec::new(), wanted: Vec::new(), gone: ShapingReading::default() })
    }

    /// The map of a name, for the next generation.
    pub fn map(&self, name: &str) -> Option<&MapHandle> {
        self.maps.iter().find(|(other, _)| *other == name).map(|(_, map)| map)
    }

    /// Has workers at every pair of a policy's ports, before it comes into force. Those of other pairs go on until [`Shaping::keep`],
    /// unless they are in the way.
    pub fn start(&mut self, plan: &Plan, ports: &[Port]) -> Result<(), DataplaneError> {
        self.have(&Wanted::all(plan, ports))
    }

    /// The policy did not come into force: workers are as the one before wants them. Those that do not start are missed
    /// ([`Shaping::is_alive`]).
    pub fn restore(&mut self) {
        for wanted in self.wanted.clone() {
            let _ = self.have(&[wanted]);
        }
    }

    fn has(&self, wanted: &Wanted) -> bool {
        self.pairs.iter().any(|pair| pair.as_wanted == *wanted && pair.is_alive())
    }

    fn have(&mut self, all: &[Wanted]) -> Result<(), DataplaneError> {
        for wanted in all {
            if self.has(wanted) {
                continue;
            }
            self.end(|other| other.as_wanted.is_in_the_way_of(wanted));
            let workers = self.start_pair(wanted)?;
            self.pairs.push(Pair { as_wanted: *wanted, workers });
        }
        Ok(())
    }

    /// A worker for each queue.
    fn start_pair(&self, wanted: &Wanted) -> Result<Vec<Worker>, DataplaneError> {
        let mut workers = Vec::new();
        for queue in 0..wanted.queues {
            let memory: Arc<dyn Memory> = self.memory.clone();
            let way = |end: usize| Way {
                ifindex: wanted.ifindices[end],
                lane: Lane::new(Arc::clone(&memory), wanted.firsts[end] + queue),
            };
            let Wanted { chunks, spin, form, .. } = *wanted;
            let worker = begin(&Settings { ways: [way(0), way(1)], queue, chunks, spin, form })
                .map_err(|error| wanted.cannot_start(queue, error))?;
            for (lane, socket) in worker.lanes.iter().zip(&worker.sockets) {
                self.introduce(lane.index(), socket)?;
            }
            workers.push(worker);
        }
        Ok(workers)
    }

    /// Whether everybody whom the policy in force wants is at work.
    pub fn is_alive(&self) -> bool {
        self.wanted.iter().all(|wanted| self.has(wanted))
    }

    /// Ends workers, all together, when what waits with them has left.
    fn end(&mut self, is_over: impl Fn(&Pair) -> bool) {
        let (over, kept): (Vec<Pair>, Vec<Pair>) = std::mem::take(&mut self.pairs).into_iter().partition(is_over);
        self.pairs = kept;
        let over: Vec<Worker> = over.into_iter().flat_map(|pair| pair.workers).collect();
        over.iter().for_each(Worker::stop);
        for worker in over {
            let stats = Arc::clone(&worker.stats);
            drop(worker);
            add(&mut self.gone, &stats);
        }
        (self.gone.waiting_packets, self.gone.taken_bytes) = (0, 0);
    }

    /// Tells the program of a worker's socket. The kernel forgets it when the worker ends.
    fn introduce(&self, lane: u32, socket: &OwnedFd) -> Result<(), DataplaneError> {
        let sockets = self.map("sockets").ok_or(KernelError::NoMap("sockets"))?;
        let value = socket.as_raw_fd().to_ne_bytes();
        let told = sockets.update(&lane.to_ne_bytes(), &value, MapFlags::ANY);
        Ok(told.map_err(refused("telling the program of a socket"))?)
    }

    /// The policy is in force: ends workers that it does not want.
    pub fn keep(&mut self, plan: &Plan, ports: &[Port]) {
        let wanted = Wanted::all(plan, ports);
        self.end(|pair| !wanted.contains(&pair.as_wanted));
        self.wanted = wanted;
    }

    /// What all of them did.
    pub fn reading(&self) -> ShapingReading {
        let mut reading = self.gone.clone();
        for worker in self.pairs.iter().flat_map(|pair| &pair.workers) {
            add(&mut reading, &worker.stats);
            let chunks: u32 = worker.lanes.iter().map(Lane::taken_chunks).sum();
            reading.taken_bytes += u64::from(chunks) * u64::from(wire::PST_HOLD_CHUNK_BYTES);
        }
        reading
    }
}

fn add(reading: &mut ShapingReading, stats: &Stats) {
    reading.sent_packets += stats.sent.load(Ordering::Relaxed);
    reading.lost_packets += stats.lost.load(Ordering::Relaxed);
    reading.waiting_packets += stats.waiting.load(Ordering::Relaxed);
    add_times(&mut reading.delay, &stats.delay);
    add_times(&mut reading.lateness, &stats.lateness);
}

fn add_times(times: &mut Times, more: &Histogram) {
    times.counts.iter_mut().zip(more.counts()).for_each(|(sum, more)| *sum += more);
    times.sum_ns += more.sum_ns();
}

/// Ports that forward to each other, and are there.
fn pairs(ports: &[Port]) -> Vec<[&Port; 2]> {
    let other_of = |port: &Port| ports.iter().find(|other| port.forward == Some(other.ifindex));
    let both = ports.iter().filter_map(|port| Some([port, other_of(port)?]));
    let both = both.filter(|[one, other]| one.ifindex != 0 && one.ifindex < other.ifindex);
    // Of more interfaces than have a place, the last ones' packets do not wait.
    both.filter(|pair| pair.iter().all(|port| port.shaper_first < wire::PST_SHAPERS_MAX)).collect()
}

/// Ways of a pair whose packets some link judges.
fn judged(pair: &[&Port; 2]) -> usize {
    pair.iter().filter(|port| !port.links.is_empty()).count()
}

/// Queues that both interfaces have. Packets of the others are not held: what would wait is dropped.
fn queues(pair: [&Port; 2]) -> u32 {
    let of = |port: &Port| Interface::at(port.ifindex).map_or(1, |interface| interface.queues());
    pair.map(of).into_iter().min().unwrap_or(1).clamp(1, wire::PST_SHAPER_QUEUES)
}

/// Starts a worker, when its queue is free.
fn begin(settings: &Settings) -> Result<Worker, std::io::Error> {
    for _ in 0..BUSY_TRIES {
        match Worker::start(settings) {
            Err(error) if error.raw_os_error() == libc::EBUSY => std::thread::sleep(BUSY_PAUSE),
            started => return started.map_err(std::io::Error::from),
        }
    }
    Err(std::io::Error::from_raw_os_error(libc::EBUSY))
}

impl Drop for Shaping {
    fn drop(&mut self) {
        self.end(|_| true);
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Generation {
    /// The maps that workers share, as this generation has them.
    pub(super) fn shaping(&self) -> Result<Shaping, KernelError> {
        Shaping::over(&self.maps)
    }
}
