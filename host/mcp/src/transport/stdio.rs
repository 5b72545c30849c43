//! MCP over standard input and output: one message per line.

use std::io;
use std::sync::Arc;

use bytes::{Buf as _, BytesMut};
use bytesize::ByteSize;
use futures_util::StreamExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio_util::codec::{Decoder, FramedRead};
use tokio_util::sync::CancellationToken;

use crate::dispatch::dispatcher;
use crate::exchange::outbox::{self, OutboxReceiver};
use crate::host::caller::Caller;
use crate::host::mcp_server::McpServer;
use crate::protocol::id_scanner::IdScanner;
use crate::protocol::jsonrpc::{self, Error, INVALID_REQUEST, RequestId};
use crate::session::client_session::{Session, SessionChannel, ShutdownTokens, flush_timeout};
use crate::transport::process_stdio::{self, StdinStream, StdoutStream};

/// Size up to which messages are combined into one write, in bytes.
const WRITE_BATCH_BYTES: usize = 256 << 10;

/// Serves one client until it closes a stream or `stop` is cancelled.
///
/// # Errors
///
/// Reading failed. A client that stops reading is not an error.
pub async fn serve(
    server: Arc<McpServer>,
    reader: StdinStream,
    writer: StdoutStream,
    stop: CancellationToken,
) -> io::Result<()> {
    let (outbox, messages) = outbox::channel();
    let caller = Arc::new(Caller::local(server.calls().client(Caller::LOCAL)));
    let intake = server.options().request_quota(false);
    let session = Session::new(
        Arc::clone(&server),
        Arc::clone(&caller),
        intake,
        SessionChannel::Shared,
        ShutdownTokens::default(),
    );
    let writing = tokio::spawn(write_messages(messages, writer));
    let options = server.options();
    let limit = usize::try_from(options.max_message_size.as_u64()).unwrap_or(usize::MAX);
    let mut lines = FramedRead::new(reader, LineSplitter::new(limit));
    let result = loop {
        let line = tokio::select! {
            () = stop.cancelled() => break Ok(()),
            // The peer stopped reading: no response can be sent.
            () = outbox.closed() => break Ok(()),
            line = lines.next() => line,
        };
        match line {
            None => break Ok(()),
            Some(Err(error)) => break Err(error),
            Some(Ok(LineContent::Message(message))) => {
                dispatcher::receive(&session, &caller, jsonrpc::decode(&message), &outbox).await;
            }
            Some(Ok(LineContent::TooLong(id))) => {
                session
                    .reject(too_long_error(id, options.max_message_size), &outbox)
                    .await;
            }
        }
    };
    // If the client was killed, both ends are closed: its calls need no grace period.
    let writer = writing.abort_handle();
    let unread = tokio::spawn(async move {
        process_stdio::wait_until_stdout_closed().await;
        writer.abort();
    });
    session.end(options.grace_period, outbox.closed()).await;
    unread.abort();
    // Dropping the last sender lets the writer finish.
    drop((session, outbox));
    drop(tokio::time::timeout(flush_timeout(options.grace_period), writing).await);
    result
}

/// Returns the error for a line that is longer than `limit`.
fn too_long_error(id: Option<RequestId>, limit: ByteSize) -> Error {
    let what = format!(
        "the message is larger than {} (to allow more, raise server.request_size)",
        limit.display().iec()
    );
    Error {
        id,
        ..Error::new(INVALID_REQUEST, what)
    }
}

/// Writes messages, one per line, until there are no more senders or the peer disconnects.
async fn write_messages(messages: OutboxReceiver, mut writer: StdoutStream) {
    let mut buffer = Vec::new();
    while let Some(message) = messages.recv().await {
        append_line(&mut buffer, &message.text);
        // Combine waiting messages into one system call.
        while buffer.len() < WRITE_BATCH_BYTES
            && let Some(message) = messages.try_recv()
        {
            append_line(&mut buffer, &message.text);
        }
        let written = async {
            writer.write_all(&buffer).await?;
            writer.flush().await
        };
        if let Err(error) = written.await {
            tracing::debug!(%error, "the client stopped reading");
            return;
        }
        buffer.clear();
        // A huge response must not occupy memory for the rest of the session.
        buffer.shrink_to(WRITE_BATCH_BYTES);
    }
}

