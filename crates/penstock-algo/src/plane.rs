// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of one generation in userspace, and frames through it in batches: the host of `pipeline.h`.

use crate::cells::{Cells, large_vec};
use crate::table::Table;
use crate::wire;
use shares::Shares;
use std::ffi::c_int;

mod carry;
mod room;
mod rows;
mod shares;

pub use crate::table::{Slot, buckets_for};
pub use carry::Carry;
pub use room::Room;
pub use rows::{Lent, Place, TakenOver};
pub use shares::{LentShares, ShareState, UserState};

/// What a plane is made of, before its tables are built.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// Links.
    pub links: Vec<wire::Link>,
    /// Tuples; salts are set by [`Plane::new`].
    pub tuples: Vec<wire::Tuple>,
    /// Rules.
    pub rules: Vec<wire::Rule>,
    /// Classes.
    pub classes: Vec<wire::Class>,
    /// Profiles.
    pub profiles: Vec<wire::Profile>,
    /// Limits of classes; states are made idle by [`Plane::new`].
    pub limits: Vec<wire::Limit>,
    /// Delay lines; the first one is nobody's. None when there are no others.
    pub lines: Vec<wire::Line>,
    /// Places in trees of shares: classes', then links'. None when no link shares anything.
    pub places: Vec<wire::TreePlace>,
    /// Entries of users, whose nodes lie behind those of places.
    pub user_count: u32,
    /// Classes whose users have no entries.
    pub slices: Vec<wire::Slice>,
    /// Their sketch; seeds are drawn by [`Plane::new`].
    pub sketch: wire::Sketch,
}

/// Something to look up: a value under a tuple's mask.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Index of the tuple.
    pub tuple: u32,
    /// The value under its mask.
    pub value: &'a wire::Key,
    /// A rule's index, or a profile's.
    pub target: u16,
    /// Rate code of a limiter; 0 for a rule.
    pub rate: u32,
}

/// Why a table could not be built with this secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// No room within the bounded search; another secret will do.
    #[error("the table found no room for entry {0}")]
    Full(usize),
    /// The same key twice, or two keys with one tag (2^-48 a pair): another secret tells them apart.
    #[error("entry {0} has the tag of another entry")]
    Taken(usize),
    /// An entry names a tuple that does not exist.
    #[error("entry {0} names an unknown tuple")]
    UnknownTuple(usize),
}

/// What a plane's memory holds, to be copied to where another host looks for it.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the fields of struct pst_plane, under their names
pub struct Image<'a> {
    pub links: &'a [wire::Link],
    pub tuples: &'a [wire::Tuple],
    pub rules: &'a [wire::Rule],
    pub classes: &'a [wire::Class],
    pub profiles: &'a [wire::Profile],
    pub rule_buckets: &'a [wire::Bucket],
    pub limiter_buckets: &'a [wire::Bucket],
    pub limits: &'a [wire::Limit],
    pub lines: &'a [wire::Line],
    pub meters: &'a [wire::MeterState],
    pub places: &'a [wire::TreePlace],
    pub nodes: &'a [wire::TreeNode],
    pub slices: &'a [wire::Slice],
    pub filters: &'a [u64],
    pub countdowns: &'a [u64],
    pub sketch: wire::Sketch,
    pub secret: wire::HashSecret,
    pub seed: u64,
}

/// Counters of a run. A packet is counted once: at its row, else at its class's limit, else at its class.
#[derive(Debug, Default)]
pub struct Tally {
    /// By class: packets that no limit judged.
    pub classes: Vec<wire::pst_counters>,
    /// By limit of a class.
    pub limits: Vec<wire::pst_counters>,
    /// By slot of the limiter table: see [`Plane::owner`].
    pub slots: Vec<wire::pst_counters>,
    /// By reason.
    pub reasons: Vec<u64>,
}

/// Tables, states and parts of one generation, at addresses that do not change.
#[derive(Debug)]
pub struct Plane {
    parts: Parts,
    seed: u64,
    secret: wire::HashSecret,
    rules: Table,
    limiters: Table,
    limits: Cells<wire::Limit>,
    meters: Cells<wire::MeterState>,
    shares: Shares,
    /// States in `meters` that no limit has.
    free_meters: Vec<u32>,
    link_first: u32,
    link_count: u32,
}

