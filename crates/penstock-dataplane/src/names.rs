// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names that people read, from the numbers of `verdict.h`.

use penstock_algo::wire;

/// `over_rate` and the like: the one name of a reason, in every counter, column and label.
#[must_use]
pub fn reason_name(reason: u8) -> &'static str {
    wire::REASON_NAMES.get(usize::from(reason)).copied().unwrap_or("unknown")
}

/// `pass`, `mark`, `drop` or `hold`.
#[must_use]
pub fn verdict_name(verdict: u8) -> &'static str {
    match u32::from(verdict) {
        wire::PST_VERDICT_PASS => "pass",
        wire::PST_VERDICT_MARK => "mark",
        wire::PST_VERDICT_DROP => "drop",
        wire::PST_VERDICT_HOLD => "hold",
        _ => "unknown",
    }
}

/// `green`, `yellow`, `red`, or nothing where no limit applied.
#[must_use]
pub(crate) fn color_name(color: u8) -> &'static str {
    match u32::from(color) {
        wire::PST_COLOR_GREEN => "green",
        wire::PST_COLOR_YELLOW => "yellow",
        wire::PST_COLOR_RED => "red",
        _ => "",
    }
}
