// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every error message of a network file, in full: `errors.txt` holds networks and what is said about them.
//!
//! A case is a title, a network, `----`, and what is printed. A title that starts with `class` gives the classes and what follows them only,
//! after ports that are sound. `UPDATE=1 cargo test -p penstock-alloc --test errors` writes what is printed now: read the difference.

#[path = "../../penstock-policy/tests/cases/mod.rs"]
mod cases;

use penstock_alloc::model::Network;
use penstock_policy::diagnostics::Source;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/errors.txt");
const HEAD: &str = "penstock-network: 1
ports:
  - { name: h1-l1, switch: h1, rate: 100Gbit/s }
  - { name: l1-s1, switch: l1, rate: 100Gbit/s }
  - { name: l1-h1, switch: l1, rate: 100Gbit/s }
classes:
";

fn run(title: &str, body: &str) -> String {
    let text = if title.starts_with("class") { format!("{HEAD}{body}\n") } else { format!("{body}\n") };
    match Network::parse_checked(&Source::new("n.yaml", text)) {
        Ok((_, unfit)) if unfit.is_empty() => "fine\n".to_owned(),
        Ok((_, errors)) | Err(errors) => errors.render(false),
    }
}

#[test]
fn every_message_is_as_written() {
    cases::check(PATH, 20, run);
}
