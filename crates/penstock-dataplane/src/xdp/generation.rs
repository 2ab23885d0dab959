// SPDX-License-Identifier: MIT OR Apache-2.0
//! One policy in the kernel: a program and its maps.

use super::memory::SharedArray;
use libbpf_rs::{
    Link, MapCore, MapFlags, MapMut, Object, ObjectBuilder, OpenObject, ProgramInput, ProgramMut, libbpf_sys,
};
use penstock_algo::limiter::drops_early;
use penstock_algo::plane::{Image, Plane};
use penstock_algo::wire;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/penstock.bpf.o"));
const PROGRAM: &str = "penstock";
const CONSTANTS: &str = ".rodata.constants";
const TEST: &str = ".data.test";
const CLASS_COUNTERS: &str = "class_counters";

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
    /// The program is not what this library was built with.
    #[error("the kernel program has no map {0}")]
    NoMap(&'static str),
}

/// What a program costs before it runs. The stack needs no number: the verifier refuses more than 512 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramCost {
    /// BPF instructions, after the verifier left out what the constants rule out.
    pub instructions: u32,
    /// Instructions that the verifier looked at; it takes a million.
    pub verified: u32,
}

fn refused(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> KernelError {
    move |source| KernelError::Refused { what, source }
}

/// An interface that packets come in by.
#[derive(Debug, Clone, Default)]
pub struct Port {
    /// Its index.
    pub ifindex: u32,
    /// Links that its packets are offered to, in this order: indices into the plan's.
    pub links: Vec<u32>,
    /// Index of the interface that what passes leaves by; without it packets go on into the kernel.
    pub forward: Option<u32>,
}

/// A policy in the kernel. Dropping it takes it out again, unless it is pinned.
#[derive(Debug)]
pub struct Generation {
    object: Object,
    limiter_buckets: SharedArray<wire::Bucket>,
    limits: SharedArray<wire::Limit>,
    meters: SharedArray<wire::MeterState>,
    /// By `pst_decision.link`: the plan's link.
    links: Vec<u32>,
}

/// The memory of a plain struct.
fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: structs of wire.h have no padding that is not a field.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

fn value_of<T: Copy + Default>(bytes: &[u8]) -> T {
    let mut value = T::default();
    let length = bytes.len().min(size_of::<T>());
    // SAFETY: at most the size of T is written, and any bits make a valid T of wire.h.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), std::ptr::from_mut(&mut value).cast(), length) };
    value
}

fn sum(a: wire::pst_counters, b: wire::pst_counters) -> wire::pst_counters {
    wire::pst_counters {
        offered_packets: a.offered_packets + b.offered_packets,
        offered_bytes: a.offered_bytes + b.offered_bytes,
        dropped_packets: a.dropped_packets + b.dropped_packets,
        dropped_bytes: a.dropped_bytes + b.dropped_bytes,
        green_packets: a.green_packets + b.green_packets,
        yellow_packets: a.yellow_packets + b.yellow_packets,
        marked_packets: a.marked_packets + b.marked_packets,
        held_packets: a.held_packets + b.held_packets,
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Links in the order in which ports offer packets to them, and each port's place among them.
#[derive(Debug, Default)]
struct Doors {
    links: Vec<u32>,
    ports: Vec<(u32, wire::pst_port)>,
}

impl Doors {
    fn new(ports: &[Port]) -> Self {
        let mut doors = Self::default();
        for port in ports {
            let forward = if port.forward.is_some() { wire::PST_PORT_FORWARD } else { 0 };
            let wire = wire::pst_port {
                link_first: count(doors.links.len()),
                link_count: count(port.links.len()),
                flags: wire::PST_PORT_ACTIVE | forward,
                reserved: 0,
            };
            doors.ports.push((port.ifindex, wire));
            doors.links.extend(&port.links);
        }
        doors
    }

    fn links_max(&self) -> u32 {
        self.ports.iter().map(|(_, port)| port.link_count).max().unwrap_or(0)
    }

    fn ifindex_max(&self) -> u32 {
        self.ports.iter().map(|(ifindex, _)| *ifindex).max().unwrap_or(0)
    }
}

fn constants(image: &Image<'_>, doors: &Doors, is_test: bool) -> wire::pst_constants {
    let of_links = image.links.iter().map(|link| link.tuple_count);
    let of_classes = image.classes.iter().map(|class| class.tuple_count);
    wire::pst_constants {
        secret: image.secret,
        links_max: doors.links_max(),
        tuples_max: of_links.chain(of_classes).max().unwrap_or(0),
        bucket_counts: [count(image.rule_buckets.len()), count(image.limiter_buckets.len())],
        has_buffer_length: u8::from(kernel_tells_buffer_length()),
        uses_random: u8::from(image.profiles.iter().any(drops_early)),
        is_test: u8::from(is_test),
        reserved: [0; 5],
    }
}

/// Whether programs may ask for the length of frames that lie in several buffers (Linux 5.18).
fn kernel_tells_buffer_length() -> bool {
    let helper = libbpf_sys::BPF_FUNC_xdp_get_buff_len;
    // SAFETY: a probe by numbers alone.
    unsafe { libbpf_sys::libbpf_probe_bpf_helper(libbpf_sys::BPF_PROG_TYPE_XDP, helper, std::ptr::null()) == 1 }
}

fn size_maps(
    open: &mut OpenObject,
    image: &Image<'_>,
    doors: &Doors,
    constants: &wire::pst_constants,
) -> Result<(), KernelError> {
    let ports = doors.ifindex_max().saturating_add(1);
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let entries = match name.as_str() {
            CONSTANTS => {
                map.set_initial_value(bytes_of(constants)).map_err(refused("the program's constants"))?;
                continue;
            }
            "ports" | "pairs" => ports,
            "links" => count(doors.links.len()),
            "tuples" => count(image.tuples.len()),
            "rules" => count(image.rules.len()),
            "classes" | "class_counters" => count(image.classes.len()),
            "profiles" => count(image.profiles.len()),
            "rule_buckets" => count(image.rule_buckets.len()),
            "limiter_buckets" => count(image.limiter_buckets.len()),
            "limits" => count(image.limits.len()),
            "meters" => count(image.meters.len()),
            _ => continue,
        };
        map.set_max_entries(entries.max(1)).map_err(refused("the size of a map"))?;
    }
    Ok(())
}

fn find<'a>(object: &'a mut Object, name: &'static str) -> Result<MapMut<'a>, KernelError> {
    object.maps_mut().find(|map| map.name() == name).ok_or(KernelError::NoMap(name))
}

fn write_all<T: Copy>(object: &mut Object, name: &'static str, values: &[T]) -> Result<(), KernelError> {
    let map = find(object, name)?;
    for (index, value) in values.iter().enumerate() {
        let key = count(index).to_ne_bytes();
        map.update(&key, bytes_of(value), MapFlags::ANY).map_err(refused("writing a map"))?;
    }
    Ok(())
}

fn share<T: Copy>(object: &mut Object, name: &'static str, values: &[T]) -> Result<SharedArray<T>, KernelError> {
    let mut shared =
        SharedArray::map(&find(object, name)?).map_err(|source| KernelError::Unmapped { map: name, source })?;
    shared.fill(values);
    Ok(shared)
}

impl Generation {
    /// Loads a plane into the kernel. No packet sees it yet.
    ///
    /// # Errors
    /// When the kernel refuses a map or the program.
    pub fn load(plane: &Plane, ports: &[Port]) -> Result<Self, KernelError> {
        Self::build(plane, ports, false)
    }

    /// Like [`Generation::load`], for [`Generation::test_run`]: time and chance are the test's.
    ///
    /// # Errors
    /// As [`Generation::load`].
    pub fn load_for_test(plane: &Plane, ports: &[Port]) -> Result<Self, KernelError> {
        Self::build(plane, ports, true)
    }

    fn build(plane: &Plane, ports: &[Port], is_test: bool) -> Result<Self, KernelError> {
        let image = plane.image();
        let doors = Doors::new(ports);
        let mut open = ObjectBuilder::default().open_memory(OBJECT).map_err(refused("reading the kernel program"))?;
        let constants = constants(&image, &doors, is_test);
        size_maps(&mut open, &image, &doors, &constants)?;
        if constants.has_buffer_length != 0 {
            // The kernels that tell the length of such frames are those that take programs for them.
            open.progs_mut().for_each(|mut program| program.set_flags(libbpf_sys::BPF_F_XDP_HAS_FRAGS));
        }
        let mut object = open.load().map_err(refused("loading the kernel program"))?;
        let offered: Vec<wire::Link> =
            doors.links.iter().filter_map(|link| image.links.get(*link as usize).copied()).collect();
        write_all(&mut object, "links", &offered)?;
        write_all(&mut object, "tuples", image.tuples)?;
        write_all(&mut object, "rules", image.rules)?;
        write_all(&mut object, "classes", image.classes)?;
        write_all(&mut object, "profiles", image.profiles)?;
        share(&mut object, "rule_buckets", image.rule_buckets)?;
        let limiter_buckets = share(&mut object, "limiter_buckets", image.limiter_buckets)?;
        let limits = share(&mut object, "limits", image.limits)?;
        let meters = share(&mut object, "meters", image.meters)?;
        let mut generation = Self { object, limiter_buckets, limits, meters, links: doors.links.clone() };
        generation.open_doors(&doors, ports)?;
        Ok(generation)
    }

    fn open_doors(&mut self, doors: &Doors, ports: &[Port]) -> Result<(), KernelError> {
        let pairs = find(&mut self.object, "pairs")?;
        for port in ports {
            if let Some(forward) = port.forward {
                let (key, value) = (port.ifindex.to_ne_bytes(), forward.to_ne_bytes());
                pairs.update(&key, &value, MapFlags::ANY).map_err(refused("pairing two ports"))?;
            }
        }
        let map = find(&mut self.object, "ports")?;
        for (ifindex, port) in &doors.ports {
            map.update(&ifindex.to_ne_bytes(), bytes_of(port), MapFlags::ANY).map_err(refused("opening a port"))?;
        }
        Ok(())
    }

    /// The program.
    ///
    /// # Errors
    /// The object is not what this library was built with.
    pub fn program(&mut self) -> Result<ProgramMut<'_>, KernelError> {
        self.object.progs_mut().find(|program| program.name() == PROGRAM).ok_or(KernelError::NoMap(PROGRAM))
    }

    /// Attaches the program to an interface for as long as the link is held.
    ///
    /// # Errors
    /// When the kernel refuses: there is a program already, or no such interface.
    pub fn attach(&mut self, ifindex: u32) -> Result<Link, KernelError> {
        let ifindex = i32::try_from(ifindex).unwrap_or(i32::MAX);
        self.program()?.attach_xdp(ifindex).map_err(refused("attaching the kernel program"))
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
        find(&mut self.object, TEST)?
            .update(&key, bytes_of(&test), MapFlags::ANY)
            .map_err(refused("setting a test's clock"))?;
        let mut data_out = vec![0; frame.len() + 256];
        let input = ProgramInput { data_in: Some(frame), data_out: Some(&mut data_out), ..ProgramInput::default() };
        let output = self.program()?.test_run(input).map_err(refused("BPF_PROG_RUN"))?;
        let action = output.return_value;
        let length = output.data.as_ref().map_or(0, |data| data.len());
        data_out.truncate(length);
        let left = find(&mut self.object, TEST)?
            .lookup(&key, MapFlags::ANY)
            .map_err(refused("reading a test's decision"))?
            .unwrap_or_default();
        Ok((action, data_out, value_of::<wire::pst_test>(&left).decision))
    }

    /// Judges one frame over and over on the CPU that calls, at the time of the last [`Generation::test_run`]. Several threads may.
    ///
    /// # Errors
    /// As [`Generation::test_run`].
    pub fn test_repeat(&self, frame: &[u8], times: u32) -> Result<(), KernelError> {
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
            data_in: frame.as_ptr().cast(),
            data_size_in: count(frame.len()),
            repeat: i32::try_from(times).unwrap_or(i32::MAX),
            ..Default::default()
        };
        let program =
            self.object.progs().find(|program| program.name() == PROGRAM).ok_or(KernelError::NoMap(PROGRAM))?;
        // SAFETY: the options point to `frame`, which lives through the call and is only read.
        let failed = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_fd().as_raw_fd(), &raw mut options) };
        match failed {
            0 => Ok(()),
            code => Err(refused("BPF_PROG_RUN")(libbpf_rs::Error::from_raw_os_error(-code))),
        }
    }

    /// What all CPUs counted, by class.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn class_counters(&self) -> Result<Vec<wire::pst_counters>, KernelError> {
        let map =
            self.object.maps().find(|map| map.name() == CLASS_COUNTERS).ok_or(KernelError::NoMap(CLASS_COUNTERS))?;
        let of_class = |index: u32| {
            let cpus = map.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY).map_err(refused("reading counters"))?;
            let cpus = cpus.unwrap_or_default();
            Ok(cpus.iter().map(|bytes| value_of(bytes)).fold(wire::pst_counters::default(), sum))
        };
        (0..map.max_entries()).map(of_class).collect()
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
    pub fn cost(&mut self) -> Result<ProgramCost, KernelError> {
        let program = self.program()?;
        let mut info = libbpf_sys::bpf_prog_info::default();
        let mut length = u32::try_from(size_of_val(&info)).unwrap_or(0);
        let fd = program.as_fd().as_raw_fd();
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