unsafe extern "C" {
    fn pst_host_rng_seed(seed: u64) -> u64;
    fn pst_host_rng_next(state: *mut u64) -> u32;
    fn pst_host_run(
        plane: *const wire::pst_plane,
        frames: *const wire::pst_frame,
        count: u32,
        rng: *mut u64,
        packets: *mut wire::Packet,
        decisions: *mut wire::Decision,
        tally: *const wire::pst_tally,
        room: *mut wire::pst_room,
    );
    fn pst_host_parse(packet: *mut wire::Packet, frame: *const wire::pst_frame);
    fn pst_host_mark(data: *mut u8, bytes: u32, packet: *const wire::Packet, decision: *const wire::Decision) -> c_int;
}

/// The random sequence of `rng.h`.
#[derive(Debug, Clone, Copy)]
pub struct Rng(u64);

impl Rng {
    /// A sequence that depends on the seed alone.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // SAFETY: a pure function of its argument.
        Self(unsafe { pst_host_rng_seed(seed) })
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        // SAFETY: the state is a live u64.
        unsafe { pst_host_rng_next(&mut self.0) }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        u64::from(self.next_u32()) << 32 | u64::from(self.next_u32())
    }
}

/// Parses one frame. Total: any bytes give a packet, perhaps with a reason why it is malformed.
#[must_use]
pub fn parse(data: &[u8], wire_bytes: u32, link_type: wire::pst_link_type) -> wire::Packet {
    let mut packet = wire::Packet::default();
    let frame = frame(data, wire_bytes, link_type, 0);
    // SAFETY: `frame` points to `data`, which lives through the call; the parser stays inside it.
    unsafe { pst_host_parse(&mut packet, &frame) };
    packet
}

/// A frame for [`Plane::run`]. It points into `data`.
#[must_use]
pub fn frame(data: &[u8], wire_bytes: u32, link_type: wire::pst_link_type, now_ns: u64) -> wire::pst_frame {
    let captured_bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
    wire::pst_frame { data: data.as_ptr(), now_ns, captured_bytes, wire_bytes, link_type, reserved: 0 }
}

/// Writes the mark that a decision asks for into a frame. Returns whether the frame has it now.
pub fn mark(data: &mut [u8], packet: &wire::Packet, decision: &wire::Decision) -> bool {
    let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
    // SAFETY: C writes inside `data` only, which is live and of that length.
    unsafe { pst_host_mark(data.as_mut_ptr(), bytes, packet, decision) != 0 }
}

fn is_window(profile: &wire::Profile) -> bool {
    u32::from(profile.meter) == wire::PST_METER_WINDOW
}

