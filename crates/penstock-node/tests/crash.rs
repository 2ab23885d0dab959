// SPDX-License-Identifier: MIT OR Apache-2.0
//! A daemon that dies between any two steps, a data plane whose writes fail, a disk that is full, a store that is damaged.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test may panic and talk

mod common;

use common::disk::{Disk, add, started, started_with};
use common::{ROWS, expected, in_force, kernel, put, retry, source};
use penstock_api::v1;
use penstock_dataplane::{Chaos, Dataplane, Stub};
use penstock_node::store::{Store, StoreError};
use penstock_node::{Keeper, NodeError, limits, rows};
use std::sync::atomic::Ordering;

type Step = fn(&mut Keeper) -> Result<(), NodeError>;

/// Everything that changes something.
const STEPS: [(&str, Step); 8] = [
    ("reload", |keeper| put(keeper, &source("second", "60Mbit/s", "name,dst,rate\nb,10.1.0.2,25Mbit/s\n"))),
    ("set a row", |keeper| limits::set(keeper, "a", 11_000_000).map(|_| ())),
    ("set a class", |keeper| limits::set(keeper, "gold", 70_000_000).map(|_| ())),
    ("add, as an edit", |keeper| add(keeper, "c", "10.1.0.3")),
    ("add, with a new generation", |keeper| add(keeper, "net", "10.1.0.0/24")),
    ("delete", |keeper| limits::delete(keeper, "b").map(|_| ())),
    ("import", |keeper| {
        let file = v1::ImportFile { name: "in.csv".to_owned(), ..v1::ImportFile::default() };
        let bytes = b"name,dst,rate\na,10.1.0.1,1Mbit/s\nd,10.1.0.4,4Mbit/s\nb,10.1.0.9,9Mbit/s\n".to_vec();
        rows::import(keeper, &file, bytes).map(|_| ())
    }),
    ("down", |keeper| keeper.down().map(|_| ())),
];

#[test]
fn a_crash_between_any_two_writes_leaves_the_old_or_the_new() {
    let adding = STEPS.into_iter().filter(|(name, _)| name.starts_with("add") || *name == "import");
    let steps = STEPS.map(|step| (usize::MAX, step)).into_iter().chain(adding.map(|step| (0, step)));
    for (spare_rows, (name, step)) in steps {
        let before = in_force(&started(&Disk::new()).0);
        let after = {
            let mut keeper = started(&Disk::new()).0;
            step(&mut keeper).unwrap();
            in_force(&keeper)
        };
        assert_ne!(before, after, "{name}");
        let (mut old, mut new) = (0, 0);
        for writes in 0.. {
            let disk = Disk::new();
            let (mut keeper, tap) = started_with(&disk, spare_rows);
            disk.fail_after(writes);
            let result = step(&mut keeper);
            let has_failed = disk.writes_left.load(Ordering::Relaxed) == 0;
            drop(keeper);
            disk.fail_after(u64::MAX);

            let mut keeper = Keeper::start(disk.store(), kernel(&tap)).unwrap();
            let found = in_force(&keeper);
            assert!(found == before || found == after, "{name}, {writes} writes: {found:?}");
            if result.is_ok() {
                assert_eq!(found, after, "{name}, {writes} writes: it was said to be done");
            }
            if found == before {
                old += 1
            } else {
                new += 1
            }
            assert_eq!(tap.open().generation().is_some(), !found.0.is_empty(), "{name}, {writes} writes");
            if !found.0.is_empty() {
                let warnings = keeper.warnings();
                assert!(warnings.is_empty(), "{name}, {writes} writes: not taken over: {warnings:?}");
                assert_eq!(Some(keeper.held().unwrap().record.generation), tap.open().generation(), "{name}");
                let (source, changes) = (keeper.source().unwrap(), keeper.changes().clone());
                assert_eq!(
                    expected(&source, &changes),
                    found.1,
                    "{name}, {writes} writes: the store says something else"
                );
            }
            if !has_failed {
                break;
            }
        }
        eprintln!("{name}: {old} crashes left the old, {new} the new");
        assert!(old > 0 && new > 0, "{name}: {old} old, {new} new");
    }
}

