// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who holds packets for the kernel program: the workers of the shaper, and the maps that all generations share with them.

use super::generation::{Generation, KernelError, Port, refused};
use super::pins::Maps;
use crate::DataplaneError;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use memmap2::{MmapOptions, MmapRaw};
use penstock_algo::wire;
use penstock_policy::Plan;
use penstock_shaper::{Lane, Memory, Settings, Way, Worker, forget_owners};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// Maps that go on from one generation to the next: what waits belongs to all of them.
pub(super) const SHARED: [&str; 3] = ["shapers", "waiting", "sockets"];
/// Workers stop sleeping so long before a packet's turn.
const SPIN: Duration = Duration::from_micros(5);

/// Mapped arrays of the kernel, as workers see them.
struct Mapped {
    shapers: MmapRaw,
    waiting: MmapRaw,
}

impl Memory for Mapped {
    fn shapers(&self) -> NonNull<wire::pst_shaper> {
        NonNull::new(self.shapers.as_mut_ptr().cast()).unwrap_or(NonNull::dangling())
    }

    fn waiting(&self) -> NonNull<u32> {
        NonNull::new(self.waiting.as_mut_ptr().cast()).unwrap_or(NonNull::dangling())
    }
}

/// Workers at work.
pub(super) struct Shaping {
    maps: Vec<(&'static str, MapHandle)>,
    memory: Arc<Mapped>,
    /// By the interfaces of the pair.
    workers: Vec<([u32; 2], Vec<Worker>)>,
}

impl std::fmt::Debug for Shaping {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Shaping").field("workers", &self.workers).finish_non_exhaustive()
    }
}

fn map_of(map: &MapHandle, entries: u32, value_bytes: usize) -> Result<MmapRaw, KernelError> {
    let length = entries as usize * value_bytes;
    if map.max_entries() != entries || map.value_size() as usize != value_bytes {
        return Err(KernelError::NoMap("shapers"));
    }
    let mapped = MmapOptions::new().len(length).map_raw(map.as_fd().as_raw_fd());
    mapped.map_err(|source| KernelError::Unmapped { map: "shapers", source })
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
            shapers: map_of(&maps[0].1, wire::PST_SHAPERS_MAX, size_of::<wire::pst_shaper>())?,
            waiting: map_of(&maps[1].1, wire::PST_WAITING_MAX, size_of::<u32>())?,
        });
        forget_owners(&*memory);
        Ok(Self { maps, memory, workers: Vec::new() })
    }

    /// The map of a name, for the next generation.
    pub fn map(&self, name: &str) -> Option<&MapHandle> {
        self.maps.iter().find(|(other, _)| *other == name).map(|(_, map)| map)
    }

    /// Has workers at every pair of a policy's ports. Those of pairs that it has not got go on until [`Shaping::keep`].
    pub fn start(&mut self, plan: &Plan, ports: &[Port]) -> Result<(), DataplaneError> {
        let pairs = pairs(ports);
        let ways = pairs.iter().flatten().filter(|port| !port.links.is_empty()).count();
        for pair in pairs {
            let ifindices = pair.map(|port| port.ifindex);
            if self.workers.iter().any(|(known, _)| *known == ifindices) {
                continue;
            }
            let chunks = pair.map(|port| if port.links.is_empty() { 0 } else { plan.hold_chunks / count(ways) });
            let workers = self.start_pair(pair, chunks)?;
            self.workers.push((ifindices, workers));
        }
        Ok(())
    }

    /// A worker for each queue that both interfaces have.
    fn start_pair(&self, pair: [&Port; 2], chunks: [u32; 2]) -> Result<Vec<Worker>, DataplaneError> {
        let mut workers = Vec::new();
        for queue in 0..wire::PST_SHAPER_QUEUES {
            let memory: Arc<dyn Memory> = self.memory.clone();
            let ways = pair.map(|port| Way {
                ifindex: port.ifindex,
                lane: Lane::new(Arc::clone(&memory), port.shaper_first + queue),
            });
            let lanes = ways.clone().map(|way| way.lane.index());
            let worker = match Worker::start(&Settings { ways, queue, chunks, spin: SPIN }) {
                Err(error) if error.raw_os_error() == libc::EINVAL && queue > 0 => break,
                started => started.map_err(|error| {
                    let what =
                        format!("AF_XDP on queue {queue} of interfaces {} and {}", pair[0].ifindex, pair[1].ifindex);
                    DataplaneError::Io { what, source: error.into() }
                })?,
            };
            for (lane, socket) in lanes.into_iter().zip(&worker.sockets) {
                self.introduce(lane, socket)?;
            }
            workers.push(worker);
        }
        Ok(workers)
    }

    /// Tells the program of a worker's socket. The kernel forgets it when the worker ends.
    fn introduce(&self, lane: u32, socket: &OwnedFd) -> Result<(), DataplaneError> {
        let sockets = self.map("sockets").ok_or(KernelError::NoMap("sockets"))?;
        let value = socket.as_raw_fd().to_ne_bytes();
        let told = sockets.update(&lane.to_ne_bytes(), &value, MapFlags::ANY);
        Ok(told.map_err(refused("telling the program of a socket"))?)
    }

    /// Ends the workers of pairs that a policy has not got.
    pub fn keep(&mut self, ports: &[Port]) {
        let pairs: Vec<[u32; 2]> = pairs(ports).iter().map(|pair| pair.map(|port| port.ifindex)).collect();
        self.workers.retain(|(pair, _)| pairs.contains(pair));
    }
}

/// Ports that forward to each other, and are there.
fn pairs(ports: &[Port]) -> Vec<[&Port; 2]> {
    let other_of = |port: &Port| ports.iter().find(|other| port.forward == Some(other.ifindex));
    let both = ports.iter().filter_map(|port| Some([port, other_of(port)?]));
    both.filter(|[one, other]| one.ifindex != 0 && one.ifindex < other.ifindex).collect()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX).max(1)
}

impl Generation {
    /// The maps that workers share, as this generation has them.
    pub(super) fn shaping(&self) -> Result<Shaping, KernelError> {
        Shaping::over(&self.maps)
    }
}
