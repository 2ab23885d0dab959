// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a tenant gets what it gets: link, classes, limit and user, level by level, by a name or by an address.

mod shares;

use crate::address::{Candidate, candidates, unmatched};
use crate::error::NodeError;
use crate::keeper::{Held, Keeper};
use crate::limits;
use crate::names::{self, Subject};
use crate::readings::rates;
use penstock_algo::wire;
use penstock_api::v1;
use penstock_dataplane::{LimitId, ShareReading, class_of, reason_name, verdict_name};
use penstock_policy::describe::{self, packet};
use penstock_policy::matching::Prefix;
use penstock_policy::units::RATE_MAX_BPS;
use penstock_policy::{Plan, fields::parse_prefix};
use shares::{Asked, Known, User, origin, parent_place, reading_of};
use std::collections::{BTreeMap, HashMap};

/// Explanations in one reply.
const EXPLANATIONS_MAX: usize = 20;
/// Samples in one explanation.
const SAMPLES_MAX: usize = 8;

/// What limits had counted when they were read before, and when that was: their rates need two readings.
#[derive(Debug, Default)]
pub struct Earlier {
    now_ns: u64,
    limits: HashMap<String, v1::Counters>,
}

impl Earlier {
    /// Whether a second reading would tell a rate.
    #[must_use]
    pub fn has_counters(&self) -> bool {
        !self.limits.is_empty()
    }
}

/// Explains a name or an address.
///
/// # Errors
/// It is neither; no policy is in force; the data plane does not tell.
pub fn explain(
    keeper: &mut Keeper,
    subject: &str,
    earlier: Option<&Earlier>,
) -> Result<(v1::ExplainReply, Earlier), NodeError> {
    let (mut reply, now, asked) = without_users(keeper, subject, earlier)?;
    shares::finish(keeper, &asked, &mut reply.explanations);
    Ok((reply, now))
}

/// All but users, who are asked for when nobody looks at the plan any more.
fn without_users(
    keeper: &Keeper,
    subject: &str,
    earlier: Option<&Earlier>,
) -> Result<(v1::ExplainReply, Earlier, Vec<Asked>), NodeError> {
    let (plan, held) = keeper.in_force()?;
    let told = keeper.dataplane().readings()?;
    let mut teller = Teller {
        keeper,
        plan,
        held,
        readings: keeper.readings_lately()?,
        shares: told.shares,
        earlier,
        now: Earlier { now_ns: told.now_ns, limits: HashMap::new() },
        asked: Vec::new(),
        made: 0,
        notes: Vec::new(),
    };
    let found = names::find(plan, subject);
    let mut reply = v1::ExplainReply::default();
    if found.is_empty() {
        let Ok(address) = parse_prefix(subject) else {
            return Err(NodeError::NotFound(names::unknown(plan, "link, class or limit", subject)));
        };
        let (found, mut notes) = candidates(plan, held, address);
        if found.is_empty() {
            notes.push(format!("nothing in the policy names {subject}"));
            notes.extend((0_u32..).zip(&plan.links).filter_map(|(link, _)| unmatched(held, link)));
        }
        if found.len() > EXPLANATIONS_MAX {
            notes.push(format!("{} more possibilities are left out", found.len() - EXPLANATIONS_MAX));
        }
        reply.notes = notes;
        for candidate in found.iter().take(EXPLANATIONS_MAX) {
            reply.explanations.push(teller.of_candidate(candidate, address)?);
        }
    } else {
        if found.len() > EXPLANATIONS_MAX {
            let more = found.len() - EXPLANATIONS_MAX;
            reply.notes.push(format!("{more} more of this name are left out; say which, as LINK/CLASS/ROW"));
        }
        for subject in found.iter().take(EXPLANATIONS_MAX) {
            reply.explanations.push(teller.of_name(*subject)?);
        }
    }
    teller.notes.dedup();
    reply.notes.append(&mut teller.notes);
    Ok((reply, teller.now, teller.asked))
}

struct Teller<'a> {
    keeper: &'a Keeper,
    plan: &'a Plan,
    held: &'a Held,
    readings: v1::Readings,
    /// By place.
    shares: Vec<Option<ShareReading>>,
    earlier: Option<&'a Earlier>,
    now: Earlier,
    asked: Vec<Asked>,
    /// Explanations up to here.
    made: usize,
    /// What it would take to know more.
    notes: Vec<String>,
}

