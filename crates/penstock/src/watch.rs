// SPDX-License-Identifier: MIT OR Apache-2.0
//! A progress bar on a terminal, and Ctrl-C.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use penstock_dataplane::Watch;
use penstock_packet::Progress;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Watches a replay for a person.
pub struct Terminal {
    bar: ProgressBar,
    stopped: Arc<AtomicBool>,
}

impl Terminal {
    /// Shows progress when standard error is a terminal, and catches Ctrl-C: once ends the replay with a report, twice at once.
    pub fn new() -> anyhow::Result<Self> {
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stopped);
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        })?;
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.enable_steady_tick(Duration::from_millis(200));
        Ok(Self { bar, stopped })
    }

    /// Takes the bar away before something else is printed.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Terminal {
    fn goes_on(&mut self, packets: u64, progress: Progress) -> bool {
        if let Some(total) = progress.total
            && self.bar.length() != Some(total)
        {
            self.bar.set_length(total);
            let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg} packets  {elapsed}, {eta} left");
            if let Ok(style) = style {
                self.bar.set_style(style);
            }
        }
        if !self.bar.is_hidden() {
            self.bar.set_position(progress.done);
            self.bar.set_message(crate::units::count(packets));
        }
        !self.stopped.load(Ordering::Relaxed)
    }
}
