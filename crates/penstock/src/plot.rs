// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates over time: a panel a class or limit, four lines each.

use anyhow::Result;
use penstock_dataplane::timeline::{Bin, Timeline};
use penstock_plot::{BLUE, Color, GRAY, Line, ORANGE, Point, VERMILION};

/// Bins that can be told apart in a drawing; more show packets rather than rates.
pub const BINS_MAX: usize = 128;

/// One panel: a series of the timeline under a name, with its limit.
pub struct Panel {
    /// What people read above it.
    pub name: String,
    /// Which series of the timeline.
    pub series: usize,
    /// Drawn as a dashed line when there is one, bits/s.
    pub limit_bps: Option<u64>,
}

type Bytes = fn(&Bin) -> u64;

/// Name, colour, width, and what is drawn.
const LINES: [(&str, Color, u32, Bytes); 4] = [
    ("offered", GRAY, 1, |bin| bin.offered),
    ("passed", BLUE, 2, |bin| bin.passed),
    ("marked", ORANGE, 1, |bin| bin.marked),
    ("dropped", VERMILION, 1, |bin| bin.dropped),
];

/// Draws the panels below each other, as an SVG.
///
/// # Errors
/// The drawing fails.
pub fn draw(title: &str, timeline: &Timeline, panels: &[Panel]) -> Result<String> {
    let panels: Vec<_> = panels.iter().map(|panel| drawn(timeline, panel)).collect();
    Ok(penstock_plot::draw(title, &panels)?)
}

fn drawn(timeline: &Timeline, panel: &Panel) -> penstock_plot::Panel {
    let width_s = to_f64(timeline.width_ns()) / 1e9;
    let bins = timeline.bins(panel.series);
    let rate = |bytes: u64| to_f64(bytes) * 8.0 / width_s;
    let peak = bins.iter().map(|bin| rate(bin.offered)).fold(0.0, f64::max);
    let limit = panel.limit_bps.map(to_f64);
    let (scale, unit) = scale_of(peak.max(limit.unwrap_or(0.0)));
    let point = |x: f64, y: f64| Point { x, y: y / scale, spread: 0.0 };
    let mut lines = Vec::new();
    if let Some(limit) = limit {
        let points = vec![point(0.0, limit), point(to_f64(timeline.len() as u64) * width_s, limit)];
        lines.push(Line { name: "limit".to_owned(), color: (0, 0, 0), width: 1, is_dashed: true, points });
    }
    for (name, color, width, bytes) in LINES {
        if bins.iter().all(|bin| bytes(bin) == 0) {
            continue;
        }
        // A step a bin: both of its edges at its height.
        let steps = (0..timeline.len()).flat_map(|index| {
            let height = bins.get(index).map_or(0.0, |bin| rate(bytes(bin)));
            let start = to_f64(index as u64) * width_s;
            [point(start, height), point(start + width_s, height)]
        });
        lines.push(Line { name: name.to_owned(), color, width, is_dashed: false, points: steps.collect() });
    }
    penstock_plot::Panel {
        title: panel.name.clone(),
        x: "time since the first packet, s".to_owned(),
        y: unit.to_owned(),
        places: Vec::new(),
        lines,
    }
}

fn scale_of(bits_per_second: f64) -> (f64, &'static str) {
    match bits_per_second {
        rate if rate >= 1e9 => (1e9, "Gbit/s"),
        rate if rate >= 1e6 => (1e6, "Mbit/s"),
        rate if rate >= 1e3 => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    }
}

#[allow(clippy::cast_precision_loss)] // a drawing has a thousand pixels
fn to_f64(number: u64) -> f64 {
    number as f64
}
