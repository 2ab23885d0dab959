// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every error message, in full: `errors.txt` holds policies and what is said about them.
//!
//! A case is a title, a policy (after `-- NAME` lines: limits files), `----`, and what is printed: errors, or the warnings of
//! a policy that has none. A title that starts with `class` gives the classes only, in a policy that is otherwise
//! sound. `UPDATE=1 cargo test -p penstock-policy --test errors` writes what is printed now: read the difference.

mod cases;

use penstock_policy::compile::compile;
use penstock_policy::limits_file::LimitsText;
use penstock_policy::{Policy, plan::Plan};
use std::collections::HashMap;
use std::io;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/errors.txt");
const HEAD: &str =
    "penstock: 1\nports: { lan: { rate: 1Gbit/s } }\nlinks:\n  - name: down\n    port: lan\n    classes:\n";

fn run(title: &str, body: &str) -> String {
    let mut parts = body.split("\n-- ");
    let text = parts.next().unwrap_or_default();
    let policy = if title.starts_with("class") { format!("{HEAD}{text}\n") } else { format!("{text}\n") };
    let files: HashMap<&str, &str> = parts.map(|part| part.split_once('\n').unwrap_or((part, ""))).collect();
    let read = |name: &str| {
        let text = files.get(name).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(LimitsText { name: name.to_owned(), bytes: text.as_bytes().to_vec() })
    };
    let result: Result<Plan, _> = Policy::parse("p.yaml", &policy).and_then(|policy| compile(&policy, read));
    match result {
        Ok(plan) if plan.warnings.is_empty() => "fine\n".to_owned(),
        Ok(plan) => plan.warnings.iter().map(|warning| format!("warning: {warning}\n")).collect(),
        Err(errors) => errors.render(false),
    }
}

#[test]
fn every_message_is_as_written() {
    cases::check(PATH, 50, run);
}
