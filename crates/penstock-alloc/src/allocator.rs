// SPDX-License-Identifier: MIT OR Apache-2.0
//! One class at a time: added, removed or replaced, without reading the whole network again.
//!
//! The paper reruns everything (section 4.2), and in a network whose ports are all shared there is no way around it: a class that gets a bit less at
//! one port leaves a bit more at its others, and so on to most classes. What can be kept is all that a filling starts from: the orders of the
//! arenas, in which one class finds its place. The filling itself is run again, over classes that lie in the order in which it met them last, so
//! that it waits little for memory.

use crate::allocation::{Allocation, PlacedLimit};
use crate::delta::{Amount, ChangedLimit, Delta, LimitAt};
use crate::fill::Filling;
use crate::model::{Class, ClassId, LocalPolicy, Network};
use crate::place::{UNPLACED, YELLOW_BYTES, allocation, limits_of, place, red_bytes_of};
use crate::terms::{ClassTerms, Said, Terms, to_u32};
use crate::warnings::warnings;

/// A change of one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A class comes, after all others, into no aggregate.
    Add(Class),
    /// A class goes, with its local policies and from its aggregates; those after it move up.
    Remove(ClassId),
    /// A class has another weight, limit, demand or path. Its local policies stay, where it still has paths, and it stays in its aggregates.
    Replace(ClassId, Class),
}

/// A network, and what its classes get; equal to what [`crate::allocate`] says of it, after any changes.
#[derive(Debug, Clone)]
pub struct Allocator {
    network: Network,
    /// The number of each class in the terms.
    ids: Vec<u32>,
    terms: Terms,
    filling: Filling,
    rates_bps: Vec<u64>,
    before_bps: Vec<u64>,
    /// How many slots there were when classes were laid out.
    slots_in_use: usize,
    last: Last,
}

/// What the last change did.
#[derive(Debug, Clone, Default)]
struct Last {
    /// Slots whose limits changed, and what their rates were, bits/s.
    changed: Vec<(u32, u64)>,
    /// The same of a class that was replaced: it had other slots.
    replaced: Vec<(u32, Option<Amount>)>,
    /// What its classes weighed at each port.
    weights: Vec<u64>,
    unchanged: usize,
    gone: Option<Gone>,
}

/// A class that was removed or replaced, and its limits by port. Of one that was replaced, only those that nothing replaced.
#[derive(Debug, Clone)]
struct Gone {
    at: ClassId,
    name: String,
    is_replaced: bool,
    limits: Vec<(u32, Amount)>,
}

impl Allocator {
    /// Shares out a network.
    pub fn new(network: Network) -> Self {
        let mut this = Self {
            ids: (0..to_u32(network.classes.len())).collect(),
            terms: Terms::new(&network),
            filling: Filling::default(),
            rates_bps: Vec::new(),
            before_bps: Vec::new(),
            slots_in_use: 0,
            last: Last::default(),
            network,
        };
        this.filling.run(&this.terms);
        this.lay_out();
        this
    }

    /// The network as it is now.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Who gets what now.
    pub fn allocation(&self) -> Allocation {
        let mut allocation = allocation(&self.network, &self.ids, &self.terms, &self.filling, &self.rates_bps);
        allocation.warnings = warnings(&self.network, &self.terms);
        allocation
    }

