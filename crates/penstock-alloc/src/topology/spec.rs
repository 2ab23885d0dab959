// SPDX-License-Identifier: MIT OR Apache-2.0
//! A network in a word: `leaf-spine:leaves=10,spines=5,hosts=10,traffic=permutation`.

use super::{Pattern, Traffic};
use penstock_policy::diagnostics::{Problem, did_you_mean, quote};
use penstock_policy::fields::{WEIGHT_MAX, parse_digits};
use penstock_policy::units::parse_rate;
use std::str::FromStr;

/// What there is, each with its own keys and their defaults.
pub const KINDS: [(&str, &str); 4] = [
    ("leaf-spine", "leaves=4,spines=2,hosts=4 (a leaf),rate=100Gbit/s,uplink=100Gbit/s"),
    ("fat-tree", "k=4,rate=100Gbit/s,uplink=100Gbit/s"),
    ("dumbbell", "hosts=2 (a side),rate=100Gbit/s,uplink=100Gbit/s"),
    ("ixp", "members=24,edges=4,cores=2,rate=1, 10 or 100Gbit/s by chance,uplink=400Gbit/s"),
];

const RATE_DEFAULT_BPS: u64 = 100_000_000_000;
const IXP_UPLINK_BPS: u64 = 400_000_000_000;
const COUNT_MAX: u32 = 100_000;
const K_MAX: u32 = 64;

const PATTERNS: [&str; 5] = ["all-to-all", "random", "permutation", "incast", "gravity"];
const TRAFFIC_KEYS: [&str; 9] =
    ["traffic", "pairs", "senders", "load", "tenants", "paths", "weights", "priorities", "seed"];

/// A topology and who sends in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generator {
    /// The topology.
    pub shape: Shape,
    /// Of hosts' links, bits/s.
    pub rate_bps: u64,
    /// Nobody gave that rate.
    pub rate_is_default: bool,
    /// Of links between switches, bits/s.
    pub uplink_bps: u64,
    /// Who sends.
    pub traffic: Traffic,
}

/// A topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Hosts at leaves, each leaf joined to each spine.
    LeafSpine {
        /// How many leaves.
        leaves: u32,
        /// How many spines.
        spines: u32,
        /// Hosts of a leaf.
        hosts: u32,
    },
    /// Three layers of switches with k ports each.
    FatTree {
        /// Even.
        k: u32,
    },
    /// Two switches and one link between them.
    Dumbbell {
        /// Hosts of a side.
        hosts: u32,
    },
    /// Members at edges, each edge joined to each core.
    Ixp {
        /// How many members.
        members: u32,
        /// How many edges.
        edges: u32,
        /// How many cores.
        cores: u32,
    },
}

/// What was written, key by key; each is taken once.
struct Words<'t> {
    left: Vec<(&'t str, &'t str)>,
}

impl FromStr for Generator {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut words = Words::read(rest)?;
        let (shape, keys): (Shape, &[&str]) = match kind {
            "leaf-spine" => {
                let (leaves, spines) = (words.count("leaves", 4)?, words.count("spines", 2)?);
                let shape = Shape::LeafSpine { leaves, spines, hosts: words.count("hosts", 4)? };
                (shape, &["leaves", "spines", "hosts"])
            }
            "fat-tree" => (Shape::FatTree { k: words.k()? }, &["k"]),
            "dumbbell" => (Shape::Dumbbell { hosts: words.count("hosts", 2)? }, &["hosts"]),
            "ixp" => {
                let (members, edges) = (words.count("members", 24)?, words.count("edges", 4)?);
                let shape = Shape::Ixp { members, edges, cores: words.count("cores", 2)? };
                (shape, &["members", "edges", "cores"])
            }
            _ => {
                let help = did_you_mean(kind, "there are", &KINDS.map(|(kind, _)| kind));
                return Err(Problem::new(format!("there is no topology {}", quote(kind)), help));
            }
        };
        let uplink_default_bps = if kind == "ixp" { IXP_UPLINK_BPS } else { RATE_DEFAULT_BPS };
        let rate_bps = words.rate("rate")?;
        // Uplinks are as fast as hosts unless it is said otherwise.
        let uplink_bps = words.rate("uplink")?.or(rate_bps.filter(|_| kind != "ixp")).unwrap_or(uplink_default_bps);
        let traffic = words.traffic()?;
        words.finish(keys)?;
        let rate_is_default = rate_bps.is_none();
        Ok(Self { shape, rate_bps: rate_bps.unwrap_or(RATE_DEFAULT_BPS), rate_is_default, uplink_bps, traffic })
    }
}