impl Plane {
    /// Builds the tables. Every limiter is idle at `now_ns`. The seed decides salts and the hash's secret: a live data plane
    /// draws it, a replay is told.
    ///
    /// # Errors
    /// When an entry finds no place with this secret; try another seed, unless a key really came twice.
    pub fn new<'a>(
        parts: Parts,
        rules: impl ExactSizeIterator<Item = Entry<'a>>,
        limiters: impl ExactSizeIterator<Item = Entry<'a>>,
        seed: u64,
        now_ns: u64,
    ) -> Result<Self, BuildError> {
        let mut plane = Self::empty(parts, seed);
        plane.limiters = Table::for_keys(limiters.len());
        plane.rules = Table::for_keys(rules.len());
        plane.make_idle(now_ns);
        for (owner, entry) in (0_u32..).zip(limiters) {
            if entry.rate != 0 {
                plane.insert_row(&entry, owner, now_ns)?;
            }
        }
        for (owner, entry) in (0_u32..).zip(rules) {
            plane.rules.insert(&plane.parts.tuples, &plane.secret, &entry, 0, owner)?;
        }
        Ok(plane)
    }

    /// Everything that follows from the parts and the seed, with empty tables.
    fn empty(mut parts: Parts, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut secret = wire::HashSecret::default();
        secret.words.fill_with(|| rng.next_u64());
        parts.tuples.iter_mut().for_each(|tuple| tuple.salt = rng.next_u64());
        let link_count = u32::try_from(parts.links.len()).unwrap_or(0);
        let limits = Cells::Owned(parts.limits.clone());
        let shares = Shares::new(&parts, &mut rng);
        Self {
            parts,
            seed,
            secret,
            rules: Table::for_keys(0),
            limiters: Table::for_keys(0),
            limits,
            meters: Cells::new(0),
            shares,
            free_meters: Vec::new(),
            link_first: 0,
            link_count,
        }
    }

    /// Room for the states of RFC meters, and limits of classes that are idle.
    fn make_idle(&mut self, now_ns: u64) {
        let has_meters = self.parts.profiles.iter().any(|profile| !is_window(profile));
        let rows = self.limiters.owners.len() + self.parts.limits.len();
        let capacity = if has_meters { u32::try_from(rows).unwrap_or(u32::MAX) } else { 0 };
        // The first one is nobody's: a state of 0 tells where a writer was killed (pst_table_heal).
        self.meters = Cells::new(if has_meters { capacity as usize + 1 } else { 0 });
        self.free_meters = (1..=capacity).rev().collect();
        for index in 0..self.limits.len() {
            let profile = self.parts.limits[index].profile;
            let state = self.idle_state(profile, now_ns).unwrap_or(0);
            if let Some(limit) = self.limits.at_mut(index) {
                // SAFETY: inside of the cells.
                unsafe { (*limit).state = state };
            }
        }
    }

    /// The state of an idle limiter: a virtual finish time, or a meter of its own. None when there is no meter left.
    fn idle_state(&mut self, profile: u16, now_ns: u64) -> Option<u64> {
        if self.parts.profiles.get(usize::from(profile)).is_none_or(is_window) {
            return Some(crate::limiter::idle(now_ns));
        }
        let meter = self.free_meters.pop()?;
        let state = self.meters.at_mut(meter as usize)?;
        // SAFETY: inside of the cells; nobody uses a free meter.
        unsafe { state.write_volatile(crate::meter::idle(now_ns)) };
        Some(u64::from(meter))
    }

    /// What the secret and the salts were drawn from.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Offers packets to this link only.
    pub fn select_link(&mut self, link: u32) {
        self.link_first = link;
        self.link_count = 1;
    }

    /// The limiter that lies in a slot: its index among the limiters given to [`Plane::new`].
    #[must_use]
    pub fn owner(&self, slot: usize) -> Option<usize> {
        self.limiters.owners.get(slot).filter(|owner| **owner != wire::PST_NONE).map(|owner| *owner as usize)
    }

    /// All memory as it is now.
    #[must_use]
    pub fn image(&self) -> Image<'_> {
        Image {
            links: &self.parts.links,
            tuples: &self.parts.tuples,
            rules: &self.parts.rules,
            classes: &self.parts.classes,
            profiles: &self.parts.profiles,
            rule_buckets: self.rules.image(),
            limiter_buckets: self.limiters.image(),
            limits: self.limits.as_slice(),
            lines: &self.parts.lines,
            meters: self.meters.as_slice(),
            places: &self.parts.places,
            nodes: self.shares.nodes.as_slice(),
            slices: self.shares.slices.as_slice(),
            filters: self.shares.filters.as_slice(),
            countdowns: self.shares.countdowns.as_slice(),
            sketch: self.shares.sketch,
            secret: self.secret,
            seed: self.seed,
        }
    }

    /// Profiles of this generation.
    #[must_use]
    pub fn profiles(&self) -> &[wire::Profile] {
        &self.parts.profiles
    }

    /// Zeroed counters of the right size.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally {
            classes: vec![wire::pst_counters::default(); self.parts.classes.len()],
            limits: vec![wire::pst_counters::default(); self.parts.limits.len()],
            slots: large_vec(self.limiters.owners.len()),
            reasons: vec![0; wire::PST_REASON_COUNT as usize],
        }
    }

    /// Whether some packet's verdict takes a random number.
    #[must_use]
    pub fn uses_random(&self) -> bool {
        !self.parts.slices.is_empty() || self.parts.profiles.iter().any(crate::limiter::drops_early)
    }

    fn view(&mut self) -> wire::pst_plane {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        wire::pst_plane {
            links: self.parts.links.as_ptr(),
            tuples: self.parts.tuples.as_ptr(),
            rules: self.parts.rules.as_ptr(),
            classes: self.parts.classes.as_ptr(),
            profiles: self.parts.profiles.as_ptr(),
            tables: [self.rules.view(), self.limiters.view()],
            limits: self.limits.as_mut_ptr(),
            meters: self.meters.as_mut_ptr(),
            lines: self.parts.lines.as_mut_ptr(),
            places: self.parts.places.as_ptr(),
            nodes: self.shares.nodes.as_mut_ptr(),
            slices: self.shares.slices.as_mut_ptr(),
            filters: self.shares.filters.as_mut_ptr(),
            countdowns: self.shares.countdowns.as_mut_ptr(),
            sketch: self.shares.sketch,
            secret: self.secret,
            link_first: self.link_first,
            link_count: self.link_count,
            tuple_count: count(self.parts.tuples.len()),
            rule_count: count(self.parts.rules.len()),
            class_count: count(self.parts.classes.len()),
            profile_count: count(self.parts.profiles.len()),
            limit_count: count(self.parts.limits.len()),
            meter_count: count(self.meters.len()),
            line_count: count(self.parts.lines.len()),
            place_count: count(self.parts.places.len()),
            node_count: count(self.shares.nodes.len()),
            slice_count: count(self.shares.slices.len()),
            filter_count: count(self.shares.filters.len()),
            countdown_count: count(self.shares.countdowns.len()),
            waiting: std::ptr::null(),
            waiting_mask: 0,
            room_chunks: 0,
            uses_random: self.uses_random(),
            shapes: self.parts.profiles.iter().any(crate::limiter::holds),
            is_holder_absent: false,
            is_holder_leaving: false,
        }
    }

    /// Runs frames, in order, and counts them. `packets` and `decisions` are made as long as `frames`. Packets that are held wait in
    /// `room` until their departure.
    ///
    /// # Safety
    /// Every frame's `data` must point to `captured_bytes` readable bytes.
    ///
    /// # Panics
    /// When the plane has no link, or the tally is not this plane's.
    pub unsafe fn run(
        &mut self,
        frames: &[wire::pst_frame],
        rng: &mut Rng,
        tally: &mut Tally,
        room: &mut Room,
        packets: &mut Vec<wire::Packet>,
        decisions: &mut Vec<wire::Decision>,
    ) {
        assert!(self.link_first as usize + (self.link_count as usize) <= self.parts.links.len() && self.link_count > 0);
        assert!(
            tally.classes.len() == self.parts.classes.len()
                && tally.limits.len() == self.parts.limits.len()
                && tally.slots.len() == self.limiters.owners.len()
                && tally.reasons.len() == wire::PST_REASON_COUNT as usize
        );
        packets.resize(frames.len(), wire::Packet::default());
        decisions.resize(frames.len(), wire::Decision::default());
        let counters = wire::pst_tally {
            classes: tally.classes.as_mut_ptr(),
            limits: tally.limits.as_mut_ptr(),
            slots: tally.slots.as_mut_ptr(),
            reasons: tally.reasons.as_mut_ptr(),
        };
        let view = self.view();
        let count = u32::try_from(frames.len()).unwrap_or(u32::MAX);
        // SAFETY: the view's pointers and counts are of live vectors; the tally fits the plane (asserted); both output
        // vectors have `count` elements; frames are readable by this function's contract.
        unsafe {
            pst_host_run(
                &view,
                frames.as_ptr(),
                count,
                &mut rng.0,
                packets.as_mut_ptr(),
                decisions.as_mut_ptr(),
                &counters,
                room.wire_mut(),
            );
        }
    }
}
