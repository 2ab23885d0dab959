// SPDX-License-Identifier: MIT OR Apache-2.0
//! A network as an SVG: nodes in layers, links by what flows on them.
//!
//! Each line is one direction and keeps to its right, as vehicles do in most countries: width says how much flows, colour how full the link
//! is, a dot at its start that it holds somebody back.

mod layout;

use crate::{Area, BLUE, Color, Drawn, GRAY, ORANGE, PlotError, VERMILION};
use layout::Layout;
use plotters::prelude::*;
use plotters::style::Color as _;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A host, a switch, or several of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// What stands in its box.
    pub label: String,
    /// How far up: 0 is at the bottom.
    pub layer: usize,
}

/// A link in one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Index of its node.
    pub from: usize,
    /// Index of its node.
    pub to: usize,
    /// What flows on it, 1 on the link that carries most.
    pub flow: f64,
    /// How much of it is used, 1 if it is full.
    pub used: f64,
    /// It holds somebody back.
    pub is_bottleneck: bool,
}

/// What is drawn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Picture {
    /// What stands above it.
    pub title: String,
    /// What stands below that, line by line.
    pub notes: Vec<String>,
    /// Hosts and switches.
    pub nodes: Vec<Node>,
    /// Links between them.
    pub links: Vec<Link>,
}

/// How full a link is, from so much on, and what says so.
const SHADES: [(f64, Color, &str); 5] = [
    (0.999, VERMILION, "full"),
    (0.9, ORANGE, "90 % and more"),
    (0.5, BLUE, "50 % and more"),
    (1e-9, (86, 180, 233), "less"),
    (0.0, (205, 205, 205), "nothing"),
];
/// Links with arrows and of full width; where there are more, they hide each other.
const SPARSE_MAX: usize = 80;
const TITLE_HEIGHT: i32 = 34;
const NOTE_HEIGHT: i32 = 18;
const LEGEND_HEIGHT: i32 = 56;
const FONT: &str = "sans-serif";
const DARK: RGBColor = RGBColor(40, 40, 40);

/// Draws a network.
///
/// # Errors
/// The drawing fails.
pub fn draw_network(picture: &Picture) -> Result<String, PlotError> {
    let mut svg = String::new();
    match draw(&mut svg, picture) {
        Ok(()) => Ok(svg),
        Err(error) => Err(PlotError { title: picture.title.clone(), what: error.to_string() }),
    }
}

fn draw(svg: &mut String, picture: &Picture) -> Drawn {
    let notes = i32::try_from(picture.notes.len())? * NOTE_HEIGHT;
    let layout = Layout::new(&picture.nodes, &picture.links, TITLE_HEIGHT + notes);
    let size = (u32::try_from(layout.width)?, u32::try_from(layout.bottom + LEGEND_HEIGHT)?);
    let root = SVGBackend::with_string(svg, size).into_drawing_area();
    root.fill(&WHITE)?;
    text(&root, &picture.title, (16, 8), 18, HPos::Left)?;
    for (row, note) in (0..).zip(&picture.notes) {
        text(&root, note, (16, TITLE_HEIGHT + row * NOTE_HEIGHT), 12, HPos::Left)?;
    }
    let mut links: Vec<&Link> = picture.links.iter().collect();
    links.sort_by(|one, other| one.used.total_cmp(&other.used));
    let is_sparse = links.len() <= SPARSE_MAX;
    for link in &links {
        draw_link(&root, link, &layout, is_sparse)?;
    }
    for link in links.iter().filter(|link| link.is_bottleneck) {
        draw_mark(&root, mark_at(&layout.line(link)), is_sparse)?;
    }
    for (index, node) in picture.nodes.iter().enumerate() {
        let (center, (width, height)) = (layout.at[index], layout.boxes[index]);
        let corners = [(center.0 - width / 2, center.1 - height / 2), (center.0 + width / 2, center.1 + height / 2)];
        let fill = if node.layer == 0 { RGBColor(245, 245, 245) } else { WHITE };
        root.draw(&Rectangle::new(corners, fill.filled()))?;
        root.draw(&Rectangle::new(corners, DARK.stroke_width(1)))?;
        text(&root, &node.label, (center.0, center.1 - 6), layout.font_px, HPos::Center)?;
    }
    legend(&root, layout.bottom)?;
    root.present()?;
    Ok(())
}

