//! Counts what is in a folder, at all depths: with few descriptors however deep it is, and until it is told to stop.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

/// Entries after which counting ends: no quota allows more.
const MOST: u64 = 1_000_000;

/// How a folder is opened for reading.
const READ: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What a folder holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holds {
    /// Lengths of all files together, in bytes. A file with several names in the folder counts once.
    pub(crate) bytes: u64,
    /// Files, folders and links.
    pub(crate) entries: u64,
}

/// The device and inode of a file or folder.
pub(crate) type Identity = (u64, u64);

pub(crate) fn identity(found: &Stat) -> Identity {
    (found.st_dev, found.st_ino)
}

/// Counts what is in the folder. Links are not followed. A folder that cannot be read counts as empty. Blocks.
///
/// # Errors
///
/// [`Errno::INTR`] after `stop` was set, [`Errno::AGAIN`] if a folder was moved meanwhile; otherwise the folder cannot
/// be read.
pub(crate) fn count(top: &File, stop: &AtomicBool) -> Result<Holds, Errno> {
    let mut walk = Walk { holds: Holds::default(), linked: HashSet::new(), stop };
    let mut here = openat(top, ".", READ, Mode::empty())?;
    let mut folders = walk.read(&here)?;
    // The folders above the one that is read, and those in each that are still to be read. None stays open, because a
    // plugin can make folders as deep as it likes.
    let mut above: Vec<(Identity, Vec<CString>)> = Vec::new();
    loop {
        if let Some(name) = folders.pop() {
            let next = match openat(&here, &name, READ, Mode::empty()) {
                Ok(next) => next,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => continue,
                Err(error) => return Err(error),
            };
            let found = walk.read(&next)?;
            above.push((identity(&fstat(&here)?), std::mem::replace(&mut folders, found)));
            here = next;
        } else if let Some((expected, rest)) = above.pop() {
            here = openat(&here, "..", READ, Mode::empty())?;
            if identity(&fstat(&here)?) != expected {
                return Err(Errno::AGAIN);
            }
            folders = rest;
        } else {
            return Ok(walk.holds);
        }
        if walk.holds.entries >= MOST {
            return Ok(walk.holds);
        }
    }
}

struct Walk<'a> {
    holds: Holds,
    /// Files with several names that were counted.
    linked: HashSet<Identity>,
    stop: &'a AtomicBool,
}

impl Walk<'_> {
    /// Counts the entries of a folder, and returns the folders among them.
    fn read(&mut self, folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
        let mut folders = Vec::new();
        for entry in Dir::read_from(folder)? {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Errno::INTR);
            }
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if self.holds.entries >= MOST {
                break;
            }
            self.holds.entries += 1;
            if entry.file_type() == FileType::Directory {
                folders.push(name.to_owned());
                continue;
            }
            match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => match FileType::from_raw_mode(found.st_mode) {
                    FileType::Directory => folders.push(name.to_owned()),
                    FileType::RegularFile => self.add(&found),
                    _ => {}
                },
                // Deleted meanwhile.
                Err(Errno::NOENT) => self.holds.entries -= 1,
                Err(error) => return Err(error),
            }
        }
        Ok(folders)
    }

    fn add(&mut self, found: &Stat) {
        if found.st_nlink <= 1 || self.linked.insert(identity(found)) {
            self.holds.bytes = self.holds.bytes.saturating_add(length(found));
        }
    }
}

/// The length of a file.
pub(crate) fn length(found: &Stat) -> u64 {
    u64::try_from(found.st_size).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn holds(path: &Path) -> (u64, u64) {
        let Holds { bytes, entries } = count(&File::open(path).unwrap(), &AtomicBool::new(false)).unwrap();
        (bytes, entries)
    }

    #[test]
    fn files_count_by_length_and_once_whatever_their_names() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        assert_eq!(holds(root.path()), (0, 0));
        fs::create_dir_all(path("a/b")).unwrap();
        fs::write(path("a/b/file"), "12345").unwrap();
        fs::hard_link(path("a/b/file"), path("again")).unwrap();
        // A link counts as an entry, and what it leads to does not.
        symlink("/", path("link")).unwrap();
        fs::File::create(path("sparse")).unwrap().set_len(1 << 30).unwrap();
        assert_eq!(holds(root.path()), (5 + (1 << 30), 6));
    }

    #[test]
    fn counting_stops_when_it_is_told_to() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        let counted = count(&File::open(root.path()).unwrap(), &AtomicBool::new(true));
        assert_eq!(counted, Err(Errno::INTR));
    }
}
