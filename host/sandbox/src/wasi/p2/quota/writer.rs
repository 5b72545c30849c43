//! Writes to files in a mount with a quota.

use std::fs::File;
use std::io;
use std::mem;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::fstat;
use rustix::io::{ReadWriteFlags, pwritev2};
use tokio::task::JoinHandle;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::p2::{FsResult, OutputStream, Pollable, StreamError, StreamResult};

use crate::context::usage_ledger::{
    CallQuota, ChangePermit, DirectoryUsage, file_length, inode_id,
};
use crate::wasi::p2::metered_stream::STREAM_BUFFER_BYTES;

/// Position of a write.
#[derive(Clone, Copy, Debug)]
pub(super) enum WriteOffset {
    Offset(u64),
    End,
}

/// Result of an attempt to change a file's length.
enum ResizeAttempt<F, T> {
    Done(T),
    /// The quota seems to be exhausted, but the last scan of the directory is old.
    Full(ChangePermit, F),
}

/// Changes a file if the new length fits in the quota. `new_length` maps the current length to the
/// new one, and `change_file` performs the change.
///
/// # Errors
///
/// Fails if there is no space, or if the change fails.
pub(super) async fn resize<T: Send + 'static>(
    quota: CallQuota,
    file: Arc<File>,
    new_length: impl Fn(u64) -> u64 + Send + Copy + 'static,
    change_file: impl FnOnce(&File) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let change = quota.ledger.change().await?;
    let attempt =
        move |change: ChangePermit, quota: CallQuota, file: Arc<File>, change_file, is_last| {
            // The thread continues if the call ends.
            tokio::task::spawn_blocking(move || {
                try_resize(change, &quota, &file, new_length, change_file, is_last)
            })
        };
    match attempt(change, quota.clone(), Arc::clone(&file), change_file, false)
        .await
        .map_err(io::Error::other)??
    {
        ResizeAttempt::Done(value) => Ok(value),
        ResizeAttempt::Full(change, change_file) => {
            let change = change.rescan().await?;
            match attempt(change, quota, file, change_file, true)
                .await
                .map_err(io::Error::other)??
            {
                ResizeAttempt::Done(value) => Ok(value),
                ResizeAttempt::Full(..) => Err(io::ErrorKind::StorageFull.into()),
            }
        }
    }
}

fn try_resize<T, F: FnOnce(&File) -> io::Result<T>>(
    change: ChangePermit,
    quota: &CallQuota,
    file: &File,
    new_length: impl Fn(u64) -> u64,
    change_file: F,
    is_last: bool,
) -> io::Result<ResizeAttempt<F, T>> {
    let before = file_length(&fstat(file)?);
    let growth = DirectoryUsage {
        bytes: new_length(before).saturating_sub(before),
        entries: 0,
    };
    if !is_last && change.exceeded_bound(&quota.bounds, growth).is_some() && change.may_gain_space()
    {
        return Ok(ResizeAttempt::Full(change, change_file));
    }
    change.check_space(quota, growth)?;
    let result = change_file(file);
    let after = fstat(file)?;
    change.update_length(inode_id(&after), before, file_length(&after));
    result.map(ResizeAttempt::Done)
}

/// Writes all bytes, or nothing if there is no space for them. Returns the number of bytes.
pub(super) async fn write(
    quota: CallQuota,
    file: Arc<File>,
    bytes: Bytes,
    start: WriteOffset,
) -> io::Result<usize> {
    let byte_count = bytes.len() as u64;
    let new_length = move |length: u64| match start {
        // An empty write does not extend a file, at any offset.
        _ if byte_count == 0 => length,
        WriteOffset::Offset(offset) => offset.saturating_add(byte_count).max(length),
        WriteOffset::End => length.saturating_add(byte_count),
    };
    let write_all = move |file: &File| {
        let mut remaining = bytes.as_ref();
        let mut offset = start;
        while !remaining.is_empty() {
            let written = match offset {
                WriteOffset::Offset(position) => file.write_at(remaining, position),
                WriteOffset::End => append(file, remaining),
            };
            let written = match written {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                written => written?,
            };
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            remaining = remaining.get(written..).unwrap_or_default();
            if let WriteOffset::Offset(position) = &mut offset {
                *position = position.saturating_add(written as u64);
            }
        }
        Ok(bytes.len())
    };
    resize(quota, file, new_length, write_all).await
}

fn append(file: &File, bytes: &[u8]) -> io::Result<usize> {
    Ok(pwritev2(
        file,
        &[io::IoSlice::new(bytes)],
        0,
        ReadWriteFlags::APPEND,
    )?)
}

/// Output stream to a file in a mount with a quota.
pub(in crate::wasi::p2) struct QuotaWriter {
    quota: CallQuota,
    file: Arc<File>,
    offset: WriteOffset,
    state: QuotaWriterState,
}

enum QuotaWriterState {
    Ready,
    /// A write in progress. Dropping it cancels a write that is still waiting.
    Pending(PendingWrite),
    Failed(io::Error),
    Closed,
}

struct PendingWrite(JoinHandle<io::Result<usize>>);

impl Drop for PendingWrite {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl QuotaWriter {
    /// Creates a stream that writes from `offset`, or at the end of the file.
    pub(in crate::wasi::p2) fn new(
        quota: CallQuota,
        file: &wasmtime_wasi::filesystem::File,
        offset: Option<u64>,
    ) -> FsResult<Self> {
        if file.perms.write_not_permitted() {
            return Err(ErrorCode::NotPermitted.into());
        }
        let start = offset.map_or(WriteOffset::End, WriteOffset::Offset);
        Ok(Self {
            quota,
            file: Arc::clone(&file.file),
            offset: start,
            state: QuotaWriterState::Ready,
        })
    }

    /// Returns the error of the previous write, once.
    fn take_failure(&mut self) -> StreamResult<()> {
        match mem::replace(&mut self.state, QuotaWriterState::Closed) {
            QuotaWriterState::Failed(error) => Err(StreamError::LastOperationFailed(error.into())),
            QuotaWriterState::Closed => Err(StreamError::Closed),
            state => {
                self.state = state;
                Ok(())
            }
        }
    }
}

#[async_trait]
impl Pollable for QuotaWriter {
    async fn ready(&mut self) {
        let QuotaWriterState::Pending(PendingWrite(task)) = &mut self.state else {
            return;
        };
        self.state = match task.await {
            Ok(Ok(written)) => {
                if let WriteOffset::Offset(position) = &mut self.offset {
                    *position = position.saturating_add(written as u64);
                }
                QuotaWriterState::Ready
            }
            Ok(Err(error)) => QuotaWriterState::Failed(error),
            Err(error) => QuotaWriterState::Failed(io::Error::other(error)),
        };
    }
}

#[async_trait]
impl OutputStream for QuotaWriter {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        match self.state {
            QuotaWriterState::Ready => {
                let write_future = write(
                    self.quota.clone(),
                    Arc::clone(&self.file),
                    bytes,
                    self.offset,
                );
                self.state = QuotaWriterState::Pending(PendingWrite(tokio::spawn(write_future)));
                Ok(())
            }
            QuotaWriterState::Closed => Err(StreamError::Closed),
            QuotaWriterState::Pending(_) | QuotaWriterState::Failed(_) => Err(StreamError::trap(
                "write not permitted: check_write not called first",
            )),
        }
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.take_failure()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.take_failure()?;
        Ok(if matches!(self.state, QuotaWriterState::Pending(_)) {
            0
        } else {
            STREAM_BUFFER_BYTES
        })
    }

    async fn cancel(&mut self) {
        self.state = QuotaWriterState::Closed;
    }
}
