// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the .proto in Rust alone: no protoc is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(["penstock/v1/node.proto"], ["proto"])?;
    tonic_prost_build::configure().compile_fds(files)?;
    Ok(())
}