impl<'t> Words<'t> {
    fn read(text: &'t str) -> Result<Self, Problem> {
        let mut left: Vec<(&str, &str)> = Vec::new();
        for word in text.split(',').filter(|word| !word.trim().is_empty()) {
            let Some((key, value)) = word.split_once('=') else {
                return Err(Problem::new(format!("{} has no value", quote(word)), "such as `leaves=10`"));
            };
            let (key, value) = (key.trim(), value.trim());
            if left.iter().any(|&(known, _)| known == key) {
                return Err(Problem::new(format!("the key {} is here twice", quote(key)), "remove one"));
            }
            left.push((key, value));
        }
        Ok(Self { left })
    }

    fn take(&mut self, key: &str) -> Option<&'t str> {
        let index = self.left.iter().position(|&(known, _)| known == key)?;
        Some(self.left.remove(index).1)
    }

    /// A number of things, one at least.
    fn number(&mut self, key: &str, most: u32) -> Result<Option<u32>, Problem> {
        let Some(text) = self.take(key) else { return Ok(None) };
        match parse_digits(text) {
            Some(number) if (1..=most).contains(&number) => Ok(Some(number)),
            _ => {
                let help = format!("a whole number from 1 to {most}");
                Err(Problem::new(format!("{} is not a value of `{key}`", quote(text)), help))
            }
        }
    }

    fn count(&mut self, key: &str, default: u32) -> Result<u32, Problem> {
        Ok(self.number(key, COUNT_MAX)?.unwrap_or(default))
    }

    fn k(&mut self) -> Result<u32, Problem> {
        let k = self.number("k", K_MAX)?.unwrap_or(4);
        if k % 2 != 0 {
            return Err(Problem::new(
                format!("a fat tree of k={k} does not exist"),
                "k is even: half of a switch's ports go up",
            ));
        }
        Ok(k)
    }

    fn rate(&mut self, key: &str) -> Result<Option<u64>, Problem> {
        self.take(key).map(parse_rate).transpose()
    }

    fn traffic(&mut self) -> Result<Traffic, Problem> {
        let name = self.take("traffic").unwrap_or("permutation");
        let pattern = match name {
            "all-to-all" => Pattern::AllToAll,
            "random" => Pattern::Random { pairs: self.number("pairs", u32::MAX)? },
            "permutation" => Pattern::Permutation,
            "incast" => Pattern::Incast { senders: self.number("senders", u32::MAX)? },
            "gravity" => Pattern::Gravity { load_percent: self.number("load", 1_000)?.unwrap_or(70) },
            _ => {
                let help = did_you_mean(name, "one of", &PATTERNS);
                return Err(Problem::new(format!("{} is not a value of `traffic`", quote(name)), help));
            }
        };
        Ok(Traffic {
            pattern,
            tenants: self.number("tenants", COUNT_MAX)?,
            paths: self.number("paths", COUNT_MAX)?,
            weights: self.weights()?,
            priorities: self.number("priorities", COUNT_MAX)?.unwrap_or(1),
            seed: self.seed()?,
        })
    }

    fn weights(&mut self) -> Result<(u32, u32), Problem> {
        let Some(text) = self.take("weights") else { return Ok((1, 1)) };
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        match (parse_digits(low), parse_digits(high)) {
            (Some(low), Some(high)) if (1..=WEIGHT_MAX).contains(&low) && (low..=WEIGHT_MAX).contains(&high) => {
                Ok((low, high))
            }
            _ => {
                let help = format!("a range such as `1-4`, within 1 to {WEIGHT_MAX}");
                Err(Problem::new(format!("{} is not a value of `weights`", quote(text)), help))
            }
        }
    }

    fn seed(&mut self) -> Result<u64, Problem> {
        let Some(text) = self.take("seed") else { return Ok(1) };
        text.parse().map_err(|_| Problem::new(format!("{} is not a seed", quote(text)), "a whole number such as `1`"))
    }

    /// Nothing is left that nobody took.
    fn finish(self, keys: &[&str]) -> Result<(), Problem> {
        let Some(&(key, _)) = self.left.first() else { return Ok(()) };
        let of_pattern = [("pairs", "random"), ("senders", "incast"), ("load", "gravity")];
        if let Some((_, pattern)) = of_pattern.iter().find(|&&(known, _)| known == key) {
            return Err(Problem::new(format!("{} is of `traffic={pattern}` only", quote(key)), "remove it"));
        }
        let known: Vec<&str> = keys.iter().copied().chain(["rate", "uplink"]).chain(TRAFFIC_KEYS).collect();
        Err(Problem::new(format!("unknown key {}", quote(key)), did_you_mean(key, "known keys here", &known)))
    }
}
