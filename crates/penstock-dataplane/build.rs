// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the kernel's program with clang; the object goes into the library.

use libbpf_cargo::SkeletonBuilder;
use std::path::PathBuf;

const FLAGS: [&str; 6] = ["-mcpu=v3", "-ffreestanding", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"];

fn main() {
    println!("cargo::rerun-if-changed=../../bpf");
    println!("cargo::rerun-if-changed=../../algo/include");
    // Where Debian keeps the kernel's <asm/types.h>: of this machine, as no headers are of the target "bpf".
    let machine = format!("/usr/include/{}-linux-gnu", std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default());
    let includes = ["-I../../algo/include", "-I../../bpf", "-idirafter", &machine];
    let object = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("penstock.bpf.o");
    let mut builder = SkeletonBuilder::new();
    let built =
        builder.source("../../bpf/penstock.bpf.c").obj(&object).clang_args(includes.into_iter().chain(FLAGS)).build();
    if let Err(error) = built {
        if std::process::Command::new("clang").arg("--version").output().is_err() {
            println!("cargo::error=clang is missing: it compiles bpf/penstock.bpf.c. Run `make setup`.");
            return;
        }
        for line in format!("bpf/penstock.bpf.c does not compile: {error:#}").lines() {
            println!("cargo::error={line}");
        }
    }
}
