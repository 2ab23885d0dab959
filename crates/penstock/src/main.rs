// SPDX-License-Identifier: MIT OR Apache-2.0
//! The penstock command line: parses arguments, wires parts, nothing else.

mod arguments;
mod ca;
mod check;
mod failure;
mod lab;
mod live;
mod network;
mod output;
mod outputs;
mod plan;
mod plot;
mod replay;
mod table;
mod units;
mod watch;

use anyhow::Context;
use arguments::{Arguments, Command};
use clap::{CommandFactory, Parser};
use failure::Failure;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Check(arguments) => check::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Lab(arguments) => lab::run(&arguments),
        Command::Up(arguments) => live::up(&arguments),
        Command::Down(arguments) => live::down(&arguments),
        Command::Reload(arguments) => live::reload(&arguments),
        Command::Status(arguments) => live::status(&arguments),
        Command::Top(arguments) => live::top(&arguments),
        Command::Explain(arguments) => live::explain(&arguments),
        Command::Limits { command } => live::limits(&command),
        Command::Node(arguments) => live::node(&arguments),
        Command::Controller(arguments) => network::controller(&arguments),
        Command::Network { command } => network::run(&command),
        Command::Ca { command } => ca::run(&command),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Arguments::command(), "penstock", &mut std::io::stdout());
            Ok(())
        }
        Command::Man { folder } => write_manual(&folder).map_err(Failure::from),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn write_manual(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), folder))
        .with_context(|| format!("cannot write the manual pages to {}", folder.display()))
}
