// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests of the controller share.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)] // each test file uses a part; a test may panic

pub mod etcd;
pub mod replica;
pub mod scrape;
pub mod world;
