// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shipped program on random users' frames, by `BPF_PROG_RUN`.

use crate::{Arguments, number, spread};
use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder};
use penstock_bench_shaper::{cpu, network::frame};
use penstock_dataplane::load;
use penstock_dataplane::xdp::{Generation, Port, time_program};
use penstock_policy::limits_file::LimitsText;
use penstock_policy::{Policy, compile};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Barrier;
use std::time::{Duration, Instant};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shares.bpf.o"));
const LOOPBACK: u32 = 1;
const NOBODY: u32 = u32::MAX;
const REPEATS: u32 = 300_000;
/// Before that is timed: longer than a burst lasts, and so many for each user.
const WARM: u32 = 300_000;
const WARM_OF_USER: u32 = 8;
/// To find out how long one takes.
const SLICE: u32 = 20_000;
/// What two CPUs do at once is one call of the kernel on each, as a call makes a pause of some ms. It is looked at in windows, when it has settled.
const SETTLE: Duration = Duration::from_millis(150);
const WINDOW: Duration = Duration::from_millis(10);
const WINDOWS: u32 = 60;
/// A fifth of what one CPU offers, or less: all ask for more than they get.
const LINK: &str = "2Gbit/s";
const LINK_BPS: f64 = 2e9;
const LEAVES: u32 = 8;

/// The program that gives frames to users, and who it goes on to.
struct Bench {
    object: Object,
    frame: Vec<u8>,
    generations: Vec<Generation>,
}

/// Which users' frames a CPU makes, and who judges them. Its words are those of `struct task`.
#[derive(Debug, Clone, Copy)]
struct Task {
    first: u32,
    users: u32,
    target: u32,
    gap_ns: u32,
    is_timed: u32,
}

fn generation(classes: &str) -> Result<Generation> {
    let text = format!(
        "penstock: 1\nname: bench\nports: {{ p: {{ rate: 100Gbit/s }} }}\nlinks:\n  - {{ name: l, port: p, rate: {LINK}, classes: [ {classes} ] }}\n"
    );
    let none = |name: &str| Ok(LimitsText { name: name.to_owned(), ..LimitsText::default() });
    let plan = compile::compile(&Policy::parse("bench", &text)?, none)?;
    let links = (0..u32::try_from(plan.links.len())?).collect();
    Ok(Generation::load(&load(&plan, 7, 0)?, &[Port { ifindex: LOOPBACK, links, ..Port::default() }])?)
}

/// Eight classes, told apart by the last byte of a destination, with these terms.
fn leaves(terms: impl Fn(u32) -> String) -> String {
    let leaf = |leaf: u32| format!("{{ name: l{leaf}, match: [ {{ dst: 10.0.0.{leaf} }} ]{} }}", terms(leaf));
    (0..LEAVES).map(leaf).collect::<Vec<_>>().join(", ")
}

/// A chain of classes, and the eight at its end.
fn chain(depth: u32) -> String {
    let mut classes = leaves(|_| ", weight: 1".to_owned());
    for level in 1..depth {
        classes = format!("{{ name: i{level}, weight: 1, children: [ {classes} ] }}");
    }
    classes
}

fn users(terms: &str) -> String {
    format!("{{ name: all, match: [ {{ }} ], {terms} }}")
}

impl Bench {
    fn new(policies: &[String]) -> Result<Self> {
        let object = ObjectBuilder::default().open_memory(OBJECT)?.load().context("the program of the bench")?;
        let generations = policies.iter().map(|classes| generation(classes)).collect::<Result<Vec<_>>>()?;
        let bench = Self { object, frame: frame(), generations };
        for (generation, target) in bench.generations.iter().zip(0_u32..) {
            let program = generation.program().as_raw_fd();
            bench.map("targets")?.update(&target.to_ne_bytes(), &program.to_ne_bytes(), MapFlags::ANY)?;
        }
        Ok(bench)
    }

