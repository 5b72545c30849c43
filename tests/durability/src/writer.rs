//! The process that is killed.

use std::io::{Write as _, stdout};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use bytesize::ByteSize;
use toolbay_state::{StateDatabase, StateError, StateStore as _, UnmeteredPayer};

use crate::operation::{AMPLE, SHARED, attempt, bucket, change, shared};

/// Stores state and reports completed operations, until it is killed.
pub(crate) fn run(folder: &Path, from: &[u64]) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let database = StateDatabase::new(folder.to_owned(), ByteSize::gib(1));
    let mut tasks = tokio::task::JoinSet::new();
    for (index, first) in from.iter().copied().enumerate() {
        tasks.spawn_on(task(database.clone(), index, first), runtime.handle());
    }
    // Tasks run forever, so this returns only on an error.
    match runtime
        .block_on(tasks.join_next())
        .context("nothing to do")?
    {
        Ok(Err(error)) => Err(error),
        _ => bail!("a task ended"),
    }
}

async fn task(database: StateDatabase, index: usize, first: u64) -> Result<()> {
    let own = bucket(index)?;
    let shared = shared()?;
    for number in first.. {
        database
            .change(&own, AMPLE, change(number), Arc::new(UnmeteredPayer))
            .await?;
        // A single write for each line.
        stdout()
            .lock()
            .write_all(format!("{index} {number}.\n").as_bytes())?;
        if let Some(attempt) = attempt(index, number) {
            match database
                .change(&shared, SHARED, attempt, Arc::new(UnmeteredPayer))
                .await
            {
                Ok(_) | Err(StateError::Size(_) | StateError::Keys(_)) => {}
                Err(error) => bail!("{}", error.details()),
            }
        }
    }
    Ok(())
}
