// SPDX-License-Identifier: MIT OR Apache-2.0
//! A policy as it was written, checked: what the file says, with units resolved and names turned into indices.

use crate::diagnostics::{Errors, Source, Span};
use crate::matching::Match;
use crate::row_keys::KeyColumn;
use crate::terms::Terms;
use crate::{validate, yaml};
use penstock_algo::share;
use std::sync::Arc;

/// Largest policy file.
pub const POLICY_BYTES_MAX: usize = 16 << 20;
/// Default MTU of a port.
pub const MTU_DEFAULT_BYTES: u32 = 1500;
/// Default overhead of a link: the Ethernet header, without preamble, gap and FCS.
pub const OVERHEAD_DEFAULT_BYTES: u32 = 14;

/// A policy.
#[derive(Debug, Clone)]
pub struct Policy {
    /// `name`, or the file's without its ending.
    pub name: String,
    /// `ports`, in file order.
    pub ports: Vec<Port>,
    /// `forward`: pairs of indices into `ports`.
    pub forward: Vec<(usize, usize)>,
    /// `links`, in file order.
    pub links: Vec<Link>,
    /// `malformed`.
    pub malformed: Disposition,
    /// `shaper`.
    pub shaper: Shaper,
    /// `sketch`.
    pub sketch: Sketch,
    pub(crate) source: Arc<Source>,
}

/// What holds packets that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shaper {
    /// What all of them may take, bytes.
    pub memory_bytes: u64,
    /// So long before a packet's turn it stays awake, ns: a timer may be as late as that.
    pub spin_ns: u64,
    /// `form: groups`: they wait in DragonKing's groups as published, and not in a timing wheel.
    pub in_groups: bool,
}

impl Default for Shaper {
    fn default() -> Self {
        Self { memory_bytes: 64 << 20, spin_ns: 5_000, in_groups: false }
    }
}

/// What users without entries are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sketch {
    /// Rows: a user has a counter in each.
    pub rows: u32,
    /// log2 of the counters of a row.
    pub column_bits: u32,
    /// log2 of the time that it looks back, ns.
    pub tau_shift: u32,
}

impl Default for Sketch {
    fn default() -> Self {
        Self { rows: 3, column_bits: 11, tau_shift: share::TAU_SHIFT }
    }
}

/// Pass or drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// Pass.
    Pass,
    /// Drop.
    Drop,
}

/// A port.
#[derive(Debug, Clone)]
pub struct Port {
    /// Its name in the policy.
    pub name: String,
    /// The network device; none for offline work.
    pub device: Option<String>,
    /// Its rate, bit/s.
    pub rate_bps: u64,
    /// Its largest IP packet.
    pub mtu_bytes: u32,
}

/// A link: one tree of classes for what leaves a port.
#[derive(Debug, Clone)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Index into the policy's ports.
    pub port: usize,
    /// Its rate, bit/s.
    pub rate_bps: u64,
    /// What happens to packets that no class takes.
    pub unmatched: Unmatched,
    /// Bytes that each packet counts beyond its IP packet.
    pub overhead_bytes: u32,
    /// How long packets are on their way behind it, if its classes do not say otherwise.
    pub delay: Option<Delay>,
    /// Its classes, in file order: a class, then those below it.
    pub classes: Vec<Class>,
    pub(crate) span: Span,
}

impl Link {
    /// Whether its rate is shared: then each of its classes has a share.
    #[must_use]
    pub fn shares(&self) -> bool {
        self.classes.iter().any(|class| class.share.is_some())
    }
}

/// What happens to packets that no class takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmatched {
    /// Pass.
    Pass,
    /// Drop.
    Drop,
    /// They belong to this class: an index into the link's.
    Class(usize),
}

/// A class.
#[derive(Debug, Clone)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Where it is below its link: its name behind those of the classes that it is in, as in `gold/web`.
    pub path: String,
    /// The class that it is a child of: an index into the link's.
    pub parent: Option<usize>,
    /// Whether it has children.
    pub is_inner: bool,
    /// `match`; empty if not given. What is written at a class with children stands here at `other`, its last child.
    pub items: Vec<Item>,
    /// `match` of a class with children, whole: packets of all of them fit it.
    pub items_of_all: Vec<Item>,
    /// `limit`.
    pub limit: Option<Limit>,
    /// `limits`.
    pub limits: Option<LimitsFile>,
    /// `delay`, in the place of its parent's or its link's.
    pub delay: Option<Delay>,
    /// Its share, where its link is shared.
    pub share: Option<Share>,
    /// `users`.
    pub users: Option<Users>,
    pub(crate) span: Span,
}

