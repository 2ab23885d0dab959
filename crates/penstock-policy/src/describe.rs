// SPDX-License-Identifier: MIT OR Apache-2.0
//! From keys, matches and profiles back to the words that people wrote: for lists, explanations and samples.

use crate::fields::protocol_name;
use crate::matching::{
    Address, DPORT, DST, Field, HAS_PORTS, HAS_TEID, HAS_VLAN, HAS_VNI, Has, IPV4_WORD, Match, PROTO, Prefix, Range,
    SPORT, SRC, TEID, TRANSPORT_WORD, VLAN, VNI,
};
use crate::model::{DropBy, Fair, Users};
use crate::terms::{METERS, ON_EXCESS, OnExcess, wire_meter};
use crate::units::{format_percent, format_rate, format_size, format_time};
use penstock_algo::{rate, wire};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// One of a packet's two addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Source.
    Src,
    /// Destination.
    Dst,
}

impl Side {
    fn place(self) -> &'static Address {
        match self {
            Side::Src => &SRC,
            Side::Dst => &DST,
        }
    }

    /// The name of the match field.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Side::Src => "src",
            Side::Dst => "dst",
        }
    }
}

/// The prefix of an address that a key fixes; none when its mask does not look at that address.
#[must_use]
pub fn prefix(mask: &wire::Key, value: &wire::Key, side: Side) -> Option<Prefix> {
    let place = side.place();
    let family = family(mask, value)?;
    let (mask, address) = if family == 4 {
        let half = |key: &wire::Key| (key.words[IPV4_WORD] >> place.ipv4_shift) & u64::from(u32::MAX);
        (u128::from(half(mask)), u128::from(half(value)))
    } else {
        let whole = |key: &wire::Key| u128::from(key.words[place.high]) << 64 | u128::from(key.words[place.low]);
        (whole(mask), whole(value))
    };
    let length = u8::try_from(mask.count_ones()).unwrap_or(u8::MAX);
    (mask != 0).then_some(Prefix { address, length, family })
}

/// 4 or 6, when the mask looks at all of the family.
fn family(mask: &wire::Key, value: &wire::Key) -> Option<u8> {
    let of =
        |key: &wire::Key| key.words[TRANSPORT_WORD] >> wire::PST_KEY_FAMILY_SHIFT & u64::from(wire::PST_KEY_FAMILY);
    let family = u8::try_from(of(value)).unwrap_or(0);
    (of(mask) == u64::from(wire::PST_KEY_FAMILY) && [4, 6].contains(&family)).then_some(family)
}

fn has(key: &wire::Key, (word, bits): Has) -> bool {
    key.words[word] & bits == bits
}

fn number(key: &wire::Key, field: &Field) -> u64 {
    key.words[field.word] >> field.shift & ((1 << field.bits) - 1)
}

/// The key columns of a row, as a limits file has them: name and value.
#[must_use]
pub fn key_columns(mask: &wire::Key, value: &wire::Key) -> Vec<(&'static str, String)> {
    let mut columns = Vec::new();
    let (src, dst) = (prefix(mask, value, Side::Src), prefix(mask, value, Side::Dst));
    if has(mask, HAS_PORTS) {
        columns.push(("five_tuple", packet(value)));
    } else {
        columns.extend(dst.map(|prefix| ("dst", short(prefix))));
        columns.extend(src.map(|prefix| ("src", short(prefix))));
    }
    for (name, field, bits) in [("vlan", &VLAN, HAS_VLAN), ("vni", &VNI, HAS_VNI), ("teid", &TEID, HAS_TEID)] {
        if has(mask, bits) {
            columns.push((name, number(value, field).to_string()));
        }
    }
    columns
}

/// A prefix; a single address without its length.
fn short(prefix: Prefix) -> String {
    let text = prefix.to_string();
    let is_single = prefix.length == if prefix.family == 4 { 32 } else { 128 };
    if is_single { text.split('/').next().unwrap_or_default().to_owned() } else { text }
}

