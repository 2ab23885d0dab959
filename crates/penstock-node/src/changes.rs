// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits that were changed at run time: what the store keeps of them, and what they come to as an overlay of a policy.

use penstock_policy::limits_file::LimitsText;
use penstock_policy::overlay::{ClassOverlay, Overlay, RowChange};
use penstock_policy::units::{format_rate, parse_rate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Which limit, over all policies: a class's own, or a row of its limits file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LimitName {
    /// Path of the class, LINK/CLASS.
    pub class: String,
    /// Name of the row.
    pub row: Option<String>,
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.row {
            Some(row) => write!(f, "{}/{row}", self.class),
            None => f.write_str(&self.class),
        }
    }
}

/// What was changed of a limit that the policy has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Changed {
    /// Another rate, bit/s.
    Rate(u64),
    /// It was taken away.
    Deleted,
}

/// A column of a row: name and value, as a limits file has them.
pub type Column = (String, String);

/// Everything that was changed under one name. A row may be taken away and another one of its name added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Of the limit that the policy has.
    pub changed: Option<Changed>,
    /// The columns of a row that the policy does not have; not its name.
    pub added: Option<Vec<Column>>,
    /// What the policy said when it was changed, bit/s.
    pub policy_rate_bps: u64,
    /// When it was changed last, ns of Unix time.
    pub changed_unix_ns: u64,
}

impl Change {
    /// Whether nothing is changed any more.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changed.is_none() && self.added.is_none()
    }

    /// Takes another rate, bit/s. The policy's own rate is no change.
    pub fn set_rate(&mut self, rate_bps: u64) {
        if let Some(columns) = &mut self.added {
            for (_, value) in columns.iter_mut().filter(|(name, _)| name == "rate") {
                *value = format_rate(rate_bps);
            }
            return;
        }
        self.changed = (rate_bps != self.policy_rate_bps).then_some(Changed::Rate(rate_bps));
    }

    /// Takes the limit away.
    pub fn delete(&mut self) {
        if self.added.take().is_none() {
            self.changed = Some(Changed::Deleted);
        }
    }

    /// The rate that the limit should have, bit/s; none when it should not be there.
    #[must_use]
    pub fn wanted_bps(&self) -> Option<u64> {
        match (&self.added, self.changed) {
            (Some(columns), _) => {
                let rate = columns.iter().find(|(name, _)| name == "rate");
                rate.and_then(|(_, value)| parse_rate(value).ok())
            }
            (None, Some(Changed::Rate(rate_bps))) => Some(rate_bps),
            (None, _) => None,
        }
    }

    /// What it is, for a report.
    #[must_use]
    pub fn describe(&self) -> String {
        match (&self.added, self.changed) {
            (Some(_), _) => "added at run time".to_owned(),
            (None, Some(Changed::Rate(rate_bps))) => format!("set to {} at run time", format_rate(rate_bps)),
            (None, _) => "deleted at run time".to_owned(),
        }
    }
}

/// All changes, in the order of their names.
pub type Changes = BTreeMap<LimitName, Change>;

/// The rows that were added to a class, in the order of their names.
pub fn added_rows<'a>(changes: &'a Changes, class: &'a str) -> impl Iterator<Item = (&'a LimitName, &'a [Column])> {
    // A class comes before its rows.
    let first = LimitName { class: class.to_owned(), row: None };
    let of_class = changes.range(first..).take_while(move |(name, _)| name.class == class);
    of_class.filter_map(|(name, change)| Some((name, change.added.as_deref()?)))
}

/// Changes as an overlay of a policy. Added rows that the policy has no place for are left out.
#[must_use]
pub fn overlay(changes: &Changes) -> Overlay {
    let mut overlay = Overlay { leaves_out: true, ..Overlay::default() };
    for (name, change) in changes {
        let class = overlay.classes.entry(name.class.clone()).or_default();
        match (&name.row, change.changed) {
            (None, Some(Changed::Rate(rate_bps))) => class.rate_bps = Some(rate_bps),
            (Some(row), Some(Changed::Rate(rate_bps))) => {
                class.rows.insert(row.clone(), RowChange::Rate(rate_bps));
            }
            (Some(row), Some(Changed::Deleted)) => {
                class.rows.insert(row.clone(), RowChange::Removed);
            }
            _ => {}
        }
    }
    for (class, of_class) in &mut overlay.classes {
        add_rows(of_class, class, changes);
    }
    overlay
}

/// Rows of a limits file have all of its key columns: rows with others need one of their own.
fn add_rows(overlay: &mut ClassOverlay, class: &str, changes: &Changes) {
    let mut files: BTreeMap<Vec<&str>, Vec<(&str, &[Column])>> = BTreeMap::new();
    for (name, columns) in added_rows(changes, class) {
        let header = columns.iter().map(|(column, _)| column.as_str()).collect();
        files.entry(header).or_default().push((name.row.as_deref().unwrap_or_default(), columns));
    }
    let name = format!("rows added to {class} at run time");
    overlay.added.extend(files.values().map(|rows| LimitsText { name: name.clone(), bytes: csv_of(rows) }));
}

/// Rows as a limits file: all columns that any of them has.
#[must_use]
pub fn csv_of(rows: &[(&str, &[Column])]) -> Vec<u8> {
    let mut header = vec!["name"];
    for (column, _) in rows.iter().flat_map(|(_, columns)| columns.iter()) {
        if !header.contains(&column.as_str()) {
            header.push(column);
        }
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory cannot fail.
    let _ = writer.write_record(&header);
    for (name, columns) in rows {
        let value = |column: &str| match column {
            "name" => *name,
            _ => columns.iter().find(|(of, _)| of == column).map_or("", |(_, value)| value.as_str()),
        };
        let _ = writer.write_record(header.iter().map(|column| value(column)));
    }
    writer.into_inner().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(columns: &[(&str, &str)]) -> Vec<Column> {
        columns.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn added_rows_become_a_limits_file_with_all_columns() {
        let a = columns(&[("dst", "10.0.0.1"), ("rate", "1Mbit/s")]);
        let b = columns(&[("dst", "10.0.0.2"), ("rate", "2Mbit/s"), ("burst", "64KB")]);
        let text = csv_of(&[("a", &a), ("b, the second", &b)]);
        let expected = "name,dst,rate,burst\na,10.0.0.1,1Mbit/s,\n\"b, the second\",10.0.0.2,2Mbit/s,64KB\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn the_rate_of_the_policy_is_no_change() {
        let mut change = Change { policy_rate_bps: 10, ..Change::default() };
        change.set_rate(20);
        assert_eq!(change.changed, Some(Changed::Rate(20)));
        change.set_rate(10);
        assert!(change.is_empty());
    }

    #[test]
    fn an_added_row_that_is_deleted_leaves_no_change() {
        let mut change = Change { added: Some(columns(&[("rate", "1Mbit/s")])), ..Change::default() };
        change.set_rate(2_000_000);
        assert_eq!(change.added.as_ref().unwrap()[0].1, "2Mbit/s");
        change.delete();
        assert!(change.is_empty());
        change.delete();
        assert_eq!(change.changed, Some(Changed::Deleted));
    }
}
