// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a node may have at worst, when orders are on their way to it.

/// Orders on their way that are told from each other.
const SENT_MAX: usize = 16;

/// The rate that a node has of one limit, as far as that is known, bits/s: what it acknowledged last, or any that was sent since.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// The most and the least that it had before what is on its way.
    most_bps: u64,
    least_bps: u64,
    /// By the number of the epoch, rising.
    sent: Vec<(u64, u64)>,
}

impl Held {
    /// The node has said what it has, and nothing is on its way.
    pub(crate) fn said(has_bps: u64) -> Self {
        Self { most_bps: has_bps, least_bps: has_bps, sent: Vec::new() }
    }

    /// The node comes again and says what it has. It may have said so before it made its own what was sent since, on another stream: until it
    /// acknowledges something on this one, it may have that, too.
    pub(crate) fn said_again(&mut self, has_bps: u64) {
        *self = Self { most_bps: self.worst_bps().max(has_bps), least_bps: has_bps, sent: Vec::new() };
    }

    /// An order is on its way. Of many that nobody acknowledges the oldest are counted as one.
    pub(crate) fn sent(&mut self, number: u64, rate_bps: u64) {
        if self.sent.len() == SENT_MAX {
            let (_, oldest_bps) = self.sent.remove(0);
            (self.most_bps, self.least_bps) = (self.most_bps.max(oldest_bps), self.least_bps.min(oldest_bps));
        }
        self.sent.push((number, rate_bps));
    }

    /// The node has made that epoch its own, and so all before it.
    pub(crate) fn acknowledged(&mut self, number: u64) {
        let done = self.sent.partition_point(|(sent, _)| *sent <= number);
        if let Some((_, rate_bps)) = self.sent.drain(..done).next_back() {
            (self.most_bps, self.least_bps) = (rate_bps, rate_bps);
        }
    }

    /// The node says that its lease is over; what is on its way may still come. That it says so on a stream that it had acknowledged something
    /// on is certain; else it may be long ago.
    pub(crate) fn lapsed(&mut self, safe_bps: u64, is_certain: bool) {
        self.least_bps = safe_bps;
        self.most_bps = if is_certain { safe_bps } else { self.most_bps.max(safe_bps) };
    }

    /// Whether nothing is on its way.
    pub(crate) fn is_settled(&self) -> bool {
        self.sent.is_empty()
    }

    /// The most that the node may have.
    pub(crate) fn worst_bps(&self) -> u64 {
        self.sent.iter().map(|(_, rate_bps)| *rate_bps).fold(self.most_bps, u64::max)
    }

    /// What it has whichever of these it has: to be told that raises no sum. An order that answers what a node said before its lease was over is
    /// nothing to it afterwards, so that what it said holds.
    pub(crate) fn least_bps(&self) -> u64 {
        self.sent.iter().map(|(_, rate_bps)| *rate_bps).fold(self.least_bps, u64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::Held;

    #[test]
    fn of_many_orders_that_nobody_acknowledges_few_are_kept_and_none_is_forgotten() {
        let mut held = Held::said(10);
        held.sent(1, 99);
        (2..1_000).for_each(|number| held.sent(number, number % 7 + 3));
        assert_eq!((held.worst_bps(), held.least_bps(), held.sent.len()), (99, 3, super::SENT_MAX));
        held.acknowledged(999);
        assert_eq!((held.worst_bps(), held.is_settled()), (999 % 7 + 3, true));
    }

    #[test]
    fn what_is_on_its_way_counts_until_something_newer_is_acknowledged() {
        let mut held = Held::said(10);
        held.sent(1, 30);
        held.sent(2, 20);
        held.sent(3, 5);
        assert_eq!(held.worst_bps(), 30);
        held.acknowledged(0);
        assert_eq!(held.worst_bps(), 30);
        held.acknowledged(2);
        assert_eq!((held.worst_bps(), held.is_settled()), (20, false));
        held.acknowledged(9);
        assert_eq!((held.worst_bps(), held.is_settled()), (5, true));
        held.sent(10, 7);
        held.lapsed(6, true);
        assert_eq!((held.worst_bps(), held.least_bps()), (7, 6));
        held.said_again(4);
        assert_eq!((held.worst_bps(), held.least_bps()), (7, 4));
        held.lapsed(3, false);
        assert_eq!((held.worst_bps(), held.least_bps()), (7, 3));
        held.sent(11, 4);
        held.acknowledged(11);
        assert_eq!(held.worst_bps(), 4);
    }
}
