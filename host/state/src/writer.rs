//! Writer thread of the database. Queued changes become one commit and share its `fsync`.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytesize::ByteSize;
use redb::ReadableTable as _;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use toolbay_background::{BatchSpace, BatchWriter};

use crate::bounds::{IDLE_TIMEOUT, MAX_COMMIT_CHANGES, TARGET_COMMIT_BYTES};
use crate::bucket::StateBucket;
use crate::change::{BucketChange, ChangeOutcome};
use crate::error::StateError;
use crate::payer::{WorkPayer, run_charged};
use crate::queries::OperationFailure;
use crate::quota::{QuotaUsage, StateQuota};
use crate::tables::{NEXT_OWNER_KEY, StateTables, TOTAL_FILE_BYTES_KEY};
use crate::value_version::ValueVersion;

/// Queued change.
pub(crate) struct WriteJob {
    pub(crate) bucket: StateBucket,
    pub(crate) quota: StateQuota,
    pub(crate) change: BucketChange,
    pub(crate) payer: Arc<dyn WorkPayer>,
    pub(crate) reply: oneshot::Sender<Result<ChangeOutcome, StateError>>,
    /// Permit for the change's share of the queued bytes.
    pub(crate) _queue_permit: OwnedSemaphorePermit,
}

/// State of the writer thread, which applies changes until no sender is left, the database fails, or
/// it is idle and can be closed.
pub(crate) struct StateWriter<R> {
    /// Closed by the end of the thread.
    pub(crate) database: Arc<redb::Database>,
    /// Maximum size of the state of all owners together.
    pub(crate) max_total: ByteSize,
    /// Set if the database fails.
    pub(crate) failed: Arc<AtomicBool>,
    /// Returns whether an idle database can be closed.
    pub(crate) try_release: R,
    /// The changes of the next commit.
    pub(crate) group: Vec<WriteJob>,
    /// Size of these changes, in bytes.
    pub(crate) group_bytes: usize,
}

impl<R: Fn() -> bool + Send + 'static> BatchWriter for StateWriter<R> {
    type Item = WriteJob;

    fn next_timeout(&self) -> Option<Duration> {
        Some(IDLE_TIMEOUT)
    }

    fn add(&mut self, job: WriteJob) -> BatchSpace {
        self.group_bytes += job.change.bytes();
        self.group.push(job);
        if self.group.len() < MAX_COMMIT_CHANGES && self.group_bytes < TARGET_COMMIT_BYTES {
            BatchSpace::More
        } else {
            BatchSpace::Full
        }
    }

    fn write_batch(&mut self) -> ControlFlow<()> {
        if self.group.is_empty() {
            return if (self.try_release)() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            };
        }
        self.group_bytes = 0;
        let group = std::mem::take(&mut self.group);
        self.commit_group(group);
        if self.failed.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn end(&mut self) {}
}

impl<R> StateWriter<R> {
    /// Commits the changes, and replies to their callers.
    fn commit_group(&self, group: Vec<WriteJob>) {
        // A damaged file can make the database panic. Limit the effect to these changes.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            commit(&self.database, &group, self.max_total)
        }));
        let answers = match outcome {
            Ok(Ok(answers)) => answers,
            failure => {
                let why = match failure {
                    Ok(Err(error)) => format!("a change of the state failed: {error}"),
                    _ => "a change of the state failed: the database is damaged".to_owned(),
                };
                self.failed.store(true, Ordering::Relaxed);
                tracing::error!("{why}");
                group
                    .iter()
                    .map(|_| Err(StateError::Unavailable(why.clone())))
                    .collect()
            }
        };
        for (job, answer) in group.into_iter().zip(answers) {
            // Fails if the caller no longer waits.
            let _ = job.reply.send(answer);
        }
    }
}

