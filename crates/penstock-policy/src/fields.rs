// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of fields as people write them: addresses, protocols, ports, DSCPs, MACs, TCP flags; weights.

use crate::diagnostics::{Problem, did_you_mean, quote};
use crate::matching::{Prefix, Range, TcpFlags};

/// IP protocol numbers by name.
const PROTOCOLS: [(&str, u8); 12] = [
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", TCP),
    ("udp", UDP),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("ospf", 89),
    ("sctp", SCTP),
    ("udplite", 136),
];
/// TCP.
pub const TCP: u8 = 6;
/// UDP.
pub const UDP: u8 = 17;
/// SCTP.
pub const SCTP: u8 = 132;

/// Largest weight.
pub const WEIGHT_MAX: u32 = 1 << 24;

/// TCP flags by name, lowest bit first.
const TCP_FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

/// A protocol as a person would write it.
#[must_use]
pub fn protocol_name(proto: u8) -> String {
    let known = PROTOCOLS.iter().find(|&&(_, number)| number == proto);
    known.map_or_else(|| proto.to_string(), |&(name, _)| name.to_owned())
}

/// An address prefix, or a single address.
///
/// # Errors
/// Not an address; bits set below the prefix, with the corrected one.
pub fn parse_prefix(text: &str) -> Result<Prefix, Problem> {
    let help = "such as `10.1.0.0/16`, `192.0.2.7` or `\"2001:db8::/32\"`";
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let bad = || Problem::new(format!("{} is not an IP address or prefix", quote(text)), help);
    let (address, family, width) = if address.contains(':') {
        (u128::from(address.parse::<std::net::Ipv6Addr>().map_err(|_| bad())?), 6, 128)
    } else {
        (u128::from(parse_ipv4(address).ok_or_else(bad)?), 4, 32)
    };
    let length = match length {
        None => width,
        Some(digits) => {
            let number = parse_digits(digits).ok_or_else(bad)?;
            match u8::try_from(number) {
                Ok(length) if length <= width => length,
                _ => {
                    let message = format!("the prefix length {} is too long for IPv{family}", quote(digits));
                    return Err(Problem::new(message, format!("at most /{width}")));
                }
            }
        }
    };
    let prefix = Prefix { address, length, family };
    let corrected = Prefix { address: address & prefix.mask(), ..prefix };
    if corrected != prefix {
        let message = format!("{} has address bits set below the prefix", quote(text));
        return Err(Problem::new(
            message,
            format!("the prefix is `{corrected}`, the single address `{}`", quote_address(prefix)),
        ));
    }
    Ok(prefix)
}

fn quote_address(prefix: Prefix) -> String {
    let single = Prefix { length: if prefix.family == 4 { 32 } else { 128 }, ..prefix };
    single.to_string()
}

/// Four decimal numbers with dots; no leading zeros, which some read as octal.
#[must_use]
pub fn parse_ipv4(text: &str) -> Option<u32> {
    let (mut address, mut octet) = (0_u32, 0_u32);
    let (mut octets, mut digits) = (1, 0);
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' if digits == 0 || octet > 0 => {
                octet = octet * 10 + u32::from(byte - b'0');
                digits += 1;
                if octet > 255 {
                    return None;
                }
            }
            b'.' if digits > 0 && octets < 4 => {
                address = (address << 8) | octet;
                (octet, digits) = (0, 0);
                octets += 1;
            }
            _ => return None,
        }
    }
    (octets == 4 && digits > 0).then_some((address << 8) | octet)
}

/// A decimal number of at most ten digits, nothing else.
#[must_use]
pub fn parse_digits(text: &str) -> Option<u32> {
    if text.is_empty() || text.len() > 10 {
        return None;
    }
    let mut value: u64 = 0;
    for byte in text.bytes() {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u64::from(byte - b'0');
    }
    u32::try_from(value).ok()
}

/// A weight: a whole number from 1 to [`WEIGHT_MAX`].
///
/// # Errors
/// Says what is wrong with the text and what would be right.
pub fn parse_weight(text: &str) -> Result<u32, Problem> {
    if let Some(weight @ 1..=WEIGHT_MAX) = parse_digits(text) {
        return Ok(weight);
    }
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if text.split_once('.').is_some_and(|(whole, fraction)| is_digits(whole) && is_digits(fraction)) {
        let message = format!("{} is not a whole number", quote(text));
        return Err(Problem::new(message, "scale all weights up: 3 and 2 say the same as 1.5 and 1"));
    }
    let help = format!("a whole number such as `2`, from 1 to {WEIGHT_MAX}");
    Err(Problem::new(format!("{} is not a weight", quote(text)), help))
}

/// A number, decimal or hexadecimal with 0x, up to `max`.
///
/// # Errors
/// Not a number, or above `max`.
pub fn parse_number(text: &str, what: &str, max: u32) -> Result<u32, Problem> {
    let number = match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u32::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None => parse_digits(text),
    };
    match number {
        Some(number) if number <= max => Ok(number),
        _ => Err(Problem::new(format!("{} is not a {what}", quote(text)), format!("a number from 0 to {max}"))),
    }
}

