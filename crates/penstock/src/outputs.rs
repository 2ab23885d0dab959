// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that a replay writes. None of them looks whole before it is.

use crate::arguments;
use crate::failure::Failure;
use crate::plot::Panel;
use anyhow::Context;
use penstock_dataplane::timeline::Timeline;
use penstock_dataplane::{Sinks, VerdictWriter};
use penstock_packet::{CaptureWriter, FrameSource, OutputFile};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Everything a replay writes besides its report.
pub struct Outputs {
    /// What the replay writes to while it runs.
    pub sinks: Sinks<BufWriter<OutputFile>>,
    plot: Option<(PathBuf, OutputFile)>,
}

impl Outputs {
    /// Opens all of them, so that a name that cannot be written is found before the work.
    pub fn create(arguments: &arguments::Replay, source: &dyn FrameSource) -> Result<Self, Failure> {
        let capture = match &arguments.out {
            Some(path) => Some(
                CaptureWriter::create(path, source.format(), source.interfaces())
                    .map_err(|error| Failure::Failed(error.into()))?,
            ),
            None => None,
        };
        let verdicts = match &arguments.verdicts {
            Some(path) => {
                let writer = VerdictWriter::new(BufWriter::new(open(path)?)).map_err(anyhow::Error::from)?;
                Some(writer)
            }
            None => None,
        };
        let plot = match &arguments.plot {
            Some(path) => Some((path.clone(), open(path)?)),
            None => None,
        };
        Ok(Self { sinks: Sinks { capture, verdicts, ..Default::default() }, plot })
    }

    /// Records what the plot may show.
    pub fn watch_rates(&mut self, panels: &[Panel]) {
        if self.plot.is_some() {
            self.sinks.series = panels.iter().map(|panel| panel.name.clone()).collect();
            self.sinks.timeline = Some(Timeline::new(panels.len()));
        }
    }

    /// Completes the files. When the replay was not whole they are kept too, but under names that end in `.partial`.
    pub fn finish(self, svg: Option<String>, is_whole: bool) -> Result<(), Failure> {
        let done = |result: std::io::Result<()>| result.map_err(anyhow::Error::from);
        if let Some(writer) = self.sinks.capture {
            writer.finish(is_whole).map_err(anyhow::Error::from)?;
        }
        if let Some(writer) = self.sinks.verdicts {
            let buffer = writer.finish().context("cannot write the verdicts")?;
            let file = buffer.into_inner().map_err(|error| anyhow::Error::from(error.into_error()))?;
            done(file.finish(is_whole)).context("cannot write the verdicts")?;
        }
        if let (Some((path, mut file)), Some(svg)) = (self.plot, svg) {
            done(file.write_all(svg.as_bytes()).and_then(|()| file.finish(is_whole)))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

fn open(path: &std::path::Path) -> Result<OutputFile, Failure> {
    OutputFile::create(path).with_context(|| format!("cannot write {}", path.display())).map_err(Failure::from)
}
