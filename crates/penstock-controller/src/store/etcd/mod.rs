// SPDX-License-Identifier: MIT OR Apache-2.0
//! The store in etcd.
//!
//! Keys, below `/penstock/CLUSTER/`:
//!
//! | key | value |
//! |---|---|
//! | `network` | which network there is: its revision, name, length, and the id of its chunks |
//! | `chunk/ID/NUMBER` | up to 1 MiB of the file, compressed |
//! | `upload/ID` | somebody is writing chunks of this id; goes with its lease |
//! | `audit/TIME-ID` | an entry |
//! | `leader` | the replica that leads; goes with its lease |

mod election;
mod link;
mod network;
mod watcher;

use super::leadership::Leadership;
use super::{AUDIT_ENTRIES_MAX, AuditEntry, Replica, Result, StoreError, Stored, to_json};
use etcd_client::{ConnectOptions, Error, GetOptions, SortOrder, SortTarget, TlsOptions, TxnOp};
use link::{CALL, CHUNK_CALL, Link};
use penstock_api::tls;
use rustix::rand::{GetRandomFlags, getrandom};
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Answers carry at most one chunk, or the audit log.
const MESSAGE_BYTES_MAX: usize = 256 << 20;
/// Of the audit log that are deleted in one step: etcd takes 128.
const DELETIONS_MAX: usize = 100;

/// Where etcd is, and what it is to do.
#[derive(Debug, Clone)]
pub struct EtcdOptions {
    /// Addresses of its members, such as `http://127.0.0.1:2379`; without `http://` or `https://` as `tls` says.
    pub endpoints: Vec<String>,
    /// Keeps the controllers of one network apart from others in the same etcd.
    pub cluster: String,
    /// How long a leader that is not heard of leads: whole seconds, at least 2, which is the least that etcd grants.
    pub ttl: Duration,
    /// Files, when etcd is reached by TLS.
    pub tls: Option<EtcdTls>,
}

/// Files of PEM for the connection to etcd.
#[derive(Debug, Clone)]
pub struct EtcdTls {
    /// Certificates that etcd's is signed by.
    pub ca: PathBuf,
    /// Certificate and key, where etcd wants one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl Default for EtcdOptions {
    fn default() -> Self {
        let endpoints = vec![String::from("http://127.0.0.1:2379")];
        Self { endpoints, cluster: String::from("default"), ttl: Duration::from_secs(2), tls: None }
    }
}

/// A store in etcd.
#[derive(Debug)]
pub struct Etcd {
    shared: Arc<Shared>,
    revision: watch::Sender<u64>,
    watcher: JoinHandle<()>,
}

/// What tasks share with the store.
#[derive(Debug)]
struct Shared {
    link: Link,
    prefix: String,
    ttl: Duration,
}

impl Etcd {
    pub fn new(options: &EtcdOptions) -> Result<Self> {
        let shared = Arc::new(Shared::new(options)?);
        let revision = watch::Sender::new(0);
        let watcher = tokio::spawn(watcher::run(shared.clone(), revision.clone()));
        Ok(Self { shared, revision, watcher })
    }

    pub fn describe(&self) -> String {
        self.shared.link.describe()
    }

