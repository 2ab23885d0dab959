// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a daemon that starts finds: the generation that was left, in step with the store or not.

#![allow(clippy::unwrap_used)] // a test may panic

mod common;

use common::disk::{Disk, add, started, started_with};
use common::{ROWS, in_force, kernel, put, source};
use penstock_api::v1;
use penstock_dataplane::{Chaos, Dataplane, Stub};
use penstock_node::compiled::compile;
use penstock_node::store::Packed;
use penstock_node::{Keeper, NodeError, Settings, limits, serve};

#[tokio::test]
async fn nobody_else_can_lock_what_a_daemon_needs_to_start() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &str| std::fs::metadata(folder.path().join(path)).unwrap().permissions().mode() & 0o777;
    // As an earlier version left them.
    std::fs::create_dir(folder.path().join("state")).unwrap();
    std::fs::write(folder.path().join("state/node.redb"), "").unwrap();
    let settings = Settings {
        socket: folder.path().join("run/node.sock"),
        state: folder.path().join("state"),
        metrics: None,
        metrics_limits: None,
        metrics_limits_max: 0,
        dataplane: "stub",
        counts_limits: None,
        sampling: std::time::Duration::from_secs(1),
        controllers: None,
    };
    let mut modes = Vec::new();
    for state in ["state", "new/state"] {
        let settings = Settings { state: folder.path().join(state), ..settings.clone() };
        let started = settings.socket.clone();
        let stop = async move { while penstock_api::connect(&started).await.is_err() {} };
        let stop = async {
            stop.await;
            modes.extend(["run", "run/node.sock", "run/node.sock.lock"].map(mode));
            modes.push(mode(&format!("{state}/node.redb")));
        };
        serve(settings, || Ok(Box::new(Stub::new())), stop).await.unwrap();
    }
    assert_eq!(modes, [0o750, 0o660, 0o600, 0o600, 0o750, 0o660, 0o600, 0o600]);
    assert_eq!((mode("new"), mode("new/state")), (0o700, 0o700));
}

#[test]
fn a_new_daemon_goes_on_with_states_and_changes() {
    let disk = Disk::new();
    let (mut keeper, tap) = started(&disk);
    add(&mut keeper, "c", "10.1.0.3").unwrap();
    let limit = penstock_dataplane::LimitId::Row(0);
    for _ in 0..40 {
        tap.offer(limit, &penstock_algo::wire::Key::default(), 1500);
    }
    let (before, generation) = (in_force(&keeper), tap.open().generation());
    let queue_ns = keeper.dataplane().limit(limit).unwrap().queue_ns;
    assert!(queue_ns > 40_000_000);
    drop(keeper);
    let keeper = Keeper::start(disk.store(), kernel(&tap)).unwrap();
    assert_eq!((in_force(&keeper), tap.open().generation()), (before.clone(), generation));
    assert_eq!(keeper.dataplane().limit(limit).unwrap().queue_ns, queue_ns);
    assert_eq!(keeper.changes().len(), 2);
    assert!(keeper.warnings().is_empty(), "{:?}", keeper.warnings());
    drop(keeper);
    // After a restart of the machine everything is put into force anew, and is so since then.
    tap.reboot();
    let record = disk.copy().store().current().unwrap().unwrap();
    let keeper = Keeper::start(disk.store(), kernel(&tap)).unwrap();
    assert_eq!(in_force(&keeper), before);
    let now = &keeper.held().unwrap().record;
    assert!(now.generation == record.generation && now.since_unix_ns > record.since_unix_ns);
    assert_eq!(disk.copy().store().current().unwrap().as_ref(), Some(now));
}

