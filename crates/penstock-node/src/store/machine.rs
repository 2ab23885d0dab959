// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which box this is, among those that attend a controller: two that were given one name are told apart.

use super::{META, Result, Store, StoreError, to_json};

const UUID: &str = "/proc/sys/kernel/random/uuid";

impl Store {
    /// Made at random when it is asked for first, and the same from then on.
    ///
    /// # Errors
    /// The store cannot be read or written, or the kernel gives no random id.
    pub fn machine(&mut self) -> Result<String> {
        if let Some(machine) = self.meta("machine")? {
            return Ok(machine);
        }
        let random = std::fs::read_to_string(UUID).map_err(|source| StoreError::Io { path: UUID.into(), source })?;
        let machine = random.trim().to_owned();
        let value = to_json(&machine);
        self.write(|transaction| {
            transaction.open_table(META)?.insert("machine", value.as_slice())?;
            Ok(())
        })?;
        Ok(machine)
    }
}