/// A packet by its key: `udp 10.0.0.1:53 -> 10.1.2.3:1000`.
#[must_use]
pub fn packet(key: &wire::Key) -> String {
    let family = key.words[TRANSPORT_WORD] >> wire::PST_KEY_FAMILY_SHIFT & u64::from(wire::PST_KEY_FAMILY);
    if family != 4 && family != 6 {
        return "not IP".to_owned();
    }
    let proto = protocol_name(u8::try_from(number(key, &PROTO)).unwrap_or(0));
    let has_ports = has(key, HAS_PORTS);
    let end = |place: &Address, port: &Field| {
        let address = if family == 4 {
            let half = key.words[IPV4_WORD] >> place.ipv4_shift & u64::from(u32::MAX);
            Ipv4Addr::from(u32::try_from(half).unwrap_or(0)).to_string()
        } else {
            let whole = u128::from(key.words[place.high]) << 64 | u128::from(key.words[place.low]);
            let address = Ipv6Addr::from(whole);
            if has_ports { format!("[{address}]") } else { address.to_string() }
        };
        if has_ports { format!("{address}:{}", number(key, port)) } else { address }
    };
    format!("{proto} {} -> {}", end(&SRC, &SPORT), end(&DST, &DPORT))
}

/// Fields as a person writes them, with a space in the place of the colon.
impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = Vec::new();
        let mut say = |name: &str, value: Option<String>| fields.extend(value.map(|value| format!("{name} {value}")));
        say("src", self.src.map(short));
        say("dst", self.dst.map(short));
        say("proto", self.proto.map(protocol_name));
        say("sport", self.sport.map(range));
        say("dport", self.dport.map(range));
        say("dscp", self.dscp.map(|dscp| dscp.to_string()));
        say("vlan", self.vlan.map(range));
        say("vni", self.vni.map(range));
        say("teid", self.teid.map(range));
        say("src_mac", self.src_mac.map(mac));
        say("dst_mac", self.dst_mac.map(mac));
        say("tcp_flags", self.tcp_flags.map(|flags| flags.to_string()));
        if fields.is_empty() { f.write_str("every packet") } else { f.write_str(&fields.join(", ")) }
    }
}

fn range(range: Range) -> String {
    if range.low == range.high { range.low.to_string() } else { format!("{}-{}", range.low, range.high) }
}

