// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules about the algorithm library's headers.

use super::{File, Finding};
use regex::Regex;

/// Headers of words, not of algorithms: they need no essay and no test of their own.
const VOCABULARY: &[&str] = &["types.h", "verdict.h", "wire.h", "wire_share.h"];

/// The library's headers.
pub fn headers(files: &[File]) -> impl Iterator<Item = (&str, &File)> {
    files.iter().filter_map(|file| {
        let name = file.path.strip_prefix("algo/include/penstock/")?;
        Some((name, file))
    })
}

/// Headers that must explain themselves and be tested. A part (packet_link.h) belongs to its whole (packet.h).
pub fn algorithms(files: &[File]) -> impl Iterator<Item = (&str, &File)> {
    let is_part = |name: &str| {
        let whole = name.rsplit_once('_').map(|(whole, _)| format!("{whole}.h"));
        whole.is_some_and(|whole| headers(files).any(|(other, _)| other == whole))
    };
    headers(files).filter(move |(name, _)| !VOCABULARY.contains(name) && !is_part(name))
}

/// The text with comments blanked and every line where it was.
fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("/*").into_iter().chain(rest.find("//")).min() {
        let end_mark = if rest[start..].starts_with("/*") { "*/" } else { "\n" };
        let after = rest[start..].find(end_mark).map_or(rest.len(), |length| start + length + end_mark.len());
        code.push_str(&rest[..start]);
        code.extend(rest[start..after].chars().filter(|&c| c == '\n'));
        rest = &rest[after..];
    }
    code + rest
}

fn line_of(code: &str, offset: usize) -> usize {
    code[..offset].matches('\n').count() + 1
}

/// Integers only, no 128-bit words, no calls through pointers, no clock, chance, memory or output of its own.
pub fn banned_words(files: &[File]) -> Vec<Finding> {
    const BANNED: &[(&str, &str)] = &[
        (r"\b(float|double)\b", "integers only"),
        (r"\b__u?int128(_t)?\b", "BPF has no 128-bit arithmetic: pst_mul_high"),
        (r"\(\s*\*\s*\w+\s*\)\s*\(", "no function pointers"),
        (r"\b(clock_gettime|gettimeofday|time|rdtsc|__rdtsc|bpf_ktime_\w+|ktime_\w+)\s*\(", "time is an argument"),
        (r"\b(rand|random|rand_r|getrandom|bpf_get_prandom_u32|prandom_\w+)\s*\(", "chance is an argument"),
        (r"\b(malloc|calloc|realloc|free|alloca)\s*\(", "memory is an argument"),
        (r"\b(printf|fprintf|puts|bpf_printk|abort|assert)\s*\(", "a total function returns a verdict"),
    ];
    let patterns: Vec<_> = BANNED.iter().filter_map(|(pattern, why)| Some((Regex::new(pattern).ok()?, why))).collect();
    let mut findings = Vec::new();
    for (_, file) in headers(files) {
        let code = without_comments(&file.text);
        for (pattern, why) in &patterns {
            for found in pattern.find_iter(&code) {
                findings.push(file.finding(line_of(&code, found.start()), format!("`{}`: {why}", found.as_str())));
            }
        }
    }
    findings
}

/// An integer member or parameter that holds a quantity ends in its unit. A uint32_t `rate` is a rate code (fixed.h).
pub fn units(files: &[File]) -> Vec<Finding> {
    const QUANTITIES: &[&str] = &[
        "rate",
        "rates",
        "time",
        "burst",
        "excess",
        "size",
        "delay",
        "depth",
        "window",
        "idle",
        "wait",
        "interval",
        "period",
        "timeout",
        "duration",
        "age",
        "departure",
        "overhead",
        "mtu",
    ];
    // An index or a code of a quantity is none itself.
    const UNITS: &[&str] =
        &["Bps", "bps", "Mbps", "bytes", "nB", "bits", "ns", "us", "ms", "sec", "ticks", "packets", "code", "index"];
    let fixed_point = |unit: &str| unit.strip_prefix('q').is_some_and(|bits| bits.parse::<u32>().is_ok());
    let (Ok(place), Ok(integer)) = (
        Regex::new(r"struct\s+\w+\s*\{[^}]*\}|PST_(?:INLINE|OUTLINE|STAGE)\b[^{;]*\{"),
        Regex::new(r"\b(u?int(?:16|32|64)_t)\s+\*?(\w+)((?:\s*,\s*\*?\w+\b)*)\s*[;,)\[]"),
    ) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (_, file) in headers(files) {
        let code = without_comments(&file.text);
        for place in place.find_iter(&code) {
            for declared in integer.captures_iter(place.as_str()) {
                let line = line_of(&code, place.start() + declared.get(0).map_or(0, |all| all.start()));
                for name in [&declared[2]].into_iter().chain(declared[3].split(',')) {
                    let name = name.trim().trim_start_matches('*');
                    let words: Vec<&str> = name.split('_').collect();
                    let last = words.last().copied().unwrap_or_default();
                    let rate_code = &declared[1] == "uint32_t" && last.starts_with("rate");
                    let quantity = words.iter().any(|word| QUANTITIES.contains(word));
                    if quantity && !rate_code && !UNITS.contains(&last) && !fixed_point(last) {
                        findings.push(file.finding(line, format!("`{name}` is a quantity: end it in its unit")));
                    }
                }
            }
        }
    }
    findings
}

/// A header opens with its essay: at least these sections.
pub fn header_sections(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, file) in algorithms(files) {
        let essay = file.text.split("#ifndef").next().unwrap_or_default();
        for section in ["What", "Units", "Invariants"] {
            if !essay.lines().any(|line| line.starts_with(&format!(" * {section} "))) {
                findings.push(file.finding(1, format!("{name} does not open with a section `{section}`")));
            }
        }
    }
    findings
}

/// A function of C has a body of at most 70 lines.
pub fn function_length(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| matches!(file.extension(), "c" | "h") && !file.is_generated()) {
        let mut start = 0;
        for (number, line) in file.lines() {
            match line {
                "{" => start = number,
                "}" if start != 0 => {
                    let body = number - start - 1;
                    if body > 70 {
                        findings.push(file.finding(start, format!("a function of {body} lines, and 70 are the most")));
                    }
                    start = 0;
                }
                _ => {}
            }
        }
    }
    findings
}
