// SPDX-License-Identifier: MIT OR Apache-2.0
//! One policy in the kernel: a program and its maps.

use super::counters::LimitCounters;
use super::memory::SharedArray;
use super::object::{Doors, bytes_of, constants, count, fill_parts, share_maps, size_maps, value_of};
use super::pins::{Maps, open_pin, pin};
use super::shaping::Shaping;
use super::shares::SharedShares;
use super::{prog_run, samples};
use crate::counters::sum;
use libbpf_rs::{MapCore, MapFlags, ObjectBuilder, libbpf_sys};
use penstock_algo::plane::{Lent, Place, Plane};
use penstock_algo::wire;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/penstock.bpf.o"));
pub(super) const PROGRAM: &str = "penstock";
pub(super) const CONSTANTS: &str = ".rodata.constants";
const TEST: &str = ".data.test";
const CLASS_COUNTERS: &str = "class_counters";
const REASONS: &str = "reasons";
const SAMPLES: &str = "samples";
const WORKS: &str = "works";

/// What the kernel would not do.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A step on the way into the kernel failed.
    #[error("{what}: {source}")]
    Refused {
        /// The step.
        what: &'static str,
        /// The kernel's answer.
        source: libbpf_rs::Error,
    },
    /// A map cannot be shared with this process.
    #[error("the map {map} cannot be mapped into memory: {source}")]
    Unmapped {
        /// Its name.
        map: &'static str,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// Pins cannot be listed.
    #[error("{}: {source}", folder.display())]
    Unreadable {
        /// Where they are.
        folder: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The program is not what this library was built with.
    #[error("the kernel program has no map {0}")]
    NoMap(&'static str),
    /// Ports offer packets to more links than a decision can name.
    #[error("links of all ports: {0}; the kernel program takes {max}: pair ports, or give them fewer links", max = wire::PST_LINKS_MAX)]
    TooManyLinks(usize),
}

/// What a program costs before it runs. The stack needs no number: the verifier refuses more than 512 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramCost {
    /// BPF instructions, after the verifier left out what the constants rule out.
    pub instructions: u32,
    /// Instructions that the verifier looked at; it takes a million.
    pub verified: u32,
}

pub(super) fn refused(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> KernelError {
    move |source| KernelError::Refused { what, source }
}

/// An interface that packets come in by.
#[derive(Debug, Clone, Default)]
pub struct Port {
    /// Its index. 0: it is not there, and its links keep their places for when it is.
    pub ifindex: u32,
    /// Links that its packets are offered to, in this order: indices into the plan's.
    pub links: Vec<u32>,
    /// Index of the interface that what passes leaves by; without it packets go on into the kernel.
    pub forward: Option<u32>,
    /// What of the interface was changed for this, and must be made as it was: `PST_PORT_PROMISCUOUS`, `PST_PORT_UNSTRIPPED`.
    pub changed: u32,
    /// Who holds its packets: the index of its first queue's part (`pst_port.shaper_first`).
    pub shaper_first: u32,
}

/// What a program is loaded with beside its policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// Whether each limit has counters of its own. Not said: while there are at most [`super::COUNTED_ROWS_MAX`] rows of limits files.
    pub counts_limits: Option<bool>,
    /// Whether lines of the limiter table are asked for by a store, before they are looked at. Not said: while the table is larger than
    /// a CPU's own cache (2 MB). Stores take a line from the other CPUs, which is worth it only where it is in nobody's cache.
    pub asks_ahead: Option<bool>,
}

/// What a program is loaded for.
pub(super) struct Kind<'a> {
    pub is_test: bool,
    /// Who holds packets already.
    pub shaping: Option<&'a Shaping>,
}

/// A policy in the kernel. Dropping it takes it out again, unless it is pinned.
#[derive(Debug)]
pub struct Generation {
    pub(super) maps: Maps,
    program: OwnedFd,
    limiter_buckets: SharedArray<wire::Bucket>,
    limits: SharedArray<wire::Limit>,
    meters: SharedArray<wire::MeterState>,
    pub(super) shares: SharedShares,
    counters: Option<LimitCounters>,
    classes_before: SharedArray<wire::pst_counters>,
    reasons_before: SharedArray<u64>,
    /// By `pst_decision.link`: the plan's link.
    pub(super) links: Vec<u32>,
}

fn share<T: Copy>(maps: &Maps, name: &'static str) -> Result<SharedArray<T>, KernelError> {
    SharedArray::map(maps.get(name)?).map_err(|source| KernelError::Unmapped { map: name, source })
}

fn share_filled<T: Copy>(maps: &Maps, name: &'static str, values: &[T]) -> Result<SharedArray<T>, KernelError> {
    let mut shared = share(maps, name)?;
    shared.fill(values);
    Ok(shared)
}