#[test]
fn writes_that_fail_before_or_after_they_happened_leave_store_and_data_plane_in_step() {
    let (mut failed, mut done, mut stalled) = (0, 0, 0);
    for seed in 0..40 {
        let disk = Disk::new();
        let (keeper, tap) = started_with(&disk, if seed % 2 == 0 { usize::MAX } else { 0 });
        drop(keeper);
        // A start that fails leaves a policy that is tried again.
        let chaos = Chaos::new(tap.open(), seed, u32::MAX / 2);
        let mut keeper = Keeper::start(disk.store(), Box::new(chaos)).unwrap();
        if let Err(error) = keeper.in_force() {
            stalled += 1;
            assert!(error.to_string().contains("this write failed on purpose"), "seed {seed}: {error}");
            let refused = keeper.may(false).unwrap_err().to_string();
            assert!(refused.contains("`penstock reload POLICY` replaces it"), "seed {seed}: {refused}");
        }
        for _ in 0..20 {
            retry(&mut keeper);
        }
        assert!(keeper.in_force().is_ok(), "seed {seed}");
        for (name, step) in STEPS {
            let before = in_force(&keeper);
            let mut result = step(&mut keeper);
            let now = in_force(&keeper);
            match &result {
                Ok(()) => done += 1,
                // `down` may stop half way; calling again goes on.
                Err(NodeError::Dataplane(_)) if name == "down" => failed += 1,
                Err(NodeError::Dataplane(_)) => {
                    failed += 1;
                    assert_eq!(now, before, "seed {seed}, {name}: a failure changed something");
                    let changes = disk.copy().store().changes().unwrap();
                    assert_eq!(&changes, keeper.changes(), "seed {seed}, {name}: a failure is in the store");
                }
                Err(error) => assert!(now == before, "seed {seed}, {name}: {error}"),
            }
            for _ in 0..50 {
                if !matches!(result, Err(NodeError::Dataplane(_))) {
                    break;
                }
                result = step(&mut keeper);
            }
            assert!(!matches!(result, Err(NodeError::Dataplane(_))), "seed {seed}, {name}: never done");
            let now = in_force(&keeper);
            if !now.0.is_empty() {
                let store = disk.copy().store().current().unwrap().unwrap();
                assert_eq!(Some(store.generation), tap.open().generation(), "seed {seed}, {name}");
                let (source, changes) = (keeper.source().unwrap(), keeper.changes().clone());
                assert_eq!(expected(&source, &changes), now.1, "seed {seed}, {name}");
            }
        }
        drop(keeper);
        assert_eq!(tap.open().generation(), None, "seed {seed}");
        let keeper = Keeper::start(disk.store(), kernel(&tap)).unwrap();
        assert!(keeper.held().is_none(), "seed {seed}");
    }
    assert!(failed > 30 && done > 30 && stalled > 0, "{failed} failed, {done} done, {stalled} stalled");
}

#[test]
fn a_policy_that_the_store_does_not_know_is_left_alone() {
    let stub = Stub::new();
    let tap = stub.tap();
    drop(started_on(&Disk::new(), stub));
    let mut keeper = Keeper::start(Disk::new().store(), kernel(&tap)).unwrap();
    assert_eq!(keeper.foreign(), Some(1));
    assert!(keeper.warnings()[0].contains("generation 1 is in force, which this store does not know"));
    let refused = put(&mut keeper, &source("other", "1Mbit/s", ROWS)).unwrap_err();
    assert!(refused.to_string().contains("`penstock down` takes it out"), "{refused}");
    assert_eq!(tap.open().generation(), Some(1));
    keeper.down().unwrap();
    assert_eq!(tap.open().generation(), None);
    put(&mut keeper, &source("other", "1Mbit/s", ROWS)).unwrap();
}

