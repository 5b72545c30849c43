//! Counts what is in a folder, at all depths: with few descriptors however deep it is, in bounded memory, and until it is
//! told to stop.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::fmt;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

/// Entries after which counting ends: no quota allows more.
const MOST: u64 = 1_000_000;

/// Bytes that one count remembers at most: names of folders that are still to be read, and which files with several names
/// were counted. It is a fixed part of the server's memory, and nobody's budget: so many for each of
/// [`super::COUNTING`]. A million short names fit.
const REMEMBERED: usize = 32 << 20;

/// What a name takes beside its bytes. As bytes that are kept in a vector do, it counts twice: the vector grows by doubling.
const NAME: usize = 1;

/// What a folder above the one that is read takes.
const LEVEL: usize = 2 * size_of::<(Identity, Names)>();

/// What a file with several names takes: a table is at least seven sixteenths full, and has another one beside it while it
/// grows.
const LINKED: usize = 4 * size_of::<Identity>();

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

/// What counting found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// All that is in the folder.
    All(Holds),
    /// Only that it holds more than it may. It was not counted to its end.
    Full(Full),
}

/// Why a folder counts as full without being counted to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// It holds more bytes and more entries than any of its mounts may.
    Quota,
    /// It has at least this many entries, which is more than a quota can allow.
    Entries(u64),
    /// Counting it would have to remember more than this many bytes.
    Memory(usize),
}

/// Says what the operator can do; the end of a sentence about the folder. Of [`Full::Quota`], the plugin is told.
impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quota => f.write_str("it holds more than its mounts may; remove files, or raise quota and entries"),
            Self::Entries(most) => write!(
                f,
                "it has {most} entries or more, and no quota allows more; remove files and folders, or remove quota and \
                 entries from its mounts"
            ),
            Self::Memory(most) => write!(
                f,
                "counting it takes more than {} MiB of memory, because it has too many folders beside each other, or too \
                 many files with several hard links; remove some, or remove quota and entries from its mounts",
                most >> 20
            ),
        }
    }
}

/// Counts what is in the folder. Links are not followed. A folder that cannot be read counts as empty. Once there are more
/// bytes and more entries than in `enough`, it does not matter how many. Blocks.
///
/// # Errors
///
/// [`Errno::INTR`] after `stop` was set, [`Errno::AGAIN`] if a folder was moved meanwhile; otherwise the folder cannot
/// be read.
pub(crate) fn count(top: &File, enough: Holds, stop: &AtomicBool) -> Result<Found, Errno> {
    match Walk::new(enough, REMEMBERED, stop).through(top) {
        Ok(holds) => Ok(Found::All(holds)),
        Err(Ended::Full(full)) => Ok(Found::Full(full)),
        Err(Ended::Failed(error)) => Err(error),
    }
}

/// Why counting ended before its end.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Full(Full),
    Failed(Errno),
}

impl From<Errno> for Ended {
    fn from(error: Errno) -> Self {
        Self::Failed(error)
    }
}

/// Names of folders, each with its NUL, one after the other: a million are a few megabytes.
#[derive(Default)]
struct Names(Vec<u8>);

impl Names {
    fn push(&mut self, name: &CStr) {
        self.0.extend_from_slice(name.to_bytes_with_nul());
    }

    /// The last one.
    fn pop(&mut self) -> Option<CString> {
        // Without its NUL.
        self.0.pop()?;
        let start = self.0.iter().rposition(|byte| *byte == 0).map_or(0, |end| end + 1);
        let name = self.0.split_off(start);
        CString::new(name).ok()
    }
}

/// What remembering a name takes.
fn name_size(name: &CStr) -> usize {
    2 * (name.to_bytes().len() + NAME)
}

struct Walk<'a> {
    holds: Holds,
    enough: Holds,
    /// Files with several names that were counted.
    linked: HashSet<Identity>,
    /// Bytes that may still be remembered.
    room: usize,
    most: usize,
    stop: &'a AtomicBool,
}

impl<'a> Walk<'a> {
    fn new(enough: Holds, most: usize, stop: &'a AtomicBool) -> Self {
        Self { holds: Holds::default(), enough, linked: HashSet::new(), room: most, most, stop }
    }

    fn through(mut self, top: &File) -> Result<Holds, Ended> {
        let mut here = openat(top, ".", READ, Mode::empty())?;
        let mut folders = self.read(&here)?;
        // The folders above the one that is read, and those in each that are still to be read. None stays open, because a
        // plugin can make folders as deep as it likes.
        let mut above: Vec<(Identity, Names)> = Vec::new();
        loop {
            if let Some(name) = folders.pop() {
                self.room += name_size(&name);
                let next = match openat(&here, &name, READ, Mode::empty()) {
                    Ok(next) => next,
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => continue,
                    Err(error) => return Err(error.into()),
                };
                self.remember(LEVEL)?;
                let found = self.read(&next)?;
                above.push((identity(&fstat(&here)?), std::mem::replace(&mut folders, found)));
                here = next;
            } else if let Some((expected, rest)) = above.pop() {
                self.room += LEVEL;
                here = openat(&here, "..", READ, Mode::empty())?;
                if identity(&fstat(&here)?) != expected {
                    return Err(Errno::AGAIN.into());
                }
                folders = rest;
            } else {
                return Ok(self.holds);
            }
        }
    }

