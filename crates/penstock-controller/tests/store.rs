// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a store keeps, in a real etcd and in a folder.

#![allow(clippy::unwrap_used)] // a test may panic

mod support;

use penstock_controller::store::{AuditEntry, EtcdOptions, EtcdTls, Replica, Store, StoreError, Stored};
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::etcd::Etcd;

/// Long enough for anything that happens at all.
const LONG: Duration = Duration::from_secs(20);

fn entry(what: &str) -> AuditEntry {
    let time_unix_ns = 1_700_000_000_000_000_000;
    let [who, from, refused] = ["ada", "10.0.0.1:9", ""].map(str::to_owned);
    AuditEntry { time_unix_ns, who, from, what: what.to_owned(), refused }
}

/// Nothing can be taken away from it by compressing.
fn random_text(bytes: usize, seed: u64) -> Vec<u8> {
    let mut text = vec![0; bytes];
    Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut text);
    text
}

async fn what(store: &Store) -> Vec<String> {
    store.audit(usize::MAX).await.unwrap().into_iter().map(|entry| entry.what).collect()
}

/// An empty store, then networks in it.
async fn keeps_what_was_put(store: &Store) {
    assert_eq!(store.network().await.unwrap(), None);
    assert_eq!(store.revision().await.unwrap(), 0);
    assert_eq!(what(store).await, [""; 0]);
    let mut watch = store.watch();
    assert_eq!(*watch.borrow_and_update(), 0);

    let large = random_text(8 << 20, 1);
    let texts: [(&str, &[u8]); 4] =
        [("first", b"a: 1\n"), ("large", &large), ("empty", b""), ("last", &[b'x'; 3 << 20])];
    for (before, (name, text)) in (0..).zip(texts) {
        let revision = store.put_network(Some(before), name, text, entry(name)).await.unwrap();
        assert_eq!(revision, before + 1);
        let stored = store.network().await.unwrap().unwrap();
        assert!(stored == Stored { revision, name: name.to_owned(), text: text.to_vec() }, "{name}");
        assert_eq!(store.revision().await.unwrap(), revision);
        tokio::time::timeout(LONG, watch.wait_for(|&known| known == revision)).await.unwrap().unwrap();
    }
    assert_eq!(what(store).await, ["last", "empty", "large", "first"]);
}

/// After four puts.
async fn refuses_another_than_expected(store: &Store) {
    for expected in [0, 3, 5] {
        let refused = store.put_network(Some(expected), "no", b"no", entry("no")).await;
        assert!(matches!(refused, Err(StoreError::Conflict { revision: 4 })), "{refused:?}");
    }
    assert_eq!(store.network().await.unwrap().unwrap().name, "last");
    assert_eq!(what(store).await.len(), 4);

    let refusal = AuditEntry { refused: String::from("a node may not write"), ..entry("tried") };
    store.add_audit(refusal.clone()).await.unwrap();
    assert_eq!(store.audit(1).await.unwrap(), [refusal]);
    assert_eq!(store.audit(0).await.unwrap(), []);
    // A text without end is cut, where a character ends.
    store.add_audit(entry(&"€".repeat(5000))).await.unwrap();
    assert_eq!(store.audit(1).await.unwrap()[0].what, format!("{}..", "€".repeat(333)));
}

