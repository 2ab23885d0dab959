// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interfaces of a policy's ports: programs on them, and what else is changed there for these.

use super::generation::{Generation, Port};
use super::interface::{Interface, Link, Mode};
use super::live::Xdp;
use crate::DataplaneError;
use penstock_algo::wire;
use penstock_policy::Plan;
use std::os::fd::BorrowedFd;

/// What a port whose interface is not there does to a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    /// The policy does not come into force.
    Refused,
    /// The others are judged; this one is when it comes.
    Awaited,
}

/// A port that takes packets, and its interface if it is there.
#[derive(Debug)]
pub(super) struct Taker {
    pub port: usize,
    pub interface: Option<Interface>,
}

/// Ports whose packets are judged or forwarded.
fn takers(plan: &Plan) -> impl Iterator<Item = usize> {
    (0..plan.ports.len()).filter(|&port| plan.ports[port].forward.is_some() || !plan.ports[port].links.is_empty())
}

/// What the links of ports are ordered by, whether their interfaces are there or not.
pub(super) fn ports_left(plan: &Plan) -> Vec<Port> {
    let of = |port: usize| {
        let port = &plan.ports[port];
        Port { ifindex: Interface::index_of(port).unwrap_or(0), links: port.links.clone(), ..Port::default() }
    };
    takers(plan).map(of).collect()
}

impl Xdp {
    fn is_ours(&self, ifindex: u32) -> bool {
        self.links.iter().any(|link| link.ifindex == ifindex)
    }

    /// Ports of a plan that take packets, and their interfaces, which must be ours or free.
    pub(super) fn takers(&self, plan: &Plan, absent: Absent) -> Result<Vec<Taker>, DataplaneError> {
        let mut found: Vec<Taker> = Vec::new();
        for port in takers(plan) {
            let interface = match absent {
                Absent::Refused => Some(Interface::of(&plan.ports[port])?),
                Absent::Awaited => Interface::index_of(&plan.ports[port]).and_then(Interface::at),
            };
            let of_other = found.iter().find(|other| interface.is_some() && other.interface == interface);
            if let (Some(interface), Some(other)) = (&interface, of_other) {
                return Err(interface.problem(
                    &format!("is the device of port {} already", plan.ports[other.port].name),
                    "give each port a device of its own",
                ));
            }
            if let Some(interface) = interface.iter().find(|interface| !self.is_ours(interface.index)) {
                interface.check_free()?;
            }
            found.push(Taker { port, interface });
        }
        match (found.is_empty(), plan.ports.first()) {
            (true, Some(port)) => Err(DataplaneError::PortWithoutDevice { port: port.name.clone() }),
            _ => Ok(found),
        }
    }

    /// What the program needs to know of ports. Their interfaces are prepared for it.
    pub(super) fn ports(
        &mut self,
        plan: &Plan,
        takers: &[Taker],
        warnings: &mut Vec<String>,
    ) -> Result<Vec<Port>, DataplaneError> {
        let index_of = |port: u32| {
            let other = takers.iter().find(|other| other.port == port as usize);
            other.and_then(|other| other.interface.as_ref()).map_or(0, |interface| interface.index)
        };
        let mut ports = Vec::new();
        for Taker { port, interface } in takers {
            let links = plan.ports[*port].links.clone();
            let forward = plan.ports[*port].forward.map(index_of);
            let mut port = Port { links, forward, ..Port::default() };
            if let Some(interface) = interface {
                port.ifindex = interface.index;
                port.shaper_first = self.shaper_first(interface.index);
                let changed =
                    interface.prepare(forward.is_some(), warnings).inspect_err(|_| self.leave(takers, &ports))?;
                port.changed = changed | self.changed_before(interface.index);
            }
            ports.push(port);
        }
        Ok(ports)
    }

    /// Where those who hold an interface's packets are counted: where they were before, or a place that nobody has.
    fn shaper_first(&mut self, ifindex: u32) -> u32 {
        let place = self.shapers.iter().position(|&other| other == ifindex).unwrap_or_else(|| {
            let is_gone = |&other: &u32| Interface::at(other).is_none();
            let free = self.shapers.iter().position(is_gone).unwrap_or(self.shapers.len());
            self.shapers.resize(self.shapers.len().max(free + 1), ifindex);
            self.shapers[free] = ifindex;
            free
        });
        // Beyond the last place there is nobody: packets of such an interface do not wait.
        u32::try_from(place).unwrap_or(u32::MAX).saturating_mul(wire::PST_SHAPER_QUEUES).min(wire::PST_SHAPERS_MAX)
    }

    /// What of an interface the generation in force, adopted or not, or one before it changed.
    fn changed_before(&self, ifindex: u32) -> u32 {
        match (&self.in_force, self.number) {
            (Some(in_force), _) => in_force.host.changed(ifindex),
            (None, Some(number)) => Generation::from_pins(&self.generation_folder(number), &[])
                .map_or(0, |generation| generation.changed(ifindex)),
            (None, None) => 0,
        }
    }

    /// Puts a program on interfaces that have none of ours, which may take long: a driver sets up its rings anew. Returns the links,
    /// and what the operator should know. When an interface refuses, all are as before.
    pub(super) fn attach_new(
        &self,
        plan: &Plan,
        takers: &[Taker],
        program: BorrowedFd<'_>,
    ) -> Result<(Vec<Link>, Vec<String>), DataplaneError> {
        let mut added: Vec<Link> = Vec::new();
        let mut warnings = Vec::new();
        let attached = self.attach_each(plan, takers, program, &mut added, &mut warnings);
        if let Err(error) = attached {
            added.into_iter().for_each(|link| drop(link.remove()));
            return Err(error);
        }
        Ok((added, warnings))
    }

