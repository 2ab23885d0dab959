// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asking the daemon.

use crate::failure::Failure;
use crate::output::outln;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget};
use penstock_api::NodeClient;
use std::future::Future;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;
use tonic::{Code, Status};

/// Connects, asks, and says why when the answer is no. What is asked for goes on in the daemon when a person ends this.
pub fn ask<T, F: Future<Output = Result<T, Failure>>>(
    socket: &Path,
    question: impl FnOnce(NodeClient) -> F,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(async {
        let client = penstock_api::connect(socket).await.map_err(|error| anyhow::anyhow!("{error}"))?;
        question(client).await
    })
}

/// The daemon's no, as a failure: what was asked for is wrong, or it could not be done.
pub fn refused(status: Status) -> Failure {
    match status.code() {
        Code::InvalidArgument | Code::NotFound | Code::AlreadyExists => {
            Failure::Input(format!("error: {}", status.message()))
        }
        Code::Unavailable | Code::Unknown if status.message().contains("transport error") => Failure::Failed(
            anyhow::anyhow!("the daemon ended before it answered; `penstock status` tells what is in force"),
        ),
        _ => Failure::Failed(anyhow::anyhow!("{}", status.message())),
    }
}

/// What is wrong with a file, in the daemon's words.
pub fn diagnostics(text: String) -> Failure {
    Failure::Input(text)
}

/// An answer without content: a newer or older daemon.
pub fn empty() -> Failure {
    Failure::Failed(anyhow::anyhow!("the daemon gave an answer that this version does not know"))
}

/// Something that moves while a person waits.
pub fn waiting(what: &'static str) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr_with_hz(10)
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target).with_message(what);
    bar.set_style(indicatif::ProgressStyle::default_spinner());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Prints an answer as JSON.
pub fn print_json<T: serde::Serialize>(answer: &T) -> Result<(), Failure> {
    outln!("{}", serde_json::to_string_pretty(answer).context("the answer as JSON")?);
    Ok(())
}
