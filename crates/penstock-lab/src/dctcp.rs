// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers DCTCP (`lab/bpf/dctcp.bpf.c`) with the kernel for as long as a handle lives.

use crate::LabError;
use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder};

/// What `setsockopt`, `iperf3 -C` and routes call it. Not the name of the kernel's own, which some kernels have.
pub const NAME: &str = "pst_dctcp";
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/dctcp.bpf.o"));
const OPS: &str = "dctcp";
const TOTALS: &str = ".bss";

/// DCTCP in the kernel. Dropping it takes it out; so does the end of the process, however it ends, because the kernel closes the
/// link. Sockets that use it keep it until they close.
#[derive(Debug)]
pub struct Dctcp {
    _link: Link,
    object: Object,
}

/// What its sockets did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Windows of data, after each of which alpha is estimated anew.
    pub windows: u64,
    /// Reductions of a congestion window.
    pub reductions: u64,
    /// Answers to loss.
    pub losses: u64,
    /// How often a receiver began or ended to say ECE.
    pub echoes_changed: u64,
    /// The latest estimate, in 2^-20.
    pub alpha_q20: u32,
    /// The latest reduction of the socket with the most windows: packets before.
    pub reduced_from: u32,
    /// Packets after.
    pub reduced_to: u32,
    /// The estimate that it was done by, in 2^-20.
    pub reduced_by_q20: u32,
}

impl Dctcp {
    /// Registers it. It can be registered once in a kernel.
    ///
    /// # Errors
    /// The kernel cannot (it needs BTF, and struct_ops links of Linux 6.4), or another lab has registered it.
    pub fn register() -> Result<Self, LabError> {
        let failed = LabError::bpf("reading the DCTCP program");
        let open = ObjectBuilder::default().open_memory(OBJECT).map_err(failed)?;
        let mut object = open.load().map_err(LabError::bpf("loading DCTCP; it needs Linux 6.4 and /sys/kernel/btf"))?;
        let mut ops = object.maps_mut().find(|map| map.name() == OPS).ok_or_else(without)?;
        let what = "registering DCTCP; is another lab running?";
        let link = ops.attach_struct_ops().map_err(LabError::bpf(what))?;
        Ok(Self { _link: link, object })
    }

    /// What its sockets did so far.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn totals(&self) -> Result<Totals, LabError> {
        let is_totals = |map: &libbpf_rs::Map<'_>| map.name().to_string_lossy().ends_with(TOTALS);
        let map = self.object.maps().find(is_totals).ok_or_else(without)?;
        let bytes = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).map_err(LabError::bpf("reading DCTCP's totals"))?;
        let bytes = bytes.unwrap_or_default();
        let word = |at: usize| bytes.get(at..at + 8).and_then(|it| it.try_into().ok()).map_or(0, u64::from_ne_bytes);
        let half = |at: usize| bytes.get(at..at + 4).and_then(|it| it.try_into().ok()).map_or(0, u32::from_ne_bytes);
        Ok(Totals {
            windows: word(0),
            reductions: word(8),
            losses: word(16),
            echoes_changed: word(24),
            alpha_q20: half(32),
            reduced_from: half(36),
            reduced_to: half(40),
            reduced_by_q20: half(44),
        })
    }
}

fn without() -> LabError {
    LabError::Computation("the DCTCP program is not what this lab was built with".to_owned())
}

/// Whether it is registered, by anyone.
#[must_use]
pub fn is_registered() -> bool {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    known.split_whitespace().any(|name| name == NAME)
}
