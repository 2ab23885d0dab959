// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan over the tables that a process before this one left.
//!
//! Their tuples and profiles are those of all rows that there were when the policy came into force. Compiled again, with the rows that
//! are there now, the policy has fewer of them when the last row of a kind was removed meanwhile.

use super::generation::{Generation, KernelError, refused};
use super::memory::SharedArray;
use super::object::value_of;
use libbpf_rs::{MapCore, MapFlags};
use penstock_algo::plane::Plane;
use penstock_algo::wire;
use penstock_policy::Plan;
use std::mem::size_of;

/// What a program was loaded with.
#[derive(Debug, Clone, Default)]
pub(super) struct Left {
    /// By link of the plan; none for one that no port offers packets to.
    pub links: Vec<Option<wire::Link>>,
    pub tuples: Vec<wire::Tuple>,
    pub classes: Vec<wire::Class>,
    pub places: Vec<wire::TreePlace>,
    pub profiles: Vec<wire::Profile>,
}

/// Who looks a tuple up: a link, or a class among its own rows or its users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Link(usize),
    Class(usize),
    /// A class, to tell its users of one family of addresses apart.
    Users(usize, u32),
}

/// By tuple: who looks it up.
fn owners(
    links: &[Option<wire::Link>],
    classes: &[wire::Class],
    places: &[wire::TreePlace],
    tuples: usize,
) -> Vec<Option<Owner>> {
    let mut owners = vec![None; tuples];
    let of_links = links
        .iter()
        .enumerate()
        .filter_map(|(index, link)| link.map(|link| (Owner::Link(index), link.tuple_first, link.tuple_count)));
    let of_classes =
        classes.iter().enumerate().map(|(index, class)| (Owner::Class(index), class.tuple_first, class.tuple_count));
    let with_users = places.iter().enumerate().filter(|(_, place)| place.users != wire::PST_NONE);
    let of_users = with_users
        .flat_map(|(index, place)| [0, 1].map(|family| (Owner::Users(index, family), place.users + family, 1)));
    for (owner, first, count) in of_links.chain(of_classes).chain(of_users) {
        owners.iter_mut().skip(first as usize).take(count as usize).for_each(|of| *of = Some(owner));
    }
    owners
}

/// The plan with the tuples and profiles that are there. None when it has some that are not: it is of another policy.
pub(super) fn fit(mut plan: Plan, left: &Left) -> Option<Plan> {
    if plan.classes.len() != left.classes.len() || plan.places.len() != left.places.len() {
        return None;
    }
    let links: Vec<_> = plan.links.iter().map(|link| Some(link.wire)).collect();
    let classes: Vec<_> = plan.classes.iter().map(|class| class.wire).collect();
    let ours = owners(&links, &classes, &plan.places, plan.tuples.len());
    let theirs = owners(&left.links, &left.classes, &left.places, left.tuples.len());
    let unsalted = |tuple: &wire::Tuple| wire::Tuple { salt: 0, ..*tuple };
    let tuples: Vec<u32> = plan
        .tuples
        .iter()
        .zip(&ours)
        .map(|(tuple, owner)| {
            let mut there = left.tuples.iter().zip(&theirs);
            index(there.position(|(other, of)| of == owner && unsalted(other) == unsalted(tuple))?)
        })
        .collect::<Option<_>>()?;
    let profiles: Vec<u16> = plan
        .profiles
        .iter()
        .map(|profile| u16::try_from(left.profiles.iter().position(|other| other == profile)?).ok())
        .collect::<Option<_>>()?;

    for entry in &mut plan.entries {
        (entry.tuple, entry.profile) = (tuples[entry.tuple as usize], profiles[usize::from(entry.profile)]);
    }
    plan.rule_keys.iter_mut().for_each(|key| key.tuple = tuples[key.tuple as usize]);
    plan.limits.iter_mut().for_each(|limit| limit.profile = profiles[usize::from(limit.profile)]);
    for place in &mut plan.places {
        if let Some(profile) = profiles.get(place.profile as usize) {
            place.profile = (*profile).into();
        }
        if let Some(users) = tuples.get(place.users as usize) {
            place.users = *users;
        }
    }
    for (link, there) in plan.links.iter_mut().zip(&left.links) {
        if let Some(there) = there {
            (link.wire.tuple_first, link.wire.tuple_count) = (there.tuple_first, there.tuple_count);
        }
    }
    for (class, there) in plan.classes.iter_mut().zip(&left.classes) {
        (class.wire.tuple_first, class.wire.tuple_count) = (there.tuple_first, there.tuple_count);
    }
    plan.tuples = left.tuples.iter().map(unsalted).collect();
    plan.profiles.clone_from(&left.profiles);
    Some(plan)
}

