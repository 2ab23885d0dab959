// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates, sizes, times and percentages as people write them.
//!
//! Units     rates are bit/s, sizes bytes, times nanoseconds, percentages 1/2^32.
//! Ranges    [`RATE_MIN_BPS`] ..= [`RATE_MAX_BPS`]; sizes and times as their field allows.
//! Overflow  a number has at most 24 digits and no multiplier is above 2^43, so every product fits 127 bits.
//!
//! Prefixes are decimal (k or K, M, G, T) or binary (Ki, Mi, Gi, Ti). All arithmetic is exact: what is not a whole number of
//! bit/s, bytes or nanoseconds is refused, never rounded.

use crate::diagnostics::{Problem, closest, quote};
use penstock_algo::rate;

/// Smallest rate, bit/s.
pub const RATE_MIN_BPS: u64 = rate::MIN_BPS * 8;
/// Largest rate, bit/s.
pub const RATE_MAX_BPS: u64 = rate::MAX_BPS * 8;
/// Longest number, in digits.
const DIGITS_MAX: usize = 24;

const KI: u64 = 1 << 10;
const MI: u64 = 1 << 20;
const GI: u64 = 1 << 30;
const TI: u64 = 1 << 40;
const K: u64 = 1_000;
const M: u64 = 1_000_000;
const G: u64 = 1_000_000_000;
const T: u64 = 1_000_000_000_000;

/// A kind of quantity: its units with their multipliers, the most usual first.
struct Kind {
    noun: &'static str,
    base: &'static str,
    example: &'static str,
    units: &'static [(&'static str, u64)],
}

const RATE: Kind = Kind {
    noun: "rate",
    base: "bit/s",
    example: "`100Mbit/s` or `12MB/s`",
    units: &[
        ("Mbit/s", M),
        ("kbit/s", K),
        ("Gbit/s", G),
        ("bit/s", 1),
        ("Kbit/s", K),
        ("Tbit/s", T),
        ("Kibit/s", KI),
        ("Mibit/s", MI),
        ("Gibit/s", GI),
        ("Tibit/s", TI),
        ("MB/s", 8 * M),
        ("kB/s", 8 * K),
        ("GB/s", 8 * G),
        ("B/s", 8),
        ("KB/s", 8 * K),
        ("TB/s", 8 * T),
        ("KiB/s", 8 * KI),
        ("MiB/s", 8 * MI),
        ("GiB/s", 8 * GI),
        ("TiB/s", 8 * TI),
    ],
};

const SIZE: Kind = Kind {
    noun: "size",
    base: "bytes",
    example: "`1500B`, `64KB` (64,000 B) or `64KiB` (65,536 B)",
    units: &[
        ("B", 1),
        ("KB", K),
        ("kB", K),
        ("MB", M),
        ("GB", G),
        ("TB", T),
        ("KiB", KI),
        ("MiB", MI),
        ("GiB", GI),
        ("TiB", TI),
    ],
};

const TIME: Kind = Kind {
    noun: "time",
    base: "ns",
    example: "`17.5ms` or `5us`",
    units: &[("ms", M), ("us", K), ("ns", 1), ("s", G), ("min", 60 * G), ("h", 3600 * G)],
};

/// A burst or an excess: a time, or a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Depth {
    /// Nanoseconds.
    Time(u64),
    /// Bytes.
    Bytes(u64),
}

impl std::fmt::Display for Depth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Depth::Time(ns) => f.write_str(&format_time(ns)),
            Depth::Bytes(bytes) => f.write_str(&format_size(bytes)),
        }
    }
}

/// A rate in bit/s.
///
/// # Errors
/// Says what is wrong with the text and what would be right.
pub fn parse_rate(text: &str) -> Result<u64, Problem> {
    let rate_bps = parse(text, &RATE)?;
    if (RATE_MIN_BPS..=RATE_MAX_BPS).contains(&rate_bps) {
        return Ok(rate_bps);
    }
    let help = format!("rates go from {} to {}", format_rate(RATE_MIN_BPS), format_rate(RATE_MAX_BPS));
    Err(Problem::new(format!("the rate {} is out of range", quote(text)), help))
}

