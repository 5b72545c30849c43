//! Recursive scan of a directory: with few descriptors at any depth, in bounded memory, and
//! cancellable.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::fmt;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

/// Number of entries after which a scan stops. No quota allows more.
const MAX_SCANNED_ENTRIES: u64 = 1_000_000;

/// Maximum memory of a scan, in bytes: the names of directories that are still to be read, and the
/// identities of counted files with several names. It is a fixed part of the server's memory that
/// no budget covers, and up to [`super::MAX_CONCURRENT_SCANS`] scans use it. A million short names
/// fit.
const MAX_SCAN_MEMORY_BYTES: usize = 32 << 20;

/// Overhead of a name, in bytes. Like the name itself, it is counted twice, because a vector grows
/// by doubling.
const NAME_OVERHEAD_BYTES: usize = 1;

/// Memory of a parent directory of the current one, in bytes.
const LEVEL_BYTES: usize = 2 * size_of::<(InodeId, DirectoryNames)>();

/// Memory of a file with several names, in bytes. A hash table is at least seven sixteenths full,
/// and a second one exists while it grows.
const LINKED_FILE_BYTES: usize = 4 * size_of::<InodeId>();

/// Flags with which a directory is opened for reading.
const READ_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The usage of a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DirectoryUsage {
    /// Total length of all files, in bytes. A file with several names in the directory counts once.
    pub(crate) bytes: u64,
    /// Number of files, directories and links.
    pub(crate) entries: u64,
}

/// The device and inode of a file or directory.
pub(crate) type InodeId = (u64, u64);

pub(crate) fn inode_id(stat: &Stat) -> InodeId {
    (stat.st_dev, stat.st_ino)
}

/// The result of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanResult {
    /// The complete usage of the directory.
    All(DirectoryUsage),
    /// The directory exceeds its bounds. The scan stopped early.
    Full(FullReason),
}

/// The reason why a directory counts as full without a complete scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FullReason {
    /// It has more bytes and more entries than any of its mounts may have.
    Quota,
    /// It has at least this many entries, which is more than any quota can allow.
    Entries(u64),
    /// The scan would need more than this many bytes of memory.
    Memory(usize),
}

/// Formats the end of a sentence about the directory, with advice for the operator.
/// [`FullReason::Quota`] is reported to the plugin instead.
impl fmt::Display for FullReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quota => f.write_str(
                "it holds more than its mounts allow; remove files, or raise quota and entries",
            ),
            Self::Entries(most) => write!(
                f,
                "it has {most} entries or more, and no quota allows more; remove files and folders, or remove quota and \
                 entries from its mounts"
            ),
            Self::Memory(most) => write!(
                f,
                "counting it takes more than {} MiB of memory, because it has too many folders in one folder, or too \
                 many files with several hard links; remove some, or remove quota and entries from its mounts",
                most >> 20
            ),
        }
    }
}

/// Measures the usage of a directory. Links are not followed. A directory that cannot be read
/// counts as empty. The scan stops once there are more bytes and more entries than in `bounds`.
/// Blocks.
///
/// # Errors
///
/// Returns [`Errno::INTR`] after `stop` was set, and [`Errno::AGAIN`] if a directory was moved in
/// the meantime. Any other error means that the directory cannot be read.
pub(crate) fn scan_directory(
    top: &File,
    bounds: DirectoryUsage,
    stop: &AtomicBool,
) -> Result<ScanResult, Errno> {
    match DirectoryScan::new(bounds, MAX_SCAN_MEMORY_BYTES, stop).run(top) {
        Ok(usage) => Ok(ScanResult::All(usage)),
        Err(ScanAbort::Full(full)) => Ok(ScanResult::Full(full)),
        Err(ScanAbort::Failed(error)) => Err(error),
    }
}

/// The reason why a scan stopped early.
#[derive(Debug, PartialEq, Eq)]
enum ScanAbort {
    Full(FullReason),
    Failed(Errno),
}

impl From<Errno> for ScanAbort {
    fn from(error: Errno) -> Self {
        Self::Failed(error)
    }
}

/// A list of directory names, each with its NUL, in one buffer. A million names take a few
/// megabytes.
#[derive(Default)]
struct DirectoryNames(Vec<u8>);

impl DirectoryNames {
    fn push(&mut self, name: &CStr) {
        self.0.extend_from_slice(name.to_bytes_with_nul());
    }

