// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a daemon remembers: the policy in force as its source, the limits that were changed since, and what it is about to do.
//!
//! A policy is written ahead: [`Store::prepare`] keeps it beside the one in force, then the data plane takes it, then
//! [`Store::commit`] makes it the one in force. Whoever finds a prepared policy after a crash asks the data plane which of the two
//! it has. Each function is one transaction: it happens as a whole or not at all.

mod machine;

use crate::changes::{Change, Changes, LimitName};
use crate::leases::Holding;
use crate::socket::private_file;
use crate::source;
pub use crate::source::{Packed, Source, SourceFile};
use redb::{Database, ReadTransaction, ReadableTable, StorageBackend, TableDefinition, WriteTransaction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use tracing::warn;

const FILE: &str = "node.redb";
/// Of what is in the tables.
const FORMAT: u64 = 1;
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
/// (revision, file) to its bytes, compressed. File 0 is the policy, the others are its limits files.
const SOURCES: TableDefinition<'_, (u64, u32), &[u8]> = TableDefinition::new("sources");
/// (class, row) to a change; an empty row is the class's own limit.
const CHANGES: TableDefinition<'_, (&str, &str), &[u8]> = TableDefinition::new("changes");

/// A policy in the store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Which source; counts up.
    pub revision: u64,
    /// `name` of the source.
    pub name: String,
    /// Its limits files: path and name.
    pub files: Vec<(String, String)>,
    /// Of the data plane when the policy came into force there.
    pub generation: u64,
    /// When it did, ns of Unix time.
    pub since_unix_ns: u64,
}

/// What the daemon was about to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pending {
    /// Take the policy out of force.
    Down,
    /// Put a policy into force.
    Policy(Prepared),
}

/// A policy on its way into force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// Its generation is not known yet.
    pub record: Record,
    /// What the data plane had before; it has something else when it took this policy.
    pub generation_before: Option<u64>,
    /// Changes of limits that come with it. An empty one is no more.
    pub changes: Vec<(LimitName, Change)>,
}

/// What a controller has lent, for the daemon after this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRecord {
    /// The kernel's boot id: the lease is in times since then.
    pub boot: String,
    /// What is lent.
    pub holding: Holding,
}

/// What the store would not do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A second daemon.
    #[error("{}: another daemon uses it", .0.display())]
    Busy(PathBuf),
    /// What is in it cannot be read.
    #[error(
        "{}: the store is damaged: {what}; what is in force stays in force. Move the file away, start the daemon again, \
         then `penstock down` and `penstock up POLICY`", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Written by a newer version.
    #[error("{}: format {found} of the store is newer than this program, which knows {FORMAT}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// What it has.
        found: u64,
    },
    /// Reading or writing.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Opens the database: again after an error, as it takes no more after one.
type Opener = Box<dyn Fn() -> Redb<Database> + Send>;

/// The store of one daemon.
pub struct Store {
    path: PathBuf,
    open: Opener,
    database: Option<Database>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.path).finish_non_exhaustive()
    }
}

type Result<T, E = StoreError> = std::result::Result<T, E>;
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

impl Store {
    /// Opens the store in a folder, or makes one.
    ///
    /// # Errors
    /// The folder cannot be made, another daemon uses the store, or it is damaged.
    pub fn open(folder: &Path) -> Result<Self> {
        let failed = |source| StoreError::Io { path: folder.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let path = folder.join(FILE);
        let file = path.clone();
        let open = move || Ok(Database::builder().create_file(private_file(&file).map_err(redb::Error::Io)?)?);
        Self::with_opener(path, Box::new(open))
    }

    /// A store on something else than a file: for tests that let it fail. `path` is for messages.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn on<B: StorageBackend>(path: &Path, backend: impl Fn() -> B + Send + 'static) -> Result<Self> {
        let open = move || Ok(Database::builder().create_with_backend(backend())?);
        Self::with_opener(path.to_owned(), Box::new(open))
    }

    fn with_opener(path: PathBuf, open: Opener) -> Result<Self> {
        let store = Self { path: path.clone(), open, database: None };
        // The database asserts what a damaged file does not keep.
        let checked = std::panic::catch_unwind(AssertUnwindSafe(|| store.check()));
        checked.unwrap_or_else(|_| Err(StoreError::Damaged { path, what: "it is not what was written".to_owned() }))
    }

    /// Opens the database, and reads all of it once.
    fn check(mut self) -> Result<Self> {
        let store = &mut self;
        let is_whole = store.database()?.check_integrity();
        match is_whole {
            Ok(true) => {}
            // As after a crash before the last transaction, which whoever opens it must cope with anyway.
            Ok(false) => warn!("{}: was damaged, and was repaired; the last change may be lost", store.path.display()),
            Err(error) => return Err(store.failed(error.into())),
        }
        let found = store.write(|transaction| {
            // A reader needs the tables to be there.
            transaction.open_table(SOURCES)?;
            transaction.open_table(CHANGES)?;
            let mut meta = transaction.open_table(META)?;
            let found = meta.get("format")?.map(|value| value.value().to_vec());
            if found.is_none() {
                meta.insert("format", to_json(&FORMAT).as_slice())?;
            }
            Ok(found)
        })?;
        let found = found.map_or(Ok(FORMAT), |bytes| store.parse(&bytes))?;
        if found > FORMAT {
            return Err(StoreError::Newer { path: self.path, found });
        }
        Ok(self)
    }

