//! Message transport over standard input and output, with one message per line.

use std::collections::VecDeque;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use wasmtime_wasi::cli::{IsTerminal, StdinStream, StdoutStream};
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::capability::stdio::output_capture::GuestOutputStream;

/// Memory overhead of a stored line, in bytes: its slot in the queue, which grows by doubling, and
/// the allocation.
const LINE_OVERHEAD_BYTES: usize = 96;

/// Both directions of the transport. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct StdioTransport(Arc<StdioTransportState>);

#[derive(Default)]
struct StdioTransportState {
    lines: Mutex<LineBuffer>,
    /// Notified when the guest has input to read.
    input_ready: Arc<Notify>,
    /// Notified when the guest has written a line.
    output_ready: Notify,
}

#[derive(Default)]
struct LineBuffer {
    /// Input that the guest has not read.
    input: VecDeque<Bytes>,
    /// If set, the guest's input ends after the unread input.
    closed: bool,
    /// The incomplete line of the guest's output.
    partial_line: Vec<u8>,
    /// Complete lines of output that the host has not received.
    output: VecDeque<Vec<u8>>,
    /// If set, the input ends after the first request.
    closes_after_send: bool,
}

impl StdioTransport {
    /// Creates a transport that closes the guest's input after the first request.
    pub(crate) fn single_request() -> Self {
        let transport = Self::default();
        transport.lock_lines().closes_after_send = true;
        transport
    }

    /// Returns the guest's standard input.
    pub(crate) fn stdin(&self) -> impl StdinStream + use<> {
        TransportStdin(self.clone())
    }

    /// Returns the guest's standard output. `captured` captures its beginning and stops the guest
    /// at a limit.
    pub(crate) fn stdout(&self, captured: GuestOutputStream) -> impl StdoutStream + use<> {
        TransportStdout {
            transport: self.clone(),
            captured,
        }
    }

    /// Sends a line. It stays in memory until the guest reads it.
    pub(crate) fn send(&self, line: &str) {
        let mut lines = self.lock_lines();
        lines.input.push_back(Bytes::from(format!("{line}\n")));
        lines.closed |= lines.closes_after_send;
        drop(lines);
        self.0.input_ready.notify_waiters();
    }

    /// Waits for the guest's next nonblank line.
    pub(crate) async fn recv(&self) -> Vec<u8> {
        loop {
            let line_written = self.0.output_ready.notified();
            if let Some(line) = self.lock_lines().output.pop_front() {
                return line;
            }
            line_written.await;
        }
    }

    /// Returns a reader of the guest's unread input. All readers share the input: each byte goes to
    /// one reader.
    pub(crate) fn reader(&self) -> StdinMessageReader {
        StdinMessageReader {
            transport: self.clone(),
            notified: None,
        }
    }

    // The lock is held for a few instructions and never across an await.
    fn lock_lines(&self) -> MutexGuard<'_, LineBuffer> {
        self.0.lines.lock()
    }
}

impl LineBuffer {
    /// Takes the next chunk of unread input.
    fn take_input(&mut self, max_bytes: usize) -> Option<Bytes> {
        let first = self.input.front_mut()?;
        let part = first.split_to(max_bytes.min(first.len()));
        if first.is_empty() {
            self.input.pop_front();
        }
        Some(part)
    }
}

/// Reader of the guest's input for WASI 0.3. While it waits, only the reader holds its waker, so a
/// guest that drops its stream leaves nothing behind.
pub(crate) struct StdinMessageReader {
    transport: StdioTransport,
    notified: Option<Pin<Box<OwnedNotified>>>,
}

impl Clone for StdinMessageReader {
    fn clone(&self) -> Self {
        self.transport.reader()
    }
}

impl StdinMessageReader {
    /// Polls for the next chunk of unread input, of at most `max_bytes` bytes. Returns `None` at
    /// the end.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
        max_bytes: usize,
    ) -> Poll<Option<Bytes>> {
        loop {
            // Register before checking the buffer, so that no later notification is lost.
            let notify = &self.transport.0.input_ready;
            let notified = self
                .notified
                .get_or_insert_with(|| Box::pin(Arc::clone(notify).notified_owned()));
            let mut lines = self.transport.lock_lines();
            let part = lines.take_input(max_bytes);
            if part.is_some() || lines.closed {
                drop(lines);
                self.notified = None;
                return Poll::Ready(part);
            }
            drop(lines);
            if notified.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.notified = None;
        }
    }
}

/// Standard input of the guest.
#[derive(Clone)]
struct TransportStdin(StdioTransport);

impl IsTerminal for TransportStdin {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdinStream for TransportStdin {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncRead + Send + Sync> {
        // Only the streams of WASI 0.3 would call this, and Toolbay has its own.
        Box::new(tokio::io::empty())
    }

