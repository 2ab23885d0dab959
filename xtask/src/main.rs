// SPDX-License-Identifier: MIT OR Apache-2.0
//! Development tasks that are longer than five lines of a Makefile.

mod generate;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["gen"] => generate::write(),
        ["gen", "--check"] => generate::check(),
        _ => bail!("usage: cargo xtask gen [--check]"),
    }
}
