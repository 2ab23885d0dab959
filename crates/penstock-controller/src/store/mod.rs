// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the network is, who changed it, and which replica leads: in etcd, or for one machine in a folder.
//!
//! A put of a network is one step together with its entry in the audit log, and its number is one more than that of the network before: whoever
//! reads finds one network as it was put, whole. A call that cannot be answered says so within seconds and does not hang.

mod embedded;
mod etcd;
mod leadership;
mod pack;

use embedded::Embedded;
use etcd::Etcd;
pub use etcd::{EtcdOptions, EtcdTls};
pub use leadership::Leadership;
pub(crate) use leadership::boot_now_ns;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tokio::sync::watch;

/// Largest network file.
pub const TEXT_BYTES_MAX: usize = 256 << 20;
/// Entries of the audit log that are kept.
pub const AUDIT_ENTRIES_MAX: usize = 10_000;
/// Of one text of an entry, so that the log has a size.
const AUDIT_TEXT_BYTES_MAX: usize = 1000;

/// A network as it was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Counts up from 1 with each put.
    pub revision: u64,
    /// What messages call the file.
    pub name: String,
    /// The file.
    pub text: Vec<u8>,
}

/// Who changed what, or tried to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// ns of Unix time.
    pub time_unix_ns: u64,
    /// The name of the certificate, or `local`.
    pub who: String,
    /// The address it came from.
    pub from: String,
    /// What was to be done.
    pub what: String,
    /// Why it was not; empty if it was.
    pub refused: String,
}

impl AuditEntry {
    /// As JSON, with texts that have a size.
    fn pack(mut self) -> Vec<u8> {
        for text in [&mut self.who, &mut self.from, &mut self.what, &mut self.refused] {
            if text.len() > AUDIT_TEXT_BYTES_MAX {
                let end = (0..=AUDIT_TEXT_BYTES_MAX).rev().find(|&end| text.is_char_boundary(end));
                text.truncate(end.unwrap_or_default());
                text.push_str("..");
            }
        }
        to_json(&self)
    }
}

/// One of the programs that are the controller together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replica {
    /// Its name.
    pub name: String,
    /// Where it is reached: host and port.
    pub address: String,
}

/// What the store would not do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another network is there than the one that was to be replaced.
    #[error("the network has revision {revision} by now: somebody else put one; look at it, then put yours again")]
    Conflict {
        /// That it has; 0: there is none.
        revision: u64,
    },
    /// Nobody answers, or nobody who can.
    #[error("{store}: {why}; is etcd running there, and can a majority of its members reach each other?")]
    Unreachable {
        /// Which, and where.
        store: String,
        /// What happened.
        why: String,
    },
    /// It answers, and it is a no.
    #[error("{store}: refused: {why}")]
    Refused {
        /// Which, and where.
        store: String,
        /// In its words.
        why: String,
    },
    /// No room.
    #[error("{store}: no room left: {why}; compact and defragment it, then clear its alarm, or give it a larger quota")]
    Full {
        /// Which, and where.
        store: String,
        /// In its words.
        why: String,
    },
    /// Whoever asked may not.
    #[error("{store}: another replica leads by now")]
    Deposed {
        /// Which, and where.
        store: String,
    },
    /// A file that nothing can be done with.
    #[error("the network file has {bytes} bytes; at most {TEXT_BYTES_MAX} are kept")]
    TooLarge {
        /// That it has.
        bytes: usize,
    },
    /// What is in it was not written by this program.
    #[error("{store}: what is there cannot be read: {what}; put the network again")]
    Damaged {
        /// Which, and where.
        store: String,
        /// What is wrong with it.
        what: String,
    },
    /// Written by a newer version.
    #[error("{store}: format {found} is newer than this program, which knows {FORMAT}")]
    Newer {
        /// Which, and where.
        store: String,
        /// What it has.
        found: u64,
    },
    /// A second controller on the same folder.
    #[error("{}: another controller uses it", .0.display())]
    Busy(PathBuf),
    /// Reading or writing a folder.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What it was asked for makes no sense.
    #[error("{0}")]
    Options(String),
    /// Files for TLS.
    #[error(transparent)]
    Tls(#[from] penstock_api::tls::TlsError),
}

/// Of what is in the store.
const FORMAT: u64 = 1;

type Result<T, E = StoreError> = std::result::Result<T, E>;

/// The network, its audit log, and the election.
#[derive(Debug)]
pub enum Store {
    /// For several replicas.
    Etcd(Etcd),
    /// For one machine.
    Embedded(Embedded),
}

