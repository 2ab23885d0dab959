// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trees of shares of a plan: who is whose child, what it gets, and who its users are (`wire_share.h`).

use crate::compile::{ClassAt, Compiler, owner_of, too_many_profiles, u32_of};
use crate::diagnostics::{Diagnostic, Problem};
use crate::model::{DropBy, Fair, Share, Unmatched};
use crate::row_keys::user_mask;
use crate::terms::{OnExcess, Terms};
use crate::units::{Depth, format_rate};
use penstock_algo::{share, wire};

/// Of a class without a ceiling: above every rate.
pub const CEILING_NONE_BYTES: u64 = 1 << 36;
/// With fewer bits in tau a slice's shares are not right to 2 %: ten packets (`threshold.h`, Ranges).
const SLICE_MIN_BITS: u64 = 125_000;
/// What a limiter of a user without entry forgives, where the policy does not say: with the other limiters' 42.5 ms, eight CUBIC flows pass 7 % more than what is theirs.
const SKETCH_BURST_NS: u64 = 4_000_000;
const SKETCH_EXCESS_NS: u64 = 4_000_000;
/// Classes that a warning is given for, of each kind; others are counted.
const WARNINGS_MAX: usize = 5;
/// Nodes of classes and users in all, of 128 bytes each: the kernel's verifier takes no offset of 512 MiB.
const NODES_MAX: usize = 1 << 22;
const NO_PLACE: wire::TreePlace = wire::TreePlace {
    terms: wire::pst_share_terms { guarantee_Bps: 0, ceiling_Bps: 0, weight: 0, reserved: 0 },
    parent: wire::PST_NONE,
    first_child: wire::PST_NONE,
    next_sibling: wire::PST_NONE,
    link: wire::PST_NONE,
    profile: wire::PST_NONE,
    owner: 0,
    users: wire::PST_NONE,
    slice: wire::PST_NONE,
    first_user: wire::PST_NONE,
    user_count: 0,
};

/// To the nearest.
fn bytes_per_second(rate_bps: u64) -> u64 {
    (rate_bps + 4) / 8
}

impl<'a> Compiler<'a> {
    /// Places of classes and links, slices of users, and what is to be said about them. Their tuples follow ([`Compiler::user_tuples`]).
    pub(crate) fn shares(&mut self) {
        if !self.policy.links.iter().any(crate::model::Link::shares) {
            return;
        }
        let classes = self.classes();
        self.tables.plan.places = vec![NO_PLACE; classes.len() + self.policy.links.len()];
        for (link_index, link) in self.policy.links.iter().enumerate().filter(|(_, link)| link.shares()) {
            let place = &mut self.tables.plan.places[classes.len() + link_index];
            let ceiling = bytes_per_second(link.rate_bps);
            place.terms = wire::pst_share_terms { ceiling_Bps: ceiling, weight: 1, ..wire::pst_share_terms::default() };
            place.link = u32_of(classes.len() + link_index);
        }
        for at in &classes {
            if let Some(share) = at.class.share {
                self.place(*at, share, classes.len());
            }
        }
        self.siblings(&classes);
        self.warn_of_shares(&classes);
    }

    fn place(&mut self, at: ClassAt<'a>, share: Share, class_count: usize) {
        let link = u32_of(class_count + at.link_index);
        let mut place = wire::TreePlace {
            terms: wire::pst_share_terms {
                guarantee_Bps: share.guarantee_bps.map_or(0, bytes_per_second),
                ceiling_Bps: share.ceiling_bps.map_or(CEILING_NONE_BYTES, bytes_per_second),
                weight: share.weight,
                reserved: 0,
            },
            parent: at.parent().unwrap_or(link),
            link,
            owner: owner_of(&at.path()),
            ..NO_PLACE
        };
        if !at.class.is_inner {
            let is_sketch = at.class.users.as_ref().is_some_and(|users| matches!(users.fair, Fair::Sketch { .. }));
            let terms = if is_sketch { of_sketch(share.terms) } else { share.terms };
            match self.profile(at, &terms) {
                Some((profile, _)) => place.profile = profile.into(),
                None => {
                    let source = self.policy.source.place(at.class.span);
                    self.errors.push(Diagnostic::new(source, too_many_profiles()));
                }
            }
        }
        self.users_of(at, &mut place);
        self.tables.plan.places[at.index as usize] = place;
    }