#[test]
fn rows_that_found_no_room_are_adopted_under_their_new_generation() {
    // The store learns the number with the edit, or by the start after a crash.
    for has_crashed in [false, true] {
        let disk = Disk::new();
        let (mut keeper, tap) = started_with(&disk, 0);
        let as_of_edit = disk.copy();
        add(&mut keeper, "c", "10.1.0.3").unwrap();
        let limit = penstock_dataplane::LimitId::Row(2);
        while tap.offer(limit, &penstock_algo::wire::Key::default(), 1500) != Some(penstock_algo::wire::PST_COLOR_RED) {
        }
        let (before, queue_ns) = (in_force(&keeper), keeper.dataplane().limit(limit).unwrap().queue_ns);
        assert_eq!((tap.open().generation(), keeper.readings(None).unwrap().generation), (Some(2), 2));
        let since_unix_ns = keeper.held().unwrap().record.since_unix_ns;
        let change: Vec<_> = keeper.changes().clone().into_iter().collect();
        drop(keeper);
        let disk = if has_crashed { as_of_edit } else { disk };
        if has_crashed {
            disk.store().change(&change).unwrap();
        }
        for _ in 0..2 {
            let keeper = Keeper::start(disk.store(), kernel(&tap)).unwrap();
            assert_eq!((in_force(&keeper), tap.open().generation()), (before.clone(), Some(2)));
            let now_ns = keeper.dataplane().limit(limit).unwrap().queue_ns;
            assert!(now_ns.abs_diff(queue_ns) < 1_000, "its state went on: {now_ns}, was {queue_ns}");
            assert!(keeper.warnings().is_empty(), "{:?}", keeper.warnings());
            let record = &keeper.held().unwrap().record;
            assert_eq!((record.generation, record.since_unix_ns), (2, since_unix_ns));
        }
    }
}

#[test]
fn another_policy_that_was_left_is_replaced_and_said_to_be() {
    let disk = Disk::new();
    let (keeper, tap) = started(&disk);
    drop(keeper);
    let mut other = source("other", "1Mbit/s", ROWS);
    other.text = String::from_utf8(other.text).unwrap().replace("gold", "lead").into_bytes();
    let plan = compile(&other, &std::collections::BTreeMap::new()).unwrap().plan;
    tap.open().apply(plan).unwrap();
    let keeper = Keeper::start(disk.store(), kernel(&tap)).unwrap();
    assert_eq!((in_force(&keeper).0.as_str(), tap.open().generation()), ("first", Some(3)));
    let expected = "generation 2 was in force, which is not of the store's policy; it was replaced";
    assert_eq!(keeper.warnings(), [expected]);
}

#[test]
fn changes_that_a_policy_drops_are_counted_and_the_first_are_told() {
    let rows: String = (0..50).map(|row| format!("r{row},10.1.1.{row},1Mbit/s\n")).collect();
    let (mut keeper, _tap) = started(&Disk::new());
    put(&mut keeper, &source("first", "50Mbit/s", &format!("name,dst,rate\n{rows}"))).unwrap();
    for row in 0..50 {
        limits::set(&mut keeper, &format!("r{row}"), 2_000_000).unwrap();
    }
    let second = source("second", "60Mbit/s", ROWS);
    let compiled = compile(&second, keeper.changes()).unwrap();
    let preview = keeper.preview(&compiled);
    let change = keeper.replace(Some(&Packed::new(&second).unwrap()), compiled, preview, &[]).unwrap();
    assert_eq!((change.runtime_changes_dropped.len(), change.runtime_changes_dropped_total), (20, 50));
}

#[test]
fn a_list_of_changes_stays_as_it_was_found_for_its_first_page() {
    let rows: String = (0..700).map(|row| format!("r{row:03},10.1.{}.{},1Mbit/s\n", row >> 8, row & 255)).collect();
    let (mut keeper, _tap) = started(&Disk::new());
    put(&mut keeper, &source("first", "50Mbit/s", &format!("name,dst,rate\n{rows}"))).unwrap();
    for row in 50..700 {
        limits::set(&mut keeper, &format!("r{row:03}"), 2_000_000).unwrap();
    }
    let request = v1::ListLimitsRequest { changed: true, ..v1::ListLimitsRequest::default() };
    let mut cursor = limits::Cursor::default();
    let (first, is_last) = limits::page(&keeper, &request, &mut cursor).unwrap();
    assert!(!is_last);
    // They come before all others.
    for row in 0..50 {
        limits::set(&mut keeper, &format!("r{row:03}"), 2_000_000).unwrap();
    }
    let (second, is_last) = limits::page(&keeper, &request, &mut cursor).unwrap();
    let names: std::collections::BTreeSet<_> = first.limits.iter().chain(&second.limits).map(|one| &one.name).collect();
    assert!(is_last);
    assert_eq!((first.limits.len() + second.limits.len(), names.len(), second.total), (650, 650, 650));
}

