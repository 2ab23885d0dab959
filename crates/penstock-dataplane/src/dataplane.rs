// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every data plane can do: take a policy, change its limits, tell what it counted, and go.

use crate::xdp::KernelError;
use penstock_algo::wire;
use penstock_policy::plan::{Plan, PlanEntry};
use std::io;
use std::path::PathBuf;

/// Whatever holds a policy in force. One policy at a time; indices into its tables are those of [`Dataplane::plan`].
pub trait Dataplane: Send {
    /// Puts a policy into force in one step: a packet sees the one before or this one, never both. What was there before
    /// keeps its state: a row of a limits file is the same when class and key are, a class's own limit when the class's path is; where
    /// the rate changed, the virtual queue keeps its bytes. When this fails, what was in force stays in force.
    ///
    /// # Errors
    /// An interface or the kernel refuses.
    fn apply(&mut self, plan: Plan) -> Result<Applied, DataplaneError>;

    /// Takes over what a process before this one left in force. `plan` is that policy, with the edits that were made since; what
    /// differs in its limits is set right. No packet and no state is lost.
    ///
    /// # Errors
    /// Nothing was left ([`DataplaneError::Idle`]), or the kernel refuses. What is in force stays in force.
    fn adopt(&mut self, plan: Plan) -> Result<Applied, DataplaneError>;

    /// Puts right what the machine has changed under a policy in force: an interface that was made anew is judged again. To be called
    /// after [`Dataplane::adopt`], and now and then. The generation may be another one after it. Returns what the operator should know at the moment.
    ///
    /// # Errors
    /// There is no policy.
    fn repair(&mut self) -> Result<Vec<String>, DataplaneError> {
        if self.plan().is_some() { Ok(Vec::new()) } else { Err(DataplaneError::Idle) }
    }

    /// The generation in force, also one that a process before this one left and that was not adopted yet.
    fn generation(&self) -> Option<u64>;

    /// Changes limits while packets go on being judged. All of the edits are checked before the first is made. The generation may be
    /// another one after it: when tables that are full were made anew.
    ///
    /// # Errors
    /// An edit names what is not there, there is no policy, or the kernel refuses larger tables. Nothing was changed then.
    fn edit(&mut self, edits: &[Edit]) -> Result<(), DataplaneError>;

    /// Takes the policy out of force, adopted or not, and leaves every interface as it was found. Without a policy it does
    /// nothing.
    ///
    /// # Errors
    /// The kernel refuses. What could be taken out is out; calling again goes on.
    fn down(&mut self) -> Result<(), DataplaneError>;

    /// The policy in force, edits included. None as long as what is in force was not adopted.
    fn plan(&self) -> Option<&Plan>;

    /// What was counted since the policy came into force. Counters of classes that stay go on over [`Dataplane::apply`].
    ///
    /// # Errors
    /// There is no policy, or the kernel does not tell.
    fn readings(&self) -> Result<Readings, DataplaneError>;

    /// One limit as it is now.
    ///
    /// # Errors
    /// There is no such limit, or the kernel does not tell.
    fn limit(&self, limit: LimitId) -> Result<LimitReading, DataplaneError>;

    /// What those did who hold packets until their turn. None while no policy has packets wait with somebody.
    fn shaping(&self) -> Option<ShapingReading> {
        None
    }

    /// Forgets shares of what sends nothing any more. To be called every 10 to 20 ms while a policy shares. Returns how many nodes were looked at.
    fn tend(&mut self) -> u64 {
        0
    }

    /// The user of a class whose packets have this key. None where the class has no users.
    ///
    /// # Errors
    /// There is no policy.
    fn user(&mut self, class: u32, key: &wire::Key) -> Result<Option<UserReading>, DataplaneError> {
        let _ = (class, key);
        if self.plan().is_some() { Ok(None) } else { Err(DataplaneError::Idle) }
    }

    /// Takes samples of packets that were dropped or marked since the last call, oldest first. Not every packet is sampled.
    ///
    /// # Errors
    /// The kernel does not tell.
    fn samples(&mut self) -> Result<Vec<wire::pst_sample>, DataplaneError>;
}

/// What came of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Counts up with every policy; what is said about packets names it.
    pub generation: u64,
    /// Limits that kept their state.
    pub limits_kept: u64,
    /// What the operator should know: an interface without native XDP, say.
    pub warnings: Vec<String>,
}

/// Which limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LimitId {
    /// A row of a limits file: an index into [`Plan::entries`].
    Row(u32),
    /// A class's own limit: an index into [`Plan::limits`].
    Class(u32),
}

/// A change of one limit.
#[derive(Debug, Clone)]
pub enum Edit {
    /// Another rate; the virtual queue keeps its bytes.
    SetRate {
        /// Which one.
        limit: LimitId,
        /// bit/s.
        rate_bps: u64,
    },
    /// A new row, idle. It gets the next index of [`Plan::entries`]. Its tuple and profile are the plan's.
    Add {
        /// Its name.
        name: String,
        /// Its key and terms.
        entry: PlanEntry,
    },
    /// Takes a row away. Its index stays, with a rate code of 0, and is not used again while this policy is in force.
    Remove {
        /// Index into [`Plan::entries`].
        row: u32,
    },
}

/// What a data plane counted.
#[derive(Debug, Clone, Default)]
pub struct Readings {
    /// The clock that packets are judged by, ns.
    pub now_ns: u64,
    /// By class of the plan: all of its packets, whatever limit judged them.
    pub classes: Vec<wire::pst_counters>,
    /// By `pst_reason`: packets.
    pub reasons: Vec<u64>,
    /// By place of the plan ([`Plan::places`]): classes, then links, in their trees of shares. None where their link shares nothing.
    pub shares: Vec<Option<ShareReading>>,
}

