// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units, YAML and CSV, validation with line and column, compilation to a [`plan::Plan`].
//!
//! [`load()`] reads a policy from disk, [`read_source()`] any text. Everything else is pure: [`Policy::parse`] takes a text, [`compile::compile`] takes a
//! policy and a way to get at its limits files. The same input always gives the same plan.

mod ambiguity;
pub mod compile;
pub mod describe;
pub mod diagnostics;
pub mod fields;
pub mod limits_file;
mod load;
pub mod matching;
pub mod model;
pub mod overlay;
pub mod plan;
pub mod reader;
pub mod row_keys;
mod rows;
mod rules;
mod shares;
pub mod summary;
mod tables;
pub mod terms;
pub mod units;
mod validate;
mod warnings;
pub mod yaml;

pub use diagnostics::Errors;
pub use load::{LoadError, Loaded, load, read_source};
pub use model::Policy;
pub use plan::Plan;
pub use shares::CEILING_NONE_BYTES;
