// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a claim holds, by the rules that its scenario gives.

use crate::results::{Mean, Subject};
use crate::template::Values;
use serde::Deserialize;

/// One thing that must hold. It looks at every mean that fits `series`, `tenant` and `at`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct Rule {
    /// What is looked at.
    pub metric: String,
    /// Of which series; of all without it.
    pub series: Option<String>,
    /// Whose; every tenant's without it.
    pub tenant: Option<String>,
    /// At which values of variables; everywhere without it.
    #[serde(default)]
    pub at: Values,
    /// Each of them must hold, or their mean.
    #[serde(default)]
    pub over: Over,
    /// No less than this.
    pub at_least: Option<f64>,
    /// No more than this.
    pub at_most: Option<f64>,
    /// Less than the same of another series: as much is not enough.
    pub below: Option<String>,
    /// More than the same of another series: as much is not enough.
    pub above: Option<String>,
    /// With `below` or `above`: by this factor or more.
    pub factor: Option<f64>,
}

/// Which numbers a rule compares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// Each by itself.
    #[default]
    Each,
    /// Their mean.
    Mean,
}

/// What came of a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The rule in words.
    pub rule: String,
    /// Whether it holds.
    pub holds: bool,
    /// The numbers that decided: the worst one where it fails.
    pub because: String,
}

/// Bounds that a number must lie in, and what other series have, where they are one's.
struct Bounds {
    low: f64,
    high: f64,
    /// What the number must not reach: the same of other series.
    beyond: Vec<f64>,
    others: String,
}

impl Bounds {
    fn hold(&self, number: f64) -> bool {
        (self.low..=self.high).contains(&number) && !self.beyond.contains(&number)
    }

    /// Whether a number misses them, and by how much: what is within them is below 0.
    fn missed_by(&self, number: f64) -> (bool, f64) {
        (!self.hold(number), (self.low - number).max(number - self.high))
    }
}

/// Decides about all rules.
#[must_use]
pub fn judge(rules: &[Rule], means: &[Mean]) -> Vec<Outcome> {
    rules.iter().map(|rule| judge_one(rule, means)).collect()
}

fn judge_one(rule: &Rule, means: &[Mean]) -> Outcome {
    let fits = |mean: &&Mean| {
        mean.of.is(rule.series.as_deref(), rule.tenant.as_deref(), &rule.at) && mean.metrics.contains_key(&rule.metric)
    };
    let chosen: Vec<&Mean> = means.iter().filter(fits).collect();
    if chosen.is_empty() {
        let because = "nothing was measured that this rule speaks of".to_owned();
        return Outcome { rule: rule.words(), holds: false, because };
    }
    let numbers: Vec<(String, f64, Bounds)> = match rule.over {
        Over::Each => chosen.iter().map(|mean| rule.compare(means, std::slice::from_ref(mean))).collect(),
        Over::Mean => vec![rule.compare(means, &chosen)],
    };
    let missed = |(_, number, bounds): &(String, f64, Bounds)| bounds.missed_by(*number);
    let worst = numbers.iter().map(|one| (missed(one), one)).max_by(|((a_missed, a), _), ((b_missed, b), _)| {
        a_missed.cmp(b_missed).then(a.total_cmp(b)) // a tie may miss, and a bound that is just met does not
    });
    let Some(((is_missed, _), (place, number, bounds))) = worst else {
        return Outcome { rule: rule.words(), holds: false, because: String::new() };
    };
    let which = if numbers.len() > 1 { "worst" } else { "measured" };
    let because = format!("{which}: {} {place}{}", short(*number), bounds.others);
    Outcome { rule: rule.words(), holds: !is_missed, because }
}

