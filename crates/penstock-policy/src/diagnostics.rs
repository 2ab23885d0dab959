// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with a file, where, and what would be right.
//!
//! A [`Problem`] is a finding without a place (a unit that does not exist); a [`Diagnostic`] is one with a place.
//! Columns count characters from 1, lines count from 1, as editors do.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, normalize_untrusted_str};
use std::fmt::Write as _;
use std::sync::Arc;

/// Longest piece of a user's text that a message repeats, in characters.
const QUOTE_MAX: usize = 60;
/// Most errors that are listed; further ones are counted.
const LISTED_MAX: usize = 1_000;
/// How much of a line stands before and behind a place, in characters. What a program writes is often one line of megabytes.
const AROUND_MAX: usize = 200;

/// What is wrong with a value, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// What would be right; may be empty.
    pub help: String,
}

impl Problem {
    /// A problem and its remedy.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into() }
    }
}

/// A user's text between backticks: short, and free of control characters.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut short: String = text.chars().take(QUOTE_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("`{}`", normalize_untrusted_str(&short).trim_end_matches('\n'))
}

/// The known word that `text` was probably meant to be: the closest one, at most a third of its letters away.
#[must_use]
pub fn closest<'a>(text: &str, known: &[&'a str]) -> Option<&'a str> {
    if text.len() > QUOTE_MAX {
        return None;
    }
    let lower = text.to_lowercase();
    known
        .iter()
        .map(|&word| (strsim::damerau_levenshtein(&lower, &word.to_lowercase()), word))
        .filter(|&(distance, word)| distance <= (word.len() / 3).max(1) && distance < word.len())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, word)| word)
}

/// "did you mean `x`?" when one of the known words is close, else all of them.
#[must_use]
pub fn did_you_mean(text: &str, what: &str, known: &[&str]) -> String {
    match closest(text, known) {
        Some(word) => format!("did you mean `{word}`?"),
        None => format!("{what}: {}", known.join(", ")),
    }
}

/// A stretch of a file. `end_*` is where it stops; a stretch over several lines is shown up to the end of its first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// First line.
    pub line: usize,
    /// Column of the first character.
    pub column: usize,
    /// Line of the end.
    pub end_line: usize,
    /// Column behind the last character.
    pub end_column: usize,
}

/// A file's name and text.
#[derive(Debug, Default)]
pub struct Source {
    name: String,
    text: String,
    line_starts: Vec<usize>,
    /// Every character is a byte, so that a column need not be counted out.
    is_ascii: bool,
}

impl Source {
    /// Takes a text and finds its lines; LF, CR LF and CR end a line, as YAML has it.
    #[must_use]
    pub fn new(name: &str, text: String) -> Self {
        let bytes = text.as_bytes();
        let mut line_starts = vec![0];
        for (index, &byte) in bytes.iter().enumerate() {
            if byte == b'\n' || (byte == b'\r' && bytes.get(index + 1) != Some(&b'\n')) {
                line_starts.push(index + 1);
            }
        }
        let is_ascii = text.is_ascii();
        Self { name: name.to_owned(), text, line_starts, is_ascii }
    }

    /// The name under which errors speak of it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place of a span: what a diagnostic needs of the file.
    #[must_use]
    pub fn place(&self, span: Span) -> Place {
        let line = self.line(span.line);
        let end_column = if span.end_line == span.line {
            span.end_column
        } else if self.is_ascii {
            line.len() + 1
        } else {
            line.chars().count() + 1
        };
        let first = span.column.saturating_sub(1 + AROUND_MAX);
        let byte = if self.is_ascii { first.min(line.len()) } else { byte_at(line, first) };
        Place::cut(&self.name, span.line, (span.column, end_column), first, &line[byte..])
    }

    fn line(&self, number: usize) -> &str {
        let index = number.saturating_sub(1);
        let start = self.line_starts.get(index).copied().unwrap_or(self.text.len());
        let end = self.line_starts.get(index + 1).copied().unwrap_or(self.text.len());
        self.text.get(start..end).unwrap_or_default().trim_end()
    }
}

/// Where the character of that number starts, or where the text ends.
fn byte_at(text: &str, characters: usize) -> usize {
    text.char_indices().nth(characters).map_or(text.len(), |(byte, _)| byte)
}

/// Where something is: file, line, column, and the line's text around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    file: Arc<str>,
    line: usize,
    column: usize,
    length: usize,
    /// What stands around it in its line.
    text: String,
    /// Characters of the line before that.
    skipped: usize,
}

