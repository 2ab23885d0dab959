// SPDX-License-Identifier: MIT OR Apache-2.0
//! The columns: what stands in them, and what comes first.

use super::table::Row;
use crate::units::short_rate;
use std::cmp::Ordering;

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Name,
    Limit,
    Offered,
    Passed,
    Dropped,
    Marked,
    Trend,
    Demand,
    Share,
    Fair,
}

/// As they stand, from the left.
pub const COLUMNS: [Column; 7] =
    [Column::Name, Column::Limit, Column::Offered, Column::Passed, Column::Dropped, Column::Marked, Column::Trend];

/// In a tree of shares.
pub const TREE_COLUMNS: [Column; 7] =
    [Column::Name, Column::Demand, Column::Share, Column::Passed, Column::Dropped, Column::Fair, Column::Trend];

impl Column {
    /// What stands above it; the view says more above the first and the last one.
    pub fn title(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Limit => "limit",
            Self::Offered => "offered",
            Self::Passed => "passed",
            Self::Dropped => "dropped",
            Self::Marked => "marked",
            Self::Trend => "mean rate",
            Self::Demand => "demand",
            Self::Share => "share",
            Self::Fair => "fair",
        }
    }

    /// Its neighbour among these, around the ends.
    pub fn next(self, columns: &[Self; 7], is_right: bool) -> Self {
        let at = columns.iter().position(|&column| column == self).unwrap_or(0);
        let step = if is_right { 1 } else { columns.len() - 1 };
        columns[(at + step) % columns.len()]
    }

    /// Whether what is smaller comes first: names do, numbers do not.
    pub fn is_ascending(self) -> bool {
        self == Self::Name
    }

    /// What comes first from small to large.
    pub fn compare(self, one: &Row, other: &Row) -> Ordering {
        match self {
            Self::Name => one.name.cmp(&other.name),
            _ => self.number(one).total_cmp(&self.number(other)),
        }
    }

    /// What is not known, or does not exist, is less than nothing.
    #[allow(clippy::cast_precision_loss)] // for an order of rates 53 bits are enough
    fn number(self, row: &Row) -> f64 {
        let rates = row.rates.as_ref();
        let number = match self {
            Self::Name => None,
            Self::Limit => row.limit_bps.map(|rate_bps| rate_bps as f64),
            Self::Offered => rates.map(|rates| rates.offered_bps),
            Self::Passed => rates.map(|rates| rates.passed_bps),
            Self::Dropped => row.dropped_share(),
            Self::Marked => row.marked_share(),
            Self::Trend => Some(row.history.mean_bps()),
            Self::Demand => row.demand_bps().map(|rate_bps| rate_bps as f64),
            Self::Share => row.share_bps().map(|rate_bps| rate_bps as f64),
            Self::Fair => row.fairness(),
        };
        number.unwrap_or(-1.0)
    }

    /// What stands in it; nothing in the last one, which is drawn.
    #[allow(clippy::cast_precision_loss)] // four digits are shown
    pub fn text(self, row: &Row) -> String {
        let rates = row.rates.as_ref();
        let text = match self {
            Self::Name => Some(row.name.clone()),
            Self::Limit => row.limit_bps.map(|rate_bps| short_rate(rate_bps as f64)),
            Self::Offered => rates.map(|rates| short_rate(rates.offered_bps)),
            Self::Passed => rates.map(|rates| short_rate(rates.passed_bps)),
            // In shadow mode they have passed all the same.
            Self::Dropped if row.is_shadow => row.dropped_share().map(|share| format!("~{}", percent(share))),
            Self::Dropped => row.dropped_share().map(percent),
            Self::Marked => row.marked_share().map(percent),
            Self::Trend => Some(String::new()),
            Self::Demand => row.demand_bps().map(|rate_bps| short_rate(rate_bps as f64)),
            Self::Share => row.share_bps().map(|rate_bps| short_rate(rate_bps as f64)),
            Self::Fair => row.fairness().map(|index| format!("{index:.3}")),
        };
        text.unwrap_or_else(|| "-".to_owned())
    }
}

/// A share of packets, as in `12.3 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
