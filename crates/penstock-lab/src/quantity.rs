// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates, sizes, times and percentages in a scenario: the policy's own syntax.

use penstock_policy::units::{parse_percent, parse_rate, parse_size, parse_time};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::time::Duration;

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident($inner:ty), $parse:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(
            /// In the unit of its type.
            pub $inner,
        );

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                $parse(&text).map(Self).map_err(|problem| match problem.help.as_str() {
                    "" => D::Error::custom(problem.message),
                    help => D::Error::custom(format!("{}; {help}", problem.message)),
                })
            }
        }
    };
}

quantity!(
    /// A rate in bit/s.
    Rate(u64),
    parse_rate
);
quantity!(
    /// A size in bytes.
    Size(u64),
    parse_size
);
quantity!(
    /// A time in nanoseconds.
    Time(u64),
    parse_time
);
quantity!(
    /// A share in 2^-32.
    Percent(u32),
    parse_percent
);

impl Time {
    /// The same, for the standard library.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl Rate {
    /// As a real number of bit/s.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // rates of experiments are far below 2^53
    pub fn bps(self) -> f64 {
        self.0 as f64
    }
}
