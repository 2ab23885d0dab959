// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where nodes and lines of a network stand.

use super::{Link, Node};
use std::collections::HashMap;

const WIDTH_MIN: i32 = 900;
/// Layers are so far from each other, and farther in a wide picture.
const LAYER_HEIGHT: i32 = 150;
const LAYER_HEIGHT_MAX: i32 = 320;
const MARGIN: i32 = 24;
const GAP: i32 = 14;
const BOX_HEIGHT: i32 = 24;
const FONT_PX: i32 = 12;
/// How far a direction is from the middle of its link.
const ASIDE_PX: f64 = 4.0;
/// How high a line bends that has nodes of its own layer in its way.
const BEND_PX: f64 = 60.0;
/// Sweeps that put nodes above those that they are joined to; more change little.
const SWEEPS: usize = 6;

type Point = (f64, f64);

/// A picture's places, in pixels.
pub struct Layout {
    pub width: i32,
    /// Below everything.
    pub bottom: i32,
    /// Centres of nodes.
    pub at: Vec<(i32, i32)>,
    /// Their widths and heights.
    pub boxes: Vec<(i32, i32)>,
    pub font_px: i32,
    /// Of each node, its place in its layer.
    places: Vec<usize>,
    layers: Vec<usize>,
}

impl Layout {
    pub fn new(nodes: &[Node], links: &[Link], top: i32) -> Self {
        let rows = rows(nodes, links);
        let boxes: Vec<(i32, i32)> =
            nodes.iter().map(|node| (text_width(&node.label, FONT_PX) + 12, BOX_HEIGHT)).collect();
        let needed = |row: &Vec<usize>| row.iter().map(|&node| boxes[node].0 + GAP).sum::<i32>();
        let width = rows.iter().map(needed).max().unwrap_or(0).max(WIDTH_MIN - 2 * MARGIN) + 2 * MARGIN;
        let layer_height = (width / 6).clamp(LAYER_HEIGHT, LAYER_HEIGHT_MAX);
        let mut at = vec![(0, 0); nodes.len()];
        let mut places = vec![0; nodes.len()];
        let count = i32::try_from(rows.len()).unwrap_or(0);
        for (layer, row) in (0..).zip(&rows) {
            let y = top + MARGIN + BOX_HEIGHT / 2 + (count - 1 - layer) * layer_height;
            let boxes_of_row = row.iter().map(|&node| boxes[node].0).sum::<i32>();
            let slots = i32::try_from(row.len()).unwrap_or(1).max(1);
            let gap = (width - 2 * MARGIN - boxes_of_row) / slots;
            let mut x = MARGIN + gap / 2;
            for (place, &node) in row.iter().enumerate() {
                at[node] = (x + boxes[node].0 / 2, y);
                places[node] = place;
                x += boxes[node].0 + gap;
            }
        }
        let bottom = top + 2 * MARGIN + BOX_HEIGHT + (count - 1).max(0) * layer_height;
        let layers = nodes.iter().map(|node| node.layer).collect();
        Self { width, bottom, at, boxes, font_px: FONT_PX, places, layers }
    }

    /// The line of a link: straight, or bent where nodes of its own layer are in its way.
    pub fn line(&self, link: &Link) -> Vec<(i32, i32)> {
        let (from, to) = (exact(self.at[link.from]), exact(self.at[link.to]));
        let is_in_the_way =
            self.layers[link.from] == self.layers[link.to] && self.places[link.from].abs_diff(self.places[link.to]) > 1;
        let bend = if is_in_the_way { BEND_PX } else { 0.0 };
        let aside = aside(from, to);
        let steps = if is_in_the_way { 16 } else { 1 };
        let point = |step: u32| {
            let part = f64::from(step) / f64::from(steps);
            let lift = 4.0 * bend * part * (1.0 - part);
            let x = from.0 + (to.0 - from.0) * part + aside.0;
            whole((x, from.1 + (to.1 - from.1) * part + aside.1 - lift))
        };
        (0..=steps).map(point).collect()
    }
}

