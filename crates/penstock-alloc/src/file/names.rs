// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of ports, classes and aggregates, and what is said of one that nobody has.

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
pub struct Names {
    /// What has them.
    pub noun: &'static str,
    index: HashMap<Box<str>, (u32, Span)>,
    compared: Cell<usize>,
}

impl Names {
    /// Of a port, a class or an aggregate.
    pub fn new(noun: &'static str) -> Self {
        Self { noun, index: HashMap::new(), compared: Cell::new(0) }
    }

    /// What comes before one of them.
    pub fn article(&self) -> &'static str {
        if self.noun == "aggregate" { "an" } else { "a" }
    }

    /// More than one of what has them.
    pub fn plural(&self) -> &'static str {
        match self.noun {
            "class" => "classes",
            "aggregate" => "aggregates",
            _ => "ports",
        }
    }

    /// Takes the next name; where it stood before, if it did.
    pub fn add(&mut self, node: &Node) -> Option<Span> {
        let Value::Scalar(text) = &node.value else { return None };
        let next = u32::try_from(self.index.len()).unwrap_or(u32::MAX);
        match self.index.get(text.as_str()) {
            Some(&(_, first)) => Some(first),
            None => {
                self.index.insert(text.as_str().into(), (next, node.span));
                None
            }
        }
    }

    /// Where it stands, if somebody has it.
    pub fn place(&self, text: &str) -> Option<Span> {
        self.index.get(text).map(|&(_, span)| span)
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

    fn unknown(&self, text: &str) -> Problem {
        let compared = self.compared.get() + self.index.len();
        self.compared.set(compared);
        if compared > COMPARED_MAX {
            return unknown(self.noun, self.plural(), text, &[]);
        }
        let mut names: Vec<(u32, &str)> = self.index.iter().map(|(name, &(index, _))| (index, &**name)).collect();
        names.sort_unstable();
        let names: Vec<&str> = names.into_iter().map(|(_, name)| name).collect();
        unknown(self.noun, self.plural(), text, &names)
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
