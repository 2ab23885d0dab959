// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a limit's traffic asks for, as far as one can know who sees what came and what passed.
//!
//! What comes to a limit that holds it back is no more than senders were let through before: then nobody knows what they would send, and the answer
//! is "as much as there is". Else it is what comes and a bit more, so that there is room to grow in before the next filling.
//!
//! Source    none: the paper takes demands as known (section 3.2).
//! Units     bits/s and ns; whole numbers, so the same reports have the same answer everywhere.
//! Steady    traffic that moves by less than 1/16 is asked for once: while offered * 5/4 is within 1/16 of what was asked for and given, offered is
//!           at most 4/5 * 17/16 = 0.85 of the limit, below the 7/8 at which it would be held to be more.

/// What is asked for beside what comes, as a part of it: 5/4 in all. A sender that grows by a quarter between two fillings is not held back, and as
/// 4/5 is below 7/8, one that got what it asked for is not taken for one that wants more.
const HEADROOM: (u64, u64) = (5, 4);
/// The part of a limit from which on its traffic is held to want more. Senders that adapt (TCP) stay somewhat below a limit
/// that drops.
const NEAR: (u64, u64) = (7, 8);
/// The part of what passed that may be lost before the limit is held to hold its traffic back: less are bursts.
const LOST_PART: u64 = 64;
/// The part by which demand moves before anybody is told: a filling and an order to each node are worth more than a sixteenth of one member.
const STEADY_PART: u64 = 16;

/// How long a demand takes to fall to 1/e of what it was, in steps of 50 ms to 2/5 with each: so that others have 98 % of an aggregate within 300 ms
/// of when traffic is gone. Senders that are silent for a lost window of TCP (200 ms) ask anew, where others wanted what they had.
pub const FALL_NS: u64 = 33_000_000;
/// The part of an aggregate's rate that all of its members together ask for at least.
const FLOORS_PART: u64 = 200;
/// The part that one of few members asks for at least.
const FLOOR_PART: u64 = 256;

/// What a member of an aggregate asks for at least, bits/s: its first packets pass, and show that it asks for more. Those who ask for nothing take a
/// two-hundredth of the aggregate together, and no more.
#[must_use]
pub fn floor_bps(rate_bps: u64, members: usize) -> u64 {
    rate_bps / FLOOR_PART.max(FLOORS_PART.saturating_mul(members as u64))
}

/// What was seen of a limit since it was seen last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// What came, bits/s.
    pub offered_bps: u64,
    /// What passed, bits/s.
    pub passed_bps: u64,
    /// The limit's rate meanwhile, bits/s; none: it had none.
    pub limit_bps: Option<u64>,
    /// How long that was, ns.
    pub elapsed_ns: u64,
}

/// How demands are guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// How slowly they fall: [`FALL_NS`].
    pub fall_ns: u64,
    /// What is asked for at least, bits/s: [`floor_bps`].
    pub floor_bps: u64,
}

/// The demand of one limit. Of one that was never seen nothing is known: it asks for all that it can get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Demand {
    /// What came lately, with headroom: rises at once, falls slowly.
    recent_bps: u64,
    asks_bps: Option<u64>,
}

impl Demand {
    /// What it asks for, bits/s; none: as much as there is.
    #[must_use]
    pub fn asks_bps(&self) -> Option<u64> {
        self.asks_bps
    }

    /// Takes what was seen. Whether it asks for something else now, by so much that it matters.
    pub fn see(&mut self, seen: Seen, manner: Manner) -> bool {
        self.recent_bps = fallen(self.recent_bps, times(seen.offered_bps, HEADROOM), seen.elapsed_ns, manner.fall_ns);
        let asks_bps = (!is_held_back(seen)).then_some(self.recent_bps.max(manner.floor_bps));
        let is_other = match (self.asks_bps, asks_bps) {
            (Some(before), Some(now)) => before.abs_diff(now) > before / STEADY_PART,
            (before, now) => before != now,
        };
        if is_other {
            self.asks_bps = asks_bps;
        }
        is_other
    }
}

/// Whether its limit holds it back, as far as can be seen. What sends nothing is not.
fn is_held_back(seen: Seen) -> bool {
    let is_near = seen.limit_bps.is_some_and(|limit_bps| seen.offered_bps >= times(limit_bps, NEAR));
    let is_cut = seen.offered_bps.saturating_sub(seen.passed_bps) > seen.passed_bps / LOST_PART;
    seen.offered_bps > 0 && (is_near || is_cut)
}

/// A lag of first order that only falling has, by the backward rule: never below its aim, however long the step. Rounded down, it arrives.
fn fallen(recent_bps: u64, aim_bps: u64, elapsed_ns: u64, fall_ns: u64) -> u64 {
    let above = u128::from(recent_bps.saturating_sub(aim_bps));
    let whole = (u128::from(elapsed_ns) + u128::from(fall_ns)).max(1);
    let left = above * u128::from(fall_ns) / whole;
    aim_bps.saturating_add(u64::try_from(left).unwrap_or(u64::MAX))
}

fn times(rate_bps: u64, (up, down): (u64, u64)) -> u64 {
    u64::try_from(u128::from(rate_bps) * u128::from(up) / u128::from(down)).unwrap_or(u64::MAX)
}
