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
        .generate()
        .context("bindgen could not read wire.h")?;
    Ok(format!(
        "// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)\n// Generated from {HEADER} by `make gen`; do not edit.\n{}",
        bindings.to_string()
    ))
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
    let found = std::fs::read_to_string(root().join(OUTPUT))
        .with_context(|| format!("cannot read {OUTPUT}"))?;
    if found != generated()? {
        bail!("{OUTPUT} is not what {HEADER} says: run `make gen`");
    }
    Ok(())
}
