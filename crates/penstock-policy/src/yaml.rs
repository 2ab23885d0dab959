// SPDX-License-Identifier: MIT OR Apache-2.0
//! YAML (and so JSON) as a tree that remembers where everything stood.
//!
//! Bounds    a document nests at most [`DEPTH_MAX`] deep, and aliases copy at most [`COPIES_MAX`] nodes in all, so neither a
//!           tower of brackets nor a "billion laughs" can exhaust stack or memory. The file's size is bounded by its reader.
//! Not done  tags, several documents in one file, keys that are not plain text: each is an error.

use crate::diagnostics::{Diagnostic, Errors, Problem, Source, Span, quote};
use saphyr_parser::{Event, Marker, Parser, ScanError};
use std::collections::HashMap;

/// Deepest nesting of lists and maps.
pub const DEPTH_MAX: usize = 64;
/// A map of that many keys finds them by hash; a smaller one, as most are, by looking at each.
const FEW: usize = 16;
/// Nodes that anchors and aliases may copy.
pub const COPIES_MAX: usize = 100_000;

/// A value and where it stood.
#[derive(Debug, Clone)]
pub struct Node {
    /// From its first character to behind its last.
    pub span: Span,
    /// What it is.
    pub value: Value,
}

/// What a node is. Scalars stay text: each field knows its own syntax.
#[derive(Debug, Clone)]
pub enum Value {
    /// A word, number or string; quotes are gone.
    Scalar(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping; keys are unique.
    Map(Vec<(Key, Node)>),
}

/// A key of a mapping.
#[derive(Debug, Clone)]
pub struct Key {
    /// Where it stood.
    pub span: Span,
    /// Its text.
    pub text: String,
}

impl Value {
    /// "a list", "a map" or the scalar itself, for messages.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Value::Scalar(text) if text.is_empty() => "an empty one".to_owned(),
            Value::Scalar(text) => quote(text),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
        }
    }
}

/// Reads the one document of a source.
///
/// # Errors
/// The first syntax error, or all duplicate keys.
pub fn read(source: &Source) -> Result<Node, Errors> {
    read_items(source, "penstock: 1", &mut |_, _, item| Some(item))
}

/// The same of a file that starts with another word, which an empty one is told. `take` gets each item of each list that is a value of the document's
/// map as soon as it is complete, with the entries before that list and its key; what it gives back goes into the tree. So a list of
/// any length need never be in memory as a whole.
///
/// # Errors
/// The same.
pub fn read_items(source: &Source, start: &str, take: &mut Take<'_>) -> Result<Node, Errors> {
    let mut builder =
        Builder { take, open: Vec::new(), root: None, anchors: HashMap::new(), copies: 0, duplicates: Vec::new() };
    let mut parser = Parser::new_from_str(source.text());
    let mut stopped = None;
    while let Some(event) = parser.next_event() {
        let result = match event {
            Ok((event, span)) => builder.event(event, &span),
            Err(error) => Err(syntax(&error)),
        };
        if let Err(finding) = result {
            stopped = Some(finding);
            break;
        }
    }
    let mut errors = Errors::default();
    for (span, problem, first) in builder.duplicates {
        let diagnostic = Diagnostic::new(source.place(span), problem);
        errors.push(diagnostic.with_related(source.place(first), "first here"));
    }
    if let Some((span, problem)) = stopped {
        errors.push(Diagnostic::new(source.place(span), problem));
    }
    match builder.root {
        Some(root) => errors.into_result(root),
        None if errors.is_empty() => {
            let place = source.place(Span { line: 1, column: 1, end_line: 1, end_column: 1 });
            let problem = Problem::new("the file is empty", format!("it starts with `{start}`"));
            errors.push(Diagnostic::new(place, problem));
            Err(errors)
        }
        None => Err(errors),
    }
}

/// Entries before the list, its key, the item; and what goes into the tree.
pub type Take<'t> = dyn FnMut(&[(Key, Node)], &Key, Node) -> Option<Node> + 't;

type Finding = (Span, Problem);

fn at(start: Marker, end: Marker) -> Span {
    Span { line: start.line(), column: start.col() + 1, end_line: end.line(), end_column: end.col() + 1 }
}

fn syntax(error: &ScanError) -> Finding {
    let marker = *error.marker();
    let help = if error.info().contains("mapping values are not allowed") {
        "a second `:` on a line needs braces, as in `unmatched: { class: NAME }`; text with `: ` in it needs quotes"
    } else if error.info().contains('\t') || error.info().contains("tab") {
        "indent with spaces"
    } else {
        ""
    };
    (at(marker, marker), Problem::new(format!("not valid YAML: {}", error.info()), help))
}

/// A list or map that is not closed yet.
struct Open {
    anchor: usize,
    node: Node,
    key: Option<Key>,
    /// Keys of a map that has more than a few.
    seen: HashMap<String, Span>,
}

