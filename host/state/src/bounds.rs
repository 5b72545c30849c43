//! Limits that apply regardless of quotas.

use std::time::Duration;

/// Maximum length of a key, in bytes.
pub const KEY: usize = 1 << 10;

/// Maximum length of a bucket's name, in bytes.
pub(crate) const BUCKET: usize = 64;

/// Maximum size of a value, in bytes.
pub const VALUE: usize = 1 << 20;

/// Maximum total size of the keys and values of one operation, in bytes.
pub const BATCH: usize = 4 << 20;

/// Maximum number of keys of one operation.
pub const BATCH_KEYS: usize = 1_000;

/// Maximum number of keys on one page of a list.
pub const PAGE_KEYS: usize = 1_000;

/// Total size of keys after which a page of a list ends, in bytes.
pub const PAGE_BYTES: usize = 64 << 10;

/// Maximum total size of changes that are queued for the writer, in bytes, over all calls. Further
/// changes wait.
pub(crate) const WAITING: usize = 16 << 20;

/// Maximum number of changes in one commit.
pub(crate) const GROUP: usize = 256;

/// Total size of changes after which a commit accepts no more, in bytes.
pub(crate) const GROUP_BYTES: usize = 8 << 20;

/// Maximum number of concurrent reads, over all calls.
pub(crate) const READERS: usize = 8;

/// Size of the database's cache, in bytes.
pub(crate) const CACHE: usize = 16 << 20;

/// Time for which the database stays open without use. Closing it lets other processes use it.
pub(crate) const IDLE: Duration = Duration::from_secs(1);

/// Timeout of an operation that waits for another process to close the database.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Interval at which a waiting operation retries.
pub(crate) const RETRY: Duration = Duration::from_millis(20);
