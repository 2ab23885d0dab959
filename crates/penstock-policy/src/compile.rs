// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a policy and its limits files to a plan.
//!
//! Source    Srinivasan, Suri, Varghese, "Packet classification using tuple space search", SIGCOMM 1999, section 3.
//! Invariant the plan's search finds, for every packet, the class and the row of the most specific of all matches. Two
//!           matches of equal specificity that some packet has both of are refused, unless they are of one class.

use crate::ambiguity;
use crate::diagnostics::{Diagnostic, Errors, Problem, quote};
use crate::limits_file::{LIMITS_BYTES_MAX, LimitsText};
use crate::model::{Class, Delay, Disposition, LimitsFile, Link, Policy, Unmatched};
use crate::overlay::{ClassOverlay, Overlay, Unused};
use crate::plan::{Plan, PlanClass, PlanLink, PlanPort, PlanRuleKey};
use crate::rows::{self, Laid, NameSet};
use crate::rules::RuleAt;
use crate::tables::{LeftOut, PROFILES_MAX, RuleKey, Scope, TUPLES_MAX, Tables};
use crate::terms::{Terms, narrow, rate_code};
use crate::units::format_rate;
use crate::warnings::{Tightness, Window, oversubscription, short_memory};
use penstock_algo::wire;
use std::collections::HashSet;

/// Largest packet that a profile speaks of (`meter.h`); a larger MTU plus overhead is taken for this.
const MTU_MAX_BYTES: u32 = 1 << 16;
/// An Ethernet header with two VLAN tags.
const ETHERNET_MAX_BYTES: u32 = 22;

/// Compiles a policy. `read` returns the bytes of a limits file, whose path is relative to the policy's folder.
///
/// # Errors
/// Everything that is wrong with limits files, and what only shows when rules and rows are put together.
pub fn compile(policy: &Policy, read: impl FnMut(&str) -> std::io::Result<LimitsText>) -> Result<Plan, Errors> {
    compile_with(policy, read, &Overlay::default()).map(|(plan, _)| plan)
}

/// Compiles a policy with changes laid over its limits. Says as well which of them it has no place for.
///
/// # Errors
/// As [`compile`]; also what is wrong with added rows.
pub fn compile_with(
    policy: &Policy,
    mut read: impl FnMut(&str) -> std::io::Result<LimitsText>,
    overlay: &Overlay,
) -> Result<(Plan, Vec<Unused>), Errors> {
    let mut left_out = LeftOut::default();
    loop {
        let mut compiler = Compiler::new(policy, overlay);
        let known = left_out.len();
        compiler.tables.left_out = left_out;
        compiler.ports();
        compiler.links();
        compiler.rules();
        compiler.files(&mut read);
        compiler.shares();
        let mut unused = compiler.unused();
        let plan;
        (plan, left_out) = compiler.finish()?;
        // What is left out is so from the beginning: it leaves no trace, and may have stood in the way of others.
        if left_out.len() == known {
            unused.extend(left_out.into_rows().map(|(class, row, why)| Unused::AddedRow { class, row, why }));
            return Ok((plan, unused));
        }
    }
}

/// A number that follows from a name: the same in the next policy. Of two that share one, the packets wait for each other.
pub(crate) fn owner_of(path: &str) -> u32 {
    let sum = path.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3) // FNV-1a
    });
    // What the last letters changed is in the middle.
    u32::try_from((sum ^ sum >> 32) & u64::from(u32::MAX)).unwrap_or_default()
}

/// Of a limit, which has two bytes for it.
fn short_owner_of(path: &str) -> u16 {
    let owner = owner_of(path);
    u16::try_from((owner ^ owner >> 16) & u32::from(u16::MAX)).unwrap_or_default()
}

/// A policy on its way to a plan.
pub(crate) struct Compiler<'a> {
    pub policy: &'a Policy,
    overlay: &'a Overlay,
    /// Rows that the overlay changed.
    pub changed: HashSet<(&'a str, &'a str)>,
    pub tables: Tables,
    pub errors: Errors,
    pub rules: Vec<RuleAt<'a>>,
    pub rule_keys: Vec<RuleKey>,
    /// Sum of the limits on each link, bit/s.
    pub sums_bps: Vec<u64>,
}