    fn map(&self, name: &str) -> Result<libbpf_rs::Map<'_>> {
        self.object.maps().find(|map| map.name() == name).with_context(|| name.to_owned())
    }

    fn set(&self, cpu: u32, task: Task) -> Result<()> {
        let words = [task.first, task.users, task.target, task.gap_ns, task.is_timed];
        let value: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        Ok(self.map("tasks")?.update(&cpu.to_ne_bytes(), &value, MapFlags::ANY)?)
    }

    /// ns a frame on the CPU that calls.
    fn run(&self, times: u32) -> Result<f64> {
        let program = self.object.progs().find(|program| program.name() == "give_user").context("give_user")?;
        Ok(time_program(program.as_fd(), &self.frame, times)?.as_secs_f64() * 1e9)
    }

    /// The same on CPUs 0 and 1 at once, and what is read meanwhile, at the ends of windows.
    fn run_both<T>(&self, read: impl Fn() -> Result<T>) -> Result<([f64; 2], Vec<T>)> {
        let ready = Barrier::new(3);
        let on_cpu = |cpu: usize| {
            cpu::pin(cpu)?;
            cpu::hurry()?;
            // It is slower when the other one is at work, too.
            let once_ns = self.run(SLICE)?;
            ready.wait();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // tens of millions
            self.run(((WINDOW * WINDOWS + 2 * SETTLE).as_secs_f64() * 1e9 / once_ns) as u32)
        };
        std::thread::scope(|scope| {
            let both = [0, 1].map(|cpu| scope.spawn(move || on_cpu(cpu)));
            ready.wait();
            std::thread::sleep(SETTLE);
            let told = (0..=WINDOWS).map(|_| {
                std::thread::sleep(WINDOW);
                read()
            });
            let told: Result<Vec<T>> = told.collect();
            let [one, other] = both.map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a thread"))));
            Ok(([one?, other?], told?))
        })
    }

    /// How long CPUs paused so far, ns.
    fn away_ns(&self) -> Result<f64> {
        let of_cpu = self.map("times")?.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY)?.context("times")?;
        let away =
            |bytes: &Vec<u8>| bytes.get(16..24).and_then(|word| word.try_into().ok()).map_or(0, u64::from_ne_bytes);
        Ok(of_cpu.iter().map(away).map(number).sum())
    }

    /// What was offered to each class so far, and what passed of it, in bytes.
    fn counted(&self, target: u32) -> Result<Vec<[f64; 2]>> {
        let counters = self.generations[target as usize].class_counters()?;
        Ok(counters.iter().map(|of| [of.offered_bytes, of.offered_bytes - of.dropped_bytes].map(number)).collect())
    }
}

/// One CPU: what a packet costs, and how that compares with the limits of eight classes.
pub fn costs(all: &Arguments) -> Result<()> {
    let limits = leaves(|_| format!(", limit: {{ rate: {:.0}bit/s }}", LINK_BPS / f64::from(LEAVES)));
    let entries = |entries: u32| users(&format!("users: {{ key: dst, fair: tree, entries: {entries} }}"));
    let lines = [
        ("limits of 8 classes", limits, LEAVES),
        ("8 classes at depth 1", chain(1), LEAVES),
        ("8 classes at depth 4", chain(4), LEAVES),
        ("8 classes at depth 8", chain(8), LEAVES),
        ("8192 users, 16384 entries", entries(16_384), 8192),
        ("131072 users, 262144 entries", entries(262_144), 131_072),
        ("100000 users, 3 x 2048", users("users: { key: dst, fair: sketch }"), 100_000),
        ("20 users, 3 x 2048, limiters", users("users: { key: dst, fair: sketch }"), 20),
        ("1000 users, 3 x 2048, limiters", users("users: { key: dst, fair: sketch }"), 1000),
    ];
    let policies: Vec<String> = lines.iter().map(|line| line.1.clone()).collect();
    let bench = Bench::new(&policies)?;
    let mut empty = Vec::new();
    let mut times = vec![(Vec::new(), Vec::new()); lines.len()];
    for _ in 0..all.rounds {
        bench.set(0, Task { first: 0, users: LEAVES, target: NOBODY, gap_ns: 0, is_timed: 0 })?;
        empty.push(bench.run(REPEATS)?);
        for ((line, target), (times, passed)) in lines.iter().zip(0..).zip(&mut times) {
            bench.set(0, Task { first: 0, users: line.2, target, gap_ns: 0, is_timed: 0 })?;
            bench.run(WARM.max(WARM_OF_USER * line.2))?;
            let before = bench.counted(target)?;
            times.push(bench.run(REPEATS)?);
            let (offered, passing) = since(&before, &bench.counted(target)?);
            passed.push(100.0 * passing.iter().sum::<f64>() / offered.iter().sum::<f64>());
        }
    }
    let empty = spread(empty)[0];
    println!(
        "{:<30} {:>7} {:>7} {:>9} {:>7}   (BPF_PROG_RUN, saturated; ns a packet less {empty:.0} of an empty program, of {} rounds)",
        "shipped program, one CPU", "least", "median", "x limits", "passed", all.rounds
    );
    let base = spread(times[0].0.clone())[0] - empty;
    for (line, (times, passed)) in lines.iter().zip(times) {
        let [least, median, _] = spread(times).map(|time| time - empty);
        println!("{:<30} {least:>7.0} {median:>7.0} {:>9.2} {:>5.1} %", line.0, least / base, spread(passed)[1]);
    }
    Ok(())
}

