// SPDX-License-Identifier: MIT OR Apache-2.0
//! MeterRL (`lab/bpf/meter.bpf.c`), and forwarding without any limit.

use super::{Counters, Enforcement, ifindex};
use crate::LabError;
use crate::quantity::{Rate, Size};
use crate::scenario::{Forward, Meter, Tenant};
use crate::template::addresses;
use crate::topology::Topology;
use libbpf_rs::{Link, MapCore, MapFlags, MapMut, Object, ObjectBuilder, ProgramInput};
use penstock_algo::{rate, wire};
use penstock_dataplane::xdp::time_program;
use std::mem::size_of;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::time::Duration;

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/meter.bpf.o"));
/// SwitchRL, section 4.1.
const INTERVAL_NS: u64 = 4_000_000;
/// IP packet and Ethernet header: what a limit counts.
const MTU_BYTES: u32 = 1514;

/// `struct limit` of the program.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Limit {
    profile: wire::Profile,
    interval_ns: u64,
    tick_ns: u64,
    state: wire::MeterState,
    offered_packets: u64,
    offered_bytes: u64,
    dropped_packets: u64,
    dropped_bytes: u64,
    rate: u32,
    drop_max_q32: u32,
    lock: u32,
    reserved: u32,
    timer: [u64; 2],
}

/// The program on the middle's devices.
pub struct MeterRl {
    _links: Vec<Link>,
    object: Object,
    /// Tenants that have a limit, in the order of the map.
    tenants: Vec<String>,
}

impl MeterRl {
    /// Attaches the program with the limits of some meters. Where the kernel routes and nothing is limited, nothing is attached.
    ///
    /// # Errors
    /// A meter names a tenant that does not exist, or the kernel refuses.
    pub fn start(meters: &[Meter], topology: &Topology, tenants: &[Tenant]) -> Result<Self, LabError> {
        topology.middle.enter(|| {
            let open = ObjectBuilder::default().open_memory(OBJECT).map_err(LabError::bpf("reading the meter"))?;
            let mut object = open.load().map_err(LabError::bpf("loading the meter"))?;
            let mut links = Vec::new();
            if topology.forward == Forward::Redirect || !meters.is_empty() {
                for (device, to) in topology.ways() {
                    links.push(attach(&mut object, &device, to.as_deref())?);
                }
            }
            let mut limited = Vec::new();
            for meter in meters {
                limit_tenants(&mut object, meter, tenants, &mut limited)?;
            }
            Ok(Self { _links: links, object, tenants: limited })
        })
    }
}

impl Enforcement for MeterRl {
    fn counters(&self) -> Result<Counters, LabError> {
        let map = self.object.maps().find(|map| map.name() == "limits").ok_or_else(without)?;
        let counters = |(tenant, index): (&String, u32)| {
            let bytes = map.lookup(&index.to_ne_bytes(), MapFlags::ANY).map_err(LabError::bpf("reading the meter"))?;
            let limit = limit_of(&bytes.unwrap_or_default());
            let counters = wire::pst_counters {
                offered_packets: limit.offered_packets,
                offered_bytes: limit.offered_bytes,
                dropped_packets: limit.dropped_packets,
                dropped_bytes: limit.dropped_bytes,
                ..wire::pst_counters::default()
            };
            Ok((tenant.clone(), counters))
        };
        self.tenants.iter().zip(0..).map(counters).collect()
    }

    fn change(&mut self, _: &str) -> Result<(), LabError> {
        Err(LabError::Computation("MeterRL has no policies to change".to_owned()))
    }
}

/// The program without devices, for frames of a test.
pub struct TestMeter(Object);

impl TestMeter {
    /// A limit for each of some destinations, each with its rate in bit/s. Their timers do not run: the clock stands still.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn load(rates: &[(Ipv4Addr, u64)]) -> Result<Self, LabError> {
        let mut open = ObjectBuilder::default().open_memory(OBJECT).map_err(LabError::bpf("reading the meter"))?;
        let entries = u32::try_from(rates.len()).unwrap_or(u32::MAX);
        for mut map in open.maps_mut().filter(|map| map.name() == "limits" || map.name() == "destinations") {
            map.set_max_entries(entries.max(1)).map_err(LabError::bpf("sizing the meter"))?;
        }
        let mut object = open.load().map_err(LabError::bpf("loading the meter"))?;
        for ((address, rate_bps), index) in rates.iter().zip(0_u32..) {
            let meter = Meter { rate: Rate(*rate_bps), burst: Size(10_000_000), ..Meter::default() };
            let limit = Limit { interval_ns: INTERVAL_NS, tick_ns: super::now_ns()?, ..limit(&meter) };
            let (index, failed) = (index.to_ne_bytes(), || LabError::bpf("writing a limit of the meter"));
            map(&mut object, "limits")?.update(&index, bytes_of(&limit), MapFlags::ANY).map_err(failed())?;
            map(&mut object, "destinations")?.update(&address.octets(), &index, MapFlags::ANY).map_err(failed())?;
        }
        Ok(Self(object))
    }

    /// Judges a frame some times over; how long one took in the mean.
    ///
    /// # Errors
    /// The kernel refuses the frame.
    pub fn time(&mut self, frame: &[u8], times: u32) -> Result<Duration, LabError> {
        let program = self.0.progs_mut().find(|program| program.name() == "meter").ok_or_else(without)?;
        Ok(time_program(program.as_fd(), frame, times)?)
    }
}

