// SPDX-License-Identifier: MIT OR Apache-2.0
//! A store on a disk whose power fails, and a daemon on it.

use super::{ROWS, put, source};
use penstock_api::v1;
use penstock_dataplane::{Stub, Tap};
use penstock_node::store::Store;
use penstock_node::{Keeper, NodeError, limits, rows};
use redb::StorageBackend;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A disk whose power can fail after a number of writes. What was written before is there after.
#[derive(Debug, Clone)]
pub struct Disk {
    pub bytes: Arc<Mutex<Vec<u8>>>,
    pub writes_left: Arc<AtomicU64>,
}

impl Disk {
    pub fn new() -> Self {
        Self { bytes: Arc::default(), writes_left: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    /// What a daemon would find that started now.
    pub fn copy(&self) -> Self {
        let disk = Self::new();
        disk.bytes.lock().unwrap().clone_from(&self.bytes.lock().unwrap());
        disk
    }

    pub fn fail_after(&self, writes: u64) {
        self.writes_left.store(writes, Ordering::Relaxed);
    }

    pub fn store(&self) -> Store {
        let disk = self.clone();
        Store::on(Path::new("disk"), move || disk.clone()).unwrap()
    }

    fn write_one(&self) -> io::Result<()> {
        let left = self.writes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(|_| ()).map_err(|_| io::Error::other("the power failed"))
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let start = usize::try_from(offset).unwrap();
        let bytes = self.bytes.lock().unwrap();
        bytes.get(start..start + length).map(<[u8]>::to_vec).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.write_one()?;
        self.bytes.lock().unwrap().resize(usize::try_from(length).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self, _eventual: bool) -> io::Result<()> {
        self.write_one()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_one()?;
        let start = usize::try_from(offset).unwrap();
        self.bytes.lock().unwrap()[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }
}

/// Adds a row of 3 Mbit/s.
pub fn add(keeper: &mut Keeper, row: &str, dst: &str) -> Result<(), NodeError> {
    let column = |name: &str, value: &str| v1::Column { name: name.to_owned(), value: value.to_owned() };
    let columns = vec![column("dst", dst), column("rate", "3Mbit/s")];
    rows::add(keeper, &v1::AddLimitRequest { row: row.to_owned(), class: String::new(), columns }).map(|_| ())
}

/// A keeper with a policy and a change, and its data plane.
pub fn started(disk: &Disk) -> (Keeper, Tap) {
    started_with(disk, usize::MAX)
}

/// The same; rows that are added beyond `spare_rows` take a new generation.
pub fn started_with(disk: &Disk, spare_rows: usize) -> (Keeper, Tap) {
    let stub = Stub::new();
    let tap = stub.tap();
    tap.set_spare_rows(spare_rows);
    let mut keeper = Keeper::start(disk.store(), Box::new(stub)).unwrap();
    put(&mut keeper, &source("first", "50Mbit/s", ROWS)).unwrap();
    limits::set(&mut keeper, "b", 21_000_000).unwrap();
    (keeper, tap)
}
