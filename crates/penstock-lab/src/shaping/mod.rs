// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many limits on a fast link, in virtual time: what `DragonKing`'s section V compares.

mod measure;
mod run;
mod system;
#[cfg(test)]
mod tests;
mod traffic;
mod transport;

use crate::LabError;
use crate::quantity::{Rate, Size, Time};
use crate::results::{Results, Row, Subject};
use crate::template::Values;
use serde::Deserialize;
use system::{Kind, Terms};
use traffic::Bursts;
use transport::Transport;

/// Flows under limits, and who limits them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shaping {
    /// All limits together.
    pub limit: Option<Rate>,
    /// Or how many flows there are.
    pub flows: Option<u32>,
    /// What each flow may send.
    pub flow_rate: Rate,
    /// Whose limits they are.
    pub limits: Owners,
    /// What comes, in percent of the limits.
    pub load_percent: u32,
    /// In bursts; steadily without it.
    pub bursts: Option<Bursts>,
    /// The link.
    pub link: Rate,
    /// Length of all packets.
    pub packet: Size,
    /// The queue before the link.
    pub port_buffer: Size,
    /// What else may wait, in the back pipelines or in the wheel.
    pub back_buffer: Size,
    /// CBS of a token bucket.
    pub committed: Size,
    /// PBS of the token buckets that have one.
    pub peak: Size,
    /// How often a token packet fills each flow's bucket.
    pub refill: Time,
    /// Length of a token packet.
    pub token_packet: Size,
    /// How many buckets get token packets; as many as there are flows without it.
    pub buckets: Option<u32>,
    /// Senders that send again what was dropped; an open loop without it.
    pub transport: Option<Transport>,
    /// What is compared.
    pub systems: Vec<Candidate>,
    /// Whether what comes and leaves is told over time.
    #[serde(default)]
    pub samples: bool,
}

/// Whose a limit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owners {
    /// Each flow has one.
    Each,
    /// One for all flows together.
    Together,
}

/// A system, and what it is told.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Its series.
    pub name: String,
    /// What it is.
    pub system: Kind,
    /// `T_b`, in the place of 5 us.
    pub monitor: Option<Time>,
    /// delta, in the place of -0.025.
    pub delta: Option<f64>,
    /// h, in the place of 40 us.
    pub h: Option<Time>,
    /// alpha, in the place of 1 us.
    pub alpha: Option<Time>,
}

impl Shaping {
    fn flows(&self) -> u32 {
        let of_limit = |limit: Rate| u32::try_from(limit.0 / self.flow_rate.0.max(1)).unwrap_or(u32::MAX);
        self.flows.or(self.limit.map(of_limit)).unwrap_or(0)
    }

    fn terms(&self) -> Result<Terms, LabError> {
        let wrong = |what: &str| LabError::Computation(what.to_owned());
        let bytes = |size: Size| u32::try_from(size.0).map_err(|_| wrong("a size is above 4 GB"));
        let flows = self.flows();
        if flows == 0 || self.load_percent == 0 || self.refill.0 == 0 || !(1..100_000).contains(&self.packet.0) {
            return Err(wrong("there are no flows, packets, load or refills, or packets are too long"));
        }
        if self.committed > self.peak || self.link.0 == 0 || self.flow_rate.0 < 8 {
            return Err(wrong("the link or the flows are too slow, or `committed` is above `peak`"));
        }
        let limiters = if self.limits == Owners::Each { flows } else { 1 };
        let buckets = self.buckets.unwrap_or(flows);
        let tokens_a_second = f64::from(buckets) * 1e9 / traffic::nanoseconds(self.refill.0);
        Ok(Terms {
            limiters: limiters as usize,
            rate: self.flow_rate.0 * u64::from(flows / limiters) / 8,
            link: self.link.0 / 8,
            bytes: bytes(self.packet)?,
            port_bytes: bytes(self.port_buffer)?,
            back_bytes: bytes(self.back_buffer)?,
            committed_bytes: bytes(self.committed)?,
            peak_bytes: bytes(self.peak)?,
            refill_ns: (self.refill.0 / u64::from(buckets / limiters).max(1)).max(1),
            tokens: tokens_a_second * f64::from(bytes(self.token_packet)?),
        })
    }
}

/// Lets each system limit the same packets for as long as the effort says.
///
/// # Errors
/// The parameters are out of range.
pub fn compute(shaping: &Shaping, point: &Values, time: Time) -> Result<Results, LabError> {
    let terms = shaping.terms()?;
    let mut results = Results::default();
    for candidate in &shaping.systems {
        if let Some(transport) = &shaping.transport {
            let of = Subject { series: candidate.name.clone(), point: point.clone(), tenant: String::new() };
            let metrics = transport::run(shaping, transport, candidate, &terms, time);
            results.rows.push(Row { of, run: 1, metrics });
            continue;
        }
        let done = run::run(shaping, candidate, &terms, time);
        done.report(&candidate.name, point, shaping.samples, &mut results);
    }
    Ok(results)
}
