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

use crate::ledger::{Change, Holds, Quota, identity, length};
use crate::wasi::stream::BUFFER;

/// Where a write begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    Offset(u64),
    End,
}

/// How a change of a file's length went.
enum Attempt<F, T> {
    Done(T),
    /// There seems to be no room, but the folder was not counted for a while.
    Full(Change, F),
}

/// Makes a change to a file after which it has the length that `to` makes of the one before, if it fits.
///
/// # Errors
///
/// There is no room, or the change failed.
pub(super) async fn resize<T: Send + 'static>(
    quota: Quota,
    file: Arc<File>,
    to: impl Fn(u64) -> u64 + Send + Copy + 'static,
    make: impl FnOnce(&File) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let change = quota.ledger.change().await?;
    let attempt = move |change: Change, quota: Quota, file: Arc<File>, make, last| {
        // On a thread that goes on if the call ends.
        tokio::task::spawn_blocking(move || attempt(change, &quota, &file, to, make, last))
    };
    match attempt(change, quota.clone(), Arc::clone(&file), make, false).await.map_err(io::Error::other)?? {
        Attempt::Done(value) => Ok(value),
        Attempt::Full(change, make) => {
            let change = change.count_again().await?;
            match attempt(change, quota, file, make, true).await.map_err(io::Error::other)?? {
                Attempt::Done(value) => Ok(value),
                Attempt::Full(..) => Err(io::ErrorKind::StorageFull.into()),
            }
        }
    }
}

fn attempt<T, F: FnOnce(&File) -> io::Result<T>>(
    change: Change,
    quota: &Quota,
    file: &File,
    to: impl Fn(u64) -> u64,
    make: F,
    last: bool,
) -> io::Result<Attempt<F, T>> {
    let before = length(&fstat(file)?);
    let more = Holds { bytes: to(before).saturating_sub(before), entries: 0 };
    if !last && change.has_room(&quota.bounds, more).is_some() && change.may_have_room() {
        return Ok(Attempt::Full(change, make));
    }
    change.take_room(quota, more)?;
    let result = make(file);
    let after = fstat(file)?;
    change.length(identity(&after), before, length(&after));
    result.map(Attempt::Done)
}

/// Writes all of the bytes, or nothing if there is no room for them. Returns how many there were.
pub(super) async fn write(quota: Quota, file: Arc<File>, bytes: Bytes, at: At) -> io::Result<usize> {
    let more = bytes.len() as u64;
    let to = move |length: u64| match at {
        // Writing nothing does not make a file longer, wherever it is written.
        _ if more == 0 => length,
        At::Offset(offset) => offset.saturating_add(more).max(length),
        At::End => length.saturating_add(more),
    };
    let write = move |file: &File| {
        let mut left = bytes.as_ref();
        let mut offset = at;
        while !left.is_empty() {
            let written = match offset {
                At::Offset(at) => file.write_at(left, at),
                At::End => append(file, left),
            };
            let written = match written {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                written => written?,
            };
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            left = left.get(written..).unwrap_or_default();
            if let At::Offset(at) = &mut offset {
                *at = at.saturating_add(written as u64);
            }
        }
        Ok(bytes.len())
    };
    resize(quota, file, to, write).await
}

fn append(file: &File, bytes: &[u8]) -> io::Result<usize> {
    Ok(pwritev2(file, &[io::IoSlice::new(bytes)], 0, ReadWriteFlags::APPEND)?)
}

/// A stream that writes to a file in a mount with a quota.
pub(in crate::wasi) struct Writer {
    quota: Quota,
    file: Arc<File>,
    at: At,
    state: Writing,
}

enum Writing {
    Ready,
    /// A write that has not ended. Dropping it stops one that is still waiting.
    Pending(Pending),
    Failed(io::Error),
    Closed,
}

struct Pending(JoinHandle<io::Result<usize>>);

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Writer {
    /// A stream that writes from `offset` on, or at the end.
    pub(in crate::wasi) fn new(
        quota: Quota,
        file: &wasmtime_wasi::filesystem::File,
        offset: Option<u64>,
    ) -> FsResult<Self> {
        if file.perms.write_not_permitted() {
            return Err(ErrorCode::NotPermitted.into());
        }
        let at = offset.map_or(At::End, At::Offset);
        Ok(Self { quota, file: Arc::clone(&file.file), at, state: Writing::Ready })
    }

    /// The error of the write before, once.
    fn failure(&mut self) -> StreamResult<()> {
        match mem::replace(&mut self.state, Writing::Closed) {
            Writing::Failed(error) => Err(StreamError::LastOperationFailed(error.into())),
            Writing::Closed => Err(StreamError::Closed),
            state => {
                self.state = state;
                Ok(())
            }
        }
    }
}

#[async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {
        let Writing::Pending(Pending(writing)) = &mut self.state else { return };
        self.state = match writing.await {
            Ok(Ok(written)) => {
                if let At::Offset(at) = &mut self.at {
                    *at = at.saturating_add(written as u64);
                }
                Writing::Ready
            }
            Ok(Err(error)) => Writing::Failed(error),
            Err(error) => Writing::Failed(io::Error::other(error)),
        };
    }
}

#[async_trait]
impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        match self.state {
            Writing::Ready => {
                let writing = write(self.quota.clone(), Arc::clone(&self.file), bytes, self.at);
                self.state = Writing::Pending(Pending(tokio::spawn(writing)));
                Ok(())
            }
            Writing::Closed => Err(StreamError::Closed),
            Writing::Pending(_) | Writing::Failed(_) => {
                Err(StreamError::trap("write not permitted: check_write not called first"))
            }
        }
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.failure()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.failure()?;
        Ok(if matches!(self.state, Writing::Pending(_)) { 0 } else { BUFFER })
    }

    async fn cancel(&mut self) {
        self.state = Writing::Closed;
    }
}
