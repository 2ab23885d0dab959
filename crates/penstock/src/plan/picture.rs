// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network as a picture. Where there are too many to be told apart, hosts of the same switches are one, and then neighbours of a layer.

use super::Plans;
use crate::failure::Failure;
use crate::units::{counted, rate};
use penstock_alloc::map::Map;
use penstock_plot::network::{Link, Node, Picture, draw_network};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// Hosts that are drawn one by one.
const HOSTS_MAX: usize = 40;
/// Nodes of a layer.
const ROW_MAX: usize = 40;

/// What is used of a full port, but for rounding.
const FULL: f64 = 0.999;

/// Links of one pair of nodes, in one direction.
#[derive(Default)]
struct Sum {
    used_bps: u128,
    fullest: f64,
    is_bottleneck: bool,
}

/// The SVG.
pub fn draw(plans: &Plans<'_>) -> Result<String, Failure> {
    draw_network(&picture(plans)).map_err(|error| Failure::Failed(error.into()))
}

fn picture(plans: &Plans<'_>) -> Picture {
    let (network, allocation) = (plans.now.network, plans.now.allocation);
    let map = Map::new(network);
    let (nodes, group_of) = groups(&map);
    let mut holds = vec![false; network.ports.len()];
    for path in allocation.paths.iter().flatten() {
        if let Some(port) = path.bottleneck.port() {
            holds[port as usize] = true;
        }
    }
    let mut sums: HashMap<(usize, usize), Sum> = HashMap::new();
    for link in &map.links {
        let port = link.port as usize;
        let sum = sums.entry((group_of[link.from], group_of[link.to])).or_default();
        let used_bps = allocation.used_bps[port];
        sum.used_bps += u128::from(used_bps);
        let full = to_f64(u128::from(used_bps)) / to_f64(u128::from(network.ports[port].rate_bps));
        sum.fullest = sum.fullest.max(full);
        // A class that is at its own limit or demand is held back by no port.
        sum.is_bottleneck |= holds[port] && full >= FULL;
    }
    // Who is at both ends has no line.
    sums.retain(|(from, to), _| from != to);
    let most = sums.values().map(|sum| sum.used_bps).max().unwrap_or(0).max(1);
    let mut links: Vec<Link> = sums
        .into_iter()
        .map(|((from, to), sum)| Link {
            from,
            to,
            flow: to_f64(sum.used_bps) / to_f64(most),
            used: sum.fullest,
            is_bottleneck: sum.is_bottleneck,
        })
        .collect();
    links.sort_by_key(|link| (link.from, link.to));
    let title = Path::new(plans.name).file_name().map_or_else(|| plans.name.into(), |name| name.to_string_lossy());
    Picture { title: title.into_owned(), notes: notes(plans, &nodes, &map), nodes, links }
}

fn notes(plans: &Plans<'_>, nodes: &[Node], map: &Map) -> Vec<String> {
    let network = plans.now.network;
    let flow_bps = plans.schemes.first().map_or(0, |(_, scheme)| scheme.flow_bps);
    let mut notes = vec![format!(
        "{} flow in {} of {}; {} at bottlenecks",
        rate(to_f64(flow_bps)),
        counted(network.classes.len() as u64, "class", "classes"),
        counted(network.ports.len() as u64, "port", "ports"),
        counted(plans.now.allocation.limits.len() as u64, "limit", "limits"),
    )];
    if nodes.len() < map.nodes.len() {
        notes.push("`h1 +3` is four of them; a line to several shows the fullest of its ports.".to_owned());
    }
    let unknown = network.ports.len() - map.links.len();
    if unknown > 0 {
        notes.push(format!("Not shown, as no path uses them: {}.", counted(unknown as u64, "port", "ports")));
    }
    notes.extend(plans.notes.iter().cloned());
    notes
}

/// Who is drawn as one, and of each node of the map which one that is.
fn groups(map: &Map) -> (Vec<Node>, Vec<usize>) {
    let mut neighbours: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); map.nodes.len()];
    for link in &map.links {
        neighbours[link.from].insert(link.to);
        neighbours[link.to].insert(link.from);
    }
    let is_host = |node: usize| map.nodes[node].layer == 0;
    let merges_hosts = (0..map.nodes.len()).filter(|&node| is_host(node)).count() > HOSTS_MAX;
    // Of each layer, in order: who is one.
    let mut layers: Vec<Vec<Vec<usize>>> = Vec::new();
    let mut by_neighbours: HashMap<&BTreeSet<usize>, usize> = HashMap::new();
    for (node, of) in map.nodes.iter().enumerate() {
        let layer = of.layer as usize;
        layers.resize(layers.len().max(layer + 1), Vec::new());
        let row = &mut layers[layer];
        match by_neighbours.get(&neighbours[node]) {
            Some(&group) if merges_hosts && is_host(node) => row[group].push(node),
            _ => {
                if is_host(node) {
                    by_neighbours.insert(&neighbours[node], row.len());
                }
                row.push(vec![node]);
            }
        }
    }
    let mut nodes = Vec::new();
    let mut group_of = vec![0; map.nodes.len()];
    for (layer, row) in layers.into_iter().enumerate() {
        for groups in row.chunks(row.len().div_ceil(ROW_MAX).max(1)) {
            let members: Vec<usize> = groups.iter().flatten().copied().collect();
            members.iter().for_each(|&node| group_of[node] = nodes.len());
            nodes.push(Node { label: label(map, &members), layer });
        }
    }
    (nodes, group_of)
}

fn label(map: &Map, members: &[usize]) -> String {
    let name = |node: &usize| map.nodes[*node].name.clone();
    match members {
        [] => String::new(),
        [only] => name(only),
        [first, others @ ..] => format!("{} +{}", name(first), others.len()),
    }
}

#[allow(clippy::cast_precision_loss)] // a picture has a thousand pixels
fn to_f64(number: u128) -> f64 {
    number as f64
}
