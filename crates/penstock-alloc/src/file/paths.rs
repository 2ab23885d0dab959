// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths of a class: which ports they meet, and that they do not meet a switch twice.

use super::names::Names;
use crate::model::{Port, PortId};
use penstock_policy::diagnostics::{Problem, Span, quote};
use penstock_policy::reader::Reader;
use penstock_policy::yaml::Node;
use std::collections::HashMap;

const PATHS_EXAMPLE: &str = "such as `[ [h1-l1, l1-s1] ]`: a list of ports for each way";

/// Reads the paths of one class after the other.
pub struct Paths {
    /// Of each port, the number of its switch.
    switches: Vec<usize>,
    /// Of each switch: the last path that met it, counted from 1, and where.
    met: Vec<(usize, PortId, Span)>,
    path: usize,
    steps: usize,
}

/// The ports that paths may meet.
#[derive(Clone, Copy)]
pub struct Ports<'a> {
    pub ports: &'a [Port],
    pub names: &'a Names,
}

impl Paths {
    /// Of a network with these ports.
    pub fn new(ports: &[Port]) -> Self {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        // A switch whose name is wrong is one of its own for each port.
        let mut switches: Vec<usize> = Vec::with_capacity(ports.len());
        let mut count = 0;
        for port in ports {
            let fresh = count;
            let number = if port.switch.is_empty() { fresh } else { *numbers.entry(&port.switch).or_insert(fresh) };
            count += usize::from(number == fresh);
            switches.push(number);
        }
        Self { switches, met: vec![(0, 0, Span::default()); count], path: 0, steps: 0 }
    }

    /// Ports of all paths that were read.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The paths of a class; none when one of them is wrong.
    pub fn read(&mut self, reader: &mut Reader<'_>, node: &Node, known: Ports<'_>) -> Option<Vec<Vec<PortId>>> {
        let items = reader.list(node, "`paths`", PATHS_EXAMPLE)?;
        if items.is_empty() {
            reader.fail(node.span, Problem::new("this class has no paths", PATHS_EXAMPLE));
        }
        let mut paths = Vec::with_capacity(items.len());
        for item in items {
            paths.extend(self.path(reader, item, known));
        }
        (!paths.is_empty() && paths.len() == items.len()).then_some(paths)
    }

    fn path(&mut self, reader: &mut Reader<'_>, node: &Node, known: Ports<'_>) -> Option<Vec<PortId>> {
        let items = reader.list(node, "a path", PATHS_EXAMPLE)?;
        if items.is_empty() {
            reader.fail(
                node.span,
                Problem::new("this path is empty", "list the ports that it leaves by, such as `[h1-l1, l1-s1]`"),
            );
            return None;
        }
        self.path += 1;
        self.steps += items.len();
        let mut path = Vec::with_capacity(items.len());
        for item in items {
            if let Some(port) = known.names.find(reader, item)
                && self.is_first_at(reader, port, item.span, known.ports)
            {
                path.push(port);
            }
        }
        (path.len() == items.len()).then_some(path)
    }

    /// Whether this path has not met the port's switch before; says so when it has.
    fn is_first_at(&mut self, reader: &mut Reader<'_>, port: PortId, span: Span, ports: &[Port]) -> bool {
        let Some(met) = self.switches.get(port as usize).and_then(|&switch| self.met.get_mut(switch)) else {
            return false;
        };
        let (path, before, first) = *met;
        *met = (self.path, port, span);
        if path != self.path {
            return true;
        }
        let name = |id: PortId| ports.get(id as usize).map(|port| quote(&port.name)).unwrap_or_default();
        let problem = if before == port {
            Problem::new(format!("this path meets the port {} twice", name(port)), "a path is a way without cycles")
        } else {
            let switch = ports.get(port as usize).map(|port| quote(&port.switch)).unwrap_or_default();
            let message =
                format!("this path leaves the switch {switch} twice, by {} and by {}", name(before), name(port));
            Problem::new(message, "a path is a way without cycles; two ways are two paths")
        };
        reader.fail_twice(span, problem, first);
        false
    }
}
