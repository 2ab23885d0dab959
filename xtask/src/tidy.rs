// SPDX-License-Identifier: MIT OR Apache-2.0
//! The house's rules as a test: one rule is one function from the tree to what breaks it.

mod algo;
mod layout;
mod prose;
mod source;
#[cfg(test)]
mod tests;

use anyhow::{Context, Result, bail};
use std::process::Command;

/// A file of the project.
struct File {
    /// From the project's root, with `/`.
    path: String,
    text: String,
}

impl File {
    /// Lines with their numbers, from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    fn finding(&self, line: usize, says: impl Into<String>) -> Finding {
        Finding { place: format!("{}:{line}", self.path), says: says.into() }
    }

    fn extension(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    fn is_generated(&self) -> bool {
        self.path.contains("__generated__/") || self.path == "Cargo.lock"
    }

    /// Code that people write: it carries a licence line, and the other rules about source look at it.
    fn is_source(&self) -> bool {
        matches!(self.extension(), "rs" | "c" | "h" | "cpp" | "py" | "sh" | "awk" | "ts")
            || self.path.ends_with("Makefile")
            || self.text.starts_with("#!")
    }

    fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        self.path.split('/').any(|folder| folder == "test" || folder == "tests")
            || name.ends_with("tests.rs")
            || name.starts_with("test_")
    }
}

/// A place that breaks a rule.
#[derive(Debug)]
struct Finding {
    place: String,
    says: String,
}

type Rule = fn(&[File]) -> Vec<Finding>;

const RULES: &[(&str, Rule)] = &[
    ("licence", source::licence),
    ("length", source::length),
    ("unfinished", source::unfinished),
    ("machine paths", prose::machine_paths),
    ("banned words", algo::banned_words),
    ("units", algo::units),
    ("header sections", algo::header_sections),
    ("function length", algo::function_length),
    ("include direction", layout::includes),
    ("crate direction", layout::crates),
    ("untested headers", layout::untested_headers),
    ("links", prose::broken_links),
    ("unlinked pages", prose::unlinked_pages),
    ("changelog", prose::changelog),
];

/// Fails when a file of the project breaks a rule, and prints every place.
pub fn check() -> Result<()> {
    let files = project_files()?;
    let mut report = String::new();
    for (name, rule) in RULES {
        for finding in rule(&files) {
            report.push_str(&format!("{}: {name}: {}\n", finding.place, finding.says));
        }
    }
    if !report.is_empty() {
        bail!("{} places break a rule of the house:\n{report}", report.lines().count());
    }
    Ok(())
}

/// Every file that git tracks or would track.
fn project_files() -> Result<Vec<File>> {
    let root = crate::generate::root();
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"])
        .current_dir(&root)
        .output()
        .context("cannot run git")?;
    if !listed.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    }
    let paths = String::from_utf8(listed.stdout).context("a file name is not UTF-8")?;
    let mut files = Vec::new();
    for path in paths.split_terminator('\0') {
        let place = root.join(path);
        // Deleted, but not yet committed so.
        if !place.exists() {
            continue;
        }
        // What is not text can be linked to, and breaks no other rule.
        let text = std::fs::read_to_string(place).unwrap_or_default();
        files.push(File { path: path.to_owned(), text });
    }
    Ok(files)
}
