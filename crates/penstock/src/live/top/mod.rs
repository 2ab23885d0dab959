// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock top`: what classes get, while it happens.
//!
//! `state` is what is known and what a person chose, `keys` and `draw` are functions of it, `feed` talks to the daemon, `screen`
//! puts them together. `plain` is the same without a terminal.

mod column;
mod draw;
mod feed;
mod history;
mod keys;
mod plain;
mod screen;
#[cfg(test)]
mod shared_tests;
mod state;
mod table;
mod theme;

use super::arguments::Top;
use super::client::ask;
use crate::failure::Failure;
use std::io::IsTerminal;

/// Runs the command.
pub fn run(arguments: &Top) -> Result<(), Failure> {
    let Top { interval_ns, once, client } = arguments;
    let is_screen = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let theme = theme::Theme::of_environment();
    let (interval_ns, once) = (*interval_ns, *once);
    match theme {
        _ if client.json => ask(&client.socket, |client| plain::json_lines(client, interval_ns, once)),
        Some(theme) if is_screen && !once => {
            ask(&client.socket, |connected| screen::run(connected, client.socket.clone(), interval_ns, theme))
        }
        _ => ask(&client.socket, |client| plain::once(client, interval_ns)),
    }
}
