// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the C hosts of this crate over the headers of `algo/`.

fn main() {
    let include = "../../algo/include";
    println!("cargo::rerun-if-changed={include}");
    println!("cargo::rerun-if-changed=src/host");
    cc::Build::new()
        .files(
            [
                "ahab",
                "approx",
                "circulation",
                "fair",
                "hcsfq",
                "hsdba",
                "limiter",
                "logical_meter",
                "meter",
                "pipeline",
                "plane",
                "rate",
                "red",
                "share",
                "switchrl",
                "table",
                "wheel",
            ]
            .map(|noun| format!("src/host/{noun}.c")),
        )
        .include(include)
        .std("c11")
        .flag("-O3")
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Wconversion")
        .warnings_into_errors(true)
        .compile("penstock_algo_host");
}