fn mac(mac: u64) -> String {
    let bytes = mac.to_be_bytes();
    bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// What a profile says: `burst 17.5ms, excess 25ms, drop`.
#[must_use]
pub fn terms(profile: &wire::Profile) -> String {
    let depth = |ticks: u64, bytes: u32| match bytes {
        0 => format_time(ticks / rate::TICKS_PER_NSEC),
        bytes => format_size(u64::from(bytes)),
    };
    let mut terms = vec![
        format!("burst {}", depth(profile.burst_ticks, profile.burst_bytes)),
        format!("excess {}", depth(profile.excess_ticks, profile.excess_bytes)),
    ];
    let meter = METERS.iter().find(|&&(_, meter)| wire_meter(meter) == profile.meter);
    match meter {
        Some((name, _)) if u32::from(profile.meter) != wire::PST_METER_WINDOW => terms.push((*name).to_owned()),
        _ => {
            let wanted = match (u32::from(profile.yellow_action), u32::from(profile.red_action)) {
                (_, wire::PST_ACTION_HOLD) => OnExcess::Shape,
                (wire::PST_ACTION_MARK, _) => OnExcess::Mark,
                _ => OnExcess::Drop,
            };
            terms.extend(ON_EXCESS.iter().find(|&&(_, word)| word == wanted).map(|(name, _)| (*name).to_owned()));
        }
    }
    if profile.hold_ticks != 0 {
        terms.push(format!("horizon {}", format_time(profile.hold_ticks / rate::TICKS_PER_NSEC)));
    }
    if profile.hold_bytes != 0 {
        terms.push(format!("backlog {}", format_size(u64::from(profile.hold_bytes))));
    }
    if profile.ce_ns != 0 {
        terms.push(format!("CE after {}", format_time(u64::from(profile.ce_ns))));
    }
    if profile.second_rate != 0 {
        let name = if u32::from(profile.meter) == wire::PST_METER_RFC2698 { "peak" } else { "excess rate" };
        let second_ticks = 1_000_000_000 * rate::TICKS_PER_NSEC;
        let bits_per_second = (rate::bytes_q8(profile.second_rate, second_ticks) + 128) / 256 * 8;
        terms.push(format!("{name} {}", format_rate(bits_per_second)));
    }
    if u32::from(profile.flags) & wire::PST_PROFILE_COLOR_AWARE != 0 {
        terms.push("colour-aware".to_owned());
    }
    if u32::from(profile.flags) & wire::PST_PROFILE_SHADOW != 0 {
        terms.push("shadow".to_owned());
    }
    if profile.weight != 0 {
        terms.push(format!("weight {}", profile.weight));
    }
    terms.join(", ")
}

/// Who shares what a class gets: `by dst, in a sketch` or `by vni and src, 16384 entries`.
#[must_use]
pub fn users(users: &Users) -> String {
    let key: Vec<&str> = users.key.iter().map(|column| column.name()).collect();
    let form = match users.fair {
        Fair::Sketch { drop: DropBy::Limiter } => "in a sketch".to_owned(),
        Fair::Sketch { drop: DropBy::Chance } => "in a sketch, drops by chance".to_owned(),
        Fair::Sketch { drop: DropBy::Periodic } => "in a sketch, drops of TCP at intervals".to_owned(),
        Fair::Tree { entries } => format!("{entries} entries"),
    };
    format!("by {}, {form}", key.join(" and "))
}

/// What a delay line does: `2ms, jitter 200us, loss 0.1%`; none when it does nothing.
#[must_use]
pub fn line(line: &wire::Line) -> Option<String> {
    if line.delay_ns == 0 && line.loss_q32 == 0 {
        return None;
    }
    let mut parts = Vec::new();
    if line.delay_ns > 0 {
        parts.push(format_time(line.delay_ns));
    }
    if line.jitter_ns > 0 {
        parts.push(format!("jitter {}", format_time(line.jitter_ns)));
    }
    if line.loss_q32 > 0 {
        parts.push(format!("loss {}", format_percent(line.loss_q32)));
    }
    if line.seed > 0 {
        parts.push(format!("seed {}", line.seed));
    }
    Some(parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits_file::LimitsText;
    use crate::{Policy, compile::compile};

    #[test]
    fn rows_read_as_they_were_written() {
        let rows = [
            ("dst", "10.1.0.0/16"),
            ("dst", "10.1.0.9"),
            ("src", "2001:db8::/32"),
            ("five_tuple", "udp 10.0.0.1:53 -> 10.1.2.3:1000"),
            ("five_tuple", "tcp [2001:db8::1]:443 -> [2001:db8::2]:50000"),
            ("vlan", "7"),
            ("vni", "5000"),
            ("teid", "4096"),
        ];
        for (column, value) in rows {
            let text = "penstock: 1\nports: { lan: { rate: 1Gbit/s } }\nlinks: [ { name: down, port: lan, classes: \
                        [ { name: rows, limits: { file: rows.csv, burst: 64KB } } ] } ]\n";
            let policy = Policy::parse("p.yaml", text).unwrap();
            let read = |_: &str| {
                let bytes = format!("name,{column},rate\nx,{value},1Mbit/s\n").into_bytes();
                Ok(LimitsText { name: "rows.csv".to_owned(), bytes })
            };
            let plan = compile(&policy, read).unwrap();
            let entry = &plan.entries[0];
            let columns = key_columns(&plan.tuples[entry.tuple as usize].mask, &entry.value);
            assert_eq!(columns, [(column, value.to_owned())]);
            assert_eq!(terms(&plan.profiles[usize::from(entry.profile)]), "burst 64KB, excess 25ms, drop");
        }
    }

    #[test]
    fn matches_read_as_they_were_written() {
        let text = "penstock: 1\nports: { lan: { rate: 1Gbit/s } }\nlinks: [ { name: down, port: lan, classes: [ { name: all, match: \
                    [ { proto: udp, dport: 5060-5070, dscp: ef, src: 10.0.0.0/8 }, { src_mac: 02:00:5e:10:00:01 }, \
                    { tcp_flags: \"syn,!ack\" }, {} ], limit: { rate: 1Mbit/s, meter: rfc2698, peak: 2Mbit/s, burst: 10KB, \
                    excess: 20KB, color_aware: true } } ] } ]\n";
        let policy = Policy::parse("p.yaml", text).unwrap();
        let items: Vec<String> = policy.links[0].classes[0].items.iter().map(|item| item.fields.to_string()).collect();
        let expected = [
            "src 10.0.0.0/8, proto udp, dport 5060-5070, dscp 46",
            "src_mac 02:00:5e:10:00:01",
            "tcp_flags syn,!ack",
            "every packet",
        ];
        assert_eq!(items, expected);
        let plan = compile(&policy, |_| unreachable!()).unwrap();
        assert_eq!(terms(&plan.profiles[0]), "burst 10KB, excess 20KB, rfc2698, peak 2Mbit/s, colour-aware");
    }
}
