//! The store in one file: opened when it is first used, and closed when nobody has used it for a while, so that another
//! process can use it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::thread;
use std::time::Instant;

use bytesize::ByteSize;
use redb::{ReadTransaction, ReadableDatabase as _};
use tokio::sync::{Semaphore, oneshot};

use crate::bounds::{PATIENCE, READERS, RETRY, WAITING};
use crate::bucket::Bucket;
use crate::change::{Change, Changed, batch, check_key};
use crate::error::Error;
use crate::file::{self, NAME, Unopened};
use crate::holding::{self, Holding, Selection};
use crate::payer::{Free, Payer, paid};
use crate::quota::{Quota, Used};
use crate::reading::{self, Failed, Page, Start};
use crate::store::{Answer, Store};
use crate::writer::{self, Job};

/// The least that a change counts for among those that wait.
const LEAST: usize = 4 << 10;

/// The state of plugins in one file. Clones share it.
#[derive(Clone, Debug)]
pub struct Database(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    total: ByteSize,
    opened: Mutex<Option<Arc<Opened>>>,
    /// Permits to open it: one at a time.
    opening: Arc<Semaphore>,
    /// Permits to read.
    reading: Arc<Semaphore>,
    /// Permits for bytes of changes that wait.
    waiting: Arc<Semaphore>,
}

/// The database while it is open.
#[derive(Debug)]
struct Opened {
    database: Arc<redb::Database>,
    jobs: mpsc::Sender<Job>,
    /// Whether it failed, and has to be opened again.
    failed: Arc<AtomicBool>,
}

impl Database {
    /// The database in `folder`, which keeps at most about `total` for all owners together. Nothing is opened or created
    /// before it is used.
    pub fn new(folder: PathBuf, total: ByteSize) -> Self {
        Self(Arc::new(Inner {
            folder,
            total,
            opened: Mutex::default(),
            opening: Arc::new(Semaphore::new(1)),
            reading: Arc::new(Semaphore::new(READERS)),
            waiting: Arc::new(Semaphore::new(WAITING)),
        }))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// Whether anything was ever kept. Blocks.
    pub fn is_there(&self) -> bool {
        self.0.folder.join(NAME).exists()
    }

    /// Bytes of the file; `None` if there is none. Blocks, and opens nothing.
    pub fn size(&self) -> Option<u64> {
        Some(std::fs::metadata(self.0.folder.join(NAME)).ok()?.len())
    }

    /// What everybody keeps, by plugin and caller.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`].
    pub async fn holdings(&self) -> Result<Vec<Holding>, Error> {
        self.clone().read(Arc::new(Free), |transaction, _| holding::all(transaction)).await
    }

    /// Deletes what a plugin keeps: of all callers unless `caller` is given (empty for what all callers share), in all
    /// buckets unless `bucket` is given. Returns how much that was.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`].
    pub async fn clear(&self, plugin: &str, caller: Option<&str>, bucket: Option<&str>) -> Result<Used, Error> {
        let which = Selection {
            plugin: plugin.to_owned(),
            caller: caller.map(str::to_owned),
            bucket: bucket.map(str::to_owned),
        };
        let opened = self.opened(&Free).await?;
        blocking(move || {
            let transaction = opened.database.begin_write().map_err(Failed::from)?;
            let cleared = holding::clear(&transaction, &which)?;
            transaction.commit()?;
            Ok(cleared)
        })
        .await
    }

    /// Does something with one state of the database, on a thread that may block.
    async fn read<T: Send + 'static>(
        self,
        payer: Arc<dyn Payer>,
        work: impl FnOnce(&ReadTransaction, &dyn Payer) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Error> {
        let permit = Arc::clone(&self.0.reading).acquire_owned().await;
        let opened = self.opened(&*payer).await?;
        blocking(move || {
            let _permit = permit;
            let read = || work(&opened.database.begin_read()?, &*payer);
            let result = if payer.is_due() { Err(Error::Stopped.into()) } else { paid(&*payer, read) };
            if matches!(result, Err(Failed::Database(_))) {
                opened.failed.store(true, Ordering::Relaxed);
            }
            result
        })
        .await
    }

    async fn write(
        self,
        bucket: Bucket,
        quota: Quota,
        change: Change,
        payer: Arc<dyn Payer>,
    ) -> Result<Changed, Error> {
        change.check()?;
        let bytes = u32::try_from(change.bytes().max(LEAST)).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        let Ok(waiting) = Arc::clone(&self.0.waiting).acquire_many_owned(bytes).await else {
            return Err(Error::Stopped);
        };
        let opened = self.opened(&*payer).await?;
        let (reply, answer) = oneshot::channel();
        let job = Job { bucket, quota, change, payer, reply, _waiting: waiting };
        let gone = || Error::Unavailable("the state was closed because a change failed".to_owned());
        opened.jobs.send(job).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// The database, opened. Waits for another process that has it open, for a while.
    async fn opened(&self, payer: &dyn Payer) -> Result<Arc<Opened>, Error> {
        if let Some(opened) = self.0.current() {
            return Ok(opened);
        }
        let until = Instant::now() + PATIENCE;
        loop {
            let permit = Arc::clone(&self.0.opening).acquire_owned().await;
            let inner = Arc::clone(&self.0);
            // Whoever gives up while it is opened leaves it to the next.
            let attempt = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                inner.open()
            });
            match attempt.await {
                Ok(Ok(opened)) => return Ok(opened),
                Ok(Err(Unopened::InUse)) if Instant::now() < until && !payer.is_due() => {
                    tokio::time::sleep(RETRY).await;
                }
                Ok(Err(Unopened::InUse)) => {
                    let folder = self.0.folder.display();
                    return Err(Error::Unavailable(format!(
                        "another process uses the state in {folder}; end it, or give this server a folder of its own with \
                         state.folder"
                    )));
                }
                Ok(Err(Unopened::Unusable(why))) => return Err(Error::Unavailable(why)),
                Err(_panicked) => {
                    let file = self.0.folder.join(NAME);
                    let why = format!("cannot open {}: the database is damaged; move it away", file.display());
                    return Err(Error::Unavailable(why));
                }
            }
        }
    }
}