/// A size in bytes.
///
/// # Errors
/// Says what is wrong with the text and what would be right.
pub fn parse_size(text: &str) -> Result<u64, Problem> {
    parse(text, &SIZE)
}

/// A time in nanoseconds.
///
/// # Errors
/// Says what is wrong with the text and what would be right.
pub fn parse_time(text: &str) -> Result<u64, Problem> {
    parse(text, &TIME)
}

/// A burst or excess: a time or a size.
///
/// # Errors
/// Says what is wrong with the text and what would be right.
pub fn parse_depth(text: &str) -> Result<Depth, Problem> {
    let either = || Problem::new(format!("{} is neither a time nor a size", quote(text)), "such as `17.5ms` or `64KB`");
    let Some(number) = Number::read(text) else {
        return Err(either());
    };
    if number.unit.is_empty() {
        return Err(Problem::new(
            format!("{} has no unit", quote(text)),
            "a time such as `17.5ms` or a size such as `64KB`",
        ));
    }
    if TIME.units.iter().any(|&(unit, _)| unit == number.unit) {
        return parse_time(text).map(Depth::Time);
    }
    if SIZE.units.iter().any(|&(unit, _)| unit == number.unit) {
        return parse_size(text).map(Depth::Bytes);
    }
    Err(either())
}

/// A probability in 1/2^32, from a percentage such as `10%`; 100 % is `u32::MAX`.
///
/// # Errors
/// Says what is wrong with the text and what would be right.
pub fn parse_percent(text: &str) -> Result<u32, Problem> {
    let help = "a percentage from 0% to 100%, such as `10%`";
    let number = Number::read(text).filter(|number| number.unit == "%");
    let Some(number) = number else {
        let what = if Number::read(text).is_some_and(|number| number.unit.is_empty()) {
            format!("{} has no unit", quote(text))
        } else {
            format!("{} is not a percentage", quote(text))
        };
        return Err(Problem::new(what, help));
    };
    let whole = 100 * 10_u128.pow(number.decimals);
    if number.digits > whole {
        return Err(Problem::new(format!("{} is more than 100%", quote(text)), help));
    }
    let q32 = (number.digits << 32) / whole;
    Ok(u32::try_from(q32).unwrap_or(u32::MAX))
}

/// A probability as a percentage, to a millionth: `0.1%`.
#[must_use]
pub fn format_percent(probability_q32: u32) -> String {
    let millionths = (u128::from(probability_q32) * 100_000_000 + (1 << 31)) >> 32;
    let (whole, rest) = (millionths / 1_000_000, millionths % 1_000_000);
    let digits = format!("{whole}.{rest:06}");
    format!("{}%", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// A decimal number and what follows it: `digits / 10^decimals unit`.
struct Number<'a> {
    digits: u128,
    decimals: u32,
    unit: &'a str,
}

impl<'a> Number<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let bytes = text.as_bytes();
        let mut digits: u128 = 0;
        let mut count = 0;
        let mut point = None;
        let mut end = 0;
        for (index, &byte) in bytes.iter().enumerate() {
            match byte {
                b'0'..=b'9' => {
                    digits = digits * 10 + u128::from(byte - b'0');
                    count += 1;
                }
                b'.' if point.is_none() && index > 0 => point = Some(index),
                _ => break,
            }
            if count > DIGITS_MAX {
                return None;
            }
            end = index + 1;
        }
        let decimals = point.map_or(0, |point| end - point - 1);
        if count == 0 || (point.is_some() && decimals == 0) {
            return None;
        }
        Some(Self { digits, decimals: u32::try_from(decimals).ok()?, unit: text[end..].trim_start() })
    }
}

