//! The thread that changes the database: changes that wait together become one commit, and share its `fsync`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use bytesize::ByteSize;
use redb::ReadableTable as _;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::bounds::{GROUP, GROUP_BYTES, IDLE};
use crate::bucket::Bucket;
use crate::change::{Change, Changed};
use crate::error::Error;
use crate::payer::{Payer, paid};
use crate::quota::{Quota, Used};
use crate::reading::Failed;
use crate::tables::{NEXT, Tables, WEIGHT};
use crate::version::Version;

/// A change that somebody waits for.
pub(crate) struct Job {
    pub(crate) bucket: Bucket,
    pub(crate) quota: Quota,
    pub(crate) change: Change,
    pub(crate) payer: Arc<dyn Payer>,
    pub(crate) reply: oneshot::Sender<Result<Changed, Error>>,
    /// Its share of the bytes that may wait.
    pub(crate) _waiting: OwnedSemaphorePermit,
}

/// Changes the database until nobody can ask for changes any more, the database fails, or it is idle and `release` says
/// that it can be closed.
pub(crate) fn run(
    database: &redb::Database,
    jobs: &Receiver<Job>,
    total: ByteSize,
    failed: &AtomicBool,
    release: impl Fn() -> bool,
) {
    loop {
        let first = match jobs.recv_timeout(IDLE) {
            Ok(job) => job,
            Err(RecvTimeoutError::Timeout) if release() => return,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let group = group(first, jobs);
        // A damaged file can make the database panic: that fails these changes, and no more.
        let answers = catch_unwind(AssertUnwindSafe(|| commit(database, &group, total)));
        let answers = match answers {
            Ok(Ok(answers)) => answers,
            broken => {
                let why = match broken {
                    Ok(Err(error)) => format!("a change of the state failed: {error}"),
                    _ => "a change of the state failed: the database is damaged".to_owned(),
                };
                failed.store(true, Ordering::Relaxed);
                tracing::error!("{why}");
                group.iter().map(|_| Err(Error::Unavailable(why.clone()))).collect()
            }
        };
        for (job, answer) in group.into_iter().zip(answers) {
            // Whoever no longer waits needs no answer.
            let _ = job.reply.send(answer);
        }
        if failed.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// The changes that wait, as many as one commit takes.
fn group(first: Job, jobs: &Receiver<Job>) -> Vec<Job> {
    let mut bytes = first.change.bytes();
    let mut group = vec![first];
    while group.len() < GROUP
        && bytes < GROUP_BYTES
        && let Ok(job) = jobs.try_recv()
    {
        bytes += job.change.bytes();
        group.push(job);
    }
    group
}

/// Makes the changes. When this returns, they are on disk, or none of them is.
fn commit(
    database: &redb::Database,
    group: &[Job],
    total: ByteSize,
) -> Result<Vec<Result<Changed, Error>>, redb::Error> {
    let transaction = database.begin_write()?;
    let mut answers = Vec::with_capacity(group.len());
    {
        let mut tables = Tables::open(&transaction)?;
        for job in group {
            let answer = if job.reply.is_closed() || job.payer.is_due() {
                Err(Failed::Refused(Error::Stopped))
            } else {
                paid(&*job.payer, || apply(&mut tables, job, total))
            };
            answers.push(match answer {
                Ok(changed) => Ok(changed),
                Err(Failed::Refused(error)) => Err(error),
                // Parts of the change may have been made: nothing of this transaction is kept.
                Err(Failed::Database(error)) => return Err(error),
            });
        }
    }
    if answers.iter().any(Result::is_ok) {
        transaction.commit()?;
    } else {
        transaction.abort()?;
    }
    Ok(answers)
}

/// Makes one change. One that is refused has changed nothing.
fn apply(tables: &mut Tables<'_>, job: &Job, total: ByteSize) -> Result<Changed, Failed> {
    let row = tables.owners.get(job.bucket.owner().row())?.map(|row| row.value());
    let mut owner = Account {
        number: row.map(|(number, ..)| number),
        used: row.map_or(Used::default(), |(_, bytes, keys)| Used { bytes, keys }),
        job,
        total,
    };
    match &job.change {
        Change::Set(entries) => {
            let entries: Vec<_> = entries.iter().map(|(key, value)| (key.as_str(), value.as_slice())).collect();
            owner.set(tables, &entries).map(|()| Changed::Done)
        }
        Change::Delete(keys) => owner.delete(tables, keys).map(|()| Changed::Done),
        Change::Increment { key, delta, range } => {
            let number = match owner.value(tables, key)? {
                None => 0,
                Some(value) => number(value.value()).ok_or(Error::NotANumber)?,
            };
            let sum = number.checked_add(*delta).filter(|sum| range.contains(sum)).ok_or(Error::OutOfRange)?;
            owner.set(tables, &[(key, sum.to_string().as_bytes())]).map(|()| Changed::Number(sum))
        }
        Change::Swap { key, expected, value } => {
            let found = owner.value(tables, key)?.map_or(Version::of(None), |value| Version::of(Some(value.value())));
            if found != *expected {
                return Ok(Changed::Conflict(found));
            }
            owner.set(tables, &[(key, value)]).map(|()| Changed::Done)
        }
    }
}

/// A whole number in decimal digits.
fn number(value: &[u8]) -> Option<i128> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// What one owner keeps, while a change is made.
struct Account<'a> {
    /// `None` if it keeps nothing yet.
    number: Option<u64>,
    used: Used,
    job: &'a Job,
    total: ByteSize,
}

type Value<'t> = redb::AccessGuard<'t, &'static [u8]>;

impl Account<'_> {
    fn value<'t>(&self, tables: &'t Tables<'_>, key: &str) -> Result<Option<Value<'t>>, Failed> {
        let Some(number) = self.number else { return Ok(None) };
        Ok(tables.entries.get((number, self.job.bucket.name(), key))?)
    }

    /// Bytes of the key and its value; `None` if the key does not exist.
    fn size(&self, tables: &Tables<'_>, key: &str) -> Result<Option<usize>, Failed> {
        Ok(self.value(tables, key)?.map(|value| key.len() + value.value().len()))
    }

    fn set(&mut self, tables: &mut Tables<'_>, entries: &[(&str, &[u8])]) -> Result<(), Failed> {
        // Of a key that occurs twice, the last value.
        let entries: std::collections::BTreeMap<&str, &[u8]> = entries.iter().copied().collect();
        let mut after = self.used;
        for (key, value) in &entries {
            if let Some(size) = self.size(tables, key)? {
                after = after.minus(size);
            }
            after = after.plus(key.len() + value.len());
        }
        let total = self.allow(tables, after)?;
        if entries.is_empty() {
            return Ok(());
        }
        let number = if let Some(number) = self.number {
            number
        } else {
            let next = tables.numbers.get(NEXT)?.map_or(0, |next| next.value());
            tables.numbers.insert(NEXT, next + 1)?;
            next
        };
        for (key, value) in entries {
            tables.entries.insert((number, self.job.bucket.name(), key), value)?;
        }
        self.number = Some(number);
        self.note(tables, after, total)
    }

    fn delete(&mut self, tables: &mut Tables<'_>, keys: &[String]) -> Result<(), Failed> {
        let Some(number) = self.number else { return Ok(()) };
        let mut after = self.used;
        for key in keys {
            let removed = tables.entries.remove((number, self.job.bucket.name(), key.as_str()))?;
            if let Some(value) = removed {
                after = after.minus(key.len() + value.value().len());
            }
        }
        let total = weight(tables, self.used, after)?;
        self.note(tables, after, total)
    }

    /// Whether the owner may keep this much instead. Returns what all owners then weigh.
    fn allow(&self, tables: &Tables<'_>, after: Used) -> Result<u64, Failed> {
        let (before, quota) = (self.used, self.job.quota);
        if after.keys > quota.keys && after.keys > before.keys {
            return Err(Error::Keys(quota.keys).into());
        }
        if after.bytes > quota.size.as_u64() && after.bytes > before.bytes {
            return Err(Error::Size(quota.size).into());
        }
        let total = weight(tables, before, after)?;
        if total > self.total.as_u64() && after.weight() > before.weight() {
            return Err(Error::Total(self.total).into());
        }
        Ok(total)
    }

    /// Writes down what the owner keeps now.
    fn note(&mut self, tables: &mut Tables<'_>, after: Used, total: u64) -> Result<(), Failed> {
        let (row, Some(number)) = (self.job.bucket.owner().row(), self.number) else { return Ok(()) };
        if after.keys == 0 {
            tables.owners.remove(row)?;
        } else {
            tables.owners.insert(row, (number, after.bytes, after.keys))?;
        }
        tables.numbers.insert(WEIGHT, total)?;
        Ok(())
    }
}

/// What all owners weigh after one of them keeps `after` instead of `before`.
pub(crate) fn weight(tables: &Tables<'_>, before: Used, after: Used) -> Result<u64, Failed> {
    let now = tables.numbers.get(WEIGHT)?.map_or(0, |weight| weight.value());
    Ok(now.saturating_sub(before.weight()).saturating_add(after.weight()))
}
