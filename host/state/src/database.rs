//! State store in one file. The file is opened at the first use and closed after an idle period, so
//! that another process can use it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use bytesize::ByteSize;
use parking_lot::{Mutex, MutexGuard};
use redb::{ReadTransaction, ReadableDatabase as _};
use tokio::sync::{Semaphore, oneshot};
use toolbay_background::{BackgroundQueue, BackgroundWriter};

use crate::bounds::{MAX_CONCURRENT_READS, MAX_QUEUED_BYTES, OPEN_RETRY_INTERVAL, OPEN_TIMEOUT};
use crate::bucket::StateBucket;
use crate::change::{BucketChange, ChangeOutcome, check_key, check_key_count};
use crate::database_file::{self, FILE_NAME, OpenError};
use crate::error::StateError;
use crate::payer::{UnmeteredPayer, WorkPayer, run_charged};
use crate::queries::{self, KeyPage, OperationFailure, PageStart};
use crate::quota::{QuotaUsage, StateQuota};
use crate::store::{EntryPredicate, StateFuture, StateStore};
use crate::usage::{self, EntrySelection, OwnerUsage};
use crate::writer::{StateWriter, WriteJob};

/// Minimum size for which a queued change counts, in bytes.
const MIN_CHANGE_BYTES: usize = 4 << 10;

/// State of plugins in one file. Clones share the database.
#[derive(Clone, Debug)]
pub struct StateDatabase(Arc<DatabaseState>);

#[derive(Debug)]
struct DatabaseState {
    folder: PathBuf,
    max_total: ByteSize,
    current: Mutex<Option<Arc<OpenDatabase>>>,
    /// Permit for opening the database.
    open_permit: Arc<Semaphore>,
    /// Permits for reading.
    read_permits: Arc<Semaphore>,
    /// Permits for the bytes of queued changes. Changes wait for them in order.
    queue_permits: Arc<Semaphore>,
}

/// Open database.
#[derive(Debug)]
struct OpenDatabase {
    database: Arc<redb::Database>,
    jobs: BackgroundQueue<WriteJob>,
    /// True if the database failed and must be opened again.
    failed: Arc<AtomicBool>,
}

impl StateDatabase {
    /// Creates the database in `folder`, which stores at most about `max_total` for all owners
    /// together. Opens and creates no file before the first use.
    pub fn new(folder: PathBuf, max_total: ByteSize) -> Self {
        Self(Arc::new(DatabaseState {
            folder,
            max_total,
            current: Mutex::default(),
            open_permit: Arc::new(Semaphore::new(1)),
            read_permits: Arc::new(Semaphore::new(MAX_CONCURRENT_READS)),
            queue_permits: Arc::new(Semaphore::new(MAX_QUEUED_BYTES)),
        }))
    }

    /// Returns the directory of the database.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// Returns whether the database file exists. Blocks.
    pub fn has_file(&self) -> bool {
        self.0.folder.join(FILE_NAME).exists()
    }

    /// Returns the size of the file, in bytes; `None` if it does not exist. Blocks, but does not
    /// open the database.
    pub fn size(&self) -> Option<u64> {
        Some(std::fs::metadata(self.0.folder.join(FILE_NAME)).ok()?.len())
    }

    /// Returns the usage of all owners, by plugin and caller.
    ///
    /// # Errors
    ///
    /// Returns [`StateError::Unavailable`] if the database cannot be used.
    pub async fn usage_by_owner(&self) -> Result<Vec<OwnerUsage>, StateError> {
        self.clone()
            .read(Arc::new(UnmeteredPayer), |transaction, _| {
                usage::usage_by_owner(transaction)
            })
            .await
    }

    /// Deletes state of a plugin: of all callers unless `caller` is given (empty for the state that
    /// all callers share), in all buckets unless `bucket` is given. Returns the size of the deleted
    /// state.
    ///
    /// # Errors
    ///
    /// Returns [`StateError::Unavailable`] if the database cannot be used.
    pub async fn clear(
        &self,
        plugin: &str,
        caller: Option<&str>,
        bucket: Option<&str>,
    ) -> Result<QuotaUsage, StateError> {
        let selection = EntrySelection {
            plugin: plugin.to_owned(),
            caller: caller.map(str::to_owned),
            bucket: bucket.map(str::to_owned),
        };
        let open_database = self.get_or_open(&UnmeteredPayer).await?;
        run_blocking(move || {
            let transaction = open_database
                .database
                .begin_write()
                .map_err(OperationFailure::from)?;
            let cleared = usage::delete_entries(&transaction, &selection)?;
            transaction.commit()?;
            Ok(cleared)
        })
        .await
    }

