// SPDX-License-Identifier: MIT OR Apache-2.0
//! The data plane on live interfaces.
//!
//! Everything that enforces a policy is in the kernel and pinned in a folder of a BPF file system: a generation (program and maps)
//! in `g1`, `g2` .., and `link5` for the interface with index 5. A process that ends leaves it there; another one adopts it.

use super::fit::fit;
use super::generation::{Generation, LoadOptions, Port};
use super::in_force::{LiveHandover, now_ns};
use super::interface::{Link, wait_for_packets_on_their_way};
use super::object::build_of_this;
use super::ports::{Absent, Taker, ports_left};
use super::shaping::Shaping;
use crate::in_force::InForce;
use crate::load::{entry_of, load, parts, rule_entry_of};
use crate::{Applied, Dataplane, DataplaneError, Edit, LimitId, LimitReading, Readings, ShapingReading, UserReading};
use nix::fcntl::Flock;
use penstock_algo::limiter::holds;
use penstock_algo::plane::Plane;
use penstock_algo::wire;
use penstock_policy::Plan;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Where pins are unless the operator says otherwise.
pub const PINS: &str = "/sys/fs/bpf/penstock";
/// Copies of states are made anew until so few changed in between, or so often.
const REFRESHES: usize = 2;

/// The kernel's data plane.
#[derive(Debug)]
pub struct Xdp {
    pub(super) folder: PathBuf,
    options: LoadOptions,
    /// Programs on interfaces, adopted or not.
    pub(super) links: Vec<Link>,
    /// The generation that the links hold.
    pub(super) number: Option<u64>,
    /// The last one that there was.
    last_number: u64,
    pub(super) in_force: Option<InForce<Generation>>,
    /// Who holds packets, while a policy shapes.
    shaping: Option<Shaping>,
    /// Interfaces by their place among those who hold packets.
    pub(super) shapers: Vec<u32>,
    /// Held: no other process changes what is in the folder. It goes last.
    _lock: Flock<File>,
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
            _lock: super::pins::lock(folder)?,
            options,
            links: Vec::new(),
            number: None,
            last_number: 0,
            in_force: None,
            shaping: None,
            shapers: Vec::new(),
        };
        xdp.find_left()?;
        Ok(xdp)
    }

    pub(super) fn generation_folder(&self, number: u64) -> PathBuf {
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
                if !Link::is_here(&name) {
                    return Err(DataplaneError::OtherNamespace { folder: self.folder.clone() });
                }
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
            link.update(program.as_fd())?;
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

    /// Loads a plan into a generation that is pinned.
    fn load(&mut self, plane: &Plane, ports: &[Port]) -> Result<(u64, Generation), DataplaneError> {
        let number = self.last_number + 1;
        let mut generation = Generation::load_next(plane, ports, self.options, self.shaping.as_ref())?;
        let folder = self.generation_folder(number);
        std::fs::create_dir(&folder).map_err(io(folder.display().to_string()))?;
        match generation.pin(&folder) {
            Ok(()) => Ok((number, generation)),
            Err(error) => {
                self.unpin(number);
                Err(error.into())
            }
        }
    }

    /// Loads a plan, puts it in the place of what is in force, and carries over what stays.
    fn put(&mut self, plan: Plan, takers: &[Taker], ports: &[Port]) -> Result<Applied, DataplaneError> {
        let mut plane = build(&plan)?;
        let mut handover = self.in_force.as_ref().map(|before| LiveHandover::start(before, &mut plane, &plan));
        let (number, generation) = self.load(&plane, ports)?;
        let program = generation.program().try_clone_to_owned();
        let program = program.map_err(io("its program")).inspect_err(|_| self.unpin(number))?;
        self.shape(&plan, ports, &generation).inspect_err(|_| self.unpin(number))?;
        let mut after = InForce::loaded(plane, plan, generation);
        // Interfaces that are new get the program in force first, which lets their packets pass: a driver may take long to attach
        // one, and much would be charged meanwhile that the copies do not know of.
        let first = self.in_force.as_ref().map_or(after.host.program(), |before| before.host.program());
        let attached = self.attach_new(&after.plan, takers, first).inspect_err(|_| self.unpin(number));
        let (added, mut warnings) = attached.inspect_err(|_| self.shape_as_before())?;
        if let (Some(handover), Some(before)) = (&mut handover, &self.in_force) {
            for _ in 0..REFRESHES {
                handover.refresh(before, &mut after);
            }
        }
        let switched_ns = now_ns();
        let catch_up = || {
            if let (Some(handover), Some(before)) = (&mut handover, &self.in_force) {
                handover.catch_up(before, &mut after, switched_ns);
            }
        };
        if let Err(error) = self.switch(&added, takers, program.as_fd(), catch_up) {
            added.into_iter().for_each(|link| drop(link.remove()));
            self.unpin(number);
            self.shape_as_before();
            return Err(error);
        }
        warnings.extend(self.let_go(added, takers));
        wait_for_packets_on_their_way();
        let limits_kept = match (handover, &self.in_force) {
            (Some(handover), Some(before)) => handover.finish(before, &mut after, switched_ns, &mut warnings),
            _ => 0,
        };
        if let Some(before) = self.number {
            self.unpin(before);
        }
        (self.number, self.last_number) = (Some(number), number);
        self.keep_shaping(&after.plan, ports);
        self.in_force = Some(after);
        Ok(Applied { generation: number, limits_kept, warnings })
    }

    fn apply_to(&mut self, plan: Plan, absent: Absent) -> Result<Applied, DataplaneError> {
        check_shaping(&plan)?;
        let takers = self.takers(&plan, absent)?;
        let mut warnings = Vec::new();
        let ports = self.ports(&plan, &takers, &mut warnings)?;
        let mut applied = self.put(plan, &takers, &ports).inspect_err(|_| self.leave(&takers, &ports))?;
        applied.warnings.splice(..0, warnings);
        Ok(applied)
    }

    /// A policy did not come into force: packets are held as the one before says, or not at all.
    fn shape_as_before(&mut self) {
        match &mut self.shaping {
            Some(shaping) if self.in_force.as_ref().is_some_and(|before| before.plan.holds_packets()) => {
                shaping.restore()
            }
            _ => self.shaping = None,
        }
    }

    /// Has somebody hold packets, where a policy needs it, before its program asks for them.
    fn shape(&mut self, plan: &Plan, ports: &[Port], generation: &Generation) -> Result<(), DataplaneError> {
        if !plan.holds_packets() {
            return Ok(());
        }
        let shaping = match &mut self.shaping {
            Some(shaping) => shaping,
            None => self.shaping.insert(generation.shaping()?),
        };
        shaping.start(plan, ports).inspect_err(|_| self.shape_as_before())
    }

    /// Whether packets would wait, and somebody who should hold them is not at work.
    fn lacks_workers(&self) -> bool {
        let shapes = self.in_force.as_ref().is_some_and(|in_force| in_force.plan.holds_packets());
        shapes && !self.shaping.as_ref().is_some_and(Shaping::is_alive)
    }

    /// Ends workers that nobody needs any more, when what waits there has left.
    fn keep_shaping(&mut self, plan: &Plan, ports: &[Port]) {
        match &mut self.shaping {
            Some(shaping) if plan.holds_packets() => shaping.keep(plan, ports),
            _ => self.shaping = None,
        }
    }

    /// Loads the plan in force anew, for interfaces that are there now.
    fn renew(&mut self) -> Result<Applied, DataplaneError> {
        let plan = self.in_force()?.plan.clone();
        self.apply_to(plan, Absent::Awaited)
    }

    /// The tables that were left, and whether all rows found room and the program is of this build.
    fn take_up(&self, number: u64, plan: Plan) -> Result<(InForce<Generation>, u64, bool), DataplaneError> {
        let generation = Generation::from_pins(&self.generation_folder(number), &ports_left(&plan))?;
        let constants = generation.constants()?;
        if constants.layout != wire::layout() {
            return Err(DataplaneError::OtherPolicy);
        }
        let left = generation.left(plan.links.len())?;
        let plan = fit(plan, &left).ok_or(DataplaneError::OtherPolicy)?;
        let rules = plan.rule_keys.iter().map(rule_entry_of);
        let plane = Plane::without_limiters(parts(&plan), rules, constants.seed);
        let mut plane = plane.map_err(|source| crate::LoadError { source })?;
        if !generation.is_of(&plane)? {
            return Err(DataplaneError::OtherPolicy);
        }
        // SAFETY: the generation's maps outlive the plane (see InForce), and the program changes words only.
        let found = unsafe { plane.take_over(plan.entries.iter().map(entry_of), generation.memory()) };
        let mut in_force = InForce::new(plane, plan, generation);
        let rows = in_force.slots.iter().filter(|&&slot| slot != wire::PST_NONE).count();
        let kept = (rows + in_force.plan.limits.len()) as u64;
        let is_whole = in_force.settle(&found)? && constants.build == build_of_this();
        Ok((in_force, kept, is_whole))
    }
}

