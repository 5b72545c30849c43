//! Checks that the acknowledged operations are stored.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use bytesize::ByteSize;
use toolbay_state::{
    PageStart, QuotaUsage, StateBucket, StateDatabase, StateError, StateStore as _, UnmeteredPayer,
};

use crate::operation::{SHARED, Task};

/// Compares the stored state with the expected state of the tasks. A task may have completed one
/// operation without acknowledging it. Returns the number of such operations.
///
/// # Errors
///
/// An entry is missing, unexpected or wrong.
pub(crate) fn verify(folder: &Path, tasks: &mut [Task]) -> Result<u64> {
    // Each check has its own runtime. Dropping it closes the database, so that the next process can
    // open it.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let database = StateDatabase::new(folder.to_owned(), ByteSize::gib(1));
    runtime.block_on(async {
        let mut unsaid = 0;
        for (index, task) in tasks.iter_mut().enumerate() {
            let kept = all(&database, &task.bucket()?)
                .await
                .map_err(|error| told(&error))?;
            if kept != *task.kept() {
                task.advance();
                unsaid += 1;
                ensure!(
                    kept == *task.kept(),
                    "task {index} keeps something else than it did in {} operations",
                    task.done()
                );
            }
        }
        for holding in database
            .usage_by_owner()
            .await
            .map_err(|error| told(&error))?
        {
            let sum = |of: fn(&QuotaUsage) -> u64| holding.buckets.values().map(of).sum::<u64>();
            let counted = QuotaUsage {
                bytes: sum(|used| used.bytes),
                keys: sum(|used| used.keys),
            };
            ensure!(
                counted == holding.total,
                "{} is said to keep {:?}",
                holding.plugin,
                holding
            );
            if holding.plugin == "shared" {
                let fits = counted.keys <= SHARED.keys && counted.bytes <= SHARED.size.as_u64();
                ensure!(fits, "what the tasks share exceeds its quota: {counted:?}");
            } else if !tasks.iter().any(|task| {
                task.bucket()
                    .is_ok_and(|bucket| *bucket.owner().plugin == *holding.plugin)
            }) {
                bail!("{} keeps something", holding.plugin);
            }
        }
        Ok(unsaid)
    })
}

/// Returns all keys and values of a bucket.
async fn all(
    database: &StateDatabase,
    bucket: &StateBucket,
) -> Result<BTreeMap<String, Vec<u8>>, StateError> {
    let mut kept = BTreeMap::new();
    let mut start = PageStart::First;
    loop {
        let page = database
            .keys(bucket, start, Arc::new(UnmeteredPayer))
            .await?;
        let values = database
            .get(bucket, page.keys.clone(), Arc::new(UnmeteredPayer))
            .await?;
        let last = page.keys.last().cloned();
        kept.extend(
            page.keys
                .into_iter()
                .zip(values)
                .filter_map(|(key, value)| Some((key, value?))),
        );
        match last {
            Some(last) if page.more => start = PageStart::After(last),
            _ => return Ok(kept),
        }
    }
}

fn told(error: &StateError) -> anyhow::Error {
    anyhow::anyhow!("{}", error.details())
}