fn started_on(disk: &Disk, stub: Stub) -> Keeper {
    let mut keeper = Keeper::start(disk.store(), Box::new(stub)).unwrap();
    put(&mut keeper, &source("first", "50Mbit/s", ROWS)).unwrap();
    keeper
}

#[test]
fn a_damaged_store_is_said_to_be_and_touches_nothing() {
    let disk = Disk::new();
    let stub = Stub::new();
    let tap = stub.tap();
    drop(started_on(&disk, stub));
    let whole = disk.bytes.lock().unwrap().clone();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("node.redb");
    let mut damaged =
        vec![("cut".to_owned(), whole[..whole.len() / 2].to_vec()), ("other".to_owned(), vec![b'x'; 9_000])];
    // A page in the middle of what is used, and the header.
    for at in [0, 100, 4_096, 5_000, 8_192] {
        let mut bytes = whole.clone();
        bytes[at..at + 64].iter_mut().for_each(|byte| *byte ^= 0x5a);
        damaged.push((format!("64 bytes at {at}"), bytes));
    }
    let mut refused = 0;
    for (what, bytes) in damaged {
        std::fs::write(&file, bytes).unwrap();
        match Store::open(folder.path()).map_err(NodeError::from).and_then(|store| Keeper::start(store, kernel(&tap))) {
            Err(error) => {
                refused += 1;
                let text = error.to_string();
                assert!(text.contains("node.redb"), "{what}: {text}");
                eprintln!("{what}: {text}");
            }
            // What was hit was not in use.
            Ok(keeper) => assert_eq!(in_force(&keeper).0, "first", "{what}"),
        }
        assert_eq!(tap.open().generation(), Some(1), "{what}");
    }
    assert!(refused >= 4, "only {refused} were refused");
}

#[test]
fn one_store_has_one_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let second = Store::open(folder.path()).unwrap_err();
    assert!(matches!(second, StoreError::Busy(_)), "{second}");
    drop(store);
    Store::open(folder.path()).unwrap();
}

/// A small file system of its own, gone at the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "penstock-test"])
            .arg(folder.path())
            .status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_leaves_the_old_policy_in_force() {
    let Some(disk) = SmallDisk::mount("6m") else {
        eprintln!("SKIP: needs root, to mount a small file system");
        assert!(std::env::var_os("CI").is_none(), "CI must not skip this");
        return;
    };
    let folder = disk.0.path();
    let stub = Stub::new();
    let tap = stub.tap();
    let mut keeper = Keeper::start(Store::open(folder).unwrap(), Box::new(stub)).unwrap();
    put(&mut keeper, &source("first", "50Mbit/s", ROWS)).unwrap();
    let before = in_force(&keeper);
    let filler = folder.join("filler");
    let mut size = 4 << 20;
    while size > 0 {
        let bytes = vec![0; std::fs::metadata(&filler).map_or(0, |file| usize::try_from(file.len()).unwrap()) + size];
        if std::fs::write(&filler, bytes).is_err() {
            size /= 2;
        }
    }
    // Larger than what the store's file has free.
    let mut rows = String::from("name,dst,rate\n");
    for index in 0..200_000_u32 {
        let hash = index.wrapping_mul(0x9e37_79b9);
        rows +=
            &format!("{hash:x},10.{}.{}.{},{}kbit/s\n", index >> 16, index >> 8 & 255, index & 255, 1 + hash % 99_991);
    }
    let error = put(&mut keeper, &source("second", "60Mbit/s", &rows)).unwrap_err();
    assert!(error.to_string().contains("No space left on device"), "{error}");
    assert_eq!((in_force(&keeper), tap.open().generation()), (before.clone(), Some(1)));

    std::fs::remove_file(&filler).unwrap();
    limits::set(&mut keeper, "a", 11_000_000).unwrap();
    drop(keeper);
    let keeper = Keeper::start(Store::open(folder).unwrap(), kernel(&tap)).unwrap();
    let (name, rates) = in_force(&keeper);
    assert_eq!((name.as_str(), rates["a"]), ("first", 11_000_000));
}
