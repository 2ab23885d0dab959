// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output, which may be a pipe that nobody reads any more.

use crate::failure::Failure;
use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints a text; one that nobody wants any more is no failure.
///
/// # Errors
/// Standard output cannot be written to.
pub fn print(text: Arguments<'_>) -> Result<(), Failure> {
    match std::io::stdout().write_fmt(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Failed(anyhow::Error::new(error).context("cannot print")))
        }
        _ => Ok(()),
    }
}

/// Says on standard error what a person should know about a result.
#[allow(clippy::print_stderr)] // the command line's own output
pub fn warn(what: &str) {
    eprintln!("warning: {what}");
}

/// `print!` for commands: the function that it stands in returns what fails.
macro_rules! out {
    ($($text:tt)*) => { $crate::output::print(format_args!($($text)*))? };
}

/// `println!` for commands.
macro_rules! outln {
    ($($text:tt)*) => { $crate::output::print(format_args!("{}\n", format_args!($($text)*)))? };
}

pub(crate) use {out, outln};