    /// Removes and returns the last name.
    fn pop(&mut self) -> Option<CString> {
        // Removes its NUL.
        self.0.pop()?;
        let start = self
            .0
            .iter()
            .rposition(|byte| *byte == 0)
            .map_or(0, |end| end + 1);
        let name = self.0.split_off(start);
        CString::new(name).ok()
    }
}

/// Returns the memory of a stored name, in bytes.
fn name_size(name: &CStr) -> usize {
    2 * (name.to_bytes().len() + NAME_OVERHEAD_BYTES)
}

struct DirectoryScan<'a> {
    usage: DirectoryUsage,
    bounds: DirectoryUsage,
    /// The counted files with several names.
    linked: HashSet<InodeId>,
    /// Remaining memory, in bytes.
    remaining_memory: usize,
    max_memory: usize,
    stop: &'a AtomicBool,
}

impl<'a> DirectoryScan<'a> {
    fn new(bounds: DirectoryUsage, max_memory: usize, stop: &'a AtomicBool) -> Self {
        Self {
            usage: DirectoryUsage::default(),
            bounds,
            linked: HashSet::new(),
            remaining_memory: max_memory,
            max_memory,
            stop,
        }
    }

    fn run(mut self, top: &File) -> Result<DirectoryUsage, ScanAbort> {
        let mut current = openat(top, ".", READ_FLAGS, Mode::empty())?;
        let mut folders = self.read_directory(&current)?;
        // The parent directories of the current one, each with its subdirectories that are still to
        // be read. None of them stays open, because a plugin can create directories at any depth.
        let mut parents: Vec<(InodeId, DirectoryNames)> = Vec::new();
        loop {
            if let Some(name) = folders.pop() {
                self.remaining_memory += name_size(&name);
                let next = match openat(&current, &name, READ_FLAGS, Mode::empty()) {
                    Ok(next) => next,
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => continue,
                    Err(error) => return Err(error.into()),
                };
                self.take_memory(LEVEL_BYTES)?;
                let names = self.read_directory(&next)?;
                parents.push((
                    inode_id(&fstat(&current)?),
                    std::mem::replace(&mut folders, names),
                ));
                current = next;
            } else if let Some((expected, rest)) = parents.pop() {
                self.remaining_memory += LEVEL_BYTES;
                current = openat(&current, "..", READ_FLAGS, Mode::empty())?;
                if inode_id(&fstat(&current)?) != expected {
                    return Err(Errno::AGAIN.into());
                }
                folders = rest;
            } else {
                return Ok(self.usage);
            }
        }
    }

    /// Counts the entries of a directory, and returns its subdirectories.
    fn read_directory(&mut self, folder: &OwnedFd) -> Result<DirectoryNames, ScanAbort> {
        let mut folders = DirectoryNames::default();
        for entry in Dir::read_from(folder)? {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Errno::INTR.into());
            }
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if self.usage.entries >= MAX_SCANNED_ENTRIES {
                return Err(ScanAbort::Full(FullReason::Entries(MAX_SCANNED_ENTRIES)));
            }
            self.usage.entries += 1;
            let stat = match entry.file_type() {
                FileType::Directory => None,
                _ => match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(found) => Some(found),
                    // Deleted in the meantime.
                    Err(Errno::NOENT) => {
                        self.usage.entries -= 1;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                },
            };
            match stat.map_or(FileType::Directory, |found| {
                FileType::from_raw_mode(found.st_mode)
            }) {
                FileType::Directory => {
                    self.take_memory(name_size(name))?;
                    folders.push(name);
                }
                FileType::RegularFile => {
                    if let Some(stat) = stat {
                        self.add(&stat)?;
                    }
                }
                _ => {}
            }
            if self.usage.bytes > self.bounds.bytes && self.usage.entries > self.bounds.entries {
                return Err(ScanAbort::Full(FullReason::Quota));
            }
        }
        Ok(folders)
    }

    fn add(&mut self, stat: &Stat) -> Result<(), ScanAbort> {
        if stat.st_nlink > 1 {
            if self.linked.contains(&inode_id(stat)) {
                return Ok(());
            }
            self.take_memory(LINKED_FILE_BYTES)?;
            self.linked.insert(inode_id(stat));
        }
        self.usage.bytes = self.usage.bytes.saturating_add(file_length(stat));
        Ok(())
    }

    /// Deducts `bytes` from the remaining memory.
    fn take_memory(&mut self, bytes: usize) -> Result<(), ScanAbort> {
        self.remaining_memory = self
            .remaining_memory
            .checked_sub(bytes)
            .ok_or(ScanAbort::Full(FullReason::Memory(self.max_memory)))?;
        Ok(())
    }
}