impl Generation {
    /// Loads a plane into the kernel. No packet sees it yet.
    ///
    /// # Errors
    /// When the kernel refuses a map or the program.
    pub fn load(plane: &Plane, ports: &[Port]) -> Result<Self, KernelError> {
        Self::load_with(plane, ports, LoadOptions::default())
    }

    /// [`Generation::load`] with options.
    ///
    /// # Errors
    /// As [`Generation::load`].
    pub fn load_with(plane: &Plane, ports: &[Port], options: LoadOptions) -> Result<Self, KernelError> {
        Self::build(plane, ports, options, Kind { is_test: false, shaping: None })
    }

    /// The next generation, with the workers of those before it.
    pub(super) fn load_next(
        plane: &Plane,
        ports: &[Port],
        options: LoadOptions,
        shaping: Option<&Shaping>,
    ) -> Result<Self, KernelError> {
        Self::build(plane, ports, options, Kind { is_test: false, shaping })
    }

    /// Like [`Generation::load_with`], for [`Generation::test_run`]: time and chance are the test's.
    ///
    /// # Errors
    /// As [`Generation::load`].
    pub fn load_for_test(plane: &Plane, ports: &[Port], options: LoadOptions) -> Result<Self, KernelError> {
        Self::build(plane, ports, options, Kind { is_test: true, shaping: None })
    }

    fn build(plane: &Plane, ports: &[Port], options: LoadOptions, kind: Kind<'_>) -> Result<Self, KernelError> {
        let image = plane.image();
        let doors = Doors::new(ports);
        let mut open = ObjectBuilder::default().open_memory(OBJECT).map_err(refused("reading the kernel program"))?;
        let constants = constants(&image, &doors, options, &kind);
        size_maps(&mut open, &image, &doors, &constants)?;
        fill_parts(&mut open, &image, &doors)?;
        share_maps(&mut open, kind.shaping)?;
        if constants.has_buffer_length != 0 {
            // The kernels that tell the length of such frames are those that take programs for them.
            open.progs_mut().for_each(|mut program| program.set_flags(libbpf_sys::BPF_F_XDP_HAS_FRAGS));
        }
        let object = open.load().map_err(refused("loading the kernel program"))?;
        let maps = Maps::of(&object)?;
        share_filled(&maps, "rule_buckets", image.rule_buckets)?;
        share_filled(&maps, "limiter_buckets", image.limiter_buckets)?;
        share_filled(&maps, "limits", image.limits)?;
        share_filled(&maps, "meters", image.meters)?;
        let program = object.progs().find(|program| program.name() == PROGRAM).ok_or(KernelError::NoMap(PROGRAM))?;
        let program = program.as_fd().try_clone_to_owned();
        let program = program.map_err(|source| KernelError::Unmapped { map: PROGRAM, source })?;
        let generation = Self::over(maps, program, constants.counts_limits != 0, doors.links.clone())?;
        generation.open_doors(&doors, ports)?;
        Ok(generation)
    }

    /// A generation whose program and maps are in the kernel.
    fn over(maps: Maps, program: OwnedFd, counts_limits: bool, links: Vec<u32>) -> Result<Self, KernelError> {
        let counters = match counts_limits {
            false => None,
            true => {
                Some(LimitCounters { slots: share(&maps, "slot_counters")?, limits: share(&maps, "limit_counters")? })
            }
        };
        Ok(Self {
            program,
            limiter_buckets: share(&maps, "limiter_buckets")?,
            limits: share(&maps, "limits")?,
            meters: share(&maps, "meters")?,
            shares: SharedShares::map(&maps)?,
            counters,
            classes_before: share(&maps, "classes_before")?,
            reasons_before: share(&maps, "reasons_before")?,
            links,
            maps,
        })
    }

