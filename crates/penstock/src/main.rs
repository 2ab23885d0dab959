// SPDX-License-Identifier: MIT OR Apache-2.0
//! The penstock command line.
fn main() {}