/// Only packets that go from port to port can wait: there is no way back into the kernel for them.
fn check_shaping(plan: &Plan) -> Result<(), DataplaneError> {
    let is_routed = |link: usize| {
        plan.ports.iter().any(|port| port.forward.is_none() && port.links.iter().any(|&other| other as usize == link))
    };
    for profile in plan.profiles.iter().filter(|profile| holds(profile)) {
        let Some(class) = plan.classes.get(profile.class_index as usize) else { continue };
        if is_routed(class.wire.link_index as usize) {
            return Err(DataplaneError::Shapes { class: class.path.clone() });
        }
    }
    let delays = |line: u16| plan.lines.get(usize::from(line)).is_some_and(|line| line.delay_ns > 0);
    let of_links = (0..).zip(&plan.links).map(|(index, link)| (index, link.wire.line, &link.name));
    let of_classes = plan.classes.iter().map(|class| (class.wire.link_index.into(), class.wire.line, &class.path));
    if let Some((.., name)) = of_links.chain(of_classes).find(|&(link, line, _)| delays(line) && is_routed(link)) {
        return Err(DataplaneError::Delays { name: name.clone() });
    }
    Ok(())
}

/// Builds a plan's tables. One secret in a billion does not do: `load` tries others.
fn build(plan: &Plan) -> Result<Plane, DataplaneError> {
    Ok(load(plan, draw_seed()?, now_ns())?)
}