    fn p2_stream(&self) -> Box<dyn InputStream> {
        Box::new(self.clone())
    }
}

impl InputStream for TransportStdin {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let mut lines = self.0.lock_lines();
        match lines.take_input(size) {
            Some(part) => Ok(part),
            None if lines.closed => Err(StreamError::Closed),
            None => Ok(Bytes::new()),
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for TransportStdin {
    async fn ready(&mut self) {
        loop {
            let input_ready = self.0.0.input_ready.notified();
            {
                let lines = self.0.lock_lines();
                if lines.closed || !lines.input.is_empty() {
                    return;
                }
            }
            input_ready.await;
        }
    }
}

/// Standard output of the guest.
#[derive(Clone)]
struct TransportStdout {
    transport: StdioTransport,
    captured: GuestOutputStream,
}

impl IsTerminal for TransportStdout {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for TransportStdout {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Only the streams of WASI 0.3 would call this, and Toolbay has its own.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for TransportStdout {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.captured.write(bytes.clone())?;
        let mut lines = self.transport.lock_lines();
        let mut has_line = false;
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let before = lines.partial_line.capacity();
            lines.partial_line.extend_from_slice(part);
            self.captured
                .charge_memory(lines.partial_line.capacity() - before)?;
            if part.ends_with(b"\n") {
                let line = mem::take(&mut lines.partial_line);
                if line.iter().any(|byte| !byte.is_ascii_whitespace()) {
                    self.captured.charge_memory(LINE_OVERHEAD_BYTES)?;
                    lines.output.push_back(line);
                    has_line = true;
                }
            }
        }
        drop(lines);
        if has_line {
            self.transport.0.output_ready.notify_waiters();
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.captured.check_write()
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for TransportStdout {
    async fn ready(&mut self) {}
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use bytesize::ByteSize;

    use super::*;
    use crate::capability::memory_budget::MemoryBudget;
    use crate::capability::stdio::output_capture::GuestOutput;

    #[tokio::test]
    async fn lines_are_received_wherever_the_writes_end() {
        let transport = StdioTransport::default();
        let stdio = GuestOutput::new(ByteSize::kib(1), MemoryBudget::new(ByteSize::mib(1)));
        let mut output = TransportStdout {
            transport: transport.clone(),
            captured: stdio.stdout(),
        };
        for piece in ["{\"a\"", ":1}\n\n \r\n{", "}\n[]\nrest"] {
            output.write(Bytes::from_static(piece.as_bytes())).unwrap();
        }
        for line in ["{\"a\":1}\n", "{}\n", "[]\n"] {
            assert_eq!(transport.recv().await, line.as_bytes());
        }
        assert!(transport.lock_lines().output.is_empty());
    }

    #[test]
    fn the_overhead_of_a_line_counts_against_the_budget() {
        let transport = StdioTransport::default();
        let budget = MemoryBudget::new(ByteSize::mib(1));
        let stdio = GuestOutput::new(ByteSize::mib(8), budget.clone());
        let mut output = TransportStdout {
            transport: transport.clone(),
            captured: stdio.stdout(),
        };
        let lines = Bytes::from("a\n".repeat(1000));
        let written = (0..1000)
            .take_while(|_| output.write(lines.clone()).is_ok())
            .count();
        assert!(budget.is_exceeded() && written < 11, "{written}");
        let lines = transport.lock_lines();
        let stored_bytes = lines.output.capacity() * size_of::<Vec<u8>>()
            + lines.output.iter().map(Vec::capacity).sum::<usize>();
        assert!(stored_bytes <= 1 << 20, "{stored_bytes}");
    }

    #[tokio::test]
    async fn input_waits_for_messages_and_ends_when_it_is_closed() {
        let transport = StdioTransport::default();
        let mut input = TransportStdin(transport.clone());
        assert_eq!(input.read(8).unwrap(), "");
        let push = |text: &'static str, closed| {
            let mut lines = transport.lock_lines();
            lines.input.push_back(Bytes::from_static(text.as_bytes()));
            lines.closed = closed;
            drop(lines);
            transport.0.input_ready.notify_waiters();
        };
        let ((), ()) = tokio::join!(input.ready(), async { push("hello\n", false) });
        assert_eq!(
            (input.read(2).unwrap(), input.read(9).unwrap()),
            ("he".into(), "llo\n".into())
        );
        push("x", true);
        input.ready().await;
        assert_eq!(input.read(9).unwrap(), "x");
        assert!(matches!(input.read(9), Err(StreamError::Closed)));
    }

    #[test]
    fn a_reader_that_is_dropped_while_it_waits_leaves_nothing_behind() {
        let transport = StdioTransport::default();
        let count = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        for _ in 0..100 {
            assert!(transport.reader().poll(&mut context, 8).is_pending());
        }
        assert_eq!(Arc::strong_count(&count), 2);
        transport.send("hello");
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_message_wakes_every_reader_and_goes_to_the_first_that_reads() {
        let transport = StdioTransport::default();
        let count = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let mut readers = [transport.reader(), transport.reader()];
        for reader in &mut readers {
            assert!(reader.poll(&mut context, 8).is_pending());
        }
        transport.send("hello");
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
        let [first, second] = &mut readers;
        assert_eq!(
            first.poll(&mut context, 8),
            Poll::Ready(Some("hello\n".into()))
        );
        assert!(second.poll(&mut context, 8).is_pending());
        transport.lock_lines().closed = true;
        transport.0.input_ready.notify_waiters();
        assert_eq!(count.0.load(Ordering::Relaxed), 3);
        assert_eq!(second.poll(&mut context, 8), Poll::Ready(None));
    }

    /// Counts wake-ups.
    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}