fn text(root: &Area<'_>, words: &str, at: (i32, i32), size: i32, anchor: HPos) -> Drawn {
    let style = TextStyle::from((FONT, size)).color(&DARK).pos(Pos::new(anchor, VPos::Top));
    root.draw(&Text::new(words.to_owned(), at, style))?;
    Ok(())
}

fn shade(used: f64) -> RGBColor {
    let found = SHADES.iter().find(|(from, _, _)| used >= *from);
    let (red, green, blue) = found.map_or(GRAY, |&(_, color, _)| color);
    RGBColor(red, green, blue)
}

/// One pixel for what carries nothing, and up to seven; up to four where there is much.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a few pixels
fn width_px(link: &Link, is_sparse: bool) -> u32 {
    let (least, more) = if is_sparse { (2, 5.0) } else { (2, 2.0) };
    if link.used <= 0.0 { 1 } else { least + (more * link.flow.clamp(0.0, 1.0)).round() as u32 }
}

fn draw_link(root: &Area<'_>, link: &Link, layout: &Layout, is_sparse: bool) -> Drawn {
    let line = layout.line(link);
    let (color, width) = (shade(link.used), width_px(link, is_sparse));
    root.draw(&PathElement::new(line.clone(), color.stroke_width(width)))?;
    if is_sparse && link.used > 0.0 {
        let (tip, along) = layout::point(&line, 0.6);
        let size = f64::from(width) + 4.0;
        let corner = |ahead: f64, aside: f64| {
            layout::whole((tip.0 + along.0 * ahead - along.1 * aside, tip.1 + along.1 * ahead + along.0 * aside))
        };
        root.draw(&Polygon::new([corner(size, 0.0), corner(-size, size), corner(-size, -size)], color.filled()))?;
    }
    Ok(())
}

/// Where a bottleneck's dot stands on its line.
fn mark_at(line: &[(i32, i32)]) -> (i32, i32) {
    layout::whole(layout::point(line, 0.2).0)
}

fn draw_mark(root: &Area<'_>, at: (i32, i32), is_sparse: bool) -> Drawn {
    let radius = if is_sparse { 4 } else { 3 };
    root.draw(&Circle::new(at, radius + 2, WHITE.filled()))?;
    root.draw(&Circle::new(at, radius, DARK.filled()))?;
    Ok(())
}

fn legend(root: &Area<'_>, top: i32) -> Drawn {
    let mut x = 16;
    for (_, (red, green, blue), words) in SHADES {
        let color = RGBColor(red, green, blue);
        root.draw(&PathElement::new([(x, top + 14), (x + 24, top + 14)], color.stroke_width(5)))?;
        text(root, words, (x + 30, top + 8), 12, HPos::Left)?;
        x += 30 + layout::text_width(words, 12) + 18;
    }
    draw_mark(root, (x + 6, top + 14), true)?;
    text(root, "full, and holds a class back", (x + 18, top + 8), 12, HPos::Left)?;
    let words = "A line is one direction and keeps to its right; its colour says how full its port is, its width how much flows.";
    text(root, words, (16, top + 30), 12, HPos::Left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_its_names_shades_and_marks() {
        let node = |label: &str, layer| Node { label: label.to_owned(), layer };
        let link = |from, to, used, is_bottleneck| Link { from, to, flow: used, used, is_bottleneck };
        let picture = Picture {
            title: "three < four".to_owned(),
            notes: vec!["150 Gbit/s".to_owned()],
            nodes: vec![node("h1", 0), node("l1", 1), node("h2", 0)],
            links: vec![link(0, 1, 1.0, true), link(1, 0, 0.0, false), link(1, 2, 0.3, false)],
        };
        let svg = draw_network(&picture).unwrap();
        for word in
            ["three &lt; four", "150 Gbit/s", "h1", "l1", "h2", "holds a class back", "#D55E00", "#56B4E9", "#CDCDCD"]
        {
            assert!(svg.contains(word), "no {word} in {svg}");
        }
        // One in the picture, one in the legend, of two circles each; two arrows, as one link carries nothing.
        assert_eq!((svg.matches("<circle").count(), svg.matches("<polygon").count()), (4, 2));
        let unmarked = Picture { links: vec![link(0, 1, 1.0, false)], ..picture };
        assert_eq!(draw_network(&unmarked).unwrap().matches("<circle").count(), 2);
    }

    #[test]
    fn nothing_is_drawn_as_nothing() {
        assert!(draw_network(&Picture::default()).unwrap().starts_with("<svg"));
    }
}