fn index(position: usize) -> Option<u32> {
    u32::try_from(position).ok()
}

impl Generation {
    /// What it was loaded with, for a plan of so many links.
    pub(super) fn left(&self, links: usize) -> Result<Left, KernelError> {
        let constants = self.constants()?;
        let offered: Vec<wire::Link> = self.section(".data.links", constants.link_count)?;
        let of_link = |link: usize| self.links.iter().position(|of| *of as usize == link);
        Ok(Left {
            links: (0..links).map(|link| of_link(link).and_then(|at| offered.get(at).copied())).collect(),
            tuples: self.section(".data.tuples", constants.tuple_count)?,
            classes: self.section(".data.classes", constants.class_count)?,
            places: self.section(".data.places", constants.place_count)?,
            profiles: self.section(".data.profiles", constants.profile_count)?,
        })
    }

    /// Whether the program judges by the classes, rules and terms of this plane.
    pub(super) fn is_of(&self, plane: &Plane) -> Result<bool, KernelError> {
        let image = plane.image();
        let link_of = |link: &u32| image.links.get(*link as usize).copied();
        let offered: Option<Vec<wire::Link>> = self.links.iter().map(link_of).collect();
        let profile_of = |limit: &wire::Limit| limit.profile;
        let limits = (0..self.limits().len().min(image.limits.len())).map(|index| self.limits().get(index).profile);
        let rules = SharedArray::<wire::Bucket>::map(self.maps.get("rule_buckets")?);
        let rules = rules.map_err(|source| KernelError::Unmapped { map: "rule_buckets", source })?;
        Ok(self.holds(".data.tuples", image.tuples)?
            && self.holds(".data.rules", image.rules)?
            && self.holds(".data.classes", image.classes)?
            && self.holds(".data.profiles", image.profiles)?
            && self.holds(".data.links", &offered.unwrap_or_default())?
            && self.holds(".data.places", image.places)?
            && self.has_slices(image.slices)?
            && self.has_lines(image.lines)?
            && limits.eq(image.limits.iter().map(profile_of))
            && rules.len() == image.rule_buckets.len().max(1)
            && image.rule_buckets.iter().enumerate().all(|(index, bucket)| rules.get(index) == *bucket))
    }

    /// Whether packets wait in lines like these, whatever has come to them.
    fn has_lines(&self, lines: &[wire::Line]) -> Result<bool, KernelError> {
        let unused = |line: &wire::Line| wire::Line { packets: 0, ..*line };
        let there: Vec<wire::Line> = self.section(".data.lines", self.constants()?.line_count)?;
        Ok(there.iter().map(unused).eq(lines.iter().map(unused)))
    }

    /// Whether users without entries are told apart and held as here, whatever they have sent.
    fn has_slices(&self, slices: &[wire::Slice]) -> Result<bool, KernelError> {
        let unused = |slice: &wire::Slice| wire::Slice { threshold: wire::pst_threshold_state::default(), ..*slice };
        let there: Vec<wire::Slice> = self.section(".data.slices", self.constants()?.slice_count)?;
        Ok(there.iter().map(unused).eq(slices.iter().map(unused)))
    }

    fn holds<T: Copy + Default + PartialEq>(&self, name: &'static str, values: &[T]) -> Result<bool, KernelError> {
        // Of what there is none of, the program has one of zeros, and never looks at it.
        Ok(values.is_empty() || self.section::<T>(name, u32::MAX)? == values)
    }

