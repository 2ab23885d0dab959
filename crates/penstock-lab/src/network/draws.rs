// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes with paths by chance, many times: what flows by the global allocation, and when each port looks at itself only (section 6.3.2).

use super::random::Random;
use super::{carried_bps, gbps};
use crate::LabError;
use crate::results::{Metrics, Row, Subject};
use crate::stats::{mean, real};
use crate::template::Values;
use penstock_alloc::allocate;
use penstock_alloc::baselines;
use penstock_alloc::model::{Class, Network, PortId};
use penstock_alloc::topology::Generator;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Paths by chance for the classes of a network.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draws {
    /// The tenant of the results.
    pub name: String,
    /// Where they are drawn from, as for `penstock plan --generate`: the paths of all of its pairs.
    pub topology: String,
    /// How often.
    pub count: u32,
    /// Whether all paths of a class begin at one host.
    pub one_sender: bool,
    /// Of all that is drawn.
    #[serde(default)]
    pub seed: u64,
}

/// Bits/s by a system, of all draws.
#[derive(Default)]
struct Sums {
    flows: Vec<f64>,
    carried: Vec<f64>,
}

/// A row a system.
pub fn rows(draws: &Draws, base: &Network, point: &Values) -> Result<Vec<Row>, LabError> {
    let all = generated(&draws.topology)?;
    let mut of_sender: BTreeMap<PortId, usize> = BTreeMap::new();
    all.classes.iter().flat_map(|pair| &pair.paths).for_each(|path| *of_sender.entry(path[0]).or_default() += 1);
    let fewest = of_sender.values().copied().min().unwrap_or(0);
    if base.classes.iter().any(|class| class.paths.len() > fewest) {
        return Err(LabError::Computation(format!(
            "a class has more paths than the {fewest} of a sender: {}",
            draws.name
        )));
    }
    let mut random = Random::new(draws.seed);
    let (mut global, mut local) = (Sums::default(), Sums::default());
    for _ in 0..draws.count {
        let network = drawn(draws, base, &all, &mut random);
        let planned = allocate(&network).paths.into_iter();
        let planned: Vec<Vec<u64>> = planned.map(|paths| paths.iter().map(|path| path.rate_bps).collect()).collect();
        global.add(&network, &planned);
        local.add(&network, &baselines::local(&network).paths_bps);
    }
    let row = |series: &str, metrics| {
        let of = Subject { series: series.to_owned(), point: point.clone(), tenant: draws.name.clone() };
        Row { of, run: 1, metrics }
    };
    Ok(vec![row("global", global.metrics(&all, Some(&local))), row("local", local.metrics(&all, None))])
}

/// A network in words.
pub fn generated(words: &str) -> Result<Network, LabError> {
    let failed = |problem: penstock_policy::diagnostics::Problem| LabError::Computation(format!("{words}: {problem}"));
    words.parse::<Generator>().map_err(failed)?.network().map_err(failed)
}

impl Sums {
    fn add(&mut self, network: &Network, paths_bps: &[Vec<u64>]) {
        self.flows.push(gbps(paths_bps.iter().flatten().sum()));
        self.carried.push(gbps(carried_bps(network, paths_bps)));
    }

    fn metrics(&self, all: &Network, beside: Option<&Self>) -> Metrics {
        let ports: u64 = all.ports.iter().map(|port| port.rate_bps).sum();
        let mut metrics = Metrics::from([
            ("gets".to_owned(), mean(&self.flows)),
            ("ports_used".to_owned(), 100.0 * mean(&self.carried) / gbps(ports)),
        ]);
        if let Some(other) = beside {
            let more = |own: &[f64], other: &[f64]| 100.0 * (mean(own) / mean(other) - 1.0);
            let better = self.flows.iter().zip(&other.flows).filter(|(own, other)| **own > **other * 1.001).count();
            metrics.insert("gain".to_owned(), more(&self.flows, &other.flows));
            metrics.insert("ports_used_gain".to_owned(), more(&self.carried, &other.carried));
            metrics.insert("gaining_share".to_owned(), 100.0 * real(better as u64) / real(self.flows.len() as u64));
        }
        metrics
    }
}

/// The network's classes, with as many other paths.
fn drawn(draws: &Draws, base: &Network, all: &Network, random: &mut Random) -> Network {
    let class = |class: &Class| {
        let mut paths: Vec<Vec<PortId>> = Vec::new();
        while paths.len() < class.paths.len() {
            let pair = &all.classes[random.below(all.classes.len())].paths;
            let path = &pair[random.below(pair.len())];
            let is_elsewhere = draws.one_sender && paths.first().is_some_and(|first| first[0] != path[0]);
            if !is_elsewhere && !paths.contains(path) {
                paths.push(path.clone());
            }
        }
        Class { paths, ..class.clone() }
    };
    Network { ports: all.ports.clone(), classes: base.classes.iter().map(class).collect(), ..Network::default() }
}
