// SPDX-License-Identifier: MIT OR Apache-2.0
//! One leader at a time, whatever happens to leaders and to etcd.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic; a candidate tells its parent

mod support;

use penstock_controller::store::{EtcdOptions, Leadership, Replica, Store, StoreError};
use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::etcd::{Etcd, signal_to};

/// Of a leader: etcd grants no less.
const TTL: Duration = Duration::from_secs(2);
/// etcd ends leases twice a second, and the next leader has to ask for its own.
const SECOND: Duration = Duration::from_millis(3500);
/// Long enough for anything that happens at all.
const LONG: Duration = Duration::from_secs(30);
/// Tells a process of this test to be a candidate, and where etcd is.
const CANDIDATE: &str = "PENSTOCK_TEST_CANDIDATE";

fn replica(name: &str) -> Replica {
    Replica { name: name.to_owned(), address: format!("{name}.example:7700") }
}

fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Leads, and says every 5 ms whether it does: its term, the time before it looked, what it saw, the time after.
#[tokio::main]
async fn be_candidate(name: &str, endpoints: Vec<String>) {
    let store = Store::etcd(&EtcdOptions { endpoints, ..EtcdOptions::default() }).await.unwrap();
    loop {
        let leadership = store.campaign(&replica(name)).await.unwrap();
        // It goes on for a while after it has lost, to be seen.
        let mut after_loss = 0;
        while after_loss < 100 {
            let (before, holds, after) = (now_ns(), leadership.holds(), now_ns());
            println!("{name} {} {before} {holds} {after}", leadership.term);
            after_loss += u32::from(!holds);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// What a candidate said.
#[derive(Debug, Clone)]
struct Said {
    name: String,
    term: u64,
    before_ns: i64,
    holds: bool,
    after_ns: i64,
}

impl Said {
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<_> = line.split(' ').collect();
        let [name, term, before, holds, after] = words.as_slice() else { return None };
        let (before_ns, after_ns) = (before.parse().ok()?, after.parse().ok()?);
        Some(Self {
            name: (*name).to_owned(),
            term: term.parse().ok()?,
            before_ns,
            holds: holds.parse().ok()?,
            after_ns,
        })
    }
}

type Log = Arc<Mutex<Vec<Said>>>;

/// A candidate that is a process, so that it can be hurt.
struct Candidate {
    child: Child,
    name: &'static str,
    log: Log,
}

impl Candidate {
    fn start(name: &'static str, etcd: &Etcd, log: &Log, test: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(CANDIDATE, format!("{name} {}", etcd.addresses().join(" ")))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let all = log.clone();
        std::thread::spawn(move || {
            for said in lines.map_while(Result::ok).filter_map(|line| Said::parse(&line)) {
                all.lock().unwrap().push(said);
            }
        });
        Self { child, name, log: log.clone() }
    }

    /// Waits until it leads, and returns its term.
    async fn leads(&self, since_ns: i64) -> u64 {
        let begin = Instant::now();
        while begin.elapsed() < LONG {
            let mine = |said: &&Said| said.name == self.name && said.holds && said.before_ns > since_ns;
            if let Some(said) = self.log.lock().unwrap().iter().find(mine) {
                return said.term;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{} does not lead", self.name);
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A candidate, if this process was started as one.
fn is_candidate() -> bool {
    let Ok(told) = std::env::var(CANDIDATE) else { return false };
    let mut words = told.split(' ').map(str::to_owned);
    be_candidate(&words.next().unwrap(), words.collect());
    true
}

/// Whoever held a term did so after everybody who held an earlier one.
fn never_two(said: &[Said]) {
    let mut terms: Vec<_> = said.iter().map(|said| said.term).collect();
    terms.sort_unstable();
    terms.dedup();
    let held = |term: u64| said.iter().filter(move |said| said.term == term && said.holds);
    for pair in terms.windows(2) {
        // It held after `before_ns`, and before `after_ns`.
        let last = held(pair[0]).map(|said| said.before_ns).max();
        let first = held(pair[1]).map(|said| said.after_ns).min();
        assert!(last < first || first.is_none(), "both held: {pair:?} {last:?} {first:?}");
    }
}

/// A leader that is killed, and one that is paused and goes on, which must not believe that nothing happened.
#[test]
fn a_leader_that_dies_or_sleeps_is_replaced() {
    const TEST: &str = "a_leader_that_dies_or_sleeps_is_replaced";
    if is_candidate() {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let etcd = Etcd::one().await;
        let store = etcd.store().await;
        let log = Log::default();
        let first = Candidate::start("first", &etcd, &log, TEST);
        let mut terms = vec![first.leads(0).await];
        let second = Candidate::start("second", &etcd, &log, TEST);
        tokio::time::sleep(TTL).await;

        let hurt_ns = now_ns();
        drop(first);
        terms.push(second.leads(hurt_ns).await);
        println!("killed: replaced after {} ms", (now_ns() - hurt_ns) / 1_000_000);
        assert!(now_ns() - hurt_ns < i64::try_from(SECOND.as_nanos()).unwrap());
        assert_eq!(store.leader().await.unwrap(), Some(replica("second")));

        let third = Candidate::start("third", &etcd, &log, TEST);
        tokio::time::sleep(TTL).await;
        let hurt_ns = now_ns();
        signal_to(&second.child, Signal::STOP);
        terms.push(third.leads(hurt_ns).await);
        println!("paused: replaced after {} ms", (now_ns() - hurt_ns) / 1_000_000);
        assert!(now_ns() - hurt_ns < i64::try_from(SECOND.as_nanos()).unwrap());
        let resumed_ns = now_ns();
        signal_to(&second.child, Signal::CONT);
        // It says what it believes.
        let said = || log.lock().unwrap().iter().any(|said| said.name == "second" && said.before_ns > resumed_ns);
        while !said() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(TTL).await;
        assert!(terms.is_sorted() && terms[0] < terms[1] && terms[1] < terms[2], "{terms:?}");
        let said = log.lock().unwrap().clone();
        never_two(&said);
        assert!(!said.iter().any(|said| said.name == "second" && said.before_ns > resumed_ns && said.holds));
    });
}

/// The check itself must be able to fail.
#[test]
#[should_panic(expected = "both held")]
fn two_leaders_would_be_seen() {
    let said = |name: &str, term, at_ns| Said {
        name: name.to_owned(),
        term,
        before_ns: at_ns,
        holds: true,
        after_ns: at_ns + 1,
    };
    never_two(&[said("a", 1, 10), said("b", 2, 20), said("a", 1, 30)]);
}

async fn elected(store: &Store, name: &str) -> Leadership {
    tokio::time::timeout(LONG, store.campaign(&replica(name))).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_resigns_is_replaced_at_once() {
    let etcd = Etcd::one().await;
    let (one, other) = (etcd.store().await, etcd.store().await);
    assert_eq!(one.leader().await.unwrap(), None);
    let mut terms = Vec::new();
    for round in 0..4 {
        let leadership = elected(&one, "one").await;
        assert_eq!(other.leader().await.unwrap(), Some(replica("one")));
        terms.push(leadership.term);
        let (next, begin) = tokio::join!(elected(&other, "other"), async {
            tokio::time::sleep(TTL / 4).await;
            // It leads longer than one lease, and whoever waits does not.
            assert!(leadership.holds() && leadership.deadline() > Instant::now());
            let begin = Instant::now();
            if round % 2 == 0 {
                leadership.resign().await
            } else {
                drop(leadership)
            }
            begin
        });
        assert!(begin.elapsed() < TTL, "it waited for the lease to be over");
        assert!(next.holds());
        terms.push(next.term);
        next.resign().await;
    }
    assert!(terms.windows(2).all(|pair| pair[0] < pair[1]), "{terms:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_leads_on() {
    let etcd = Etcd::one().await;
    let (one, other) = (etcd.store().await, etcd.store().await);
    let leadership = elected(&one, "one").await;
    let lost = tokio::time::timeout(3 * TTL, leadership.lost()).await;
    assert!(lost.is_err() && leadership.holds());
    assert!(leadership.deadline() <= Instant::now() + TTL);
    let in_vain = tokio::time::timeout(TTL, other.campaign(&replica("other"))).await;
    assert!(in_vain.is_err());

    // Somebody takes it away by hand.
    etcd.client(0).await.delete("/penstock/default/leader", None).await.unwrap();
    tokio::time::timeout(TTL, leadership.lost()).await.unwrap();
    assert!(!leadership.holds());
    one.set_lease_ns(&leadership, 7).await.unwrap_err();
    assert_eq!(one.lease_ns().await.unwrap(), None);
    let next = elected(&other, "other").await;
    assert!(next.term > leadership.term);
    other.set_lease_ns(&next, 5).await.unwrap();
    let deposed = one.set_lease_ns(&leadership, 7).await;
    assert!(matches!(deposed, Err(StoreError::Deposed { .. })), "{deposed:?}");
    assert_eq!(one.lease_ns().await.unwrap(), Some(5));
    // To let go of what is lost does not hurt who has it.
    leadership.resign().await;
    assert!(next.holds());
    assert_eq!(one.leader().await.unwrap(), Some(replica("other")));
}

/// etcd gone, or silent: its leader leads no longer, and is elected anew when it is back.
#[tokio::test(flavor = "multi_thread")]
async fn without_etcd_nobody_leads() {
    let mut etcd = Etcd::one().await;
    let store = etcd.store().await;
    let mut term = 0;
    for paused in [false, true] {
        let leadership = elected(&store, "one").await;
        assert!(leadership.term > term);
        term = leadership.term;
        let begin = Instant::now();
        if paused {
            etcd.pause(0)
        } else {
            etcd.kill(0)
        };
        tokio::time::timeout(LONG, leadership.lost()).await.unwrap();
        let after = begin.elapsed();
        println!("lost {} ms after etcd was hurt", after.as_millis());
        assert!(after < TTL && !leadership.holds(), "{after:?}");
        assert!(leadership.deadline() <= Instant::now());
        if paused {
            etcd.resume(0);
        } else {
            etcd.start(0);
        }
        etcd.answers(0).await;
        assert!(!leadership.holds());
    }
    let last = elected(&store, "one").await;
    assert!(last.term > term);
}

/// Members come and go; the leader stays if another member can be asked in time, and otherwise there is a new one. Never two.
#[tokio::test(flavor = "multi_thread")]
async fn members_of_etcd_come_and_go() {
    let mut etcd = Etcd::of(3).await;
    let log = Log::default();
    let mut candidates = Vec::new();
    for name in ["one", "other"] {
        let (store, log) = (etcd.store().await, log.clone());
        candidates.push(tokio::spawn(async move {
            loop {
                let leadership = elected(&store, name).await;
                loop {
                    let (before_ns, holds, after_ns) = (now_ns(), leadership.holds(), now_ns());
                    log.lock().unwrap().push(Said {
                        name: name.to_owned(),
                        term: leadership.term,
                        before_ns,
                        holds,
                        after_ns,
                    });
                    if !holds {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }));
    }
    let leads = async |since_ns: i64| {
        let begin = Instant::now();
        while !log.lock().unwrap().iter().any(|said| said.holds && said.before_ns > since_ns) {
            assert!(begin.elapsed() < LONG, "nobody leads");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    for hurt in 0..6 {
        leads(now_ns()).await;
        let leader = etcd.leader().await;
        let member = if hurt % 2 == 0 { (leader + 1) % 3 } else { leader };
        let hurt_ns = now_ns();
        if hurt < 2 {
            etcd.kill(member)
        } else {
            etcd.pause(member)
        };
        tokio::time::sleep(TTL + TTL / 2).await;
        leads(now_ns()).await;
        let said = log.lock().unwrap().clone();
        let held: Vec<_> = said.iter().filter(|said| said.holds && said.after_ns > hurt_ns).collect();
        let gap = held.windows(2).map(|pair| pair[1].before_ns - pair[0].after_ns).max().unwrap();
        println!("hurt {hurt}, etcd's leader: {}: nobody led for {} ms at most", member == leader, gap / 1_000_000);
        if hurt < 2 {
            etcd.start(member)
        } else {
            etcd.resume(member)
        };
        etcd.answers(member).await;
    }
    candidates.iter().for_each(tokio::task::JoinHandle::abort);
    never_two(&log.lock().unwrap());
}