/// To the right of the direction, y being downwards.
fn aside(from: Point, to: Point) -> Point {
    let along = direction(from, to);
    (-along.1 * ASIDE_PX, along.0 * ASIDE_PX)
}

fn direction(from: Point, to: Point) -> Point {
    let (x, y) = (to.0 - from.0, to.1 - from.1);
    let length = x.hypot(y).max(1e-9);
    (x / length, y / length)
}

/// The point at a part of a line, and its direction there.
pub fn point(line: &[(i32, i32)], part: f64) -> (Point, Point) {
    let lengths = line.windows(2).map(|pair| {
        let (from, to) = (exact(pair[0]), exact(pair[1]));
        (to.0 - from.0).hypot(to.1 - from.1)
    });
    let mut left = lengths.clone().sum::<f64>() * part;
    for (pair, length) in line.windows(2).zip(lengths) {
        let (from, to) = (exact(pair[0]), exact(pair[1]));
        if left <= length {
            let along = direction(from, to);
            return ((from.0 + along.0 * left, from.1 + along.1 * left), along);
        }
        left -= length;
    }
    (line.last().copied().map_or((0.0, 0.0), exact), (1.0, 0.0))
}

/// Nodes of each layer from left to right: as they came, then each above the middle of those that it is joined to.
fn rows(nodes: &[Node], links: &[Link]) -> Vec<Vec<usize>> {
    let top = nodes.iter().map(|node| node.layer).max().map_or(0, |layer| layer + 1);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); top];
    for (index, node) in nodes.iter().enumerate() {
        rows[node.layer].push(index);
    }
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for link in links {
        neighbours[link.from].push(link.to);
        neighbours[link.to].push(link.from);
    }
    for sweep in 0..SWEEPS {
        // The last one puts switches above their hosts.
        let is_up = sweep % 2 == 1;
        for step in 0..top {
            let layer = if is_up { step } else { top - 1 - step };
            let places = places(&rows);
            let middle = |node: usize| {
                let is_fixed =
                    |other: &&usize| (nodes[**other].layer < layer) == is_up && nodes[**other].layer != layer;
                let at: Vec<f64> = neighbours[node].iter().filter(is_fixed).map(|other| places[other]).collect();
                // Who is joined to nobody stays.
                if at.is_empty() { places[&node] } else { at.iter().sum::<f64>() / count(at.len()) }
            };
            let mut keyed: Vec<(f64, usize)> = rows[layer].iter().map(|&node| (middle(node), node)).collect();
            keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
            rows[layer] = keyed.into_iter().map(|(_, node)| node).collect();
        }
    }
    rows
}

/// Where each node is in its layer, from 0 to 1.
fn places(rows: &[Vec<usize>]) -> HashMap<usize, f64> {
    let of_row = |row: &Vec<usize>| {
        let length = count(row.len());
        row.iter().enumerate().map(move |(place, &node)| (node, (count(place) + 0.5) / length)).collect::<Vec<_>>()
    };
    rows.iter().flat_map(of_row).collect()
}

/// About as wide as a text is.
pub fn text_width(text: &str, font_px: i32) -> i32 {
    i32::try_from(text.chars().count()).unwrap_or(i32::MAX / 64).min(1_000) * font_px * 6 / 10
}

#[allow(clippy::cast_precision_loss)] // a drawing has few nodes
fn count(number: usize) -> f64 {
    number as f64
}

fn exact(point: (i32, i32)) -> Point {
    (f64::from(point.0), f64::from(point.1))
}

/// Whole pixels.
#[allow(clippy::cast_possible_truncation)] // a drawing has thousands of them
pub fn whole(point: Point) -> (i32, i32) {
    (point.0.round() as i32, point.1.round() as i32)
}