/// Commits the changes. When this returns, all of them are on disk, or none.
fn commit(
    database: &redb::Database,
    group: &[WriteJob],
    max_total: ByteSize,
) -> Result<Vec<Result<ChangeOutcome, StateError>>, redb::Error> {
    let transaction = database.begin_write()?;
    let mut answers = Vec::with_capacity(group.len());
    {
        let mut tables = StateTables::open(&transaction)?;
        for job in group {
            let answer = if job.reply.is_closed() || job.payer.is_due() {
                Err(OperationFailure::Rejected(StateError::Stopped))
            } else {
                run_charged(&*job.payer, || apply_change(&mut tables, job, max_total))
            };
            answers.push(match answer {
                Ok(changed) => Ok(changed),
                Err(OperationFailure::Rejected(error)) => Err(error),
                // Parts of the change may have been applied, so drop the whole transaction.
                Err(OperationFailure::Database(error)) => return Err(error),
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

/// Applies one change. A rejected change has no effect.
fn apply_change(
    tables: &mut StateTables<'_>,
    job: &WriteJob,
    max_total: ByteSize,
) -> Result<ChangeOutcome, OperationFailure> {
    let row = tables
        .owners
        .get(job.bucket.owner().row())?
        .map(|row| row.value());
    let mut owner = OwnerAccount {
        number: row.map(|(number, ..)| number),
        usage: row.map_or(QuotaUsage::default(), |(_, bytes, keys)| QuotaUsage {
            bytes,
            keys,
        }),
        job,
        max_total,
    };
    match &job.change {
        BucketChange::Set(entries) => {
            let entries: Vec<_> = entries
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_slice()))
                .collect();
            owner
                .set_entries(tables, &entries)
                .map(|()| ChangeOutcome::Done)
        }
        BucketChange::Delete(keys) => owner
            .delete_keys(tables, keys)
            .map(|()| ChangeOutcome::Done),
        BucketChange::Increment { key, delta, range } => {
            let number = match owner.get_value(tables, key)? {
                None => 0,
                Some(value) => parse_number(value.value()).ok_or(StateError::NotANumber)?,
            };
            let sum = number
                .checked_add(*delta)
                .filter(|sum| range.contains(sum))
                .ok_or(StateError::OutOfRange)?;
            owner
                .set_entries(tables, &[(key, sum.to_string().as_bytes())])
                .map(|()| ChangeOutcome::Number(sum))
        }
        BucketChange::Swap {
            key,
            expected,
            value,
        } => {
            let current = owner
                .get_value(tables, key)?
                .map_or(ValueVersion::from_value(None), |value| {
                    ValueVersion::from_value(Some(value.value()))
                });
            if current != *expected {
                return Ok(ChangeOutcome::Conflict(current));
            }
            owner
                .set_entries(tables, &[(key, value)])
                .map(|()| ChangeOutcome::Done)
        }
    }
}

/// Parses a whole number in decimal digits.
fn parse_number(value: &[u8]) -> Option<i128> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// State usage of one owner during a change.
struct OwnerAccount<'a> {
    /// Number of the owner; `None` if it has no state yet.
    number: Option<u64>,
    usage: QuotaUsage,
    job: &'a WriteJob,
    max_total: ByteSize,
}

type StoredValue<'t> = redb::AccessGuard<'t, &'static [u8]>;

impl OwnerAccount<'_> {
    fn get_value<'t>(
        &self,
        tables: &'t StateTables<'_>,
        key: &str,
    ) -> Result<Option<StoredValue<'t>>, OperationFailure> {
        let Some(number) = self.number else {
            return Ok(None);
        };
        Ok(tables.entries.get((number, self.job.bucket.name(), key))?)
    }

    /// Returns the size of the key and its value, in bytes; `None` if the key does not exist.
    fn entry_size(
        &self,
        tables: &StateTables<'_>,
        key: &str,
    ) -> Result<Option<usize>, OperationFailure> {
        Ok(self
            .get_value(tables, key)?
            .map(|value| key.len() + value.value().len()))
    }

    fn set_entries(
        &mut self,
        tables: &mut StateTables<'_>,
        entries: &[(&str, &[u8])],
    ) -> Result<(), OperationFailure> {
        // For a repeated key, use the last value.
        let entries: std::collections::BTreeMap<&str, &[u8]> = entries.iter().copied().collect();
        let mut after = self.usage;
        for (key, value) in &entries {
            if let Some(size) = self.entry_size(tables, key)? {
                after = after.without_entry(size);
            }
            after = after.with_entry(key.len() + value.len());
        }
        let total = self.check_quota(tables, after)?;
        if entries.is_empty() {
            return Ok(());
        }
        let number = if let Some(number) = self.number {
            number
        } else {
            let next = tables
                .numbers
                .get(NEXT_OWNER_KEY)?
                .map_or(0, |next| next.value());
            tables.numbers.insert(NEXT_OWNER_KEY, next + 1)?;
            next
        };
        for (key, value) in entries {
            tables
                .entries
                .insert((number, self.job.bucket.name(), key), value)?;
        }
        self.number = Some(number);
        self.write_usage(tables, after, total)
    }

    fn delete_keys(
        &mut self,
        tables: &mut StateTables<'_>,
        keys: &[String],
    ) -> Result<(), OperationFailure> {
        let Some(number) = self.number else {
            return Ok(());
        };
        let mut after = self.usage;
        for key in keys {
            let removed = tables
                .entries
                .remove((number, self.job.bucket.name(), key.as_str()))?;
            if let Some(value) = removed {
                after = after.without_entry(key.len() + value.value().len());
            }
        }
        let total = total_file_bytes(tables, self.usage, after)?;
        self.write_usage(tables, after, total)
    }

    /// Checks whether the owner may have the usage `after`. Returns the resulting total file size
    /// of all owners.
    fn check_quota(
        &self,
        tables: &StateTables<'_>,
        after: QuotaUsage,
    ) -> Result<u64, OperationFailure> {
        let before = self.usage;
        let quota = self.job.quota;
        if after.keys > quota.keys && after.keys > before.keys {
            return Err(StateError::Keys(quota.keys).into());
        }
        if after.bytes > quota.size.as_u64() && after.bytes > before.bytes {
            return Err(StateError::Size(quota.size).into());
        }
        let total = total_file_bytes(tables, before, after)?;
        if total > self.max_total.as_u64() && after.file_bytes() > before.file_bytes() {
            return Err(StateError::Total(self.max_total).into());
        }
        Ok(total)
    }

    /// Writes the owner's usage to the tables.
    fn write_usage(
        &mut self,
        tables: &mut StateTables<'_>,
        after: QuotaUsage,
        total: u64,
    ) -> Result<(), OperationFailure> {
        let (row, Some(number)) = (self.job.bucket.owner().row(), self.number) else {
            return Ok(());
        };
        if after.keys == 0 {
            tables.owners.remove(row)?;
        } else {
            tables
                .owners
                .insert(row, (number, after.bytes, after.keys))?;
        }
        tables.numbers.insert(TOTAL_FILE_BYTES_KEY, total)?;
        Ok(())
    }
}

/// Returns the total file size of all owners after the usage of one changes from `before` to
/// `after`.
pub(crate) fn total_file_bytes(
    tables: &StateTables<'_>,
    before: QuotaUsage,
    after: QuotaUsage,
) -> Result<u64, OperationFailure> {
    let current_total = tables
        .numbers
        .get(TOTAL_FILE_BYTES_KEY)?
        .map_or(0, |number| number.value());
    Ok(current_total
        .saturating_sub(before.file_bytes())
        .saturating_add(after.file_bytes()))
}
