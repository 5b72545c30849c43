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
    to: impl Fn(u64) -> u64 + Send + Copy + 'static,
    make: impl FnOnce(&File) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let change = quota.ledger.change().await?;
    let attempt = move |change: ChangePermit, quota: CallQuota, file: Arc<File>, make, last| {
        // The thread continues if the call ends.
        tokio::task::spawn_blocking(move || try_resize(change, &quota, &file, to, make, last))
    };
    match attempt(change, quota.clone(), Arc::clone(&file), make, false)
        .await
        .map_err(io::Error::other)??
    {
        ResizeAttempt::Done(value) => Ok(value),
        ResizeAttempt::Full(change, make) => {
            let change = change.rescan().await?;
            match attempt(change, quota, file, make, true)
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
    to: impl Fn(u64) -> u64,
    make: F,
    last: bool,
) -> io::Result<ResizeAttempt<F, T>> {
    let before = file_length(&fstat(file)?);
    let more = DirectoryUsage {
        bytes: to(before).saturating_sub(before),
        entries: 0,
    };
    if !last && change.exceeded_bound(&quota.bounds, more).is_some() && change.may_gain_space() {
        return Ok(ResizeAttempt::Full(change, make));
    }
    change.check_space(quota, more)?;
    let result = make(file);
    let after = fstat(file)?;
    change.update_length(inode_id(&after), before, file_length(&after));
    result.map(ResizeAttempt::Done)
}

/// Writes all bytes, or nothing if there is no space for them. Returns the number of bytes.
pub(super) async fn write(
    quota: CallQuota,
    file: Arc<File>,
    bytes: Bytes,
    at: WriteOffset,
) -> io::Result<usize> {
    let more = bytes.len() as u64;
    let to = move |length: u64| match at {
        // An empty write does not extend a file, at any offset.
        _ if more == 0 => length,
        WriteOffset::Offset(offset) => offset.saturating_add(more).max(length),
        WriteOffset::End => length.saturating_add(more),
    };
    let write = move |file: &File| {
        let mut left = bytes.as_ref();
        let mut offset = at;
        while !left.is_empty() {
            let written = match offset {
                WriteOffset::Offset(at) => file.write_at(left, at),
                WriteOffset::End => append(file, left),
            };
            let written = match written {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                written => written?,
            };
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            left = left.get(written..).unwrap_or_default();
            if let WriteOffset::Offset(at) = &mut offset {
                *at = at.saturating_add(written as u64);
            }
        }
        Ok(bytes.len())
    };
    resize(quota, file, to, write).await
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
    at: WriteOffset,
    state: WriteFuture,
}

enum WriteFuture {
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
        let at = offset.map_or(WriteOffset::End, WriteOffset::Offset);
        Ok(Self {
            quota,
            file: Arc::clone(&file.file),
            at,
            state: WriteFuture::Ready,
        })
    }

    /// Returns the error of the previous write, once.
    fn take_failure(&mut self) -> StreamResult<()> {
        match mem::replace(&mut self.state, WriteFuture::Closed) {
            WriteFuture::Failed(error) => Err(StreamError::LastOperationFailed(error.into())),
            WriteFuture::Closed => Err(StreamError::Closed),
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
        let WriteFuture::Pending(PendingWrite(writing)) = &mut self.state else {
            return;
        };
        self.state = match writing.await {
            Ok(Ok(written)) => {
                if let WriteOffset::Offset(at) = &mut self.at {
                    *at = at.saturating_add(written as u64);
                }
                WriteFuture::Ready
            }
            Ok(Err(error)) => WriteFuture::Failed(error),
            Err(error) => WriteFuture::Failed(io::Error::other(error)),
        };
    }
}

#[async_trait]
impl OutputStream for QuotaWriter {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        match self.state {
            WriteFuture::Ready => {
                let writing = write(self.quota.clone(), Arc::clone(&self.file), bytes, self.at);
                self.state = WriteFuture::Pending(PendingWrite(tokio::spawn(writing)));
                Ok(())
            }
            WriteFuture::Closed => Err(StreamError::Closed),
            WriteFuture::Pending(_) | WriteFuture::Failed(_) => Err(StreamError::trap(
                "write not permitted: check_write not called first",
            )),
        }
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.take_failure()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.take_failure()?;
        Ok(if matches!(self.state, WriteFuture::Pending(_)) {
            0
        } else {
            STREAM_BUFFER_BYTES
        })
    }

    async fn cancel(&mut self) {
        self.state = WriteFuture::Closed;
    }
}