/// What came to each class meanwhile, and what passed.
fn since(before: &[[f64; 2]], after: &[[f64; 2]]) -> (Vec<f64>, Vec<f64>) {
    let of = |what: usize| before.iter().zip(after).map(|(before, after)| after[what] - before[what]).collect();
    (of(0), of(1))
}

/// Two CPUs: what they cost each other, and what each gets.
pub fn two_cpus(all: &Arguments) -> Result<()> {
    let limits = leaves(|_| format!(", limit: {{ rate: {:.0}bit/s }}", LINK_BPS / f64::from(LEAVES)));
    let entries = "users: { key: dst, fair: tree, entries: 16384 }";
    let sketch = "users: { key: dst, fair: sketch }";
    // Each policy twice, for CPUs that do not meet.
    let pairs = [
        ("limits of 8 classes", limits, LEAVES),
        ("8 classes at depth 1", chain(1), LEAVES),
        ("8 classes at depth 8", chain(8), LEAVES),
        ("8192 users, 16384 entries", users(entries), 8192),
        ("100000 users, 3 x 2048", users(sketch), 100_000),
    ];
    let policies: Vec<String> = pairs.iter().flat_map(|pair| [pair.1.clone(), pair.1.clone()]).collect();
    let bench = Bench::new(&policies)?;
    println!(
        "{:<30} {:>10} {:>10} {:>10}   (ns a packet, giving it included; the least of {} rounds)",
        "two CPUs at once", "alone", "apart", "together", all.rounds
    );
    for (pair, target) in pairs.iter().zip((0..).step_by(2)) {
        let mut rounds: [Vec<f64>; 3] = Default::default();
        for _ in 0..=all.rounds {
            // Each CPU has half of the users, if there are so many.
            let half = pair.2 / 2;
            let task = |cpu: u32, target: u32| {
                bench.set(cpu, Task { first: cpu * half, users: half, target, gap_ns: 0, is_timed: 0 })
            };
            task(0, target)?;
            rounds[0].push(bench.run(REPEATS)?);
            task(1, target + 1)?;
            rounds[1].extend(bench.run_both(|| Ok(()))?.0);
            task(1, target)?;
            rounds[2].extend(bench.run_both(|| Ok(()))?.0);
        }
        let [alone, apart, together] = rounds.map(|round| spread(round)[0]);
        println!("{:<30} {alone:>10.0} {apart:>10.0} {together:>10.0}", pair.0);
    }
    drop(bench);
    fairness(all)
}

