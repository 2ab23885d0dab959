// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules about what people read.

use super::{File, Finding};
use regex::Regex;

/// No path that exists on one machine only.
pub fn machine_paths(files: &[File]) -> Vec<Finding> {
    let folders = ["work", "root", "home", "Users"].join("|");
    let Ok(pattern) = Regex::new(&format!(r"(?:^|[^\w.])/(?:{folders})/")) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for file in files {
        for (number, line) in file.lines().filter(|(_, line)| pattern.is_match(line)) {
            findings.push(file.finding(number, format!("a path of one machine: {}", line.trim())));
        }
    }
    findings
}

/// A link of a page to a file of the project.
struct Link {
    line: usize,
    /// From the project's root.
    target: String,
}

/// The links of a page, those to other sites aside.
fn links(page: &File) -> Vec<Link> {
    let Ok(pattern) = Regex::new(r"\]\(([^)\s#]+)[^)]*\)") else {
        return Vec::new();
    };
    let folder = page.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut found = Vec::new();
    let mut in_code = false;
    for (line, text) in page.lines() {
        in_code ^= text.starts_with("```");
        for link in pattern.captures_iter(text).filter(|_| !in_code) {
            if !link[1].contains(':') {
                found.push(Link { line, target: join(folder, &link[1]) });
            }
        }
    }
    found
}

fn join(folder: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

fn pages(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|file| file.extension() == "md")
}

/// A link leads to a file or folder that exists.
pub fn broken_links(files: &[File]) -> Vec<Finding> {
    let exists = |target: &str| {
        let folder = format!("{target}/");
        files.iter().any(|file| file.path == target || file.path.starts_with(&folder))
    };
    let mut findings = Vec::new();
    for page in pages(files) {
        for link in links(page).into_iter().filter(|link| !exists(&link.target)) {
            findings.push(page.finding(link.line, format!("links to {}, which does not exist", link.target)));
        }
    }
    findings
}

/// A page that no other page links to is never read.
pub fn unlinked_pages(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in pages(files).filter(|page| page.path != "README.md") {
        let linked = |other: &File| other.path != page.path && links(other).iter().any(|l| l.target == page.path);
        if !pages(files).any(linked) {
            findings.push(page.finding(1, "no page links to it"));
        }
    }
    findings
}

/// The changelog keeps the form of Keep a Changelog.
pub fn changelog(files: &[File]) -> Vec<Finding> {
    let Some(file) = files.iter().find(|file| file.path == "CHANGELOG.md") else {
        return vec![Finding { place: "CHANGELOG.md".to_owned(), says: "is missing".to_owned() }];
    };
    let Ok(release) = Regex::new(r"^## \[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}$") else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut first = true;
    for (number, line) in file.lines() {
        if line.starts_with("## ") {
            if first && line != "## [Unreleased]" {
                findings.push(file.finding(number, "the first section is `## [Unreleased]`"));
            } else if !first && !release.is_match(line) {
                findings.push(file.finding(number, "a release is `## [1.2.3] - 2026-11-21`"));
            }
            first = false;
        }
        if let Some(kind) = line.strip_prefix("### ")
            && !matches!(kind, "Added" | "Changed" | "Deprecated" | "Removed" | "Fixed" | "Security")
        {
            findings.push(file.finding(number, format!("`{kind}` is no kind of change")));
        }
    }
    if first {
        findings.push(file.finding(1, "has no section `## [Unreleased]`"));
    }
    findings
}
