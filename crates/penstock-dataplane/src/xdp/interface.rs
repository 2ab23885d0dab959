// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network interfaces: what a program asks of them, and the links that hold it there.

use super::generation::{KernelError, refused};
use super::pins::{open_pin, pin};
use crate::DataplaneError;
use libbpf_rs::{Error, libbpf_sys};
use nix::net::if_::{if_indextoname, if_nametoindex};
use penstock_algo::wire;
use penstock_policy::plan::PlanPort;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An interface of a port of the policy.
#[derive(Debug, Clone)]
pub(super) struct Interface {
    pub port: String,
    pub device: String,
    pub index: u32,
}

impl PartialEq for Interface {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}

// linux/ethtool.h: struct ethtool_value { cmd, data }.
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETH_FLAG_RXVLAN: u32 = 1 << 8;

/// How a program is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// In the driver.
    Native,
    /// Behind the kernel's own receive path, which any interface has.
    Generic,
}

fn os_error(code: i32) -> Error {
    Error::from_raw_os_error(code.abs())
}

impl Interface {
    /// The interface of a port, which must be there and up.
    pub fn of(port: &PlanPort) -> Result<Self, DataplaneError> {
        let Some(device) = port.device.clone() else {
            return Err(DataplaneError::PortWithoutDevice { port: port.name.clone() });
        };
        let index = Self::index_of(port).unwrap_or(0);
        let interface = Self { port: port.name.clone(), device, index };
        if index == 0 {
            let help = format!("`ip link` lists what there is; change `device:` of port {}", port.name);
            return Err(interface.problem("there is no such interface", &help));
        }
        if interface.flags()? & libc::IFF_UP == 0 {
            return Err(interface.problem("is down", &format!("`ip link set {} up` brings it up", interface.device)));
        }
        Ok(interface)
    }

    /// The number of a port's device, up or not.
    pub fn index_of(port: &PlanPort) -> Option<u32> {
        if_nametoindex(port.device.as_deref()?).ok()
    }

    pub fn problem(&self, problem: &str, help: &str) -> DataplaneError {
        DataplaneError::Interface {
            port: self.port.clone(),
            device: self.device.clone(),
            problem: problem.to_owned(),
            help: help.to_owned(),
        }
    }

    /// The interface with an index, if it is still there.
    pub fn at(index: u32) -> Option<Self> {
        // nix takes the null of a failure for a name of no letters.
        let device = if_indextoname(index).ok()?.into_string().ok().filter(|name| !name.is_empty())?;
        Some(Self { port: String::new(), device, index })
    }

