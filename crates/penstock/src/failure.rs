// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a command ends when it does not end well.

use std::fmt::Display;
use std::process::ExitCode;

/// Why a command stopped. What a person reads is complete when this is made.
#[derive(Debug)]
pub enum Failure {
    /// What was given cannot be used: a policy, a capture, an option. Exit code 2.
    Input(String),
    /// What was given can be read, but must not be used: a plan whose hard limits do not fit. Exit code 1.
    Refused(String),
    /// Something else went wrong. Exit code 1.
    Failed(anyhow::Error),
    /// A person ended it with Ctrl-C. Exit code 130.
    Interrupted,
}

impl Failure {
    /// Bad input, named by the file or option that it came from.
    pub fn input(origin: impl Display, what: impl Display) -> Self {
        Self::Input(format!("error: {origin}: {what}"))
    }

    /// Says what happened on standard error and gives the exit code.
    #[allow(clippy::print_stderr)] // the command line's own output
    pub fn report(&self) -> ExitCode {
        match self {
            Self::Input(text) => {
                eprintln!("{}", text.trim_end());
                ExitCode::from(2)
            }
            Self::Refused(text) => {
                eprintln!("{}", text.trim_end());
                ExitCode::from(1)
            }
            Self::Failed(error) => {
                eprintln!("error: {error:#}");
                ExitCode::from(1)
            }
            Self::Interrupted => ExitCode::from(130),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}