impl Rule {
    /// The mean of some numbers, where they are, and what they must lie in.
    fn compare(&self, means: &[Mean], chosen: &[&Mean]) -> (String, f64, Bounds) {
        let metric = |mean: &Mean| mean.metrics.get(&self.metric).copied();
        let own: Vec<f64> = chosen.iter().filter_map(|mean| metric(mean)).collect();
        let mut bounds = Bounds {
            low: self.at_least.unwrap_or(f64::NEG_INFINITY),
            high: self.at_most.unwrap_or(f64::INFINITY),
            beyond: Vec::new(),
            others: String::new(),
        };
        let factor = self.factor.unwrap_or(1.0);
        let other = |series: &str| {
            let same = |one: &&Mean| {
                one.of.series == series
                    && chosen.iter().any(|mean| mean.of.point == one.of.point && mean.of.tenant == one.of.tenant)
            };
            let others: Vec<f64> = means.iter().filter(same).filter_map(metric).collect();
            // Nothing to compare with is no success.
            if others.is_empty() { f64::NAN } else { crate::stats::mean(&others) }
        };
        if let Some(series) = &self.below {
            let most = other(series) / factor;
            bounds.high = if most.is_nan() { f64::NEG_INFINITY } else { bounds.high.min(most) };
            bounds.beyond.extend(self.factor.is_none().then_some(most));
            bounds.others += &format!("; {series} has {}", short(most * factor));
        }
        if let Some(series) = &self.above {
            let least = other(series) * factor;
            bounds.low = if least.is_nan() { f64::INFINITY } else { bounds.low.max(least) };
            bounds.beyond.extend(self.factor.is_none().then_some(least));
            bounds.others += &format!("; {series} has {}", short(least / factor));
        }
        let place = match chosen {
            [one] => format!("({})", place(&one.of)),
            many => format!("(mean of {})", many.len()),
        };
        (place, crate::stats::mean(&own), bounds)
    }

    fn words(&self) -> String {
        let mut what = vec![self.metric.clone()];
        what.extend(self.series.iter().map(|series| format!("of {series}")));
        what.extend(self.tenant.iter().map(|tenant| format!("for {tenant}")));
        what.extend(self.at.iter().map(|(name, value)| format!("at {name} {value}")));
        if self.over == Over::Mean {
            what.push("in the mean".to_owned());
        }
        let factor = self.factor.map(|factor| format!(" by a factor of {}", short(factor))).unwrap_or_default();
        let bounds = [
            self.at_least.map(|least| format!("at least {}", short(least))),
            self.at_most.map(|most| format!("at most {}", short(most))),
            self.below.as_ref().map(|series| format!("below {series}'s{factor}")),
            self.above.as_ref().map(|series| format!("above {series}'s{factor}")),
        ];
        format!("{} is {}", what.join(" "), bounds.into_iter().flatten().collect::<Vec<_>>().join(" and "))
    }
}

