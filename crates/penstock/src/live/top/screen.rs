// SPDX-License-Identifier: MIT OR Apache-2.0
//! The terminal: keys and news in, frames out.

use super::draw::draw;
use super::feed::Feed;
use super::keys::{After, press};
use super::state::View;
use super::theme::Theme;
use crate::failure::Failure;
use crate::live::status::unix_ns;
use anyhow::{Context, anyhow};
use crossterm::event::{Event, EventStream};
use penstock_api::NodeClient;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio_stream::StreamExt;

/// Gives the terminal back as it was; ratatui's own hook does when something panics.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows readings until a person quits.
pub async fn run(client: NodeClient, socket: PathBuf, interval_ns: u64, theme: Theme) -> Result<(), Failure> {
    let (want, wanted) = watch::channel(None);
    let (news, mut heard) = mpsc::channel(16);
    tokio::spawn(Feed { socket, interval_ns, wanted, news }.run(client));
    let on = |kind| signal(kind).context("cannot wait for signals");
    let (mut terminated, mut interrupted, mut hung_up) =
        (on(SignalKind::terminate())?, on(SignalKind::interrupt())?, on(SignalKind::hangup())?);
    let mut terminal = ratatui::try_init().context("cannot draw on the terminal")?;
    let _restore = Restore;
    let mut events = EventStream::new();
    let mut view = View::new(interval_ns);
    loop {
        terminal.draw(|frame| draw(frame, &view, theme, unix_ns())).context("cannot draw on the terminal")?;
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(Event::Key(key))) if key.is_press() => {
                    if press(&mut view, key) == After::Quit {
                        return Ok(());
                    }
                }
                // A resize among others: the next frame has the new size.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(anyhow!(error).context("cannot read from the terminal").into()),
                None => return Ok(()),
            },
            news = heard.recv() => match news {
                Some(news) => view.take(news),
                None => return Err(anyhow!("the readings ended unexpectedly").into()),
            },
            _ = terminated.recv() => return Ok(()),
            _ = interrupted.recv() => return Ok(()),
            _ = hung_up.recv() => return Ok(()),
        }
        want.send_if_modified(|wanted| {
            let now = view.wanted();
            let is_other = *wanted != now;
            *wanted = now;
            is_other
        });
    }
}
