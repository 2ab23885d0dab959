// SPDX-License-Identifier: MIT OR Apache-2.0
//! How evenly frames arrive, in bins of a millisecond (`lab/bpf/arrivals.bpf.c`).

use crate::LabError;
use crate::enforce::now_ns;
use crate::netns::Namespace;
use crate::results::Metrics;
use crate::scenario::Traffic;
use crate::stats::{self, real};
use crate::topology::{HOST_DEVICE, Topology};
use libbpf_rs::{MapCore, MapFlags, MapMut, Object, ObjectBuilder, TC_INGRESS, TcHookBuilder};
use std::os::fd::AsFd;
use std::time::Duration;

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/arrivals.bpf.o"));
/// Bins are a millisecond; so many of them make the coarser ones.
const WIDTHS: [(usize, &str); 3] = [(1, "variation_1ms"), (10, "variation_10ms"), (100, "variation_100ms")];

/// A program at the device of each receiver. The devices go with the run, and the programs with them.
pub struct Arrivals {
    objects: Vec<Object>,
    bins_each: u32,
    tenants: u32,
}

fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

impl Arrivals {
    /// Counts from now on for `time`, where the scenario asks for it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn start(traffic: &Traffic, topology: &Topology, time: Duration) -> Result<Option<Self>, LabError> {
        if !traffic.sample_arrivals {
            return Ok(None);
        }
        let hosts: Vec<_> = topology.receivers.iter().map(|host| (host, vec![HOST_DEVICE.to_owned()])).collect();
        Self::at(&hosts, traffic.tenants.len(), time).map(Some)
    }

    /// Counts from now on for `time`, at devices of hosts.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn at(hosts: &[(&Namespace, Vec<String>)], tenants: usize, time: Duration) -> Result<Self, LabError> {
        let (bins_each, tenants) = (milliseconds(time), u32::try_from(tenants).unwrap_or(0));
        let mut arrivals = Self { objects: Vec::new(), bins_each, tenants };
        let start_ns = now_ns()?;
        for (host, devices) in hosts {
            let object = host.enter(|| arrivals.attach(devices, start_ns))?;
            arrivals.objects.push(object);
        }
        Ok(arrivals)
    }

    fn attach(&self, devices: &[String], start_ns: u64) -> Result<Object, LabError> {
        let mut open = ObjectBuilder::default().open_memory(OBJECT).map_err(LabError::bpf("reading arrivals"))?;
        let bins = open.maps_mut().find(|map| map.name() == "bins");
        let sized = bins.map(|mut bins| bins.set_max_entries(self.bins_each * self.tenants));
        sized.transpose().map_err(LabError::bpf("room for arrivals"))?;
        let mut object = open.load().map_err(LabError::bpf("loading arrivals"))?;
        let mut settings = start_ns.to_ne_bytes().to_vec();
        settings.extend([self.bins_each, self.tenants].iter().flat_map(|word| word.to_ne_bytes()));
        map(&mut object, "settings")?
            .update(&0_u32.to_ne_bytes(), &settings, MapFlags::ANY)
            .map_err(LabError::bpf("telling arrivals of the time"))?;
        let missing = || LabError::Computation("arrivals.bpf.c has no program".to_owned());
        let program = object.progs_mut().next().ok_or_else(missing)?;
        for device in devices {
            let index = nix::net::if_::if_nametoindex(device.as_str())
                .map_err(|errno| LabError::io(format!("there is no device {device}"), errno.into()))?;
            let mut builder = TcHookBuilder::new(program.as_fd());
            let mut hook = builder.ifindex(i32::try_from(index).unwrap_or(0)).handle(1).priority(1).hook(TC_INGRESS);
            hook.create().and_then(|mut hook| hook.attach()).map_err(LabError::bpf("attaching arrivals"))?;
        }
        Ok(object)
    }

    /// Bytes by millisecond that arrived for a tenant on a receiver.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn bytes(&mut self, receiver: u32, tenant: usize) -> Result<Vec<f64>, LabError> {
        let first = u32::try_from(tenant).unwrap_or(0) * self.bins_each;
        let indices = first..first + self.bins_each;
        let bins = map(&mut self.objects[receiver as usize], "bins")?;
        let number = |index: u32| {
            let value = bins.lookup(&index.to_ne_bytes(), MapFlags::ANY).map_err(LabError::bpf("reading arrivals"))?;
            Ok(value.and_then(|value| value.try_into().ok()).map_or(0.0, |value| real(u64::from_ne_bytes(value))))
        };
        indices.map(number).collect()
    }
}

fn map<'a>(object: &'a mut Object, name: &str) -> Result<MapMut<'a>, LabError> {
    let missing = || LabError::Computation(format!("arrivals.bpf.c has no map {name}"));
    object.maps_mut().find(|map| map.name() == name).ok_or_else(missing)
}

/// Mbit/s that arrived after the warm-up, its share of a limit, and how much bins of each width vary, in percent of their mean.
pub fn metrics(bytes: &[f64], warmup: Duration, limit_bps: Option<f64>) -> Metrics {
    let steady = bytes.get(milliseconds(warmup) as usize..).unwrap_or_default();
    let arrived = stats::mean(steady) * 8.0 / 1e3;
    let mut metrics = Metrics::from([("arrived".to_owned(), arrived)]);
    if let Some(limit) = limit_bps {
        metrics.insert("arrived_share".to_owned(), 100.0 * arrived * 1e6 / limit);
    }
    for (width, name) in WIDTHS {
        let bins: Vec<f64> = steady.chunks_exact(width).map(|bins| bins.iter().sum()).collect();
        metrics.insert(name.to_owned(), stats::oscillation(&bins));
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_stream_does_not_vary_and_bursts_do() {
        let warm = Duration::from_millis(100);
        let even: Vec<f64> = std::iter::repeat_n(0.0, 100).chain(std::iter::repeat_n(125.0, 1000)).collect();
        let of_even = metrics(&even, warm, Some(1e6));
        assert_eq!((of_even["arrived"], of_even["arrived_share"]), (1.0, 100.0));
        assert_eq!((of_even["variation_1ms"], of_even["variation_100ms"]), (0.0, 0.0));
        // The same bytes once in 10 ms.
        let bursts: Vec<f64> = (0..1000).map(|bin| if bin % 10 == 0 { 1250.0 } else { 0.0 }).collect();
        let of_bursts = metrics(&bursts, Duration::ZERO, None);
        assert_eq!(of_bursts["arrived"], 1.0);
        assert!((of_bursts["variation_1ms"] - 300.0).abs() < 1.0, "{of_bursts:?}");
        assert_eq!(of_bursts["variation_10ms"], 0.0);
        assert!(!of_bursts.contains_key("arrived_share"));
    }
}