/// Series, point and tenant, for people.
#[must_use]
pub fn place(of: &Subject) -> String {
    let point = of.point.iter().map(|(name, value)| format!("{name} {value}"));
    let parts = [of.series.clone()].into_iter().chain(point).chain([of.tenant.clone()]);
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// A number with as many digits as people read.
#[must_use]
pub fn short(number: f64) -> String {
    let digits = match number.abs() {
        0.0 => 0,
        large if large >= 1000.0 => 0,
        large if large >= 100.0 => 1,
        large if large >= 1.0 => 2,
        _ => 4,
    };
    format!("{number:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(series: &str, cir: &str, value: f64) -> Mean {
        let point = Values::from([("cir".to_owned(), cir.to_owned())]);
        let of = Subject { series: series.to_owned(), point, tenant: "t".to_owned() };
        Mean { of, runs: 1, metrics: [("m".to_owned(), value)].into() }
    }

    fn rule() -> Rule {
        Rule { metric: "m".to_owned(), series: Some("a".to_owned()), ..Rule::default() }
    }

    #[test]
    fn each_must_hold() {
        let means = [mean("a", "1", 92.0), mean("a", "2", 90.0), mean("b", "1", 0.0)];
        let outcome = &judge(&[Rule { at_least: Some(91.0), ..rule() }], &means)[0];
        assert!(!outcome.holds);
        assert_eq!(outcome.rule, "m of a is at least 91.00");
        assert_eq!(outcome.because, "worst: 90.00 (a, cir 2, t)");
        assert!(judge(&[Rule { at_least: Some(91.0), over: Over::Mean, ..rule() }], &means)[0].holds);
        assert!(judge(&[Rule { at_least: Some(90.0), ..rule() }], &means)[0].holds);
        assert!(!judge(&[Rule { at_most: Some(91.0), ..rule() }], &means)[0].holds);
        let at = Values::from([("cir".to_owned(), "1".to_owned())]);
        assert!(judge(&[Rule { at_least: Some(91.0), at, ..rule() }], &means)[0].holds);
    }

    #[test]
    fn series_are_compared_at_the_same_point() {
        let means = [mean("a", "1", 5.0), mean("a", "2", 9.0), mean("b", "1", 6.0), mean("b", "2", 8.0)];
        let below = Rule { below: Some("b".to_owned()), ..rule() };
        assert!(!judge(std::slice::from_ref(&below), &means)[0].holds);
        assert!(judge(&[Rule { over: Over::Mean, at_most: Some(7.0), below: None, ..below.clone() }], &means)[0].holds);
        let at = Values::from([("cir".to_owned(), "1".to_owned())]);
        assert!(judge(&[Rule { at: at.clone(), ..below.clone() }], &means)[0].holds);
        let twice = &judge(&[Rule { at, factor: Some(2.0), at_most: Some(9.0), ..below }], &means)[0];
        assert_eq!(twice.rule, "m of a at cir 1 is at most 9.00 and below b's by a factor of 2.00");
        assert_eq!((twice.holds, twice.because.as_str()), (false, "measured: 5.00 (a, cir 1, t); b has 6.00"));
        let above = Rule { above: Some("b".to_owned()), ..rule() };
        assert!(!judge(&[above], &means)[0].holds);
    }

    #[test]
    fn as_much_as_another_series_is_neither_below_nor_above_it() {
        let means = [mean("a", "1", 2.5), mean("a", "2", 2.0), mean("b", "1", 2.5), mean("b", "2", 2.25)];
        let below = Rule { below: Some("b".to_owned()), ..rule() };
        let missed = &judge(std::slice::from_ref(&below), &means)[0];
        assert_eq!((missed.holds, missed.because.as_str()), (false, "worst: 2.50 (a, cir 1, t); b has 2.50"));
        let above = Rule { above: Some("b".to_owned()), ..rule() };
        let at = Values::from([("cir".to_owned(), "1".to_owned())]);
        assert!(!judge(&[Rule { at: at.clone(), ..above.clone() }], &means)[0].holds);
        // By a factor is by that or more, and a bound that is met is met.
        assert!(judge(&[Rule { at: at.clone(), factor: Some(1.0), ..below.clone() }], &means)[0].holds);
        assert!(judge(&[Rule { at: at.clone(), factor: Some(1.0), ..above }], &means)[0].holds);
        assert!(judge(&[Rule { at_least: Some(2.5), at_most: Some(2.5), at, ..rule() }], &means)[0].holds);
        // The tie is what missed, also where another number just meets a bound.
        let bounded = Rule { at_least: Some(2.0), ..below };
        assert_eq!(judge(&[bounded], &means)[0].because, "worst: 2.50 (a, cir 1, t); b has 2.50");
    }

    #[test]
    fn what_was_not_measured_does_not_hold() {
        let means = [mean("a", "1", 5.0)];
        assert!(!judge(&[Rule { metric: "other".to_owned(), at_least: Some(0.0), ..rule() }], &means)[0].holds);
        assert!(!judge(&[Rule { below: Some("b".to_owned()), ..rule() }], &means)[0].holds);
        assert!(!judge(&[Rule { above: Some("b".to_owned()), ..rule() }], &means)[0].holds);
    }
}
