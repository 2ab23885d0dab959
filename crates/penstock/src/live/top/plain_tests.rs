// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `top --once` prints of a policy that shares.

use super::*;
use crate::live::top::shared_tests::readings;

const NOW_NS: u64 = 1_700_000_300_000_000_000;

#[test]
fn links_that_share_are_trees_and_others_are_as_they_always_were() {
    let mut view = View::new(1_000_000_000);
    view.take(News::Readings(Box::new(readings())));
    view.status.dataplane = "xdp".into();
    let expected = "\
no policy, data plane xdp
offered 1.01 Gbit/s, passed 1.01 Gbit/s, dropped 0 bit/s (0.0 %)

rates in bit/s
class              offered   demand    share   passed  dropped     fair
down                1.00 G   2.18 G   1.00 G   1.00 G    0.0 %    0.998
  gold             400.0 M  800.0 M  400.0 M  400.0 M    0.0 %    1.000
    a              300.0 M  400.0 M  300.0 M  300.0 M    0.0 %        -
    b              100.0 M  400.0 M  100.0 M  100.0 M    0.0 %        -
  homes            400.0 M  900.0 M  400.0 M  400.0 M    0.0 %        -
    each user            -        -  40.00 M        -        -        -
  shops            200.0 M  480.0 M  200.0 M  200.0 M    0.0 %    0.990
    6 of 64 users        -        -        -        -        -        -

class       limit  offered   passed  dropped   marked
up/big          -   7.00 M   7.00 M    0.0 %    0.0 %
up/small   5.00 M   1.00 M   1.00 M    0.0 %    0.0 %
";
    let text = render(&view, NOW_NS);
    assert_eq!(text, expected);
    assert!(text.lines().all(|line| line.chars().count() <= 80));
}