impl Teller<'_> {
    fn of_name(&mut self, subject: Subject) -> Result<v1::Explanation, NodeError> {
        let (link, class, row) = match subject {
            Subject::Link(link) => (link, None, None),
            Subject::Class(class) => (self.link_of(class), Some(class), None),
            Subject::Row(row) => {
                let class = self.class_of(row);
                (self.link_of(class), Some(class), Some(row))
            }
        };
        let known = row.map(|_| Known::default());
        let mut explanation = self.explanation("name", link, class, row, known)?;
        explanation.certain = true;
        Ok(explanation)
    }

    fn of_candidate(&mut self, candidate: &Candidate, address: Prefix) -> Result<v1::Explanation, NodeError> {
        let Candidate { link, class, row, side, .. } = *candidate;
        let mut known = Known::default();
        known.add_address(side, address);
        let mut explanation = self.explanation(side.name(), link, Some(class), row, Some(known))?;
        explanation.conditions.clone_from(&candidate.conditions);
        explanation.certain = candidate.certain;
        Ok(explanation)
    }

    fn class_of(&self, row: u32) -> u32 {
        self.plan.entries.get(row as usize).and_then(|entry| class_of(self.plan, entry)).unwrap_or(0)
    }

    /// The user that a packet is of, if that is known; it will be asked for.
    fn ask_user(&mut self, class: u32, row: Option<u32>, mut known: Known) -> Option<User> {
        let entry = row.and_then(|row| self.plan.entries.get(row as usize));
        if let Some((entry, tuple)) = entry.and_then(|entry| Some((entry, self.plan.tuples.get(entry.tuple as usize)?)))
        {
            known.add_row(&tuple.mask, &entry.value);
        }
        let user = match known.user(self.held, class)? {
            Ok(user) => user,
            Err(missing) => {
                let path = self.plan.classes.get(class as usize).map_or("", |class| class.path.as_str());
                self.notes.push(format!("{path}: which user it is also takes a single {}", missing.join(" and ")));
                return None;
            }
        };
        let profile = entry.and_then(|entry| self.plan.profiles.get(usize::from(entry.profile)));
        let place = self.plan.places.get(class as usize).copied().unwrap_or_default();
        self.asked.push(Asked {
            explanation: self.made,
            class,
            key: user.key,
            name: user.name.clone(),
            weight: profile.map(|profile| profile.weight),
            ceiling_bps: entry.map(|entry| entry.rate_bps).filter(|&rate_bps| rate_bps < RATE_MAX_BPS),
            of_sketch: place.slice != wire::PST_NONE,
            of_class: reading_of(&self.shares, class as usize).copied().unwrap_or_default(),
        });
        Some(user)
    }

    /// Classes from the one right below the link down to this one.
    fn path_to(&self, class: Option<u32>) -> Vec<u32> {
        let parent = |class: &u32| self.plan.classes.get(*class as usize).and_then(|class| class.parent);
        let mut path: Vec<u32> = std::iter::successors(class, parent).collect();
        path.reverse();
        path
    }

    fn class_level(&self, class: u32) -> Option<v1::Level> {
        let reading = self.readings.classes.get(class as usize)?;
        let above = parent_place(self.plan, class).and_then(|place| reading_of(&self.shares, place));
        Some(v1::Level {
            kind: v1::level::Kind::Class.into(),
            name: reading.path.clone(),
            counters: reading.counters,
            rates: reading.rates,
            terms: self.delay(self.plan.classes.get(class as usize).map(|class| class.wire.line)),
            share: reading.share,
            origin: reading.share.as_ref().zip(above).map(|(share, above)| origin(share, above)),
            ..v1::Level::default()
        })
    }

    fn link_of(&self, class: u32) -> u32 {
        self.plan.classes.get(class as usize).map_or(0, |class| class.wire.link_index.into())
    }

    fn explanation(
        &mut self,
        matched_as: &str,
        link: u32,
        class: Option<u32>,
        row: Option<u32>,
        known: Option<Known>,
    ) -> Result<v1::Explanation, NodeError> {
        let mut explanation = v1::Explanation { matched_as: matched_as.to_owned(), ..v1::Explanation::default() };
        if let Some(reading) = self.readings.links.get(link as usize) {
            explanation.levels.push(v1::Level {
                kind: v1::level::Kind::Link.into(),
                name: reading.name.clone(),
                rate_bps: Some(reading.rate_bps),
                counters: reading.counters,
                rates: reading.rates,
                terms: if class.is_none() {
                    self.delay(self.plan.links.get(link as usize).map(|link| link.wire.line))
                } else {
                    String::new()
                },
                share: reading.share,
                ..v1::Level::default()
            });
        }
        let mut limit = row.map(LimitId::Row);
        explanation.levels.extend(self.path_to(class).into_iter().filter_map(|class| self.class_level(class)));
        if let Some(class) = class {
            let own = self.plan.classes.get(class as usize).map_or(wire::PST_NONE, |class| class.wire.limit_index);
            limit = limit.or((own != wire::PST_NONE).then_some(LimitId::Class(own)));
        }
        if let Some(limit) = limit {
            explanation.levels.push(self.limit_level(limit)?);
        }
        let user = class.zip(known).and_then(|(class, known)| self.ask_user(class, row, known));
        self.add_samples(&mut explanation, link, (class, row), user.as_ref());
        self.made += 1;
        Ok(explanation)
    }

    /// What is said of a delay line.
    fn delay(&self, line: Option<u16>) -> String {
        let line = line.and_then(|line| self.plan.lines.get(usize::from(line))).and_then(describe::line);
        line.map_or_else(String::new, |line| format!("delay {line}"))
    }

    fn limit_level(&mut self, limit: LimitId) -> Result<v1::Level, NodeError> {
        let told = limits::with_reading(self.keeper, self.plan, limit)?;
        let before = self.earlier.and_then(|earlier| Some((earlier.limits.get(&told.name)?, earlier.now_ns)));
        let rates = before
            .zip(told.counters.as_ref())
            .and_then(|((was, then_ns), counters)| rates(was, counters, self.now.now_ns.saturating_sub(then_ns)));
        if let Some(counters) = told.counters {
            self.now.limits.insert(told.name.clone(), counters);
        }
        Ok(v1::Level {
            kind: v1::level::Kind::Limit.into(),
            name: told.name,
            rate_bps: Some(told.rate_bps),
            counters: told.counters,
            rates,
            queue: told.queue,
            terms: told.terms,
            lease: told.lease,
            ..v1::Level::default()
        })
    }

    fn add_samples(
        &self,
        explanation: &mut v1::Explanation,
        link: u32,
        (class, row): (Option<u32>, Option<u32>),
        user: Option<&User>,
    ) {
        let of_row = row.and_then(|row| {
            let entry = self.plan.entries.get(row as usize)?;
            Some((self.plan.tuples.get(entry.tuple as usize)?.mask, entry.value))
        });
        let is_here = |sample: &&wire::pst_sample| {
            let of_class = sample.decision.class_index;
            let is_class = match class {
                Some(class) => self.path_to(Some(of_class)).contains(&class),
                None => self
                    .plan
                    .classes
                    .get(of_class as usize)
                    .is_some_and(|class| u32::from(class.wire.link_index) == link),
            };
            is_class
                && of_row.is_none_or(|(mask, value)| is_under(&sample.key, &mask, &value))
                && user.is_none_or(|user| user.has(&sample.key))
        };
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        for sample in self.keeper.recent.samples().filter(is_here) {
            *reasons.entry(reason_name(sample.decision.reason)).or_default() += 1;
            if explanation.samples.len() < SAMPLES_MAX {
                explanation.samples.push(self.sample(sample));
            }
        }
        explanation.sampled_reasons = reasons
            .into_iter()
            .map(|(reason, packets)| v1::ReasonReading { reason: reason.to_owned(), packets, packets_per_second: 0.0 })
            .collect();
    }

    fn sample(&self, sample: &wire::pst_sample) -> v1::Sample {
        let color = match u32::from(sample.decision.color) {
            wire::PST_COLOR_GREEN => "green",
            wire::PST_COLOR_YELLOW => "yellow",
            wire::PST_COLOR_RED => "red",
            _ => "",
        };
        v1::Sample {
            age_ns: self.now.now_ns.saturating_sub(sample.time_ns),
            verdict: verdict_name(sample.decision.verdict).to_owned(),
            reason: reason_name(sample.decision.reason).to_owned(),
            color: color.to_owned(),
            packet: packet(&sample.key),
            length_bytes: u64::from(sample.decision.length),
        }
    }
}

fn is_under(key: &wire::Key, mask: &wire::Key, value: &wire::Key) -> bool {
    key.words.iter().zip(&mask.words).zip(&value.words).all(|((key, mask), value)| key & mask == *value)
}