impl Link {
    /// The next class above a class that has a `match`: packets of the class fit it.
    pub(crate) fn above_with_match(&self, class: &Class) -> Option<&Class> {
        let mut parent = class.parent;
        loop {
            let above = self.classes.get(parent?)?;
            if !above.items_of_all.is_empty() {
                return Some(above);
            }
            parent = above.parent;
        }
    }
}

impl Class {
    /// Its limits file or its users'.
    #[must_use]
    pub fn file(&self) -> Option<&LimitsFile> {
        self.limits.as_ref().or_else(|| self.users.as_ref().and_then(|users| users.file.as_ref()))
    }
}

/// What a class gets of its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// `weight`, or what follows from the guarantee.
    pub weight: u32,
    /// `guarantee`, bit/s.
    pub guarantee_bps: Option<u64>,
    /// `ceiling`, bit/s.
    pub ceiling_bps: Option<u64>,
    /// How it is held to its share: its own terms over those of the classes that it is in.
    pub terms: Terms,
}

/// `users` of a class: packets that are told apart by a key share what the class gets.
#[derive(Debug, Clone)]
pub struct Users {
    /// `key`.
    pub key: Vec<KeyColumn>,
    /// `fair`.
    pub fair: Fair,
    /// `file`.
    pub file: Option<LimitsFile>,
}

/// Which packets of a user without entry are dropped, when it is above its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropBy {
    /// Those that its limiter does not let through.
    Limiter,
    /// AHAB's, of all that is not TCP.
    Chance,
    /// AHAB's: of TCP one at intervals, of the rest by chance.
    Periodic,
}

/// How users get what is theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fair {
    /// AHAB: nobody has an entry.
    Sketch {
        /// `drop`.
        drop: DropBy,
    },
    /// HSDBA: each has an entry.
    Tree {
        /// How many entries there are: a power of two.
        entries: u32,
    },
}

/// A delay line (`delay.h`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delay {
    /// `delay` or `time`, ns.
    pub time_ns: u64,
    /// `jitter`, ns: times are between `time_ns` less this and `time_ns` and this.
    pub jitter_ns: u64,
    /// `loss`, 1/2^32.
    pub loss_q32: u32,
    /// `seed`.
    pub seed: u64,
}

impl Delay {
    /// Whether it does anything at all.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.time_ns > 0 || self.loss_q32 > 0
    }
}

/// An item of a class's `match`.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    /// What it says.
    pub fields: Match,
    pub(crate) span: Span,
}

/// The limit of a class.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// `rate`, bit/s.
    pub rate_bps: u64,
    /// Everything else.
    pub terms: Terms,
}

/// The limits file of a class, or its users'.
#[derive(Debug, Clone)]
pub struct LimitsFile {
    /// Its path, relative to the policy's folder.
    pub path: String,
    /// Terms of rows that do not say otherwise.
    pub defaults: Terms,
    pub(crate) span: Span,
}

impl Policy {
    /// The limits files and the users files that it names, in file order; one may come several times.
    pub fn files(&self) -> impl Iterator<Item = &LimitsFile> {
        let classes = self.links.iter().flat_map(|link| &link.classes);
        classes.filter_map(Class::file)
    }

    /// Reads a policy from a text; `source_name` is what errors call it. Does no I/O: the limits files that the policy names
    /// are read when it is compiled ([`crate::plan`]).
    ///
    /// # Errors
    /// Everything that is wrong with the file.
    pub fn parse(source_name: &str, text: &str) -> Result<Policy, Errors> {
        let source = Arc::new(Source::new(source_name, text.trim_start_matches('\u{feff}').to_owned()));
        if text.len() > POLICY_BYTES_MAX {
            return Err(validate::too_large(&source));
        }
        let root = yaml::read(&source)?;
        validate::policy(&source, &root)
    }
}
