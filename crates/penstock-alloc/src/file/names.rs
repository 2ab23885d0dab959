// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of ports and of classes, and what is said of one that nobody has.

use penstock_policy::diagnostics::{Problem, Span, closest, quote};
use penstock_policy::reader::Reader;
use penstock_policy::yaml::{Node, Value};
use std::cell::Cell;
use std::collections::HashMap;

/// Names that a message lists at most.
const LISTED_MAX: usize = 6;
/// Names that all messages together are compared with: a large file full of errors takes no minutes.
const COMPARED_MAX: usize = 2_000_000;

/// Names in the order of a file, each once.
pub struct Names<'n> {
    /// What has them.
    pub noun: &'static str,
    index: HashMap<&'n str, (u32, Span)>,
    order: Vec<&'n str>,
    compared: Cell<usize>,
}

impl<'n> Names<'n> {
    /// Of a port or a class.
    pub fn new(noun: &'static str) -> Self {
        Self { noun, index: HashMap::new(), order: Vec::new(), compared: Cell::new(0) }
    }

    /// More than one of what has them.
    pub fn plural(&self) -> &'static str {
        if self.noun == "class" { "classes" } else { "ports" }
    }

    /// Takes the next name; where it stood before, if it did.
    pub fn add(&mut self, node: &'n Node) -> Option<Span> {
        let Value::Scalar(text) = &node.value else { return None };
        let next = u32::try_from(self.order.len()).unwrap_or(u32::MAX);
        match self.index.get(text.as_str()) {
            Some(&(_, first)) => Some(first),
            None => {
                self.index.insert(text, (next, node.span));
                self.order.push(text);
                None
            }
        }
    }

    /// Whose it is; says so when it is nobody's.
    pub fn find(&self, reader: &mut Reader<'_>, node: &Node) -> Option<u32> {
        let example = format!("the name of a {}", self.noun);
        let text = reader.text(node, &format!("a {}", self.noun), &example)?;
        match self.index.get(text) {
            Some(&(index, _)) => Some(index),
            None => {
                reader.fail(node.span, self.unknown(text));
                None
            }
        }
    }

    /// The name of an index.
    pub fn name(&self, index: u32) -> &'n str {
        self.order.get(index as usize).copied().unwrap_or_default()
    }

    fn unknown(&self, text: &str) -> Problem {
        let compared = self.compared.get() + self.order.len();
        self.compared.set(compared);
        let names = if compared <= COMPARED_MAX { self.order.as_slice() } else { &[] };
        unknown(self.noun, self.plural(), text, names)
    }
}

/// There is nothing of that name; which one may have been meant.
#[must_use]
pub fn unknown(noun: &str, plural: &str, text: &str, names: &[&str]) -> Problem {
    let help = match closest(text, names) {
        Some(word) => format!("did you mean `{word}`?"),
        None if names.is_empty() => String::new(),
        None => {
            let some: Vec<&str> = names.iter().copied().take(LISTED_MAX).collect();
            let more = if names.len() > some.len() {
                format!(" and {} more", names.len() - some.len())
            } else {
                String::new()
            };
            format!("{plural}: {}{more}", some.join(", "))
        }
    };
    Problem::new(format!("there is no {noun} {}", quote(text)), help)
}