/// Where a class stands: its link, its number over all links.
#[derive(Clone, Copy)]
pub(crate) struct ClassAt<'a> {
    pub link_index: usize,
    pub link: &'a Link,
    /// The link's first class.
    pub first: u32,
    pub index: u32,
    pub class: &'a Class,
}

impl ClassAt<'_> {
    /// Link and class, as in `down/gold/web`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.link.name, self.class.path)
    }

    /// The class that it is a child of, by its number over all links.
    pub fn parent(&self) -> Option<u32> {
        self.class.parent.map(|parent| self.first + u32_of(parent))
    }
}

impl<'a> Compiler<'a> {
    fn new(policy: &'a Policy, overlay: &'a Overlay) -> Self {
        Self {
            policy,
            overlay,
            changed: HashSet::new(),
            tables: Tables::default(),
            errors: Errors::default(),
            rules: Vec::new(),
            rule_keys: Vec::new(),
            sums_bps: vec![0; policy.links.len()],
        }
    }

    pub fn classes(&self) -> Vec<ClassAt<'a>> {
        let mut first = 0;
        let mut classes = Vec::new();
        for (link_index, link) in self.policy.links.iter().enumerate() {
            let of_link = link.classes.iter().zip(first..);
            classes.extend(of_link.map(|(class, index)| ClassAt { link_index, link, first, index, class }));
            first += u32_of(link.classes.len());
        }
        classes
    }

    /// Ports, with the links that what comes in by them is offered to.
    fn ports(&mut self) {
        for (index, port) in self.policy.ports.iter().enumerate() {
            let paired = self.policy.forward.iter().find_map(|&(one, other)| match index {
                _ if index == one => Some(other),
                _ if index == other => Some(one),
                _ => None,
            });
            let links = self.policy.links.iter().zip(0_u32..);
            let leads_to = |link: &Link| may_leave_by(self.policy, index, paired, link.port);
            self.tables.plan.ports.push(PlanPort {
                name: port.name.clone(),
                device: port.device.clone(),
                rate_bps: port.rate_bps,
                mtu_bytes: port.mtu_bytes,
                links: links.filter(|(link, _)| leads_to(link)).map(|(_, index)| index).collect(),
                forward: paired.map(u32_of),
            });
        }
    }

    /// Links and classes, with the classes' own limits.
    fn links(&mut self) {
        self.tables.plan.policy.clone_from(&self.policy.name);
        let chunks = self.policy.shaper.memory_bytes / u64::from(wire::PST_HOLD_CHUNK_BYTES);
        self.tables.plan.hold_chunks = u32::try_from(chunks).unwrap_or(u32::MAX);
        self.tables.plan.spin_ns = self.policy.shaper.spin_ns;
        self.tables.plan.holds_in_groups = self.policy.shaper.in_groups;
        let mut class_first = 0;
        for link in &self.policy.links {
            let unmatched_class = match link.unmatched {
                Unmatched::Class(index) => class_first + u32_of(index),
                _ => wire::PST_NONE,
            };
            let unmatched_action =
                if link.unmatched == Unmatched::Drop { wire::PST_ACTION_DROP } else { wire::PST_ACTION_PASS };
            let is_drop = self.policy.malformed == Disposition::Drop;
            let malformed_action = if is_drop { wire::PST_ACTION_DROP } else { wire::PST_ACTION_PASS };
            let wire = wire::Link {
                overhead_bytes: link.overhead_bytes,
                unmatched_class,
                unmatched_action: narrow(unmatched_action),
                malformed_action: narrow(malformed_action),
                line: self.line(link.delay, link, &link.name),
                ..wire::Link::default()
            };
            self.tables.plan.links.push(PlanLink { name: link.name.clone(), rate_bps: link.rate_bps, wire });
            class_first += u32_of(link.classes.len());
        }
        for at in self.classes() {
            let path = at.path();
            let limit_index = self.class_limit(at, &path);
            let limit_bps = at.class.limit.map(|limit| self.class_rate(&path, limit.rate_bps));
            let parent = at.parent();
            let above = parent.and_then(|parent| self.tables.plan.classes.get(parent as usize));
            let of_above = above.map_or(self.tables.plan.links[at.link_index].wire.line, |above| above.wire.line);
            let line = if at.class.delay.is_some() { self.line(at.class.delay, at.link, &path) } else { of_above };
            let link_index = u16::try_from(at.link_index).unwrap_or(u16::MAX); // of 255 at most
            let wire = wire::Class { limit_index, link_index, line, ..wire::Class::default() };
            self.tables.plan.classes.push(PlanClass { path, parent, limit_bps, wire });
        }
    }

    /// The delay line of a link or a class, by its index.
    fn line(&mut self, delay: Option<Delay>, link: &Link, path: &str) -> u16 {
        let Some(delay) = delay.filter(Delay::is_real) else { return 0 };
        let lines = &mut self.tables.plan.lines;
        if lines.is_empty() {
            lines.push(wire::Line::default());
        }
        let Ok(index) = u16::try_from(lines.len()) else {
            let problem = Problem::new("more than 65535 links and classes have a `delay` of their own", "use fewer");
            self.errors.push(Diagnostic::new(self.policy.source.place(link.span), problem));
            return 0;
        };
        lines.push(wire::Line {
            packets: 0,
            seed: delay.seed,
            delay_ns: delay.time_ns,
            jitter_ns: delay.jitter_ns,
            loss_q32: delay.loss_q32,
            owner: owner_of(path),
        });
        index
    }

    /// The rate of a class's own limit: what the policy says, unless the overlay says otherwise.
    fn class_rate(&self, path: &str, rate_bps: u64) -> u64 {
        self.overlay.classes.get(path).and_then(|class| class.rate_bps).unwrap_or(rate_bps)
    }

    /// The index of a class's own limit.
    fn class_limit(&mut self, at: ClassAt<'_>, path: &str) -> u32 {
        let Some(limit) = at.class.limit else {
            return wire::PST_NONE;
        };
        let Some((profile, wire)) = self.profile(at, &limit.terms) else {
            let place = self.policy.source.place(at.link.span);
            self.errors.push(Diagnostic::new(place, too_many_profiles()));
            return wire::PST_NONE;
        };
        let rate_bps = self.class_rate(path, limit.rate_bps);
        let mut tightness = Tightness::default();
        tightness.see(Window::too_tight(&wire, rate_code(rate_bps)), rate_bps, path);
        self.tables.plan.warnings.extend(tightness.of_class());
        let sum = &mut self.sums_bps[at.link_index];
        *sum = sum.saturating_add(rate_bps);
        let index = u32_of(self.tables.plan.limits.len());
        let owner = short_owner_of(path);
        self.tables.plan.limits.push(wire::Limit { rate: rate_code(rate_bps), profile, owner, state: 0 });
        index
    }

    /// The profile of terms in a class. Terms that are not sound were reported where they stand.
    pub fn profile(&mut self, at: ClassAt<'_>, terms: &Terms) -> Option<(u16, wire::Profile)> {
        let mtu_bytes = self.policy.ports[at.link.port].mtu_bytes + at.link.overhead_bytes;
        let profile = terms.profile().ok()?;
        let profile = wire::Profile { class_index: at.index, mtu_bytes: mtu_bytes.min(MTU_MAX_BYTES), ..profile };
        self.tables.profile(&profile).map(|id| (id, profile))
    }

    fn files(&mut self, mut read: impl FnMut(&str) -> std::io::Result<LimitsText>) {
        for at in self.classes() {
            let Some(limits) = at.class.file() else { continue };
            let problem = match read(&limits.path) {
                Ok(text) if text.bytes.len() <= LIMITS_BYTES_MAX => {
                    let overlay = self.overlay.classes.get_key_value(&at.path());
                    let names = rows::add(self, at, limits, text, Laid { overlay, ..Laid::default() });
                    if at.class.limits.is_some() {
                        self.added(at, limits, names, overlay);
                    }
                    continue;
                }
                Ok(text) => Problem::new(format!("{} is larger than {} MiB", text.name, LIMITS_BYTES_MAX >> 20), ""),
                Err(error) => {
                    let help = "the path is relative to the policy's folder";
                    let what = if at.class.users.is_some() { "users file" } else { "limits file" };
                    Problem::new(format!("cannot read the {what}: {error}"), help)
                }
            };
            self.errors.push(Diagnostic::new(self.policy.source.place(limits.span), problem));
        }
    }

    /// Rows that an overlay adds to a class, whose limits file has some names already.
    fn added(
        &mut self,
        at: ClassAt<'_>,
        limits: &LimitsFile,
        mut names: NameSet,
        overlay: Option<(&'a String, &'a ClassOverlay)>,
    ) {
        for added in overlay.iter().flat_map(|(_, class)| &class.added) {
            let added_to = overlay.map(|(path, _)| path).filter(|_| self.overlay.leaves_out);
            names = rows::add(self, at, limits, added.clone(), Laid { names, added_to, overlay: None });
        }
    }

    /// What of the overlay has no place in this policy.
    fn unused(&self) -> Vec<Unused> {
        let mut unused = Vec::new();
        for (path, changes) in &self.overlay.classes {
            let class = || path.clone();
            let found = self.classes().into_iter().find(|at| {
                path.strip_prefix(&at.link.name).and_then(|rest| rest.strip_prefix('/')) == Some(&at.class.path)
            });
            let own = found.and_then(|at| at.class.limit).map(|limit| limit.rate_bps);
            if changes.rate_bps.is_some_and(|rate_bps| own.is_none_or(|own| own == rate_bps)) {
                unused.push(Unused::ClassLimit { class: class() });
            }
            let rows = changes.rows.keys().filter(|row| !self.changed.contains(&(path.as_str(), row.as_str())));
            unused.extend(rows.map(|row| Unused::Row { class: class(), row: row.clone() }));
            if !changes.added.is_empty() && found.is_none_or(|at| at.class.limits.is_none()) {
                unused.push(Unused::Added { class: class() });
            }
        }
        unused.sort();
        unused
    }

    fn finish(mut self) -> Result<(Plan, LeftOut), Errors> {
        self.refuse_shadowed_delays();
        ambiguity::check(&mut self.tables, &self.rules, &self.rule_keys, &mut self.errors);
        self.order_tuples();
        self.user_tuples();
        for (link, sum_bps) in self.policy.links.iter().zip(self.sums_bps) {
            self.tables.plan.warnings.extend(oversubscription(&link.name, sum_bps, link.rate_bps));
            let port = &self.policy.ports[link.port];
            if link.rate_bps > port.rate_bps {
                let (link_rate, port_rate) = (format_rate(link.rate_bps), format_rate(port.rate_bps));
                let warning =
                    format!("link {}: its rate of {link_rate} is above port {}'s {port_rate}", link.name, port.name);
                self.tables.plan.warnings.push(warning);
            }
            let memory_bytes = self.policy.shaper.memory_bytes;
            self.tables.plan.warnings.extend(short_memory(link, port.mtu_bytes, memory_bytes));
            let is_long = port.mtu_bytes + ETHERNET_MAX_BYTES > wire::PST_HOLD_CHUNK_ROOM;
            if is_long && self.tables.plan.holds_packets() {
                let (mtu, most) = (port.mtu_bytes, wire::PST_HOLD_CHUNK_ROOM);
                let warning =
                    format!("port {}: its MTU is {mtu}B, and live frames of more than {most}B cannot wait", port.name);
                self.tables.plan.warnings.push(warning);
            }
        }
        self.errors.into_result((self.tables.plan, self.tables.left_out))
    }

    /// A decision in shadow mode says what would become of a packet that passes: there is no telling that it also waits.
    fn refuse_shadowed_delays(&mut self) {
        let plan = &self.tables.plan;
        let is_shadow = |profile: &&wire::Profile| u32::from(profile.flags) & wire::PST_PROFILE_SHADOW != 0;
        let shadowed: HashSet<u32> =
            plan.profiles.iter().filter(is_shadow).map(|profile| profile.class_index).collect();
        for at in self.classes() {
            if shadowed.contains(&at.index) && self.tables.plan.classes[at.index as usize].wire.line != 0 {
                let path = at.path();
                let message = format!("the class {} decides in shadow mode, and has a `delay`", quote(&path));
                let problem = Problem::new(message, "take one of them away; `delay: 0ms` in the class is none");
                self.errors.push(Diagnostic::new(self.policy.source.place(at.class.span), problem));
            }
        }
    }

    /// Sorts tuples by scope and falling specificity, and tells links and classes where theirs are.
    fn order_tuples(&mut self) {
        let tables = &mut self.tables;
        let mut order: Vec<usize> = (0..tables.scopes.len()).collect();
        order.sort_by_key(|&id| (tables.scopes[id], std::cmp::Reverse(tables.plan.tuples[id].specificity_q8)));
        let mut place_of = vec![0_u32; order.len()];
        order.iter().zip(0_u32..).for_each(|(&id, place)| place_of[id] = place);
        tables.plan.tuples = order.iter().map(|&id| tables.plan.tuples[id]).collect();
        tables.scopes = order.iter().map(|&id| tables.scopes[id]).collect();
        tables.plan.entries.iter_mut().for_each(|entry| entry.tuple = place_of[entry.tuple as usize]);
        let keys = self.rule_keys.iter().map(|key| PlanRuleKey {
            tuple: place_of[key.tuple as usize],
            rule: u16::try_from(key.rule).unwrap_or(u16::MAX),
            value: key.value,
        });
        tables.plan.rule_keys = keys.collect();
        let range_of = |scope: Scope| {
            let first = tables.scopes.partition_point(|&other| other < scope);
            let count = tables.scopes.partition_point(|&other| other <= scope) - first;
            (u32_of(first), u32_of(count))
        };
        let links = u32_of(self.policy.links.len());
        for (link, scope) in tables.plan.links.iter_mut().zip(0..) {
            (link.wire.tuple_first, link.wire.tuple_count) = range_of(scope);
        }
        for (class, scope) in tables.plan.classes.iter_mut().zip(links..) {
            (class.wire.tuple_first, class.wire.tuple_count) = range_of(scope);
        }
        for (scope, link) in (0..).zip(&self.policy.links) {
            let classes = self.tables.plan.classes.iter().filter(|class| u32::from(class.wire.link_index) == scope);
            let counts = classes.map(|class| class.wire.tuple_count as usize);
            let most = counts.chain([range_of_count(&self.tables, scope)]).max().unwrap_or(0);
            if most > TUPLES_MAX {
                let message = format!("matching on this link takes {most} combinations of fields and prefix lengths");
                let help = format!("at most {TUPLES_MAX} are allowed: use fewer different prefix lengths or ranges");
                let place = self.policy.source.place(link.span);
                self.errors.push(Diagnostic::new(place, Problem::new(message, help)));
            }
        }
    }
}