#[test]
fn what_was_adopted_may_count_otherwise_than_asked_for() {
    let (mut keeper, _tap) = started(&Disk::new());
    // The stub always counts.
    [None, Some(true)].into_iter().for_each(|asked| keeper.check_counting(asked));
    assert!(keeper.warnings().is_empty());
    keeper.check_counting(Some(false));
    assert!(keeper.warnings()[0].contains("counts single limits: `penstock reload POLICY`"), "{:?}", keeper.warnings());
}

#[test]
fn a_policy_that_was_refused_does_not_come_back_with_the_next_generation() {
    let mut forgotten_late = 0;
    for (seed, writes) in (0..3).flat_map(|seed| (0..30).map(move |writes| (seed, writes))) {
        let disk = Disk::new();
        let (keeper, tap) = started_with(&disk, 0);
        drop(keeper);
        let chaos = Chaos::new(tap.open(), seed, 0);
        let dial = chaos.dial();
        let mut keeper = Keeper::start(disk.store(), Box::new(chaos)).unwrap();
        dial.set_failing(u32::MAX);
        disk.fail_after(writes);
        let refused = put(&mut keeper, &source("second", "60Mbit/s", ROWS));
        dial.set_failing(0);
        disk.fail_after(u64::MAX);
        if !matches!(refused, Err(NodeError::Dataplane(_))) {
            continue;
        }
        forgotten_late += u32::from(disk.copy().store().pending().unwrap().is_some());
        add(&mut keeper, "c", "10.1.0.3").unwrap();
        assert_eq!(tap.open().generation(), Some(2));
        drop(keeper);
        let keeper = Keeper::start(disk.store(), kernel(&tap)).unwrap();
        assert_eq!(in_force(&keeper).0, "first", "seed {seed}, {writes} writes");
    }
    assert!(forgotten_late > 0);
}

#[test]
fn a_policy_that_went_but_could_not_be_forgotten_does_not_come_back() {
    let second = || source("second", "60Mbit/s", ROWS);
    let mut forgotten_late = 0;
    for writes in 0..40 {
        let disk = Disk::new();
        let (mut keeper, tap) = started(&disk);
        disk.fail_after(writes);
        let error = match keeper.down() {
            Err(error) if tap.open().generation().is_none() => error,
            _ => continue,
        };
        forgotten_late += 1;
        let status = tonic::Status::from(error);
        assert!(
            status.message().starts_with("the policy is no longer in force, but the store could not forget it yet")
        );
        assert!(!status.message().contains("nothing was changed"), "{status}");
        assert!(keeper.warnings()[0].contains("the store could not be written after the last change"));
        assert!(matches!(keeper.down(), Err(NodeError::Store(_))), "{writes} writes: it cannot be done yet");
        assert!(put(&mut keeper, &second()).is_err(), "{writes} writes: it would meet changes of the first");
        disk.fail_after(u64::MAX);
        // Either of them does it.
        match writes % 2 {
            0 => assert_eq!(keeper.down().unwrap(), None),
            _ => keeper.tick(),
        }
        let mut store = disk.copy().store();
        assert!(store.current().unwrap().is_none() && store.pending().unwrap().is_none());
        put(&mut keeper, &second()).unwrap();
        drop(keeper);
        let keeper = Keeper::start(disk.store(), kernel(&tap)).unwrap();
        assert_eq!((in_force(&keeper).1["b"], keeper.changes().len()), (20_000_000, 0), "{writes} writes");
    }
    assert!(forgotten_late > 1);
}

#[test]
fn an_interface_that_goes_is_told_until_it_is_there_again() {
    let disk = Disk::new();
    let (mut keeper, tap) = started(&disk);
    let generation = tap.open().generation().unwrap();
    keeper.tick();
    assert_eq!(keeper.warnings(), Vec::<String>::new());
    tap.unplug("lan");
    keeper.tick();
    assert_eq!(keeper.warnings(), ["port lan: there is no interface"]);
    drop(keeper);
    let mut keeper = Keeper::start(disk.store(), kernel(&tap)).unwrap();
    assert_eq!(keeper.warnings(), ["port lan: there is no interface"], "known from the start");
    tap.plug();
    keeper.tick();
    assert_eq!(keeper.warnings(), Vec::<String>::new());
    assert_eq!(keeper.held().unwrap().record.generation, generation + 1, "it took a new generation");
    keeper.tick();
    drop(keeper);
    assert_eq!(disk.copy().store().current().unwrap().unwrap().generation, generation + 1, "and the store knows");
}
