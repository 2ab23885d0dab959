// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is built is what is defined: beside a slow exact form, on random networks.

mod common;

use common::exact::{exact, whole};
use common::random::{ANY, Shape, networks};
use num_traits::Signed;
use penstock_alloc::allocate;
use penstock_alloc::model::Network;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn every_path_gets_what_the_definition_gives_it(network in networks(ANY)) {
        compare(&network)?;
    }

    #[test]
    fn so_it_does_where_all_weigh_the_same_and_ties_are_the_rule(
        network in networks(Shape { weight_max: 1, priority_max: 0, has_local: false, ..ANY })
    ) {
        compare(&network)?;
    }
}

fn compare(network: &Network) -> Result<(), TestCaseError> {
    let slow = exact(network);
    let fast = allocate(network);
    for (path, rate) in &slow.rate {
        let got = fast.paths[path.0][path.1].rate_bps;
        prop_assert!((rate - whole(got)).abs() <= whole(1), "path {path:?}: {got} bit/s, not {rate}");
    }
    Ok(())
}