    /// The limits that there are now, by class and then by port: those of [`Allocator::allocation`].
    pub fn limits(&self) -> impl Iterator<Item = PlacedLimit> + '_ {
        (0..to_u32(self.ids.len())).flat_map(|class| self.limits_of(class))
    }

    /// The limits of one class, by port.
    ///
    /// # Panics
    /// If there is no class of that number.
    pub fn limits_of(&self, class: ClassId) -> impl Iterator<Item = PlacedLimit> + '_ {
        limits_of(&self.network, &self.terms, &self.rates_bps, self.ids[class as usize], class)
    }

    /// Changes what classes ask for, all in one filling; of one that is there twice, the last counts. What it did to limits is
    /// [`Allocator::delta`].
    ///
    /// # Panics
    /// If there is no class of one of these numbers.
    pub fn set_demands(&mut self, demands: &[(ClassId, Option<u64>)]) {
        let mut last = self.begin();
        let mut arenas = Vec::new();
        for (class, demand_bps) in demands {
            let own = &mut self.network.classes[*class as usize];
            if own.demand_bps != *demand_bps {
                own.demand_bps = *demand_bps;
                let id = self.ids[*class as usize];
                self.terms.set_demand(id, *demand_bps, &mut arenas);
                self.filling.renew(&self.terms, &self.terms.classes[id as usize]);
            }
        }
        arenas.sort_unstable();
        arenas.dedup();
        for arena in arenas {
            self.terms.arenas[arena as usize].sort_caps(&self.terms.slots);
        }
        last.gone = None;
        self.finish(last);
    }

    /// Changes one class. What it did to limits is [`Allocator::delta`].
    ///
    /// # Panics
    /// If there is no class of that number, or one of its ports is none of the network's.
    pub fn change(&mut self, change: Change) {
        if self.terms.slots.len() > 2 * self.slots_in_use + 1024 {
            self.lay_out();
        }
        let mut last = self.begin();
        last.gone = self.take_limits(&change);
        self.apply(change);
        self.finish(last);
    }

    /// What is now is what was; what was gives its memory for what will be.
    fn begin(&mut self) -> Last {
        std::mem::swap(&mut self.rates_bps, &mut self.before_bps);
        let mut last = std::mem::take(&mut self.last);
        last.weights.clear();
        last.weights.extend(self.terms.ports.iter().map(|port| port.weights));
        last
    }

    /// Shares out what was changed, and finds what that did.
    fn finish(&mut self, mut last: Last) {
        self.filling.run(&self.terms);
        place(&self.terms, &self.filling, &mut self.rates_bps);
        self.compare(&mut last);
        self.last = last;
    }

    /// The limits that the last change changed.
    pub fn delta(&self) -> Delta<'_> {
        let mut delta = Delta { unchanged: self.last.unchanged, ..Delta::default() };
        let weights = |slot: u32| self.last.weights[self.terms.slots[slot as usize].port as usize];
        let changed =
            self.last.changed.iter().map(|(slot, rate_bps)| (*slot, self.amount(*slot, *rate_bps, weights(*slot))));
        let mut changed: Vec<_> = changed.chain(self.last.replaced.iter().copied()).collect();
        let mut removed = Vec::new();
        changed.sort_unstable_by_key(|(slot, _)| (self.terms.slots[*slot as usize].class, *slot));
        for (slot, before) in changed {
            let at = &self.terms.slots[slot as usize];
            let position = self.ids.partition_point(|id| *id < at.class);
            let class = self.network.classes[position].name.as_str();
            let port = self.network.ports[at.port as usize].name.as_str();
            let after = self.amount(slot, self.rates_bps[slot as usize], self.terms.ports[at.port as usize].weights);
            match (before, after) {
                (None, Some(limit)) => delta.added.push(LimitAt { class, port, limit }),
                (Some(limit), None) => removed.push((at.class, LimitAt { class, port, limit })),
                (Some(before), Some(after)) => delta.changed.push(ChangedLimit { class, port, before, after }),
                (None, None) => {}
            }
        }
        if let Some(gone) = &self.last.gone {
            // Among those who were before it, and those who were after it.
            let is_before = |id: u32| self.ids.partition_point(|other| *other < id) < gone.at as usize;
            let before = removed.iter().take_while(|(id, _)| is_before(*id)).count();
            let port = |port: u32| self.network.ports[port as usize].name.as_str();
            let own =
                gone.limits.iter().map(|(at, limit)| LimitAt { class: &gone.name, port: port(*at), limit: *limit });
            removed.splice(before..before, own.map(|at| (0, at)));
        }
        delta.removed.extend(removed.into_iter().map(|(_, at)| at));
        delta
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Add(class) => {
                let id = to_u32(self.terms.classes.len());
                self.terms.classes.push(ClassTerms::default());
                self.terms.insert(id, &class, Said::default());
                self.ids.push(id);
                self.network.classes.push(class);
            }
            Change::Remove(at) => {
                self.terms.remove(self.ids.remove(at as usize));
                self.network.keep_classes(|class, _| class != at);
            }
            Change::Replace(at, class) => {
                let local: Vec<LocalPolicy> =
                    self.network.local.iter().filter(|policy| policy.class == at).copied().collect();
                let mut memberships = self.network.memberships();
                memberships.retain(|(class, _)| *class == at);
                let id = self.ids[at as usize];
                self.terms.remove(id);
                self.terms.insert(id, &class, Said { local: &local, memberships: &memberships });
                self.network.classes[at as usize] = class;
            }
        }
    }

    /// The limits of a class that is about to lose its slots. They are nobody's from now on.
    fn take_limits(&mut self, change: &Change) -> Option<Gone> {
        let (at, name) = match change {
            Change::Add(_) => return None,
            Change::Remove(at) => (*at, None),
            Change::Replace(at, class) => (*at, Some(&class.name)),
        };
        let class = &self.network.classes[at as usize];
        let mut limits = Vec::new();
        for slot in self.terms.classes[self.ids[at as usize] as usize].slots.clone() {
            let port = self.terms.slots[slot as usize].port;
            let before_bps = std::mem::replace(&mut self.before_bps[slot as usize], UNPLACED);
            let amount = self.amount(slot, before_bps, self.terms.ports[port as usize].weights);
            limits.extend(amount.map(|amount| (port, amount)));
        }
        Some(Gone { at, name: class.name.clone(), is_replaced: name == Some(&class.name), limits })
    }

    /// A limit at a slot, if there is one: its rate, and its part of the buffer among what all weigh at its port.
    fn amount(&self, slot: u32, rate_bps: u64, weights: u64) -> Option<Amount> {
        if rate_bps == UNPLACED {
            return None;
        }
        let at = &self.terms.slots[slot as usize];
        let buffer_bytes = self.network.ports[at.port as usize].buffer_bytes;
        let red_bytes = red_bytes_of(buffer_bytes, at.weight, weights);
        Some(Amount { rate_bps, yellow_bytes: YELLOW_BYTES, red_bytes })
    }

    /// Finds what differs from before.
    fn compare(&self, last: &mut Last) {
        (last.unchanged, last.replaced) = (0, Vec::new());
        last.changed.clear();
        let ports = self.terms.ports.iter().zip(&last.weights);
        let is_same_weight: Vec<bool> = ports.map(|(port, before)| port.weights == *before).collect();
        for ((was_bps, now_bps), slot) in self.before_bps.iter().zip(&self.rates_bps).zip(0..) {
            if *was_bps == UNPLACED && *now_bps == UNPLACED {
                continue;
            }
            let is_same = was_bps == now_bps && {
                let port = self.terms.slots[slot as usize].port as usize;
                is_same_weight[port]
                    || self.amount(slot, *was_bps, last.weights[port])
                        == self.amount(slot, *now_bps, self.terms.ports[port].weights)
            };
            if is_same {
                last.unchanged += 1;
            } else {
                last.changed.push((slot, *was_bps));
            }
        }
        for slot in to_u32(self.before_bps.len())..to_u32(self.rates_bps.len()) {
            self.compare_new(slot, last);
        }
    }

    /// The same for a slot that was not there: it may stand for one of the class that was replaced.
    fn compare_new(&self, slot: u32, last: &mut Last) {
        let port = self.terms.slots[slot as usize].port;
        let Some(after) = self.amount(slot, self.rates_bps[slot as usize], self.terms.ports[port as usize].weights)
        else {
            return;
        };
        let gone = last.gone.as_mut().filter(|gone| gone.is_replaced);
        let before = gone.and_then(|gone| {
            let at = gone.limits.iter().position(|(at, _)| *at == port)?;
            Some(gone.limits.remove(at).1)
        });
        if before == Some(after) {
            last.unchanged += 1;
        } else {
            last.replaced.push((slot, before));
        }
    }

    /// Puts classes in the order in which the last filling met them.
    fn lay_out(&mut self) {
        let mut is_met = vec![false; self.terms.classes.len()];
        let met = self.filling.order.iter().chain(&self.ids).copied();
        let position = |id: u32| self.ids.binary_search(&id).ok().map(to_u32);
        let order: Vec<u32> =
            met.filter(|id| !std::mem::replace(&mut is_met[*id as usize], true)).filter_map(position).collect();
        self.terms = Terms::in_order(&self.network, order.into_iter());
        self.ids = (0..to_u32(self.network.classes.len())).collect();
        self.filling = Filling::default();
        self.filling.run(&self.terms);
        place(&self.terms, &self.filling, &mut self.rates_bps);
        // So that the next few to come do not move all the others.
        let spare = self.terms.slots.len() / 8 + 1024;
        self.terms.reserve(spare);
        self.filling.reserve(spare);
        self.slots_in_use = self.terms.slots.len();
    }
}
