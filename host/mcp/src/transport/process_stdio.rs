//! The process's standard input and output, non-blocking where possible.
//!
//! Tokio's own standard streams use a thread pool, with twice the latency and a fifth of the
//! throughput. They are used only for files and terminals.

use std::pin::Pin;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Duration, interval};

/// Interval at which standard output is checked for a closed other end. A guest whose result is no
/// longer needed runs at most this much longer.
const HANGUP_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The stream of a client's messages.
pub type StdinStream = Pin<Box<dyn AsyncRead + Send>>;

/// The stream of the server's messages.
pub type StdoutStream = Pin<Box<dyn AsyncWrite + Send>>;

/// Opens standard input and output. Must be called on a tokio runtime.
pub fn open_stdio() -> (StdinStream, StdoutStream) {
    let reader = unblocked::reader().unwrap_or_else(|| Box::pin(tokio::io::stdin()));
    let writer = unblocked::writer().unwrap_or_else(|| Box::pin(tokio::io::stdout()));
    (reader, writer)
}

/// Waits until the other end of standard output is closed.
pub async fn wait_until_stdout_closed() {
    // Neither pipes nor sockets signal this without a read or a write.
    let mut ticks = interval(HANGUP_POLL_INTERVAL);
    loop {
        ticks.tick().await;
        if is_stdout_closed() {
            return;
        }
    }
}

/// Returns whether the other end of standard output is closed; false if that is unknown.
fn is_stdout_closed() -> bool {
    let stdout = std::io::stdout();
    // `poll` always reports hang-ups and errors.
    let mut streams = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut streams, Some(&now)).is_ok()
        && streams
            .iter()
            .any(|stream| stream.revents().intersects(PollFlags::ERR | PollFlags::HUP))
}

/// Non-blocking streams, without the thread pool.
mod unblocked {
    use std::fs::File;
    use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    use super::{StdinStream, StdoutStream};

    /// Reopens pipes, so that the file description that other processes may share stays blocking.
    /// Sockets (used by Node.js) cannot be reopened.
    pub(super) fn reader() -> Option<StdinStream> {
        if let Ok(pipe) = pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
            return Some(Box::pin(pipe));
        }
        Some(Box::pin(socket(std::io::stdin().as_fd())?))
    }

    pub(super) fn writer() -> Option<StdoutStream> {
        if let Ok(pipe) = pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
            return Some(Box::pin(pipe));
        }
        Some(Box::pin(socket(std::io::stdout().as_fd())?))
    }

    fn socket(stream: BorrowedFd<'_>) -> Option<UnixStream> {
        let owned = stream.try_clone_to_owned().ok()?;
        let file = File::from(owned);
        let stderr = File::from(std::io::stderr().as_fd().try_clone_to_owned().ok()?);
        let metadata = file.metadata().ok()?;
        let other = stderr.metadata().ok()?;
        // If standard error is the same socket, it must stay blocking: otherwise writes to the log
        // would fail when the buffer is full.
        let shared = (metadata.dev(), metadata.ino()) == (other.dev(), other.ino());
        if !metadata.file_type().is_socket() || shared {
            return None;
        }
        let socket = std::os::unix::net::UnixStream::from(OwnedFd::from(file));
        socket.set_nonblocking(true).ok()?;
        UnixStream::from_std(socket).ok()
    }
}
