// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a controller has lent to this node, and until when. Pure: whoever calls says what time it is (CLOCK_BOOTTIME, ns).
//!
//! Order    (term, number) never goes back: what is older than what the node has is nothing to it.
//! Lease    runs from when the node sent the report that an order answers: a message that was long on its way lends no longer than it
//!          would have at once.
//! Delta    holds only on the epoch that it was made for; else the node asks for all.
//! Lapse    each limit has its safe rate; only all limits anew end it.

use penstock_api::v1;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Reports whose send times are kept; an answer to an older one is too late. Ten minutes at ten a second.
const SENT_MAX: usize = 6000;

/// Which limits are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch {
    /// The leader's.
    pub term: u64,
    /// Counts up within the term.
    pub number: u64,
}

impl From<v1::Epoch> for Epoch {
    fn from(v1::Epoch { term, number }: v1::Epoch) -> Self {
        Self { term, number }
    }
}

impl From<Epoch> for v1::Epoch {
    fn from(Epoch { term, number }: Epoch) -> Self {
        Self { term, number }
    }
}

/// A limit that is lent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lent {
    /// A link's name.
    pub port: String,
    /// Of a class or a row of that link.
    pub class: String,
    /// bit/s; none when none is needed: the policy's own holds.
    pub rate_bps: Option<u64>,
    /// bit/s, when the lease is over; none for the policy's own.
    pub safe_bps: Option<u64>,
}

/// What is lent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// Made its own by the node.
    pub epoch: Epoch,
    /// By the controller's number.
    pub limits: BTreeMap<u32, Lent>,
    /// When the newest report that was answered was sent.
    pub answered_ns: u64,
    /// From then.
    pub lease_ns: u64,
    /// It is over, and limits have their safe rates.
    pub lapsed: bool,
}

impl Holding {
    /// When the lease is over.
    #[must_use]
    pub fn ends_ns(&self) -> u64 {
        self.answered_ns.saturating_add(self.lease_ns)
    }
}

/// What becomes of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Nothing: it is of an epoch older than the node's, or of none.
    Stale,
    /// Nothing: its lease is over already, or nobody knows when it began.
    Late,
    /// Nothing: it follows on what the node has not got. All limits are asked for.
    Unfounded,
    /// The lease is longer.
    Renewed,
    /// The limits are its limits.
    Changed,
}

/// The leases of a node.
#[derive(Debug, Clone, Default)]
pub struct Leases {
    holding: Option<Holding>,
    /// Reports of this stream, oldest first: number and send time.
    sent: VecDeque<(u64, u64)>,
    wants_all: bool,
    /// The last report of this stream before the lease was over: whoever answers it, or one before, does not know that it is.
    lapsed_after: u64,
}

impl Leases {
    /// With what the daemon before this one held. Of another boot, or over: its lease is over.
    #[must_use]
    pub fn resume(holding: Option<Holding>, is_of_this_boot: bool, now_ns: u64) -> Self {
        let holding = holding.map(|holding| {
            let lapsed = holding.lapsed || !is_of_this_boot || now_ns >= holding.ends_ns();
            // A clock of before the machine started says nothing.
            let answered_ns = if is_of_this_boot { holding.answered_ns } else { 0 };
            Holding { lapsed, answered_ns, ..holding }
        });
        Self { holding, ..Self::default() }
    }

    /// What is lent.
    #[must_use]
    pub fn holding(&self) -> Option<&Holding> {
        self.holding.as_ref()
    }

    /// Whether all limits are to be asked for.
    #[must_use]
    pub fn wants_all(&self) -> bool {
        self.wants_all
    }

    /// A new stream: reports are numbered anew.
    pub fn attend(&mut self) {
        self.sent.clear();
        self.lapsed_after = 0;
        self.wants_all = true;
    }

    /// A report goes.
    pub fn sent(&mut self, sequence: u64, now_ns: u64) {
        if self.sent.len() == SENT_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back((sequence, now_ns));
    }

    /// What an order would do.
    #[must_use]
    pub fn judge(&self, order: &v1::Order, now_ns: u64) -> Taken {
        let Some(epoch) = order.epoch.map(Epoch::from) else { return Taken::Stale };
        let held = self.holding.as_ref();
        if held.is_some_and(|held| epoch < held.epoch) {
            return Taken::Stale;
        }
        match self.sent_ns(order.answers) {
            Some(sent_ns) if now_ns < sent_ns.saturating_add(order.lease_ns) => {}
            _ => return Taken::Late,
        }
        if !self.knows_names(order) {
            return Taken::Unfounded;
        }
        match held {
            None if order.is_all => Taken::Changed,
            None => Taken::Unfounded,
            // After a lapse the controller counts with safe rates: it must have heard of it, and say all anew. Who has not heard may give back
            // a rate that others have by now.
            Some(held) if !held.lapsed && now_ns >= held.ends_ns() => Taken::Late,
            Some(held) if held.lapsed && order.answers <= self.lapsed_after => Taken::Late,
            Some(held) if held.lapsed && order.is_all => Taken::Changed,
            Some(held) if held.lapsed => Taken::Unfounded,
            Some(held) if epoch == held.epoch => Taken::Renewed,
            Some(held) if order.is_all || order.base.map(Epoch::from) == Some(held.epoch) => Taken::Changed,
            Some(_) => Taken::Unfounded,
        }
    }

