// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fair shares of a plane: nodes of trees, slices, the sketch of users without entries; and what there is to see and to do beside packets.

use super::{Parts, Plane, Rng};
use crate::cells::Cells;
use crate::{share, wire};
use std::ptr::NonNull;

// SAFETY: total functions of their arguments; what they point to is read, or changed by words as packets change it.
unsafe extern "C" {
    safe fn pst_host_demand_Bps(demand: &wire::pst_ewma, now_ns: u64) -> u64;
    safe fn pst_host_slice_limit_Bps(slice: &wire::Slice) -> u64;
    fn pst_host_tree_tend(plane: *const wire::pst_plane, place: u32, now_ns: u64) -> bool;
    fn pst_host_user(plane: *const wire::pst_plane, key: *const wire::Key, class_index: u32) -> u64;
    fn pst_host_user_entry(plane: *const wire::pst_plane, user: u64, class_index: u32) -> u32;
    fn pst_host_user_rate_Bps(plane: *const wire::pst_plane, user: u64, class_index: u32, now_ns: u64) -> u64;
}

/// Countdowns of TCP flows that are above their share (`fairdrop.h`): flows that share one share its drops.
const COUNTDOWNS: usize = 1 << 16;

/// Memory for the shares of [`Plane::lend`]: where it begins, and how many elements it holds.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the fields of struct pst_plane, under their names
pub struct LentShares {
    pub nodes: (NonNull<wire::TreeNode>, usize),
    pub slices: (NonNull<wire::Slice>, usize),
    pub filters: (NonNull<u64>, usize),
}

/// What changes with packets.
#[derive(Debug)]
pub(crate) struct Shares {
    pub nodes: Cells<wire::TreeNode>,
    pub slices: Cells<wire::Slice>,
    pub filters: Cells<u64>,
    pub countdowns: Cells<u64>,
    pub sketch: wire::Sketch,
}

impl Shares {
    /// Nobody has sent anything. Draws the sketch's seeds, where there is one.
    pub fn new(parts: &Parts, rng: &mut Rng) -> Self {
        let places = parts.places.len();
        let nodes = if places == 0 { 0 } else { places + parts.user_count as usize };
        let mut sketch = parts.sketch;
        let filters = share::sketch_words(&sketch, &parts.slices);
        if filters > 0 {
            sketch.seeds.fill_with(|| rng.next_u64());
        }
        let is_periodic = |slice: &wire::Slice| slice.flags & wire::PST_SLICE_PERIODIC != 0;
        let countdowns = if parts.slices.iter().any(is_periodic) { COUNTDOWNS } else { 0 };
        Self {
            nodes: Cells::new(nodes),
            slices: Cells::Owned(parts.slices.clone()),
            filters: Cells::new(filters),
            countdowns: Cells::new(countdowns),
            sketch,
        }
    }

    /// Goes on in memory that is lent.
    ///
    /// # Safety
    /// As [`Plane::lend`].
    pub unsafe fn lend(&mut self, memory: LentShares) {
        // SAFETY: this function's contract.
        unsafe {
            self.nodes.lend(memory.nodes.0, memory.nodes.1);
            self.slices.lend(memory.slices.0, memory.slices.1);
            self.filters.lend(memory.filters.0, memory.filters.1);
        }
    }
}

/// A class or a link in its tree, as it is. Rates are bytes/s.
#[derive(Debug, Clone, Copy, Default)]
#[allow(non_snake_case)] // bytes/s
pub struct ShareState {
    /// What it asks for.
    pub demand_Bps: u64,
    /// What it may have, as its last packet found it; of a link, its rate.
    pub share_Bps: u64,
    /// `enum pst_share_state`.
    pub state: wire::pst_share_state,
    /// Of its children.
    pub children: wire::pst_share_sums,
    /// Of users without entries: what each may send, per unit of weight.
    pub user_limit_Bps: Option<u64>,
}

/// A user, as it is. Rates are bytes/s.
#[derive(Debug, Clone, Copy, Default)]
#[allow(non_snake_case)] // bytes/s
pub struct UserState {
    /// What it asks for; of a user without an entry, per unit of weight, and never too low.
    pub demand_Bps: u64,
    /// What it may have; of a user without an entry, per unit of weight.
    pub share_Bps: u64,
    /// Whether it has an entry.
    pub has_entry: bool,
    /// Of an entry.
    pub weight: u32,
    /// Of an entry: `enum pst_share_state`.
    pub state: wire::pst_share_state,
    /// Of an entry: what passed since it was the user's.
    pub passed_bytes: u64,
    /// Of an entry: its node.
    pub node: u32,
}

impl Plane {
    /// Places in trees of shares.
    #[must_use]
    pub fn places(&self) -> &[wire::TreePlace] {
        &self.parts.places
    }

