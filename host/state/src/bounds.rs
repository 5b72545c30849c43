//! Bounds of what can be kept, whatever a quota allows.

use std::time::Duration;

/// Longest key, in bytes.
pub const KEY: usize = 1 << 10;

/// Longest name of a bucket, in bytes.
pub(crate) const BUCKET: usize = 64;

/// Largest value, in bytes.
pub const VALUE: usize = 1 << 20;

/// Largest sum of the keys and values of one operation, in bytes.
pub const BATCH: usize = 4 << 20;

/// Most keys of one operation.
pub const BATCH_KEYS: usize = 1_000;

/// Most keys of one page of a list.
pub const PAGE_KEYS: usize = 1_000;

/// Bytes of keys after which a page of a list ends.
pub const PAGE_BYTES: usize = 64 << 10;

/// Bytes of changes that wait for the writer, of all calls together. Others wait for these.
pub(crate) const WAITING: usize = 16 << 20;

/// Most changes in one commit.
pub(crate) const GROUP: usize = 256;

/// Bytes of changes after which a commit takes no more.
pub(crate) const GROUP_BYTES: usize = 8 << 20;

/// Reads at once, of all calls together.
pub(crate) const READERS: usize = 8;

/// Bytes that the database caches of its file.
pub(crate) const CACHE: usize = 16 << 20;

/// How long the database stays open without being used: another process may want it.
pub(crate) const IDLE: Duration = Duration::from_secs(1);

/// How long an operation waits for another process that has the database open.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// How long an operation waits before it looks again.
pub(crate) const RETRY: Duration = Duration::from_millis(20);
