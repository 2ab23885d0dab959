// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario's figure as an SVG.

use crate::LabError;
use crate::results::{ALL, Mean, Results, Sample, Subject, unit};
use crate::scenario::{Figure, Scenario, SweepFigure, TimeFigure};
use penstock_plot::{COLORS, Line, Panel, Point};

/// Panels that still can be told apart.
const PANELS_MAX: usize = 12;

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
    Ok(Some(penstock_plot::draw(&title, &panels)?))
}

/// Adds a point to the line of a name, which is made when there is none.
fn add(lines: &mut Vec<Line>, name: &str, point: Point) {
    let index = lines.iter().position(|line| line.name == name).unwrap_or_else(|| {
        let color = COLORS[lines.len() % COLORS.len()];
        lines.push(Line { name: name.to_owned(), color, width: 2, is_dashed: false, points: Vec::new() });
        lines.len() - 1
    });
    lines[index].points.push(point);
}

#[allow(clippy::cast_precision_loss)] // a figure has few points
fn place(index: usize) -> f64 {
    index as f64
}

/// Series, and the variables behind the first one, are lines; the first variable is x. Where nothing is varied, series are x.
fn sweep(scenario: &Scenario, figure: &SweepFigure, means: &[Mean]) -> Panel {
    let x = scenario.sweep.first();
    let name = |mean: &Mean| {
        let others =
            scenario.sweep.iter().skip(1).filter_map(|variable| {
                mean.of.point.get(&variable.name).map(|value| format!("{} {value}", variable.name))
            });
        let alone = means.iter().all(|other| other.of.tenant == mean.of.tenant);
        let tenant = (!alone).then(|| mean.of.tenant.clone());
        let series = x.map(|_| mean.of.series.clone());
        series.into_iter().chain(others).chain(tenant).collect::<Vec<_>>().join(", ")
    };
    let places: Vec<String> = match x {
        Some(variable) => variable.values.clone(),
        None => scenario.series.iter().map(|series| series.name.clone()).collect(),
    };
    let mut lines: Vec<Line> = Vec::new();
    for mean in means {
        let Some(&y) = mean.metrics.get(&figure.metric) else { continue };
        let value = match x {
            Some(variable) => mean.of.point.get(&variable.name),
            None => Some(&mean.of.series),
        };
        let at = places.iter().position(|it| Some(it) == value).unwrap_or(0);
        let bar = figure.spread.as_ref().and_then(|spread| mean.metrics.get(spread)).copied().unwrap_or(0.0);
        // Oscillation is in percent of the mean, and so is its bar.
        let bar = if figure.spread.as_deref() == Some("oscillation") { y * bar / 100.0 } else { bar };
        add(&mut lines, &name(mean), Point { x: place(at), y, spread: bar });
    }
    Panel {
        title: String::new(),
        x: x.map_or_else(String::new, |variable| variable.name.clone()),
        y: label(&figure.metric),
        places,
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
        if panels.last().is_none_or(|panel| panel.title != name) {
            if panels.len() == PANELS_MAX {
                break;
            }
            let (x, y) = ("time, s".to_owned(), label(&figure.samples));
            panels.push(Panel { title: name, x, y, ..Panel::default() });
        }
        let Some(panel) = panels.last_mut() else { continue };
        let point = Point { x: sample.time_s, y: sample.value, spread: 0.0 };
        add(&mut panel.lines, &sample.of.tenant, point);
    }
    panels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Template;
    use crate::results::{Metrics, Row};
    use crate::template::Values;

    fn of(series: &str, tenant: &str) -> Subject {
        Subject { series: series.to_owned(), point: Values::new(), tenant: tenant.to_owned() }
    }

    #[test]
    fn without_a_variable_series_stand_side_by_side() {
        let text = "{ penstock-lab: 1, claim: c, paper: { name: p, figure: f, section: s }, scaling: none,
            traffic: { forward: redirect, tenants: [ { name: web, load: { tcp: {} } }, { name: flood, load: { tcp: {} } } ] },
            series: [ { name: none, enforce: nothing }, { name: ours, enforce: nothing } ],
            holds_if: [ { metric: goodput, at_least: 1 } ], figure: { sweep: { metric: goodput } } }";
        let scenario =
            Template::parse("figure.yaml", text.to_owned()).unwrap_or_else(|e| panic!("{e}")).first().unwrap();
        let mut results = Results::default();
        for (series, tenant, goodput) in [("none", "web", 1.0), ("none", "flood", 9.0), ("ours", "web", 5.0)] {
            let metrics = Metrics::from([("goodput".to_owned(), goodput)]);
            results.rows.push(Row { of: of(series, tenant), run: 1, metrics });
        }
        let panel = sweep(&scenario, &SweepFigure { metric: "goodput".to_owned(), spread: None }, &results.means());
        assert_eq!(panel.places, ["none", "ours"]);
        let lines =
            panel.lines.iter().map(|line| (line.name.as_str(), line.points.iter().map(|it| (it.x, it.y)).collect()));
        let lines: Vec<(&str, Vec<(f64, f64)>)> = lines.collect();
        assert_eq!(lines, [("web", vec![(0.0, 1.0), (1.0, 5.0)]), ("flood", vec![(0.0, 9.0)])]);
    }

    #[test]
    fn what_has_no_panel_is_in_no_other() {
        let series: Vec<String> = (0..PANELS_MAX + 3).map(|index| format!("s{index}")).collect();
        let sample = |series: &String| Sample { of: of(series, "t"), name: "goodput", time_s: 1.0, value: 2.0 };
        let panels =
            over_time(&TimeFigure { samples: "goodput".to_owned() }, &series.iter().map(sample).collect::<Vec<_>>());
        assert_eq!(panels.len(), PANELS_MAX);
        assert!(panels.iter().all(|panel| panel.lines.len() == 1 && panel.lines[0].points.len() == 1));
    }
}