    pub fn watch(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    pub async fn revision(&self) -> Result<u64> {
        Ok(self.shared.pointer().await?.revision())
    }

    pub async fn network(&self) -> Result<Option<Stored>> {
        self.shared.network().await
    }

    pub async fn put_network(&self, expected: Option<u64>, name: &str, text: &[u8], audit: AuditEntry) -> Result<u64> {
        let revision = self.shared.put_network(expected, name, text, audit).await?;
        // The watch would tell as well, later.
        watcher::at_least(&self.revision, revision);
        Ok(revision)
    }

    pub async fn add_audit(&self, entry: AuditEntry) -> Result<()> {
        let (key, value) = (self.shared.audit_key(&entry), entry.pack());
        let put = |mut client: etcd_client::Client| {
            let (key, value) = (key.clone(), value.clone());
            async move { client.put(key, value, None).await }
        };
        self.shared.link.call(CALL, put).await?;
        self.shared.trim_audit().await
    }

    pub async fn audit(&self, count: usize) -> Result<Vec<AuditEntry>> {
        let count = i64::try_from(count.min(AUDIT_ENTRIES_MAX)).unwrap_or(i64::MAX);
        // In the order in which they came, whatever the replicas' clocks say.
        let newest = GetOptions::new().with_prefix().with_limit(count);
        let newest = newest.with_sort(SortTarget::Create, SortOrder::Descend);
        let found = self.shared.get(self.shared.key("audit/"), newest, CHUNK_CALL).await?;
        found.kvs().iter().map(|entry| self.shared.parse(entry.value())).collect()
    }

    pub async fn campaign(&self, replica: &Replica) -> Result<Leadership> {
        Shared::campaign(&self.shared, replica).await
    }

    pub async fn lease_ns(&self) -> Result<Option<u64>> {
        let found = self.shared.get(self.shared.key("lease"), GetOptions::new(), CALL).await?;
        found.kvs().first().map(|lease| self.shared.parse(lease.value())).transpose()
    }

    pub async fn set_lease_ns(&self, term: u64, lease_ns: u64) -> Result<()> {
        match self.shared.as_leader(term, TxnOp::put(self.shared.key("lease"), to_json(&lease_ns), None)).await? {
            true => Ok(()),
            false => Err(StoreError::Deposed { store: self.describe() }),
        }
    }

    pub async fn leader(&self) -> Result<Option<Replica>> {
        let found = self.shared.get(self.shared.key("leader"), GetOptions::new(), CALL).await?;
        found.kvs().first().map(|leader| self.shared.parse(leader.value())).transpose()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

impl Shared {
    fn new(options: &EtcdOptions) -> Result<Self> {
        let wrong = |what: String| Err(StoreError::Options(what));
        let letters = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if options.cluster.is_empty() || !letters(&options.cluster) {
            return wrong(format!(
                "a cluster's name has letters, digits, `-`, `_` and `.`; `{}` is none",
                options.cluster
            ));
        }
        if options.ttl < Duration::from_secs(2) || options.ttl.subsec_nanos() != 0 {
            return wrong(format!("a leader's lease has whole seconds, 2 or more; {:?} is none", options.ttl));
        }
        let addresses = options.endpoints.iter().map(|text| address(text, options.tls.is_some()));
        let addresses = addresses.collect::<Result<Vec<_>>>()?;
        if addresses.is_empty() {
            return wrong(String::from("no address of etcd; the usual one is http://127.0.0.1:2379"));
        }
        let mut connect = ConnectOptions::new().with_connect_timeout(Duration::from_millis(700));
        if let Some(files) = &options.tls {
            let mut tls = TlsOptions::new().ca_certificate(tls::read_ca(&files.ca)?);
            if let Some((certificate, key)) = &files.identity {
                tls = tls.identity(tls::read_identity(certificate, key)?);
            }
            connect = connect.with_tls(tls);
        }
        let prefix = format!("/penstock/{}/", options.cluster);
        Ok(Self { link: Link::new(addresses, connect), prefix, ttl: options.ttl })
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn audit_key(&self, entry: &AuditEntry) -> String {
        self.key(&format!("audit/{:020}-{}", entry.time_unix_ns, unique()))
    }

    async fn get(&self, key: String, options: GetOptions, longest: Duration) -> Result<etcd_client::GetResponse> {
        let get = |client: etcd_client::Client| {
            let mut client = client.kv_client().max_decoding_message_size(MESSAGE_BYTES_MAX);
            let (key, options) = (key.clone(), options.clone());
            async move { client.get(key, Some(options)).await }
        };
        self.link.call(longest, get).await
    }

    async fn txn(&self, txn: etcd_client::Txn) -> Result<etcd_client::TxnResponse> {
        let call = |mut client: etcd_client::Client| {
            let txn = txn.clone();
            async move { client.txn(txn).await }
        };
        self.link.call(CALL, call).await
    }

    /// Grants a lease and returns its id.
    async fn grant(&self, ttl: Duration) -> Result<i64> {
        let seconds = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
        let grant = |mut client: etcd_client::Client| async move { client.lease_grant(seconds, None).await };
        Ok(self.link.call(CALL, grant).await?.id())
    }

    /// Renews a lease; false: there is none any more.
    async fn renew(&self, lease: i64, longest: Duration) -> Result<bool> {
        let renew = |mut client: etcd_client::Client| async move {
            match client.lease_keep_alive(lease).await {
                Ok(_) => Ok(true),
                Err(Error::LeaseKeepAliveError(_)) => Ok(false),
                Err(error) => Err(error),
            }
        };
        self.link.call(longest, renew).await
    }

    /// Ends a lease, and all that goes with it. If that fails it ends by itself.
    async fn revoke(&self, lease: i64) {
        let revoke = |mut client: etcd_client::Client| async move { client.lease_revoke(lease).await };
        let _ = self.link.call(CALL, revoke).await;
    }

    /// Deletes the oldest entries of the audit log, down to what is kept.
    async fn trim_audit(&self) -> Result<()> {
        let all = GetOptions::new().with_prefix();
        let count = self.get(self.key("audit/"), all.clone().with_count_only(), CALL).await?.count();
        let surplus = usize::try_from(count).unwrap_or(0).saturating_sub(AUDIT_ENTRIES_MAX);
        if surplus == 0 {
            return Ok(());
        }
        let oldest = all.with_keys_only().with_limit(i64::try_from(surplus).unwrap_or(i64::MAX));
        let oldest = oldest.with_sort(SortTarget::Create, SortOrder::Ascend);
        let oldest = self.get(self.key("audit/"), oldest, CALL).await?;
        for some in oldest.kvs().chunks(DELETIONS_MAX) {
            let deletions: Vec<_> = some.iter().map(|entry| TxnOp::delete(entry.key(), None)).collect();
            self.txn(etcd_client::Txn::new().and_then(deletions)).await?;
        }
        Ok(())
    }

    fn parse<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T> {
        serde_json::from_slice(bytes).map_err(|error| self.damaged(&error.to_string()))
    }

    fn damaged(&self, what: &str) -> StoreError {
        StoreError::Damaged { store: self.link.describe(), what: what.to_owned() }
    }
}

/// An address with `http://` or `https://` before it.
fn address(text: &str, tls: bool) -> Result<String> {
    let scheme = if tls { "https://" } else { "http://" };
    let other = if tls { "http://" } else { "https://" };
    if text.starts_with(other) {
        let what = if tls {
            "files for TLS are given, which goes"
        } else {
            "TLS needs files, at least of its CA; without it goes"
        };
        return Err(StoreError::Options(format!("etcd at {text}: {what} with {scheme}")));
    }
    let rest = text.strip_prefix(scheme).unwrap_or(text).trim_end_matches('/');
    let address = format!("{scheme}{rest}");
    let has_port = rest.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !has_port || address.parse::<tonic::transport::Uri>().is_err() {
        let what = format!("etcd at {text}: this is no address; one is {scheme}127.0.0.1:2379");
        return Err(StoreError::Options(what));
    }
    Ok(address)
}

/// What nobody else has.
fn unique() -> String {
    let mut bytes = [0_u8; 12];
    // It fails on kernels that are too old for all the rest.
    let _ = getrandom(&mut bytes[..], GetRandomFlags::empty());
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