/// Eight at a time: with `expected` one of them wins, without it all come one after the other. Nothing is mixed.
async fn puts_at_the_same_time(stores: &[Arc<Store>]) {
    let before = stores[0].revision().await.unwrap();
    for expected in [Some(before), None] {
        let put = |index: usize| {
            let store = stores[index % stores.len()].clone();
            tokio::spawn(async move {
                let text = random_text(2 << 20, index as u64);
                store.put_network(expected, &index.to_string(), &text, entry(&index.to_string())).await
            })
        };
        let puts: Vec<_> = (0..8).map(put).collect();
        let mut revisions = BTreeSet::new();
        for put in puts {
            match put.await.unwrap() {
                Ok(revision) => assert!(revisions.insert(revision)),
                Err(StoreError::Conflict { revision }) => assert_eq!(Some(revision), expected.map(|before| before + 1)),
                Err(error) => panic!("{error}"),
            }
        }
        let first = stores[0].revision().await.unwrap() - revisions.len() as u64 + 1;
        assert_eq!(revisions.len(), if expected.is_some() { 1 } else { 8 });
        assert!(revisions.iter().copied().eq(first..first + revisions.len() as u64));
        let stored = stores[0].network().await.unwrap().unwrap();
        assert_eq!(Some(&stored.revision), revisions.last());
        assert!(stored.text == random_text(2 << 20, stored.name.parse().unwrap()), "of another put");
        // The newest entry is of the network that is there.
        assert_eq!(stores[0].audit(1).await.unwrap()[0].what, stored.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_keeps_networks() {
    let etcd = Etcd::one().await;
    let store = etcd.store().await;
    assert_eq!(store.describe(), format!("etcd at {}", etcd.addresses()[0]));
    keeps_what_was_put(&store).await;
    refuses_another_than_expected(&store).await;
    puts_at_the_same_time(&[Arc::new(etcd.store().await), Arc::new(store)]).await;

    // One network's chunks, and nobody is writing.
    let mut client = etcd.client(0).await;
    let all = etcd_client::GetOptions::new().with_prefix().with_keys_only();
    let keys = client.get("/penstock/default/", Some(all)).await.unwrap();
    let keys: Vec<_> = keys.kvs().iter().map(|kv| kv.key_str().unwrap().split('/').nth(3).unwrap()).collect();
    let of = |name: &str| keys.iter().filter(|&&key| key == name).count();
    // 2 MiB that cannot be compressed, and the header of the format.
    assert_eq!((of("network"), of("chunk"), of("upload"), of("leader")), (1, 3, 0, 0), "{keys:?}");
}

#[tokio::test]
async fn a_folder_keeps_networks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/controller");
    {
        let store = Store::embedded(&path).await.unwrap();
        assert_eq!(store.describe(), format!("embedded in {}", path.display()));
        keeps_what_was_put(&store).await;
        refuses_another_than_expected(&store).await;
        let second = Store::embedded(&path).await;
        assert!(matches!(second, Err(StoreError::Busy(_))), "{second:?}");
    }
    let store = Arc::new(Store::embedded(&path).await.unwrap());
    assert_eq!((*store.watch().borrow(), store.revision().await.unwrap()), (4, 4));
    assert_eq!(store.network().await.unwrap().unwrap().name, "last");
    puts_at_the_same_time(&[store]).await;
}

#[tokio::test]
async fn a_folder_has_one_leader() {
    let folder = tempfile::tempdir().unwrap();
    let replica = |name: &str| Replica { name: name.to_owned(), address: String::from("127.0.0.1:1") };
    let mut terms = Vec::new();
    for _ in 0..2 {
        let store = Store::embedded(folder.path()).await.unwrap();
        assert_eq!(store.leader().await.unwrap(), None);
        let first = store.campaign(&replica("a")).await.unwrap();
        assert_eq!(store.leader().await.unwrap(), Some(replica("a")));
        assert!(first.holds() && first.deadline() > Instant::now() + Duration::from_secs(86_400));
        let second = store.campaign(&replica("b")).await.unwrap();
        assert!(!first.holds() && second.holds());
        first.lost().await;
        let lease_ns = terms.last().map(|term| term * 1_000);
        assert_eq!(store.lease_ns().await.unwrap(), lease_ns, "of the leader before");
        let deposed = store.set_lease_ns(&first, 7).await;
        assert!(matches!(deposed, Err(StoreError::Deposed { .. })), "{deposed:?}");
        assert_eq!(store.lease_ns().await.unwrap(), lease_ns);
        store.set_lease_ns(&second, second.term * 1_000).await.unwrap();
        terms.extend([first.term, second.term]);
        second.resign().await;
        assert_eq!(store.leader().await.unwrap(), None);
    }
    assert_eq!(terms, [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_damaged_folder_is_no_store() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("controller.redb"), random_text(100_000, 3)).unwrap();
    let opened = Store::embedded(folder.path()).await;
    assert!(matches!(opened, Err(StoreError::Damaged { .. })), "{opened:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_has_an_end() {
    let etcd = Etcd::one().await;
    let store = etcd.store().await;
    let mut client = etcd.client(0).await;
    for hundred in 0..101 {
        let put = |index: i32| {
            let value = serde_json::to_vec(&entry(&(100 * hundred + index).to_string())).unwrap();
            etcd_client::TxnOp::put(format!("/penstock/default/audit/{hundred:03}-{index:03}"), value, None)
        };
        // With the newest there are a hundred too many: those of the first step. Within a step there is no order.
        let count = if hundred == 100 { 99 } else { 100 };
        client.txn(etcd_client::Txn::new().and_then((0..count).map(put).collect::<Vec<_>>())).await.unwrap();
    }
    store.add_audit(entry("newest")).await.unwrap();
    let entries = what(&store).await;
    assert_eq!((entries.len(), entries[0].as_str()), (10_000, "newest"));
    assert!(entries[1..].iter().all(|what| what.parse::<u32>().unwrap() >= 100));
}

/// What is seen of puts by others, and of a store that went away in between.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_outlives_etcd() {
    let mut etcd = Etcd::one().await;
    let (here, there) = (etcd.store().await, etcd.store().await);
    let mut watch = here.watch();
    for revision in 1..=3 {
        there.put_network(None, "n", b"n", entry("put")).await.unwrap();
        tokio::time::timeout(LONG, watch.wait_for(|&known| known == revision)).await.unwrap().unwrap();
        etcd.kill(0);
        let begin = Instant::now();
        let gone = here.revision().await;
        assert!(matches!(gone, Err(StoreError::Unreachable { .. })), "{gone:?}");
        let gone = there.put_network(None, "n", b"n", entry("lost")).await;
        assert!(matches!(gone, Err(StoreError::Unreachable { .. })), "{gone:?}");
        assert!(begin.elapsed() < LONG, "it hung for {:?}", begin.elapsed());
        etcd.start(0);
        etcd.answers(0).await;
    }
    assert_eq!(here.network().await.unwrap().unwrap().revision, 3);
}

/// A member that neither answers nor hangs up.
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_etcd_does_not_hang_its_callers() {
    let etcd = Etcd::one().await;
    let store = etcd.store().await;
    store.put_network(None, "n", b"n", entry("put")).await.unwrap();
    etcd.pause(0);
    let calls = async {
        assert!(matches!(store.revision().await, Err(StoreError::Unreachable { .. })));
        assert!(matches!(store.network().await, Err(StoreError::Unreachable { .. })));
        assert!(matches!(store.leader().await, Err(StoreError::Unreachable { .. })));
        assert!(matches!(store.audit(1).await, Err(StoreError::Unreachable { .. })));
        let put = store.put_network(None, "n", b"n", entry("put")).await;
        assert!(matches!(put, Err(StoreError::Unreachable { .. })));
    };
    tokio::time::timeout(LONG, calls).await.unwrap();
    etcd.resume(0);
    let mut watch = store.watch();
    let revision = store.put_network(None, "n", b"n", entry("put")).await.unwrap();
    tokio::time::timeout(LONG, watch.wait_for(|&known| known == revision)).await.unwrap().unwrap();
}

/// Three members: any one may be killed, or hang, also the one that leads.
#[tokio::test(flavor = "multi_thread")]
async fn two_of_three_members_are_enough() {
    let mut etcd = Etcd::of(3).await;
    let store = etcd.store().await;
    let mut expected = 0;
    for hurt in [0, 1, 2, 3] {
        let leader = etcd.leader().await;
        let member = if hurt % 2 == 0 { leader } else { (leader + 1) % 3 };
        if hurt < 2 {
            etcd.kill(member)
        } else {
            etcd.pause(member)
        };
        // Until the others have found a leader of their own.
        let begin = Instant::now();
        while let Err(error) = store.revision().await {
            assert!(begin.elapsed() < LONG, "{error}");
        }
        let text = random_text(2 << 20, hurt);
        expected = store.put_network(Some(expected), "n", &text, entry("put")).await.unwrap();
        assert!(store.network().await.unwrap().unwrap().text == text);
        if hurt < 2 {
            etcd.start(member)
        } else {
            etcd.resume(member)
        };
        etcd.answers(member).await;
    }
    assert_eq!(expected, 4);
}

#[tokio::test]
async fn options_that_make_no_sense() {
    let with = |endpoint: &str, cluster: &str, ttl_ms: u64| EtcdOptions {
        endpoints: vec![endpoint.to_owned()],
        cluster: cluster.to_owned(),
        ttl: Duration::from_millis(ttl_ms),
        tls: None,
    };
    for (options, says) in [
        (with("127.0.0.1", "c", 2000), "etcd at 127.0.0.1: this is no address; one is http://127.0.0.1:2379"),
        (with("https://127.0.0.1:2379", "c", 2000), "TLS needs files"),
        (with("127.0.0.1:2379", "a/b", 2000), "a cluster's name has letters"),
        (with("127.0.0.1:2379", "c", 1000), "whole seconds, 2 or more"),
        (EtcdOptions { endpoints: Vec::new(), ..EtcdOptions::default() }, "no address of etcd"),
    ] {
        let error = Store::etcd(&options).await.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// A CA, and a certificate by it for an etcd on loopback and its clients.
fn certificates(folder: &Path) -> EtcdTls {
    let (ca_key, key) = (rcgen::KeyPair::generate().unwrap(), rcgen::KeyPair::generate().unwrap());
    let mut ca = rcgen::CertificateParams::new([]).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let write = |name: &str, text: String| {
        std::fs::write(folder.join(name), text).unwrap();
        folder.join(name)
    };
    let authority = write("ca.crt", ca.self_signed(&ca_key).unwrap().pem());
    let issuer = rcgen::Issuer::new(ca, ca_key);
    let params = rcgen::CertificateParams::new([String::from("127.0.0.1")]).unwrap();
    let certificate = write("e.crt", params.signed_by(&key, &issuer).unwrap().pem());
    EtcdTls { ca: authority, identity: Some((certificate, write("e.key", key.serialize_pem()))) }
}

/// An etcd that wants certificates has those who bring one, and says so to others.
#[tokio::test(flavor = "multi_thread")]
async fn etcd_by_tls() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [tls, foreign] = folders.each_ref().map(|folder| certificates(folder.path()));
    let (certificate, key) = tls.identity.clone().unwrap();
    let [ca, certificate, key] = [&tls.ca, &certificate, &key].map(|path| path.to_str().unwrap());
    let files = ["--client-cert-auth", "--trusted-ca-file", ca, "--cert-file", certificate, "--key-file", key];
    let etcd = Etcd::with(1, "https", &files).await;
    let with = async |tls: EtcdTls| Store::etcd(&EtcdOptions { tls: Some(tls), ..etcd.options() }).await.unwrap();

    let store = with(tls.clone()).await;
    let begin = Instant::now();
    while let Err(error) = store.revision().await {
        assert!(begin.elapsed() < 3 * LONG, "{error}");
    }
    assert_eq!(store.put_network(Some(0), "n", b"n", entry("put")).await.unwrap(), 1);
    let leadership = store.campaign(&Replica { name: String::from("a"), address: String::new() }).await.unwrap();
    assert!(leadership.holds());

    let nobody = with(EtcdTls { identity: None, ..tls.clone() }).await;
    assert!(matches!(nobody.revision().await, Err(StoreError::Unreachable { .. })));
    let error = with(foreign).await.revision().await.unwrap_err().to_string();
    assert!(error.contains("invalid peer certificate"), "{error}");
    let missing = EtcdTls { ca: folders[0].path().join("none"), identity: None };
    let error = Store::etcd(&EtcdOptions { tls: Some(missing), ..etcd.options() }).await.unwrap_err();
    assert!(matches!(error, StoreError::Tls(_)), "{error}");
}
