// SPDX-License-Identifier: MIT OR Apache-2.0
//! The data plane on live interfaces.
//!
//! Everything that enforces a policy is in the kernel and pinned in a folder of a BPF file system: a generation (program and maps)
//! in `g1`, `g2` .., and `link5` for the interface with index 5. A process that ends leaves it there; another one adopts it.

use super::generation::{Generation, LoadOptions, Port};
use super::in_force::now_ns;
use super::interface::{Interface, Link, Mode, wait_for_packets_on_their_way};
use crate::in_force::{Handover, InForce};
use crate::load::{entry_of, load, parts, rule_entry_of};
use crate::{Applied, Dataplane, DataplaneError, Edit, LimitId, LimitReading, Readings};
use penstock_algo::plane::Plane;
use penstock_algo::wire;
use penstock_policy::Plan;
use std::path::{Path, PathBuf};

/// Where pins are unless the operator says otherwise.
pub const PINS: &str = "/sys/fs/bpf/penstock";
/// Copies of states are made anew until so few changed in between, or so often.
const REFRESHES: usize = 2;

/// The kernel's data plane.
#[derive(Debug)]
pub struct Xdp {
    folder: PathBuf,
    options: LoadOptions,
    /// Programs on interfaces, adopted or not.
    links: Vec<Link>,
    /// The generation that the links hold.
    number: Option<u64>,
    /// The last one that there was.
    last_number: u64,
    in_force: Option<InForce<Generation>>,
}

/// A secret that senders of packets cannot guess.
fn draw_seed() -> Result<u64, DataplaneError> {
    let mut bytes = [0; 8];
    // SAFETY: the buffer is as long as the call is told.
    let drawn = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match usize::try_from(drawn) {
        Ok(8) => Ok(u64::from_ne_bytes(bytes)),
        _ => Err(io("drawing a secret")(std::io::Error::last_os_error())),
    }
}

fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> DataplaneError {
    move |source| DataplaneError::Io { what: what.into(), source }
}

impl Xdp {
    /// Opens the folder of pins (usually [`PINS`]), and finds what an earlier process left there. A BPF file system is mounted at
    /// `/sys/fs/bpf` when the folder is to be there and there is none.
    ///
    /// # Errors
    /// The folder cannot be made on a BPF file system, or the kernel refuses.
    pub fn open(folder: &Path, options: LoadOptions) -> Result<Self, DataplaneError> {
        super::pins::prepare(folder)?;
        let mut xdp = Self {
            folder: folder.to_owned(),
            options,
            links: Vec::new(),
            number: None,
            last_number: 0,
            in_force: None,
        };
        xdp.find_left()?;
        Ok(xdp)
    }

    fn generation_folder(&self, number: u64) -> PathBuf {
        self.folder.join(format!("g{number}"))
    }

    /// Links that are pinned, and the generation of their program. A process that died between two links left them with
    /// programs of two generations: the newer one was on its way in.
    fn find_left(&mut self) -> Result<(), DataplaneError> {
        let mut numbers = Vec::new();
        let mut programs = Vec::new();
        for entry in std::fs::read_dir(&self.folder).map_err(io(self.folder.display().to_string()))? {
            let path = entry.map_err(io(self.folder.display().to_string()))?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if let Some(number) = name.strip_prefix('g').and_then(|number| number.parse::<u64>().ok()) {
                numbers.push(number);
            } else if name.starts_with("link")
                && let Some((link, program)) = Link::open(&path)?
            {
                self.links.push(link);
                programs.push(program);
            }
        }
        numbers.sort_unstable();
        self.last_number = numbers.last().copied().unwrap_or(0);
        for number in numbers.into_iter().rev() {
            let program = super::pins::program_id(&self.generation_folder(number));
            if self.number.is_none() && program.is_some_and(|program| programs.contains(&program)) {
                self.number = Some(number);
                if programs.iter().any(|&other| Some(other) != program) {
                    self.finish_update(number)?;
                }
            } else {
                self.unpin(number);
            }
        }
        Ok(())
    }

