//! What tells a file from the one that was there before.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::Stat;

/// Differs whenever a file has changed. Cheap to take, so that unchanged files need not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The size in bytes.
    pub(crate) length: u64,
    modified: (i64, i64),
    /// Device, inode and change time, so that a replaced file differs even if its length and modification time were
    /// made equal.
    identity: (u64, u64, i64, i64),
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let identity = (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec());
        Self { length: metadata.len(), modified: (metadata.mtime(), metadata.mtime_nsec()), identity }
    }

    /// The same of what the system says of an open folder's entry.
    pub(crate) fn of_entry(stat: &Stat) -> Self {
        let nanoseconds = |part| i64::try_from(part).unwrap_or_default();
        Self {
            length: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: (stat.st_mtime, nanoseconds(stat.st_mtime_nsec)),
            identity: (stat.st_dev, stat.st_ino, stat.st_ctime, nanoseconds(stat.st_ctime_nsec)),
        }
    }
}
