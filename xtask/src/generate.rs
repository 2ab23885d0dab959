// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rust's copy of `wire.h`, generated so that no struct is written twice.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

const HEADER: &str = "algo/include/penstock/wire.h";
const OUTPUT: &str = "crates/penstock-algo/src/__generated__/wire.rs";

/// The project's root folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn generated() -> Result<String> {
    let bindings = bindgen::Builder::default()
        .header(root().join(HEADER).to_string_lossy())
        .clang_arg(format!("-I{}", root().join("algo/include").display()))
        .allowlist_type("pst_.*")
        .allowlist_var("PST_.*")
        .default_enum_style(bindgen::EnumVariation::Consts)
        .translate_enum_integer_types(true)
        .prepend_enum_name(false)
        .derive_default(true)
        .derive_eq(true)
        .derive_hash(true)
        .layout_tests(true)
        .use_core()
        .rustfmt_configuration_file(Some(root().join("rustfmt.toml")))
        .generate()
        .context("bindgen could not read wire.h")?;
    let bindings = bindings.to_string();
    let names = reason_names(&bindings)?;
    Ok(format!(
        "// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)\n// Generated from {HEADER} by `make gen`; do not edit.\n{bindings}{names}"
    ))
}

/// The names that people read: `PST_REASON_OVER_RATE = 1` makes `REASON_NAMES[1]` "over_rate"; numbers not in use are empty.
fn reason_names(bindings: &str) -> Result<String> {
    let mut names = Vec::new();
    for line in bindings.lines() {
        let Some(rest) = line.strip_prefix("pub const PST_REASON_") else {
            continue;
        };
        let Some((name, number)) = rest.split_once(": pst_reason = ") else {
            continue;
        };
        if name == "COUNT" {
            continue;
        }
        let number: usize = number.trim_end_matches(';').parse().context("a reason's number")?;
        if names.len() <= number {
            names.resize(number + 1, String::new());
        }
        names[number] = name.to_lowercase();
    }
    let list: String = names.iter().map(|name| format!("    \"{name}\",\n")).collect();
    Ok(format!("pub const REASON_NAMES: [&str; {}] = [\n{list}];\n", names.len()))
}

/// Writes the generated file.
pub fn write() -> Result<()> {
    let output = root().join(OUTPUT);
    if let Some(folder) = output.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&output, generated()?).with_context(|| format!("cannot write {OUTPUT}"))
}

/// Fails when the generated file is not what the header says.
pub fn check() -> Result<()> {
    let found = std::fs::read_to_string(root().join(OUTPUT)).with_context(|| format!("cannot read {OUTPUT}"))?;
    if found != generated()? {
        bail!("{OUTPUT} is not what {HEADER} says: run `make gen`");
    }
    Ok(())
}