/// A class or a link in its tree of shares, as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ShareReading {
    /// What it asks for, bit/s.
    pub demand_bps: u64,
    /// What it may have, as its last packet found it, bit/s; of a link, its rate.
    pub share_bps: u64,
    /// How it stands with its siblings.
    pub standing: Standing,
    /// What children take who have what they ask for, or no more than their guarantee, bit/s.
    pub taken_bps: u64,
    /// The weights of the children that share what is left.
    pub weights: u64,
    /// The part of `taken_bps` that guarantees hold, bit/s.
    pub held_bps: u64,
    /// The weights of the children that have what they ask for.
    pub weights_taken: u64,
    /// Of a class that has users.
    pub users: Option<UsersReading>,
}

/// How a node stands in its tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Standing {
    /// It sends nothing.
    #[default]
    Idle,
    /// It has what it asks for, or its ceiling.
    Satisfied,
    /// It asks for more than its fair share.
    Unsatisfied,
    /// By its guarantee it has more than its fair share.
    Held,
}

/// The users of a class.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UsersReading {
    /// Those who send, of users with entries.
    pub active: u64,
    /// Entries that there are; 0: users have none.
    pub entries: u64,
    /// Without entries: what each user may send, per unit of weight, bit/s.
    pub limit_bps: Option<u64>,
    /// With entries: Jain's index of what those have by their weights who ask for more. 1: it is fair. None while nobody asks for more.
    pub fairness: Option<f64>,
}

/// A user in its class, as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserReading {
    /// What it asks for, bit/s; without an entry never too low.
    pub demand_bps: u64,
    /// What it may have, bit/s.
    pub share_bps: u64,
    /// Its weight, where it is known.
    pub weight: Option<u32>,
    /// How it stands with other users; a user without an entry is only known to be below or above its share.
    pub standing: Standing,
    /// Whether its class gives users entries, and it has one.
    pub has_entry: bool,
}

/// One limit as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct LimitReading {
    /// bit/s.
    pub rate_bps: u64,
    /// Depth of the virtual queue: how long it takes to drain at this rate, ns.
    pub queue_ns: u64,
    /// How deep it may get: burst and excess, ns.
    pub window_ns: u64,
    /// Its packets; none where the data plane does not count each limit.
    pub counters: Option<wire::pst_counters>,
}

/// What those did who hold packets.
#[derive(Debug, Clone, Default)]
pub struct ShapingReading {
    /// Packets that left after they had waited.
    pub sent_packets: u64,
    /// Packets that were to wait and were lost on their way.
    pub lost_packets: u64,
    /// Packets that wait.
    pub waiting_packets: u64,
    /// What these take, in bytes of memory.
    pub taken_bytes: u64,
    /// How long packets waited.
    pub delay: Times,
    /// How long after their turn they left.
    pub lateness: Times,
}

/// A histogram of times.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// Times of at most 2^index us, and more than half of that; the last ones have no bound.
    pub counts: [u64; penstock_shaper::BUCKETS],
    /// The sum of all, ns.
    pub sum_ns: u64,
}

/// What a data plane would not do.
#[derive(Debug, thiserror::Error)]
pub enum DataplaneError {
    /// There is nothing to change or to tell about.
    #[error("no policy is in force")]
    Idle,
    /// The policy leaves open where packets come from.
    #[error("port {port} names no device; add `device:` to it")]
    PortWithoutDevice {
        /// Its name.
        port: String,
    },
    /// The replay is restricted to a link that the policy has not got.
    #[error("the policy has no link {name:?}; it has {}", .known.join(", "))]
    UnknownLink {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// An interface cannot take the program.
    #[error("{device} (port {port}): {problem}; {help}")]
    Interface {
        /// The port's name in the policy.
        port: String,
        /// The interface.
        device: String,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        help: String,
    },
    /// What was left in force cannot be what the plan says.
    #[error("the program that was left on the interfaces is of another policy, or of another version of penstock")]
    OtherPolicy,
    /// Two processes would change the same links.
    #[error("another process uses {}; stop it, or give this one `--pins` of its own", folder.display())]
    Locked {
        /// Where its pins are.
        folder: PathBuf,
    },
    /// Interfaces of another namespace have the numbers of ours.
    #[error(
        "{} holds programs on interfaces of another network namespace; give this one `--pins` of its own",
        folder.display()
    )]
    OtherNamespace {
        /// Where its pins are.
        folder: PathBuf,
    },
    /// Packets would have to wait, and have nowhere to go then.
    #[error(
        "class {class}: `on_excess: shape` takes packets that go from port to port (`forward`); for those that the kernel routes use \
         `drop` or `mark`"
    )]
    Shapes {
        /// Its path.
        class: String,
    },
    /// A delay where packets cannot wait.
    #[error("{name}: `delay` takes packets that go from port to port (`forward`), not those that the kernel routes")]
    Delays {
        /// Of the link, or the class.
        name: String,
    },
    /// No such limit.
    #[error("there is no limit {0:?} in the policy")]
    UnknownLimit(LimitId),
    /// A new row needs fields or terms that no row of the policy has: it takes a new plan.
    #[error("{name:?} has fields or terms that no row of the policy has")]
    UnknownTerms {
        /// The new row.
        name: String,
    },
    /// A new row would be the second with its key.
    #[error("{name:?} has the key of another row")]
    Taken {
        /// The new row.
        name: String,
    },
    /// The tables cannot be built.
    #[error(transparent)]
    Load(#[from] crate::LoadError),
    /// The kernel.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// Files of the data plane.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The chaos backend said so.
    #[error("this write failed on purpose (seed {seed}, write {write})")]
    Chaos {
        /// Of the run.
        seed: u64,
        /// Counted from 0.
        write: u64,
    },
}
