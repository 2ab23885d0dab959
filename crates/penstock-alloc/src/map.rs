// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where ports lead. A network file does not say, its paths do: a port leads to the switch of the port behind it.
//!
//! The last port of a path leads to whom its name says, `l2-h4` of `l2` to `h4`, and else to a host of its own. A port that no path uses is on the
//! map if its name says where it leads, to somebody who is there.

use crate::model::{Network, Port, PortId};
use std::collections::{HashMap, VecDeque};

/// Hosts, switches and links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Map {
    /// Hosts and switches.
    pub nodes: Vec<Node>,
    /// One for each port of which it is known where it leads.
    pub links: Vec<Link>,
}

/// A host or a switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// The name of the switch, or of the port that leads to a host of no name.
    pub name: String,
    /// Steps from the nearest host, which is at 0.
    pub layer: u32,
}

/// A port and its two ends, by index in [`Map::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Which.
    pub port: PortId,
    /// Whose.
    pub from: usize,
    /// Where to.
    pub to: usize,
}

/// What paths say of the ports.
struct Said {
    /// The port behind each, if any path has one there.
    next: Vec<Option<PortId>>,
    /// A path ends with it.
    is_last: Vec<bool>,
    /// A path has a port before it.
    has_before: Vec<bool>,
}

impl Map {
    /// The map of a network.
    #[must_use]
    pub fn new(network: &Network) -> Self {
        let said = said(network);
        let mut map = Self::default();
        let mut of_node: HashMap<&str, usize> = HashMap::new();
        let mut forwards = Vec::new();
        for (port, has_before) in network.ports.iter().zip(&said.has_before) {
            let node = *of_node.entry(&port.switch).or_insert_with(|| map.add(&port.switch));
            forwards.resize(map.nodes.len(), false);
            forwards[node] |= has_before;
        }
        for (id, port) in (0..).zip(&network.ports) {
            let from = of_node[port.switch.as_str()];
            let next = said.next[id as usize].map(|next| network.ports[next as usize].switch.as_str());
            let name = next.or_else(|| end(port)).unwrap_or(&port.name);
            let to = match of_node.get(name) {
                None if said.is_last[id as usize] => Some(*of_node.entry(name).or_insert_with(|| map.add(name))),
                known => known.copied(),
            };
            map.links.extend(to.filter(|&to| to != from).map(|to| Link { port: id, from, to }));
        }
        forwards.resize(map.nodes.len(), false);
        map.set_layers(&forwards);
        map
    }

    fn add(&mut self, name: &str) -> usize {
        self.nodes.push(Node { name: name.to_owned(), layer: 0 });
        self.nodes.len() - 1
    }

    /// Steps from the nearest node that forwards nothing.
    fn set_layers(&mut self, forwards: &[bool]) {
        let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for link in &self.links {
            neighbours[link.from].push(link.to);
            neighbours[link.to].push(link.from);
        }
        let mut open: VecDeque<usize> = (0..self.nodes.len()).filter(|&node| !forwards[node]).collect();
        let mut is_seen: Vec<bool> = forwards.iter().map(|forwards| !forwards).collect();
        while let Some(node) = open.pop_front() {
            for &next in &neighbours[node] {
                if !std::mem::replace(&mut is_seen[next], true) {
                    self.nodes[next].layer = self.nodes[node].layer + 1;
                    open.push_back(next);
                }
            }
        }
    }
}

fn said(network: &Network) -> Said {
    let count = network.ports.len();
    let mut said = Said { next: vec![None; count], is_last: vec![false; count], has_before: vec![false; count] };
    for path in network.classes.iter().flat_map(|class| &class.paths) {
        for pair in path.windows(2) {
            said.next[pair[0] as usize].get_or_insert(pair[1]);
            said.has_before[pair[1] as usize] = true;
        }
        if let Some(&last) = path.last() {
            said.is_last[last as usize] = true;
        }
    }
    said
}

/// What the name of a port says after its switch and a dash.
fn end(port: &Port) -> Option<&str> {
    port.name.strip_prefix(&port.switch)?.strip_prefix('-').filter(|end| !end.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Class;

    fn map(ports: &[(&str, &str)], paths: &[&[PortId]]) -> Vec<String> {
        let port = |&(name, switch): &(&str, &str)| Port {
            name: name.to_owned(),
            switch: switch.to_owned(),
            ..Port::default()
        };
        let class = Class { paths: paths.iter().map(|path| path.to_vec()).collect(), ..Class::default() };
        let network = Network { ports: ports.iter().map(port).collect(), classes: vec![class], ..Network::default() };
        let map = Map::new(&network);
        let node = |id: usize| format!("{}@{}", map.nodes[id].name, map.nodes[id].layer);
        map.links.iter().map(|link| format!("{} > {}", node(link.from), node(link.to))).collect()
    }

    #[test]
    fn a_port_leads_to_the_switch_of_the_next_one() {
        let ports = [("a", "h1"), ("b", "l1"), ("c", "s1"), ("d", "l2")];
        assert_eq!(map(&ports, &[&[0, 1, 2, 3]]), ["h1@0 > l1@1", "l1@1 > s1@2", "s1@2 > l2@1", "l2@1 > d@0"]);
    }

    #[test]
    fn a_last_port_leads_to_whom_its_name_ends_in() {
        let ports = [
            ("h1-l1", "h1"),
            ("l1-h2", "l1"),
            ("h2-l1", "h2"),
            ("l1-h1", "l1"),
            ("l1-h9", "l1"),
            ("l1-h8", "l1"),
            ("up", "l1"),
        ];
        let said = ["h1@0 > l1@1", "l1@1 > h2@0", "h2@0 > l1@1", "l1@1 > h1@0", "l1@1 > h9@0"];
        assert_eq!(map(&ports, &[&[0, 1], &[4]]), said);
    }
}
