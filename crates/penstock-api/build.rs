// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the .proto in Rust alone: no protoc is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(["penstock/v1/node.proto", "penstock/v1/controller.proto"], ["proto"])?;
    // As JSON the messages have the names of the .proto; so have the words of its enums.
    tonic_prost_build::configure()
        .type_attribute(".", "#[derive(serde::Serialize)]")
        .field_attribute("penstock.v1.Level.kind", "#[serde(serialize_with = \"crate::level_kind\")]")
        .field_attribute("penstock.v1.Share.standing", "#[serde(serialize_with = \"crate::standing\")]")
        .field_attribute("penstock.v1.Origin.by", "#[serde(serialize_with = \"crate::origin\")]")
        .field_attribute("penstock.v1.NodeStanding.state", "#[serde(serialize_with = \"crate::state\")]")
        .field_attribute("penstock.v1.ControllerStatus.state", "#[serde(serialize_with = \"crate::controller_state\")]")
        .field_attribute("penstock.v1.RuntimeChange.kind", "#[serde(serialize_with = \"crate::change_kind\")]")
        .compile_fds(files)?;
    Ok(())
}