    /// A class or a link in its tree. None where its link shares nothing.
    #[must_use]
    pub fn share(&self, place: u32, now_ns: u64) -> Option<ShareState> {
        let (terms, node) = (self.parts.places.get(place as usize)?, self.shares.nodes.get(place as usize)?);
        let is_link = terms.link == place;
        if terms.parent == wire::PST_NONE && !is_link {
            return None;
        }
        let slice = self.shares.slices.get(terms.slice as usize);
        let tops = (0..).zip(&self.parts.places).filter(|(_, other)| is_link && other.parent == place);
        let of_tops = tops.filter_map(|(top, _)| self.shares.nodes.get(top));
        Some(ShareState {
            demand_Bps: if is_link {
                of_tops.map(|node| pst_host_demand_Bps(&node.demand, now_ns)).sum()
            } else {
                pst_host_demand_Bps(&node.demand, now_ns)
            },
            share_Bps: if is_link { terms.terms.ceiling_Bps } else { node.share_Bps },
            state: node.part.state,
            children: node.children,
            user_limit_Bps: slice.map(|slice| pst_host_slice_limit_Bps(&slice)),
        })
    }

    /// Users of a class that have an entry and are not gone; last the one that those share who found none, if there are any.
    pub fn users(&self, class: u32, now_ns: u64) -> impl Iterator<Item = UserState> {
        let place = self.parts.places.get(class as usize).copied().unwrap_or_default();
        let nodes = if place.user_count == 0 { 0 } else { place.user_count + 1 };
        (place.first_user..place.first_user + nodes).filter_map(move |node| self.user_at(node, now_ns))
    }

    fn user_at(&self, index: u32, now_ns: u64) -> Option<UserState> {
        let node = self.shares.nodes.get(index as usize)?;
        (node.part.state != wire::PST_SHARE_IDLE).then(|| UserState {
            demand_Bps: pst_host_demand_Bps(&node.demand, now_ns),
            share_Bps: node.share_Bps,
            has_entry: true,
            weight: node.weight.max(1),
            state: node.part.state,
            passed_bytes: node.passed_bytes,
            node: index,
        })
    }

    /// The user of a class whose packets have this key. None where the class has no users.
    pub fn user(&mut self, class: u32, key: &wire::Key, now_ns: u64) -> Option<UserState> {
        let place = *self.parts.places.get(class as usize)?;
        let view = self.view();
        // SAFETY: the view's pointers and counts are of live memory, as `key` is.
        let user = unsafe { pst_host_user(&view, key, class) };
        if user == 0 {
            return None;
        }
        if let Some(slice) = self.shares.slices.get(place.slice as usize) {
            // SAFETY: as above.
            let demand = unsafe { pst_host_user_rate_Bps(&view, user, class, now_ns) };
            let share = pst_host_slice_limit_Bps(&slice);
            return Some(UserState { demand_Bps: demand, share_Bps: share, ..UserState::default() });
        }
        // SAFETY: as above.
        let entry = unsafe { pst_host_user_entry(&view, user, class) };
        Some(self.user_at(entry, now_ns).unwrap_or_default())
    }

    /// Forgets what sends nothing any more, below every node, and puts right what somebody left wrong who was killed at work (`tree.h`). To be
    /// called every 10 to 20 ms. Returns how many nodes were looked at; trees in which a packet was just being counted are left for the next time.
    pub fn tend(&mut self, now_ns: u64) -> u64 {
        let view = self.view();
        let mut looked_at = 0;
        for (place, terms) in (0..).zip(&self.parts.places) {
            if terms.first_child == wire::PST_NONE && terms.user_count == 0 {
                continue;
            }
            // SAFETY: the view's pointers and counts are of live memory.
            if unsafe { pst_host_tree_tend(&view, place, now_ns) } {
                looked_at += 1 + u64::from(terms.user_count);
            }
        }
        looked_at
    }

    /// Goes on with the shares of a plane before this one: `classes` tells where each class was in that. Users' entries and the sketch begin anew, since a
    /// user's number follows from a plane's own secret. To be called while nobody charges this plane.
    pub fn follow_shares(&mut self, before: &Plane, classes: &[Option<u32>], now_ns: u64) {
        for (class, was) in classes.iter().enumerate().filter_map(|(class, was)| Some((class, (*was)? as usize))) {
            let places = (self.parts.places.get(class), before.parts.places.get(was));
            let (Some(after), Some(earlier)) = places else { continue };
            if after.parent == wire::PST_NONE || earlier.parent == wire::PST_NONE {
                continue;
            }
            let slices =
                (self.shares.slices.at_mut(after.slice as usize), before.shares.slices.get(earlier.slice as usize));
            if let (Some(slice), Some(was)) = slices {
                // SAFETY: inside of the cells, which nobody uses yet.
                let slice = unsafe { &mut *slice };
                if (slice.nominal_Bps, slice.tau_shift) == (was.nominal_Bps, was.tau_shift) {
                    slice.threshold = was.threshold;
                }
            }
            let nodes = (self.shares.nodes.at_mut(class), before.shares.nodes.get(was));
            if let (Some(node), Some(was)) = nodes {
                // SAFETY: inside of the cells, which nobody uses yet.
                let node = unsafe { &mut *node };
                let (demand, part, share) = (was.demand, was.part, was.share_Bps);
                let (vft_ticks, passed_bytes) = (was.vft_ticks, was.passed_bytes);
                *node = wire::TreeNode { demand, part, share_Bps: share, vft_ticks, passed_bytes, ..*node };
            }
        }
        // Sums are those of the parts that came along.
        self.tend(now_ns);
    }
}
