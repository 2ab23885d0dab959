// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of limits that lie over what a policy and its limits files say: rates, rows taken away, rows added.

use crate::limits_file::LimitsText;
use std::collections::{BTreeMap, HashMap};

/// Changes by class. A policy that has no such class, or no such row, is compiled as if they were not there.
#[derive(Debug, Default)]
pub struct Overlay {
    /// By path: LINK/CLASS.
    pub classes: BTreeMap<String, ClassOverlay>,
    /// Added rows that cannot be beside what the policy says are left out ([`Unused::AddedRow`]); otherwise they are errors.
    pub leaves_out: bool,
}

/// Changes of one class.
#[derive(Debug, Default)]
pub struct ClassOverlay {
    /// Another rate for the class's own limit, bit/s.
    pub rate_bps: Option<u64>,
    /// Rows of the limits file, by name.
    pub rows: HashMap<String, RowChange>,
    /// Rows that the limits file does not have, as others: one for each set of columns.
    pub added: Vec<LimitsText>,
}

/// A change of a row that the limits file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowChange {
    /// Another rate, bit/s.
    Rate(u64),
    /// It is taken away.
    Removed,
}

/// What of an overlay a policy has no place for, or says itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unused {
    /// The class has no limit of its own, or one of this rate, or is not there.
    ClassLimit {
        /// Its path.
        class: String,
    },
    /// The class's limits file has no such row, or one of this rate, or one whose terms do not go with it; or there is no such file.
    Row {
        /// The class's path.
        class: String,
        /// The row's name.
        row: String,
    },
    /// The class has no limits file, or is not there.
    Added {
        /// Its path.
        class: String,
    },
    /// An added row is wrong, or in conflict with another row or a match.
    AddedRow {
        /// The class's path.
        class: String,
        /// The row's name.
        row: String,
        /// What is wrong with it.
        why: String,
    },
}
