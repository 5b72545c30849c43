//! Captures a guest's standard output and standard error in a bounded buffer. A guest never gets the host's own
//! streams.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use crate::account::Account;

/// How much of a guest's output is kept for the log and the error, in bytes. More would not be read, and every running
/// call may hold this much.
const KEPT: usize = 64 << 10;

/// How much a guest may write between two checks; the longest single WASI write.
const PERMIT: usize = 64 << 10;

/// The standard output and standard error of one call, under a common limit.
#[derive(Clone, Debug)]
pub(crate) struct Stdio {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// Bytes written in all to both streams.
    written: u64,
    /// The number of bytes above which the guest is stopped.
    limit: u64,
    /// How much of standard output is kept.
    keep: usize,
    /// What is kept is drawn from this.
    account: Account,
}

/// One of the two streams, as the guest sees it.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    stdio: Stdio,
    kept: fn(&mut Shared) -> (&mut Vec<u8>, usize),
}

impl Stdio {
    pub(crate) fn new(limit: u64, account: Account) -> Self {
        let shared = Shared { stdout: Vec::new(), stderr: Vec::new(), written: 0, limit, keep: KEPT, account };
        Self { shared: Arc::new(Mutex::new(shared)) }
    }

    /// The same, but keeps more of standard output: a command's result is there.
    pub(crate) fn keeping(self, stdout: usize) -> Self {
        self.with(|shared| shared.keep = stdout);
        self
    }

    pub(crate) fn stdout(&self) -> Stream {
        Stream { stdio: self.clone(), kept: |shared| (&mut shared.stdout, shared.keep) }
    }

    pub(crate) fn stderr(&self) -> Stream {
        Stream { stdio: self.clone(), kept: |shared| (&mut shared.stderr, KEPT) }
    }

    /// Whether the guest exceeded the limit.
    pub(crate) fn exceeded(&self) -> bool {
        self.with(|shared| shared.written > shared.limit)
    }

    /// The kept parts of standard output and standard error, and the number of bytes written in all.
    pub(crate) fn captured(&self) -> (String, String, u64) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.with(|shared| (text(&shared.stdout), text(&shared.stderr), shared.written))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Shared) -> T) -> T {
        work(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl IsTerminal for Stream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Stream {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Only WASI 0.3 calls this, and it is not linked.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for Stream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let kept = self.kept;
        self.stdio.with(|shared| {
            shared.written += bytes.len() as u64;
            let (kept, keep) = kept(shared);
            let room = keep.saturating_sub(kept.len());
            let part = bytes.get(..room.min(bytes.len())).unwrap_or_default();
            let grown = kept.capacity();
            kept.extend_from_slice(part);
            let grown = kept.capacity() - grown;
            shared.account.take(grown).map_err(|overdrawn| StreamError::Trap(overdrawn.into()))?;
            if shared.written > shared.limit {
                return Err(StreamError::trap("standard output and standard error exceeded their limit"));
            }
            Ok(())
        })
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Stream {
    async fn ready(&mut self) {}
}

#[cfg(test)]
mod tests {
    use bytesize::ByteSize;

    use super::*;

    #[test]
    fn the_beginning_of_each_stream_is_kept_and_the_rest_is_counted() {
        let stdio = Stdio::new(1 << 20, Account::new(ByteSize::mib(1)));
        stdio.stdout().write(Bytes::from(vec![b'a'; KEPT - 1])).unwrap();
        stdio.stdout().write(Bytes::from_static(b"bcd")).unwrap();
        stdio.stderr().write(Bytes::from_static(b"boom")).unwrap();
        let (stdout, stderr, written) = stdio.captured();
        assert_eq!((stdout.len(), stderr.as_str(), written), (KEPT, "boom", KEPT as u64 + 6));
        assert!(stdout.ends_with("ab"));
        assert!(!stdio.exceeded());
    }

    #[test]
    fn the_guest_is_stopped_when_both_streams_together_exceed_the_limit() {
        let stdio = Stdio::new(3, Account::new(ByteSize::mib(1)));
        stdio.stdout().write(Bytes::from_static(b"abc")).unwrap();
        assert!(matches!(stdio.stderr().write(Bytes::from_static(b"d")), Err(StreamError::Trap(_))));
        assert!(stdio.exceeded());
    }
}
