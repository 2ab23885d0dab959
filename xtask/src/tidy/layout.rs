// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules about what may know what.

use super::{File, Finding, algo};
use regex::Regex;

/// A header of the library includes its siblings, and of C no more than integers and truth; or the compiler's own
/// vectors, which need no C library either.
pub fn includes(files: &[File]) -> Vec<Finding> {
    let Ok(include) = Regex::new(r#"^\s*#\s*include\s+[<"]([^>"]+)[>"]"#) else {
        return Vec::new();
    };
    let siblings: Vec<&str> = algo::headers(files).map(|(name, _)| name).collect();
    let mut findings = Vec::new();
    for (_, file) in algo::headers(files) {
        for (number, line) in file.lines() {
            let Some(found) = include.captures(line) else { continue };
            let target = &found[1];
            if !siblings.contains(&target) && !matches!(target, "stdint.h" | "stdbool.h" | "emmintrin.h") {
                findings.push(file.finding(number, format!("{target} is no header of the library")));
            }
        }
    }
    findings
}

/// A crate builds only on those before it.
const CRATES: &[&str] = &[
    "penstock-algo",
    "penstock-policy",
    "penstock-alloc",
    "penstock-packet",
    "penstock-shaper",
    "penstock-dataplane",
    "penstock-plot",
    "penstock-lab",
    "penstock-api",
    "penstock-controller",
    "penstock-node",
    "penstock",
];

/// Crates build on each other in one direction. (Tests may look anywhere.)
pub fn crates(files: &[File]) -> Vec<Finding> {
    let rank = |name: &str| CRATES.iter().position(|&crate_name| crate_name == name);
    let mut findings = Vec::new();
    for file in files {
        let Some(name) = file.path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/Cargo.toml")) else {
            continue;
        };
        let Some(own) = rank(name) else {
            findings.push(file.finding(1, format!("{name} has no place in the order of crates (xtask/src/tidy)")));
            continue;
        };
        let mut section = "";
        for (number, line) in file.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
            let shipped = section.ends_with("dependencies]") && !section.contains("dev-");
            if shipped && dependency.starts_with("penstock") && rank(dependency).is_none_or(|other| other >= own) {
                findings.push(file.finding(number, format!("{name} must not know {dependency}")));
            }
        }
    }
    findings
}

/// Every algorithm has a test that names its header.
pub fn untested_headers(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, file) in algo::algorithms(files) {
        let include = format!("penstock/{name}");
        if !files.iter().any(|test| test.is_test() && test.text.contains(&include)) {
            findings.push(file.finding(1, format!("no test names {include}")));
        }
    }
    findings
}
