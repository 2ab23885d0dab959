// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an operator should know though it is no error: windows that are widened, links that are oversubscribed.

use crate::model::Link;
use crate::units::{format_rate, format_size, format_time};
use penstock_algo::limiter::{self, Limiter};
use penstock_algo::meter::Meter;
use penstock_algo::{rate, wire};

/// Limits whose windows hold less than the packets that they need (`limiter.h` and `meter.h`: the data plane widens them).
#[derive(Default)]
pub struct Tightness {
    seen: u64,
    widened: u64,
    worst: Option<Widened>,
}

struct Widened {
    name: String,
    rate_bps: u64,
    window: Window,
}

/// A depth that is too small, as it was written and as it will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    written_ticks: u64,
    widened_ticks: u64,
    packets: u32,
    mtu_bytes: u32,
}

impl Tightness {
    /// Takes one limit into account, and its window if that is too tight.
    pub fn see(&mut self, window: Option<Window>, rate_bps: u64, name: &str) {
        self.seen += 1;
        let Some(window) = window else { return };
        self.widened += 1;
        if self.worst.as_ref().is_none_or(|worst| worst.window.widened_ticks < window.widened_ticks) {
            self.worst = Some(Widened { name: name.to_owned(), rate_bps, window });
        }
    }

    /// The warning about a class's own limit.
    pub fn of_class(&self) -> Option<String> {
        let Widened { name, rate_bps, window } = self.worst.as_ref()?;
        let text = window.describe();
        Some(format!("limit {name}: {text} at {}: widened to {}", format_rate(*rate_bps), about(window.widened_ticks)))
    }

    /// The warning about a limits file.
    pub fn of_file(&self, file: &str) -> Option<String> {
        let Widened { name, rate_bps, window } = self.worst.as_ref()?;
        Some(format!(
            "{file}: {} of {} limits are too tight for their rates and widened; the widest is {name}: {} at {}: widened to {}",
            self.widened,
            self.seen,
            window.describe(),
            format_rate(*rate_bps),
            about(window.widened_ticks)
        ))
    }
}

impl Window {
    /// The depth of a limit that the data plane widens because it holds too few packets, if there is one.
    pub fn too_tight(profile: &wire::Profile, code: u32) -> Option<Window> {
        let depth = |ticks: u64, bytes: u32, code: u32| ticks.saturating_add(rate::cost_ticks(code, bytes));
        let burst = depth(profile.burst_ticks, profile.burst_bytes, code);
        let Some(meter) = Meter::new(profile, code, 0) else {
            if profile.hold_ticks != 0 {
                let packet_ticks = rate::cost_ticks(code, profile.mtu_bytes);
                return Self::widened(profile, code, profile.hold_ticks, packet_ticks.max(profile.hold_ticks), 1);
            }
            let written = burst.saturating_add(depth(profile.excess_ticks, profile.excess_bytes, code));
            let (_, window) = Limiter::new(profile, code, 0).depths_ticks();
            return Self::widened(profile, code, written, window, limiter::packets(profile));
        };
        let second = if profile.second_rate == 0 { code } else { profile.second_rate };
        let excess = depth(profile.excess_ticks, profile.excess_bytes, second);
        let (committed_ticks, excess_ticks) = meter.depths_ticks();
        let of_bucket = |code: u32, written: u64, widened: u64| {
            let packets = widened / rate::cost_ticks(code, profile.mtu_bytes).max(1);
            Self::widened(profile, code, written, widened, u32::try_from(packets).unwrap_or(u32::MAX))
        };
        of_bucket(code, burst, committed_ticks).or_else(|| of_bucket(second, excess, excess_ticks))
    }

    fn widened(profile: &wire::Profile, code: u32, written: u64, widened: u64, packets: u32) -> Option<Window> {
        let is_tight = written < widened && written < u64::from(packets) * rate::cost_ticks(code, profile.mtu_bytes);
        is_tight.then_some(Window {
            written_ticks: written,
            widened_ticks: widened,
            packets,
            mtu_bytes: profile.mtu_bytes,
        })
    }

    fn describe(&self) -> String {
        let (written, mtu_bytes) = (about(self.written_ticks), self.mtu_bytes);
        match self.packets {
            1 => format!("horizon {written} is less than a packet of {mtu_bytes}B takes"),
            2 => format!("window {written} holds less than two packets of {mtu_bytes}B"),
            _ => format!("window {written} holds less than three packets of {mtu_bytes}B"),
        }
    }
}

/// A time to three digits, for people.
fn about(ticks: u64) -> String {
    let time_ns = ticks / rate::TICKS_PER_NSEC;
    let (unit, divisor) = match time_ns {
        0..1_000 => ("ns", 1),
        1_000..1_000_000 => ("us", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    let tenths = (time_ns * 10 + divisor / 2) / divisor;
    if tenths >= 1_000 || tenths.is_multiple_of(10) {
        return format!("{}{unit}", (tenths + 5) / 10);
    }
    format!("{}.{}{unit}", tenths / 10, tenths % 10)
}

/// A link whose classes may send more than it carries.
pub fn oversubscription(link: &str, sum_bps: u64, rate_bps: u64) -> Option<String> {
    let percent = u128::from(sum_bps) * 100 / u128::from(rate_bps.max(1));
    (sum_bps > rate_bps).then(|| {
        let (sum, rate) = (format_rate(sum_bps), format_rate(rate_bps));
        format!("link {link}: its limits add up to {sum}, {percent}% of its rate of {rate}")
    })
}

/// A link whose delay line holds more, when it is full, than packets that wait may take: each takes a piece of its own.
pub fn short_memory(link: &Link, mtu_bytes: u32, memory_bytes: u64) -> Option<String> {
    let delay = link.delay.filter(|delay| delay.time_ns > 0)?;
    let on_the_way = u128::from(link.rate_bps) * u128::from(delay.time_ns + delay.jitter_ns) / 8_000_000_000;
    let pieces = on_the_way.div_ceil(u128::from(mtu_bytes.max(1))) * u128::from(wire::PST_HOLD_CHUNK_BYTES);
    (pieces > u128::from(memory_bytes)).then(|| {
        let (rate, time, name) = (format_rate(link.rate_bps), format_time(delay.time_ns), &link.name);
        let needed = u64::try_from(pieces.next_multiple_of(1_000_000)).unwrap_or(u64::MAX);
        let (needed, memory) = (format_size(needed), format_size(memory_bytes));
        format!("link {name}: {rate} over {time} take {needed} of `shaper: {{ memory }}`, or more, and it is {memory}")
    })
}