    fn finish_update(&self, number: u64) -> Result<(), DataplaneError> {
        let program = super::pins::open_program(&self.generation_folder(number))?;
        for link in &self.links {
            link.update(std::os::fd::AsFd::as_fd(&program))?;
        }
        Ok(())
    }

    /// Forgets a generation's pins. What cannot be removed is tried again by the next process.
    fn unpin(&self, number: u64) {
        let _ = std::fs::remove_dir_all(self.generation_folder(number));
    }

    fn in_force(&self) -> Result<&InForce<Generation>, DataplaneError> {
        self.in_force.as_ref().ok_or(DataplaneError::Idle)
    }

    /// Ports of a plan that take packets, and their interfaces, which must be ours or free.
    fn interfaces(&self, plan: &Plan) -> Result<Vec<(usize, Interface)>, DataplaneError> {
        let takes_packets = |port: usize| plan.ports[port].forward.is_some() || !plan.ports[port].links.is_empty();
        let mut interfaces: Vec<(usize, Interface)> = Vec::new();
        for port in (0..plan.ports.len()).filter(|&port| takes_packets(port)) {
            let interface = Interface::of(&plan.ports[port])?;
            if let Some((other, _)) = interfaces.iter().find(|(_, other)| other.index == interface.index) {
                return Err(interface.problem(
                    &format!("is the device of port {} already", plan.ports[*other].name),
                    "give each port a device of its own",
                ));
            }
            if !self.links.iter().any(|link| link.ifindex == interface.index) {
                interface.check_free()?;
            }
            interfaces.push((port, interface));
        }
        match (interfaces.is_empty(), plan.ports.first()) {
            (true, Some(port)) => Err(DataplaneError::PortWithoutDevice { port: port.name.clone() }),
            _ => Ok(interfaces),
        }
    }

    /// What the program needs to know of ports. Those of a pair are made promiscuous, as a bridge's are.
    fn ports(&self, plan: &Plan, interfaces: &[(usize, Interface)]) -> Result<Vec<Port>, DataplaneError> {
        let index_of =
            |port: u32| interfaces.iter().find(|(other, _)| *other == port as usize).map(|(_, one)| one.index);
        let mut ports = Vec::new();
        for (port, interface) in interfaces {
            let forward = plan.ports[*port].forward.and_then(index_of);
            let was_changed = if forward.is_some() { interface.set_promiscuous(true) } else { Ok(false) };
            let was_changed = was_changed.inspect_err(|_| self.leave(interfaces, &ports))?;
            let is_promiscuous = was_changed || self.made_promiscuous(interface.index);
            let links = plan.ports[*port].links.clone();
            ports.push(Port { ifindex: interface.index, links, forward, is_promiscuous });
        }
        Ok(ports)
    }

    /// Whether the generation in force, adopted or not, or one before it made an interface promiscuous.
    fn made_promiscuous(&self, ifindex: u32) -> bool {
        match (&self.in_force, self.number) {
            (Some(in_force), _) => in_force.host.is_promiscuous(ifindex),
            (None, Some(number)) => Generation::from_pins(&self.generation_folder(number), &[])
                .is_ok_and(|generation| generation.is_promiscuous(ifindex)),
            (None, None) => false,
        }
    }