    /// Where those who share what a class gets have their state.
    fn users_of(&mut self, at: ClassAt<'_>, place: &mut wire::TreePlace) {
        let plan = &mut self.tables.plan;
        match at.class.users.as_ref().map(|users| users.fair) {
            Some(Fair::Tree { entries }) => {
                // Behind them is one for those who find none.
                place.first_user = u32_of(plan.places.len()).saturating_add(plan.user_count);
                place.user_count = entries;
                plan.user_count = plan.user_count.saturating_add(entries + 1);
                if plan.places.len() + plan.user_count as usize > NODES_MAX {
                    let message = format!("the users of all classes up to here have {} entries", plan.user_count);
                    let help = format!(
                        "at most {NODES_MAX}, classes and links included: fewer `entries` in some of them, or `fair: sketch`"
                    );
                    let source = self.policy.source.place(at.class.span);
                    self.errors.push(Diagnostic::new(source, Problem::new(message, help)));
                }
            }
            Some(Fair::Sketch { drop }) => {
                place.slice = u32_of(plan.slices.len());
                let nominal = bytes_per_second(most_bps(at));
                let tau_shift = self.policy.sketch.tau_shift;
                plan.slices.push(wire::Slice {
                    nominal_Bps: nominal,
                    scale: share::slice_scale(nominal, tau_shift),
                    tau_shift,
                    epoch_shift: share::EPOCH_SHIFT,
                    flags: match drop {
                        DropBy::Limiter => wire::PST_SLICE_LIMITERS,
                        DropBy::Chance => 0,
                        DropBy::Periodic => wire::PST_SLICE_PERIODIC,
                    },
                    ..wire::Slice::default()
                });
                let of_policy = self.policy.sketch;
                plan.sketch.rows = of_policy.rows;
                plan.sketch.column_bits = of_policy.column_bits;
            }
            None => {}
        }
    }

