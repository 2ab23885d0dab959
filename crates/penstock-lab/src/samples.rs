// SPDX-License-Identifier: MIT OR Apache-2.0
//! Congestion windows and queues, looked at while traffic flows.

use crate::LabError;
use crate::enforce::backlog_bytes;
use crate::load::Site;
use crate::netns::Namespace;
use crate::process::run;
use crate::results::{ALL, Metrics};
use crate::scenario::Traffic;
use crate::stats;
use crate::topology::exit;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Values of one thing over time.
#[derive(Debug)]
pub struct Sampled {
    /// Whose.
    pub tenant: String,
    /// What: `window` in packets, or `queue` in KB.
    pub name: &'static str,
    /// Seconds since the traffic's start, and the value.
    pub values: Vec<(f64, f64)>,
}

impl Sampled {
    /// Mean and largest value after the warm-up; of windows also how much they swing. Nothing where nothing was seen.
    #[must_use]
    pub fn metrics(&self, warmup: Duration) -> Metrics {
        let steady = self.values.iter().filter(|(time, _)| *time >= warmup.as_secs_f64());
        let steady: Vec<f64> = steady.map(|(_, value)| *value).collect();
        if steady.is_empty() {
            return Metrics::new();
        }
        let name = |what: &str| format!("{}_{what}", self.name);
        let mut metrics = Metrics::from([
            (name("mean"), stats::mean(&steady)),
            (name("max"), steady.iter().copied().fold(0.0, f64::max)),
        ]);
        if self.name == "window" {
            metrics.insert(name("swing"), stats::oscillation(&steady));
        }
        metrics
    }
}

type Look = Box<dyn Fn() -> Result<Option<f64>, LabError> + Send>;

/// Threads that look.
pub struct Samplers {
    threads: Vec<JoinHandle<Result<Sampled, LabError>>>,
}

impl Samplers {
    /// Starts what the scenario asks for; all end at `end`.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(traffic: &Traffic, sites: &[Site<'_>], start: Instant, end: Instant) -> Result<Self, LabError> {
        let mut threads = Vec::new();
        let mut watch = |namespace: &str, tenant: &str, name: &'static str, every: Duration, look: Look| {
            let (namespace, tenant) = (namespace.to_owned(), tenant.to_owned());
            threads.push(std::thread::spawn(move || {
                Namespace::enter_named(&namespace, move || {
                    let values = sample(start, end, every, look)?;
                    Ok(Sampled { tenant, name, values })
                })
            }));
        };
        if let Some(every) = traffic.sample_windows {
            for site in sites {
                let port = site.port();
                watch(site.sender(), &site.tenant.name, "window", every.duration(), Box::new(move || window(port)));
            }
        }
        if let (Some(every), Some(site)) = (traffic.sample_queue, sites.first()) {
            let middle = site.topology.middle.name().to_owned();
            let name = middle.clone();
            let look = move || backlog_bytes(&middle, &exit(0)).map(|bytes| Some(kilobytes(bytes)));
            let tenant = if sites.len() == 1 { &site.tenant.name } else { ALL };
            watch(&name, tenant, "queue", every.duration(), Box::new(look));
        }
        Ok(Self { threads })
    }

    /// Waits for all, and collects.
    ///
    /// # Errors
    /// A look failed.
    pub fn finish(self) -> Result<Vec<Sampled>, LabError> {
        let join = |thread: JoinHandle<Result<Sampled, LabError>>| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        self.threads.into_iter().map(join).collect()
    }
}

#[allow(clippy::cast_precision_loss)] // queues are far below 2^53 bytes
fn kilobytes(bytes: u64) -> f64 {
    bytes as f64 / 1000.0
}

fn sample(start: Instant, end: Instant, every: Duration, look: Look) -> Result<Vec<(f64, f64)>, LabError> {
    let mut values = Vec::new();
    let mut next = Instant::now();
    while next < end {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let time_s = start.elapsed().as_secs_f64();
        values.extend(look()?.map(|value| (time_s, value)));
        next += every;
    }
    Ok(values)
}

/// The congestion window of the connection to `port` that sent most: iperf3 has one for its own talk, too.
fn window(port: u16) -> Result<Option<f64>, LabError> {
    let text = run(&format!("ss -tinHO state established dport = :{port}"))?;
    Ok(busiest_window(&text))
}

fn busiest_window(text: &str) -> Option<f64> {
    let field = |line: &str, label: &str| -> Option<f64> {
        line.split_whitespace().find_map(|word| word.strip_prefix(label)?.parse().ok())
    };
    let connections = text.lines().filter_map(|line| Some((field(line, "bytes_sent:")?, field(line, "cwnd:")?)));
    connections.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, window)| window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_window_of_the_data() {
        let text = "0 0 10.88.1.10:4 10.88.2.10:5201 reno cwnd:10 bytes_sent:400 bytes_acked:400\n\
                    0 9 10.88.1.10:5 10.88.2.10:5201 reno cwnd:77 ssthresh:40 bytes_sent:9000000 bytes_acked:8\n";
        assert_eq!(busiest_window(text), Some(77.0));
        assert_eq!(busiest_window(""), None);
    }

    #[test]
    fn leaves_the_warm_up_out() {
        let values = vec![(0.5, 100.0), (1.0, 10.0), (1.5, 30.0)];
        let sampled = Sampled { tenant: "t".to_owned(), name: "window", values };
        let metrics = sampled.metrics(Duration::from_secs(1));
        assert_eq!((metrics["window_mean"], metrics["window_max"]), (20.0, 30.0));
        assert!(sampled.metrics(Duration::from_secs(2)).is_empty(), "no samples are not samples of 0");
    }
}
