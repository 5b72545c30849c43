//! Limits that apply regardless of quotas.

use std::time::Duration;

/// Maximum length of a key, in bytes.
pub const MAX_KEY_BYTES: usize = 1 << 10;

/// Maximum length of a bucket's name, in bytes.
pub(crate) const MAX_BUCKET_NAME_BYTES: usize = 64;

/// Maximum size of a value, in bytes.
pub const MAX_VALUE_BYTES: usize = 1 << 20;

/// Maximum total size of the keys and values of one operation, in bytes.
pub const MAX_OPERATION_BYTES: usize = 4 << 20;

/// Maximum number of keys of one operation.
pub const MAX_OPERATION_KEYS: usize = 1_000;

/// Maximum number of keys on one page of a list.
pub const MAX_PAGE_KEYS: usize = 1_000;

/// Total size of keys after which a page of a list ends, in bytes.
pub const TARGET_PAGE_BYTES: usize = 64 << 10;

/// Maximum total size of changes that are queued for the writer, in bytes, over all calls. Further
/// changes wait.
pub(crate) const MAX_QUEUED_BYTES: usize = 16 << 20;

/// Maximum number of changes in one commit.
pub(crate) const MAX_COMMIT_CHANGES: usize = 256;

/// Total size of changes after which a commit accepts no more, in bytes.
pub(crate) const TARGET_COMMIT_BYTES: usize = 8 << 20;

/// Maximum number of concurrent reads, over all calls.
pub(crate) const MAX_CONCURRENT_READS: usize = 8;

/// Size of the database's cache, in bytes.
pub(crate) const CACHE_BYTES: usize = 16 << 20;

/// Time for which the database stays open without use. Closing it lets other processes use it.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// Timeout of an operation that waits for another process to close the database.
pub(crate) const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval at which a waiting operation retries.
pub(crate) const OPEN_RETRY_INTERVAL: Duration = Duration::from_millis(20);