struct Builder<'t, 'u> {
    take: &'t mut Take<'u>,
    open: Vec<Open>,
    root: Option<Node>,
    anchors: HashMap<usize, Node>,
    copies: usize,
    duplicates: Vec<(Span, Problem, Span)>,
}

impl Builder<'_, '_> {
    fn event(&mut self, event: Event<'_>, span: &saphyr_parser::Span) -> Result<(), Finding> {
        let place = at(span.start, span.end);
        match event {
            Event::Scalar(_, _, _, Some(tag))
            | Event::SequenceStart(_, Some(tag))
            | Event::MappingStart(_, Some(tag)) => {
                let what = format!("the tag {} has no meaning here", quote(&tag.to_string()));
                Err((place, Problem::new(what, "a text that starts with `!` needs quotes")))
            }
            Event::Scalar(text, _, anchor, None) => {
                self.finish(anchor, Node { span: place, value: Value::Scalar(text.into_owned()) })
            }
            Event::SequenceStart(anchor, None) => self.start(anchor, place, Value::List(Vec::new())),
            Event::MappingStart(anchor, None) => self.start(anchor, place, Value::Map(Vec::new())),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(mut open) => {
                    // Behind the bracket; a block ends where the next thing starts.
                    open.node.span.end_line = place.line;
                    open.node.span.end_column = place.column + 1;
                    self.finish(open.anchor, open.node)
                }
                None => Ok(()),
            },
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor) else {
                    return Err((place, Problem::new("an alias inside of its own anchor", "write the value out")));
                };
                let size = size(node);
                let node = node.clone();
                self.count_copies(size, place)?;
                self.finish(0, node)
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                Err((place, Problem::new("a second document in the same file", "remove it: a file holds one")))
            }
            _ => Ok(()),
        }
    }

    fn start(&mut self, anchor: usize, span: Span, value: Value) -> Result<(), Finding> {
        if self.open.len() >= DEPTH_MAX {
            return Err((span, Problem::new(format!("nested deeper than {DEPTH_MAX} levels"), "")));
        }
        if let Some(Open { node: Node { value: Value::Map(_), .. }, key: None, .. }) = self.open.last() {
            return Err((span, Problem::new("a key must be text", "")));
        }
        self.open.push(Open { anchor, node: Node { span, value }, key: None, seen: HashMap::new() });
        Ok(())
    }

    /// Puts a complete node where it belongs.
    fn finish(&mut self, anchor: usize, node: Node) -> Result<(), Finding> {
        if anchor != 0 {
            self.count_copies(size(&node), node.span)?;
            self.anchors.insert(anchor, node.clone());
        }
        let Some(node) = self.taken(node) else { return Ok(()) };
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.node.value {
            Value::Scalar(_) => {}
            Value::List(items) => items.push(node),
            Value::Map(entries) => match open.key.take() {
                Some(key) => match first(entries, &mut open.seen, &key) {
                    Some(first) => {
                        let problem = Problem::new(format!("the key {} is here twice", quote(&key.text)), "remove one");
                        self.duplicates.push((key.span, problem, first));
                    }
                    None => entries.push((key, node)),
                },
                None => match node.value {
                    Value::Scalar(text) => open.key = Some(Key { span: node.span, text }),
                    _ => return Err((node.span, Problem::new("a key must be text", ""))),
                },
            },
        }
        Ok(())
    }

    /// What is left of a node that is an item of a list of the document's map. A list with an anchor stays as it is.
    fn taken(&mut self, node: Node) -> Option<Node> {
        match self.open.as_slice() {
            [
                Open { node: Node { value: Value::Map(before), .. }, key: Some(key), .. },
                Open { node: Node { value: Value::List(_), .. }, anchor: 0, .. },
            ] => (self.take)(before, key, node),
            _ => Some(node),
        }
    }

    fn count_copies(&mut self, nodes: usize, span: Span) -> Result<(), Finding> {
        self.copies += nodes;
        if self.copies <= COPIES_MAX {
            return Ok(());
        }
        Err((span, Problem::new(format!("anchors and aliases expand to more than {COPIES_MAX} values"), "use fewer")))
    }
}

/// Where a key stood before; notes where it stands now, in a map of more than a few.
fn first(entries: &[(Key, Node)], seen: &mut HashMap<String, Span>, key: &Key) -> Option<Span> {
    if entries.len() < FEW {
        return entries.iter().find(|(known, _)| known.text == key.text).map(|(known, _)| known.span);
    }
    if seen.is_empty() {
        seen.extend(entries.iter().map(|(known, _)| (known.text.clone(), known.span)));
    }
    match seen.get(&key.text) {
        Some(&first) => Some(first),
        None => {
            seen.insert(key.text.clone(), key.span);
            None
        }
    }
}

/// Nodes in a tree; it is at most [`DEPTH_MAX`] deep, and an alias adds one tree below another.
fn size(node: &Node) -> usize {
    match &node.value {
        Value::Scalar(_) => 1,
        Value::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Map(entries) => 1 + entries.iter().map(|(_, node)| 1 + size(node)).sum::<usize>(),
    }
}
