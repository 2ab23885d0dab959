// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests share.

#![allow(dead_code)] // each test uses a part of it

pub mod world;
