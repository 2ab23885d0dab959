// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests of the command line share.
#![allow(dead_code, clippy::unwrap_used)] // each test file uses a part; a test may panic

pub mod process;

use assert_cmd::Command;
use std::path::PathBuf;

/// A limit of 1 Mbit/s on everything to 10.0.0.0/8.
pub const POLICY: &str = "penstock: 1
name: test
ports: { lan: { rate: 1Gbit/s } }
links:
  - name: down
    port: lan
    rate: 1Gbit/s
    classes:
      - name: slow
        match: [ { dst: 10.0.0.0/8 } ]
        limit: { rate: 1Mbit/s }
";

/// The program.
pub fn penstock() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("penstock"))
}

/// A folder of its own for each test.
pub struct Lab(tempfile::TempDir);

impl Lab {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// A pcap of UDP packets to 10.0.0.2, one a millisecond, 1000 bytes of IP each: about 8 Mbit/s.
pub fn capture_of(packets: u32) -> Vec<u8> {
    let mut frame = vec![0_u8; 42];
    frame[12] = 0x08;
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&1000_u16.to_be_bytes());
    frame[22] = 64;
    frame[23] = 17;
    frame[26..34].copy_from_slice(&[172, 16, 0, 1, 10, 0, 0, 2]);
    frame[38..40].copy_from_slice(&980_u16.to_be_bytes());
    let mut bytes = Vec::new();
    for word in [0xa1b2_3c4d_u32, 4 << 16 | 2, 0, 0, 65_535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for index in 0..packets {
        for word in [1_700_000_000 + index / 1000, index % 1000 * 1_000_000, 42, 1014] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(&frame);
    }
    bytes
}
