// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words of a what-if.

use super::Edit;
use crate::file::parse_priority;
use crate::model::{Limit, LimitKind};
use penstock_policy::diagnostics::{Problem, did_you_mean, quote};
use penstock_policy::fields::parse_weight;
use penstock_policy::units::parse_rate;
use std::str::FromStr;

const GRAMMAR: &str = "one of: `remove port|switch|class|aggregate NAME`, `add path PORT,PORT to class NAME`, `remove path PORT,PORT of class NAME`, \
`set weight|priority|limit|demand of class NAME to VALUE`, `set rate of port|aggregate NAME to VALUE`";

const KINDS: [&str; 5] = ["port", "switch", "class", "aggregate", "path"];
const SET: [&str; 5] = ["weight", "priority", "limit", "demand", "rate"];

impl FromStr for Edit {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let strange = || Problem::new(format!("{} is not understood", quote(text)), GRAMMAR);
        match *words.as_slice() {
            ["remove", "port", name] => Ok(Self::RemovePort(name.to_owned())),
            ["remove", "switch", name] => Ok(Self::RemoveSwitch(name.to_owned())),
            ["remove", "class", name] => Ok(Self::RemoveClass(name.to_owned())),
            ["remove", "aggregate", name] => Ok(Self::RemoveAggregate(name.to_owned())),
            ["add", "path", ref ports @ .., "to", "class", name] => {
                Ok(Self::AddPath { class: name.to_owned(), ports: path(ports)? })
            }
            ["remove", "path", ref ports @ .., "of" | "from", "class", name] => {
                Ok(Self::RemovePath { class: name.to_owned(), ports: path(ports)? })
            }
            ["set", "rate", "of", "port", name, "to", value] => Ok(Self::SetRate(name.to_owned(), parse_rate(value)?)),
            ["set", "rate", "of", "aggregate", name, "to", value] => {
                Ok(Self::SetAggregateRate(name.to_owned(), parse_rate(value)?))
            }
            ["set", what, "of", "class", name, "to", ref value @ ..] if !value.is_empty() => {
                set(what, name.to_owned(), value)
            }
            ["set", what, "of", ..] if !SET.contains(&what) => {
                Err(Problem::new(format!("{} cannot be set", quote(what)), did_you_mean(what, "one of", &SET)))
            }
            [what @ ("remove" | "add"), kind, _, ..] if !KINDS.contains(&kind) => {
                let help = did_you_mean(kind, "one of", &KINDS);
                Err(Problem::new(format!("there is no {} to {what}", quote(kind)), help))
            }
            [what, ..] if !["remove", "add", "set"].contains(&what) => {
                let problem = strange();
                let help = format!("{}; {GRAMMAR}", did_you_mean(what, "it starts with", &["remove", "add", "set"]));
                Err(Problem::new(problem.message, help))
            }
            _ => Err(strange()),
        }
    }
}

fn set(what: &str, name: String, value: &[&str]) -> Result<Edit, Problem> {
    let strange = |help: &str| Problem::new(format!("{} is not a value of {what}", quote(&value.join(" "))), help);
    let rate = || match *value {
        ["none"] => Ok(None),
        [rate] => parse_rate(rate).map(Some),
        _ => Err(strange("a rate such as `40Gbit/s`, or `none`")),
    };
    match what {
        "weight" => parse_weight(&value.join(" ")).map(|weight| Edit::SetWeight(name, weight)),
        "priority" => parse_priority(&value.join(" ")).map(|priority| Edit::SetPriority(name, priority)),
        "demand" => rate().map(|demand_bps| Edit::SetDemand(name, demand_bps)),
        "limit" => {
            let kind = match value.last() {
                Some(&"hard") => LimitKind::Hard,
                _ => LimitKind::Soft,
            };
            let limit = match *value {
                ["none"] => None,
                [rate] | [rate, "hard" | "soft"] => Some(Limit { rate_bps: parse_rate(rate)?, kind }),
                _ => return Err(strange("a rate such as `40Gbit/s`, `40Gbit/s hard`, or `none`")),
            };
            Ok(Edit::SetLimit(name, limit))
        }
        "rate" => Err(Problem::new(
            "a class has no rate of its own",
            "`set limit of class`, or `set rate of port` or `of aggregate`",
        )),
        _ => Err(Problem::new(format!("{} cannot be set", quote(what)), did_you_mean(what, "one of", &SET))),
    }
}

/// `a,b,c`, with or without spaces.
fn path(words: &[&str]) -> Result<Vec<String>, Problem> {
    let joined = words.join(" ");
    let joined = joined.trim_start_matches('[').trim_end_matches(']');
    let ports: Vec<String> = joined.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if ports.is_empty() {
        return Err(Problem::new("this path is empty", "such as `add path h1-l1,l1-s1 to class a`"));
    }
    Ok(ports)
}
