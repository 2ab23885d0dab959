// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file that has its name only once it is whole.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Stdout, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file under a temporary name beside its target, until [`OutputFile::finish`]. Dropped before, it leaves nothing.
#[derive(Debug)]
pub struct OutputFile(Target);

/// Where the bytes go.
#[derive(Debug)]
enum Target {
    /// A file of another name until it is whole.
    Temporary(NamedTempFile, PathBuf),
    /// A device or a pipe: it cannot be replaced.
    Direct(File),
    Standard(Stdout),
}

impl OutputFile {
    /// Opens a file for `path`; `-` is standard output. Devices and pipes are written as they are.
    ///
    /// # Errors
    /// When it cannot be created there.
    pub fn create(path: &Path) -> io::Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self(Target::Standard(io::stdout())));
        }
        // Through a link to the file itself, so that the link stays one.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) if !metadata.is_file() => {
                return File::options().write(true).open(&path).map(|file| Self(Target::Direct(file)));
            }
            _ => {}
        }
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".penstock-").suffix(".tmp");
        #[cfg(unix)]
        {
            // As any new file: what the umask leaves of this.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        Ok(Self(Target::Temporary(builder.tempfile_in(directory)?, path)))
    }

    /// Gives the file its name. What is not whole is kept too, as NAME.partial, and NAME stays what it was.
    ///
    /// # Errors
    /// When the rest cannot be written, or the name cannot be given.
    pub fn finish(mut self, is_whole: bool) -> io::Result<()> {
        self.flush()?;
        match self.0 {
            Target::Temporary(file, path) => {
                let path = if is_whole { path } else { partial(&path) };
                file.persist(path).map(drop).map_err(|failed| failed.error)
            }
            Target::Direct(_) | Target::Standard(_) => Ok(()),
        }
    }
}

/// `capture.pcap.partial`
fn partial(path: &Path) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Target::Temporary(file, _) => file.write(bytes),
            Target::Direct(file) => file.write(bytes),
            Target::Standard(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Target::Temporary(file, _) => file.flush(),
            Target::Direct(file) => file.flush(),
            Target::Standard(stdout) => stdout.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_to_what_is_whole_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        let write = |text: &str| {
            let mut file = OutputFile::create(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file
        };
        drop(write("lost"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        write("whole").finish(true).unwrap();
        write("part").finish(false).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(std::fs::read_to_string(folder.path().join("x.csv.partial")).unwrap(), "part");
    }
}