/// A number or a range `low-high`.
///
/// # Errors
/// Not numbers, above `max`, or the wrong way round.
pub fn parse_range(text: &str, what: &str, max: u32) -> Result<Range, Problem> {
    let Some((low, high)) = text.split_once('-') else {
        let number = parse_number(text.trim(), what, max)?;
        return Ok(Range { low: number, high: number });
    };
    let (low, high) = (parse_number(low.trim(), what, max)?, parse_number(high.trim(), what, max)?);
    if low > high {
        return Err(Problem::new(
            format!("the range {} ends before it starts", quote(text)),
            format!("`{high}-{low}`?"),
        ));
    }
    Ok(Range { low, high })
}

/// A protocol by name or number.
///
/// # Errors
/// No such protocol.
pub fn parse_proto(text: &str) -> Result<u8, Problem> {
    let lower = text.to_ascii_lowercase();
    if let Some(&(_, number)) = PROTOCOLS.iter().find(|&&(name, _)| name == lower) {
        return Ok(number);
    }
    if let Some(number) = parse_digits(text).and_then(|number| u8::try_from(number).ok()) {
        return Ok(number);
    }
    let names = PROTOCOLS.map(|(name, _)| name);
    Err(Problem::new(
        format!("{} is not a protocol", quote(text)),
        did_you_mean(text, "a number from 0 to 255, or one of", &names),
    ))
}

/// A DSCP by name (RFC 2474, 2597, 3246, 5865, 8622) or number.
///
/// # Errors
/// No such DSCP.
pub fn parse_dscp(text: &str) -> Result<u8, Problem> {
    let lower = text.to_ascii_lowercase();
    let digit = |index: usize, max: u8| {
        let digit = lower.as_bytes().get(index)?.checked_sub(b'0')?;
        (digit <= max).then_some(digit)
    };
    let known = match lower.as_str() {
        "ef" => Some(46),
        "va" => Some(44),
        "le" => Some(1),
        "be" | "default" => Some(0),
        name if name.starts_with("cs") && name.len() == 3 => digit(2, 7).map(|class| class * 8),
        name if name.starts_with("af") && name.len() == 4 => match (digit(2, 4), digit(3, 3)) {
            (Some(class @ 1..), Some(drop @ 1..)) => Some(class * 8 + drop * 2),
            _ => None,
        },
        _ => parse_digits(text).and_then(|number| u8::try_from(number).ok()).filter(|&number| number < 64),
    };
    known.ok_or_else(|| {
        Problem::new(
            format!("{} is not a DSCP", quote(text)),
            "a number from 0 to 63, or ef, va, le, be, cs0 to cs7, af11 to af43",
        )
    })
}

/// A MAC address, as in `02:00:5e:10:00:01`.
///
/// # Errors
/// Not six hexadecimal octets.
pub fn parse_mac(text: &str) -> Result<u64, Problem> {
    let separator = if text.contains('-') { '-' } else { ':' };
    let mut mac = 0_u64;
    let mut octets = 0;
    for part in text.split(separator) {
        let digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u8::from_str_radix(part, 16) {
            Ok(octet) if digits && octets < 6 => mac = (mac << 8) | u64::from(octet),
            _ => octets = 6,
        }
        octets += 1;
    }
    if octets == 6 {
        return Ok(mac);
    }
    Err(Problem::new(format!("{} is not a MAC address", quote(text)), "such as `02:00:5e:10:00:01`"))
}

/// TCP flags that are set or, with `!`, not set: `syn,!ack`.
///
/// # Errors
/// No such flag, a flag twice, or none.
pub fn parse_tcp_flags(text: &str) -> Result<TcpFlags, Problem> {
    let mut flags = TcpFlags { mask: 0, value: 0 };
    for word in text.split(',') {
        let word = word.trim().to_ascii_lowercase();
        let (name, set) = match word.strip_prefix('!') {
            Some(name) => (name, false),
            None => (word.as_str(), true),
        };
        let Some(bit) = TCP_FLAGS.iter().position(|&flag| flag == name) else {
            let help = did_you_mean(name, "flags, with `,` between and `!` for \"not set\"", &TCP_FLAGS);
            return Err(Problem::new(format!("{} is not a TCP flag", quote(name)), help));
        };
        if flags.mask & (1 << bit) != 0 {
            return Err(Problem::new(format!("the TCP flag `{name}` is here twice"), "remove one"));
        }
        flags.mask |= 1 << bit;
        flags.value |= u8::from(set) << bit;
    }
    Ok(flags)
}

/// As they are written: `syn,!ack`.
impl std::fmt::Display for TcpFlags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let looked_at = TCP_FLAGS.iter().enumerate().filter(|(bit, _)| self.mask & (1 << bit) != 0);
        let words = looked_at
            .map(|(bit, name)| if self.value & (1 << bit) != 0 { (*name).to_owned() } else { format!("!{name}") });
        f.write_str(&words.collect::<Vec<_>>().join(","))
    }
}
