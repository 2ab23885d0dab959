// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a policy compiles to: tuples, rules, limits and profiles, ready for any data plane.
//!
//! A plan is pure data. Hash secrets, table placement and limiter states are made by the data plane that loads it, so the
//! same policy always compiles to the same plan.

use penstock_algo::{limiter, wire};

/// A compiled policy.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// `name` of the policy.
    pub policy: String,
    /// Ports in file order.
    pub ports: Vec<PlanPort>,
    /// Links in file order.
    pub links: Vec<PlanLink>,
    /// Classes in file order, over all links.
    pub classes: Vec<PlanClass>,
    /// Tuples. Each link's own lie together, most specific first; tuples of a class that has both a match and a limits file
    /// lie behind them. `salt` is 0: the data plane sets it.
    pub tuples: Vec<wire::Tuple>,
    /// What goes into the rule table. `rule` indexes [`Plan::rules`].
    pub rule_keys: Vec<PlanRuleKey>,
    /// Rules: a match item each (port ranges expand to several keys of one rule).
    pub rules: Vec<wire::Rule>,
    /// Limits of classes, by [`wire::Class::limit_index`]; state 0: the data plane makes it idle.
    pub limits: Vec<wire::Limit>,
    /// Rows of limits files: what goes into the limiter table.
    pub entries: Vec<PlanEntry>,
    /// Names of `entries`, in the same order.
    pub names: Names,
    /// Delay lines, by [`wire::Link::line`] and [`wire::Class::line`]: the first one is nobody's. None when there are no others.
    pub lines: Vec<wire::Line>,
    /// Places in trees of shares: each class's at its own index, then each link's at its index. None where no link shares anything.
    pub places: Vec<wire::TreePlace>,
    /// Nodes of users that have one each, over all classes, and one more a class for those who find none: they lie behind those of the places.
    pub user_count: u32,
    /// Classes whose users have no entries, by [`wire::TreePlace::slice`]; their states are 0.
    pub slices: Vec<wire::Slice>,
    /// The sketch of these users; seeds are 0: the data plane draws them.
    pub sketch: wire::Sketch,
    /// Profiles, shared by limits and entries.
    pub profiles: Vec<wire::Profile>,
    /// What packets that wait may take in all, in pieces of [`wire::PST_HOLD_CHUNK_BYTES`].
    pub hold_chunks: u32,
    /// Who holds them stays awake so long before a packet's turn, ns.
    pub spin_ns: u64,
    /// They wait in DragonKing's groups, and not in a timing wheel.
    pub holds_in_groups: bool,
    /// What the operator should know: windows that were widened, and the like.
    pub warnings: Vec<String>,
}

impl Plan {
    /// Whether packets may have to wait, for their turn or on a delay line.
    #[must_use]
    pub fn holds_packets(&self) -> bool {
        self.profiles.iter().any(limiter::holds) || self.lines.iter().any(|line| line.delay_ns > 0)
    }
}

/// A port of a plan: where packets come in.
#[derive(Debug, Clone, Default)]
pub struct PlanPort {
    /// Its name.
    pub name: String,
    /// The network device; none for offline work.
    pub device: Option<String>,
    /// Its rate, bits/s.
    pub rate_bps: u64,
    /// Its largest IP packet.
    pub mtu_bytes: u32,
    /// Links that packets which come in here are offered to, in this order: indices into [`Plan::links`].
    pub links: Vec<u32>,
    /// The port that what passes leaves by, without the kernel's routing: an index into [`Plan::ports`].
    pub forward: Option<u32>,
}

/// A link of a plan.
#[derive(Debug, Clone, Default)]
pub struct PlanLink {
    /// Its name.
    pub name: String,
    /// Its rate, bits/s.
    pub rate_bps: u64,
    /// What the data plane needs of it.
    pub wire: wire::Link,
}

/// A class of a plan.
#[derive(Debug, Clone, Default)]
pub struct PlanClass {
    /// Link and class, as in `down/gold`.
    pub path: String,
    /// The class that it is a child of: an index into [`Plan::classes`].
    pub parent: Option<u32>,
    /// The rate of its own limit, bits/s, if it has one.
    pub limit_bps: Option<u64>,
    /// What the data plane needs of it.
    pub wire: wire::Class,
}

/// A key of the rule table.
#[derive(Debug, Clone, Copy)]
pub struct PlanRuleKey {
    /// Index into [`Plan::tuples`].
    pub tuple: u32,
    /// Index into [`Plan::rules`]; at most 65,535.
    pub rule: u16,
    /// The value under the tuple's mask.
    pub value: wire::Key,
}

/// A row of a limits file.
#[derive(Debug, Clone, Copy)]
pub struct PlanEntry {
    /// Index into [`Plan::tuples`].
    pub tuple: u32,
    /// Rate code ([`penstock_algo::rate::encode`]).
    pub rate: u32,
    /// The rate as written, bits/s.
    pub rate_bps: u64,
    /// Index into [`Plan::profiles`].
    pub profile: u16,
    /// The value under the tuple's mask.
    pub value: wire::Key,
}

/// Many short names in one allocation.
#[derive(Debug, Clone, Default)]
pub struct Names {
    text: String,
    ends: Vec<u32>,
}

impl Names {
    /// Appends a name.
    ///
    /// # Errors
    /// Returns the name when all names together would pass 4 GiB.
    pub fn push<'a>(&mut self, name: &'a str) -> Result<(), &'a str> {
        let end = u32::try_from(self.text.len() + name.len()).map_err(|_| name)?;
        self.text.push_str(name);
        self.ends.push(end);
        Ok(())
    }

    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The name at `index`, or an empty one beyond the end.
    #[must_use]
    pub fn get(&self, index: usize) -> &str {
        let Some(&end) = self.ends.get(index) else {
            return "";
        };
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.text[start..end as usize]
    }
}