    /// The policy in force.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn current(&mut self) -> Result<Option<Record>> {
        self.meta("current")
    }

    /// What the daemon was about to do.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn pending(&mut self) -> Result<Option<Pending>> {
        self.meta("pending")
    }

    /// Limits that were changed at run time.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn changes(&mut self) -> Result<Changes> {
        let rows = self.read(|transaction| {
            let table = transaction.open_table(CHANGES)?;
            let mut rows = Vec::new();
            for item in table.iter()? {
                let (key, value) = item?;
                let (class, row) = key.value();
                rows.push((class.to_owned(), row.to_owned(), value.value().to_vec()));
            }
            Ok(rows)
        })?;
        let parsed = rows.into_iter().map(|(class, row, value)| {
            let row = Some(row).filter(|row| !row.is_empty());
            Ok((LimitName { class, row }, self.parse(&value)?))
        });
        parsed.collect()
    }

    /// The source of a policy.
    ///
    /// # Errors
    /// The store cannot be read, or does not have it.
    pub fn source(&mut self, record: &Record) -> Result<Source> {
        let unpacked = self.packed(record)?.unpack();
        unpacked.map_err(|error| self.damaged(&format!("policy {}: {error}", record.revision)))
    }

    /// The source of a policy as it lies in the store.
    ///
    /// # Errors
    /// The store cannot be read, or does not have it.
    pub fn packed(&mut self, record: &Record) -> Result<Packed> {
        let mut blobs = Vec::new();
        for (file, _) in (0..).zip(0..=record.files.len()) {
            blobs.push(self.blob(record.revision, file)?);
        }
        Ok(Packed { name: record.name.clone(), files: record.files.clone(), blobs })
    }

    /// One limits file of a policy.
    ///
    /// # Errors
    /// As [`Store::source`].
    pub fn source_file(&mut self, record: &Record, path: &str) -> Result<Vec<u8>> {
        let file = record.files.iter().zip(1..).find(|((known, _), _)| known == path).map(|(_, file)| file);
        let bytes = self.blob(record.revision, file.unwrap_or(u32::MAX))?;
        source::decompress(&bytes)
            .map_err(|error| self.damaged(&format!("policy {}, {path}: {error}", record.revision)))
    }

    /// Keeps a policy that is about to come into force. Without a source it is the one in force, compiled anew.
    ///
    /// # Errors
    /// The store cannot be written, because the disk is full perhaps. It is as before then.
    pub fn prepare(
        &mut self,
        source: Option<&Packed>,
        generation_before: Option<u64>,
        changes: Vec<(LimitName, Change)>,
    ) -> Result<()> {
        let current = self.current()?;
        let record = match source {
            None => current.unwrap_or_default(),
            Some(source) => Record {
                revision: current.map_or(1, |record| record.revision + 1),
                name: source.name.clone(),
                files: source.files.clone(),
                ..Record::default()
            },
        };
        let revision = record.revision;
        let pending = to_json(&Pending::Policy(Prepared { record, generation_before, changes }));
        self.write(|transaction| {
            let mut sources = transaction.open_table(SOURCES)?;
            if let Some(source) = source {
                // What an attempt before this one may have left.
                sources.retain_in((revision, 0)..=(revision, u32::MAX), |_, _| false)?;
                for (file, bytes) in (0..).zip(&source.blobs) {
                    sources.insert((revision, file), bytes.as_slice())?;
                }
            }
            transaction.open_table(META)?.insert("pending", pending.as_slice())?;
            Ok(())
        })
    }

    /// The prepared policy is in force. Returns its record.
    ///
    /// # Errors
    /// The store cannot be written. The policy stays prepared.
    pub fn commit(&mut self, generation: u64, since_unix_ns: u64) -> Result<Option<Record>> {
        let Some(Pending::Policy(prepared)) = self.pending()? else { return Ok(None) };
        let record = Record { generation, since_unix_ns, ..prepared.record };
        let current = to_json(&record);
        self.write(|transaction| {
            let mut meta = transaction.open_table(META)?;
            meta.insert("current", current.as_slice())?;
            meta.remove("pending")?;
            let other = |key: (u64, u32), _: &[u8]| key.0 == record.revision;
            transaction.open_table(SOURCES)?.retain(other)?;
            write_changes(transaction, &prepared.changes)
        })?;
        Ok(Some(record))
    }

    /// The prepared policy did not come into force.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn abandon(&mut self) -> Result<()> {
        let current = self.current()?.map_or(0, |record| record.revision);
        self.write(|transaction| {
            transaction.open_table(META)?.remove("pending")?;
            transaction.open_table(SOURCES)?.retain(|key: (u64, u32), _: &[u8]| key.0 == current)?;
            Ok(())
        })
    }

    /// The policy in force is so under another generation, or since another time.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn number(&mut self, generation: u64, since_unix_ns: u64) -> Result<()> {
        let Some(record) = self.current()? else { return Ok(()) };
        let current = to_json(&Record { generation, since_unix_ns, ..record });
        self.write(|transaction| {
            transaction.open_table(META)?.insert("current", current.as_slice())?;
            Ok(())
        })
    }

    /// Changes of limits, all or none. An empty one is no more.
    ///
    /// # Errors
    /// The store cannot be written, because the disk is full perhaps. It is as before then.
    pub fn change(&mut self, changes: &[(LimitName, Change)]) -> Result<()> {
        self.write(|transaction| write_changes(transaction, changes))
    }

    /// The policy is about to be taken out of force.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn prepare_down(&mut self) -> Result<()> {
        let pending = to_json(&Pending::Down);
        self.write(|transaction| {
            transaction.open_table(META)?.insert("pending", pending.as_slice())?;
            Ok(())
        })
    }

    /// No policy is in force: forgets it and its changes.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn clear(&mut self) -> Result<()> {
        self.write(|transaction| {
            let mut meta = transaction.open_table(META)?;
            meta.remove("current")?;
            meta.remove("pending")?;
            transaction.open_table(SOURCES)?.retain(|_, _| false)?;
            transaction.open_table(CHANGES)?.retain(|_, _| false)?;
            Ok(())
        })
    }

    /// What a controller has lent.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn lent(&mut self) -> Result<Option<LeaseRecord>> {
        self.meta("lent")
    }

    /// Keeps what a controller has lent, or forgets it.
    ///
    /// # Errors
    /// The store cannot be written. It is as before then.
    pub fn lend(&mut self, record: Option<&LeaseRecord>) -> Result<()> {
        let value = record.map(to_json);
        self.write(|transaction| {
            let mut meta = transaction.open_table(META)?;
            match &value {
                Some(value) => drop(meta.insert("lent", value.as_slice())?),
                None => drop(meta.remove("lent")?),
            }
            Ok(())
        })
    }

    fn meta<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>> {
        let found = self.read(|transaction| {
            let value = transaction.open_table(META)?.get(key)?;
            Ok(value.map(|value| value.value().to_vec()))
        })?;
        found.map(|bytes| self.parse(&bytes)).transpose()
    }

    fn blob(&mut self, revision: u64, file: u32) -> Result<Vec<u8>> {
        let found = self.read(|transaction| {
            let value = transaction.open_table(SOURCES)?.get((revision, file))?;
            Ok(value.map(|value| value.value().to_vec()))
        })?;
        found.ok_or_else(|| self.damaged(&format!("file {file} of policy {revision} is missing")))
    }

    fn database(&mut self) -> Result<&mut Database> {
        if self.database.is_none() {
            let opened = (self.open)().map_err(|error| self.failed(error))?;
            self.database = Some(opened);
        }
        let path = &self.path;
        self.database.as_mut().ok_or_else(|| StoreError::Busy(path.clone()))
    }

    fn read<T>(&mut self, read: impl FnOnce(&ReadTransaction) -> Redb<T>) -> Result<T> {
        let database = self.database()?;
        let result = database.begin_read().map_err(Fault::from).and_then(|transaction| read(&transaction));
        result.map_err(|error| self.failed(error))
    }

    fn write<T>(&mut self, write: impl FnOnce(&WriteTransaction) -> Redb<T>) -> Result<T> {
        let database = self.database()?;
        let result = database.begin_write().map_err(Fault::from).and_then(|transaction| {
            let value = write(&transaction)?;
            transaction.commit()?;
            Ok(value)
        });
        result.map_err(|error| self.failed(error))
    }

    /// An error of the database, after which it is opened anew.
    fn failed(&mut self, Fault(error): Fault) -> StoreError {
        self.database = None;
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
        StoreError::Damaged { path: self.path.clone(), what: what.to_owned() }
    }

    fn parse<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T> {
        serde_json::from_slice(bytes).map_err(|error| self.damaged(&error.to_string()))
    }
}

fn write_changes(transaction: &WriteTransaction, changes: &[(LimitName, Change)]) -> Redb<()> {
    let mut table = transaction.open_table(CHANGES)?;
    for (name, change) in changes {
        let key = (name.class.as_str(), name.row.as_deref().unwrap_or_default());
        match change.is_empty() {
            true => drop(table.remove(key)?),
            false => drop(table.insert(key, to_json(change).as_slice())?),
        }
    }
    Ok(())
}

/// These structs have string keys and no numbers that JSON has not: they always serialise.
fn to_json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
