// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the lab's own kernel programs with clang; the objects go into the library.

use libbpf_cargo::SkeletonBuilder;
use std::path::PathBuf;

const FLAGS: [&str; 6] = ["-mcpu=v3", "-ffreestanding", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"];

fn main() {
    println!("cargo::rerun-if-changed=../../lab/bpf");
    println!("cargo::rerun-if-changed=../../algo/include");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    // Where Debian keeps the kernel's <asm/types.h>: of this machine, as no headers are of the target "bpf".
    let machine = format!("/usr/include/{}-linux-gnu", std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default());
    for name in ["arrivals", "dctcp", "meter"] {
        let built = SkeletonBuilder::new()
            .source(format!("../../lab/bpf/{name}.bpf.c"))
            .obj(out.join(format!("{name}.bpf.o")))
            .clang_args(["-I../../algo/include", "-idirafter", &machine].into_iter().chain(FLAGS))
            .build();
        if let Err(error) = built {
            for line in format!("lab/bpf/{name}.bpf.c does not compile: {error:#}").lines() {
                println!("cargo::error={line}");
            }
        }
    }
}
