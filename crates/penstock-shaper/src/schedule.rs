// SPDX-License-Identifier: MIT OR Apache-2.0
//! When packets that wait leave: by a timing wheel, or by DragonKing's groups as published, in which they circulate.

use penstock_algo::circulation::{self, Circulation, Params};
use penstock_algo::wheel::Wheel;
use penstock_algo::wire;

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// A slot is a group: nothing circulates (`wheel.h`).
    #[default]
    Wheel,
    /// Four groups, and a control loop every 5 us (`circulation.h`, `wf2q_control.h`). For study: it looks at all that waits over and over,
    /// and keeps the order of a limit only as long as it is in time.
    Groups,
}

/// What each of the four pipelines passes, bytes a second. It bounds the work: 0.8 million looks a second at packets of 1500 B.
const PIPELINE_BYTES_PER_SECOND: u64 = 1_250_000_000;
/// T_slide and T_b.
const SLIDE_NS: u64 = 5_000;
/// Control loops that were slept through are made up for one by one.
const IDLE_NS: u64 = 10_000_000;

/// Packets that wait, by their frames.
#[derive(Debug)]
pub(crate) enum Schedule {
    Wheel(Wheel),
    Groups { circulation: Circulation, turned_ns: u64 },
}

impl Schedule {
    pub fn new(form: Form, frames: u32, now_ns: u64) -> Self {
        match form {
            Form::Wheel => Self::Wheel(Wheel::new(frames, now_ns)),
            Form::Groups => {
                let params = Params {
                    // Memory is bounded by who counts it.
                    room_bytes: [u32::MAX; circulation::GROUPS],
                    ..Params::published(PIPELINE_BYTES_PER_SECOND, 0, 0)
                };
                Self::Groups { circulation: Circulation::new(&params, frames, now_ns), turned_ns: now_ns }
            }
        }
    }

    /// A packet waits until it is due. False when that is further ahead than there is room for.
    pub fn put(&mut self, frame: u32, held: &wire::pst_held, due_ns: u64) -> bool {
        match self {
            Self::Wheel(wheel) => wheel.put(frame, due_ns),
            Self::Groups { circulation, turned_ns } => {
                let vft_ns = due_ns + u64::from(held.cost_ns);
                let bytes = held.length.clamp(1, (1 << 17) - 1);
                circulation.put(*turned_ns, &circulation::Packet { vst_ns: due_ns, vft_ns, bytes, tag: frame })
            }
        }
    }

    /// The next packet that leaves now, and when it was due.
    pub fn take(&mut self, now_ns: u64) -> Option<(u32, u64)> {
        match self {
            Self::Wheel(wheel) => wheel.take(now_ns),
            Self::Groups { circulation, turned_ns } => {
                let sent = circulation.run(now_ns);
                *turned_ns = sent.map_or(now_ns, |sent| sent.sent_ns);
                sent.map(|sent| (sent.tag, sent.vst_ns))
            }
        }
    }

    /// When to come next.
    pub fn next_ns(&self) -> Option<u64> {
        match self {
            Self::Wheel(wheel) => wheel.next_ns(),
            Self::Groups { circulation, turned_ns } => {
                Some(turned_ns + if circulation.waiting() > 0 { SLIDE_NS } else { IDLE_NS })
            }
        }
    }

    pub fn waiting(&self) -> u64 {
        match self {
            Self::Wheel(wheel) => wheel.waiting(),
            Self::Groups { circulation, .. } => circulation.waiting().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both let a packet go after its time, and soon after it.
    #[test]
    fn both_forms_release_what_is_due() {
        for form in [Form::Wheel, Form::Groups] {
            let mut schedule = Schedule::new(form, 64, 0);
            let held = wire::pst_held { length: 1000, cost_ns: 100_000, ..wire::pst_held::default() };
            for frame in 0..10 {
                assert!(schedule.put(frame, &held, 1_000_000 + u64::from(frame) * 100_000), "{form:?}");
            }
            let mut released = Vec::new();
            for now in (0..3_000_000).step_by(5_000) {
                while let Some((frame, due_ns)) = schedule.take(now) {
                    assert!(due_ns <= now && now - due_ns < 100_000, "{form:?}: frame {frame} {now}");
                    released.push(frame);
                }
                assert!(schedule.next_ns().is_none_or(|next| next > now));
            }
            assert_eq!(released, (0..10).collect::<Vec<u32>>(), "{form:?}");
            assert_eq!(schedule.waiting(), 0);
        }
    }
}