fn parse(text: &str, kind: &Kind) -> Result<u64, Problem> {
    let such = || format!("write a {} such as {}", kind.noun, kind.example);
    let Some(number) = Number::read(text) else {
        return Err(Problem::new(format!("{} is not a {}", quote(text), kind.noun), such()));
    };
    if number.unit.is_empty() {
        return Err(Problem::new(format!("{} has no unit", quote(text)), such()));
    }
    let Some(&(_, multiplier)) = kind.units.iter().find(|&&(unit, _)| unit == number.unit) else {
        return Err(unknown_unit(text, &number, kind));
    };
    let scale = 10_u128.pow(number.decimals);
    let product = number.digits * u128::from(multiplier);
    let (whole, rest) = (product / scale, product % scale);
    let Ok(value) = u64::try_from(whole) else {
        return Err(Problem::new(format!("the {} {} is out of range", kind.noun, quote(text)), such()));
    };
    if rest != 0 {
        let message = format!("{} is not a whole number of {}", quote(text), kind.base);
        let base = if kind.base == "bytes" { "B" } else { kind.base };
        return Err(Problem::new(message, format!("the nearest below is `{value}{base}`")));
    }
    Ok(value)
}

/// Units that people write in other ways, as the ending that is meant.
const RATE_ENDINGS: [(&str, &str); 7] = [
    ("bits/s", "bit/s"),
    ("bps", "bit/s"),
    ("Bps", "B/s"),
    ("bit/sec", "bit/s"),
    ("b/s", "bit/s"),
    ("bit", "bit/s"),
    ("B", "B/s"),
];

fn unknown_unit(text: &str, number: &Number<'_>, kind: &Kind) -> Problem {
    let names: Vec<&str> = kind.units.iter().map(|&(unit, _)| unit).collect();
    let mut meant = number.unit.to_owned();
    if kind.noun == "rate"
        && !meant.to_lowercase().ends_with("bit/s")
        && let Some((ending, right)) = RATE_ENDINGS.iter().find(|(ending, _)| meant.ends_with(ending))
    {
        meant.replace_range(meant.len() - ending.len().., right);
    }
    let found = names
        .iter()
        .copied()
        .find(|name| *name == meant)
        .or_else(|| names.iter().copied().find(|name| name.eq_ignore_ascii_case(&meant)))
        .or_else(|| closest(&meant, &names));
    let amount = &text[..text.len() - number.unit.len()];
    let help = match found {
        Some(unit) => format!("did you mean `{}{unit}`?", amount.trim_end()),
        None => format!("write a {} such as {}", kind.noun, kind.example),
    };
    Problem::new(format!("{} is not a unit of a {}", quote(number.unit), kind.noun), help)
}

/// A rate with the largest decimal prefix, exactly: `parse_rate` reads it back.
#[must_use]
pub fn format_rate(rate_bps: u64) -> String {
    format_with(rate_bps, &[("Tbit/s", T), ("Gbit/s", G), ("Mbit/s", M), ("kbit/s", K), ("bit/s", 1)])
}

/// A size with the largest decimal prefix, exactly.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    format_with(bytes, &[("GB", G), ("MB", M), ("KB", K), ("B", 1)])
}

/// A time in the largest unit below it, exactly.
#[must_use]
pub fn format_time(time_ns: u64) -> String {
    format_with(time_ns, &[("s", G), ("ms", M), ("us", K), ("ns", 1)])
}

fn format_with(value: u64, units: &[(&str, u64)]) -> String {
    let smallest = units.last().copied().unwrap_or(("", 1));
    let (unit, divisor) = units.iter().copied().find(|&(_, divisor)| value >= divisor).unwrap_or(smallest);
    let (whole, rest) = (value / divisor, value % divisor);
    if rest == 0 {
        return format!("{whole}{unit}");
    }
    let width = divisor.ilog10() as usize;
    let fraction = format!("{rest:0width$}");
    format!("{whole}.{}{unit}", fraction.trim_end_matches('0'))
}