fn append_line(buffer: &mut Vec<u8>, message: &[u8]) {
    buffer.extend_from_slice(message);
    buffer.push(b'\n');
}

/// The content of a line.
#[derive(Debug, PartialEq, Eq)]
enum LineContent {
    /// A message, without the line feed.
    Message(BytesMut),
    /// The line is longer than the limit, and the rest of it is skipped. Contains the id of the
    /// request, if the line has one.
    TooLong(Option<RequestId>),
}

/// A line that is too long and arrives in parts. Its id is searched in all of them, because many
/// clients write it last.
#[derive(Default)]
struct SkippedLine {
    scanner: IdScanner,
    is_reported: bool,
}

impl SkippedLine {
    /// Scans the next part. Returns the report of the line once its id is known, or it is known
    /// that none can be found.
    fn scan(&mut self, part: &[u8]) -> Option<LineContent> {
        if self.is_reported {
            return None;
        }
        self.scanner.scan(part);
        self.scanner.is_decided().then(|| self.report())
    }

    /// Scans the last part. Returns the report of the line if it was not returned before.
    fn finish(mut self, part: &[u8]) -> Option<LineContent> {
        self.scan(part)
            .or_else(|| (!self.is_reported).then(|| self.report()))
    }

    fn report(&mut self) -> LineContent {
        self.is_reported = true;
        LineContent::TooLong(std::mem::take(&mut self.scanner).first_id())
    }
}

/// Splits a stream into lines of at most `limit` bytes; blank lines are skipped.
struct LineSplitter {
    limit: usize,
    /// The current line, if it is too long.
    skipped: Option<SkippedLine>,
    /// Length of the part of the buffer that contains no line feed. A long line arrives in many
    /// pieces, and each is searched once.
    searched: usize,
}

impl LineSplitter {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            skipped: None,
            searched: 0,
        }
    }

    /// Returns the end of the first line in the buffer.
    fn find_line_end(&mut self, buffer: &[u8]) -> Option<usize> {
        let found =
            memchr::memchr(b'\n', buffer.get(self.searched..)?).map(|at| self.searched + at);
        self.searched = if found.is_some() { 0 } else { buffer.len() };
        found
    }
}

impl Decoder for LineSplitter {
    type Item = LineContent;
    type Error = io::Error;

    fn decode(&mut self, buffer: &mut BytesMut) -> io::Result<Option<LineContent>> {
        while let Some(end) = self.find_line_end(buffer) {
            let mut line = buffer.split_to(end);
            buffer.advance(1);
            if let Some(skipped) = self.skipped.take() {
                if let Some(report) = skipped.finish(&line) {
                    return Ok(Some(report));
                }
                continue;
            }
            if line.len() > self.limit {
                return Ok(SkippedLine::default().finish(&line));
            }
            if line.ends_with(b"\r") {
                line.truncate(line.len() - 1);
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(LineContent::Message(line)));
            }
        }
        if buffer.len() > self.limit || self.skipped.is_some() {
            let report = self.skipped.get_or_insert_default().scan(buffer);
            buffer.clear();
            self.searched = 0;
            return Ok(report);
        }
        Ok(None)
    }

    /// Also returns a last line without a line feed.
    fn decode_eof(&mut self, buffer: &mut BytesMut) -> io::Result<Option<LineContent>> {
        if let Some(line) = self.decode(buffer)? {
            return Ok(Some(line));
        }
        if let Some(skipped) = self.skipped.take() {
            return Ok(skipped.finish(&[]));
        }
        let line = buffer.split();
        self.searched = 0;
        Ok((!line.trim_ascii().is_empty()).then_some(LineContent::Message(line)))
    }
}

#[cfg(test)]
mod tests;
