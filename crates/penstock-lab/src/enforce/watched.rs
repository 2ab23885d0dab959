// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares of a policy in force, for whoever looks at them all the time.

use super::now_ns;
use crate::LabError;
use crate::shares::fill::Node;
use crate::shares::tree_of;
use crate::stats::real;
use crate::template::addresses;
use crate::watch::Poll;
use penstock_algo::wire;
use penstock_dataplane::xdp::Xdp;
use penstock_dataplane::{Dataplane, Readings};
use penstock_policy::Plan;
use penstock_policy::matching::{Match, Prefix};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

/// How often the data plane forgets who sends nothing any more: as in a replay, and not more often than the daemon does it.
const TEND_NS: u64 = 16_000_000;

/// A policy in force, of which the classes of tenants are known.
#[derive(Debug)]
pub struct Watched {
    xdp: Arc<Mutex<Xdp>>,
    tenants: Vec<OfTenant>,
    tree: (Vec<Node>, Vec<usize>),
    tended_ns: u64,
}

/// Where a tenant's packets are counted.
#[derive(Debug, Clone, Copy)]
enum OfTenant {
    /// It has a class.
    Class(usize),
    /// It is a user of a class whose users have no entries: nothing counts its packets, but what it asks for rises with each of them.
    User { class: u32, key: wire::Key, demand_bps: u64, rises: u64 },
}

impl OfTenant {
    fn class(self) -> u32 {
        match self {
            Self::Class(index) => u32::try_from(index).unwrap_or(u32::MAX),
            Self::User { class, .. } => class,
        }
    }
}

impl Watched {
    /// Finds the class of each tenant: the one that is called so, or the only one whose users have no entries.
    ///
    /// # Errors
    /// There is no such class.
    pub fn new(xdp: Arc<Mutex<Xdp>>, names: &[&str]) -> Result<Self, LabError> {
        let (tenants, tree) = {
            let xdp = xdp.lock().unwrap_or_else(PoisonError::into_inner);
            let plan = xdp.plan().ok_or(penstock_dataplane::DataplaneError::Idle)?;
            let tenants = tenants_of(plan, &xdp.readings()?, names)?;
            let classes: Vec<u32> = tenants.iter().map(|tenant| tenant.class()).collect();
            let tree = tree_of(plan, &classes, &vec![1; classes.len()]);
            (tenants, tree)
        };
        Ok(Self { xdp, tenants, tree, tended_ns: 0 })
    }

    /// The tree that the link is, and the place of each tenant in it.
    pub fn tree(&self) -> &(Vec<Node>, Vec<usize>) {
        &self.tree
    }

    /// Whether packets are counted one by one.
    pub fn counts_packets(&self) -> bool {
        self.tenants.iter().all(|tenant| matches!(tenant, OfTenant::Class(_)))
    }

    /// Looks at everything once, and has the data plane forget who is gone when it is time to.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn look(&mut self) -> Result<Poll, LabError> {
        let mut xdp = self.xdp.lock().unwrap_or_else(PoisonError::into_inner);
        let readings = xdp.readings()?;
        if readings.now_ns >= self.tended_ns + TEND_NS {
            xdp.tend();
            self.tended_ns = readings.now_ns;
        }
        let mut packets = Vec::with_capacity(self.tenants.len());
        for tenant in &mut self.tenants {
            packets.push(match tenant {
                OfTenant::Class(index) => readings.classes.get(*index).map_or(0, |it| it.offered_packets),
                OfTenant::User { class, key, demand_bps, rises } => {
                    let user = xdp.user(*class, key)?.unwrap_or_default();
                    *rises += u64::from(user.demand_bps > *demand_bps);
                    *demand_bps = user.demand_bps;
                    *rises
                }
            });
        }
        let limit_bps = |tenant: &OfTenant| {
            let share = readings.shares.get(tenant.class() as usize).copied().flatten()?;
            let limit_bps = match share.users {
                Some(users) => users.limit_bps?,
                None => share.share_bps,
            };
            Some(real(limit_bps))
        };
        let limits_bps = self.tenants.iter().map(limit_bps).collect();
        Ok(Poll { time_ns: now_ns()?, packets, limits_bps })
    }
}

fn tenants_of(plan: &Plan, readings: &Readings, names: &[&str]) -> Result<Vec<OfTenant>, LabError> {
    let has_slice = |&class: &usize| {
        let users = readings.shares.get(class).copied().flatten().and_then(|share| share.users);
        users.is_some_and(|users| users.limit_bps.is_some())
    };
    let mut slices = (0..plan.classes.len()).filter(has_slice);
    let slice = slices.next().filter(|_| slices.next().is_none());
    let of_tenant = |(index, name): (usize, &&str)| {
        let own = plan.classes.iter().position(|class| class.path.rsplit('/').next() == Some(name));
        let of_slice =
            || Some(OfTenant::User { class: u32::try_from(slice?).ok()?, key: key_of(index), demand_bps: 0, rises: 0 });
        own.map(OfTenant::Class).or_else(of_slice).ok_or_else(|| {
            let help = "a class of this name, or one class with `users: { key: dst, fair: sketch }`";
            LabError::Computation(format!("`watch_shares` finds no limit of {name:?}; it takes {help}"))
        })
    };
    names.iter().enumerate().map(of_tenant).collect()
}

/// Of all packets of a tenant: users are told apart by addresses.
fn key_of(index: usize) -> wire::Key {
    let host = |address: &str| {
        let address = address.parse::<Ipv4Addr>().unwrap_or(Ipv4Addr::UNSPECIFIED);
        Prefix { address: u128::from(u32::from(address)), length: 32, family: 4 }
    };
    let (source, destination) = addresses(index);
    let packets = Match { src: Some(host(&source)), dst: Some(host(&destination)), ..Match::default() };
    packets.keys().first().map(|key| key.value).unwrap_or_default()
}
