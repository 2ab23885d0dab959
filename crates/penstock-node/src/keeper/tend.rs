// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares: what is to be done many times a second, and users.

use super::Keeper;
use crate::error::NodeError;
use crate::tending::Tended;
use penstock_algo::wire;
use penstock_dataplane::UserReading;
use std::time::Instant;

impl Keeper {
    /// The user of a class whose packets have this key; none where the class has no users.
    ///
    /// # Errors
    /// No policy is in force.
    pub fn user(&mut self, class: u32, key: &wire::Key) -> Result<Option<UserReading>, NodeError> {
        Ok(self.dataplane.user(class, key)?)
    }

    /// Has the data plane forget shares of what sends nothing any more. Says whether there is anything to tend.
    pub fn tend(&mut self) -> bool {
        if self.dataplane.plan().is_none_or(|plan| plan.places.is_empty()) {
            self.recent.tended = Tended::default();
            return false;
        }
        let from = Instant::now();
        let nodes = self.dataplane.tend();
        self.recent.tended.add(from, Instant::now(), nodes);
        true
    }
}
