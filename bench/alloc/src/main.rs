// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times the sharing of a whole network, and one change of it.
#![allow(clippy::print_stdout, clippy::cast_precision_loss)] // It prints a table.

mod networks;

use std::time::Instant;

use networks::{Fabric, Mix, Random};
use penstock_alloc::allocate;

fn main() {
    let mut args = std::env::args().skip(1).filter_map(|arg| arg.parse::<u32>().ok());
    let (k, classes, paths) = (args.next().unwrap_or(4), args.next().unwrap_or(2000), args.next().unwrap_or(1));
    for mix in [Mix::Equal, Mix::Weights, Mix::All] {
        let network = Fabric::fat_tree(k).network(classes, paths, mix, &mut Random(1));
        let start = Instant::now();
        let allocation = allocate(&network);
        let used: u64 = allocation.used_bps.iter().sum();
        println!("{mix:?} {:?} {used}", start.elapsed());
    }
}
