// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's object before it is loaded: how large its maps are, and what stands in its sections.

use super::counters::counts_by_default;
use super::generation::{CONSTANTS, KernelError, Kind, LoadOptions, OBJECT, Port, refused};
use super::shaping::{SHARED, Shaping};
use libbpf_rs::{OpenObject, libbpf_sys};
use penstock_algo::limiter::{drops_early, holds};
use penstock_algo::plane::Image;
use penstock_algo::wire;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::size_of;
use std::os::fd::AsFd;

/// Limiter tables up to this size (2 MB) live in a CPU's own cache; lines of larger ones are asked for ahead.
const CACHED_BUCKETS_MAX: usize = 32_768;

/// The memory of a plain struct.
pub(super) fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: structs of wire.h have no padding that is not a field.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

pub(super) fn value_of<T: Copy + Default>(bytes: &[u8]) -> T {
    let mut value = T::default();
    let length = bytes.len().min(size_of::<T>());
    // SAFETY: at most the size of T is written, and any bits make a valid T of wire.h.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), std::ptr::from_mut(&mut value).cast(), length) };
    value
}

pub(super) fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Links in the order in which ports offer packets to them, and each port's place among them.
#[derive(Debug, Default)]
pub(super) struct Doors {
    pub links: Vec<u32>,
    pub ports: Vec<(u32, wire::pst_port)>,
}

