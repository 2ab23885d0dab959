// SPDX-License-Identifier: MIT OR Apache-2.0
//! From looks at limits to how they followed: who sends when, and when all limits were right.

use super::Poll;
use crate::shares::changes::{Change, fair_bps, is_right};
use crate::shares::fill::Node;
use crate::stats::real;

/// Whoever sends is found with more packets by so many looks
const SEEN_LEAST: usize = 5;
/// within so long. What a sender says before, to find its receiver, is less.
const SEEN_NS: u64 = 2_000_000;
/// Limits that were right for so long have followed. What comes later has other reasons: a sender that the machine holds up asks for less,
/// and the others may have more.
const HELD_NS: u64 = 20_000_000;

/// What looks show.
#[derive(Debug, Clone, PartialEq)]
pub struct Followed {
    /// How limits followed each change, in order.
    pub changes: Vec<Change>,
    /// Of the looks after a change was over, those that found all limits right, in percent. None where there were none.
    pub right_share: Option<f64>,
    /// The longest that somebody who sends did not.
    pub pause_ns: u64,
}

/// The looks that see a tenant's first and last packet.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    first: usize,
    last: usize,
}

/// Goes through all looks. A tenant sends once; a change is dated back to the look before the one that saw it, so that no time is too short.
///
/// # Errors
/// The tenant that was never seen to send.
pub fn followed(polls: &[Poll], tree: &(Vec<Node>, Vec<usize>), asked_bps: &[f64]) -> Result<Followed, usize> {
    let spans: Vec<Span> =
        (0..asked_bps.len()).map(|tenant| span(polls, tenant).ok_or(tenant)).collect::<Result<_, _>>()?;
    let mut moments: Vec<usize> = spans.iter().flat_map(|span| [span.first, span.last]).collect();
    moments.sort_unstable();
    moments.dedup();
    // A last packet still is one of those who send, until it has been seen.
    let sends = |span: &Span, moment: usize| span.first <= moment && moment < span.last;
    let active = |moment: usize| -> Vec<usize> {
        spans.iter().enumerate().filter(|(_, span)| sends(span, moment)).map(|(tenant, _)| tenant).collect()
    };
    let mut before = Vec::new();
    let mut changes = Vec::new();
    let mut later = Later::default();
    for pair in moments.windows(2) {
        let after = active(pair[0]);
        if let Some(change) = Change::between(&before, &after, HELD_NS) {
            changes.push(follow(change, polls, (pair[0], pair[1]), (&before, &after), tree, asked_bps, &mut later));
        }
        before = after;
    }
    let pauses = spans.iter().enumerate().map(|(tenant, span)| longest_pause_ns(polls, tenant, *span));
    Ok(Followed { changes, right_share: later.right_share(), pause_ns: pauses.max().unwrap_or(0) })
}

/// Looks after changes were over.
#[derive(Debug, Default)]
struct Later {
    looks: u64,
    right: u64,
}

impl Later {
    fn right_share(&self) -> Option<f64> {
        (self.looks > 0).then(|| 100.0 * real(self.right) / real(self.looks))
    }
}

/// Goes through the looks between a change and the next one.
fn follow(
    mut change: Change,
    polls: &[Poll],
    (from, to): (usize, usize),
    (before, after): (&[usize], &[usize]),
    tree: &(Vec<Node>, Vec<usize>),
    asked_bps: &[f64],
    later: &mut Later,
) -> Change {
    let fair_bps = fair_bps(tree, after.iter().map(|&tenant| (tenant, asked_bps[tenant])));
    let start = &polls[from.saturating_sub(1)];
    for poll in &polls[from..to] {
        let are_right = after.iter().all(|&tenant| {
            poll.limits_bps[tenant].is_some_and(|limit| is_right(limit, fair_bps[tenant], asked_bps[tenant]))
        });
        if change.is_over(poll.time_ns - start.time_ns) {
            later.looks += 1;
            later.right += u64::from(are_right);
        }
        change.look(are_right, poll.time_ns - start.time_ns, || {
            let came = after.iter().filter(|tenant| !before.contains(tenant));
            came.map(|&tenant| poll.packets[tenant] - start.packets[tenant]).sum()
        });
    }
    change
}

/// Whether a look found more of a tenant's packets than the one before.
fn saw_more(polls: &[Poll], tenant: usize, at: usize) -> bool {
    at > 0 && polls[at].packets[tenant] > polls[at - 1].packets[tenant]
}

/// When a tenant sends. None where it does not.
fn span(polls: &[Poll], tenant: usize) -> Option<Span> {
    let seen: Vec<usize> = (0..polls.len()).filter(|&at| saw_more(polls, tenant, at)).collect();
    let are_close = |looks: &&[usize]| polls[looks[SEEN_LEAST - 1]].time_ns - polls[looks[0]].time_ns <= SEEN_NS;
    let mut dense = seen.windows(SEEN_LEAST).filter(are_close);
    let first = dense.next()?;
    let last = dense.next_back().unwrap_or(first);
    Some(Span { first: first[0], last: last[SEEN_LEAST - 1] })
}

/// The longest time between looks that found more packets of who sends.
fn longest_pause_ns(polls: &[Poll], tenant: usize, span: Span) -> u64 {
    let seen: Vec<u64> =
        (span.first..=span.last).filter(|&at| saw_more(polls, tenant, at)).map(|at| polls[at].time_ns).collect();
    seen.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
}