    /// At most so many elements of a section.
    fn section<T: Copy + Default>(&self, name: &'static str, count: u32) -> Result<Vec<T>, KernelError> {
        let bytes = self.maps.get(name)?.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let bytes = bytes.map_err(refused("reading a section"))?.unwrap_or_default();
        Ok(bytes.chunks_exact(size_of::<T>()).take(count as usize).map(value_of).collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic
mod tests {
    use super::*;
    use penstock_policy::Policy;
    use penstock_policy::limits_file::LimitsText;

    const POLICY: &str = "penstock: 1
name: rows
ports: { lan: { rate: 10Gbit/s } }
links:
  - name: down
    port: lan
    rate: 10Gbit/s
    classes:
      - { name: web, match: [ { proto: tcp, dport: 80 } ], limit: { rate: 1Gbit/s } }
      - { name: both, match: [ { proto: tcp } ], limits: { file: rows.csv } }
      - { name: users, limits: { file: rows.csv } }
      - { name: homes, match: [ { dst: 10.9.0.0/16 } ], users: { key: dst, fair: tree } }
";
    const ROWS: &str = "name,dst,rate,burst\na,10.0.0.1,1Mbit/s,\nb,10.0.0.2,1Mbit/s,40ms\n";
    const MORE: &str = "c,10.0.1.0/24,1Mbit/s,\nd,10.0.0.3,2Mbit/s,30ms\n";

    fn plan(rows: &str) -> Plan {
        let policy = Policy::parse("test.yaml", POLICY).unwrap();
        penstock_policy::compile::compile(&policy, |name| Ok(LimitsText { name: name.to_owned(), bytes: rows.into() }))
            .unwrap()
    }

    fn left(plan: &Plan) -> Left {
        let mut tuples = plan.tuples.clone();
        (1..).zip(&mut tuples).for_each(|(salt, tuple)| tuple.salt = salt);
        Left {
            links: plan.links.iter().map(|link| Some(link.wire)).collect(),
            classes: plan.classes.iter().map(|class| class.wire).collect(),
            places: plan.places.clone(),
            profiles: plan.profiles.clone(),
            tuples,
        }
    }

    /// Rows with what their indices stand for.
    fn meant(plan: &Plan) -> Vec<(wire::Tuple, wire::Key, u32, wire::Profile)> {
        let of = |entry: &penstock_policy::plan::PlanEntry| {
            let profile = plan.profiles[usize::from(entry.profile)];
            (plan.tuples[entry.tuple as usize], entry.value, entry.rate, profile)
        };
        plan.entries.iter().map(of).collect()
    }

    #[test]
    fn a_plan_with_fewer_kinds_of_rows_is_put_over_what_is_there() {
        let (whole, part) = (plan(&format!("{ROWS}{MORE}")), plan(ROWS));
        assert!(
            part.tuples.len() < whole.tuples.len() && part.profiles.len() < whole.profiles.len(),
            "a tuple and a profile less"
        );
        let fitted = fit(part.clone(), &left(&whole)).unwrap();
        assert_eq!((&fitted.tuples, &fitted.profiles), (&whole.tuples, &whole.profiles));
        assert_eq!(meant(&fitted), meant(&part), "rows mean what they meant");
        let wires = |plan: &Plan| plan.classes.iter().map(|class| class.wire).collect::<Vec<_>>();
        assert_eq!(wires(&fitted), wires(&whole));
        assert_eq!(fitted.places, whole.places);
        assert_eq!(fitted.links[0].wire, whole.links[0].wire);
        let of_rules =
            |plan: &Plan| plan.rule_keys.iter().map(|key| plan.tuples[key.tuple as usize]).collect::<Vec<_>>();
        assert_eq!(of_rules(&fitted), of_rules(&part));
        let of_limits =
            |plan: &Plan| plan.limits.iter().map(|limit| plan.profiles[usize::from(limit.profile)]).collect::<Vec<_>>();
        assert_eq!(of_limits(&fitted), of_limits(&part));
    }

    #[test]
    fn a_plan_with_what_is_not_there_is_of_another_policy() {
        let (whole, part) = (plan(&format!("{ROWS}{MORE}")), plan(ROWS));
        assert!(fit(whole.clone(), &left(&part)).is_none(), "a tuple more");
        let mut fewer = left(&whole);
        fewer.classes.pop();
        assert!(fit(part.clone(), &fewer).is_none(), "a class more");
        let mut unoffered = left(&whole);
        unoffered.links[0] = None;
        assert!(fit(part, &unoffered).is_none(), "tuples that nobody looks up");
    }
}
