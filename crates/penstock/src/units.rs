// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers for people: three or four digits and a unit.

/// A rate, as in `12.3 Mbit/s`.
pub fn rate(bits_per_second: f64) -> String {
    scaled(bits_per_second, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

/// A rate in bit/s for a table that says so, as in `12.3 M`.
pub fn short_rate(bits_per_second: f64) -> String {
    scaled(bits_per_second, &["", "k", "M", "G", "T"]).trim_end().to_owned()
}

/// A count, as in `1.25 M`; below 100,000 in full.
pub fn count(number: u64) -> String {
    if number < 100_000 {
        return number.to_string();
    }
    // Four digits are shown, so the rounding of a large number does not.
    #[allow(clippy::cast_precision_loss)]
    let value = number as f64;
    scaled(value, &["", "k", "M", "G", "T"]).trim_end().to_owned()
}

/// So many of something: `1 limit`, `2 limits`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A duration, as in `1.25 s`.
pub fn duration(nanoseconds: u64) -> String {
    #[allow(clippy::cast_precision_loss)] // four digits are shown
    let value = nanoseconds as f64;
    if nanoseconds >= 1_000_000_000 { format!("{:.3} s", value / 1e9) } else { scaled(value, &["ns", "us", "ms", "s"]) }
}

/// A time for people who wait: `12 s`, `5 min`, `3 h`, `2 d`.
pub fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A part of a whole, as in `12.3 %`; a dash when there is no whole.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    #[allow(clippy::cast_precision_loss)] // one decimal is shown
    let share = 100.0 * part as f64 / whole as f64;
    format!("{share:.1} %")
}

/// `, held 3.1 %`, where packets wait at all.
pub fn held(packets: u64, offered: u64) -> String {
    if packets == 0 { String::new() } else { format!(", held {}", percent(packets, offered)) }
}

/// Bits per second of so many bytes in so many nanoseconds; 0 for no time at all.
#[allow(clippy::cast_precision_loss)] // four digits are shown
pub fn bits_per_second(bytes: u64, nanoseconds: u64) -> f64 {
    if nanoseconds == 0 { 0.0 } else { bytes as f64 * 8e9 / nanoseconds as f64 }
}

fn scaled(mut value: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // 999.95 would be printed as 1000.0
    while value >= 999.95 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 100.0 { 1 } else { 2 };
    let digits = if unit == 0 { 0 } else { digits };
    format!("{value:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(rate(0.0), "0 bit/s");
        assert_eq!(rate(60_000.0), "60.00 kbit/s");
        assert_eq!(rate(999_999_999.0), "1.00 Gbit/s");
        assert_eq!(rate(123_456_789.0), "123.5 Mbit/s");
        assert_eq!(short_rate(123_456_789.0), "123.5 M");
        assert_eq!(count(99_999), "99999");
        assert_eq!(count(2_000_000), "2.00 M");
        assert_eq!((counted(1, "class", "classes"), counted(0, "row", "rows")), ("1 class".into(), "0 rows".into()));
        assert_eq!(duration(1_500_000), "1.50 ms");
        assert_eq!(duration(12_345_678_901), "12.346 s");
        assert_eq!(
            (span(119), span(7_199), span(172_799), span(172_800)),
            ("119 s".into(), "119 min".into(), "47 h".into(), "2 d".into())
        );
        assert_eq!(percent(1, 8), "12.5 %");
        assert_eq!(percent(0, 0), "-");
        assert!(bits_per_second(1, 0) < 1.0);
    }
}
