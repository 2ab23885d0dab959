// SPDX-License-Identifier: MIT OR Apache-2.0
//! Development tasks that are longer than five lines of a Makefile.

mod generate;
mod tidy;

use anyhow::{Result, bail};
use std::process::ExitCode;

fn run(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["gen"] => generate::write(),
        ["gen", "--check"] => generate::check(),
        ["tidy"] => tidy::check(),
        _ => bail!("usage: cargo xtask gen [--check] | tidy"),
    }
}

#[allow(clippy::print_stderr)] // the command's own output
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
