// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the programs that send frames, class them and count them, and those that hand them to ours.

use libbpf_cargo::SkeletonBuilder;
use std::path::PathBuf;

const FLAGS: [&str; 5] = ["-mcpu=v3", "-ffreestanding", "-Wall", "-Wextra", "-Werror"];

fn main() {
    for name in ["frames", "shares"] {
        let source = format!("{name}.bpf.c");
        println!("cargo::rerun-if-changed={source}");
        let object = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join(format!("{name}.bpf.o"));
        // Where Debian keeps the kernel's <asm/types.h>: of this machine, as no headers are of the target "bpf".
        let machine = format!("/usr/include/{}-linux-gnu", std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default());
        let arguments = ["-idirafter", &machine].into_iter().chain(FLAGS);
        if let Err(error) = SkeletonBuilder::new().source(&source).obj(&object).clang_args(arguments).build() {
            for line in format!("bench/shaper/{source} does not compile: {error:#}").lines() {
                println!("cargo::error={line}");
            }
        }
    }
}
