// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names in a BPF file system: what is pinned there outlives the process that made it.

use super::generation::{KernelError, PROGRAM, refused};
use crate::DataplaneError;
use libbpf_rs::{MapCore, MapHandle, Object, libbpf_sys};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{FsType, statfs};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where Linux has its BPF file system.
const BPF_FS: &str = "/sys/fs/bpf";

/// Pins an object of the kernel.
pub(super) fn pin(object: BorrowedFd<'_>, path: &Path) -> Result<(), KernelError> {
    let name = c_path(path)?;
    // SAFETY: a path that ends in zero, and an open file.
    let failed = unsafe { libbpf_sys::bpf_obj_pin(object.as_raw_fd(), name.as_ptr()) };
    if failed != 0 {
        return Err(refused("pinning")(libbpf_rs::Error::from_raw_os_error(-failed)));
    }
    Ok(())
}

/// Opens what is pinned.
pub(super) fn open_pin(path: &Path) -> Result<OwnedFd, KernelError> {
    let name = c_path(path)?;
    // SAFETY: a path that ends in zero.
    let fd = unsafe { libbpf_sys::bpf_obj_get(name.as_ptr()) };
    if fd < 0 {
        return Err(refused("opening a pin")(libbpf_rs::Error::from_raw_os_error(-fd)));
    }
    // SAFETY: a file that the kernel has just opened for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes the folder, on a BPF file system.
pub(super) fn prepare(folder: &Path) -> Result<(), DataplaneError> {
    let failed = |what: String| move |source| DataplaneError::Io { what, source };
    let is_bpf = |path: &Path| statfs(path).is_ok_and(|found| found.filesystem_type() == FsType(libc::BPF_FS_MAGIC));
    let there = folder.ancestors().find(|path| path.is_dir()).unwrap_or(folder);
    if !is_bpf(there) {
        if !folder.starts_with(BPF_FS) {
            let help = format!("{} is not on a BPF file system; `mount -t bpf bpf DIR` makes one", folder.display());
            return Err(failed(help)(std::io::ErrorKind::Unsupported.into()));
        }
        let what = format!("mounting a BPF file system at {BPF_FS}");
        let mounted = mount(Some("bpf"), BPF_FS, Some("bpf"), MsFlags::empty(), Some("mode=0700"));
        mounted.map_err(|errno| failed(what)(errno.into()))?;
    }
    std::fs::create_dir_all(folder).map_err(failed(format!("making {}", folder.display())))
}

/// Keeps other processes out of the folder, for as long as what is returned lives.
pub(super) fn lock(folder: &Path) -> Result<Flock<File>, DataplaneError> {
    let failed = |source| DataplaneError::Io { what: format!("opening {}", folder.display()), source };
    let file = File::open(folder).map_err(failed)?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
        Errno::EWOULDBLOCK => DataplaneError::Locked { folder: folder.to_owned() },
        errno => failed(errno.into()),
    })
}

/// The program of a generation.
pub(super) fn open_program(folder: &Path) -> Result<OwnedFd, KernelError> {
    open_pin(&folder.join(PROGRAM))
}

/// The kernel's number of a generation's program. None when the generation is not whole.
pub(super) fn program_id(folder: &Path) -> Option<u32> {
    let program = open_program(folder).ok()?;
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = u32::try_from(size_of_val(&info)).unwrap_or(0);
    // SAFETY: `info` is as long as `length` says.
    let failed = unsafe {
        libbpf_sys::bpf_obj_get_info_by_fd(program.as_raw_fd(), std::ptr::from_mut(&mut info).cast(), &raw mut length)
    };
    (failed == 0).then_some(info.id)
}

fn c_path(path: &Path) -> Result<CString, KernelError> {
    let bytes = path.as_os_str().as_bytes();
    CString::new(bytes).map_err(|_| refused("pinning")(libbpf_rs::Error::from_raw_os_error(libc::EINVAL)))
}

/// The maps of a program, by name.
#[derive(Debug)]
pub(super) struct Maps(Vec<(String, MapHandle)>);

/// A map's name as a file's: a BPF file system refuses dots.
fn file_name(map: &str) -> String {
    map.replace('.', "_")
}

impl Maps {
    /// All maps of a program that was loaded.
    pub fn of(object: &Object) -> Result<Self, KernelError> {
        let handle = |map: libbpf_rs::Map<'_>| {
            let name = file_name(&map.name().to_string_lossy());
            Ok((name, MapHandle::try_from(&map).map_err(refused("keeping a map open"))?))
        };
        Ok(Self(object.maps().map(handle).collect::<Result<_, _>>()?))
    }

    /// All maps that are pinned in a folder.
    pub fn from_pins(folder: &Path) -> Result<Self, KernelError> {
        let failed = |source| KernelError::Unreadable { folder: folder.to_owned(), source };
        let mut maps = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // What is no map is the program.
            if let Ok(map) = MapHandle::from_pinned_path(entry.path()) {
                maps.push((entry.file_name().to_string_lossy().into_owned(), map));
            }
        }
        Ok(Self(maps))
    }

    pub fn get(&self, name: &'static str) -> Result<&MapHandle, KernelError> {
        let file = file_name(name);
        self.0.iter().find(|(other, _)| *other == file).map(|(_, map)| map).ok_or(KernelError::NoMap(name))
    }

    pub fn pin(&mut self, folder: &Path) -> Result<(), KernelError> {
        for (name, map) in &mut self.0 {
            map.pin(folder.join(name)).map_err(refused("pinning"))?;
        }
        Ok(())
    }
}
