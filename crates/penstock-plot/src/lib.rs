// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pictures as SVG: lines over time or over a sweep, in panels below each other, each with a legend; networks ([`network`]).

pub mod network;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::Color as _;

const WIDTH: u32 = 900;
const PANEL_HEIGHT: u32 = 220;
const TITLE_HEIGHT: u32 = 40;
/// Room for the legend, right of the data: a share of the axis of numbers, and so many places.
const LEGEND: f64 = 1.16;
const LEGEND_PLACES: f64 = 1.2;
/// Room above the highest point.
const HEADROOM: f64 = 1.08;

/// Red, green and blue.
pub type Color = (u8, u8, u8);

/// Okabe and Ito's blue. People with any colour vision can tell these colours apart.
pub const BLUE: Color = (0, 114, 178);
/// Their vermilion.
pub const VERMILION: Color = (213, 94, 0);
/// Their orange.
pub const ORANGE: Color = (230, 159, 0);
/// For what stands behind the rest.
pub const GRAY: Color = (153, 153, 153);
/// All of them, for lines that have no colour of their own.
pub const COLORS: [Color; 7] = [BLUE, VERMILION, (0, 158, 115), (204, 121, 167), ORANGE, (86, 180, 233), (90, 90, 90)];

/// A point of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Where it is.
    pub x: f64,
    /// How high it is.
    pub y: f64,
    /// Half of the bar through it; 0 without one.
    pub spread: f64,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What the legend says.
    pub name: String,
    /// Its colour.
    pub color: Color,
    /// Its width in pixels.
    pub width: u32,
    /// Dashed, as a limit is.
    pub is_dashed: bool,
    /// From left to right.
    pub points: Vec<Point>,
}

/// A coordinate system with lines.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Panel {
    /// What stands above it.
    pub title: String,
    /// What stands below the x axis.
    pub x: String,
    /// What stands beside the y axis.
    pub y: String,
    /// Names of x = 0, 1, ..; numbers without them.
    pub places: Vec<String>,
    /// What is drawn, the first one at the back.
    pub lines: Vec<Line>,
}

/// A drawing that could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw {title:?}: {what}")]
pub struct PlotError {
    title: String,
    what: String,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// Draws panels below each other.
///
/// # Errors
/// The drawing fails.
pub fn draw(title: &str, panels: &[Panel]) -> Result<String, PlotError> {
    let mut svg = String::new();
    match draw_panels(&mut svg, title, panels) {
        Ok(()) => Ok(svg),
        Err(error) => Err(PlotError { title: title.to_owned(), what: error.to_string() }),
    }
}

fn draw_panels(svg: &mut String, title: &str, panels: &[Panel]) -> Drawn {
    let height = TITLE_HEIGHT + PANEL_HEIGHT * u32::try_from(panels.len().max(1))?;
    let root = SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let root = root.titled(title, ("sans-serif", 20))?;
    for (area, panel) in root.split_evenly((panels.len().max(1), 1)).iter().zip(panels) {
        draw_panel(area, panel)?;
    }
    root.present()?;
    Ok(())
}

fn draw_panel(area: &Area<'_>, panel: &Panel) -> Drawn {
    let points = || panel.lines.iter().flat_map(|line| &line.points);
    let top = points().map(|point| point.y + point.spread).fold(0.0, f64::max).max(1e-9) * HEADROOM;
    let end = points().map(|point| point.x).fold(0.0, f64::max).max(1e-9);
    let is_named = !panel.places.is_empty();
    let range = if is_named { -0.3..end + LEGEND_PLACES } else { 0.0..end * LEGEND };
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(34)
        .y_label_area_size(64)
        .build_cartesian_2d(range, 0.0..top)?;
    let named = |x: &f64| name_of(&panel.places, *x);
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(WHITE).bold_line_style(RGBColor(225, 225, 225)).x_desc(&panel.x).y_desc(&panel.y).y_labels(5);
    if is_named {
        mesh.x_labels(panel.places.len() * 2 + 3).x_label_formatter(&named);
    }
    mesh.draw()?;
    let many = place(panel.lines.len());
    for (index, line) in panel.lines.iter().enumerate() {
        let (red, green, blue) = line.color;
        let style = RGBColor(red, green, blue).stroke_width(line.width);
        // Lines over named places stand beside each other, so that their bars can be told apart.
        let shift = if is_named { (place(index) - (many - 1.0) / 2.0) * (0.3 / many) } else { 0.0 };
        let path: Vec<(f64, f64)> = line.points.iter().map(|point| (point.x + shift, point.y)).collect();
        let drawn = if line.is_dashed {
            chart.draw_series(DashedLineSeries::new(path.iter().copied(), 5, 4, style))?
        } else {
            chart.draw_series(LineSeries::new(path.iter().copied(), style))?
        };
        drawn.label(&line.name).legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
        let bars = line.points.iter().filter(|point| point.spread > 0.0).map(|point| {
            let (x, low, high) = (point.x + shift, (point.y - point.spread).max(0.0), point.y + point.spread);
            PathElement::new([(x, low), (x, high)], style.stroke_width(1))
        });
        chart.draw_series(bars)?;
        if is_named {
            chart.draw_series(path.iter().map(|&point| Circle::new(point, 3, style.filled())))?;
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(200, 200, 200))
        .draw()?;
    Ok(())
}

#[allow(clippy::cast_precision_loss)] // a drawing has few lines
fn place(index: usize) -> f64 {
    index as f64
}

/// The name of a whole number; nothing between two.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a place is a small index
fn name_of(places: &[String], x: f64) -> String {
    let nearest = x.round();
    if (x - nearest).abs() > 0.01 || nearest < 0.0 {
        return String::new();
    }
    places.get(nearest as usize).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, is_dashed: bool, spread: f64) -> Line {
        let points = [(0.0, 1.0), (1.0, 2.0)].map(|(x, y)| Point { x, y, spread });
        Line { name: name.to_owned(), color: BLUE, width: 2, is_dashed, points: points.into() }
    }

    #[test]
    fn a_drawing_has_its_words() {
        let over_time =
            Panel { title: "down/gold".to_owned(), lines: vec![line("passed", false, 0.0)], ..Panel::default() };
        let places = vec!["50Mbit/s".to_owned(), "100Mbit/s".to_owned()];
        let swept = Panel { places, lines: vec![line("limit", true, 0.5)], ..Panel::default() };
        let svg = draw("a title", &[over_time, swept]).unwrap();
        for word in ["a title", "down/gold", "passed", "50Mbit/s", "100Mbit/s", "limit", "#0072B2"] {
            assert!(svg.contains(word), "no {word} in {svg}");
        }
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
    }

    #[test]
    fn nothing_is_drawn_as_nothing() {
        assert!(draw("empty", &[]).unwrap().contains("empty"));
        assert!(draw("empty", &[Panel::default()]).is_ok());
    }

    #[test]
    fn places_have_names() {
        let places = ["a".to_owned(), "b".to_owned()];
        assert_eq!([-1.0, 0.0, 0.5, 1.0, 2.0].map(|x| name_of(&places, x)), ["", "a", "", "b", ""]);
    }
}
