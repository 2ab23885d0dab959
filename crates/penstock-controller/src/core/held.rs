// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a node may have at worst, when orders are on their way to it.

/// The rate that a node has of one limit, as far as that is known: what it acknowledged last, or any that was sent since. Bits/s.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Held {
    has_bps: u64,
    /// By the number of the epoch, rising.
    sent: Vec<(u64, u64)>,
}

impl Held {
    /// The node has said what it has, and nothing is on its way.
    pub(crate) fn said(has_bps: u64) -> Self {
        Self { has_bps, sent: Vec::new() }
    }

    /// An order is on its way.
    pub(crate) fn sent(&mut self, number: u64, rate_bps: u64) {
        self.sent.push((number, rate_bps));
    }

    /// The node has made that epoch its own, and so all before it.
    pub(crate) fn acknowledged(&mut self, number: u64) {
        let done = self.sent.partition_point(|(sent, _)| *sent <= number);
        if let Some((_, rate_bps)) = self.sent.drain(..done).next_back() {
            self.has_bps = rate_bps;
        }
    }

    /// The node fell back to its safe rate; what is on its way may still come.
    pub(crate) fn lapsed(&mut self, safe_bps: u64) {
        self.has_bps = safe_bps;
    }

    /// Whether nothing is on its way.
    pub(crate) fn is_settled(&self) -> bool {
        self.sent.is_empty()
    }

    /// The most that the node may have, bits/s.
    pub(crate) fn worst_bps(&self) -> u64 {
        self.sent.iter().map(|(_, rate_bps)| *rate_bps).fold(self.has_bps, u64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::Held;

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
        held.lapsed(6);
        assert_eq!(held.worst_bps(), 7);
    }
}