fn without() -> LabError {
    LabError::Computation("the meter program is not what this lab was built with".to_owned())
}

fn map<'a>(object: &'a mut Object, name: &str) -> Result<MapMut<'a>, LabError> {
    object.maps_mut().find(|map| map.name() == name).ok_or_else(without)
}

fn attach(object: &mut Object, device: &str, to: Option<&str>) -> Result<Link, LabError> {
    let index = ifindex(device)?;
    if let Some(to) = to {
        let (key, value) = (index.to_ne_bytes(), ifindex(to)?.to_ne_bytes());
        for name in ["pairs", "forwards"] {
            map(object, name)?.update(&key, &value, MapFlags::ANY).map_err(LabError::bpf("pairing two devices"))?;
        }
    }
    let program = object.progs_mut().find(|program| program.name() == "meter").ok_or_else(without)?;
    let index = i32::try_from(index).unwrap_or(i32::MAX);
    program.attach_xdp(index).map_err(LabError::bpf("attaching the meter"))
}

fn limit_tenants(
    object: &mut Object,
    meter: &Meter,
    tenants: &[Tenant],
    limited: &mut Vec<String>,
) -> Result<(), LabError> {
    for name in &meter.tenants {
        let unknown = || LabError::Computation(format!("the meter names {name:?}, and no tenant is called so"));
        let tenant = tenants.iter().position(|tenant| tenant.name == *name).ok_or_else(unknown)?;
        let (_, destination) = addresses(tenant);
        let address: Ipv4Addr = destination.parse().map_err(|_| without())?;
        let number = u32::try_from(limited.len()).unwrap_or(u32::MAX);
        let index = number.to_ne_bytes();
        let failed = LabError::bpf("writing a limit of the meter");
        map(object, "limits")?.update(&index, bytes_of(&limit(meter)), MapFlags::ANY).map_err(failed)?;
        let failed = LabError::bpf("writing a destination of the meter");
        map(object, "destinations")?.update(&address.octets(), &index, MapFlags::ANY).map_err(failed)?;
        start_timer(object, number)?;
        limited.push(name.clone());
    }
    Ok(())
}

fn limit(meter: &Meter) -> Limit {
    let bytes = |size: u64| u32::try_from(size).unwrap_or(u32::MAX);
    let excess_q32 = u64::from(meter.excess_share.unwrap_or_default().0);
    let burst_bytes = bytes(meter.burst.0);
    let profile = wire::Profile {
        burst_bytes,
        excess_bytes: bytes((u64::from(burst_bytes) * excess_q32) >> 32),
        mtu_bytes: MTU_BYTES,
        ..wire::Profile::default()
    };
    Limit {
        profile,
        interval_ns: meter.interval.0,
        rate: rate::encode(meter.rate.0 / 8),
        drop_max_q32: meter.early_drop.unwrap_or_default().0,
        ..Limit::default()
    }
}

fn start_timer(object: &mut Object, index: u32) -> Result<(), LabError> {
    let program = object.progs_mut().find(|program| program.name() == "start_timer").ok_or_else(without)?;
    let mut context = index.to_ne_bytes();
    let input = ProgramInput { context_in: Some(&mut context), ..ProgramInput::default() };
    let output = program.test_run(input).map_err(LabError::bpf("starting the meter's timer"))?;
    if output.return_value == 0 { Ok(()) } else { Err(without()) }
}

fn bytes_of(limit: &Limit) -> &[u8] {
    // SAFETY: all of the struct's bytes are fields.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(limit).cast(), size_of::<Limit>()) }
}

fn limit_of(bytes: &[u8]) -> Limit {
    let mut limit = Limit::default();
    let length = bytes.len().min(size_of::<Limit>());
    // SAFETY: at most the size of a limit is written, and any bits make a valid one.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), std::ptr::from_mut(&mut limit).cast(), length) };
    limit
}
