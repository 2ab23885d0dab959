// SPDX-License-Identifier: MIT OR Apache-2.0
//! What ends a run.

use std::io;

/// Why the lab stopped.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A scenario file is wrong.
    #[error("{0}")]
    Scenario(#[from] penstock_policy::Errors),
    /// No scenario has this name.
    #[error("there is no scenario {name:?}; {help}")]
    Unknown {
        /// As it was asked for.
        name: String,
        /// What there is.
        help: String,
    },
    /// The lab makes namespaces and loads kernel programs.
    #[error("the lab needs root: it makes network namespaces and loads kernel programs. Try: sudo penstock lab run ..")]
    NotRoot,
    /// A program is not installed.
    #[error("{tool} is missing: install Debian's {package} (`make lab` does)")]
    Missing {
        /// Its name.
        tool: &'static str,
        /// Where it comes from.
        package: &'static str,
    },
    /// A program failed.
    #[error("`{command}` failed: {output}")]
    Command {
        /// As it was called.
        command: String,
        /// What it said.
        output: String,
    },
    /// A program said what cannot be read.
    #[error("{tool} printed what this lab does not understand: {what}")]
    Output {
        /// Its name.
        tool: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The operating system.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// libbpf or the kernel.
    #[error("{what}: {source}")]
    Bpf {
        /// What was tried.
        what: &'static str,
        /// The kernel's answer.
        source: libbpf_rs::Error,
    },
    /// Penstock's data plane.
    #[error(transparent)]
    Dataplane(#[from] penstock_dataplane::DataplaneError),
    /// The kernel's part of it.
    #[error(transparent)]
    Kernel(#[from] penstock_dataplane::xdp::KernelError),
    /// A policy does not go into tables.
    #[error(transparent)]
    Load(#[from] penstock_dataplane::LoadError),
    /// The drawing.
    #[error(transparent)]
    Drawing(#[from] penstock_plot::PlotError),
    /// A computed scenario asks for the impossible.
    #[error("{0}")]
    Computation(String),
    /// Someone pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl LabError {
    /// An error of the operating system.
    pub fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self::Io { what: what.into(), source }
    }

    /// An error of libbpf, for `map_err`.
    pub fn bpf(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Self {
        move |source| Self::Bpf { what, source }
    }
}
