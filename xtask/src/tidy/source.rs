// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules about every source file.

use super::{File, Finding};
use regex::Regex;

const LICENCE_OF_LIBRARY: &str = "SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)";
const LICENCE: &str = "SPDX-License-Identifier: MIT OR Apache-2.0";

/// Each source file names its folder's licence in its first three lines.
pub fn licence(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_source()) {
        // What is generated from the library's headers keeps their licence.
        let of_library =
            ["algo/", "bpf/", "lab/bpf/"].iter().any(|folder| file.path.starts_with(folder)) || file.is_generated();
        let wanted = if of_library { LICENCE_OF_LIBRARY } else { LICENCE };
        if !file.text.lines().take(3).any(|line| line.contains(wanted)) {
            findings.push(file.finding(1, format!("needs the line `{wanted}`")));
        }
    }
    findings
}

/// A source file has at most 500 lines, a test or a reference 900: beyond that it is two things.
pub fn length(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_source() && !file.is_generated()) {
        let most = if file.is_test() || file.path.starts_with("algo/ref/") { 900 } else { 500 };
        let lines = file.text.lines().count();
        if lines > most {
            findings.push(file.finding(lines, format!("{lines} lines, and {most} are the most: split it by noun")));
        }
    }
    findings
}

/// No note to oneself is left in the source: it is done, or it is an issue.
pub fn unfinished(files: &[File]) -> Vec<Finding> {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
    let Ok(pattern) = Regex::new(&format!(r"\b({})\b", words.join("|"))) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_source() && !file.is_generated()) {
        for (number, line) in file.lines() {
            if let Some(found) = pattern.find(line) {
                findings.push(file.finding(number, format!("`{}`: do it, or file an issue", found.as_str())));
            }
        }
    }
    findings
}
