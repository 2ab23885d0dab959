// SPDX-License-Identifier: MIT OR Apache-2.0
//! A network and its policy: ports, classes with their paths, what holds at one port only, what several classes may have together.

/// Index of a port in [`Network::ports`].
pub type PortId = u32;
/// Index of a class in [`Network::classes`].
pub type ClassId = u32;
/// Index of an aggregate in [`Network::aggregates`].
pub type AggregateId = u32;

/// A network and its policy. Whoever makes one has checked it: indices are in range, weights are above zero, no path is empty or meets a port twice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// Output ports, in file order.
    pub ports: Vec<Port>,
    /// Classes, in file order.
    pub classes: Vec<Class>,
    /// What replaces a class's policy at one port; at most one for each class and port.
    pub local: Vec<LocalPolicy>,
    /// What classes may have together, wherever they are; in file order.
    pub aggregates: Vec<Aggregate>,
}

/// An output port of a switch or node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Port {
    /// Its name, unique in the network.
    pub name: String,
    /// Whose port it is.
    pub switch: String,
    /// What it can send, bits/s.
    pub rate_bps: u64,
    /// What may wait in it, bytes: shared among its classes by weight, as their red thresholds.
    pub buffer_bytes: u64,
}

/// Packets that the policy names together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Class {
    /// Its name, unique in the network.
    pub name: String,
    /// Smaller numbers are served first.
    pub priority: u32,
    /// Its part beside others of its priority; 1 at least.
    pub weight: u32,
    /// What it may have at most, at each of its ports.
    pub limit: Option<Limit>,
    /// What it asks for, bits/s, at each of its ports, if that is known.
    pub demand_bps: Option<u64>,
    /// What its limits fall back to where nobody says any more what they are, bits/s. Of a member of an aggregate that does not say:
    /// [`Network::safe_bps`].
    pub safe_bps: Option<u64>,
    /// The ports that its packets leave by, from the first to the last; one list for each way that they may go.
    pub paths: Vec<Vec<PortId>>,
}

/// What a class may have at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// bits/s.
    pub rate_bps: u64,
    /// Whether it may get less.
    pub kind: LimitKind,
}

/// Whether a class may get less than its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// It may.
    Soft,
    /// The limit is installed as it is, and reserved before anything is shared.
    Hard,
}

/// What replaces a class's policy at one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalPolicy {
    /// Where.
    pub port: PortId,
    /// For whom.
    pub class: ClassId,
    /// In the place of the class's, where it is something.
    pub priority: Option<u32>,
    /// The same.
    pub weight: Option<u32>,
    /// The same.
    pub limit: Option<Limit>,
}

/// Classes that may have so much together, over all of their ports: one tenant, one rate, many gateways.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aggregate {
    /// Its name, unique among aggregates and ports.
    pub name: String,
    /// What its members may have in all, bits/s.
    pub rate_bps: u64,
    /// Its members, each once. A class may be a member of several aggregates.
    pub classes: Vec<ClassId>,
}

/// A class, and an aggregate that it is a member of.
pub(crate) type Membership = (ClassId, AggregateId);

impl Class {
    /// The ports that its paths begin at, each once, in the order of the network.
    #[must_use]
    pub fn first_ports(&self) -> Vec<PortId> {
        let mut ports: Vec<PortId> = self.paths.iter().filter_map(|path| path.first().copied()).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }
}

impl Network {
    /// All memberships, by class and then by aggregate.
    pub(crate) fn memberships(&self) -> Vec<Membership> {
        let of = |(id, aggregate): (AggregateId, &Aggregate)| -> Vec<Membership> {
            aggregate.classes.iter().map(|class| (*class, id)).collect()
        };
        let mut memberships: Vec<Membership> = (0..).zip(&self.aggregates).flat_map(of).collect();
        memberships.sort_unstable();
        memberships
    }

    /// What each limit of a class falls back to where nobody says any more what it is, bits/s. A member of an aggregate that does not say has its
    /// part of the aggregate's rate, the same for each port that a member's paths begin at, the smallest of its aggregates, and no more than its own
    /// limit. None: nothing is said.
    ///
    /// # Panics
    /// If there is no class of that number.
    #[must_use]
    pub fn safe_bps(&self, class: ClassId) -> Option<u64> {
        let own = &self.classes[class as usize];
        let parts = self.aggregates.iter().filter(|aggregate| aggregate.classes.contains(&class));
        safe_bps(own, parts.map(|aggregate| self.safe_part_bps(aggregate)).min())
    }

    /// [`Network::safe_bps`] of all classes.
    #[must_use]
    pub fn all_safe_bps(&self) -> Vec<Option<u64>> {
        let mut parts: Vec<Option<u64>> = vec![None; self.classes.len()];
        for aggregate in &self.aggregates {
            let part_bps = self.safe_part_bps(aggregate);
            for class in &aggregate.classes {
                let part = &mut parts[*class as usize];
                *part = Some(part.map_or(part_bps, |before| before.min(part_bps)));
            }
        }
        self.classes.iter().zip(parts).map(|(class, part)| safe_bps(class, part)).collect()
    }

    fn safe_part_bps(&self, aggregate: &Aggregate) -> u64 {
        let firsts = aggregate.classes.iter().map(|class| self.classes[*class as usize].first_ports().len() as u64);
        aggregate.rate_bps / firsts.sum::<u64>().max(1)
    }

    /// Only some classes stay. What is said of the others goes with them; an aggregate may be left without members.
    pub(crate) fn keep_classes(&mut self, keep: impl Fn(ClassId, &Class) -> bool) {
        let kept: Vec<bool> = self.classes.iter().zip(0..).map(|(class, id)| keep(id, class)).collect();
        let mut new_ids = Vec::with_capacity(kept.len());
        let mut next = 0;
        for &is_kept in &kept {
            new_ids.push(next);
            next += u32::from(is_kept);
        }
        let mut at = 0;
        self.classes.retain(|_| {
            at += 1;
            kept[at - 1]
        });
        self.local.retain_mut(|policy| {
            let is_kept = kept[policy.class as usize];
            policy.class = new_ids[policy.class as usize];
            is_kept
        });
        for aggregate in &mut self.aggregates {
            aggregate.classes.retain(|class| kept[*class as usize]);
            aggregate.classes.iter_mut().for_each(|class| *class = new_ids[*class as usize]);
        }
    }
}

/// What a class says, or else its part, but no more than its limit.
fn safe_bps(class: &Class, part_bps: Option<u64>) -> Option<u64> {
    let limit_bps = class.limit.map_or(u64::MAX, |limit| limit.rate_bps);
    class.safe_bps.or(part_bps.map(|part| part.min(limit_bps)))
}
