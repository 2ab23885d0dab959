// SPDX-License-Identifier: MIT OR Apache-2.0
//! The store of a controller that is alone: a file in a folder, locked while it is used.

use super::leadership::{Hold, Leadership};
use super::{AUDIT_ENTRIES_MAX, AuditEntry, FORMAT, Replica, Result, StoreError, Stored, pack, to_json};
use redb::{Database, ReadTransaction, ReadableTable, ReadableTableMetadata, TableDefinition, WriteTransaction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tracing::warn;

const FILE: &str = "controller.redb";
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
/// Revision to the file, compressed. There is one.
const TEXTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("texts");
/// Counts up.
const AUDIT: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("audit");

/// The network in the store.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    revision: u64,
    name: String,
    bytes: usize,
}

/// A store in a folder.
#[derive(Debug)]
pub struct Embedded {
    folder: PathBuf,
    file: Arc<File>,
    revision: watch::Sender<u64>,
    /// Who leads, and until when: the one that campaigned last.
    leader: Mutex<Option<(Replica, Arc<Hold>)>>,
}

/// The database. It takes no more after an error: then it is opened anew.
#[derive(Debug)]
struct File {
    path: PathBuf,
    database: Mutex<Option<Database>>,
}

type Redb<T> = std::result::Result<T, Fault>;

/// An error of the database, of whatever kind, behind a pointer: it is large.
struct Fault(Box<redb::Error>);

impl<E> From<E> for Fault
where
    redb::Error: From<E>,
{
    fn from(error: E) -> Self {
        Self(Box::new(error.into()))
    }
}

impl Embedded {
    pub async fn open(folder: &Path) -> Result<Self> {
        let path = folder.to_owned();
        let (file, record) = blocking(folder, move || {
            let failed = |source| StoreError::Io { path: path.clone(), source };
            DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(failed)?;
            let file = File { path: path.join(FILE), database: Mutex::default() };
            // The database asserts what a damaged file does not keep.
            let checked = std::panic::catch_unwind(AssertUnwindSafe(|| file.check()));
            let record = checked.unwrap_or_else(|_| Err(file.damaged("it is not what was written")))?;
            Ok((file, record))
        })
        .await?;
        Ok(Self {
            folder: folder.to_owned(),
            file: Arc::new(file),
            revision: watch::Sender::new(record.revision),
            leader: Mutex::default(),
        })
    }

    pub fn describe(&self) -> String {
        format!("embedded in {}", self.folder.display())
    }

    pub fn revision(&self) -> u64 {
        *self.revision.borrow()
    }

