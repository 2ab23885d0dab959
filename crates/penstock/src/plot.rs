// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates over time as an SVG: one panel a class or limit, four lines each.

use anyhow::{Result, anyhow};
use penstock_dataplane::timeline::{Bin, Timeline};
use plotters::prelude::*;

const WIDTH: u32 = 900;
const PANEL_HEIGHT: u32 = 220;
const TITLE_HEIGHT: u32 = 40;
/// Bins that can be told apart in this width; more show packets rather than rates.
pub const BINS_MAX: usize = 128;
/// Room for the legend, right of the data.
const LEGEND: f64 = 1.16;

/// One panel: a series of the timeline under a name, with its limit.
pub struct Panel {
    /// What people read above it.
    pub name: String,
    /// Which series of the timeline.
    pub series: usize,
    /// Drawn as a dashed line when there is one, bits/s.
    pub limit_bps: Option<u64>,
}

struct Line {
    label: &'static str,
    color: RGBColor,
    width: u32,
    bytes: fn(&Bin) -> u64,
}

/// Okabe and Ito's colours, which people with any colour vision can tell apart.
const LINES: [Line; 4] = [
    Line { label: "offered", color: RGBColor(153, 153, 153), width: 1, bytes: |bin| bin.offered },
    Line { label: "passed", color: RGBColor(0, 114, 178), width: 2, bytes: |bin| bin.passed },
    Line { label: "marked", color: RGBColor(230, 159, 0), width: 1, bytes: |bin| bin.marked },
    Line { label: "dropped", color: RGBColor(213, 94, 0), width: 1, bytes: |bin| bin.dropped },
];

/// Draws the panels below each other.
///
/// # Errors
/// When there is nothing to draw, or the drawing fails.
pub fn draw(title: &str, timeline: &Timeline, panels: &[Panel]) -> Result<String> {
    let height = TITLE_HEIGHT + PANEL_HEIGHT * u32::try_from(panels.len().max(1))?;
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE).map_err(|error| anyhow!("{error}"))?;
        let root = root.titled(title, ("sans-serif", 20)).map_err(|error| anyhow!("{error}"))?;
        for (area, panel) in root.split_evenly((panels.len().max(1), 1)).iter().zip(panels) {
            draw_panel(area, timeline, panel).map_err(|error| anyhow!("{error}"))?;
        }
        root.present().map_err(|error| anyhow!("{error}"))?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw_panel(area: &Area<'_>, timeline: &Timeline, panel: &Panel) -> Result<(), Box<dyn std::error::Error>> {
    let width_s = seconds(timeline.width_ns());
    let bins = timeline.bins(panel.series);
    let rate = |bytes: u64| to_f64(bytes) * 8.0 / width_s;
    let peak = bins.iter().map(|bin| rate(bin.offered)).fold(0.0, f64::max);
    let limit = panel.limit_bps.map(to_f64);
    let (scale, unit) = scale_of(peak.max(limit.unwrap_or(0.0)));
    let top = (peak.max(limit.unwrap_or(0.0)) / scale).max(1e-9) * 1.08;
    let end_s = to_f64(timeline.len() as u64) * width_s;
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.name, ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(34)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..end_s * LEGEND, 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 225, 225))
        .x_desc("time since the first packet, s")
        .y_desc(unit)
        .y_labels(5)
        .draw()?;
    if let Some(limit) = limit {
        let dash = DashedLineSeries::new([(0.0, limit / scale), (end_s, limit / scale)], 5, 4, BLACK.stroke_width(1));
        chart.draw_series(dash)?.label("limit").legend(|(x, y)| dashed_legend(x, y));
    }
    for line in &LINES {
        if bins.iter().all(|bin| (line.bytes)(bin) == 0) {
            continue;
        }
        // A step a bin: both of its edges at its height.
        let points = (0..timeline.len()).flat_map(|index| {
            let height = bins.get(index).map_or(0.0, |bin| rate((line.bytes)(bin)) / scale);
            let start = to_f64(index as u64) * width_s;
            [(start, height), (start + width_s, height)]
        });
        let style = line.color.stroke_width(line.width);
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(line.label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(200, 200, 200))
        .draw()?;
    Ok(())
}

fn dashed_legend(x: i32, y: i32) -> PathElement<(i32, i32)> {
    PathElement::new([(x, y), (x + 6, y), (x + 6, y), (x + 16, y)], BLACK.stroke_width(1))
}

fn scale_of(bits_per_second: f64) -> (f64, &'static str) {
    match bits_per_second {
        rate if rate >= 1e9 => (1e9, "Gbit/s"),
        rate if rate >= 1e6 => (1e6, "Mbit/s"),
        rate if rate >= 1e3 => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    to_f64(nanoseconds) / 1e9
}

#[allow(clippy::cast_precision_loss)] // a drawing has a thousand pixels
fn to_f64(number: u64) -> f64 {
    number as f64
}