impl Inner {
    fn slot(&self) -> MutexGuard<'_, Option<Arc<Opened>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The database, if it is open and works.
    fn current(&self) -> Option<Arc<Opened>> {
        self.slot().clone().filter(|opened| !opened.failed.load(Ordering::Relaxed))
    }

    /// Opens the database, if it is not open. Blocks.
    fn open(self: &Arc<Self>) -> Result<Arc<Opened>, Unopened> {
        if let Some(opened) = self.current() {
            return Ok(opened);
        }
        // Not on the way out of `current`: to close a database takes time.
        drop(self.slot().take());
        let database = Arc::new(file::open(&self.folder)?);
        let (jobs, queue) = mpsc::channel();
        let failed = Arc::new(AtomicBool::new(false));
        let (total, inner) = (self.total, Arc::downgrade(self));
        let work = {
            let (database, failed) = (Arc::clone(&database), Arc::clone(&failed));
            move || writer::run(&database, &queue, total, &failed, || release(&inner, &failed))
        };
        let thread = thread::Builder::new().name("toolbay-state".to_owned()).spawn(work);
        thread.map_err(|error| Unopened::Unusable(format!("cannot start a thread for the state: {error}")))?;
        let opened = Arc::new(Opened { database, jobs, failed });
        *self.slot() = Some(Arc::clone(&opened));
        Ok(opened)
    }
}

/// Takes the database out of use, if nobody uses it. It is closed when the writer's thread ends.
fn release(inner: &Weak<Inner>, failed: &Arc<AtomicBool>) -> bool {
    let Some(inner) = inner.upgrade() else { return true };
    let mut slot = inner.slot();
    match &*slot {
        // Only the slot has it: nobody reads, and nobody waits for a change.
        Some(opened) if Arc::ptr_eq(&opened.failed, failed) && Arc::strong_count(opened) == 1 => {
            *slot = None;
            true
        }
        Some(opened) => !Arc::ptr_eq(&opened.failed, failed),
        None => true,
    }
}

/// Does work of the database on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failed> + Send + 'static) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(Failed::Refused(error))) => Err(error),
        Ok(Err(Failed::Database(error))) => Err(Error::Unavailable(format!("the state cannot be read: {error}"))),
        Err(_panicked) => Err(Error::Unavailable("the state cannot be read: the database is damaged".to_owned())),
    }
}

impl Store for Database {
    fn open(&self) -> Answer<()> {
        let database = self.clone();
        Box::pin(async move { database.opened(&Free).await.map(drop) })
    }

    fn get(&self, bucket: &Bucket, keys: Vec<String>, payer: Arc<dyn Payer>) -> Answer<Vec<Option<Vec<u8>>>> {
        let (database, bucket) = (self.clone(), bucket.clone());
        Box::pin(async move {
            batch(keys.len())?;
            database.read(payer, move |transaction, payer| reading::get(transaction, &bucket, &keys, payer)).await
        })
    }

    fn exists(&self, bucket: &Bucket, key: String, payer: Arc<dyn Payer>) -> Answer<bool> {
        let (database, bucket) = (self.clone(), bucket.clone());
        Box::pin(async move {
            database.read(payer, move |transaction, _| reading::exists(transaction, &bucket, &key)).await
        })
    }

    fn keys(&self, bucket: &Bucket, start: Start, payer: Arc<dyn Payer>) -> Answer<Page> {
        let (database, bucket) = (self.clone(), bucket.clone());
        Box::pin(async move {
            if let Start::After(key) = &start {
                check_key(key)?;
            }
            database.read(payer, move |transaction, payer| reading::keys(transaction, &bucket, &start, payer)).await
        })
    }

    fn change(&self, bucket: &Bucket, quota: Quota, change: Change, payer: Arc<dyn Payer>) -> Answer<Changed> {
        Box::pin(self.clone().write(bucket.clone(), quota, change, payer))
    }
}

#[cfg(test)]
mod tests;