    /// Puts a generation's program on all interfaces, old ones first, and takes it off those that the policy has not got any
    /// more. When an interface refuses, all get back what they had.
    fn attach(
        &mut self,
        interfaces: &[(usize, Interface)],
        generation: &Generation,
    ) -> Result<Vec<String>, DataplaneError> {
        let mut warnings = Vec::new();
        let mut added: Vec<Link> = Vec::new();
        let is_ours = |index: u32| self.links.iter().any(|link| link.ifindex == index);
        for (_, interface) in interfaces.iter().filter(|(_, interface)| !is_ours(interface.index)) {
            let attached = interface
                .attach(generation.program())
                .and_then(|(fd, mode)| Ok((Link::pin(fd, interface.index, &self.folder)?, mode)));
            match attached {
                Ok((link, mode)) => {
                    added.push(link);
                    if mode == Mode::Generic {
                        warnings.push(format!(
                            "{}: its driver takes no XDP program; it runs in generic mode, which is slower",
                            interface.device
                        ));
                    }
                }
                Err(error) => {
                    added.into_iter().for_each(|link| drop(link.remove()));
                    return Err(error);
                }
            }
        }
        let keeps = |link: &Link| interfaces.iter().any(|(_, interface)| interface.index == link.ifindex);
        for (done, link) in self.links.iter().enumerate().filter(|(_, link)| keeps(link)) {
            if let Err(error) = link.update(generation.program()) {
                if let Some(before) = &self.in_force {
                    self.links[..done].iter().for_each(|link| drop(link.update(before.host.program())));
                }
                added.into_iter().for_each(|link| drop(link.remove()));
                return Err(error.into());
            }
        }
        let (kept, gone): (Vec<Link>, Vec<Link>) = std::mem::take(&mut self.links).into_iter().partition(keeps);
        self.links = kept;
        self.links.extend(added);
        for link in gone {
            let ifindex = link.ifindex;
            if let Err(error) = link.remove() {
                warnings.push(error.to_string());
            }
            warnings.extend(self.restore(ifindex).err().map(|error| error.to_string()));
        }
        Ok(warnings)
    }

    /// Leaves an interface as it was found.
    fn restore(&self, ifindex: u32) -> Result<(), DataplaneError> {
        match Interface::at(ifindex) {
            Some(interface) if self.made_promiscuous(ifindex) => interface.set_promiscuous(false).map(drop),
            _ => Ok(()),
        }
    }

    /// Loads a plan, puts it in the place of what is in force, and carries over what stays.
    fn put(
        &mut self,
        plan: Plan,
        interfaces: &[(usize, Interface)],
        ports: &[Port],
    ) -> Result<Applied, DataplaneError> {
        let mut plane = build(&plan)?;
        let mut handover = self.in_force.as_ref().map(|before| Handover::start(before, &mut plane, &plan, now_ns()));
        let mut generation = Generation::load_with(&plane, ports, self.options)?;
        let number = self.last_number + 1;
        let folder = self.generation_folder(number);
        std::fs::create_dir(&folder).map_err(io(folder.display().to_string()))?;
        if let Err(error) = generation.pin(&folder) {
            self.unpin(number);
            return Err(error.into());
        }
        let mut after = InForce::loaded(plane, plan, generation);
        if let (Some(handover), Some(before)) = (&mut handover, &self.in_force) {
            for _ in 0..REFRESHES {
                handover.carry.refresh(&before.plane, &mut after.plane, now_ns());
            }
        }
        let mut warnings = match self.attach(interfaces, &after.host) {
            Ok(warnings) => warnings,
            Err(error) => {
                self.unpin(number);
                return Err(error);
            }
        };
        wait_for_packets_on_their_way();
        let limits_kept = match (handover, &self.in_force) {
            (Some(handover), Some(before)) => handover.finish(before, &mut after, &mut warnings),
            _ => 0,
        };
        if let Some(before) = self.number {
            self.unpin(before);
        }
        (self.number, self.last_number) = (Some(number), number);
        self.in_force = Some(after);
        Ok(Applied { generation: number, limits_kept, warnings })
    }

    /// Makes interfaces that a policy did not come to as they were.
    fn leave(&self, interfaces: &[(usize, Interface)], ports: &[Port]) {
        let is_held = |index: u32| self.links.iter().any(|link| link.ifindex == index);
        for ((_, interface), port) in interfaces.iter().zip(ports) {
            if port.is_promiscuous && !is_held(port.ifindex) {
                let _ = interface.set_promiscuous(false);
            }
        }
    }
}

