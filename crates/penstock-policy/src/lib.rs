// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units, YAML and CSV, validation with line and column, compilation to a [`plan::Plan`].

pub mod plan;