/// Returns the length of a file.
pub(crate) fn file_length(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    /// Bounds of a directory without a quota.
    const ANY: DirectoryUsage = DirectoryUsage {
        bytes: u64::MAX,
        entries: u64::MAX,
    };

    fn walk(path: &Path, enough: DirectoryUsage, most: usize) -> Result<DirectoryUsage, ScanAbort> {
        DirectoryScan::new(enough, most, &AtomicBool::new(false)).run(&File::open(path).unwrap())
    }

    fn holds(path: &Path) -> (u64, u64) {
        let DirectoryUsage { bytes, entries } = walk(path, ANY, MAX_SCAN_MEMORY_BYTES).unwrap();
        (bytes, entries)
    }

    #[test]
    fn a_file_counts_by_its_length_and_once_under_all_its_names() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        assert_eq!(holds(root.path()), (0, 0));
        fs::create_dir_all(path("a/b")).unwrap();
        fs::write(path("a/b/file"), "12345").unwrap();
        fs::hard_link(path("a/b/file"), path("again")).unwrap();
        // A link counts as an entry. Its target is not counted.
        symlink("/", path("link")).unwrap();
        fs::File::create(path("sparse"))
            .unwrap()
            .set_len(1 << 30)
            .unwrap();
        assert_eq!(holds(root.path()), (5 + (1 << 30), 6));
    }

    #[test]
    fn a_scan_stops_when_requested() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        let counted = scan_directory(
            &File::open(root.path()).unwrap(),
            ANY,
            &AtomicBool::new(true),
        );
        assert_eq!(counted, Err(Errno::INTR));
    }

    #[test]
    fn a_scan_ends_when_there_are_too_many_bytes_and_too_many_entries() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(root.path().join(name), "12345").unwrap();
        }
        let walk = |bytes, entries| {
            walk(
                root.path(),
                DirectoryUsage { bytes, entries },
                MAX_SCAN_MEMORY_BYTES,
            )
        };
        assert_eq!(walk(9, 1), Err(ScanAbort::Full(FullReason::Quota)));
        // If only one bound is exceeded, the scan continues, because the other one still restricts
        // the plugin.
        let all = DirectoryUsage {
            bytes: 15,
            entries: 3,
        };
        assert_eq!((walk(0, 3), walk(15, 0)), (Ok(all), Ok(all)));
    }

    #[test]
    fn memory_for_folder_names_is_bounded() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..10 {
            fs::create_dir(root.path().join(number.to_string())).unwrap();
        }
        // The name of a directory is removed from the list before the directory is read.
        let needed = 10 * name_size(c"0") - name_size(c"0") + LEVEL_BYTES;
        assert_eq!(
            walk(root.path(), ANY, needed),
            Ok(DirectoryUsage {
                bytes: 0,
                entries: 10
            })
        );
        assert_eq!(
            walk(root.path(), ANY, needed - 1),
            Err(ScanAbort::Full(FullReason::Memory(needed - 1)))
        );
        // A chain of directories needs one name at a time, and a level for each.
        let deep = tempfile::tempdir().unwrap();
        fs::create_dir_all(deep.path().join("a/b/c")).unwrap();
        assert!(
            walk(deep.path(), ANY, 3 * LEVEL_BYTES).is_ok()
                && walk(deep.path(), ANY, 3 * LEVEL_BYTES - 1).is_err()
        );
    }

    #[test]
    fn memory_for_linked_files_is_bounded() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            fs::write(root.path().join(name), "12345").unwrap();
            fs::hard_link(root.path().join(name), root.path().join(format!("{name}2"))).unwrap();
        }
        assert_eq!(
            walk(root.path(), ANY, 2 * LINKED_FILE_BYTES),
            Ok(DirectoryUsage {
                bytes: 10,
                entries: 4
            })
        );
        assert_eq!(
            walk(root.path(), ANY, LINKED_FILE_BYTES),
            Err(ScanAbort::Full(FullReason::Memory(LINKED_FILE_BYTES)))
        );
    }

    #[test]
    fn names_are_popped_as_they_were_pushed() {
        let mut names = DirectoryNames::default();
        names.push(c"one");
        names.push(c"t");
        assert_eq!(
            (names.pop().as_deref(), names.pop().as_deref(), names.pop()),
            (Some(c"t"), Some(c"one"), None)
        );
    }
}
