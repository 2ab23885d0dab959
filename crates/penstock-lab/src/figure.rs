// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario's figure as an SVG.

use crate::LabError;
use crate::results::{ALL, Mean, Results, Sample, Subject, unit};
use crate::scenario::{Figure, Scenario, SweepFigure, TimeFigure};
use plotters::coord::Shift;
use plotters::prelude::*;

const WIDTH: u32 = 900;
const PANEL_HEIGHT: u32 = 260;
const TITLE_HEIGHT: u32 = 40;
/// Panels that still can be told apart.
const PANELS_MAX: usize = 12;

/// Okabe and Ito's colours, which people with any colour vision can tell apart.
const COLORS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A line: its name, and x, y, half of the bar.
struct Line {
    name: String,
    points: Vec<(f64, f64, f64)>,
}

/// A coordinate system with lines.
struct Panel {
    title: String,
    x: String,
    y: String,
    /// Names of x = 0, 1, ..; numbers without them.
    places: Vec<String>,
    lines: Vec<Line>,
}

/// Draws what a scenario asks for; nothing when it asks for nothing.
///
/// # Errors
/// The drawing fails.
pub fn draw(scenario: &Scenario, results: &Results) -> Result<Option<String>, LabError> {
    let panels = match &scenario.figure {
        None => return Ok(None),
        Some(Figure::Sweep(figure)) => vec![sweep(scenario, figure, &results.means())],
        Some(Figure::Time(figure)) => over_time(figure, &results.samples),
    };
    let title = format!("{} {}", scenario.paper.name, scenario.paper.figure);
    let mut svg = String::new();
    draw_panels(&mut svg, &title, &panels).map_err(|error| LabError::Drawing(error.to_string()))?;
    Ok(Some(svg))
}

#[allow(clippy::cast_precision_loss)] // a figure has few points
fn place(index: usize) -> f64 {
    index as f64
}

/// Series, and the variables behind the first one, are lines; the first variable is x.
fn sweep(scenario: &Scenario, figure: &SweepFigure, means: &[Mean]) -> Panel {
    let x = scenario.sweep.first();
    let name = |mean: &Mean| {
        let others =
            scenario.sweep.iter().skip(1).filter_map(|variable| {
                mean.of.point.get(&variable.name).map(|value| format!("{} {value}", variable.name))
            });
        let alone = means.iter().all(|other| other.of.tenant == mean.of.tenant);
        let tenant = (!alone).then(|| mean.of.tenant.clone());
        [mean.of.series.clone()].into_iter().chain(others).chain(tenant).collect::<Vec<_>>().join(", ")
    };
    let mut lines: Vec<Line> = Vec::new();
    for mean in means {
        let Some(&y) = mean.metrics.get(&figure.metric) else { continue };
        let value = x.and_then(|variable| mean.of.point.get(&variable.name));
        let at = x.and_then(|variable| variable.values.iter().position(|it| Some(it) == value)).unwrap_or(0);
        let bar = figure.spread.as_ref().and_then(|spread| mean.metrics.get(spread)).copied().unwrap_or(0.0);
        // Oscillation is in percent of the mean, and so is its bar.
        let bar = if figure.spread.as_deref() == Some("oscillation") { y * bar / 100.0 } else { bar };
        let point = (place(at), y, bar);
        match lines.iter_mut().find(|line| line.name == name(mean)) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { name: name(mean), points: vec![point] }),
        }
    }
    Panel {
        title: String::new(),
        x: x.map_or_else(String::new, |variable| variable.name.clone()),
        y: label(&figure.metric),
        places: x.map_or_else(Vec::new, |variable| variable.values.clone()),
        lines,
    }
}

fn label(metric: &str) -> String {
    match unit(metric) {
        "" => metric.to_owned(),
        unit => format!("{metric}, {unit}"),
    }
}

/// A panel a series and point, a line a tenant.
fn over_time(figure: &TimeFigure, samples: &[Sample]) -> Vec<Panel> {
    let title = |of: &Subject| {
        let values = of.point.iter().map(|(name, value)| format!("{name} {value}"));
        [of.series.clone()].into_iter().chain(values).collect::<Vec<_>>().join(", ")
    };
    let mut panels: Vec<Panel> = Vec::new();
    // Only the queue is of all tenants together; of the rest, their sum would be drawn beside them.
    let is_drawn =
        |sample: &&Sample| sample.name == figure.samples && (sample.of.tenant != ALL || figure.samples == "queue");
    for sample in samples.iter().filter(is_drawn) {
        let name = title(&sample.of);
        if panels.last().is_none_or(|panel| panel.title != name) && panels.len() < PANELS_MAX {
            let (x, y) = ("time, s".to_owned(), label(&figure.samples));
            panels.push(Panel { title: name, x, y, places: Vec::new(), lines: Vec::new() });
        }
        let Some(panel) = panels.last_mut() else { continue };
        let point = (sample.time_s, sample.value, 0.0);
        match panel.lines.iter_mut().find(|line| line.name == sample.of.tenant) {
            Some(line) => line.points.push(point),
            None => panel.lines.push(Line { name: sample.of.tenant.clone(), points: vec![point] }),
        }
    }
    panels
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
    let top = points().map(|(_, y, bar)| y + bar).fold(0.0, f64::max).max(1e-9) * 1.1;
    let end = points().map(|(x, ..)| *x).fold(0.0, f64::max).max(1e-9);
    let is_named = !panel.places.is_empty();
    let range = if is_named { -0.3..end + 1.2 } else { 0.0..end * 1.18 };
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
        let style = COLORS[index % COLORS.len()].stroke_width(2);
        // Lines of a sweep stand beside each other, so that their bars can be told apart.
        let shift = if is_named { (place(index) - (many - 1.0) / 2.0) * (0.3 / many) } else { 0.0 };
        let path = line.points.iter().map(|(x, y, _)| (x + shift, *y));
        chart
            .draw_series(LineSeries::new(path, style))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
        let bars = line.points.iter().filter(|(.., bar)| *bar > 0.0);
        let bar = |(x, y, bar): &(f64, f64, f64)| [(x + shift, (y - bar).max(0.0)), (x + shift, y + bar)];
        chart.draw_series(bars.map(|point| PathElement::new(bar(point), style.stroke_width(1))))?;
        if is_named {
            chart.draw_series(line.points.iter().map(|(x, y, _)| Circle::new((x + shift, *y), 3, style.filled())))?;
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

/// The name of a whole number; nothing between two.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a place is a small index
fn name_of(places: &[String], x: f64) -> String {
    let nearest = x.round();
    if (x - nearest).abs() > 0.01 || nearest < 0.0 {
        return String::new();
    }
    places.get(nearest as usize).cloned().unwrap_or_default()
}
