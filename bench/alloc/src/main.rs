// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times the sharing of a whole network (the median of five), and single changes of it (median, nine of ten, longest of fifty). Time is that of the
//! processor, on one core: the machine may have other work. `target`: only the network that the project has a target for.
#![allow(clippy::print_stdout)] // It prints a table.

mod networks;
mod random;

use std::time::Duration;

use networks::{Fabric, Mix};
use nix::time::{ClockId, clock_gettime};
use penstock_alloc::allocate;
use penstock_alloc::allocator::{Allocator, Change};
use penstock_alloc::model::{Class, Network};
use penstock_policy::diagnostics::Problem;
use random::Random;

const CHANGES: u32 = 50;

const FAT_TREE: Fabric = Fabric { name: "fat tree k=8", words: "fat-tree:k=8" };

fn main() -> Result<(), Problem> {
    println!("| network | ports | classes | paths | classes have | full, ms | add | remove | reweight | demand |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    if std::env::args().nth(1).is_some_and(|argument| argument == "target") {
        return row(&FAT_TREE, 100_000, 1, Mix::Weights);
    }
    for classes in [1_000, 10_000, 100_000] {
        row(&FAT_TREE, classes, 1, Mix::Weights)?;
    }
    for mix in [Mix::Equal, Mix::All] {
        row(&FAT_TREE, 100_000, 1, mix)?;
    }
    for paths in [4, 16] {
        row(&FAT_TREE, 100_000, paths, Mix::Weights)?;
    }
    for fabric in [
        Fabric { name: "fat tree k=4", words: "fat-tree:k=4" },
        Fabric { name: "fat tree k=16", words: "fat-tree:k=16" },
        Fabric { name: "leaf-spine 10x5", words: "leaf-spine:leaves=10,hosts=10,spines=5" },
    ] {
        row(&fabric, 100_000, 1, Mix::Weights)?;
    }
    Ok(())
}

fn row(fabric: &Fabric, classes: u32, paths: u32, mix: Mix) -> Result<(), Problem> {
    let mut random = Random(1);
    let network = fabric.network(classes, paths, mix, 1)?;
    // Those that come, in turn.
    let mut others = fabric.network(CHANGES, paths, mix, 2)?.classes;
    let mut full: Vec<Duration> = (0..5).map(|_| time(|| drop(allocate(&network)))).collect();
    full.sort();
    let mut allocator = Allocator::new(network);
    let kinds = [add, remove, reweight, demand].map(|kind| {
        let mut times: Vec<Duration> = (0..CHANGES)
            .map(|_| {
                let change = kind(allocator.network(), &mut others, &mut random);
                time(|| allocator.change(change))
            })
            .collect();
        times.sort();
        format!("{} {} {}", ms(times[times.len() / 2]), ms(times[times.len() * 9 / 10]), ms(times[times.len() - 1]))
    });
    let network = allocator.network();
    println!(
        "| {} | {} | {classes} | {paths} | {} | {} | {} |",
        fabric.name,
        network.ports.len(),
        mix.what(),
        ms(full[2]),
        kinds.join(" | "),
    );
    Ok(())
}

fn add(network: &Network, others: &mut Vec<Class>, random: &mut Random) -> Change {
    let name = format!("added-{}", others.len());
    let class = others.pop().unwrap_or_else(|| network.classes[any(network, random) as usize].clone());
    Change::Add(Class { name, ..class })
}

fn any(network: &Network, random: &mut Random) -> u32 {
    random.below(u32::try_from(network.classes.len()).unwrap_or(0))
}

fn remove(network: &Network, _: &mut Vec<Class>, random: &mut Random) -> Change {
    Change::Remove(any(network, random))
}

fn reweight(network: &Network, _: &mut Vec<Class>, random: &mut Random) -> Change {
    let at = any(network, random);
    let mut class = network.classes[at as usize].clone();
    class.weight = 1 + class.weight % 5;
    Change::Replace(at, class)
}

fn demand(network: &Network, _: &mut Vec<Class>, random: &mut Random) -> Change {
    let at = any(network, random);
    let mut class = network.classes[at as usize].clone();
    class.demand_bps = Some(1_000_000 * u64::from(1 + random.below(400)));
    Change::Replace(at, class)
}

fn time(work: impl FnOnce()) -> Duration {
    let now = || clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from).unwrap_or_default();
    let start = now();
    work();
    now().saturating_sub(start)
}

fn ms(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}