impl Doors {
    pub fn new(ports: &[Port]) -> Self {
        let mut doors = Self::default();
        for port in ports {
            let forward = if port.forward.is_some() { wire::PST_PORT_FORWARD } else { 0 };
            let wire = wire::pst_port {
                link_first: count(doors.links.len()),
                link_count: count(port.links.len()),
                flags: wire::PST_PORT_ACTIVE | forward | port.changed,
                shaper_first: port.shaper_first,
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

/// Tells the program from that of any other build.
pub(super) fn build_of_this() -> u64 {
    let mut hasher = DefaultHasher::new();
    OBJECT.hash(&mut hasher);
    hasher.finish()
}

pub(super) fn constants(
    image: &Image<'_>,
    doors: &Doors,
    options: LoadOptions,
    kind: &Kind<'_>,
) -> wire::pst_constants {
    let counts_limits = options.counts_limits.unwrap_or_else(|| counts_by_default(image.limiter_buckets.len()));
    let asks_ahead = options.asks_ahead.unwrap_or(image.limiter_buckets.len() > CACHED_BUCKETS_MAX);
    let of_links = image.links.iter().map(|link| link.tuple_count);
    let of_classes = image.classes.iter().map(|class| class.tuple_count);
    wire::pst_constants {
        secret: image.secret,
        seed: image.seed,
        links_max: doors.links_max(),
        tuples_max: of_links.chain(of_classes).max().unwrap_or(0),
        bucket_counts: [count(image.rule_buckets.len()), count(image.limiter_buckets.len())],
        has_buffer_length: u8::from(kernel_tells_buffer_length()),
        uses_random: u8::from(!image.slices.is_empty() || image.profiles.iter().any(drops_early)),
        is_test: u8::from(kind.is_test),
        link_count: count(doors.links.len()),
        tuple_count: count(image.tuples.len()),
        rule_count: count(image.rules.len()),
        class_count: count(image.classes.len()),
        profile_count: count(image.profiles.len()),
        line_count: count(image.lines.len()),
        place_count: count(image.places.len()),
        node_count: count(image.nodes.len()),
        slice_count: count(image.slices.len()),
        filter_count: count(image.filters.len()),
        countdown_part_count: count(image.countdowns.len()),
        reserved_2: 0,
        sketch: image.sketch,
        counts_limits: u8::from(counts_limits),
        asks_ahead: u8::from(asks_ahead),
        shapes: u8::from(image.profiles.iter().any(holds)),
        reserved: [0; 10],
        layout: wire::layout(),
        build: build_of_this(),
    }
}

/// Whether programs may ask for the length of frames that lie in several buffers (Linux 5.18).
fn kernel_tells_buffer_length() -> bool {
    let helper = libbpf_sys::BPF_FUNC_xdp_get_buff_len;
    // SAFETY: a probe by numbers alone.
    unsafe { libbpf_sys::libbpf_probe_bpf_helper(libbpf_sys::BPF_PROG_TYPE_XDP, helper, std::ptr::null()) == 1 }
}

pub(super) fn size_maps(
    open: &mut OpenObject,
    image: &Image<'_>,
    doors: &Doors,
    constants: &wire::pst_constants,
) -> Result<(), KernelError> {
    let ports = doors.ifindex_max().saturating_add(1);
    let counted = |entries: usize| if constants.counts_limits == 0 { 0 } else { count(entries) };
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let entries = match name.as_str() {
            CONSTANTS => {
                map.set_initial_value(bytes_of(constants)).map_err(refused("the program's constants"))?;
                continue;
            }
            "ports" | "pairs" => ports,
            "class_counters" | "classes_before" => count(image.classes.len()),
            "rule_buckets" => count(image.rule_buckets.len()),
            "limiter_buckets" => count(image.limiter_buckets.len()),
            "limits" => count(image.limits.len()),
            "meters" => count(image.meters.len()),
            "slot_counters" => counted(image.limiter_buckets.len() * wire::PST_BUCKET_SLOTS as usize),
            "limit_counters" => counted(image.limits.len()),
            _ => continue,
        };
        map.set_max_entries(entries.max(1)).map_err(refused("the size of a map"))?;
    }
    Ok(())
}

/// Goes on with the maps of workers that are there.
pub(super) fn share_maps(open: &mut OpenObject, shaping: Option<&Shaping>) -> Result<(), KernelError> {
    let Some(shaping) = shaping else { return Ok(()) };
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if let Some(shared) = SHARED.contains(&name.as_str()).then(|| shaping.map(&name)).flatten() {
            map.reuse_fd(shared.as_fd()).map_err(refused("sharing a map"))?;
        }
    }
    Ok(())
}

/// Fills a section that holds one kind of a plane's parts, and gives it their size.
fn fill<T: Copy>(open: &mut OpenObject, name: &'static str, values: &[T]) -> Result<(), KernelError> {
    if values.is_empty() {
        return Ok(()); // the program has one of zeros, and never looks at it
    }
    let mut map = open.maps_mut().find(|map| map.name() == name).ok_or(KernelError::NoMap(name))?;
    // SAFETY: structs of wire.h have no padding that is not a field.
    let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) };
    map.set_value_size(count(bytes.len())).map_err(refused("the size of a section"))?;
    map.set_initial_value(bytes).map_err(refused("the contents of a section"))
}

pub(super) fn fill_parts(open: &mut OpenObject, image: &Image<'_>, doors: &Doors) -> Result<(), KernelError> {
    if doors.links.len() > wire::PST_LINKS_MAX as usize {
        return Err(KernelError::TooManyLinks(doors.links.len()));
    }
    let link_of = |index: &u32| image.links.get(*index as usize).copied().unwrap_or_default();
    let offered: Vec<wire::Link> = doors.links.iter().map(link_of).collect();
    fill(open, ".data.links", &offered)?;
    fill(open, ".data.tuples", image.tuples)?;
    fill(open, ".data.rules", image.rules)?;
    fill(open, ".data.classes", image.classes)?;
    fill(open, ".data.profiles", image.profiles)?;
    fill(open, ".data.lines", image.lines)?;
    fill(open, ".data.places", image.places)?;
    fill(open, ".data.nodes", image.nodes)?;
    fill(open, ".data.slices", image.slices)?;
    fill(open, ".data.filters", image.filters)?;
    fill(open, ".data.countdowns", image.countdowns)
}