    /// Deletes the entries below `prefix` that `is_deleted` selects, in several transactions.
    async fn delete_pages(
        self,
        prefix: String,
        is_deleted: EntryPredicate,
    ) -> Result<QuotaUsage, StateError> {
        let mut deleted = QuotaUsage::default();
        let mut after = None;
        loop {
            let open_database = self.get_or_open(&UnmeteredPayer).await?;
            let (prefix, is_deleted) = (prefix.clone(), Arc::clone(&is_deleted));
            let (page, last) = run_blocking(move || {
                let transaction = open_database
                    .database
                    .begin_write()
                    .map_err(OperationFailure::from)?;
                let page = usage::delete_page(&transaction, &prefix, after.as_ref(), &*is_deleted)?;
                if page.0.keys > 0 {
                    transaction.commit()?;
                } else {
                    transaction.abort()?;
                }
                Ok(page)
            })
            .await?;
            deleted.add(page);
            if last.is_none() {
                return Ok(deleted);
            }
            after = last;
        }
    }

    /// Runs `work` on a snapshot of the database, on a blocking thread.
    async fn read<T: Send + 'static>(
        self,
        payer: Arc<dyn WorkPayer>,
        work: impl FnOnce(&ReadTransaction, &dyn WorkPayer) -> Result<T, OperationFailure>
        + Send
        + 'static,
    ) -> Result<T, StateError> {
        let permit = Arc::clone(&self.0.read_permits).acquire_owned().await;
        let open_database = self.get_or_open(&*payer).await?;
        run_blocking(move || {
            let _permit = permit;
            let run_work = || work(&open_database.database.begin_read()?, &*payer);
            let result = if payer.is_due() {
                Err(StateError::Stopped.into())
            } else {
                run_charged(&*payer, run_work)
            };
            if matches!(result, Err(OperationFailure::Database(_))) {
                open_database.failed.store(true, Ordering::Relaxed);
            }
            result
        })
        .await
    }

    async fn write(
        self,
        bucket: StateBucket,
        quota: StateQuota,
        change: BucketChange,
        payer: Arc<dyn WorkPayer>,
    ) -> Result<ChangeOutcome, StateError> {
        change.check()?;
        let bytes = u32::try_from(change.bytes().max(MIN_CHANGE_BYTES)).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        let Ok(queue_permit) = Arc::clone(&self.0.queue_permits)
            .acquire_many_owned(bytes)
            .await
        else {
            return Err(StateError::Stopped);
        };
        let open_database = self.get_or_open(&*payer).await?;
        let (reply, response) = oneshot::channel();
        let job = WriteJob {
            bucket,
            quota,
            change,
            payer,
            reply,
            _queue_permit: queue_permit,
        };
        let closed_error =
            || StateError::Unavailable("the state was closed because a change failed".to_owned());
        open_database.jobs.send(job).map_err(|_| closed_error())?;
        response.await.unwrap_or_else(|_| Err(closed_error()))
    }

    /// Returns the open database, and opens it if necessary. Waits for a limited time if another
    /// process has it open.
    async fn get_or_open(&self, payer: &dyn WorkPayer) -> Result<Arc<OpenDatabase>, StateError> {
        if let Some(opened) = self.0.working_database() {
            return Ok(opened);
        }
        let deadline = Instant::now() + OPEN_TIMEOUT;
        loop {
            let permit = Arc::clone(&self.0.open_permit).acquire_owned().await;
            let inner = Arc::clone(&self.0);
            // If this future is dropped meanwhile, the next caller finds the database open.
            let attempt = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                inner.open()
            });
            match attempt.await {
                Ok(Ok(opened)) => return Ok(opened),
                Ok(Err(OpenError::InUse)) if Instant::now() < deadline && !payer.is_due() => {
                    tokio::time::sleep(OPEN_RETRY_INTERVAL).await;
                }
                Ok(Err(OpenError::InUse)) => {
                    let folder = self.0.folder.display();
                    return Err(StateError::Unavailable(format!(
                        "another process uses the state in {folder}; end it, or give this server a \
                         separate folder with state.folder"
                    )));
                }
                Ok(Err(OpenError::Unusable(why))) => return Err(StateError::Unavailable(why)),
                Err(_panicked) => {
                    let file = self.0.folder.join(FILE_NAME);
                    let why = format!(
                        "cannot open {}: the database is damaged; move it away",
                        file.display()
                    );
                    return Err(StateError::Unavailable(why));
                }
            }
        }
    }
}

