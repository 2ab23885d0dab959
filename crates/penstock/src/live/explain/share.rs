// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said of a share: what is asked for, what there is, and why it is not more.

use crate::units::rate;
use penstock_api::v1;
use penstock_api::v1::origin::By;
use penstock_api::v1::share::Standing;
use penstock_policy::units::format_rate;
use std::fmt::Write;

/// Of a line, behind the spaces that it begins with.
const WIDTH: usize = 69;

/// Lines below the level's name; 80 columns hold them.
pub fn lines(text: &mut String, level: &v1::Level, share: &v1::Share) {
    let is_user = level.kind() == v1::level::Kind::User;
    let is_known = !is_user || level.has_entry || share.share_bps > 0;
    // Writing to a string cannot fail.
    let mut say = |what: String| {
        let _ = writeln!(text, "           {what}");
    };
    match (is_user, is_known) {
        (_, false) => say("it sends nothing, or found no entry free".to_owned()),
        (true, true) => {
            say(if level.has_entry { "it has an entry" } else { "its class gives users no entries" }.to_owned());
            say(asks(share));
        }
        (false, _) => say(asks(share)),
    }
    if level.kind() == v1::level::Kind::Link {
        return;
    }
    let has = format!("share {}", rate(to_f64(share.share_bps)));
    match &level.origin {
        _ if !is_known => {}
        None => say(format!("{has} = its class's limit for a weight of 1, times {}", share.weight)),
        Some(origin) => {
            let mut why = reasons(share, origin).into_iter();
            let first = format!("{has} = {}", why.next().unwrap_or_default());
            match first.split_once(" that ").filter(|_| first.len() > WIDTH) {
                Some((most, rest)) => {
                    say(most.to_owned());
                    say(format!("  that {rest}"));
                }
                None => say(first),
            }
            why.for_each(|line| say(format!("  {line}")));
        }
    }
    if let Some(users) = &share.users {
        say(of_users(users));
    }
}

fn asks(share: &v1::Share) -> String {
    let standing = match share.standing() {
        Standing::Idle => "",
        Standing::Satisfied if share.demand_bps > share.share_bps => ": it has its ceiling",
        Standing::Satisfied => ": it has that",
        Standing::Unsatisfied => ": more than its fair share",
        Standing::Held => ": by its guarantee it has more than its fair share",
    };
    format!("asks for {}{standing}", rate(to_f64(share.demand_bps)))
}

/// What the share is made of; what decides it comes first.
fn reasons(share: &v1::Share, origin: &v1::Origin) -> Vec<String> {
    let left = if origin.of_all { "that no guarantee holds" } else { "that others leave" };
    let v1::Origin { left_bps, weights, .. } = *origin;
    let weight = format!("weight {} of {weights} of {} {left}", share.weight, rate(to_f64(left_bps)));
    let guarantee = share.guarantee_bps.map(|bps| format!("its guarantee of {}", format_rate(bps)));
    let ceiling = share.ceiling_bps.map(|bps| format!("its ceiling of {}", format_rate(bps)));
    let (least, most) = (|what: String| format!("at least {what}"), |what: String| format!("at most {what}"));
    let lines = match origin.by() {
        By::Weight => [Some(weight), guarantee.map(least), ceiling.map(most)],
        By::Guarantee => [guarantee, Some(format!("more than {weight}")), ceiling.map(most)],
        By::Ceiling => [ceiling, Some(format!("less than {weight}")), guarantee.map(least)],
    };
    lines.into_iter().flatten().collect()
}

fn of_users(users: &v1::Users) -> String {
    match (users.limit_bps, users.fairness) {
        (Some(limit_bps), _) => format!("users have {} each, for a weight of 1", rate(to_f64(limit_bps))),
        (None, Some(fairness)) => {
            format!("{} of {} users' entries in use, fairness {fairness:.3}", users.active, users.entries)
        }
        (None, None) => format!("{} of {} users' entries in use", users.active, users.entries),
    }
}

#[allow(clippy::cast_precision_loss)] // four digits are shown
fn to_f64(number: u64) -> f64 {
    number as f64
}
