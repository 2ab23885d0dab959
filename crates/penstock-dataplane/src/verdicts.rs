// SPDX-License-Identifier: MIT OR Apache-2.0
//! One line a packet (`--verdicts`).

use crate::names::{color_name, reason_name, verdict_name};
use penstock_algo::wire;
use std::io::Write;

const COLUMNS: [&str; 9] =
    ["index", "time_ns", "length", "class", "limit", "color", "verdict", "reason", "departure_ns"];

/// Writes verdicts as CSV. Times count from the first packet; a dropped packet has no departure.
pub struct VerdictWriter<W: Write> {
    csv: csv::Writer<W>,
}

impl<W: Write> VerdictWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// When `output` cannot be written.
    pub fn new(output: W) -> Result<Self, csv::Error> {
        let mut csv = csv::Writer::from_writer(output);
        csv.write_record(COLUMNS)?;
        Ok(Self { csv })
    }

    /// Writes the line of one packet.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn write(
        &mut self,
        index: u64,
        time_ns: u64,
        departure_ns: u64,
        class: &str,
        limit: &str,
        decision: &wire::Decision,
    ) -> Result<(), csv::Error> {
        let departs = u32::from(decision.verdict) != wire::PST_VERDICT_DROP || decision.shadow != 0;
        let departure = if departs { departure_ns.to_string() } else { String::new() };
        let reason =
            if u32::from(decision.reason) == wire::PST_REASON_NONE { "" } else { reason_name(decision.reason) };
        self.csv.write_record([
            index.to_string().as_str(),
            time_ns.to_string().as_str(),
            decision.length.to_string().as_str(),
            class,
            limit,
            color_name(decision.color),
            verdict_name(decision.verdict),
            reason,
            departure.as_str(),
        ])
    }

    /// Writes what is buffered and hands the output back.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn finish(self) -> std::io::Result<W> {
        self.csv.into_inner().map_err(csv::IntoInnerError::into_error)
    }
}