    /// Children in file order, each behind the one before.
    fn siblings(&mut self, classes: &[ClassAt<'_>]) {
        let places = &mut self.tables.plan.places;
        for at in classes.iter().rev() {
            let parent = places[at.index as usize].parent as usize;
            if let Some(above) = places.get_mut(parent) {
                let next = std::mem::replace(&mut above.first_child, at.index);
                places[at.index as usize].next_sibling = next;
            }
        }
    }

    /// The tuples that tell users apart, behind all others: two for each class, for IPv4 and for everything else.
    pub(crate) fn user_tuples(&mut self) {
        for at in self.classes() {
            let Some(users) = &at.class.users else { continue };
            let tuples = &mut self.tables.plan.tuples;
            if let Some(place) = self.tables.plan.places.get_mut(at.index as usize) {
                place.users = u32_of(tuples.len());
            }
            tuples.extend([4, 6].map(|family| {
                let mask = user_mask(&users.key, family);
                let words = crate::tables::words_of(&mask);
                wire::Tuple {
                    mask,
                    kind: crate::terms::narrow(wire::PST_TUPLE_LIMITS),
                    words,
                    ..wire::Tuple::default()
                }
            }));
        }
    }

    /// What an operator should know of shares.
    fn warn_of_shares(&mut self, classes: &[ClassAt<'_>]) {
        let mut warnings = Vec::new();
        let tau_shift = self.policy.sketch.tau_shift;
        let small_slice = |at: ClassAt<'_>| small_slice(at, tau_shift);
        for warning_of in [&ceiling_above as &dyn Fn(ClassAt<'_>) -> Option<String>, &guarantees_above, &small_slice] {
            let mut of_kind = classes.iter().filter_map(|at| warning_of(*at));
            warnings.extend(of_kind.by_ref().take(WARNINGS_MAX));
            let more = of_kind.count();
            if more > 0 {
                warnings.push(format!("{more} more classes of which the same is to be said"));
            }
        }
        for link in self.policy.links.iter().filter(|link| link.shares() && link.unmatched == Unmatched::Pass) {
            let takes_all = |item: &crate::model::Item| item.fields == crate::matching::Match::default();
            if !link.classes.iter().flat_map(|class| &class.items).any(takes_all) {
                warnings.push(format!(
                    "link {}: what no class takes passes beside the shares of its classes; `unmatched: {{ class: NAME }}` gives it one",
                    link.name
                ));
            }
        }
        self.tables.plan.warnings.append(&mut warnings);
    }
}

/// The most that a class can get, bit/s.
fn most_bps(at: ClassAt<'_>) -> u64 {
    let ceiling = |class: &crate::model::Class| class.share.and_then(|share| share.ceiling_bps);
    let mut most_bps = ceiling(at.class).unwrap_or(u64::MAX);
    let mut parent = at.class.parent;
    while let Some(above) = parent.and_then(|parent| at.link.classes.get(parent)) {
        most_bps = most_bps.min(ceiling(above).unwrap_or(u64::MAX));
        parent = above.parent;
    }
    most_bps.min(at.link.rate_bps)
}

/// A ceiling that another one keeps anybody from reaching.
fn ceiling_above(at: ClassAt<'_>) -> Option<String> {
    let ceiling_bps = at.class.share?.ceiling_bps?;
    let most_bps = most_bps(at);
    (ceiling_bps > most_bps).then(|| {
        let (ceiling, most) = (format_rate(ceiling_bps), format_rate(most_bps));
        format!("class {}: its ceiling of {ceiling} is above {most}, which it can get at most", at.path())
    })
}

/// Users without entries cannot wait: a packet that needs no limiter would overtake those that do. And their limiters forgive less than others, since they
/// come and go with what the sketch reads.
fn of_sketch(mut terms: Terms) -> Terms {
    terms.burst = terms.burst.or(Some(Depth::Time(SKETCH_BURST_NS)));
    terms.excess = terms.excess.or(Some(Depth::Time(SKETCH_EXCESS_NS)));
    if terms.on_excess == Some(OnExcess::Shape) {
        terms.on_excess = None;
        (terms.horizon_ns, terms.backlog_bytes, terms.ce_threshold_ns) = (None, None, None);
    }
    terms
}

/// Guarantees that hold only as long as those above are not needed.
fn guarantees_above(at: ClassAt<'_>) -> Option<String> {
    let own_bps = at.class.share?.guarantee_bps.unwrap_or(0);
    let index = (at.index - at.first) as usize;
    // Those below it follow it.
    let below =
        at.link.classes[index + 1..].iter().take_while(|class| class.parent.is_some_and(|parent| parent >= index));
    let children = below.filter(|class| class.parent == Some(index));
    let sum_bps = children.filter_map(|class| class.share?.guarantee_bps).sum::<u64>();
    (sum_bps > own_bps).then(|| {
        let sum = format_rate(sum_bps);
        let own = if own_bps == 0 { "nothing".to_owned() } else { format_rate(own_bps) };
        format!(
            "class {}: its children are guaranteed {sum}, and it is guaranteed {own} itself: they get it only where its share is that much",
            at.path()
        )
    })
}

fn small_slice(at: ClassAt<'_>, tau_shift: u32) -> Option<String> {
    let is_sketch = matches!(at.class.users.as_ref()?.fair, Fair::Sketch { .. });
    let most_bps = most_bps(at);
    let least_bps = ((SLICE_MIN_BITS * 1_000_000_000) >> tau_shift).div_ceil(500_000) * 500_000;
    (is_sketch && most_bps < least_bps).then(|| {
        let [most, least, some] = [most_bps, least_bps, least_bps * 2 / 5].map(format_rate);
        format!(
            "class {}: its users share {most} without entries: that is right to 2% from {least} on, to 6% at {some}, and worse below; \
             `fair: tree` gives them entries, and a longer `sketch: {{ tau }}` helps",
            at.path()
        )
    })
}