/// What two who ask for so much get of a rate, by their weights.
fn exact(rate: f64, asked: [f64; 2], weights: [f64; 2]) -> [f64; 2] {
    let fair = weights.map(|weight| rate * weight / (weights[0] + weights[1]));
    [0, 1].map(|one| asked[one].min(fair[one].max(rate - asked[1 - one])))
}

/// Two classes, each from a CPU of its own. What they pass, beside what is theirs of what they asked for. A CPU that others use, too, pauses: what that
/// makes is seen with two limits, which do not know of each other, and windows in which one paused do not count.
fn fairness(all: &Arguments) -> Result<()> {
    let two = |terms: [String; 2]| {
        let class =
            |(terms, leaf): (String, u32)| format!("{{ name: l{leaf}, match: [ {{ dst: 10.0.0.{leaf} }} ], {terms} }}");
        terms.into_iter().zip(0..).map(class).collect::<Vec<_>>().join(", ")
    };
    let limit = |part: f64| format!("limit: {{ rate: {:.0}bit/s }}", part * LINK_BPS);
    let weight = |weight: u32| format!("weight: {weight}");
    let policies = [
        ("limits 1:1", [1.0, 1.0], two([limit(0.5), limit(0.5)])),
        ("shares 1:1", [1.0, 1.0], two([weight(1), weight(1)])),
        ("shares 1:3", [1.0, 3.0], two([weight(1), weight(3)])),
        ("shares 3:1", [3.0, 1.0], two([weight(3), weight(1)])),
    ];
    let bench = Bench::new(&policies.each_ref().map(|policy| policy.2.clone()))?;
    println!(
        "{:<33} {:>8} {:>8} {:>8} {:>8} {:>10} {:>8}   (of what is the first one's, what it passes; in windows of 10 ms without a pause)",
        "fairness over two CPUs", "least", "median", "mean", "most", "both", "windows"
    );
    // Of 500-byte frames the link takes 500,000 a second.
    for (name, gaps_ns) in
        [("one CPU, 2 x the link", [1000, 0]), ("two, 2 x the link", [2000, 2000]), ("two, full speed", [0, 0])]
    {
        let is_one = gaps_ns[0] != gaps_ns[1];
        let mut rounds = vec![(Vec::new(), Vec::new()); policies.len()];
        for _ in 0..all.rounds {
            for (((_, weights, _), target), (parts, used)) in policies.iter().zip(0..).zip(&mut rounds) {
                for (cpu, gap_ns) in (0..).zip(gaps_ns) {
                    let target = if is_one && cpu > 0 { NOBODY } else { target };
                    bench.set(cpu, Task { first: cpu, users: 1 + u32::from(is_one), target, gap_ns, is_timed: 1 })?;
                }
                let (_, told) = bench.run_both(|| Ok((Instant::now(), bench.counted(target)?, bench.away_ns()?)))?;
                // A pause is told of when it is over, and its end is seen for a while.
                for window in
                    told.windows(4).filter(|window| window[3].2 == window[0].2 && window[3].1[1] != window[2].1[1])
                {
                    let seconds = (window[2].0 - window[1].0).as_secs_f64();
                    let (offered, passed) = since(&window[1].1, &window[2].1);
                    if offered[0] == 0.0 || offered[1] == 0.0 {
                        continue; // a pause as long as the window is told of after it
                    }
                    let due = exact(LINK_BPS / 8.0 * seconds, [offered[0], offered[1]], *weights);
                    parts.push(100.0 * passed[0] / due[0]);
                    used.push(100.0 * (passed[0] + passed[1]) / (due[0] + due[1]));
                }
            }
        }
        for ((label, ..), (parts, used)) in policies.iter().zip(rounds) {
            let (label, count, mean) =
                (format!("{label}, {name}"), parts.len(), parts.iter().sum::<f64>() / number(parts.len() as u64));
            let [least, median, most] = spread(parts);
            println!(
                "{label:<33} {least:>7.2}% {median:>7.2}% {mean:>7.2}% {most:>7.2}% {:>9.2}% {count:>8}",
                spread(used)[1]
            );
        }
    }
    Ok(())
}