    /// Pins the program and its maps in a folder of a BPF file system, where they outlive this process.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn pin(&mut self, folder: &Path) -> Result<(), KernelError> {
        self.maps.pin(folder)?;
        pin(self.program.as_fd(), &folder.join(PROGRAM))
    }

    /// A generation that was pinned, with the ports that it was loaded for.
    ///
    /// # Errors
    /// When pins are missing, or the kernel refuses.
    pub fn from_pins(folder: &Path, ports: &[Port]) -> Result<Self, KernelError> {
        let maps = Maps::from_pins(folder)?;
        let program = open_pin(&folder.join(PROGRAM))?;
        let constants = Self::constants_in(&maps)?;
        Self::over(maps, program, constants.counts_limits != 0, Doors::new(ports).links)
    }

    fn constants_in(maps: &Maps) -> Result<wire::pst_constants, KernelError> {
        let bytes = maps.get(CONSTANTS)?.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        Ok(value_of(&bytes.map_err(refused("reading the program's constants"))?.unwrap_or_default()))
    }

    /// What the program was loaded with.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn constants(&self) -> Result<wire::pst_constants, KernelError> {
        Self::constants_in(&self.maps)
    }

    /// The program, to be attached.
    #[must_use]
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Memory that the program shares, for [`Plane::lend`]. It lives as long as this generation.
    #[must_use]
    pub(super) fn memory(&self) -> Lent {
        Lent {
            limiter_buckets: self.limiter_buckets.lent(),
            limits: self.limits.lent(),
            meters: self.meters.lent(),
            shares: self.shares.lent(),
        }
    }

    fn open_doors(&self, doors: &Doors, ports: &[Port]) -> Result<(), KernelError> {
        let pairs = self.maps.get("pairs")?;
        for port in ports.iter().filter(|port| port.ifindex != 0) {
            if let Some(forward) = port.forward {
                let (key, value) = (port.ifindex.to_ne_bytes(), forward.to_ne_bytes());
                pairs.update(&key, &value, MapFlags::ANY).map_err(refused("pairing two ports"))?;
            }
        }
        let map = self.maps.get("ports")?;
        for (ifindex, port) in doors.ports.iter().filter(|(ifindex, _)| *ifindex != 0) {
            map.update(&ifindex.to_ne_bytes(), bytes_of(port), MapFlags::ANY).map_err(refused("opening a port"))?;
        }
        Ok(())
    }

    /// Judges one frame by `BPF_PROG_RUN`, at a time and with a random number of the test's. Returns the XDP action, the frame as
    /// the program left it, and its decision. The frame came in by the loopback interface, index 1.
    ///
    /// # Errors
    /// When the kernel refuses the frame: it takes 14 bytes to a page, less its head room.
    pub fn test_run(
        &mut self,
        frame: &[u8],
        now_ns: u64,
        random_u32: u32,
    ) -> Result<(u32, Vec<u8>, wire::Decision), KernelError> {
        let test = wire::pst_test { now_ns, random_u32, ..wire::pst_test::default() };
        let key = 0_u32.to_ne_bytes();
        let tests = self.maps.get(TEST)?;
        tests.update(&key, bytes_of(&test), MapFlags::ANY).map_err(refused("setting a test's clock"))?;
        let mut data_out = vec![0; frame.len() + 256];
        let mut options = prog_run::options(frame, 1);
        options.data_out = data_out.as_mut_ptr().cast();
        options.data_size_out = count(data_out.len());
        prog_run::run(self.program(), &mut options)?;
        data_out.truncate(options.data_size_out as usize);
        let left = tests.lookup(&key, MapFlags::ANY).map_err(refused("reading a test's decision"))?;
        Ok((options.retval, data_out, value_of::<wire::pst_test>(&left.unwrap_or_default()).decision))
    }

    /// Judges one frame over and over on the CPU that calls, at the time of the last [`Generation::test_run`]. Several threads may.
    /// Returns how long once took, in the mean.
    ///
    /// # Errors
    /// As [`Generation::test_run`].
    pub fn test_repeat(&self, frame: &[u8], times: u32) -> Result<Duration, KernelError> {
        prog_run::time_program(self.program(), frame, times)
    }

    /// What was counted by class: by all CPUs, and by the generations before.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn class_counters(&self) -> Result<Vec<wire::pst_counters>, KernelError> {
        let map = self.maps.get(CLASS_COUNTERS)?;
        let of_class = |index: u32| {
            let cpus = map.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY).map_err(refused("reading counters"))?;
            let cpus = cpus.unwrap_or_default();
            Ok(cpus.iter().map(|bytes| value_of(bytes)).fold(self.classes_before.get(index as usize), sum))
        };
        (0..map.max_entries()).map(of_class).collect()
    }

    /// Packets by reason: of all CPUs, and of the generations before.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn reasons(&self) -> Result<Vec<u64>, KernelError> {
        let map = self.maps.get(REASONS)?;
        let of_reason = |index: u32| {
            let cpus = map.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY).map_err(refused("reading counters"))?;
            let cpus = cpus.unwrap_or_default();
            Ok(cpus.iter().map(|bytes| value_of::<u64>(bytes)).sum::<u64>() + self.reasons_before.get(index as usize))
        };
        (0..map.max_entries()).map(of_reason).collect()
    }

    /// What the generations before counted, to be told together with what this one counts.
    pub(super) fn set_counted_before(&mut self, classes: &[wire::pst_counters], reasons: &[u64]) {
        self.classes_before.fill(classes);
        self.reasons_before.fill(reasons);
    }

    /// What was counted at a limiter. None where limits are not counted.
    #[must_use]
    pub fn counters(&self, place: Place) -> Option<wire::pst_counters> {
        match place {
            Place::Slot(slot) => self.slot_counters(slot),
            Place::Limit(limit) => self.limit_counters(limit),
        }
    }

    /// Adds to what was counted at a limiter, while the program counts.
    pub(super) fn add_counters(&self, place: Place, more: &wire::pst_counters) {
        if let Some(counters) = &self.counters {
            counters.add(place, more);
        }
    }

    /// What of an interface was changed for this generation or one before it.
    pub(super) fn changed(&self, ifindex: u32) -> u32 {
        let port = self.maps.get("ports").ok().and_then(|map| map.lookup(&ifindex.to_ne_bytes(), MapFlags::ANY).ok());
        let port: wire::pst_port = value_of(&port.flatten().unwrap_or_default());
        port.flags & (wire::PST_PORT_PROMISCUOUS | wire::PST_PORT_UNSTRIPPED)
    }

    /// Takes the samples of packets that were dropped or marked since the last call, oldest first: at most one a CPU in
    /// [`wire::PST_SAMPLE_GAP_NSEC`].
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn drain_samples(&self) -> Result<Vec<wire::pst_sample>, KernelError> {
        samples::drain(self.maps.get(SAMPLES)?)
    }

    /// Samples that were not taken in time: the ring was full. Counted since the generation was loaded.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn samples_lost(&self) -> Result<u64, KernelError> {
        samples::lost(self.maps.get(WORKS)?)
    }

    /// What was counted at a slot of the limiter table. None where limits are not counted: see [`LoadOptions`].
    ///
    /// # Panics
    /// When there is no such slot.
    #[must_use]
    pub fn slot_counters(&self, slot: u32) -> Option<wire::pst_counters> {
        self.counters.as_ref().map(|counters| counters.slots.get(slot as usize))
    }

    /// What was counted at the limit of a class. None where limits are not counted.
    ///
    /// # Panics
    /// When there is no such limit.
    #[must_use]
    pub fn limit_counters(&self, limit: u32) -> Option<wire::pst_counters> {
        self.counters.as_ref().map(|counters| counters.limits.get(limit as usize))
    }

    /// Counters follow a row that the writer moved to another slot (`pst_table_insertion.moves`). A packet that was judged before
    /// the move and is counted after it stays with the old slot.
    ///
    /// # Panics
    /// When there is no such slot.
    pub fn move_counters(&self, from_slot: u32, to_slot: u32) {
        if let Some(counters) = &self.counters {
            counters.shift(from_slot as usize, to_slot as usize);
        }
    }

    /// Forgets what was counted at a slot that was freed.
    ///
    /// # Panics
    /// When there is no such slot.
    pub fn reset_counters(&self, slot: u32) {
        if let Some(counters) = &self.counters {
            counters.clear(slot as usize);
        }
    }

    /// The limiter table, shared with the kernel.
    #[must_use]
    pub fn limiter_buckets(&self) -> &SharedArray<wire::Bucket> {
        &self.limiter_buckets
    }

    /// The limits of classes, shared with the kernel.
    #[must_use]
    pub fn limits(&self) -> &SharedArray<wire::Limit> {
        &self.limits
    }

    /// The limits of classes, to be written to.
    pub fn limits_mut(&mut self) -> &mut SharedArray<wire::Limit> {
        &mut self.limits
    }

    /// The states of RFC meters, shared with the kernel.
    #[must_use]
    pub fn meters(&self) -> &SharedArray<wire::MeterState> {
        &self.meters
    }

    /// The states of RFC meters, to be written to.
    pub fn meters_mut(&mut self) -> &mut SharedArray<wire::MeterState> {
        &mut self.meters
    }

    /// What the program costs.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn cost(&self) -> Result<ProgramCost, KernelError> {
        let mut info = libbpf_sys::bpf_prog_info::default();
        let mut length = u32::try_from(size_of_val(&info)).unwrap_or(0);
        let fd = self.program.as_raw_fd();
        // SAFETY: `info` is as long as `length` says.
        let failed =
            unsafe { libbpf_sys::bpf_obj_get_info_by_fd(fd, std::ptr::from_mut(&mut info).cast(), &raw mut length) };
        if failed != 0 {
            return Err(KernelError::Refused {
                what: "asking for the program",
                source: libbpf_rs::Error::from_raw_os_error(-failed),
            });
        }
        let instruction_bytes = 8;
        Ok(ProgramCost { instructions: info.xlated_prog_len / instruction_bytes, verified: info.verified_insns })
    }

    /// The plan's link that a decision speaks of.
    #[must_use]
    pub fn link_of(&self, decision: &wire::Decision) -> Option<u32> {
        self.links.get(usize::from(decision.link)).copied()
    }
}
