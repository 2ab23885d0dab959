// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cases in a text file, each with what is printed of it; penstock-alloc's tests use this, too.
//!
//! A case is a title, what is given, `----`, and what is printed; `====` ends it. With `UPDATE=1` in the environment, what is printed now is
//! written instead: read the difference.
#![allow(clippy::unwrap_used)] // a test may panic

/// Runs more than `at_least` cases. `run` has a title and what is given, without line ends behind it.
pub fn check(path: &str, at_least: usize, run: impl Fn(&str, &str) -> String) {
    let is_update = std::env::var_os("UPDATE").is_some();
    let cases = std::fs::read_to_string(path).unwrap();
    let mut now = String::new();
    let mut count = 0;
    for case in cases.split("====\n").filter(|case| !case.trim().is_empty()) {
        let (title, rest) = case.split_once('\n').unwrap();
        let (body, expected) = rest.split_once("----\n").unwrap();
        let printed = run(title, body.trim_end_matches('\n'));
        if !is_update {
            assert_eq!(printed, expected, "in the case: {title}");
        }
        now.push_str(&format!("{title}\n{body}----\n{printed}====\n"));
        count += 1;
    }
    assert!(count > at_least, "only {count} cases were read");
    if is_update {
        std::fs::write(path, now).unwrap();
    }
}