    pub fn watch(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    pub fn leader(&self) -> Option<Replica> {
        let leader = lock(&self.leader);
        leader.as_ref().filter(|(_, hold)| hold.left_ns() > 0).map(|(replica, _)| replica.clone())
    }

    pub async fn network(&self) -> Result<Option<Stored>> {
        let found = self
            .run(|file| {
                file.read(|transaction| {
                    let record = transaction.open_table(META)?.get("network")?.map(|value| value.value().to_vec());
                    let text = transaction.open_table(TEXTS)?.last()?.map(|(_, value)| value.value().to_vec());
                    Ok(record.zip(text))
                })
            })
            .await?;
        let Some((record, packed)) = found else { return Ok(None) };
        let Record { revision, name, bytes } = self.file.parse(&record)?;
        let text = pack::unpack(packed, bytes).await.map_err(|error| self.file.damaged(&error.to_string()))?;
        Ok(Some(Stored { revision, name, text }))
    }

    pub async fn put_network(&self, expected: Option<u64>, name: &str, text: &[u8], audit: AuditEntry) -> Result<u64> {
        let (bytes, name) = (text.len(), name.to_owned());
        let packed = pack::pack(text.to_vec()).await.map_err(|source| self.file.io(source))?;
        let put = self.run(move |file| {
            let audit = audit.pack();
            file.write(|transaction| {
                let mut meta = transaction.open_table(META)?;
                let before = meta.get("network")?.map(|value| value.value().to_vec());
                let before: Record = before.and_then(|record| serde_json::from_slice(&record).ok()).unwrap_or_default();
                if expected.is_some_and(|expected| expected != before.revision) {
                    return Ok(Err(before.revision));
                }
                let record = Record { revision: before.revision + 1, name: name.clone(), bytes };
                meta.insert("network", to_json(&record).as_slice())?;
                let mut texts = transaction.open_table(TEXTS)?;
                texts.retain(|_, _| false)?;
                texts.insert(record.revision, packed.as_slice())?;
                add_audit(transaction, &audit)?;
                Ok(Ok(record.revision))
            })
        });
        let revision = put.await?.map_err(|revision| StoreError::Conflict { revision })?;
        // Others may have put one since.
        self.revision.send_if_modified(|known| std::mem::replace(known, revision.max(*known)) < revision);
        Ok(revision)
    }

    pub async fn add_audit(&self, entry: AuditEntry) -> Result<()> {
        self.run(move |file| {
            let entry = entry.pack();
            file.write(|transaction| add_audit(transaction, &entry))
        })
        .await
    }

    pub async fn audit(&self, count: usize) -> Result<Vec<AuditEntry>> {
        let rows = self.run(move |file| {
            file.read(|transaction| {
                let table = transaction.open_table(AUDIT)?;
                let rows = table.iter()?.rev().take(count).map(|row| Ok(row?.1.value().to_vec()));
                rows.collect::<Redb<Vec<_>>>()
            })
        });
        rows.await?.iter().map(|row| self.file.parse(row)).collect()
    }

    /// There is nobody else, because the folder is locked.
    pub async fn campaign(&self, replica: &Replica) -> Result<Leadership> {
        let term = self
            .run(|file| {
                file.write(|transaction| {
                    let mut meta = transaction.open_table(META)?;
                    let before = meta.get("term")?.and_then(|value| serde_json::from_slice::<u64>(value.value()).ok());
                    let term = before.unwrap_or_default() + 1;
                    meta.insert("term", to_json(&term).as_slice())?;
                    Ok(term)
                })
            })
            .await?;
        let hold = Hold::until(u64::MAX);
        let before = lock(&self.leader).replace((replica.clone(), hold.clone()));
        if let Some((_, before)) = before {
            before.end();
        }
        Ok(Leadership::new(term, hold, None))
    }

    pub async fn lease_ns(&self) -> Result<Option<u64>> {
        let found = self.run(|file| {
            file.read(|transaction| Ok(transaction.open_table(META)?.get("lease")?.map(|value| value.value().to_vec())))
        });
        found.await?.map(|lease| self.file.parse(&lease)).transpose()
    }

    pub async fn set_lease_ns(&self, term: u64, lease_ns: u64) -> Result<()> {
        let is_set = self.run(move |file| {
            file.write(|transaction| {
                let mut meta = transaction.open_table(META)?;
                let newest = meta.get("term")?.and_then(|value| serde_json::from_slice::<u64>(value.value()).ok());
                if newest != Some(term) {
                    return Ok(false);
                }
                meta.insert("lease", to_json(&lease_ns).as_slice())?;
                Ok(true)
            })
        });
        is_set.await?.then_some(()).ok_or_else(|| StoreError::Deposed { store: self.describe() })
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&File) -> Result<T> + Send + 'static) -> Result<T> {
        let file = self.file.clone();
        blocking(&self.folder, move || work(&file)).await
    }
}

/// A disk takes its time: not where others wait.
async fn blocking<T: Send + 'static>(folder: &Path, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let failed = |error| StoreError::Io { path: folder.to_owned(), source: std::io::Error::other(error) };
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}

fn add_audit(transaction: &WriteTransaction, entry: &[u8]) -> Redb<()> {
    let mut table = transaction.open_table(AUDIT)?;
    let next = table.last()?.map_or(0, |(key, _)| key.value() + 1);
    table.insert(next, entry)?;
    while table.len()? > AUDIT_ENTRIES_MAX as u64 {
        table.pop_first()?;
    }
    Ok(())
}