/// Builds a plan's tables. One secret in a billion does not do: `load` tries others.
fn build(plan: &Plan) -> Result<Plane, DataplaneError> {
    Ok(load(plan, draw_seed()?, now_ns())?)
}

impl Dataplane for Xdp {
    fn apply(&mut self, plan: Plan) -> Result<Applied, DataplaneError> {
        let interfaces = self.interfaces(&plan)?;
        let ports = self.ports(&plan, &interfaces)?;
        let applied = self.put(plan, &interfaces, &ports);
        if applied.is_err() {
            self.leave(&interfaces, &ports);
        }
        applied
    }

    fn adopt(&mut self, plan: Plan) -> Result<Applied, DataplaneError> {
        let number = self.number.ok_or(DataplaneError::Idle)?;
        // One that is down at the moment has its program all the same.
        let interfaces = plan.ports.iter().filter_map(|port| Some((port, Interface::index_of(port)?)));
        let ports: Vec<Port> = interfaces
            .filter(|(_, index)| self.links.iter().any(|link| link.ifindex == *index))
            .map(|(port, ifindex)| Port { ifindex, links: port.links.clone(), ..Port::default() })
            .collect();
        let generation = Generation::from_pins(&self.generation_folder(number), &ports)?;
        let rules = plan.rule_keys.iter().map(rule_entry_of);
        let limiters = plan.entries.iter().map(entry_of);
        let seed = generation.constants()?.seed;
        // SAFETY: the generation's maps outlive the plane (see InForce), and the program changes words only.
        let adopted = unsafe { Plane::adopt(parts(&plan), rules, limiters, seed, generation.memory()) };
        let (plane, missing) = adopted.map_err(|source| crate::LoadError { source })?;
        if !generation.is_of(&plane)? {
            return Err(DataplaneError::OtherPolicy);
        }
        let mut in_force = InForce::new(plane, plan, generation);
        in_force.settle(&missing)?;
        let limits_kept =
            in_force.slots.iter().filter(|&&slot| slot != wire::PST_NONE).count() + in_force.plan.limits.len();
        let limits_kept = (limits_kept - missing.len()) as u64;
        self.in_force = Some(in_force);
        Ok(Applied { generation: number, limits_kept, warnings: Vec::new() })
    }

    fn generation(&self) -> Option<u64> {
        self.number
    }

    fn edit(&mut self, edits: &[Edit]) -> Result<(), DataplaneError> {
        let in_force = self.in_force.as_mut().ok_or(DataplaneError::Idle)?;
        match in_force.edit(edits, now_ns)? {
            Some(larger) => self.apply(larger).map(drop),
            None => Ok(()),
        }
    }

    fn down(&mut self) -> Result<(), DataplaneError> {
        while let Some(link) = self.links.pop() {
            let ifindex = link.ifindex;
            link.remove()?;
            self.restore(ifindex)?;
        }
        wait_for_packets_on_their_way();
        self.in_force = None;
        if let Some(number) = self.number.take() {
            self.unpin(number);
        }
        Ok(())
    }

    fn plan(&self) -> Option<&Plan> {
        self.in_force.as_ref().map(|in_force| &in_force.plan)
    }

    fn readings(&self) -> Result<Readings, DataplaneError> {
        let generation = &self.in_force()?.host;
        Ok(Readings { now_ns: now_ns(), classes: generation.class_counters()?, reasons: generation.reasons()? })
    }

    fn limit(&self, limit: LimitId) -> Result<LimitReading, DataplaneError> {
        self.in_force()?.reading(limit, now_ns())
    }

    fn samples(&mut self) -> Result<Vec<wire::pst_sample>, DataplaneError> {
        Ok(self.in_force()?.host.drain_samples()?)
    }
}