    /// Counts the entries of a folder, and returns the folders among them.
    fn read(&mut self, folder: &OwnedFd) -> Result<Names, Ended> {
        let mut folders = Names::default();
        for entry in Dir::read_from(folder)? {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Errno::INTR.into());
            }
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if self.holds.entries >= MOST {
                return Err(Ended::Full(Full::Entries(MOST)));
            }
            self.holds.entries += 1;
            let found = match entry.file_type() {
                FileType::Directory => None,
                _ => match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(found) => Some(found),
                    // Deleted meanwhile.
                    Err(Errno::NOENT) => {
                        self.holds.entries -= 1;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                },
            };
            match found.map_or(FileType::Directory, |found| FileType::from_raw_mode(found.st_mode)) {
                FileType::Directory => {
                    self.remember(name_size(name))?;
                    folders.push(name);
                }
                FileType::RegularFile => {
                    if let Some(found) = found {
                        self.add(&found)?;
                    }
                }
                _ => {}
            }
            if self.holds.bytes > self.enough.bytes && self.holds.entries > self.enough.entries {
                return Err(Ended::Full(Full::Quota));
            }
        }
        Ok(folders)
    }

    fn add(&mut self, found: &Stat) -> Result<(), Ended> {
        if found.st_nlink > 1 {
            if self.linked.contains(&identity(found)) {
                return Ok(());
            }
            self.remember(LINKED)?;
            self.linked.insert(identity(found));
        }
        self.holds.bytes = self.holds.bytes.saturating_add(length(found));
        Ok(())
    }

    /// Takes so many bytes of what may be remembered.
    fn remember(&mut self, bytes: usize) -> Result<(), Ended> {
        self.room = self.room.checked_sub(bytes).ok_or(Ended::Full(Full::Memory(self.most)))?;
        Ok(())
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

    /// No quota.
    const ANY: Holds = Holds { bytes: u64::MAX, entries: u64::MAX };

    fn walk(path: &Path, enough: Holds, most: usize) -> Result<Holds, Ended> {
        Walk::new(enough, most, &AtomicBool::new(false)).through(&File::open(path).unwrap())
    }

    fn holds(path: &Path) -> (u64, u64) {
        let Holds { bytes, entries } = walk(path, ANY, REMEMBERED).unwrap();
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
        let counted = count(&File::open(root.path()).unwrap(), ANY, &AtomicBool::new(true));
        assert_eq!(counted, Err(Errno::INTR));
    }

    #[test]
    fn counting_ends_when_there_are_too_many_bytes_and_too_many_entries() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(root.path().join(name), "12345").unwrap();
        }
        let walk = |bytes, entries| walk(root.path(), Holds { bytes, entries }, REMEMBERED);
        assert_eq!(walk(9, 1), Err(Ended::Full(Full::Quota)));
        // What exceeds only one of them is counted: the other still bounds what a plugin can do.
        let all = Holds { bytes: 15, entries: 3 };
        assert_eq!((walk(0, 3), walk(15, 0)), (Ok(all), Ok(all)));
    }

    #[test]
    fn what_is_remembered_of_folders_is_bounded() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..10 {
            fs::create_dir(root.path().join(number.to_string())).unwrap();
        }
        // One folder at a time is read, and its name is forgotten by then.
        let needed = 10 * name_size(c"0") - name_size(c"0") + LEVEL;
        assert_eq!(walk(root.path(), ANY, needed), Ok(Holds { bytes: 0, entries: 10 }));
        assert_eq!(walk(root.path(), ANY, needed - 1), Err(Ended::Full(Full::Memory(needed - 1))));
        // A chain of folders has one name at a time, and takes a level for each.
        let deep = tempfile::tempdir().unwrap();
        fs::create_dir_all(deep.path().join("a/b/c")).unwrap();
        assert!(walk(deep.path(), ANY, 3 * LEVEL).is_ok() && walk(deep.path(), ANY, 3 * LEVEL - 1).is_err());
    }

    #[test]
    fn what_is_remembered_of_links_is_bounded() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            fs::write(root.path().join(name), "12345").unwrap();
            fs::hard_link(root.path().join(name), root.path().join(format!("{name}2"))).unwrap();
        }
        assert_eq!(walk(root.path(), ANY, 2 * LINKED), Ok(Holds { bytes: 10, entries: 4 }));
        assert_eq!(walk(root.path(), ANY, LINKED), Err(Ended::Full(Full::Memory(LINKED))));
    }

    #[test]
    fn names_come_back_whole() {
        let mut names = Names::default();
        names.push(c"one");
        names.push(c"t");
        assert_eq!((names.pop().as_deref(), names.pop().as_deref(), names.pop()), (Some(c"t"), Some(c"one"), None));
    }
}
