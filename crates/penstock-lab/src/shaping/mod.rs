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
use crate::stats::real;
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

impl Candidate {
    /// Whether something stands in the place of what the paper has.
    fn is_told(&self) -> bool {
        self.monitor.is_some() || self.delta.is_some() || self.h.is_some() || self.alpha.is_some()
    }
}

impl Shaping {
    fn flows(&self) -> u32 {
        let of_limit = |limit: Rate| u32::try_from(limit.0 / self.flow_rate.0.max(1)).unwrap_or(u32::MAX);
        self.flows.or(self.limit.map(of_limit)).unwrap_or(0)
    }

    /// Each key that is out of range, with what would be in it: the first one is told.
    fn check(&self) -> Result<(), LabError> {
        let bursts = self.bursts.is_none_or(|bursts| bursts.length_least.0 > 0);
        let grows = |bursts: Bursts| bursts.length_least <= bursts.length_most && bursts.gap_least <= bursts.gap_most;
        let transport = |fits: fn(&Transport) -> bool| self.transport.as_ref().is_none_or(fits);
        let is_told = |candidate: &&Candidate| !candidate.system.circulates() && candidate.is_told();
        let rules = [
            (self.flows.is_some() != self.limit.is_some(), "`shaping` has one of `flows` and `limit`"),
            (self.flow_rate.0 >= 8, "`flow_rate` is 8 bit/s or more"),
            (self.flows() > 0, "`flows` is 1 or more, and `limit` no less than `flow_rate`"),
            (self.load_percent > 0, "`load_percent` is 1 or more"),
            (self.link.0 >= 8, "`link` is 8 bit/s or more"),
            ((1..100_000).contains(&self.packet.0), "`packet` is 1 to 99999 bytes"),
            (self.refill.0 > 0, "`refill` is longer than 0"),
            (self.committed <= self.peak, "`committed` is not above `peak`"),
            (self.buckets != Some(0), "`buckets` is 1 or more"),
            (bursts, "`length_least` of `bursts` is longer than 0"),
            (
                self.bursts.is_none_or(grows),
                "`gap_least` and `length_least` of `bursts` are not above `gap_most` and `length_most`",
            ),
            (
                self.bursts.is_none_or(|bursts| (1..=100).contains(&bursts.low_percent)),
                "`low_percent` of `bursts` is 1 to 100",
            ),
            (transport(|it| it.connections > 0), "`connections` of `transport` is 1 or more"),
            (
                transport(|it| it.message.0 > 0 && it.window.0 > 0),
                "`message` and `window` of `transport` are 1 byte or more",
            ),
            (transport(|it| it.timeout.0 > 0), "`timeout` of `transport` is longer than 0"),
            (transport(|it| it.card.0 >= 8), "`card` of `transport` is 8 bit/s or more"),
            (!self.systems.is_empty(), "`systems` names one or more"),
            (
                self.systems.iter().find(is_told).is_none(),
                "`monitor`, `delta`, `h` and `alpha` are for systems that circulate: dragonking, dragonking_charged, no_redistribution, no_scheduler",
            ),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, rule)) => Err(LabError::Computation((*rule).to_owned())),
            None => Ok(()),
        }
    }

    fn terms(&self) -> Result<Terms, LabError> {
        self.check()?;
        let bytes = |size: Size| {
            let wrong = || LabError::Computation(format!("a size is {} bytes; 4294967295 is the most", size.0));
            u32::try_from(size.0).map_err(|_| wrong())
        };
        let flows = self.flows();
        let limiters = if self.limits == Owners::Each { flows } else { 1 };
        let buckets = self.buckets.unwrap_or(flows);
        let tokens_a_second = f64::from(buckets) * 1e9 / real(self.refill.0);
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