    /// What the kernel tells of XDP programs on the interface.
    fn query(&self) -> Result<libbpf_sys::bpf_xdp_query_opts, DataplaneError> {
        let mut options = libbpf_sys::bpf_xdp_query_opts {
            sz: size_of::<libbpf_sys::bpf_xdp_query_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        let index = i32::try_from(self.index).unwrap_or(0);
        // SAFETY: the options are as long as they say.
        let failed = unsafe { libbpf_sys::bpf_xdp_query(index, 0, &raw mut options) };
        if failed != 0 {
            return Err(refused("asking an interface for its XDP program")(os_error(failed)).into());
        }
        Ok(options)
    }

    /// How the program that it has is attached.
    pub fn mode(&self) -> Result<Mode, DataplaneError> {
        let is_generic = u32::from(self.query()?.attach_mode) == libbpf_sys::XDP_ATTACHED_SKB;
        Ok(if is_generic { Mode::Generic } else { Mode::Native })
    }

    /// Refuses an interface that another program has.
    pub fn check_free(&self) -> Result<(), DataplaneError> {
        let options = self.query()?;
        if u32::from(options.attach_mode) == libbpf_sys::XDP_ATTACHED_NONE {
            return Ok(());
        }
        let problem = format!("has an XDP program already (id {})", options.prog_id);
        let help = format!(
            "`ip link set dev {} xdp off` takes it off, or stop what attached it; what this program left is taken \
             out by `penstock down`",
            self.device
        );
        Err(self.problem(&problem, &help))
    }

    /// Attaches a program, in the driver if it can.
    pub fn attach(&self, program: BorrowedFd<'_>) -> Result<(OwnedFd, Mode), DataplaneError> {
        let native = create_link(self.index, program, libbpf_sys::XDP_FLAGS_DRV_MODE);
        match native {
            Ok(link) => return Ok((link, Mode::Native)),
            Err(code) if code == libc::EBUSY || code == libc::EEXIST => {
                self.check_free()?;
                return Err(refused("attaching the program")(os_error(code)).into());
            }
            Err(_) => {}
        }
        Ok((self.attach_generic(program)?, Mode::Generic))
    }

    /// Attaches a program behind the kernel's receive path.
    pub fn attach_generic(&self, program: BorrowedFd<'_>) -> Result<OwnedFd, DataplaneError> {
        create_link(self.index, program, libbpf_sys::XDP_FLAGS_SKB_MODE).map_err(|code| {
            let problem =
                format!("takes no XDP program, neither in its driver nor in generic mode: {}", os_error(code));
            self.problem(&problem, "the kernel's log may say why; try another interface or a smaller MTU")
        })
    }

    fn request(&self) -> libc::ifreq {
        // SAFETY: all zeros is a valid request.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(self.device.bytes().take(libc::IFNAMSIZ - 1)) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        request
    }

    fn flags(&self) -> Result<i32, DataplaneError> {
        let mut request = self.request();
        call(libc::SIOCGIFFLAGS, &mut request, &self.device)?;
        // SAFETY: the kernel has written the flags.
        Ok(i32::from(unsafe { request.ifr_ifru.ifru_flags }))
    }

    /// Readies the interface for the program. One of a pair takes frames for other hosts, as a bridge's port does; all leave VLAN tags
    /// in their frames, since the program sees nothing that lies beside. Returns what was changed, as `PST_PORT_` flags.
    pub fn prepare(&self, is_paired: bool, warnings: &mut Vec<String>) -> Result<u32, DataplaneError> {
        let is_changed = self.set_stripping(false).unwrap_or_else(|_| {
            warnings.push(format!(
                "{}: takes VLAN tags out of the frames that it receives and cannot be told not to; the policy does not see them",
                self.device
            ));
            false
        });
        let mut changed = if is_changed { wire::PST_PORT_UNSTRIPPED } else { 0 };
        if is_paired && self.set_promiscuous(true).inspect_err(|_| drop(self.undo(changed)))? {
            changed |= wire::PST_PORT_PROMISCUOUS;
        }
        Ok(changed)
    }

    /// Makes the interface as it was before [`Interface::prepare`].
    pub fn undo(&self, changed: u32) -> Result<(), DataplaneError> {
        if changed & wire::PST_PORT_PROMISCUOUS != 0 {
            self.set_promiscuous(false)?;
        }
        if changed & wire::PST_PORT_UNSTRIPPED != 0 {
            self.set_stripping(true)?;
        }
        Ok(())
    }

    /// Whether received VLAN tags are taken out of their frames (`ethtool -K .. rxvlan`). Returns whether that is a change. An interface
    /// that cannot tell does not do it.
    fn set_stripping(&self, strips: bool) -> Result<bool, DataplaneError> {
        let Ok(flags) = self.ethtool(ETHTOOL_GFLAGS, 0) else { return Ok(false) };
        if (flags & ETH_FLAG_RXVLAN != 0) == strips {
            return Ok(false);
        }
        self.ethtool(ETHTOOL_SFLAGS, flags ^ ETH_FLAG_RXVLAN).map(|_| true)
    }

    /// Queues by which packets come in and go out. One, when the driver does not tell.
    pub fn queues(&self) -> u32 {
        // struct ethtool_channels: the command, most of (rx, tx, other, combined), and how many there are of each.
        let mut told = [ETHTOOL_GCHANNELS, 0, 0, 0, 0, 0, 0, 0, 0];
        match self.ask_ethtool(&mut told) {
            Ok(()) => (told[8] + told[5].min(told[6])).max(1),
            Err(_) => 1,
        }
    }

    fn ethtool(&self, command: u32, data: u32) -> Result<u32, DataplaneError> {
        let mut value = [command, data];
        self.ask_ethtool(&mut value)?;
        Ok(value[1])
    }

    /// Asks with a struct of ethtool's, which is as long as its command says.
    fn ask_ethtool(&self, value: &mut [u32]) -> Result<(), DataplaneError> {
        let mut request = self.request();
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        call(libc::SIOCETHTOOL as libc::Ioctl, &mut request, &self.device)
    }

    /// Makes the interface take frames for other hosts, as a bridge's port does, or not. Returns whether that is a change.
    fn set_promiscuous(&self, is_promiscuous: bool) -> Result<bool, DataplaneError> {
        let flags = self.flags()?;
        let wanted = if is_promiscuous { flags | libc::IFF_PROMISC } else { flags & !libc::IFF_PROMISC };
        if wanted == flags {
            return Ok(false);
        }
        let mut request = self.request();
        #[allow(clippy::cast_possible_truncation)] // the kernel's flags are a short
        {
            request.ifr_ifru.ifru_flags = wanted as libc::c_short;
        }
        call(libc::SIOCSIFFLAGS, &mut request, &self.device)?;
        Ok(true)
    }
}

fn call(request_code: libc::Ioctl, request: &mut libc::ifreq, device: &str) -> Result<(), DataplaneError> {
    let failed = |source| DataplaneError::Io { what: format!("asking the kernel about {device}"), source };
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0)).map_err(failed)?;
    // SAFETY: an open socket, and a request that lives through the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), request_code, std::ptr::from_mut(request)) } {
        0 => Ok(()),
        _ => Err(failed(std::io::Error::last_os_error())),
    }
}