    /// Takes an order.
    pub fn take(&mut self, order: &v1::Order, now_ns: u64) -> Taken {
        let taken = self.judge(order, now_ns);
        match taken {
            Taken::Stale | Taken::Late => return taken,
            Taken::Unfounded => {
                self.wants_all = true;
                return taken;
            }
            Taken::Changed => self.accept(order),
            Taken::Renewed => {}
        }
        if order.is_all {
            self.wants_all = false;
        }
        let sent_ns = self.sent_ns(order.answers).unwrap_or(0);
        if let Some(held) = &mut self.holding
            && sent_ns >= held.answered_ns
        {
            (held.answered_ns, held.lease_ns) = (sent_ns, order.lease_ns);
        }
        self.forget_sent(sent_ns, order.lease_ns);
        taken
    }

    /// The limits of an order that changes them, by number; where the order names no place, with the place as it was.
    pub fn limits_of<'a>(&'a self, order: &'a v1::Order) -> impl Iterator<Item = (u32, Lent)> + 'a {
        order.limits.iter().map(|lent| {
            let was = self.was(lent);
            let place = was.map_or((&lent.port, &lent.class), |was| (&was.port, &was.class));
            let (port, class) = (place.0.clone(), place.1.clone());
            (lent.limit, Lent { port, class, rate_bps: lent.rate_bps, safe_bps: lent.safe_bps })
        })
    }

    /// Whether the lease is over and nobody has said so yet.
    #[must_use]
    pub fn is_over(&self, now_ns: u64) -> bool {
        self.holding.as_ref().is_some_and(|held| !held.lapsed && now_ns >= held.ends_ns())
    }

    /// What is left of the lease; none when there is none, or it has lapsed.
    #[must_use]
    pub fn left_ns(&self, now_ns: u64) -> Option<u64> {
        let held = self.holding.as_ref().filter(|held| !held.lapsed)?;
        Some(held.ends_ns().saturating_sub(now_ns))
    }

    /// The data plane refused an order.
    pub fn want_all(&mut self) {
        self.wants_all = true;
    }

    /// Limits have their safe rates.
    pub fn lapse(&mut self) {
        if let Some(held) = &mut self.holding {
            held.lapsed = true;
            self.wants_all = true;
            self.lapsed_after = self.sent.back().map_or(0, |&(sequence, _)| sequence);
        }
    }

    fn accept(&mut self, order: &v1::Order) {
        let Some(epoch) = order.epoch.map(Epoch::from) else { return };
        let limits: Vec<(u32, Lent)> = self.limits_of(order).collect();
        let held = self.holding.get_or_insert_with(|| Holding {
            epoch,
            limits: BTreeMap::new(),
            answered_ns: 0,
            lease_ns: 0,
            lapsed: false,
        });
        if held.lapsed {
            held.answered_ns = 0;
        }
        if order.is_all {
            held.limits.clear();
        }
        for number in &order.returned {
            held.limits.remove(number);
        }
        held.limits.extend(limits);
        (held.epoch, held.lapsed) = (epoch, false);
    }

    /// A limit that says no place: where it was.
    fn was(&self, lent: &v1::Lent) -> Option<&Lent> {
        let says_no_place = lent.port.is_empty() && lent.class.is_empty();
        self.holding.as_ref().filter(|_| says_no_place)?.limits.get(&lent.limit)
    }

    fn knows_names(&self, order: &v1::Order) -> bool {
        order.limits.iter().all(|lent| !(lent.port.is_empty() && lent.class.is_empty()) || self.was(lent).is_some())
    }

    fn sent_ns(&self, sequence: u64) -> Option<u64> {
        let at = self.sent.binary_search_by_key(&sequence, |&(sequence, _)| sequence).ok()?;
        self.sent.get(at).map(|&(_, sent_ns)| sent_ns)
    }

    /// Reports from so long before one that was answered will lend nothing any more.
    fn forget_sent(&mut self, answered_ns: u64, lease_ns: u64) {
        while self.sent.front().is_some_and(|&(_, sent_ns)| sent_ns.saturating_add(lease_ns) < answered_ns) {
            self.sent.pop_front();
        }
    }
}

#[cfg(test)]
#[path = "leases_tests.rs"]
mod tests;
