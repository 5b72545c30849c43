//! File stamps, which detect that a file changed.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// A stamp that differs whenever the file has changed. It is cheap to obtain, so that unchanged
/// files need not be read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct FileStamp {
    /// The size in bytes.
    pub(crate) length: u64,
    modified: (i64, i64),
    /// Device, inode and change time, so that a replaced file differs even if its length and
    /// modification time were made equal.
    identity: (u64, u64, i64, i64),
}

impl FileStamp {
    pub(crate) fn from_metadata(metadata: &Metadata) -> Self {
        let identity = (
            metadata.dev(),
            metadata.ino(),
            metadata.ctime(),
            metadata.ctime_nsec(),
        );
        Self {
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            identity,
        }
    }

    /// Returns whether the file was last changed at least `age` before `now`.
    pub(crate) fn is_older_than(&self, now: SystemTime, age: Duration) -> bool {
        let Some(limit) = now
            .checked_sub(age)
            .and_then(|until| until.duration_since(UNIX_EPOCH).ok())
        else {
            return false;
        };
        let until = (
            i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            i64::from(limit.subsec_nanos()),
        );
        let (_, _, seconds, nanoseconds) = self.identity;
        self.modified < until && (seconds, nanoseconds) < until
    }

    /// Returns for how long the content has been unchanged at `now`; `None` if it was changed later
    /// than `now`.
    pub(crate) fn unchanged_for(&self, now: SystemTime) -> Option<Duration> {
        let (seconds, nanoseconds) = self.modified;
        let since = Duration::new(
            u64::try_from(seconds).unwrap_or_default(),
            u32::try_from(nanoseconds).ok()?,
        );
        now.duration_since(UNIX_EPOCH.checked_add(since)?).ok()
    }

    /// Creates a stamp from the result of a `stat` call.
    pub(crate) fn from_stat(stat: &Stat) -> Self {
        let nanoseconds = |part| i64::try_from(part).unwrap_or_default();
        Self {
            length: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: (stat.st_mtime, nanoseconds(stat.st_mtime_nsec)),
            identity: (
                stat.st_dev,
                stat.st_ino,
                stat.st_ctime,
                nanoseconds(stat.st_ctime_nsec),
            ),
        }
    }
}