/// Puts a program on an interface; returns the link or the kernel's error number.
fn create_link(index: u32, program: BorrowedFd<'_>, flags: u32) -> Result<OwnedFd, i32> {
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
        flags,
        ..Default::default()
    };
    let target = i32::try_from(index).unwrap_or(0);
    // SAFETY: an open program, and options that are as long as they say.
    let fd =
        unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), target, libbpf_sys::BPF_XDP, &raw const options) };
    if fd < 0 {
        return Err(-fd);
    }
    // SAFETY: a file that the kernel has just opened for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A program on an interface. It stays there when this process goes, as long as it is pinned.
#[derive(Debug)]
pub(super) struct Link {
    fd: OwnedFd,
    path: PathBuf,
    /// Index of the interface.
    pub ifindex: u32,
}

impl Link {
    /// Pins a new link in a folder.
    pub fn pin(fd: OwnedFd, ifindex: u32, folder: &Path) -> Result<Self, KernelError> {
        let path = folder.join(format!("link{ifindex}-{}", namespace()));
        pin(fd.as_fd(), &path)?;
        Ok(Self { fd, path, ifindex })
    }

    /// Whether a pinned link is of an interface in this network namespace: indices mean something else in another one.
    pub fn is_here(name: &str) -> bool {
        name.rsplit_once('-').is_some_and(|(_, of)| of == namespace().to_string())
    }

    /// A link that was pinned, and the program that it holds. None when its interface is gone.
    pub fn open(path: &Path) -> Result<Option<(Self, u32)>, KernelError> {
        let fd = open_pin(path)?;
        let mut info = libbpf_sys::bpf_link_info::default();
        let mut length = u32::try_from(size_of_val(&info)).unwrap_or(0);
        // SAFETY: `info` is as long as `length` says.
        let failed = unsafe {
            libbpf_sys::bpf_obj_get_info_by_fd(fd.as_raw_fd(), std::ptr::from_mut(&mut info).cast(), &raw mut length)
        };
        if failed != 0 {
            return Err(refused("asking for a link")(os_error(failed)));
        }
        // SAFETY: an XDP link tells of an interface, and we pin no other links; 0 when the interface is gone.
        let ifindex = unsafe { info.__bindgen_anon_1.xdp.ifindex };
        let link = Self { fd, path: path.to_owned(), ifindex };
        if ifindex == 0 {
            link.remove()?;
            return Ok(None);
        }
        Ok(Some((link, info.prog_id)))
    }

    /// Puts another program in the place of the one that it holds, in one step.
    pub fn update(&self, program: BorrowedFd<'_>) -> Result<(), KernelError> {
        let (link, program) = (self.fd.as_raw_fd(), program.as_raw_fd());
        // SAFETY: an open link and an open program.
        match unsafe { libbpf_sys::bpf_link_update(link, program, std::ptr::null()) } {
            0 => Ok(()),
            code => Err(refused("putting the new program in the place of the old one")(os_error(code))),
        }
    }

    /// Takes the program off its interface.
    pub fn remove(self) -> Result<(), KernelError> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(KernelError::Unreadable { folder: self.path, source: error });
            }
            _ => {}
        }
        // SAFETY: an open link. A link whose interface is gone is detached already.
        match unsafe { libbpf_sys::bpf_link_detach(self.fd.as_raw_fd()) } {
            0 => Ok(()),
            code if code == -libc::ENOLINK => Ok(()),
            code => Err(refused("taking the program off an interface")(os_error(code))),
        }
    }
}

/// The kernel's number of this thread's network namespace.
fn namespace() -> u64 {
    std::fs::metadata("/proc/thread-self/ns/net").map_or(0, |found| found.ino())
}

/// Waits until no CPU runs a program that was on an interface before.
pub(super) fn wait_for_packets_on_their_way() {
    // The kernel answers when each CPU has left all that it had begun, packets among it (membarrier(2): a global barrier is a
    // grace period of RCU, under which XDP programs run).
    // SAFETY: no memory is passed.
    let failed = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if failed != 0 {
        // A kernel that does not answer (CPUs without a tick): far longer than a packet takes.
        std::thread::sleep(Duration::from_millis(50));
    }
}
