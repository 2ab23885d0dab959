// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the numbers of a report were measured on.

use std::fs::read_to_string;

/// Facts about this machine.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    facts: Vec<(&'static str, String)>,
}

impl Machine {
    /// Asks the kernel.
    #[must_use]
    pub fn look() -> Self {
        let line_of = |file: &str, label: &str| {
            let text = read_to_string(file).unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with(label)).unwrap_or_default().to_owned();
            line.split_once(':').map_or(String::new(), |(_, value)| value.trim().to_owned())
        };
        let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
        let load = read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split_whitespace().next().unwrap_or_default();
        Self {
            facts: vec![
                ("CPU", format!("{cores} x {}", line_of("/proc/cpuinfo", "model name"))),
                ("Memory", line_of("/proc/meminfo", "MemTotal")),
                ("Linux", kernel.trim().to_owned()),
                ("Load before the run", load.to_owned()),
            ],
        }
    }

    /// As a list in Markdown.
    #[must_use]
    pub fn render(&self) -> String {
        self.facts.iter().map(|(name, fact)| format!("- {name}: {fact}\n")).collect()
    }
}
