// SPDX-License-Identifier: MIT OR Apache-2.0
//! A network in etcd, whose values have at most a mebibyte or so.
//!
//! A put writes its chunks under an id that is its own, then one transaction makes the pointer point to them, if nobody else has moved it
//! since it was read. What nothing points to is deleted afterwards, by this put, a later one, or the next leader; `upload/ID`, which goes with
//! a lease, keeps others from deleting what is still being written.

use super::super::{AuditEntry, Result, StoreError, Stored, pack, to_json};
use super::{CALL, CHUNK_CALL, Shared, unique};
use etcd_client::{Client, Compare, CompareOp, DeleteOptions, GetOptions, PutOptions, Txn, TxnOp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tracing::warn;

const CHUNK_BYTES: usize = 1 << 20;
/// How long chunks outlive a put that came to nothing: its lease is renewed while it goes on.
const UPLOAD: Duration = Duration::from_secs(30);
/// Between renewals.
const UPLOAD_RENEWAL: Duration = Duration::from_secs(5);
/// Times a reader begins anew because the network was replaced under it.
const READS: usize = 5;

/// Which network there is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pointer {
    pub revision: u64,
    name: String,
    /// Of the file.
    bytes: usize,
    /// Of its chunks, and how many these are.
    id: String,
    chunks: usize,
}

/// The pointer as it was read.
#[derive(Debug)]
pub struct Found {
    pointer: Option<Pointer>,
    /// etcd's revisions: of the pointer's last change, 0 without one, and of the store when it was read.
    changed_at: i64,
    pub read_at: i64,
}

impl Found {
    /// Of the network; 0 for none.
    pub fn revision(&self) -> u64 {
        self.pointer.as_ref().map_or(0, |pointer| pointer.revision)
    }
}

impl Shared {
    pub async fn pointer(&self) -> Result<Found> {
        let found = self.get(self.key("network"), GetOptions::new(), CALL).await?;
        let read_at = found.header().map_or(0, |header| header.revision());
        let Some(kv) = found.kvs().first() else { return Ok(Found { pointer: None, changed_at: 0, read_at }) };
        Ok(Found { pointer: Some(self.parse(kv.value())?), changed_at: kv.mod_revision(), read_at })
    }

    pub async fn network(&self) -> Result<Option<Stored>> {
        let mut pointer = self.pointer().await?.pointer;
        for _ in 0..READS {
            let Some(Pointer { revision, name, bytes, id, chunks }) = pointer else { return Ok(None) };
            if let Some(packed) = self.chunks(&id, chunks).await? {
                let text = pack::unpack(packed, bytes).await.map_err(|error| self.damaged(&error.to_string()))?;
                return Ok(Some(Stored { revision, name, text }));
            }
            pointer = self.pointer().await?.pointer;
            if pointer.as_ref().is_some_and(|now| now.id == id) {
                return Err(self.damaged(&format!("a part of the network of revision {revision} is missing")));
            }
        }
        let (store, why) = (self.link.describe(), String::from("the network is replaced faster than it can be read"));
        Err(StoreError::Unreachable { store, why })
    }

    /// None: they are not all there.
    async fn chunks(&self, id: &str, chunks: usize) -> Result<Option<Vec<u8>>> {
        let mut packed = Vec::new();
        for number in 0..chunks {
            let found = self.get(self.chunk_key(id, number), GetOptions::new(), CHUNK_CALL).await?;
            let Some(chunk) = found.kvs().first() else { return Ok(None) };
            packed.extend_from_slice(chunk.value());
        }
        Ok(Some(packed))
    }

    pub async fn put_network(&self, expected: Option<u64>, name: &str, text: &[u8], audit: AuditEntry) -> Result<u64> {
        // Before anything is written.
        check(expected, &self.pointer().await?)?;
        let bytes = text.len();
        let packed = pack::pack(text.to_vec()).await.map_err(|error| StoreError::Options(error.to_string()))?;
        let id = unique();
        let lease = self.grant(UPLOAD).await?;
        let pointer =
            Pointer { revision: 0, name: name.to_owned(), bytes, id, chunks: packed.len().div_ceil(CHUNK_BYTES) };
        let put = match self.upload(&pointer.id, lease, &packed).await {
            Ok(()) => self.switch(expected, pointer, audit).await,
            Err(error) => Err(error),
        };
        if !matches!(put, Err(StoreError::Unreachable { .. })) {
            // With the lease goes what keeps chunks from being deleted.
            self.revoke(lease).await;
            self.tidy().await;
        }
        put
    }

