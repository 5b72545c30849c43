//! Captures a guest's standard output and standard error in bounded buffers. A guest never gets the
//! host's own streams.

use std::sync::Arc;

use bytes::Bytes;
use bytesize::ByteSize;
use parking_lot::Mutex;
use toolbay_model::Limit;
use toolbay_secrets::SecretFilter;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use crate::capability::memory_budget::MemoryBudget;

/// Maximum captured output for the log and the error message, in bytes. More would not be read, and
/// every running call may hold this amount.
const MAX_CAPTURED_BYTES: usize = 64 << 10;

/// Maximum size of a write between two checks, and so of a single WASI write, in bytes.
const WRITE_PERMIT_BYTES: usize = 64 << 10;

/// Standard output and standard error of one call, with a common limit.
#[derive(Clone, Debug)]
pub(crate) struct GuestOutput {
    shared: Arc<Mutex<OutputState>>,
}

#[derive(Debug)]
struct OutputState {
    stdout: CapturedText,
    stderr: CapturedText,
    /// Total number of bytes written, on both streams.
    written: u64,
    /// Number of bytes after which a write stops the guest.
    limit: ByteSize,
    /// The memory budget that the captured bytes are charged to.
    memory_budget: MemoryBudget,
}

/// Captured beginning of a stream's output.
#[derive(Clone, Debug)]
pub(crate) struct CapturedText {
    bytes: Vec<u8>,
    /// Maximum number of captured bytes.
    limit: usize,
    /// True if more was written.
    is_truncated: bool,
}

/// Guest's end of one of the two streams.
#[derive(Clone, Debug)]
pub(crate) struct GuestOutputStream {
    capture: GuestOutput,
    buffer: fn(&mut OutputState) -> &mut CapturedText,
}

impl CapturedText {
    fn with_limit(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
            is_truncated: false,
        }
    }

    /// Appends bytes. Returns the growth of the buffer's capacity, in bytes.
    fn append(&mut self, bytes: &[u8]) -> usize {
        let remaining = self.limit.saturating_sub(self.bytes.len());
        let before = self.bytes.capacity();
        self.is_truncated |= bytes.len() > remaining;
        self.bytes
            .extend_from_slice(bytes.get(..remaining).unwrap_or(bytes));
        self.bytes.capacity() - before
    }

    /// Returns the output as the guest wrote it, as lossy UTF-8.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Returns the output without secrets.
    pub(crate) fn scrubbed(&self, secrets: &SecretFilter) -> String {
        let text = self.text();
        if self.is_truncated {
            // The truncated character may be part of a secret.
            secrets.scrub_truncated(text.trim_end_matches(char::REPLACEMENT_CHARACTER))
        } else {
            secrets.scrub(&text).into_owned()
        }
    }
}

impl GuestOutput {
    pub(crate) fn new(limit: ByteSize, memory_budget: MemoryBudget) -> Self {
        let shared = OutputState {
            stdout: CapturedText::with_limit(MAX_CAPTURED_BYTES),
            stderr: CapturedText::with_limit(MAX_CAPTURED_BYTES),
            written: 0,
            limit,
            memory_budget,
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
        }
    }

    /// Sets the number of bytes to capture from standard output, which contains a command's result.
    pub(crate) fn with_stdout_limit(self, stdout: usize) -> Self {
        self.with_state(|shared| shared.stdout.limit = stdout);
        self
    }

    pub(crate) fn stdout(&self) -> GuestOutputStream {
        GuestOutputStream {
            capture: self.clone(),
            buffer: |shared| &mut shared.stdout,
        }
    }

    pub(crate) fn stderr(&self) -> GuestOutputStream {
        GuestOutputStream {
            capture: self.clone(),
            buffer: |shared| &mut shared.stderr,
        }
    }

    /// Returns the captured standard output and standard error.
    pub(crate) fn captured(&self) -> (CapturedText, CapturedText) {
        self.with_state(|shared| (shared.stdout.clone(), shared.stderr.clone()))
    }

