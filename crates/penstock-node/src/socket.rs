// SPDX-License-Identifier: MIT OR Apache-2.0
//! The unix socket of a daemon: one daemon each.

use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use tokio::net::UnixListener;

/// Who may speak to the daemon: its owner and its group.
const MODE: u32 = 0o660;
/// Who may reach the socket's folder, when it is made here.
const FOLDER_MODE: u32 = 0o750;

/// Why the daemon cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// A daemon is there.
    #[error("a daemon listens on {} already; `penstock status` asks it, `--socket` chooses another place", .0.display())]
    Busy(PathBuf),
    /// Something else is there.
    #[error("{} is there and is no socket; remove it, or choose another place with `--socket`", .0.display())]
    NoSocket(PathBuf),
    /// The file system.
    #[error("cannot listen on {}: {source}", path.display())]
    Io {
        /// The socket, or its folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A socket that is removed at the end.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    /// Held as long as the daemon lives: the kernel lets go of it however the daemon ends.
    _lock: File,
}

impl Socket {
    /// Listens. A socket that a dead daemon left is replaced.
    ///
    /// # Errors
    /// A daemon listens there, or the file system refuses.
    pub fn listen(path: &Path) -> Result<(Self, UnixListener), SocketError> {
        let failed = |source| SocketError::Io { path: path.to_owned(), source };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder).map_err(failed)?;
        }
        let mut lock_path = path.as_os_str().to_owned();
        lock_path.push(".lock");
        let lock = private_file(Path::new(&lock_path)).map_err(failed)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() || UnixStream::connect(path).is_ok() {
            return Err(SocketError::Busy(path.to_owned()));
        }
        match std::fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path).map_err(failed)?,
            Ok(_) => return Err(SocketError::NoSocket(path.to_owned())),
            Err(_) => {}
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        std::fs::set_permissions(path, Permissions::from_mode(MODE)).map_err(failed)?;
        Ok((Self { path: path.to_owned(), _lock: lock }, listener))
    }
}

/// Opens a file, or makes one. Nobody else may: whoever can read a file can lock it, and the daemon would not start.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path)?;
    // It may be there from a version that left this to the umask.
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

impl Drop for Socket {
    fn drop(&mut self) {
        // It may be gone already; a new daemon copes with one that is not.
        let _ = std::fs::remove_file(&self.path);
    }
}