    async fn upload(&self, id: &str, lease: i64, packed: &[u8]) -> Result<()> {
        let with_lease = PutOptions::new().with_lease(lease);
        self.put(self.upload_key(id), Vec::new(), Some(with_lease)).await?;
        let mut renewed = Instant::now();
        for (number, chunk) in packed.chunks(CHUNK_BYTES).enumerate() {
            self.put(self.chunk_key(id, number), chunk.to_vec(), None).await?;
            if renewed.elapsed() > UPLOAD_RENEWAL {
                self.renew(lease, CALL).await?;
                renewed = Instant::now();
            }
        }
        Ok(())
    }

    async fn put(&self, key: String, value: Vec<u8>, options: Option<PutOptions>) -> Result<()> {
        let put = |mut client: Client| {
            let (key, value, options) = (key.clone(), value.clone(), options.clone());
            async move { client.put(key, value, options).await }
        };
        self.link.call(CHUNK_CALL, put).await.map(drop)
    }

    /// Makes the pointer point to chunks that were written, and tells the audit log.
    async fn switch(&self, expected: Option<u64>, mut pointer: Pointer, audit: AuditEntry) -> Result<u64> {
        let upload = self.upload_key(&pointer.id);
        let (audit_key, audit) = (self.audit_key(&audit), audit.pack());
        loop {
            let found = self.pointer().await?;
            // An answer got lost, and the question was asked again: it is done.
            if let Some(now) = found.pointer.as_ref().filter(|now| now.id == pointer.id) {
                return Ok(now.revision);
            }
            check(expected, &found)?;
            pointer.revision = found.revision() + 1;
            let unchanged = Compare::mod_revision(self.key("network"), CompareOp::Equal, found.changed_at);
            let uploaded = Compare::create_revision(upload.clone(), CompareOp::Greater, 0);
            let steps = [
                TxnOp::put(self.key("network"), to_json(&pointer), None),
                TxnOp::put(audit_key.clone(), audit.clone(), None),
            ];
            let txn = Txn::new().when([unchanged, uploaded]).and_then(steps);
            if self.txn(txn).await?.succeeded() {
                self.trim_audit().await?;
                return Ok(pointer.revision);
            }
            let marked = self.get(upload.clone(), GetOptions::new(), CALL).await?;
            if marked.kvs().is_empty() {
                let why = String::from("the file took too long to be written");
                return Err(StoreError::Unreachable { store: self.link.describe(), why });
            }
        }
    }

    /// Deletes chunks that nothing points to and that nobody is writing.
    pub async fn tidy(&self) {
        if let Err(error) = self.try_tidy().await {
            warn!("cannot delete what is left of networks before this one: {error}");
        }
    }

    async fn try_tidy(&self) -> Result<()> {
        let folder = self.key("chunk/");
        let keys = GetOptions::new().with_prefix().with_keys_only();
        let found = self.get(folder.clone(), keys, CALL).await?;
        let id = |key: &[u8]| {
            let rest = std::str::from_utf8(key).ok()?.strip_prefix(&folder)?;
            Some(rest.split_once('/')?.0.to_owned())
        };
        let ids: BTreeSet<_> = found.kvs().iter().filter_map(|kv| id(kv.key())).collect();
        for id in ids {
            let now = self.pointer().await?;
            if now.pointer.is_some_and(|pointer| pointer.id == id) {
                continue;
            }
            let unchanged = Compare::mod_revision(self.key("network"), CompareOp::Equal, now.changed_at);
            let unwritten = Compare::create_revision(self.upload_key(&id), CompareOp::Equal, 0);
            let all = DeleteOptions::new().with_prefix();
            let delete = TxnOp::delete(format!("{folder}{id}/"), Some(all));
            self.txn(Txn::new().when([unchanged, unwritten]).and_then([delete])).await?;
        }
        Ok(())
    }

    fn chunk_key(&self, id: &str, number: usize) -> String {
        self.key(&format!("chunk/{id}/{number:06}"))
    }

    fn upload_key(&self, id: &str) -> String {
        self.key(&format!("upload/{id}"))
    }
}

fn check(expected: Option<u64>, found: &Found) -> Result<()> {
    match found.revision() {
        revision if expected.is_some_and(|expected| expected != revision) => Err(StoreError::Conflict { revision }),
        _ => Ok(()),
    }
}