impl Store {
    /// A store in etcd. That it cannot be reached now is no error: calls say so until it can.
    ///
    /// # Errors
    /// An address is none, or a file for TLS cannot be used.
    #[allow(clippy::unused_async)] // it starts a task, which needs the caller's runtime
    pub async fn etcd(options: &EtcdOptions) -> Result<Self> {
        Ok(Self::Etcd(Etcd::new(options)?))
    }

    /// A store in a folder, made if missing.
    ///
    /// # Errors
    /// The folder cannot be made, another controller uses it, or what is in it is damaged.
    pub async fn embedded(folder: &Path) -> Result<Self> {
        Ok(Self::Embedded(Embedded::open(folder).await?))
    }

    /// Which store this is, and where, for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Etcd(store) => store.describe(),
            Self::Embedded(store) => store.describe(),
        }
    }

    /// The network.
    ///
    /// # Errors
    /// The store does not answer, or what it has is damaged.
    pub async fn network(&self) -> Result<Option<Stored>> {
        match self {
            Self::Etcd(store) => store.network().await,
            Self::Embedded(store) => store.network().await,
        }
    }

    /// The network's revision, 0 if there is none: not read from memory but asked for.
    ///
    /// # Errors
    /// As [`Store::network`].
    pub async fn revision(&self) -> Result<u64> {
        match self {
            Self::Etcd(store) => store.revision().await,
            Self::Embedded(store) => Ok(store.revision()),
        }
    }

    /// Puts a network into the place of the one there is, together with its audit entry, and returns its revision. `expected`: only if that is
    /// the revision of the one there is, 0 for none.
    ///
    /// # Errors
    /// Another network is there, this one is too large, or the store does not answer. After [`StoreError::Unreachable`] it may have been put.
    pub async fn put_network(&self, expected: Option<u64>, name: &str, text: &[u8], audit: AuditEntry) -> Result<u64> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(StoreError::TooLarge { bytes: text.len() });
        }
        match self {
            Self::Etcd(store) => store.put_network(expected, name, text, audit).await,
            Self::Embedded(store) => store.put_network(expected, name, text, audit).await,
        }
    }

    /// Adds to the audit log: an attempt that was refused.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn add_audit(&self, entry: AuditEntry) -> Result<()> {
        match self {
            Self::Etcd(store) => store.add_audit(entry).await,
            Self::Embedded(store) => store.add_audit(entry).await,
        }
    }

    /// The audit log, newest first, of at most [`AUDIT_ENTRIES_MAX`] entries.
    ///
    /// # Errors
    /// The store does not answer, or what it has is damaged.
    pub async fn audit(&self, count: usize) -> Result<Vec<AuditEntry>> {
        match self {
            _ if count == 0 => Ok(Vec::new()),
            Self::Etcd(store) => store.audit(count).await,
            Self::Embedded(store) => store.audit(count).await,
        }
    }

    /// The newest revision that is known. It outlives the loss of the connection: what was put meanwhile is seen when it is back.
    pub fn watch(&self) -> watch::Receiver<u64> {
        match self {
            Self::Etcd(store) => store.watch(),
            Self::Embedded(store) => store.watch(),
        }
    }

    /// Waits until this replica leads, also while the store does not answer.
    ///
    /// # Errors
    /// What does not go away by waiting: the store refuses, or is full.
    pub async fn campaign(&self, replica: &Replica) -> Result<Leadership> {
        match self {
            Self::Etcd(store) => store.campaign(replica).await,
            Self::Embedded(store) => store.campaign(replica).await,
        }
    }

    /// How long leaders up to now may have lent limits for, ns; none while nobody has said so.
    ///
    /// # Errors
    /// The store does not answer, or what it has is damaged.
    pub async fn lease_ns(&self) -> Result<Option<u64>> {
        match self {
            Self::Etcd(store) => store.lease_ns().await,
            Self::Embedded(store) => store.lease_ns().await,
        }
    }

    /// Says that to the next leader.
    ///
    /// # Errors
    /// The store does not answer, or somebody else leads by now: then nothing was said.
    pub async fn set_lease_ns(&self, leadership: &Leadership, lease_ns: u64) -> Result<()> {
        match self {
            Self::Etcd(store) => store.set_lease_ns(leadership.term, lease_ns).await,
            Self::Embedded(store) => store.set_lease_ns(leadership.term, lease_ns).await,
        }
    }

    /// Who leads.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn leader(&self) -> Result<Option<Replica>> {
        match self {
            Self::Etcd(store) => store.leader().await,
            Self::Embedded(store) => Ok(store.leader()),
        }
    }
}

/// These structs have string keys and no numbers that JSON has not: they always serialise.
fn to_json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
