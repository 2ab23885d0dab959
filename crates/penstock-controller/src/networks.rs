// SPDX-License-Identifier: MIT OR Apache-2.0
//! The store's network, read. A large one takes a second to read and to share out: whoever needs it again finds it here.

use crate::store::{AuditEntry, Store, StoreError, Stored};
use penstock_alloc::allocate;
use penstock_alloc::allocation::Allocation;
use penstock_alloc::model::Network;
use penstock_policy::diagnostics::Source;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

/// A network, and what its classes get while nobody's demand is known.
#[derive(Debug, Default)]
pub struct Known {
    pub network: Network,
    pub allocation: Allocation,
}

impl Known {
    #[must_use]
    pub fn new(network: Network) -> Self {
        Self { allocation: allocate(&network), network }
    }
}

/// What the store has.
#[derive(Debug, Clone)]
pub struct Newest {
    pub revision: u64,
    /// Or what is wrong with it, as people read it: another version of this program may have put it.
    pub known: Result<Arc<Known>, String>,
}

/// Reads and puts networks.
#[derive(Debug)]
pub struct Networks {
    store: Arc<Store>,
    newest: Mutex<Option<Newest>>,
}

impl Networks {
    pub fn new(store: Arc<Store>) -> Self {
        Self { store, newest: Mutex::default() }
    }

    /// The newest one; none while there is none.
    pub async fn newest(&self) -> Result<Option<Newest>, StoreError> {
        // Who asks meanwhile wants the same, and waits.
        let mut newest = self.newest.lock().await;
        let revision = self.store.revision().await?;
        if newest.as_ref().is_none_or(|newest| newest.revision != revision) {
            *newest = match self.store.network().await? {
                Some(stored) => Some(read(stored).await),
                None => None,
            };
        }
        Ok(newest.clone())
    }

    /// Puts one, and returns its revision. What is wrong is as in [`Store::put_network`].
    pub async fn put(
        &self,
        expected: u64,
        (name, text): (&str, &[u8]),
        known: Arc<Known>,
        audit: AuditEntry,
    ) -> Result<u64, StoreError> {
        // Whoever hears of it before this returns waits, and finds it.
        let mut newest = self.newest.lock().await;
        let revision = self.store.put_network(Some(expected), name, text, audit).await?;
        *newest = Some(Newest { revision, known: Ok(known) });
        Ok(revision)
    }
}

async fn read(stored: Stored) -> Newest {
    let revision = stored.revision;
    let known = spawn_blocking(move || parse(&stored).map(|network| Arc::new(Known::new(network)))).await;
    Newest { revision, known: known.unwrap_or_else(|error| Err(error.to_string())) }
}

fn parse(stored: &Stored) -> Result<Network, String> {
    let text = std::str::from_utf8(&stored.text).map_err(|error| format!("{}: {error}", stored.name))?;
    Network::parse(&Source::new(&stored.name, text.to_owned())).map_err(|errors| errors.to_string())
}