/// What is behind the lock is whole after a panic, too: it changes in one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl File {
    /// Opens the database, reads all of it once, and returns what network it has.
    fn check(&self) -> Result<Record> {
        self.with(|database| match database.check_integrity() {
            Ok(true) => Ok(()),
            Ok(false) => {
                warn!("{}: was damaged, and was repaired; the last change may be lost", self.path.display());
                Ok(())
            }
            Err(error) => Err(error.into()),
        })?;
        let (found, record) = self.write(|transaction| {
            // A reader needs the tables to be there.
            transaction.open_table(TEXTS)?;
            transaction.open_table(AUDIT)?;
            let mut meta = transaction.open_table(META)?;
            let found = meta.get("format")?.map(|value| value.value().to_vec());
            if found.is_none() {
                meta.insert("format", to_json(&FORMAT).as_slice())?;
            }
            let record = meta.get("network")?.map(|value| value.value().to_vec());
            Ok((found, record))
        })?;
        let found = found.map_or(Ok(FORMAT), |bytes| self.parse(&bytes))?;
        if found > FORMAT {
            return Err(StoreError::Newer { store: self.path.display().to_string(), found });
        }
        record.map_or(Ok(Record::default()), |bytes| self.parse(&bytes))
    }

    fn read<T>(&self, read: impl FnOnce(&ReadTransaction) -> Redb<T>) -> Result<T> {
        self.with(|database| read(&database.begin_read()?))
    }

    fn write<T>(&self, write: impl FnOnce(&WriteTransaction) -> Redb<T>) -> Result<T> {
        self.with(|database| {
            let transaction = database.begin_write()?;
            let value = write(&transaction)?;
            transaction.commit()?;
            Ok(value)
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Database) -> Redb<T>) -> Result<T> {
        let mut place = lock(&self.database);
        let mut database = match place.take() {
            Some(database) => database,
            None => self.open().map_err(|fault| self.failed(fault))?,
        };
        let value = work(&mut database).map_err(|fault| self.failed(fault))?;
        *place = Some(database);
        Ok(value)
    }

    fn open(&self) -> Redb<Database> {
        // Nobody else may: whoever can read a file can lock it, and the controller would not start.
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(&self.path);
        Ok(Database::builder().create_file(file.map_err(redb::Error::Io)?)?)
    }

    fn failed(&self, Fault(error): Fault) -> StoreError {
        match *error {
            redb::Error::DatabaseAlreadyOpen => StoreError::Busy(self.path.clone()),
            redb::Error::Io(source) if matches!(source.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => {
                self.damaged(&source.to_string())
            }
            redb::Error::Io(source) => self.io(source),
            other => self.damaged(&other.to_string()),
        }
    }

    fn io(&self, source: std::io::Error) -> StoreError {
        StoreError::Io { path: self.path.clone(), source }
    }

    fn damaged(&self, what: &str) -> StoreError {
        StoreError::Damaged { store: self.path.display().to_string(), what: what.to_owned() }
    }

    fn parse<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T> {
        serde_json::from_slice(bytes).map_err(|error| self.damaged(&error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One transaction, as so many would take minutes.
    #[tokio::test]
    async fn the_log_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(folder.path()).await.unwrap();
        let entry = |number: usize| AuditEntry { what: number.to_string(), ..AuditEntry::default() };
        let add = |transaction: &WriteTransaction| {
            (0..AUDIT_ENTRIES_MAX + 5).try_for_each(|number| add_audit(transaction, &entry(number).pack()))
        };
        store.file.write(add).unwrap();
        store.add_audit(entry(AUDIT_ENTRIES_MAX + 5)).await.unwrap();
        let log = store.audit(usize::MAX).await.unwrap();
        assert_eq!(log.len(), AUDIT_ENTRIES_MAX);
        assert!(log.into_iter().eq((6..AUDIT_ENTRIES_MAX + 6).rev().map(entry)));
    }
}