impl DatabaseState {
    fn lock_current(&self) -> MutexGuard<'_, Option<Arc<OpenDatabase>>> {
        self.current.lock()
    }

    /// Returns the database if it is open and has not failed.
    fn working_database(&self) -> Option<Arc<OpenDatabase>> {
        self.lock_current()
            .clone()
            .filter(|database| !database.failed.load(Ordering::Relaxed))
    }

    /// Opens the database if it is not open. Blocks.
    fn open(self: &Arc<Self>) -> Result<Arc<OpenDatabase>, OpenError> {
        if let Some(opened) = self.working_database() {
            return Ok(opened);
        }
        // Drop a failed database here and not in `working_database`, because closing takes time.
        drop(self.lock_current().take());
        let database = Arc::new(database_file::open(&self.folder)?);
        let failed = Arc::new(AtomicBool::new(false));
        let inner = Arc::downgrade(self);
        let writer_failed = Arc::clone(&failed);
        let (writer, jobs) = BackgroundWriter::new(StateWriter {
            database: Arc::clone(&database),
            max_total: self.max_total,
            failed: Arc::clone(&failed),
            try_release: move || release_if_idle(&inner, &writer_failed),
            group: Vec::new(),
            group_bytes: 0,
        });
        writer.start("toolbay-state").map_err(|error| {
            OpenError::Unusable(format!("cannot start a thread for the state: {error}"))
        })?;
        let opened = Arc::new(OpenDatabase {
            database,
            jobs,
            failed,
        });
        *self.lock_current() = Some(Arc::clone(&opened));
        Ok(opened)
    }
}

/// Releases the database if it is not in use, and returns whether the writer thread can end. The
/// end of the thread closes the database.
fn release_if_idle(inner: &Weak<DatabaseState>, failed: &Arc<AtomicBool>) -> bool {
    let Some(inner) = inner.upgrade() else {
        return true;
    };
    let mut slot = inner.lock_current();
    match &*slot {
        // Only the slot holds a reference: there are no reads and no queued changes.
        Some(opened) if Arc::ptr_eq(&opened.failed, failed) && Arc::strong_count(opened) == 1 => {
            *slot = None;
            true
        }
        Some(opened) => !Arc::ptr_eq(&opened.failed, failed),
        None => true,
    }
}

/// Runs database work on a blocking thread.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OperationFailure> + Send + 'static,
) -> Result<T, StateError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(OperationFailure::Rejected(error))) => Err(error),
        Ok(Err(OperationFailure::Database(error))) => Err(StateError::Unavailable(format!(
            "the state cannot be read: {error}"
        ))),
        Err(_panicked) => Err(StateError::Unavailable(
            "the state cannot be read: the database is damaged".to_owned(),
        )),
    }
}

impl StateStore for StateDatabase {
    fn open(&self) -> StateFuture<()> {
        let database = self.clone();
        Box::pin(async move { database.get_or_open(&UnmeteredPayer).await.map(drop) })
    }

    fn get(
        &self,
        bucket: &StateBucket,
        keys: Vec<String>,
        payer: Arc<dyn WorkPayer>,
    ) -> StateFuture<Vec<Option<Vec<u8>>>> {
        let database = self.clone();
        let bucket = bucket.clone();
        Box::pin(async move {
            check_key_count(keys.len())?;
            database
                .read(payer, move |transaction, payer| {
                    queries::get_values(transaction, &bucket, &keys, payer)
                })
                .await
        })
    }

    fn exists(
        &self,
        bucket: &StateBucket,
        key: String,
        payer: Arc<dyn WorkPayer>,
    ) -> StateFuture<bool> {
        let database = self.clone();
        let bucket = bucket.clone();
        Box::pin(async move {
            database
                .read(payer, move |transaction, _| {
                    queries::key_exists(transaction, &bucket, &key)
                })
                .await
        })
    }

    fn keys(
        &self,
        bucket: &StateBucket,
        start: PageStart,
        payer: Arc<dyn WorkPayer>,
    ) -> StateFuture<KeyPage> {
        let database = self.clone();
        let bucket = bucket.clone();
        Box::pin(async move {
            if let PageStart::After(key) = &start {
                check_key(key)?;
            }
            database
                .read(payer, move |transaction, payer| {
                    queries::list_keys(transaction, &bucket, &start, payer)
                })
                .await
        })
    }

    fn change(
        &self,
        bucket: &StateBucket,
        quota: StateQuota,
        change: BucketChange,
        payer: Arc<dyn WorkPayer>,
    ) -> StateFuture<ChangeOutcome> {
        Box::pin(self.clone().write(bucket.clone(), quota, change, payer))
    }

    fn delete_where(&self, prefix: &str, is_deleted: EntryPredicate) -> StateFuture<QuotaUsage> {
        Box::pin(self.clone().delete_pages(prefix.to_owned(), is_deleted))
    }
}

#[cfg(test)]
mod tests;