    fn with_state<T>(&self, work: impl FnOnce(&mut OutputState) -> T) -> T {
        work(&mut self.shared.lock())
    }
}

impl GuestOutputStream {
    /// Charges bytes that another buffer stores to the memory budget.
    pub(crate) fn charge_memory(&self, bytes: usize) -> StreamResult<()> {
        let charged = self
            .capture
            .with_state(|shared| shared.memory_budget.charge(bytes));
        charged.map_err(|overdrawn| StreamError::Trap(overdrawn.into()))
    }
}

impl IsTerminal for GuestOutputStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for GuestOutputStream {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Only WASI 0.3 streams would call this, and Toolbay has its own implementation of those.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for GuestOutputStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let buffer = self.buffer;
        self.capture.with_state(|shared| {
            shared.written += bytes.len() as u64;
            let grown = buffer(shared).append(&bytes);
            shared
                .memory_budget
                .charge(grown)
                .map_err(|overdrawn| StreamError::Trap(overdrawn.into()))?;
            if shared.written > shared.limit.as_u64() {
                return Err(StreamError::Trap(Limit::Stdio(shared.limit).into()));
            }
            Ok(())
        })
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_PERMIT_BYTES)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for GuestOutputStream {
    async fn ready(&mut self) {}
}

#[cfg(test)]
mod tests {
    use toolbay_secrets::SecretValue;

    use super::*;

    #[test]
    fn the_beginning_of_each_stream_is_captured_and_the_rest_is_counted() {
        let stdio = GuestOutput::new(ByteSize::mib(1), MemoryBudget::new(ByteSize::mib(1)));
        stdio
            .stdout()
            .write(Bytes::from(vec![b'a'; MAX_CAPTURED_BYTES - 1]))
            .unwrap();
        stdio.stdout().write(Bytes::from_static(b"bcd")).unwrap();
        stdio.stderr().write(Bytes::from_static(b"boom")).unwrap();
        let (stdout, stderr) = stdio.captured();
        assert_eq!(
            (
                stdout.text().len(),
                stdout.is_truncated,
                stderr.text().as_str(),
                stderr.is_truncated
            ),
            (MAX_CAPTURED_BYTES, true, "boom", false)
        );
        assert!(stdout.text().ends_with("ab"));
        assert_eq!(
            stdio.with_state(|shared| shared.written),
            MAX_CAPTURED_BYTES as u64 + 6
        );
    }

    #[test]
    fn output_that_is_truncated_in_a_secret_ends_before_it() {
        let secrets = SecretFilter::new([(
            "token",
            &SecretValue::parse("hünter2-hünter2".as_bytes()).unwrap(),
        )])
        .unwrap();
        for limit in "it is h".len().."it is hünter2-hünter2".len() {
            let mut captured = CapturedText::with_limit(limit);
            captured.append(b"it is h\xc3");
            captured.append(b"\xbcnter2-h\xc3\xbcnter2");
            assert_eq!(captured.scrubbed(&secrets), "it is ", "{limit}");
        }
        let mut captured = CapturedText::with_limit(100);
        captured.append("h\0ünter2-\u{1b}[0mhünter2 h".as_bytes());
        assert_eq!(captured.scrubbed(&secrets), "[secret:token] h");
    }

    #[test]
    fn stops_the_guest_past_the_limit_of_both_together() {
        let stdio = GuestOutput::new(ByteSize::b(3), MemoryBudget::new(ByteSize::mib(1)));
        stdio.stdout().write(Bytes::from_static(b"abc")).unwrap();
        let Err(StreamError::Trap(error)) = stdio.stderr().write(Bytes::from_static(b"d")) else {
            panic!()
        };
        assert_eq!(error.downcast_ref(), Some(&Limit::Stdio(ByteSize::b(3))));
    }
}