impl Place {
    /// A place in a line: `column..end_column` are 1-based characters.
    #[must_use]
    pub fn new(file: &str, line: usize, column: usize, end_column: usize, text: &str) -> Self {
        let first = column.saturating_sub(1 + AROUND_MAX);
        Self::cut(file, line, (column, end_column), first, &text[byte_at(text, first)..])
    }

    /// A place in a line whose `skipped` first characters are gone; the text far behind it goes as well.
    fn cut(file: &str, line: usize, columns: (usize, usize), skipped: usize, rest: &str) -> Self {
        let (column, end_column) = columns;
        let length = end_column.saturating_sub(column).max(1);
        let text = rest[..byte_at(rest, 2 * AROUND_MAX)].to_owned();
        Self { file: Arc::from(file), line, column, length, text, skipped }
    }

    /// Name of the file.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Line, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// Column in characters, from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// The source line with a caret under the place.
    fn snippet(&self, level: Level<'static>, renderer: &Renderer) -> String {
        let before = self.column.saturating_sub(1 + self.skipped);
        let start = byte_at(&self.text, before);
        let end = byte_at(&self.text, before.saturating_add(self.length));
        let snippet =
            Snippet::source(&self.text).line_start(self.line).annotation(AnnotationKind::Primary.span(start..end));
        renderer.render(&[Group::with_level(level).element(snippet)])
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A problem and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where.
    pub place: Place,
    /// What, and what would be right.
    pub problem: Problem,
    /// Other places that have a part in it, and which.
    pub related: Vec<(Place, String)>,
}

impl Diagnostic {
    /// A problem at a place.
    #[must_use]
    pub fn new(place: Place, problem: Problem) -> Self {
        Self { place, problem, related: Vec::new() }
    }

    /// Adds another place that has a part in it.
    #[must_use]
    pub fn with_related(mut self, place: Place, message: impl Into<String>) -> Self {
        self.related.push((place, message.into()));
        self
    }

    fn render(&self, renderer: &Renderer, out: &mut String) {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}: error: {}", self.place, self.problem.message);
        let _ = writeln!(out, "{}", self.place.snippet(Level::ERROR, renderer));
        for (place, message) in &self.related {
            let _ = writeln!(out, "{place}: note: {message}");
            let _ = writeln!(out, "{}", place.snippet(Level::NOTE, renderer));
        }
        if !self.problem.help.is_empty() {
            let _ = writeln!(out, "  help: {}", self.problem.help);
        }
    }
}

/// Everything that is wrong with a policy, in the order of its files and lines.
///
/// `{}` prints it in full: `file:line:column: error: ...`, the line with a caret, what would be right.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.render(false).trim_end())]
pub struct Errors {
    diagnostics: Vec<Diagnostic>,
    /// Errors found but not kept, by file.
    unlisted: Vec<(String, u64)>,
}

impl Errors {
    /// The errors, in order.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// How many there are, listed or not.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.diagnostics.len() as u64 + self.unlisted.iter().map(|(_, count)| count).sum::<u64>()
    }

    /// Adds an error, unless the same one is already there (an alias repeats what its anchor holds).
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() >= LISTED_MAX {
            self.push_unlisted(diagnostic.place.file(), 1);
        } else if !self.diagnostics.contains(&diagnostic) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Notes that `file` has `count` more errors than are listed.
    pub fn push_unlisted(&mut self, file: &str, count: u64) {
        match self.unlisted.iter_mut().find(|(name, _)| name == file) {
            Some((_, sum)) => *sum += count,
            None => self.unlisted.push((file.to_owned(), count)),
        }
    }

    /// Adds all of another's errors.
    pub fn append(&mut self, mut other: Errors) {
        self.diagnostics.append(&mut other.diagnostics);
        self.unlisted.append(&mut other.unlisted);
    }

    /// `value` if there are no errors, else the errors, sorted by position within each file.
    pub fn into_result<T>(mut self, value: T) -> Result<T, Errors> {
        if self.is_empty() {
            return Ok(value);
        }
        let mut files: Vec<Arc<str>> = Vec::new();
        for diagnostic in &self.diagnostics {
            if !files.contains(&diagnostic.place.file) {
                files.push(Arc::clone(&diagnostic.place.file));
            }
        }
        self.diagnostics.sort_by_key(|diagnostic| {
            let place = &diagnostic.place;
            (files.iter().position(|file| *file == place.file), place.line, place.column)
        });
        Err(self)
    }

    /// The errors as a person reads them.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let mut out = String::new();
        for diagnostic in &self.diagnostics {
            diagnostic.render(&renderer, &mut out);
        }
        for (file, count) in &self.unlisted {
            let plural = if *count == 1 { "" } else { "s" };
            let _ = writeln!(out, "{file}: {count} more error{plural}");
        }
        out
    }
}