impl Dataplane for Xdp {
    fn apply(&mut self, plan: Plan) -> Result<Applied, DataplaneError> {
        self.apply_to(plan, Absent::Refused)
    }

    fn adopt(&mut self, plan: Plan) -> Result<Applied, DataplaneError> {
        let number = self.number.ok_or(DataplaneError::Idle)?;
        let (in_force, limits_kept, is_whole) = self.take_up(number, plan)?;
        self.in_force = Some(in_force);
        // States go on: they are carried over. Who held packets has died with the process before.
        let is_whole = is_whole && !self.in_force.as_ref().is_some_and(|in_force| in_force.plan.holds_packets());
        let renewed = if is_whole { Ok(Vec::new()) } else { self.renew().map(|applied| applied.warnings) };
        let warnings = renewed.unwrap_or_else(|error| vec![format!("what was left stays as it is: {error}")]);
        Ok(Applied { generation: self.number.unwrap_or(number), limits_kept, warnings })
    }

    fn repair(&mut self) -> Result<Vec<String>, DataplaneError> {
        let (mut warnings, is_new) = self.look_round(&self.in_force()?.plan);
        if is_new || self.lacks_workers() {
            match self.renew() {
                Ok(applied) => warnings.extend(applied.warnings),
                Err(error) => warnings.push(error.to_string()),
            }
        }
        Ok(warnings)
    }

    fn generation(&self) -> Option<u64> {
        self.number
    }

    fn edit(&mut self, edits: &[Edit]) -> Result<(), DataplaneError> {
        let in_force = self.in_force.as_mut().ok_or(DataplaneError::Idle)?;
        match in_force.edit(edits, now_ns())? {
            Some(larger) => self.apply_to(larger, Absent::Awaited).map(drop),
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
        self.shaping = None;
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
        let (in_force, now_ns) = (self.in_force()?, now_ns());
        let (classes, reasons) = (in_force.host.class_counters()?, in_force.host.reasons()?);
        Ok(Readings { now_ns, classes, reasons, shares: in_force.shares(now_ns) })
    }

    fn limit(&self, limit: LimitId) -> Result<LimitReading, DataplaneError> {
        self.in_force()?.reading(limit, now_ns())
    }

    fn shaping(&self) -> Option<ShapingReading> {
        self.shaping.as_ref().map(Shaping::reading)
    }

    fn tend(&mut self) -> u64 {
        self.in_force.as_mut().map_or(0, |in_force| in_force.plane.tend(now_ns()))
    }

    fn user(&mut self, class: u32, key: &wire::Key) -> Result<Option<UserReading>, DataplaneError> {
        Ok(self.in_force.as_mut().ok_or(DataplaneError::Idle)?.user(class, key, now_ns()))
    }

    fn samples(&mut self) -> Result<Vec<wire::pst_sample>, DataplaneError> {
        Ok(self.in_force()?.host.drain_samples()?)
    }
}
