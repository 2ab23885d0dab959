// SPDX-License-Identifier: MIT OR Apache-2.0
//! Taking a tree apart: types, known keys, required keys. Every error is collected; a value that is wrong reads as absent.

use crate::diagnostics::{Diagnostic, Errors, Problem, Source, Span, did_you_mean, quote};
use crate::yaml::{Key, Node, Value};

/// Longest name of a policy, port, link or class, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Collects what is wrong with one file.
pub struct Reader<'a> {
    /// The file.
    pub source: &'a Source,
    /// What was found.
    pub errors: Errors,
}

impl<'a> Reader<'a> {
    /// Nothing is wrong yet.
    #[must_use]
    pub fn new(source: &'a Source) -> Self {
        Self { source, errors: Errors::default() }
    }

    /// Something is wrong there.
    pub fn fail(&mut self, span: Span, problem: Problem) {
        self.errors.push(Diagnostic::new(self.source.place(span), problem));
    }

    /// Something is wrong there because of what stood elsewhere before.
    pub fn fail_twice(&mut self, span: Span, problem: Problem, first: Span) {
        let diagnostic = Diagnostic::new(self.source.place(span), problem);
        self.errors.push(diagnostic.with_related(self.source.place(first), "first here"));
    }

    /// A map of any keys.
    pub fn open_map<'n>(&mut self, node: &'n Node, what: &str, example: &str) -> Option<&'n [(Key, Node)]> {
        match &node.value {
            Value::Map(entries) => Some(entries),
            other => {
                let message = format!("{what} must be a map, not {}", other.describe());
                self.fail(node.span, Problem::new(message, example));
                None
            }
        }
    }

    /// A map that has only these keys.
    pub fn map<'n>(&mut self, node: &'n Node, what: &str, known: &[&str], example: &str) -> Option<&'n [(Key, Node)]> {
        let entries = self.open_map(node, what, example)?;
        for (key, _) in entries {
            if !known.contains(&key.text.as_str()) {
                let help = did_you_mean(&key.text, "known keys here", known);
                self.fail(key.span, Problem::new(format!("unknown key {} in {what}", quote(&key.text)), help));
            }
        }
        Some(entries)
    }

    /// A list.
    pub fn list<'n>(&mut self, node: &'n Node, what: &str, example: &str) -> Option<&'n [Node]> {
        match &node.value {
            Value::List(items) => Some(items),
            other => {
                let message = format!("{what} must be a list, not {}", other.describe());
                self.fail(node.span, Problem::new(message, example));
                None
            }
        }
    }

    /// A scalar that is not empty.
    pub fn text<'n>(&mut self, node: &'n Node, what: &str, example: &str) -> Option<&'n str> {
        match &node.value {
            Value::Scalar(text) if !text.is_empty() => Some(text),
            other => {
                let message = format!("{what} must be a single value, not {}", other.describe());
                self.fail(node.span, Problem::new(message, example));
                None
            }
        }
    }

    /// A scalar through its own parser.
    pub fn value<T>(
        &mut self,
        node: &Node,
        what: &str,
        example: &str,
        parse: impl Fn(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        let text = self.text(node, what, example)?;
        match parse(text) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.fail(node.span, problem);
                None
            }
        }
    }

    /// One of some words.
    pub fn word<T: Copy>(&mut self, node: &Node, what: &str, words: &[(&str, T)]) -> Option<T> {
        self.value(node, what, &format!("one of: {}", names(words).join(", ")), |text| parse_word(text, what, words))
    }

    /// The value of a key that must be there.
    pub fn required<'n>(
        &mut self,
        entries: &'n [(Key, Node)],
        key: &str,
        parent: Span,
        what: &str,
        example: &str,
    ) -> Option<&'n Node> {
        let found = get(entries, key);
        if found.is_none() {
            self.fail(parent, Problem::new(format!("{what} has no `{key}`"), format!("add `{key}: {example}`")));
        }
        found
    }

    /// A name that people and paths can carry.
    pub fn name(&mut self, node: &Node, what: &str) -> Option<String> {
        let example = "a name such as `gold`";
        self.value(node, what, example, |text| match text {
            _ if text.len() > NAME_BYTES_MAX => {
                let message = format!("{what} {} is too long", quote(text));
                Err(Problem::new(message, format!("at most {NAME_BYTES_MAX} bytes")))
            }
            _ if text.contains('/') || text.chars().any(|char| char.is_control() || char.is_whitespace()) => {
                let message = format!("{what} {} has a slash, a space or a control character", quote(text));
                Err(Problem::new(message, "paths such as `down/gold` are made of names"))
            }
            _ => Ok(text.to_owned()),
        })
    }
}

/// The value of a key.
#[must_use]
pub fn get<'n>(entries: &'n [(Key, Node)], key: &str) -> Option<&'n Node> {
    entries.iter().find(|(known, _)| known.text == key).map(|(_, node)| node)
}

/// One of some words.
///
/// # Errors
/// It is none of them.
pub fn parse_word<T: Copy>(text: &str, what: &str, words: &[(&str, T)]) -> Result<T, Problem> {
    match words.iter().find(|&&(word, _)| word == text) {
        Some(&(_, value)) => Ok(value),
        None => {
            let help = did_you_mean(text, "one of", &names(words));
            Err(Problem::new(format!("{} is not a value of {what}", quote(text)), help))
        }
    }
}

fn names<'w, T>(words: &[(&'w str, T)]) -> Vec<&'w str> {
    words.iter().map(|&(word, _)| word).collect()
}
