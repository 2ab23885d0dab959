// SPDX-License-Identifier: MIT OR Apache-2.0
//! From looks at limits to how they followed: who sends when, and when all limits were right.

use super::Poll;
use crate::shares::changes::{Change, fair_bps, is_right};
use crate::shares::fill::Node;

/// Whoever sends is found with more packets by so many looks
const SEEN_LEAST: usize = 5;
/// within so long. What a sender says before, to find its receiver, is less.
const SEEN_NS: u64 = 2_000_000;

/// The looks that see a tenant's first and last packet.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    first: usize,
    last: usize,
}

/// How limits followed each change, in order. A tenant sends once; a change is dated back to the look before the one that saw it, so that
/// no time is too short.
///
/// # Errors
/// The tenant that was never seen to send.
pub fn changes(polls: &[Poll], tree: &(Vec<Node>, Vec<usize>), asked_bps: &[f64]) -> Result<Vec<Change>, usize> {
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
    for pair in moments.windows(2) {
        let after = active(pair[0]);
        if let Some(change) = Change::between(&before, &after) {
            changes.push(follow(change, polls, (pair[0], pair[1]), (&before, &after), tree, asked_bps));
        }
        before = after;
    }
    Ok(changes)
}

/// Goes through the looks between a change and the next one.
fn follow(
    mut change: Change,
    polls: &[Poll],
    (from, to): (usize, usize),
    (before, after): (&[usize], &[usize]),
    tree: &(Vec<Node>, Vec<usize>),
    asked_bps: &[f64],
) -> Change {
    let fair_bps = fair_bps(tree, after.iter().map(|&tenant| (tenant, asked_bps[tenant])));
    let start = &polls[from.saturating_sub(1)];
    for poll in &polls[from..to] {
        let are_right = after.iter().all(|&tenant| {
            poll.limits_bps[tenant].is_some_and(|limit| is_right(limit, fair_bps[tenant], asked_bps[tenant]))
        });
        change.look(are_right, poll.time_ns - start.time_ns, || {
            let came = after.iter().filter(|tenant| !before.contains(tenant));
            came.map(|&tenant| poll.packets[tenant] - start.packets[tenant]).sum()
        });
    }
    change
}

/// When a tenant sends. None where it does not.
fn span(polls: &[Poll], tenant: usize) -> Option<Span> {
    let more = |&at: &usize| at > 0 && polls[at].packets[tenant] > polls[at - 1].packets[tenant];
    let seen: Vec<usize> = (0..polls.len()).filter(more).collect();
    let are_close = |looks: &&[usize]| polls[looks[SEEN_LEAST - 1]].time_ns - polls[looks[0]].time_ns <= SEEN_NS;
    let mut dense = seen.windows(SEEN_LEAST).filter(are_close);
    let first = dense.next()?;
    let last = dense.next_back().unwrap_or(first);
    Some(Span { first: first[0], last: last[SEEN_LEAST - 1] })
}