/// Whether what comes in by port `from` may leave by port `to`. A pair's packets cross over. All others go where the kernel
/// routes them: to any other port, or, when a policy knows one port only, from it to this host or to ports it does not name.
fn may_leave_by(policy: &Policy, from: usize, paired: Option<usize>, to: usize) -> bool {
    match paired {
        Some(other) => other == to,
        None => from != to || policy.ports.len() == 1,
    }
}

fn range_of_count(tables: &Tables, scope: Scope) -> usize {
    tables.plan.links[scope as usize].wire.tuple_count as usize
}

pub(crate) fn too_many_profiles() -> Problem {
    let message = format!("more than {PROFILES_MAX} different combinations of terms (burst, excess, meter, peak ...)");
    Problem::new(message, "use fewer different ones; rates do not count")
}

pub(crate) fn u32_of(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_alike_have_other_numbers() {
        let names: Vec<String> = ('a'..='z').map(|letter| format!("down/{letter}")).collect();
        let more: Vec<String> = (0..500).map(|number| format!("down/tenant-{number}")).collect();
        let owners: HashSet<u32> = names.iter().chain(&more).map(|name| owner_of(name)).collect();
        let short: HashSet<u16> = names.iter().chain(&more).map(|name| short_owner_of(name)).collect();
        assert_eq!(owners.len(), 526);
        assert!(short.len() > 518, "two bytes: a few share one, {}", short.len());
    }
}
