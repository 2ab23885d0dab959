// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets of one limit leave in the order in which they came, whatever turns they were given: two CPUs may have judged two of them at the
//! same time, or two generations.

use std::collections::HashMap;

/// Limits that packets wait of.
#[derive(Debug, Default)]
pub(crate) struct Queues(HashMap<u32, Queue, foldhash::fast::FixedState>);

#[derive(Debug, Default)]
struct Queue {
    packets: u32,
    last_due_ns: u64,
}

impl Queues {
    /// With places for so many limits from the beginning: who moves a million of them keeps packets waiting.
    pub fn with_room_for(limits: usize) -> Self {
        Self(HashMap::with_capacity_and_hasher(limits, foldhash::fast::FixedState::default()))
    }

    /// A packet joins those of its limit. Returns when it is due: at its turn, and not before the one in front of it.
    pub fn join(&mut self, owner: u32, due_ns: u64) -> u64 {
        let queue = self.0.entry(owner).or_default();
        queue.packets += 1;
        queue.last_due_ns = queue.last_due_ns.max(due_ns);
        queue.last_due_ns
    }

    /// One of a limit's packets has left.
    pub fn left(&mut self, owner: u32) {
        if let Some(queue) = self.0.get_mut(&owner) {
            queue.packets -= 1;
            if queue.packets == 0 {
                self.0.remove(&owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_goes_before_the_one_in_front() {
        let mut queues = Queues::with_room_for(8);
        let dues: Vec<u64> = [50, 40, 60].map(|due_ns| queues.join(7, due_ns)).into();
        assert_eq!(dues, [50, 50, 60]);
        assert_eq!(queues.join(8, 10), 10, "another limit");
        (0..3).for_each(|_| queues.left(7));
        assert_eq!(queues.join(7, 20), 20, "nobody is in front any more");
        queues.left(9); // nobody there
    }
}