    fn attach_each(
        &self,
        plan: &Plan,
        takers: &[Taker],
        program: BorrowedFd<'_>,
        added: &mut Vec<Link>,
        warnings: &mut Vec<String>,
    ) -> Result<(), DataplaneError> {
        let interface_of = |port: usize| takers.iter().find(|taker| taker.port == port)?.interface.as_ref();
        let new = || takers.iter().filter_map(|taker| Some((taker.port, taker.interface.as_ref()?)));
        let new = || new().filter(|(_, interface)| !self.is_ours(interface.index));
        for (_, interface) in new() {
            let (fd, mode) = interface.attach(program)?;
            added.push(Link::pin(fd, interface.index, &self.folder)?);
            if mode == Mode::Generic {
                warnings.push(format!(
                    "{}: its driver takes no XDP program; it runs in generic mode, which is slower",
                    interface.device
                ));
            }
        }
        // A frame goes from one driver to another, or from one of the kernel's receive paths to any: never from a driver to an
        // interface whose driver knows no such frames.
        for (port, interface) in new() {
            let Some(pair) = plan.ports[port].forward.and_then(|other| interface_of(other as usize)) else { continue };
            match (interface.mode()?, pair.mode()?) {
                (Mode::Native, Mode::Generic) => {
                    if let Some(at) = added.iter().position(|link| link.ifindex == interface.index) {
                        added.swap_remove(at).remove()?;
                    }
                    let fd = interface.attach_generic(program)?;
                    added.push(Link::pin(fd, interface.index, &self.folder)?);
                    warnings.push(format!("{}: in generic mode, too: it is {}'s pair", interface.device, pair.device));
                }
                (Mode::Generic, Mode::Native) if self.is_ours(pair.index) => {
                    let problem =
                        format!("takes XDP in generic mode only, but its pair {} runs in its driver", pair.device);
                    return Err(
                        interface.problem(&problem, "`penstock down`, then `penstock up` takes both in generic mode")
                    );
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Puts a generation's program in the place of what links hold, in a step each, for which the kernel takes milliseconds and in
    /// which packets go on to be judged by the one before: `catch_up` after each. When one refuses, all get back what they had.
    pub(super) fn switch(
        &self,
        added: &[Link],
        takers: &[Taker],
        program: BorrowedFd<'_>,
        mut catch_up: impl FnMut(),
    ) -> Result<(), DataplaneError> {
        let kept = self.links.iter().filter(|link| is_taken(takers, link.ifindex));
        let links: Vec<&Link> = kept.chain(added).collect();
        for (done, link) in links.iter().enumerate() {
            if let Err(error) = link.update(program) {
                if let Some(before) = &self.in_force {
                    links[..done].iter().for_each(|link| drop(link.update(before.host.program())));
                }
                return Err(error.into());
            }
            catch_up();
        }
        Ok(())
    }

    /// Takes programs off interfaces that the policy has not got any more. Returns what the operator should know.
    pub(super) fn let_go(&mut self, added: Vec<Link>, takers: &[Taker]) -> Vec<String> {
        let keeps = |link: &Link| is_taken(takers, link.ifindex);
        let (kept, gone): (Vec<Link>, Vec<Link>) = std::mem::take(&mut self.links).into_iter().partition(keeps);
        self.links = kept;
        self.links.extend(added);
        let mut warnings = Vec::new();
        for link in gone {
            let ifindex = link.ifindex;
            warnings.extend(link.remove().err().map(|error| error.to_string()));
            warnings.extend(self.restore(ifindex).err().map(|error| error.to_string()));
        }
        warnings
    }

    /// Leaves an interface as it was found.
    pub(super) fn restore(&self, ifindex: u32) -> Result<(), DataplaneError> {
        match Interface::at(ifindex) {
            Some(interface) => interface.undo(self.changed_before(ifindex)),
            None => Ok(()),
        }
    }

    /// Makes interfaces that a policy did not come to as they were.
    pub(super) fn leave(&self, takers: &[Taker], ports: &[Port]) {
        for (taker, port) in takers.iter().zip(ports) {
            if let Some(interface) = taker.interface.iter().find(|_| !self.is_ours(port.ifindex)) {
                let _ = interface.undo(port.changed);
            }
        }
    }

    /// Ports of a plan whose interfaces are not there, as the operator should know, and whether one is there that has no program.
    pub(super) fn look_round(&self, plan: &Plan) -> (Vec<String>, bool) {
        let mut warnings = Vec::new();
        let mut is_new = false;
        for port in takers(plan).map(|port| &plan.ports[port]) {
            match Interface::index_of(port) {
                Some(index) => is_new |= !self.is_ours(index),
                None => warnings.push(format!(
                    "port {}: there is no interface {} at the moment; the policy comes to it when there is",
                    port.name,
                    port.device.as_deref().unwrap_or_default()
                )),
            }
        }
        (warnings, is_new)
    }
}

fn is_taken(takers: &[Taker], ifindex: u32) -> bool {
    takers.iter().any(|taker| taker.interface.as_ref().is_some_and(|interface| interface.index == ifindex))
}
